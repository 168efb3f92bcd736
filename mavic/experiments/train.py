"""Key → learner: many trainings in one compiled program, in chunks on the host."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from mavic.experiments.config import Run, acting
from mavic.experiments.devices import over_runs
from mavic.learn import update as learning
from mavic.learn.transitions import as_played, macro_transitions, packed
from mavic.learn.update import StaticConfig, TrainState
from mavic.rollout.rollout import rollout
from mavic.types import RUNS, Array

ROOMS = 4  # what needs no more than this part of the largest room is learnt from in a small one
SHORT = 100  # ticks of a horizon which most episodes of a trained team do not come near
LARGE = 256  # rows of a room from which that is worth compiling the update twice


def start(fixed: StaticConfig, runs: Run) -> TrainState:
    """Fresh learners, one a run."""
    return _start(fixed, runs.key, runs.hyper.value_scale, runs.hyper.critic_init_scale)


@partial(jax.jit, static_argnames="fixed")
def _start(fixed: StaticConfig, keys: Array, sizes: Array, fresh: Array) -> TrainState:
    return over_runs(lambda k, *size: learning.init(jax.random.fold_in(k, 0), fixed, *size))(
        keys, sizes, fresh
    )


def packing(lanes: int, horizon: int) -> tuple[int, int]:
    """In how many lanes episodes are learnt from that were played in `lanes`, and the part of the largest room that
    does for most batches. Learning takes at least as many steps as the longest episode has rows; where most episodes
    are far shorter, fewer lanes are fuller and take no more steps. A GPU counts steps alone."""
    if jax.default_backend() == "cpu" and horizon <= SHORT:
        return max(1, lanes * 3 // 4), 2 * ROOMS
    return lanes, ROOMS


def one_update(
    fixed: StaticConfig, lanes: int, vectors: Array, run: Run, learner: TrainState
) -> tuple[TrainState, dict]:
    """Play a batch of episodes, learn from it."""
    explore = learning.epsilon(run.hyper, learner.episodes)
    played = rollout(
        run.setting,
        acting(fixed, learner.actor, vectors, explore),
        jax.random.fold_in(run.key, 1),
        episodes=fixed.batch,
        lanes=lanes,
        first=learner.episodes,
    ).rows
    unfinished = fixed.drop_unfinished
    narrow, rooms = packing(lanes, run.setting.env.horizon)
    if lanes < fixed.batch:
        places = packed(played, episodes=fixed.batch, lanes=narrow, drop_unfinished=unfinished)
    else:  # an episode a lane: nothing to pack
        places = as_played(played, drop_unfinished=unfinished)

    def learn(size: int) -> tuple[TrainState, dict]:
        rows = macro_transitions(played, run.hyper.gamma, places, size=size)
        return learning.update(fixed, run.hyper, run.correction, vectors, learner, rows)

    room = places.tick.shape[0]  # for episodes that all last to the horizon; they seldom do
    if room <= LARGE:
        learner, metrics = learn(room)
    else:
        small = -(-room // rooms)
        fits = jax.lax.pmax(places.count.max(), RUNS) <= small
        learner, metrics = jax.lax.cond(fits, partial(learn, small), partial(learn, room))
    metrics["ticks"] = played.alive.sum().astype(jnp.float32)
    metrics["task"] = (played.task * played.alive).sum() / fixed.batch
    return learner, metrics


@partial(jax.jit, static_argnames=("fixed", "lanes", "updates"), donate_argnames="learner")
def chunk(
    fixed: StaticConfig, lanes: int, updates: int, vectors: Array, runs: Run, learner: TrainState
) -> tuple[TrainState, dict]:
    """`updates` updates of every run; metrics are means over them, ticks their sum."""

    def one_run(run: Run, learner: TrainState) -> tuple[TrainState, dict]:
        learner, metrics = jax.lax.scan(
            lambda state, _: one_update(fixed, lanes, vectors, run, state), learner, length=updates
        )
        ticks = metrics["ticks"].sum()
        return learner, {**jax.tree.map(lambda x: x.mean(0), metrics), "ticks": ticks}

    return over_runs(one_run)(runs, learner)
