"""What is summed over episodes: the numerators and denominators of all metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from mavic.types import Array, Timestep, record, static


@record
class Tally:
    """The episodes of one run: the input of every numerator and denominator."""

    rows: Timestep  # [T, W, …]
    gamma: Array  # []
    kinds: int = static()  # C, "none" included
    twins: Array | None = None  # [C, N, M] bool: what a kind's twin forbids and the kind allows
    named: Array | None = None  # [C, N, M] bool: what a kind names, to forbid it or to ask for it
    addressed: Array | None = None  # [C, N] bool: the agents that a kind is meant for
    value_error: Array | None = None  # [N] mean of V − G; only if one instruction is held
    realised: Array | None = None  # [N] mean of G; only if one instruction is held


@dataclass(frozen=True)
class Quantity:
    """A sum over episodes: its description, and the function that sums it."""

    text: str
    total: Callable[[Tally], Array]


def count(flags: Array) -> Array:
    """Return how many flags are set."""
    return flags.sum().astype(jnp.float32)


def _episodes_over(tally: Tally) -> Array:
    """Return the number of finished episodes: ended by the task or cut by the horizon."""
    rows = tally.rows
    return count(rows.alive & (rows.terminal | rows.truncated))


def _discounted(tally: Tally) -> Array:
    rows = tally.rows
    return (tally.gamma**rows.time * rows.task_reward * rows.alive).sum()


def _closed(tally: Tally) -> Array:
    """Return [T, W, C], the one-hot kind of the instruction that was counted after each tick; 0 where none was."""
    kind = jnp.where(tally.rows.alive, tally.rows.closed, 0)
    return jax.nn.one_hot(kind, tally.kinds).at[..., 0].set(0.0)


def _followed_both(tally: Tally) -> Array:
    """Return bool [T, W], whether two instructions were counted after this tick, and both had been followed."""
    rows, also = tally.rows, tally.rows.also
    if also is None:
        raise ValueError("both are followed only if two instructions can hold")
    first, second = ((one.closed > 0) & one.followed for one in (rows, also))
    return rows.alive & first & second


def _addressed(tally: Tally) -> Array:
    """Return bool [T, W, N], whether the agent is under an instruction in this tick."""
    return (tally.rows.kind > 0) & tally.rows.alive[..., None]


def _decides(tally: Tally) -> Array:
    """Return bool [T, W, N], whether the agent is under an instruction and chose its macro in this tick."""
    return _addressed(tally) & tally.rows.fresh


def _begins(tally: Tally) -> Array:
    """Return bool [T, W, N], whether an instruction begins for the agent in this tick."""
    rows = tally.rows
    before = jnp.concatenate([jnp.zeros_like(rows.kind[:1]), rows.kind[:-1]])
    new = (rows.kind != before) | (rows.time == 0)[..., None]
    return _addressed(tally) & new


def _waits(tally: Tally) -> Array:
    """Return bool [T, W, N], whether the agent has not yet chosen an allowed macro since its instruction began."""
    obeys = _decides(tally) & tally.rows.complied
    ticks = jnp.arange(obeys.shape[0])[:, None, None]
    begun, obeyed = (
        jax.lax.cummax(jnp.where(flags, ticks, -1), axis=0) for flags in (_begins(tally), obeys)
    )
    return _addressed(tally) & (obeyed < begun)


def _macro_ticks(tally: Tally, only: str = "") -> Array:
    """Return [C], the ticks of the agents that each kind addresses.

    With `only`, "twins" or "named", only ticks in which such a macro runs. In these episodes at most one kind holds. If
    one does, only the ticks under it are counted.
    """
    rows = tally.rows
    if tally.twins is None or tally.named is None or tally.addressed is None:
        raise ValueError("the use of macros needs the macros that each kind names")
    told = rows.kind > 0
    counted = rows.alive[..., None] & (told == told.any())
    ran = jax.nn.one_hot(rows.macro, tally.twins.shape[-1]) * counted[..., None]
    by_macro = ran.sum((0, 1))[None] * tally.addressed[..., None]
    if only:
        by_macro *= {"twins": tally.twins, "named": tally.named}[only]
    return by_macro.sum((1, 2))


def _agents_mean(values: Array | None) -> Array:
    """Return the mean over agents of a number that is known only if one instruction is held."""
    if values is None:
        raise ValueError("value errors are known only if one instruction is held")
    return values.mean()


EPISODES = Quantity("episodes", _episodes_over)
SOLVED = Quantity(
    "episodes in which the task was completed",
    lambda t: count((t.rows.events[..., 0] > 0) & t.rows.alive),
)
RETURN = Quantity("sum over episodes of Σ_t γ^t r_t", _discounted)
UNDISCOUNTED = Quantity("sum of task rewards", lambda t: (t.rows.task_reward * t.rows.alive).sum())
TICKS = Quantity("ticks", lambda t: count(t.rows.alive))
GIVEN = Quantity("instructions given and counted", lambda t: _closed(t).sum((0, 1)))
FOLLOWED = Quantity(
    "instructions followed", lambda t: (_closed(t) * t.rows.followed[..., None]).sum((0, 1))
)
FOLLOWED_BOTH = Quantity(
    "episodes in which both instructions were followed to the end",
    lambda t: count(_followed_both(t)),
)
DECISIONS = Quantity("decisions of addressed agents", lambda t: count(_decides(t)))
ALLOWED_DECISIONS = Quantity(
    "decisions of addressed agents for an allowed macro",
    lambda t: count(_decides(t) & t.rows.complied),
)
ADDRESSED_TICKS = Quantity("ticks × addressed agents", lambda t: count(_addressed(t)))
ALLOWED_TICKS = Quantity(
    "ticks × addressed agents whose running macro is allowed",
    lambda t: count(_addressed(t) & t.rows.complied),
)
BEGINNINGS = Quantity("instructions × addressed agents", lambda t: count(_begins(t)))
WAITING_TICKS = Quantity(
    "ticks under an instruction before the addressed agent first chose an allowed macro",
    lambda t: count(_waits(t)),
)
MACRO_TICKS = Quantity("ticks × addressed agents", _macro_ticks)
TWIN = Quantity(
    "ticks × addressed agents that run what the kind's twin forbids",
    lambda t: _macro_ticks(t, "twins"),
)
USE = Quantity(
    "ticks × addressed agents that run what the kind names, to forbid it or to ask for it",
    lambda t: _macro_ticks(t, "named"),
)
VALUE_ERROR = Quantity(
    "mean of V(h, c) − G over decisions and agents", lambda t: _agents_mean(t.value_error)
)
REALISED = Quantity(
    "absolute mean of G over the same decisions", lambda t: jnp.abs(_agents_mean(t.realised))
)
