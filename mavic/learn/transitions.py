"""Ticks → macro transitions: one row for each macro that an agent finished.

A macro of length tau becomes an ordinary step with reward sum_j gamma^j r_j and discount gamma^tau. Rows stand in
lanes. A lane is a column of the learner's batch that holds whole episodes, one after another. Episodes may be packed
into other lanes than the environments that played them, so L lanes come from W environments.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from mavic.learn.networks import own_first_order
from mavic.learn.views import started
from mavic.types import Array, Float, MacroTransitions, Timestep, assert_rank, record


@record
class Places:
    """Where each macro transition stands in the learner's batch [K, L, N]."""

    tick: Array  # [K, L, N] the index, among all T·W ticks, of the tick at which the macro ended
    count: Array  # [L, N] number of rows in each lane


def as_played(rows: Timestep, *, drop_unfinished: bool = False) -> Places:
    """Return places in which lane w holds the episodes that environment w played.

    With `drop_unfinished`, as in the reference (D7), a macro that still runs when the episode ends is dropped with its
    reward, and the agent's last finished macro bootstraps.
    """
    _assert_ticks(rows)
    kept = _kept(rows, drop_unfinished)
    lane = jnp.broadcast_to(jnp.arange(kept.shape[1])[:, None], kept.shape)
    slot = jnp.cumsum(kept, axis=0) - 1
    return _placed(kept, lane, slot, kept.sum(axis=0), kept.shape[0])


def packed(
    rows: Timestep, *, episodes: int, lanes: int | None = None, drop_unfinished: bool = False
) -> Places:
    """Return places that spread `episodes` episodes evenly over `lanes` lanes (default: the number of environments).

    Each agent's episodes are packed separately: the longest episode first, each into the emptiest lane. Learning takes
    as many steps as the fullest lane has rows, so a lane with several long episodes would hold up the others. A lane
    has room for its share of the episodes times the horizon. That is enough: whenever an episode is placed, some lane
    holds less than its share.
    """
    _assert_ticks(rows)
    ticks, width, _ = rows.macro.shape
    lanes = lanes or width
    room = -(-episodes // lanes) * (ticks // -(-episodes // width))
    kept = _kept(rows, drop_unfinished)
    over = rows.alive & (rows.terminal | rows.truncated)
    ended = jnp.cumsum(over, axis=0)
    earlier = jnp.cumsum(ended[-1]) - ended[-1]  # episodes of the environments before this one
    number = jnp.where(rows.alive, earlier[None] + ended - over, episodes)  # the episode's number
    rank = _sum_since(jnp.broadcast_to((rows.time == 0)[..., None], kept.shape), kept.astype(int))
    of_episode = jnp.where(over, number, episodes)
    size = jnp.zeros((episodes, kept.shape[-1]), rank.dtype).at[of_episode].set(rank, mode="drop")

    def place(load: Array, size: Array) -> tuple[Array, tuple[Array, Array]]:
        lane = jnp.argmin(load)
        return load + size * (jnp.arange(lanes) == lane), (lane, load[lane])

    def spread(size: Array) -> tuple[Array, Array, Array]:
        order = jnp.argsort(-size)
        load, (lane, start) = jax.lax.scan(place, jnp.zeros(lanes, size.dtype), size[order])
        back = jnp.argsort(order)
        return lane[back], start[back], load

    lane, start, load = jax.vmap(spread, in_axes=1, out_axes=1)(size)
    return _placed(kept, lane[number], start[number] + rank - 1, load, room)


def macro_transitions(
    rows: Timestep,
    gamma: Float[Array, ""] | float,
    places: Places | None = None,
    *,
    size: int | None = None,
) -> MacroTransitions:
    """Return the macro transitions [K, L, N] of ticks [T, W, N]. `size` limits K and must hold the fullest lane."""
    _assert_ticks(rows)
    assert_rank("", gamma=gamma)
    places = places or as_played(rows)
    tick = places.tick[:size]
    ticks, _, agents = rows.macro.shape
    heard = rows.phrase.shape[-1]
    # In rows of the whole team the phrases keep the order of the agents.
    order = own_first_order(heard)[:agents]
    elapsed = jnp.arange(ticks)[:, None, None] - started(rows.fresh)
    gathered = _sum_since(rows.fresh, gamma**elapsed * rows.reward)
    final = rows.terminal[..., None] & ~rows.bootstraps_from_self
    discount = jnp.where(final, 0.0, gamma ** (elapsed + 1))

    def pick(values: Array) -> Array:
        return picked(values, tick)

    def everyone(values: Array) -> Array:
        """Return values [T, W] repeated for every agent, [T, W, N]."""
        return jnp.broadcast_to(values[..., None], rows.macro.shape)

    valid = jnp.arange(tick.shape[0])[:, None, None] < places.count[None]
    first = pick(rows.time[..., None] == elapsed) & valid
    following = jnp.concatenate([valid[1:] & ~first[1:], jnp.zeros_like(valid[:1])])
    return MacroTransitions(
        observation=pick(rows.observation),
        available=pick(rows.available),
        forbidden=pick(rows.forbidden),
        last_macro=pick(rows.last_macro),
        macro=pick(rows.macro),
        phrases=pick(rows.phrase[..., order]),
        kind=pick(everyone(rows.kind.max(axis=-1))),
        context=pick(everyone(rows.context)),
        reward=pick(gathered),
        discount=pick(discount),
        next_observation=pick(rows.next_observation),
        switched=pick(everyone(rows.switched)),
        first=first,
        last=valid & ~following,
        bootstraps_from_self=pick(rows.bootstraps_from_self) & valid,
        time=pick(everyone(rows.time)),
        valid=valid,
    )


def picked(values: Array, tick: Array) -> Array:
    """Return values [T, W, N, ...] at the ticks [K, L, N] at which macros ended, [K, L, N, ...]."""
    flat = values.reshape(-1, *values.shape[2:])
    return flat[tick, jnp.arange(tick.shape[-1])]


def _assert_ticks(rows: Timestep) -> None:
    assert_rank("T W N O", observation=rows.observation)
    assert_rank("T W N", macro=rows.macro, reward=rows.reward, ended=rows.ended)
    assert_rank("T W", alive=rows.alive, switched=rows.switched)


def _kept(rows: Timestep, drop_unfinished: bool) -> Array:
    """Return bool [T, W, N], the ticks that end a macro transition."""
    kept = rows.ended & rows.alive[..., None]
    return kept & ~rows.unfinished if drop_unfinished else kept


def _placed(kept: Array, lane: Array, slot: Array, count: Array, room: int) -> Places:
    ticks, width, agents = kept.shape
    number = jnp.arange(ticks * width, dtype=jnp.int32).reshape(ticks, width, 1)
    slot = jnp.where(kept, slot, room)  # beyond the last: dropped
    tick = jnp.zeros((room, *count.shape), jnp.int32)
    tick = tick.at[slot, lane, jnp.arange(agents)].set(
        jnp.broadcast_to(number, kept.shape), mode="drop"
    )
    return Places(tick=tick, count=count)


def _sum_since(start: Array, values: Array) -> Array:
    """Return the running sum of `values` along time, restarted wherever `start` holds."""

    def join(left: tuple[Array, Array], right: tuple[Array, Array]) -> tuple[Array, Array]:
        return left[0] | right[0], jnp.where(right[0], right[1], left[1] + right[1])

    return jax.lax.associative_scan(join, (start, values), axis=0)[1]
