"""A batch: the macro transitions that actors and critics learn from.

Where a critic sees the whole team, its rows end whenever any agent's macro ends, and an agent's macro spans several of
them. `begun` and `ended` say which.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from mavic.learn.networks import Shape
from mavic.learn.transitions import Places, as_played, macro_transitions, picked
from mavic.learn.views import started, view_of
from mavic.types import Array, MacroTransitions, Timestep, record


@record
class Batch:
    """The rows of one batch. `G` actors' columns, `S` columns of what critics see."""

    actor: MacroTransitions  # [K, L, G]
    critic: MacroTransitions  # [J, L', S]; the same as `actor` where both see the same
    # Which of all J·L' rows of the critic began and which ended with each row of the actors.
    begun: Array | None = None  # [K, L, G]
    ended: Array | None = None  # [K, L, G]


@record
class Placed:
    """The ticks of an actor's and a critic's view, and where their rows stand."""

    actor: Timestep
    critic: Timestep
    actor_places: Places
    critic_places: Places

    @property
    def room(self) -> int:
        """Return how many rows a lane can hold."""
        return self.actor_places.tick.shape[0]

    def fullest(self) -> Array:
        """Return the number of rows in the fullest lane."""
        return jnp.maximum(self.actor_places.count.max(), self.critic_places.count.max())


def alike(rows: MacroTransitions) -> Batch:
    """Return the batch of actors and critics that see the same."""
    return Batch(actor=rows, critic=rows)


def place(
    actor: Shape,
    critic: Shape,
    rows: Timestep,
    arrange: Callable[..., Places] = as_played,
    *,
    drop_unfinished: bool = False,
) -> Placed:
    """Return the ticks [T, W, N] as networks of these shapes see them, and the places of their rows.

    `arrange` is `as_played` or `packed` with its numbers.
    """
    views = [view_of(shape).ticks(shape, rows, drop_unfinished) for shape in (actor, critic)]
    if actor.view == critic.view:
        views[1] = views[0]
    places = [arrange(views[0], drop_unfinished=drop_unfinished)]
    if views[0].macro.shape == views[1].macro.shape:  # the same rows, with more or less in sight
        places *= 2
    else:
        places.append(arrange(views[1], drop_unfinished=drop_unfinished))
    return Placed(actor=views[0], critic=views[1], actor_places=places[0], critic_places=places[1])


def batch_of(placed: Placed, gamma: Array | float, size: int | None = None) -> Batch:
    """Return the batch of these ticks. `size` limits the rows of a lane and must hold the fullest one."""
    actor = macro_transitions(placed.actor, gamma, placed.actor_places, size=size)
    if placed.actor is placed.critic:
        return alike(actor)
    critic = macro_transitions(placed.critic, gamma, placed.critic_places, size=size)
    begun, ended = _spans(placed, size)
    return Batch(actor=actor, critic=critic, begun=begun, ended=ended)


def _spans(placed: Placed, size: int | None) -> tuple[Array, Array]:
    """Return [K, L, G] each: the team's rows that began and that ended with each row of the actors."""
    tick, count = placed.critic_places.tick[:size, :, 0], placed.critic_places.count[:, 0]
    ticks, width = placed.critic.macro.shape[:2]
    number = jnp.arange(tick.size).reshape(tick.shape)
    used = jnp.arange(tick.shape[0])[:, None] < count[None]
    ends = (
        jnp.full(ticks * width, -1)
        .at[jnp.where(used, tick, ticks * width)]
        .set(number, mode="drop")
    )
    ends = ends.reshape(ticks, width)
    clock = jnp.where(ends >= 0, jnp.arange(ticks)[:, None], ticks - 1)
    following = jax.lax.cummin(clock, axis=0, reverse=True)
    running = jnp.take_along_axis(ends, following, axis=0)  # the row that runs in each tick
    wide = placed.actor.macro.shape
    begun = jnp.take_along_axis(
        jnp.broadcast_to(running[..., None], wide), started(placed.actor.fresh), axis=0
    )
    own = placed.actor_places.tick[:size]
    found = (picked(x, own) for x in (begun, jnp.broadcast_to(running[..., None], wide)))
    begun, ended = (jnp.maximum(x, 0) for x in found)
    return begun, ended
