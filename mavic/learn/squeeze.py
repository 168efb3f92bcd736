"""Primitive rows → macro rows: one row for each macro an agent finished.

A macro of length tau becomes an ordinary step with reward sum_j gamma^j r_j and discount gamma^tau.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from mavic.types import Array, MacroRows, Row


def squeeze(rows: Row, gamma: Array | float, *, drop_unfinished: bool = False) -> MacroRows:
    """[T, W, N] ticks → [K = T, W, N] macros; no row is dropped.

    `drop_unfinished` is the reference's way (D7): a macro still running when the episode ends is forgotten with its
    reward, and the agent's last finished row bootstraps.
    """
    ticks, _, agents = rows.macro.shape
    clock = jnp.arange(ticks)[:, None, None]
    started = jax.lax.cummax(jnp.where(rows.fresh, clock, 0), axis=0)
    elapsed = clock - started
    gathered = _sum_since(rows.fresh, gamma**elapsed * rows.reward)
    kept = rows.ended & rows.alive[..., None]
    if drop_unfinished:
        kept &= ~rows.broken_off
    final = rows.terminal[..., None] & ~rows.loops
    discount = jnp.where(final, 0.0, gamma ** (elapsed + 1))

    slot = jnp.where(kept, jnp.cumsum(kept, axis=0) - 1, ticks)
    count = kept.sum(axis=0)
    lane, agent = jnp.meshgrid(jnp.arange(rows.macro.shape[1]), jnp.arange(agents), indexing="ij")
    when = jnp.zeros(rows.macro.shape, jnp.int32)
    when = when.at[slot, lane, agent].set(clock, mode="drop")

    def pick(values: Array) -> Array:
        """[T, W, N, ...] at the ticks at which macros ended."""
        shape = when.shape + (1,) * (values.ndim - 3)
        return jnp.take_along_axis(values, when.reshape(shape), axis=0)

    def everyone(values: Array) -> Array:
        """[T, W] → [T, W, N]: the same for all agents."""
        return jnp.broadcast_to(values[..., None], rows.macro.shape)

    valid = clock < count[None]
    first = pick(rows.time[..., None] == elapsed) & valid
    following = jnp.concatenate([valid[1:] & ~first[1:], jnp.zeros_like(valid[:1])])
    own_first = (jnp.arange(agents)[:, None] + jnp.arange(agents)) % agents
    return MacroRows(
        observation=pick(rows.observation),
        available=pick(rows.available),
        previous=pick(rows.previous),
        macro=pick(rows.macro),
        phrases=pick(rows.phrase[..., own_first]),
        kind=pick(everyone(rows.kind.max(axis=-1))),
        reward=pick(gathered),
        discount=pick(discount),
        next_observation=pick(rows.next_observation),
        switched=pick(everyone(rows.switched)),
        first=first,
        last=valid & ~following,
        loops=pick(rows.loops) & valid,
        time=pick(everyone(rows.time)),
        valid=valid,
        longest=count.max(),
    )


def _sum_since(start: Array, values: Array) -> Array:
    """Running sum of `values` along time that begins anew wherever `start` holds."""

    def join(left: tuple[Array, Array], right: tuple[Array, Array]) -> tuple[Array, Array]:
        return left[0] | right[0], jnp.where(right[0], right[1], left[1] + right[1])

    return jax.lax.associative_scan(join, (start, values), axis=0)[1]
