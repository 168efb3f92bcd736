"""How teams follow instructions in phrases that they were not trained on: held-out, novel and the paper's own.

When the reader is unsure what a phrase asks for, the team is not instructed. So two figures belong together: how many
phrases are understood, and how many of the instructions given in them are followed. A team that hears vectors can hear
such a phrase in two ways: as the nearest training phrase of the kind that the reader finds (ours), or as the phrase's
own vector (the paper's). A team that hears kinds hears the reader's probabilities.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs import api
from mavic.experiments import evaluate as evaluation
from mavic.experiments import metrics
from mavic.experiments.config import ExperimentConfig, Task
from mavic.experiments.methods import METHODS
from mavic.experiments.runner import Trained
from mavic.experiments.runs import make_run, stack
from mavic.language import heard
from mavic.language import lexicon as lexicons
from mavic.language.lexicon import Lexicon
from mavic.language.reader import phrase_file, read
from mavic.language.reader.phrase_file import Example
from mavic.types import Phrases, replace

SETS = {"novel": "blind", "paper": "published"}  # name in records → set in a world's phrases.toml


class Way(NamedTuple):
    """A way of hearing an unseen phrase."""

    own: bool  # as what is heard of the phrase itself; otherwise as a training phrase
    anyway: bool = False  # even if the reader is unsure


# By what a team hears, and by the name in records.
WAYS = {
    "vectors": {
        "per_instruction": Way(own=False),
        "own_vector": Way(own=True),
        "own_vector_anyway": Way(own=True, anyway=True),
    },
    "kinds": {
        "per_instruction": Way(own=True),
        "own_vector": Way(own=True),
        "own_vector_anyway": Way(own=True, anyway=True),
    },
}


@dataclass(frozen=True, kw_only=True)
class Unseen:
    """Phrases that a team was not trained on, and what the reader makes of them: one entry per phrase."""

    kinds: tuple[int, ...]
    """What the author meant."""
    texts: tuple[str, ...]
    understood: tuple[bool, ...]
    """Whether the reader is sure of a kind."""
    trained: tuple[int, ...]
    """The lexicon row of the training phrase that stands for the phrase."""


def sets_of(task: Task) -> dict[str, Unseen]:
    """Return a world's unseen phrases by set; empty for a world without a phrase file."""
    world = task.file.world
    path = api.world(world).phrases if world in api.names() else None
    if path is None:
        return {}
    phrases = phrase_file.read(path, task.file.names())
    sets = {"held-out": phrase_file.held_out_examples(task.file)}
    sets |= {name: phrases.sentences(set, "novel") for name, set in SETS.items()}
    return {name: _read(task.lexicon, examples) for name, examples in sets.items() if examples}


def _read(lexicon: Lexicon, examples: Sequence[Example]) -> Unseen:
    texts = tuple(example.text for example in examples)
    answers = read.understand_all(lexicon, texts)
    vectors = lexicons.vectors(texts, lexicon.encoder)
    return Unseen(
        kinds=tuple(lexicon.names.index(example.kind) for example in examples),
        texts=texts,
        understood=tuple(answer.asked() in lexicon.names[1:] for answer in answers),
        trained=tuple(
            lexicons.closest(lexicon, vector, lexicon.names.index(answer.asked(obey_anyway=True)))
            for vector, answer in zip(vectors, answers, strict=True)
        ),
    )


def counts(unseen: Unseen, given: np.ndarray) -> dict[str, int]:
    """Return how many phrases ask for kinds that are `given` [C], and how many of those are understood."""
    said = given[list(unseen.kinds)]
    return {
        "phrases": int(said.sum()),
        "understood": int((said & np.array(unseen.understood)).sum()),
    }


def phrase_table(unseen: Unseen, first: int, kinds: int, longest: int, way: Way) -> Phrases:
    """Return the phrases as a schedule draws them: rows [kinds, longest] and counts [kinds].

    What is heard of the phrases themselves lies from row `first` on.
    """
    own, anyway = way
    rows: list[list[int]] = [[] for _ in range(kinds)]
    for place, kind in enumerate(unseen.kinds):
        if unseen.understood[place] or anyway:
            rows[kind].append(first + place if own else unseen.trained[place])
    table = [[mine[i % len(mine)] if mine else 0 for i in range(longest)] for mine in rows]
    return Phrases(
        table=jnp.asarray(table, jnp.int32),
        count=jnp.asarray([len(mine) for mine in rows], jnp.int32),
    )


def evaluate(
    trained: Trained, *, num_envs: int = 256, scale: float = 1.0
) -> dict[ExperimentConfig, dict[str, Any]]:
    """Return the compliance in each set of unseen phrases, per seed, for each config that hears instructions."""
    group, task = trained.group, trained.task
    hearing = [config for config in group.configs if METHODS[config.method].hears]
    sets = sets_of(task)
    if not hearing or not sets:
        return {}
    places = np.array([place for config in hearing for place in trained.places(config)])
    state = jax.tree.map(lambda x: x[places], trained.state)
    runs = stack([make_run(c, group.preset, task, s) for c in hearing for s in group.seeds])
    texts = [text for unseen in sets.values() for text in unseen.texts]
    own = heard.texts_heard(task.lexicon, texts, task.hear)
    vectors = jnp.concatenate([task.vectors, jnp.asarray(own)])
    kinds = len(task.lexicon.names)
    longest = max(int(np.bincount(unseen.kinds).max()) for unseen in sets.values())
    first = task.vectors.shape[0]
    found: dict[str, dict[str, Any]] = {}
    for name, unseen in sets.items():
        by_way: dict[Way, np.ndarray] = {}
        for way in WAYS[task.hear].values():
            if way in by_way:
                continue
            spoken = phrase_table(unseen, first, kinds, longest, way)
            rules = runs.test_env.rules
            test = replace(
                runs.test_env,
                phrases=jax.tree.map(
                    lambda x: jnp.broadcast_to(x, (len(places), *x.shape)), spoken
                ),
                rules=replace(rules, given=rules.given & (spoken.count > 0)[None]),
            )
            section = metrics.SECTIONS[metrics.COMPLIANCE.section]
            section = dataclasses.replace(section, enough=section.enough * scale)
            which = evaluation.episodes_of(
                jnp.zeros(rules.allowed.shape[1:], bool), instructed=True
            )
            spoken_to = replace(runs, test_env=test)
            totals = evaluation.until_enough(
                trained.static, num_envs, vectors, spoken_to, state, section, which
            )
            by_way[way] = metrics.divide(totals.ratios[metrics.COMPLIANCE.name])
        first += len(unseen.texts)
        found[name] = {key: by_way[way] for key, way in WAYS[task.hear].items()}
    seeds = len(group.seeds)

    def of_config(number: int) -> dict[str, Any]:
        given = np.asarray(runs.test_env.rules.given)[number * seeds]
        part = slice(number * seeds, (number + 1) * seeds)
        return {
            name: {**counted, **{way: share[part] for way, share in found[name].items()}}
            for name, unseen in sets.items()
            if (counted := counts(unseen, given))["phrases"]
        }

    return {config: of_config(number) for number, config in enumerate(hearing)}
