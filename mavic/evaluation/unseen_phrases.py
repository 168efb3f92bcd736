"""How teams follow instructions in phrases that they were not trained on: held-out, novel and the paper's.

When the reader is unsure what a phrase asks for, the team is not instructed. So there are two figures: how many phrases
are understood, and how many of the instructions given in them are followed. A team that hears vectors can hear
such a phrase in two ways: as the nearest training phrase of the kind that the reader finds (ours), or as the phrase's
own vector (the paper's). A team that hears kinds hears the reader's probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs import api
from mavic.evaluation import evaluate as evaluation
from mavic.evaluation import metrics
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import METHODS
from mavic.experiment.task import Task
from mavic.language import heard
from mavic.language.lexicon import Lexicon
from mavic.language.reader import read
from mavic.language.reader.phrase_file import Example, PhraseFile, held_out_examples
from mavic.language.vectors import vectors
from mavic.training.trained import Trained
from mavic.types import Phrases, replace

SETS = {"novel": "blind", "paper": "published"}  # name in records → set in a world's phrases.toml
ONE_BY_ONE = ("paper",)  # sets whose phrases are evaluated singly too


class _Way(NamedTuple):
    """A way of hearing an unseen phrase."""

    own: bool  # as what is heard of the phrase itself; otherwise as a training phrase
    anyway: bool = False  # even if the reader is unsure


# By what a team hears, and by the name in records.
WAYS = {
    "vectors": {
        "per_instruction": _Way(own=False),
        "own_vector": _Way(own=True),
        "own_vector_anyway": _Way(own=True, anyway=True),
    },
    "kinds": {
        "per_instruction": _Way(own=True),
        "own_vector": _Way(own=True),
        "own_vector_anyway": _Way(own=True, anyway=True),
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

    def counts(self, given: np.ndarray) -> dict[str, int]:
        """Return how many phrases ask for kinds that are `given` [C], and how many of those are understood."""
        said = given[list(self.kinds)]
        return {
            "phrases": int(said.sum()),
            "understood": int((said & np.array(self.understood)).sum()),
        }


def sets_of(task: Task) -> dict[str, Unseen]:
    """Return a world's unseen phrases by set; empty for a world without a phrase file."""
    world = task.file.world
    path = api.world(world).phrases if world in api.names() else None
    if path is None:
        return {}
    phrases = PhraseFile.read(path, task.file.names())
    sets = {"held-out": held_out_examples(task.file)}
    sets |= {name: phrases.sentences(set, "novel") for name, set in SETS.items()}
    return {name: _read(task.lexicon, examples) for name, examples in sets.items() if examples}


def _read(lexicon: Lexicon, examples: Sequence[Example]) -> Unseen:
    texts = tuple(example.text for example in examples)
    answers = read.understand_all(lexicon, texts)
    return Unseen(
        kinds=tuple(lexicon.names.index(example.kind) for example in examples),
        texts=texts,
        understood=tuple(answer.asked() in lexicon.names[1:] for answer in answers),
        trained=tuple(
            lexicon.closest(vector, lexicon.names.index(answer.asked(obey_anyway=True)))
            for vector, answer in zip(vectors(texts, lexicon.encoder), answers, strict=True)
        ),
    )


def _phrase_table(
    unseen: Unseen,
    first: int,
    kinds: int,
    longest: int,
    way: _Way,
    places: Sequence[int] | None = None,
) -> Phrases:
    """Return the phrases at `places` (default: all) as a schedule draws them: rows [kinds, longest], counts [kinds].

    What is heard of the phrases themselves lies from row `first` on.
    """
    own, anyway = way
    rows: list[list[int]] = [[] for _ in range(kinds)]
    for place in range(len(unseen.texts)) if places is None else places:
        kind = unseen.kinds[place]
        if unseen.understood[place] or anyway:
            rows[kind].append(first + place if own else unseen.trained[place])
    table = [[mine[i % len(mine)] if mine else 0 for i in range(longest)] for mine in rows]
    return Phrases(
        table=jnp.asarray(table, jnp.int32),
        count=jnp.asarray([len(mine) for mine in rows], jnp.int32),
    )


def evaluate(
    trained: Trained, *, num_envs: int | None = None, scale: float = 1.0
) -> dict[ExperimentConfig, dict[str, Any]]:
    """Return the compliance in each set of unseen phrases, per seed, for each config that hears instructions.

    For the paper's phrases there is also the compliance in each of them alone, under `each`.

    Args:
        trained: The group, with the final parameters of its teams.
        num_envs: Environments that play at once; None: as many as is usual on this device.
        scale: The share of a full evaluation's episodes.
    """
    group, task = trained.group, trained.task
    hearing = [config for config in group.configs if METHODS[config.method].hears]
    sets = sets_of(task)
    if not hearing or not sets:
        return {}
    followed = _Spoken(
        trained, hearing, sets, num_envs=num_envs or evaluation.usual_envs(scale), scale=scale
    )
    found: dict[str, dict[str, Any]] = {}
    for name, unseen in sets.items():
        found[name] = followed.by_way(name, range(len(unseen.texts)))
        if name in ONE_BY_ONE:
            each = {text: followed.by_way(name, [i]) for i, text in enumerate(unseen.texts)}
            found[name]["each"] = each
    seeds = len(group.seeds)

    def of_config(number: int) -> dict[str, Any]:
        part = slice(number * seeds, (number + 1) * seeds)
        return {
            name: {**counted, **jax.tree.map(lambda share: share[part], found[name])}
            for name, unseen in sets.items()
            if (counted := unseen.counts(followed.given[number * seeds]))["phrases"]
        }

    return {config: of_config(number) for number, config in enumerate(hearing)}


class _Spoken:
    """The runs of all configs that hear, and how they follow instructions in chosen phrases."""

    def __init__(
        self,
        trained: Trained,
        hearing: Sequence[ExperimentConfig],
        sets: Mapping[str, Unseen],
        *,
        num_envs: int,
        scale: float,
    ) -> None:
        task = trained.task
        self.static, self.num_envs, self.sets, self.hear = trained.static, num_envs, sets, task.hear
        self.runs, self.state = trained.teams_of(hearing)
        texts = [text for unseen in sets.values() for text in unseen.texts]
        own = heard.texts_heard(task.lexicon, texts, task.hear)
        self.vectors = jnp.concatenate([task.vectors, jnp.asarray(own)])
        self.kinds = len(task.lexicon.names)
        self.longest = max(int(np.bincount(unseen.kinds).max()) for unseen in sets.values())
        ends = np.cumsum([len(unseen.texts) for unseen in sets.values()])
        self.ends = dict(zip(sets, ends + task.vectors.shape[0], strict=True))
        self.given = np.asarray(self.runs.test_env.rules.given)
        self.enough = metrics.SECTIONS[metrics.COMPLIANCE.section].enough * scale

    def by_way(self, name: str, places: Sequence[int]) -> dict[str, np.ndarray]:
        """Return the share followed [runs] of some phrases of a set, by way of hearing; nan without an instruction."""
        unseen = self.sets[name]
        found: dict[_Way, np.ndarray] = {}
        for way in dict.fromkeys(WAYS[self.hear].values()):
            first = int(self.ends[name]) - len(unseen.texts)
            spoken = _phrase_table(unseen, first, self.kinds, self.longest, way, places)
            found[way] = self._followed(spoken, share=len(places) / len(unseen.texts))
        return {key: found[way] for key, way in WAYS[self.hear].items()}

    def _followed(self, spoken: Phrases, share: float) -> np.ndarray:
        runs = self.runs
        rules = runs.test_env.rules
        test = replace(
            runs.test_env,
            phrases=jax.tree.map(
                lambda x: jnp.broadcast_to(x, (len(self.given), *x.shape)), spoken
            ),
            rules=replace(rules, given=rules.given & (spoken.count > 0)[None]),
        )
        which = evaluation.episodes_of(jnp.zeros(rules.allowed.shape[1:], bool), instructed=True)
        totals = evaluation.until_enough(
            self.static,
            self.num_envs,
            self.vectors,
            replace(runs, test_env=test),
            self.state,
            which,
            self.enough * share,
        )
        return totals.ratios[metrics.COMPLIANCE.name].value()
