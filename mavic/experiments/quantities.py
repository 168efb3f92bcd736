"""What is summed over episodes: the numerators and denominators of all metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from mavic.types import Array, Timestep, record, static


@record
class Played:
    """What one run played: the input of every numerator and denominator."""

    rows: Timestep  # [T, W, …]
    gamma: Array  # []
    kinds: int = static()  # C, "none" included
    twins: Array | None = None  # [C, N, M] bool: what a kind's twin forbids and the kind allows
    named: Array | None = None  # [C, N, M] bool: what a kind names, to forbid it or to ask for it
    addressed: Array | None = None  # [C, N] bool: the agents that a kind is meant for
    value_error: Array | None = None  # [N] mean of V − G; only where one instruction is held
    realised: Array | None = None  # [N] mean of G; only where one instruction is held


@dataclass(frozen=True)
class Quantity:
    """Something that is summed over episodes: its description, and the function that sums it."""

    text: str
    total: Callable[[Played], Array]


def count(flags: Array) -> Array:
    """Return how many flags are set."""
    return flags.sum().astype(jnp.float32)


def episodes_over(played: Played) -> Array:
    """Return the number of finished episodes: ended by the task or cut by the horizon."""
    rows = played.rows
    return count(rows.alive & (rows.terminal | rows.truncated))


def _discounted(played: Played) -> Array:
    rows = played.rows
    return (played.gamma**rows.time * rows.task_reward * rows.alive).sum()


def _closed(played: Played) -> Array:
    """Return [T, W, C], the one-hot kind of the instruction that was counted after each tick; 0 where none was."""
    kind = jnp.where(played.rows.alive, played.rows.closed, 0)
    return jax.nn.one_hot(kind, played.kinds).at[..., 0].set(0.0)


def _followed_both(played: Played) -> Array:
    """Return bool [T, W], whether two instructions were counted after this tick, and both had been followed."""
    rows, also = played.rows, played.rows.also
    if also is None:
        raise ValueError("both are followed only where two instructions can hold")
    first, second = ((one.closed > 0) & one.followed for one in (rows, also))
    return rows.alive & first & second


def addressed_ticks(played: Played) -> Array:
    """Return bool [T, W, N], whether the agent is under an instruction in this tick."""
    return (played.rows.kind > 0) & played.rows.alive[..., None]


def decides(played: Played) -> Array:
    """Return bool [T, W, N], whether the agent is under an instruction and chose its macro in this tick."""
    return addressed_ticks(played) & played.rows.fresh


def _macro_ticks(played: Played, only: str = "") -> Array:
    """Return [C], the ticks of the agents that each kind addresses.

    With `only`, "twins" or "named", those in which such a macro runs. In these episodes one kind holds, or none. If one
    does, only the ticks under it are counted.
    """
    rows = played.rows
    if played.twins is None or played.named is None or played.addressed is None:
        raise ValueError("the use of macros is known only with those that each kind names")
    told = rows.kind > 0
    counted = rows.alive[..., None] & (told == told.any())
    ran = jax.nn.one_hot(rows.macro, played.twins.shape[-1]) * counted[..., None]
    by_macro = ran.sum((0, 1))[None] * played.addressed[..., None]
    if only:
        by_macro *= {"twins": played.twins, "named": played.named}[only]
    return by_macro.sum((1, 2))


def agents_mean(values: Array | None) -> Array:
    """Return the mean over agents of what only a held instruction has."""
    if values is None:
        raise ValueError("value errors are known only where one instruction is held")
    return values.mean()


EPISODES = Quantity("episodes", episodes_over)
SOLVED = Quantity(
    "episodes in which the task was completed",
    lambda p: count((p.rows.events[..., 0] > 0) & p.rows.alive),
)
RETURN = Quantity("sum over episodes of Σ_t γ^t r_t", _discounted)
GIVEN = Quantity("instructions given and counted", lambda p: _closed(p).sum((0, 1)))
FOLLOWED = Quantity(
    "instructions followed",
    lambda p: (_closed(p) * p.rows.followed[..., None]).sum((0, 1)),
)
FOLLOWED_BOTH = Quantity(
    "episodes in which both instructions were followed to the end",
    lambda p: count(_followed_both(p)),
)
DECISIONS = Quantity("decisions of addressed agents", lambda p: count(decides(p)))
TWIN = Quantity(
    "ticks × addressed agents that run what the kind's twin forbids",
    lambda p: _macro_ticks(p, "twins"),
)
USE = Quantity(
    "ticks × addressed agents that run what the kind names, to forbid it or to ask for it",
    lambda p: _macro_ticks(p, "named"),
)
MACRO_TICKS = Quantity("ticks × addressed agents", _macro_ticks)
TICKS = Quantity("ticks × addressed agents", lambda p: count(addressed_ticks(p)))
