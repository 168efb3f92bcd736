"""Ticks → macro transitions: one row for each macro that an agent finished.

A macro of length tau becomes an ordinary step with reward sum_j gamma^j r_j and discount gamma^tau. Rows stand in
lanes. A lane is a column of the learner's batch that holds whole episodes, one after another. Episodes may be packed
into other lanes than the environments that played them, so L lanes come from W environments.

`as_played` and `packed` say where each row stands: they return `ends` [K, L, N], the number, among all T·W ticks, of
the tick at which the row's macro ended, and -1 where there is no row.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from mavic.learn.views import own_first_order, started
from mavic.types import Array, Bool, Float, Int, MacroTransitions, Timestep, assert_rank


def as_played(ticks: Timestep, *, drop_unfinished: bool = False) -> Int[Array, "K L N"]:
    """Return `ends` such that lane w holds the episodes that environment w played.

    Args:
        ticks: [T, W, N].
        drop_unfinished: Drop a macro that still runs when the episode ends, with its reward, as in the reference (D7).
            The agent's last finished macro then bootstraps.
    """
    kept = _kept(ticks, drop_unfinished)
    lane = jnp.broadcast_to(jnp.arange(kept.shape[1])[:, None], kept.shape)
    return _placed(kept, lane, jnp.cumsum(kept, axis=0) - 1, (len(kept), kept.shape[1]))


def packed(
    ticks: Timestep, *, episodes: int, lanes: int | None = None, drop_unfinished: bool = False
) -> Int[Array, "K L N"]:
    """Return `ends` such that episodes are spread evenly over lanes.

    Each agent's episodes are packed separately: the longest episode first, each into the emptiest lane. Learning takes
    as many steps as the fullest lane has rows, so a lane with several long episodes would hold up the others. A lane
    has room for its share of the episodes times the horizon. That is enough: whenever an episode is placed, some lane
    holds less than its share.

    Args:
        ticks: [T, W, N].
        episodes: The number of episodes in them.
        lanes: How many lanes to fill; by default one for each environment.
        drop_unfinished: As in `as_played`.
    """
    kept = _kept(ticks, drop_unfinished)
    length, width, agents = kept.shape
    lanes = lanes or width
    room = -(-episodes // lanes) * (length // -(-episodes // width))
    over = ticks.alive & (ticks.terminal | ticks.truncated)
    ended = jnp.cumsum(over, axis=0)
    earlier = jnp.cumsum(ended[-1]) - ended[-1]  # episodes of the environments before this one
    number = jnp.where(ticks.alive, earlier[None] + ended - over, episodes)  # the episode's number
    rank = _sum_since(jnp.broadcast_to((ticks.time == 0)[..., None], kept.shape), kept.astype(int))
    of_episode = jnp.where(over, number, episodes)
    size = jnp.zeros((episodes, agents), rank.dtype).at[of_episode].set(rank, mode="drop")

    def place(load: Array, size: Array) -> tuple[Array, tuple[Array, Array]]:
        lane = jnp.argmin(load)
        return load + size * (jnp.arange(lanes) == lane), (lane, load[lane])

    def spread(size: Array) -> tuple[Array, Array]:
        order = jnp.argsort(-size)
        _, (lane, start) = jax.lax.scan(place, jnp.zeros(lanes, size.dtype), size[order])
        back = jnp.argsort(order)
        return lane[back], start[back]

    lane, start = jax.vmap(spread, in_axes=1, out_axes=1)(size)
    return _placed(kept, lane[number], start[number] + rank - 1, (room, lanes))


def macro_transitions(
    ticks: Timestep, gamma: Float[Array, ""] | float, ends: Int[Array, "K L N"] | None = None
) -> MacroTransitions:
    """Return the macro transitions [K, L, N] of ticks [T, W, N].

    Args:
        ticks: What was played, [T, W, N].
        gamma: The discount of a tick.
        ends: Where each row stands, from `as_played` (the default) or `packed`.
    """
    assert_rank("", gamma=gamma)
    ends = as_played(ticks) if ends is None else ends
    valid, at = ends >= 0, jnp.maximum(ends, 0)
    length, _, agents = ticks.macro.shape
    # In rows of the whole team the phrases keep the order of the agents.
    order = own_first_order(ticks.phrase.shape[-1])[:agents]
    elapsed = jnp.arange(length)[:, None, None] - started(ticks.fresh)
    gathered = _sum_since(ticks.fresh, gamma**elapsed * ticks.reward)
    final = ticks.terminal[..., None] & ~ticks.bootstraps_from_self
    discount = jnp.where(final, 0.0, gamma ** (elapsed + 1))

    def pick(values: Array) -> Array:
        """Return values [T, W, N, ...] at the ends of macros, [K, L, N, ...]."""
        return values.reshape(-1, *values.shape[2:])[at, jnp.arange(agents)]

    def everyone(values: Array) -> Array:
        """Return values [T, W] repeated for every agent, [T, W, N]."""
        return jnp.broadcast_to(values[..., None], ticks.macro.shape)

    first = pick(ticks.time[..., None] == elapsed) & valid
    following = jnp.concatenate([valid[1:] & ~first[1:], jnp.zeros_like(valid[:1])])
    return MacroTransitions(
        observation=pick(ticks.observation),
        available=pick(ticks.available),
        forbidden=pick(ticks.forbidden),
        last_macro=pick(ticks.last_macro),
        macro=pick(ticks.macro),
        phrases=pick(ticks.phrase[..., order]),
        kind=pick(everyone(ticks.kind.max(axis=-1))),
        context=pick(ticks.context),
        reward=pick(gathered),
        discount=pick(discount),
        next_observation=pick(ticks.next_observation),
        switched=pick(everyone(ticks.switched)),
        first=first,
        last=valid & ~following,
        bootstraps_from_self=pick(ticks.bootstraps_from_self) & valid,
        time=pick(everyone(ticks.time)),
        valid=valid,
    )


def _kept(ticks: Timestep, drop_unfinished: bool) -> Bool[Array, "T W N"]:
    """Return the ticks that end a macro transition."""
    assert_rank("T W N O", observation=ticks.observation)
    assert_rank("T W N", macro=ticks.macro, reward=ticks.reward, ended=ticks.ended)
    assert_rank("T W", alive=ticks.alive, switched=ticks.switched)
    kept = ticks.ended & ticks.alive[..., None]
    return kept & ~ticks.unfinished if drop_unfinished else kept


def _placed(kept: Array, lane: Array, slot: Array, size: tuple[int, int]) -> Array:
    """Return `ends`, [*size, N], from the lane and the slot in it of every tick [T, W, N] that is kept."""
    ticks, width, agents = kept.shape
    number = jnp.arange(ticks * width, dtype=jnp.int32).reshape(ticks, width, 1)
    slot = jnp.where(kept, slot, size[0])  # beyond the last: dropped
    ends = jnp.full((*size, agents), -1, jnp.int32).at[slot, lane, jnp.arange(agents)]
    return ends.set(jnp.broadcast_to(number, kept.shape), mode="drop")


def _sum_since(start: Array, values: Array) -> Array:
    """Return the running sum of `values` along time, restarted wherever `start` holds."""

    def join(left: tuple[Array, Array], right: tuple[Array, Array]) -> tuple[Array, Array]:
        return left[0] | right[0], jnp.where(right[0], right[1], left[1] + right[1])

    return jax.lax.associative_scan(join, (start, values), axis=0)[1]
