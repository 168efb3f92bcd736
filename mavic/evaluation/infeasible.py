"""Which macros a team chooses under requests that no team can fulfil, such as "fly".

A request is heard in two ways: as its own vector (the paper's way), and as our reader understands it. If the reader is
unsure, the team is not instructed and chooses as it does without an instruction.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mavic.evaluation import evaluate as evaluation
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import METHODS
from mavic.experiment.task import Task
from mavic.language import heard
from mavic.language.vectors import vectors
from mavic.learn.update import StaticConfig, TrainState
from mavic.training.devices import over_runs
from mavic.training.runs import Run
from mavic.training.trained import Trained
from mavic.types import CONTEXTS, Array, Phrases, Rules, replace

REQUESTS = ("fly", "spin around the room", "fly to the moon", "make me invisible", "sing a song")
"""The first two are the paper's."""
NO_REQUEST = "none"
EPISODES = 256


@partial(jax.jit, static_argnames=("static", "num_envs", "episodes"))
def _choices(
    static: StaticConfig,
    num_envs: int,
    episodes: int,
    vectors: Array,
    runs: Run,
    state: TrainState,
    key: Array,
    kind: Array,
) -> Array:
    """Return [runs, N, M] how often each agent chose each macro, with `kind` held from the start; 0: none."""
    twins = jnp.zeros(runs.test_env.rules.allowed.shape[1:], bool)
    which = replace(evaluation.episodes_of(twins, also=None), kind=kind)

    def one_run(run: Run, state: TrainState) -> Array:
        epsilon = jnp.stack([run.eval_epsilon] * CONTEXTS)
        rows = evaluation.rows_of(
            static, num_envs, episodes, vectors, run, state, key, 0, which, epsilon
        )
        told = jnp.where(kind > 0, rows.kind > 0, True)
        counted = rows.fresh & rows.alive[..., None] & told
        chosen = jax.nn.one_hot(rows.macro, twins.shape[-1]) * counted[..., None]
        return chosen.sum((0, 1))

    return over_runs(one_run)(runs, state)


def evaluate(trained: Trained, *, scale: float = 1.0) -> dict[ExperimentConfig, dict[str, Any]]:
    """Return the share of each macro among the choices of each config that hears, by request and way.

    Args:
        trained: The group, with the final parameters of its teams.
        scale: The share of a full evaluation's episodes.

    Returns:
        The entries `{request: {"asked": kind, "own": {macro: [seeds]}, "read": {macro: [seeds]}}}` by config. The
        request "none" stands for no request; it has `own` alone.
    """
    group, task = trained.group, trained.task
    hearing = [config for config in group.configs if METHODS[config.method].hears]
    if not hearing:
        return {}
    runs, state = trained.teams_of(hearing)
    own = heard.texts_heard(task.lexicon, REQUESTS, task.hear)
    vectors = jnp.concatenate([task.vectors, jnp.asarray(own)])
    kind = _any_kind(jax.tree.map(lambda x: x[0], runs.test_env.rules))
    episodes = max(32, math.ceil(EPISODES * scale))

    def shares(row: int | None) -> dict[str, np.ndarray]:
        """Return the choices while a row of `vectors` is heard; None: without an instruction."""
        spoken = Phrases(
            table=jnp.full_like(runs.test_env.phrases.table, row or 0),
            count=jnp.ones_like(runs.test_env.phrases.count),
        )
        counted = _choices(
            trained.static,
            episodes // 4,
            episodes,
            vectors,
            replace(runs, test_env=replace(runs.test_env, phrases=spoken)),
            state,
            jax.random.key(evaluation.EVALUATION_KEY),
            jnp.int32(0 if row is None else kind),
        )
        return _by_name(task, np.asarray(counted, np.float64))

    uninstructed = shares(None)
    found: dict[str, dict[str, Any]] = {NO_REQUEST: {"own": uninstructed}}
    for number, (text, asked) in enumerate(zip(REQUESTS, kinds_asked(task), strict=True)):
        by_own = shares(task.vectors.shape[0] + number)
        found[text] = {
            "asked": task.lexicon.names[asked],
            "own": by_own,
            "read": shares(_row_of(task, text, asked)) if asked else uninstructed,
        }
    seeds = len(group.seeds)
    return {
        config: jax.tree.map(
            lambda x, n=n: x if isinstance(x, str) else x[n * seeds : (n + 1) * seeds], found
        )
        for n, config in enumerate(hearing)
    }


def kinds_asked(task: Task) -> list[int]:
    """Return the kind that the reader finds in each request; 0 where it is unsure."""
    return [int(kind) for kind in heard.kinds_asked(task.lexicon, REQUESTS).kind]


def _row_of(task: Task, text: str, kind: int) -> int:
    """Return the row of the training phrase that stands for a text of which the reader is sure."""
    (vector,) = vectors([text], task.lexicon.encoder)
    return task.lexicon.closest(vector, kind)


def _any_kind(rules: Rules) -> int:
    """Return a kind whose phrases are replaced: one that is given, has no effect on the world and no precondition."""
    plain = np.asarray(rules.given & (rules.effect == 0) & (rules.precondition == 0))
    return int(np.argmax(plain if plain.any() else np.asarray(rules.given)))


def _by_name(task: Task, counted: np.ndarray) -> dict[str, np.ndarray]:
    """Return each macro's share [runs] of all choices, by its name. Agents with the same macro are added."""
    found: dict[str, np.ndarray] = {}
    for agent, macros in enumerate(task.env.macros):
        for macro in macros:
            before = found.get(macro.name, np.zeros(len(counted)))
            found[macro.name] = before + counted[:, agent, macro.value]
    total = np.maximum(sum(found.values()), 1.0)
    return {name: count / total for name, count in found.items()}
