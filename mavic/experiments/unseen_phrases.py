"""How teams follow words they were not trained on: held-out and novel phrases, and the paper's own.

Where the lexicon is unsure what a phrase asks for, nothing is asked, so two figures belong together: how many phrases
are understood, and how many of the instructions given in them are followed. A team can hear such a phrase in two ways:
as the trained phrase nearest to it of the kind it is understood as (ours), or as its own vector (the paper's).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mavic.experiments import evaluate, metrics
from mavic.experiments.config import ExperimentConfig, Task, run_of, stack
from mavic.experiments.methods import METHODS
from mavic.experiments.runner import Trained
from mavic.language import lexicon as lexicons
from mavic.language.reader import measure, phrases, understanding
from mavic.types import Phrases, replace

# in a world's folder of phrases, where it has them
FILES = {"novel": f"{phrases.JUDGED}_novel", "paper": "paper_novel"}


@dataclass(frozen=True, kw_only=True)
class Words:
    """Phrases that a team never heard, and what the lexicon makes of them."""

    kinds: tuple[int, ...]  # meant
    texts: tuple[str, ...]
    understood: tuple[bool, ...]  # whether it is sure of a kind
    trained: tuple[int, ...]  # row of the trained phrase it stands for


def words_of(bench: Task) -> dict[str, Words]:
    """The sets of a world's own words; empty for a world that has none."""
    lexicon, world = bench.lexicon, bench.file.world
    if world not in lexicons.WORLDS:
        return {}
    folder = lexicons.world_folder(world)
    names = lexicon.names
    found = {"held-out": measure.held_out(world)}
    for name, file in FILES.items():
        if phrases.has(folder, file):
            found[name] = phrases.read_tests(folder, file, names[1:])
    made = {}
    for name, examples in found.items():
        texts = tuple(example.text for example in examples)
        answers = understanding.understand_all(lexicon, texts)
        made[name] = Words(
            kinds=tuple(names.index(example.kind) for example in examples),
            texts=texts,
            understood=tuple(not answer.unsure for answer in answers),
            trained=tuple(
                lexicons.closest(lexicon, vector, names.index(answer.kind))
                for vector, answer in zip(
                    lexicons.vectors(texts, lexicon.encoder), answers, strict=True
                )
            ),
        )
    return made


WAYS = {  # how a team hears: as its own vector, unsure or not
    "per_instruction": (False, False),
    "own_vector": (True, False),
    "own_vector_anyway": (True, True),
}


def counts_of(words: Words, given: np.ndarray) -> dict[str, int]:
    """How many of the phrases are of kinds that are `given` [C], and how many of those are understood."""
    said = given[list(words.kinds)]
    return {
        "phrases": int(said.sum()),
        "understood": int((said & np.array(words.understood)).sum()),
    }


def table_of(words: Words, first: int, kinds: int, longest: int, way: str) -> Phrases:
    """The phrases as a schedule draws them; vectors of their own lie from row `first` on."""
    own, anyway = WAYS[way]
    rows: list[list[int]] = [[] for _ in range(kinds)]
    for place, kind in enumerate(words.kinds):
        if words.understood[place] or anyway:
            rows[kind].append(first + place if own else words.trained[place])
    table = [[mine[i % len(mine)] if mine else 0 for i in range(longest)] for mine in rows]
    return Phrases(
        table=jnp.asarray(table, jnp.int32),
        count=jnp.asarray([len(mine) for mine in rows], jnp.int32),
    )


def judge(
    trained: Trained, *, lanes: int = 256, scale: float = 1.0
) -> dict[ExperimentConfig, dict[str, Any]]:
    """For each cell that hears: its compliance in each set of words, one number a seed."""
    group, bench = trained.group, trained.bench
    hearing = [cell for cell in group.cells if METHODS[cell.method].hears]
    sets = words_of(bench)
    if not hearing or not sets:
        return {}
    places = np.array([place for cell in hearing for place in trained.places(cell)])
    learner = jax.tree.map(lambda x: x[places], trained.learner)
    runs = stack([run_of(c, group.preset, bench, s) for c in hearing for s in group.seeds])
    texts = [text for words in sets.values() for text in words.texts]
    vectors = jnp.concatenate(
        [bench.lexicon.vectors, jnp.asarray(lexicons.vectors(texts, bench.lexicon.encoder))]
    )
    kinds = len(bench.lexicon.names)
    longest = max(max(np.bincount(words.kinds)) for words in sets.values())
    first = bench.lexicon.vectors.shape[0]
    found: dict[str, dict[str, Any]] = {}
    for name, words in sets.items():
        shares = {}
        for way in WAYS:
            spoken = table_of(words, first, kinds, longest, way)
            rules = runs.test.rules
            test = replace(
                runs.test,
                phrases=jax.tree.map(
                    lambda x: jnp.broadcast_to(x, (len(places), *x.shape)), spoken
                ),
                rules=replace(rules, given=rules.given & (spoken.count > 0)),
            )
            section = metrics.SECTIONS[metrics.COMPLIANCE.section]
            section = dataclasses.replace(section, enough=section.enough * scale)
            totals = evaluate.until_enough(
                trained.fixed, lanes, vectors, replace(runs, test=test), learner, section
            )
            shares[way] = metrics.divide(totals.ratios[metrics.COMPLIANCE.name])
        first += len(words.texts)
        found[name] = shares
    seeds = len(group.seeds)

    def own(cell: int) -> dict[str, Any]:
        given = np.asarray(runs.test.rules.given)[cell * seeds]
        part = slice(cell * seeds, (cell + 1) * seeds)
        return {
            name: {**counts, **{way: share[part] for way, share in found[name].items()}}
            for name, words in sets.items()
            if (counts := counts_of(words, given))["phrases"]
        }

    return {cell: own(number) for number, cell in enumerate(hearing)}
