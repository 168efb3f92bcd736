"""What a network sees: an agent's own macros, or the whole team as one agent.

A view turns the ticks [T, W, N] of all agents into ticks [T, W, G] of its `G` columns: one per agent, or one for the
team. It does the same with the input of a decision. Transitions, targets, losses and decisions are then the same for
every view. A network's shape names its view, so a policy file records which input its team needs.

    own      each agent: its own observation, from macro to macro
    timed    own, and when the observation was received (two numbers)
    team     all agents side by side; a new row whenever any agent's macro ends
    tokens   team, timed, and which agents' observations are new
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from mavic.learn.networks import Seen, Shape
from mavic.types import Array, Bool, Float, Int, Timestep, assert_rank, record, replace

_TIME_SIZE = 2  # sine and cosine


@record
class Observed:
    """The input of a team's decision, `W` environments side by side. A view may need more than the first three."""

    observation: Array  # [W, N, O] what each agent decides from, or last decided from
    last_macro: Array  # [W, N] the macro that ran before, or that still runs; -1 for none
    phrase: Array  # [W, N] what each agent hears; 0 is silence
    earlier_macro: Array | None = None  # [W, N] the macro that ran before `last_macro`
    time: Array | None = None  # [W] index of the coming tick
    since: Array | None = None  # [W, N] the tick before which busy agents saw their observation
    also: Array | None = None  # [W, N] what each agent hears of a second instruction

    @property
    def instructed(self) -> Array:
        """Return bool [W], whether any agent is instructed."""
        told = (self.phrase > 0).any(-1)
        return told if self.also is None else told | (self.also > 0).any(-1)


@dataclass(frozen=True)
class _View:
    """One way to see a team. All functions are pure."""

    needs: str
    """The input that every decision needs, in words."""
    widen: Callable[[Shape], Shape]
    """The shape of one agent's own network → the shape of a network with this view."""
    ticks: Callable[[Shape, Timestep, bool], Timestep]
    """(shape, ticks [T, W, N], whether unfinished macros are dropped) → ticks [T, W, G]."""
    seen: Callable[[Shape, Observed, Array], tuple[Seen, Array]]
    """(shape, input, idle [W, N]) → the networks' input [G, W], and bool [G, W]: which networks decide."""


def _joint_macro(counts: tuple[int, ...], macros: Int[Array, "*batch N"]) -> Int[Array, "*batch"]:
    """Return the index of all agents' macros among all combinations. The first agent's macro counts most."""
    index = jnp.zeros(macros.shape[:-1], jnp.int32)
    for agent, count in enumerate(counts):
        index = index * count + macros[..., agent]
    return index


def split_macro(counts: tuple[int, ...], index: Int[Array, "*batch"]) -> Int[Array, "*batch N"]:
    """Return every agent's macro of a combination: the inverse of `_joint_macro`.

    Args:
        counts: Each agent's number of macros.
        index: Numbers of combinations.
    """
    found = []
    for count in reversed(counts):
        found.append(index % count)
        index = index // count
    return jnp.stack(found[::-1], axis=-1)


def joint_available(
    counts: tuple[int, ...], available: Bool[Array, "*batch N M"]
) -> Bool[Array, "*batch A"]:
    """Return which combinations consist of available macros only.

    Args:
        counts: Each agent's number of macros.
        available: Which macros each agent may choose.
    """
    mask = available[..., 0, : counts[0]]
    for agent, count in enumerate(counts[1:], start=1):
        mask = mask[..., None] & available[..., agent, None, :count]
        mask = mask.reshape(*mask.shape[:-2], -1)
    return mask


def _encode_time(time: Array) -> Float[Array, "*batch 2"]:
    """Return the two numbers that say when an observation was received. The first tick is number 1 (ACAC)."""
    angle = (time + 1).astype(jnp.float32)
    return jnp.stack([jnp.sin(angle), jnp.cos(angle)], axis=-1)


def started(fresh: Bool[Array, "T W N"]) -> Int[Array, "T W N"]:
    """Return the row [T] at which the macro that runs in each tick was chosen."""
    rows = jnp.broadcast_to(jnp.arange(fresh.shape[0])[:, None, None], fresh.shape)
    return jax.lax.cummax(jnp.where(fresh, rows, 0), axis=0)


def own_first_order(agents: int) -> Array:
    """Return [N, N], the order in which each agent takes in the phrases of `agents` agents: its own first."""
    return (jnp.arange(agents)[:, None] + jnp.arange(agents)[None]) % agents


def _own_first(phrase: Int[Array, "W N"]) -> Int[Array, "N W N"]:
    """Return phrases [W, N] as each agent takes them in, its own first: [N, W, N]."""
    assert_rank("W N", phrase=phrase)
    return jnp.moveaxis(phrase[..., own_first_order(phrase.shape[-1])], -2, 0)


def _append(values: Array, more: Array) -> Array:
    return jnp.concatenate([values, more], axis=-1)


def _flat(values: Array) -> Array:
    """Return values [..., N, X] of all agents side by side, [..., N·X]."""
    return values.reshape(*values.shape[:-2], -1)


def _own_shape(shape: Shape) -> Shape:
    return replace(shape, macro_counts=())  # each network has macros of its own only


def _own_ticks(shape: Shape, ticks: Timestep, dropped: bool) -> Timestep:
    return ticks


def _own_seen(shape: Shape, observed: Observed, idle: Array) -> tuple[Seen, Array]:
    seen = Seen(
        observation=jnp.moveaxis(observed.observation, -2, 0),
        last_macro=jnp.moveaxis(observed.last_macro, -1, 0),
        phrases=_own_first(observed.phrase),
        also=None if observed.also is None else _own_first(observed.also),
    )
    return seen, jnp.moveaxis(idle, -1, 0)


def _timed_shape(shape: Shape) -> Shape:
    wider = shape.observation + _TIME_SIZE
    return replace(shape, view="timed", observation=wider, macro_counts=())


def _timed_ticks(shape: Shape, ticks: Timestep, dropped: bool) -> Timestep:
    clock = jnp.arange(ticks.macro.shape[0])[:, None, None]
    since = ticks.time[..., None] - (clock - started(ticks.fresh))
    now = jnp.broadcast_to(ticks.time[..., None] + 1, since.shape)
    return replace(
        ticks,
        observation=_append(ticks.observation, _encode_time(since)),
        next_observation=_append(ticks.next_observation, _encode_time(now)),
    )


def _timed_seen(shape: Shape, observed: Observed, idle: Array) -> tuple[Seen, Array]:
    return _own_seen(shape, _timed(observed, idle), idle)


def _timed(observed: Observed, idle: Array) -> Observed:
    if observed.time is None:
        raise ValueError(f"this team needs to see {VIEWS['timed'].needs}")
    now = jnp.broadcast_to(observed.time[:, None], idle.shape)
    since = now if observed.since is None else jnp.where(idle, now, observed.since)
    return replace(observed, observation=_append(observed.observation, _encode_time(since)))


def _team_shape(shape: Shape) -> Shape:
    one = shape.observation + shape.macros * shape.last_macro
    return replace(
        shape,
        view="team",
        observation=shape.agents * one,
        last_macro=False,
        tells_macro=shape.last_macro,
        macros=math.prod(shape.macro_counts),
        hears_each=True,
        copies=1,
    )


def _team_ticks(shape: Shape, ticks: Timestep, dropped: bool) -> Timestep:
    # A macro that only the end of the episode ended brings no new observation where such macros are dropped.
    new = ticks.ended & ~ticks.unfinished if dropped else ticks.ended
    after = jnp.where(new[..., None], ticks.next_observation, ticks.observation)
    return replace(
        ticks,
        observation=_side_by_side(shape, ticks.observation, ticks.last_macro)[..., None, :],
        next_observation=_side_by_side(shape, after, jnp.where(new, ticks.macro, ticks.last_macro))[
            ..., None, :
        ],
        available=_flat(ticks.available)[..., None, :],
        forbidden=_flat(ticks.forbidden)[..., None, :],
        last_macro=jnp.full_like(ticks.last_macro[..., :1], -1),
        macro=_joint_macro(shape.macro_counts, ticks.macro)[..., None],
        fresh=ticks.fresh.any(-1, keepdims=True),
        context=ticks.context.max(-1, keepdims=True),
        reward=ticks.reward.mean(-1, keepdims=True),
        complied=ticks.complied.all(-1, keepdims=True),
        ended=ticks.ended.any(-1, keepdims=True),
        unfinished=ticks.unfinished.all(-1, keepdims=True),
        bootstraps_from_self=ticks.bootstraps_from_self.any(-1, keepdims=True),
    )


def _team_seen(shape: Shape, observed: Observed, idle: Array) -> tuple[Seen, Array]:
    before = observed.last_macro
    if observed.earlier_macro is not None:
        before = jnp.where(idle, before, observed.earlier_macro)
    seen = Seen(
        observation=_side_by_side(shape, observed.observation, before)[None],
        last_macro=jnp.full((1, idle.shape[0]), -1, jnp.int32),
        phrases=observed.phrase[None],
        also=None if observed.also is None else observed.also[None],
    )
    return seen, idle.any(-1)[None]


def _side_by_side(shape: Shape, observation: Array, before: Array) -> Array:
    if shape.tells_macro:
        width = max(shape.macro_counts)
        observation = _append(observation, jax.nn.one_hot(before, width))
    return _flat(observation)


def _tokens_shape(shape: Shape) -> Shape:
    timed = replace(_timed_shape(shape), macro_counts=shape.macro_counts)
    wide = _team_shape(timed)
    return replace(wide, view="tokens", observation=wide.observation + shape.agents)


def _tokens_ticks(shape: Shape, ticks: Timestep, dropped: bool) -> Timestep:
    team = _team_ticks(shape, _timed_ticks(shape, ticks, dropped), dropped)
    new = ticks.ended & ~ticks.unfinished if dropped else ticks.ended
    begun = jnp.broadcast_to(started(team.fresh), ticks.fresh.shape)
    fresh = jnp.take_along_axis(
        ticks.fresh, begun, axis=0
    )  # whose observation was new when the team's row began

    def flagged(observation: Array, flags: Array) -> Array:
        return _append(observation, flags[..., None, :].astype(jnp.float32))

    return replace(
        team,
        observation=flagged(team.observation, fresh),
        next_observation=flagged(team.next_observation, new),
    )


def _tokens_seen(shape: Shape, observed: Observed, idle: Array) -> tuple[Seen, Array]:
    seen, moves = _team_seen(shape, _timed(observed, idle), idle)
    flags = idle[None].astype(jnp.float32)
    return replace(seen, observation=_append(seen.observation, flags)), moves


VIEWS = {
    "own": _View("each agent's own observation", _own_shape, _own_ticks, _own_seen),
    "timed": _View(
        "each agent's own observation, and the tick", _timed_shape, _timed_ticks, _timed_seen
    ),
    "team": _View(
        "every agent's last macro-observation, also while its macro runs",
        _team_shape,
        _team_ticks,
        _team_seen,
    ),
    "tokens": _View(
        "every agent's last macro-observation, also while its macro runs, and the tick",
        _tokens_shape,
        _tokens_ticks,
        _tokens_seen,
    ),
}
