"""The rollout of training and evaluation: episode after episode, in parallel environments.

A fixed number of environments plays a queue of episodes. An environment that finishes one takes the next. So few
environments idle although episodes differ in length, every episode is complete, and short episodes are not favoured.
The option `first_to_finish` favours them, as the reference does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mavic.instruct.schedule import DRAWS
from mavic.rollout import threefry
from mavic.rollout.step import InstructedEnv, begin, draw_episode, draws_for, step
from mavic.run_axis import max_over_runs
from mavic.types import Array, Bool, InstructedState, Timestep, replace


class Policy(NamedTuple):
    """A team that acts. `start(num_envs)` returns a memory, `act(memory, state, draws)` macros [W, N] and a new memory.

    `act` keeps the memory of agents that do not decide. It empties the memory where `state.time` is 0, because a new
    episode starts there.
    """

    start: Callable[[int], Any]
    act: Callable[[Any, InstructedState, Array], tuple[Array, Any]]


class _Episodes(NamedTuple):
    """The ticks [T, W, ...] of complete episodes. Only the first `ticks` [] of the T rows are in use."""

    rows: Timestep
    ticks: Array


def rollout(
    instructed: InstructedEnv,
    policy: Policy,
    key: Array,
    *,
    episodes: int,
    num_envs: int,
    first: int | Array = 0,
    first_to_finish: bool = False,
) -> _Episodes:
    """Play episodes side by side. Episode e depends on `key`, e and the policy alone.

    Args:
        instructed: The environment and its instructions.
        policy: The team that acts.
        key: A random key.
        episodes: How many episodes to play.
        num_envs: How many environments play side by side.
        first: The number of the first episode.
        first_to_finish: As in the reference, every environment restarts at once until `episodes` episodes have ended.
            Ticks of those that still run are not alive, so long episodes are missing. Up to `numbers_used(...)` numbers
            of episodes are used.
    """
    count = episodes
    if first_to_finish:
        count = numbers_used(episodes, num_envs)
    else:
        most = getattr(instructed.env, "side_by_side", None)  # a world may have few simulators
        num_envs = min(num_envs, episodes, most or episodes)
    ticks = -(-episodes // num_envs) * instructed.env.horizon  # the queue cannot take longer

    drawn = jax.vmap(lambda number: draw_episode(threefry.fold_in(key, first + number)))(
        jnp.arange(count)
    )

    def start(number: Array, state: Any = None) -> InstructedState:
        return begin(instructed, jax.tree.map(lambda leaf: leaf[number], drawn), state)

    like = jax.eval_shape(start, jnp.int32(0))
    agents = like.macro.shape[0]
    row_like = jax.eval_shape(step, instructed, like, like.macro, jnp.zeros(DRAWS))[1]

    def go_on(state: Any, choice: Array, draws: Array, alive: Array) -> tuple[Any, Any, Array]:
        after, row = step(instructed, state, choice, draws)
        return after, replace(row, alive=alive), alive & (row.terminal | row.truncated)

    restart = getattr(instructed.env, "restart", None)  # only simulators on the host have it

    def start_anew(done: Array, number: Array, state: Any) -> Any:
        begun = None
        if restart is not None:
            queued = True if first_to_finish else number < episodes
            begun = restart(drawn.state[number], state.state, done & queued)
        first = start(number, begun)
        return jax.tree.map(lambda a, b: jnp.where(done, a, b), first, state)

    def tick(carry: tuple) -> tuple:
        t, state, draws, memory, number, queued, rows = carry
        choice, memory = policy.act(memory, state, draws[:, :agents])
        alive = number < (queued + 1 if first_to_finish else episodes)
        after, row, done = jax.vmap(go_on)(state, choice, draws[:, agents:], alive)
        rows = jax.tree.map(
            lambda all_, one: jax.lax.dynamic_update_index_in_dim(all_, one, t, 0), rows, row
        )
        number = jnp.where(done, queued + jnp.cumsum(done) - 1, number)
        queued = queued + done.sum()
        after = jax.vmap(start_anew)(done, number, after)
        # Drawn here and carried, the random numbers are computed once instead of in every kernel that reads them.
        draws = jax.vmap(draws_for)(after)
        return t + 1, after, draws, memory, number, queued, rows

    def unfinished(carry: tuple) -> Array:
        queued = carry[5]
        some = queued - num_envs < episodes if first_to_finish else (carry[4] < episodes).any()
        return max_over_runs(some.astype(jnp.int32)) > 0

    number = jnp.arange(num_envs)
    state = jax.vmap(start)(number)
    draws = jax.vmap(draws_for)(state)
    memory = policy.start(num_envs)
    rows = jax.tree.map(
        lambda leaf: jnp.zeros((ticks, num_envs, *leaf.shape), leaf.dtype), row_like
    )
    carry = (jnp.int32(0), state, draws, memory, number, jnp.int32(num_envs), rows)
    carry = jax.lax.while_loop(unfinished, tick, carry)
    rows = carry[-1]
    if restart is not None:
        rows = _without_failed(rows)
    if first_to_finish:
        over = rows.alive & (rows.terminal | rows.truncated)
        rows = replace(rows, alive=_first_finished(over, episodes))
    return _Episodes(rows=rows, ticks=carry[0])


def numbers_used(episodes: int, num_envs: int) -> int:
    """Return how many episodes at most start until `episodes` have ended, in `num_envs` environments."""
    return episodes + 2 * num_envs


def _first_finished(over: Bool[Array, "T W"], episodes: int) -> Bool[Array, "T W"]:
    """Return the ticks of the last `episodes` episodes that ended up to the tick in which so many had ended.

    `over` marks last ticks of episodes. If several environments end in that tick, the episodes that ended first are
    left out, as in the reference's buffer.
    """
    done = jnp.cumsum(over.sum(1))
    counted = over & ((done - over.sum(1)) < episodes)[:, None]
    rank = jnp.cumsum(counted.reshape(-1)).reshape(over.shape)
    kept = counted & (rank > counted.sum() - episodes)
    return _at_last_tick(kept, counted)


def _at_last_tick(values: Bool[Array, "T W"], last: Bool[Array, "T W"]) -> Bool[Array, "T W"]:
    """Return for each tick the value at the next tick that is marked as `last`; False if there is none."""
    ticks = last.shape[0]
    clock = jnp.where(last, jnp.arange(ticks)[:, None], ticks)
    following = jax.lax.cummin(clock, axis=0, reverse=True)
    values = jnp.concatenate([values, jnp.zeros_like(values[:1])])
    return jnp.take_along_axis(values, following, axis=0)


def _without_failed(rows: Timestep) -> Timestep:
    """Return the ticks with those of failed episodes not alive. The last reward of a failed episode is nan."""
    over = rows.alive & (rows.terminal | rows.truncated)
    failed = jnp.isnan(rows.task_reward)
    return replace(
        rows,
        alive=rows.alive & ~_at_last_tick(failed, over),
        reward=jnp.where(failed[..., None], 0.0, rows.reward),
        task_reward=jnp.where(failed, 0.0, rows.task_reward),
    )
