"""Step after step until every episode is over: the one rollout of training, evaluation and replay.

A fixed number of lanes plays a queue of episodes: a lane that finishes one takes the next, so lanes rarely idle
though episodes differ in length, every episode is complete, and none is favoured for being short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mavic.instruct.schedule import DRAWS
from mavic.rollout import threefry
from mavic.rollout.step import InstructedEnv, deal, draws_for, enter, step
from mavic.types import RUNS, Array, InstructedState, Timestep, replace


class Policy(NamedTuple):
    """Who acts: `start(lanes)` gives a memory, `act(memory, world, draws)` the macros [W, N] and the new memory.

    `act` keeps the memory of agents that do not decide and empties it where `world.time` is 0: a new episode."""

    start: Callable[[int], Any]
    act: Callable[[Any, InstructedState, Array], tuple[Array, Any]]


class Episodes(NamedTuple):
    """Rows [T, W, ...] of complete episodes and how many ticks of T are in use."""

    rows: Timestep
    ticks: Array


def rollout(
    setting: InstructedEnv,
    policy: Policy,
    key: Array,
    *,
    episodes: int,
    lanes: int,
    first: int | Array = 0,
) -> Episodes:
    """Play `episodes` episodes, numbered from `first`; episode e depends on `key`, e and the policy alone.

    Must run under a `vmap` with axis name RUNS (`alone` adds one): all runs stop together, when the last is done.
    """
    lanes = min(lanes, episodes)
    ticks = -(-episodes // lanes) * setting.env.horizon  # the queue cannot take longer than this

    dealt = jax.vmap(lambda number: deal(threefry.fold_in(key, first + number)))(
        jnp.arange(episodes)
    )

    def begin(number: Array) -> InstructedState:
        return enter(setting, jax.tree.map(lambda leaf: leaf[number], dealt))

    def tick(carry: tuple) -> tuple:
        t, world, draws, memory, number, queued, rows = carry
        agents = world.macro.shape[-1]
        choice, memory = policy.act(memory, world, draws[:, :agents])
        after, row = jax.vmap(step, in_axes=(None, 0, 0, 0))(
            setting, world, choice, draws[:, agents:]
        )
        alive = number < episodes
        row = replace(row, alive=alive)
        rows = jax.tree.map(
            lambda all_, one: jax.lax.dynamic_update_index_in_dim(all_, one, t, 0), rows, row
        )
        done = alive & (row.terminal | row.truncated)
        number = jnp.where(done, queued + jnp.cumsum(done) - 1, number)
        queued = queued + done.sum()
        after = _where(done, jax.vmap(begin)(number), after)
        # drawn here and carried, they are computed once; drawn where they are used, in every kernel that uses them
        return t + 1, after, jax.vmap(draws_for)(after), memory, number, queued, rows

    def unfinished(carry: tuple) -> Array:
        return jax.lax.pmax((carry[4] < episodes).any().astype(jnp.int32), RUNS) > 0

    number = jnp.arange(lanes)
    world = jax.vmap(begin)(number)
    memory = policy.start(lanes)
    clock = jnp.zeros((lanes, DRAWS))
    row = jax.eval_shape(
        jax.vmap(step, in_axes=(None, 0, 0, 0)), setting, world, world.macro, clock
    )[1]
    rows = jax.tree.map(lambda leaf: jnp.zeros((ticks, *leaf.shape), leaf.dtype), row)
    draws = jax.vmap(draws_for)(world)
    carry = (jnp.int32(0), world, draws, memory, number, jnp.int32(lanes), rows)
    carry = jax.lax.while_loop(unfinished, tick, carry)
    return Episodes(rows=carry[-1], ticks=carry[0])


def alone(function: Callable) -> Callable:
    """Run a function that expects the RUNS axis once, without such an axis."""
    batched = jax.vmap(function, in_axes=None, out_axes=0, axis_name=RUNS, axis_size=1)
    return lambda *args: jax.tree.map(lambda leaf: leaf[0], batched(*args))


def _where(condition: Array, this: Any, other: Any) -> Any:
    def pick(a: Array, b: Array) -> Array:
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            return jnp.where(condition, a, b)
        return jnp.where(condition.reshape(condition.shape + (1,) * (a.ndim - 1)), a, b)

    return jax.tree.map(pick, this, other)
