"""The rollout of training and evaluation: episode after episode, in parallel environments.

A fixed number of environments plays a queue of episodes. An environment that finishes one takes the next. So few
environments idle although episodes differ in length, every episode is complete, and short episodes are not favoured.
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
from mavic.types import Array, InstructedState, Timestep, replace


class Policy(NamedTuple):
    """Who acts. `start(num_envs)` returns a memory; `act(memory, state, draws)` returns macros [W, N] and a new memory.

    `act` keeps the memory of agents that do not decide. It empties the memory where `state.time` is 0, because a new
    episode starts there.
    """

    start: Callable[[int], Any]
    act: Callable[[Any, InstructedState, Array], tuple[Array, Any]]


class Episodes(NamedTuple):
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
) -> Episodes:
    """Play `episodes` episodes, numbered from `first`. Episode e depends on `key`, e and the policy alone."""
    num_envs = min(num_envs, episodes)
    ticks = -(-episodes // num_envs) * instructed.env.horizon  # the queue cannot take longer

    drawn = jax.vmap(lambda number: draw_episode(threefry.fold_in(key, first + number)))(
        jnp.arange(episodes)
    )

    def start(number: Array) -> InstructedState:
        return begin(instructed, jax.tree.map(lambda leaf: leaf[number], drawn))

    def tick(carry: tuple) -> tuple:
        t, state, draws, memory, number, queued, rows = carry
        agents = state.macro.shape[-1]
        choice, memory = policy.act(memory, state, draws[:, :agents])
        after, row = jax.vmap(step, in_axes=(None, 0, 0, 0))(
            instructed, state, choice, draws[:, agents:]
        )
        alive = number < episodes
        row = replace(row, alive=alive)
        rows = jax.tree.map(
            lambda all_, one: jax.lax.dynamic_update_index_in_dim(all_, one, t, 0), rows, row
        )
        done = alive & (row.terminal | row.truncated)
        number = jnp.where(done, queued + jnp.cumsum(done) - 1, number)
        queued = queued + done.sum()
        after = _where(done, jax.vmap(start)(number), after)
        # Drawn here and carried, the random numbers are computed once instead of in every kernel that reads them.
        return t + 1, after, jax.vmap(draws_for)(after), memory, number, queued, rows

    def unfinished(carry: tuple) -> Array:
        return max_over_runs((carry[4] < episodes).any().astype(jnp.int32)) > 0

    number = jnp.arange(num_envs)
    state = jax.vmap(start)(number)
    memory = policy.start(num_envs)
    clock = jnp.zeros((num_envs, DRAWS))
    row = jax.eval_shape(
        jax.vmap(step, in_axes=(None, 0, 0, 0)), instructed, state, state.macro, clock
    )[1]
    rows = jax.tree.map(lambda leaf: jnp.zeros((ticks, *leaf.shape), leaf.dtype), row)
    draws = jax.vmap(draws_for)(state)
    carry = (jnp.int32(0), state, draws, memory, number, jnp.int32(num_envs), rows)
    carry = jax.lax.while_loop(unfinished, tick, carry)
    return Episodes(rows=carry[-1], ticks=carry[0])


def _where(condition: Array, this: Any, other: Any) -> Any:
    def pick(a: Array, b: Array) -> Array:
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            return jnp.where(condition, a, b)
        return jnp.where(condition.reshape(condition.shape + (1,) * (a.ndim - 1)), a, b)

    return jax.tree.map(pick, this, other)
