"""Many trainings in one compiled program: play a batch of episodes, update, repeat. The host calls it in chunks."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from mavic.learn import backbones, batches, update
from mavic.learn.backbones import UpdateMetrics
from mavic.learn.batches import Batch
from mavic.learn.transitions import as_played, packed
from mavic.learn.update import StaticConfig, TrainState
from mavic.rollout.rollout import numbers_used, rollout
from mavic.run_axis import max_over_runs
from mavic.training.devices import over_runs
from mavic.training.runs import Run, rollout_policy
from mavic.types import Array, Timestep, record

SHORT_HORIZON = 100  # ticks; with such a horizon, trained teams end most episodes far earlier
LARGE = 256  # rows; for more, a second, smaller program for the update is worth its compilation


@record
class TrainMetrics:
    """Metrics of one batch, or their means over several."""

    update: UpdateMetrics
    ticks: Array  # number of ticks played; over several batches their sum
    task_return: Array  # undiscounted, per episode


def init_states(static: StaticConfig, runs: Run) -> TrainState:
    """Return untrained states, one per run."""
    return _init_states(static, runs.key, runs.hyper.value_scale, runs.hyper.critic_init_scale)


@partial(jax.jit, static_argnames="static")
def _init_states(
    static: StaticConfig, keys: Array, scales: Array, init_scales: Array
) -> TrainState:
    def one_run(key: Array, *scale: Array) -> TrainState:
        return update.init(jax.random.fold_in(key, 0), static, *scale)

    return over_runs(one_run)(keys, scales, init_scales)


def _packing(num_envs: int, horizon: int) -> tuple[int, float]:
    """Return the number of lanes to learn from, and the share of the largest number of rows that most batches fit into.

    Learning takes at least as many steps as the longest episode has rows, and every lane takes them. Where most
    episodes are far shorter, a few lanes hold them all; most of many lanes would be empty. On a GPU only the number of
    steps counts.
    """
    if jax.default_backend() != "cpu":
        return num_envs, 1 / 4
    return (max(1, num_envs // 2), 1 / 12) if horizon <= SHORT_HORIZON else (num_envs, 0.4)


def play(
    static: StaticConfig, num_envs: int, vectors: Array, run: Run, state: TrainState
) -> Timestep:
    """Return the ticks [T, W, ...] of the next batch of episodes. `one_update` explains the arguments."""
    epsilon = run.hyper.anneal(state.episodes).epsilon
    first = state.episodes
    if static.first_to_finish:  # episodes that were thrown away are not played again
        num_envs = static.first_to_finish
        first = first // static.batch * numbers_used(static.batch, num_envs)
    return rollout(
        run.train_env,
        rollout_policy(static, state.actor, vectors, epsilon),
        jax.random.fold_in(run.key, 1),
        episodes=static.batch,
        num_envs=num_envs,
        first=first,
        first_to_finish=static.first_to_finish > 0,
    ).rows


class Arranged(NamedTuple):
    """What was played, in each view that learning needs, and where its rows stand."""

    views: list[Timestep]
    ends: list[Array]  # [K, L, G] of each view
    small: int  # most batches fit into so many of the K rows
    fullest: Array  # [] the largest number of rows in use

    def batch(self, size: int, gamma: Array | float) -> Batch:
        """Return the first `size` rows as a batch."""
        return batches.batch_of(self.views, [each[:size] for each in self.ends], gamma)


def arranged(static: StaticConfig, run: Run, played: Timestep) -> Arranged:
    """Return a batch of episodes, arranged to learn from it.

    Args:
        static: sizes and networks.
        run: the numbers of this training.
        played: from `play`.
    """
    num_envs = played.alive.shape[1]
    lanes, share = _packing(num_envs, run.train_env.env.horizon)
    # With one episode per environment, packing would change no lane.
    arrange: Callable[..., Array] = as_played
    if num_envs < static.batch:
        arrange = partial(packed, episodes=static.batch, lanes=lanes)
    views = batches.views_of(
        static.network.shape, static.critic.shape, played, drop_unfinished=static.drop_unfinished
    )
    ends = [arrange(view, drop_unfinished=static.drop_unfinished) for view in views]
    fullest = jnp.stack([(each >= 0).sum(0).max() for each in ends]).max()
    return Arranged(views=views, ends=ends, small=math.ceil(len(ends[0]) * share), fullest=fullest)


def one_update(
    static: StaticConfig, num_envs: int, vectors: Array, run: Run, state: TrainState
) -> tuple[TrainState, TrainMetrics]:
    """Play a batch of episodes and learn from it.

    Args:
        static: sizes and networks, which the program is compiled for.
        num_envs: environments that play side by side.
        vectors: [P, D] what agents hear of each phrase.
        run: the numbers of this training.
        state: weights and optimizers.

    Returns:
        The state after the update, and metrics of the batch.
    """
    played = play(static, num_envs, vectors, run, state)
    found = arranged(static, run, played)

    def learn(size: int) -> tuple[TrainState, UpdateMetrics]:
        batch = found.batch(size, run.hyper.gamma)
        learnt = backbones.learn(static, run.hyper, run.correction, vectors, state, batch)
        return learnt[0], learnt[1].metrics()

    size = len(found.ends[0])  # enough if every episode lasts to the horizon, which is rare
    if size <= LARGE:
        state, metrics = learn(size)
    else:
        fits = max_over_runs(found.fullest) <= found.small
        state, metrics = jax.lax.cond(fits, partial(learn, found.small), partial(learn, size))
    return state, TrainMetrics(
        update=metrics,
        ticks=played.alive.sum().astype(jnp.float32),
        task_return=(played.task_reward * played.alive).sum() / static.batch,
    )


@partial(jax.jit, static_argnames=("static", "num_envs", "updates"), donate_argnames="state")
def train_updates(
    static: StaticConfig,
    num_envs: int,
    updates: int,
    vectors: Array,
    runs: Run,
    state: TrainState,
) -> tuple[TrainState, TrainMetrics]:
    """Make `updates` updates of every run in one compiled program.

    Args:
        static: sizes and networks, which the program is compiled for.
        num_envs: environments that play side by side.
        updates: how many updates.
        vectors: [P, D] what agents hear of each phrase.
        runs: the numbers of all trainings, stacked.
        state: their weights and optimizers, stacked. The caller gives them away.

    Returns:
        The states, and the metrics as means over updates; ticks are summed.
    """

    def one_run(run: Run, state: TrainState) -> tuple[TrainState, TrainMetrics, Array]:
        state, metrics = jax.lax.scan(
            lambda state, _: one_update(static, num_envs, vectors, run, state),
            state,
            length=updates,
        )
        return state, jax.tree.map(lambda x: x.mean(0), metrics), metrics.ticks.sum()

    state, metrics, ticks = over_runs(one_run)(runs, state)
    return state, TrainMetrics(update=metrics.update, ticks=ticks, task_return=metrics.task_return)
