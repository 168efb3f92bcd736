"""A batch: the macro transitions that actors and critics learn from, and which rows of the team each actor row spans.

In three of the five backbones critics see the whole team and actors do not. There the critics' rows end whenever any
agent's macro ends, so an agent's macro spans several of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from mavic.learn.networks import Shape
from mavic.learn.transitions import macro_transitions
from mavic.learn.views import VIEWS, started
from mavic.types import Array, MacroTransitions, Timestep, record


@record
class Batch:
    """The rows of actors. Where critics see the team and actors do not, also the team's rows that they span."""

    rows: MacroTransitions  # [K, L, G] of `G` actors
    team: MacroTransitions | None = None  # [J, L', 1]; None: critics learn from `rows`
    # The team's rows in which the macro of each actor's row began and ended, as numbers among all J·L' of them.
    begun: Array | None = None  # [K, L, G]
    ended: Array | None = None  # [K, L, G]
    contexts: Array | None = None  # [J, L', N] each agent's context in the team's rows

    @property
    def critic(self) -> MacroTransitions:
        """Return the critics' rows."""
        return self.rows if self.team is None else self.team


def views_of(
    actor: Shape, critic: Shape, ticks: Timestep, *, drop_unfinished: bool = False
) -> list[Timestep]:
    """Return the ticks in each view that a batch needs: the actors' and, if it differs, the critics'.

    Args:
        actor: The shape of the actors' network.
        critic: The shape of the critics' network.
        ticks: What was played, [T, W, N].
        drop_unfinished: Whether macros that still run at the end of an episode are dropped (D7).
    """
    shapes = [actor] if actor.view == critic.view else [actor, critic]
    return [VIEWS[shape.view].ticks(shape, ticks, drop_unfinished) for shape in shapes]


def batch_of(views: Sequence[Timestep], ends: Sequence[Array], gamma: Array | float) -> Batch:
    """Return the batch of ticks that were played.

    Args:
        views: The ticks as actors and critics see them, from `views_of`.
        ends: Where the rows of each view stand, from `mavic.learn.transitions.as_played` or `packed`.
        gamma: The discount of a tick.
    """
    rows = [macro_transitions(seen, gamma, at) for seen, at in zip(views, ends, strict=True)]
    if len(rows) == 1:
        return Batch(rows=rows[0])
    begun, ended = _meet(views[0], *ends)
    at = jnp.maximum(ends[1][..., 0], 0)
    contexts = views[0].context.reshape(-1, views[0].context.shape[-1])[at]
    return Batch(rows=rows[0], team=rows[1], begun=begun, ended=ended, contexts=contexts)


def _meet(ticks: Timestep, own: Array, team: Array) -> tuple[Array, Array]:
    """Return the team's rows in which each actor's macro began and ended, [K, L, G] each.

    Args:
        ticks: Those of the actors, [T, W, G].
        own: Where the rows of actors stand, [K, L, G].
        team: Where the rows of the team stand, [J, L', 1].
    """
    length, width, agents = ticks.macro.shape
    team = team[..., 0]
    number = jnp.arange(team.size).reshape(team.shape)
    at = jnp.where(team >= 0, team, length * width)
    ends = jnp.full(length * width, -1).at[at].set(number, mode="drop").reshape(length, width)
    clock = jnp.where(ends >= 0, jnp.arange(length)[:, None], length - 1)
    following = jax.lax.cummin(clock, axis=0, reverse=True)
    running = jnp.take_along_axis(ends, following, axis=0)  # the team's row in each tick
    ended = jnp.broadcast_to(running[..., None], ticks.macro.shape)
    begun = jnp.take_along_axis(ended, started(ticks.fresh), axis=0)
    at = jnp.maximum(own, 0)
    begun, ended = (
        jnp.maximum(x.reshape(-1, agents)[at, jnp.arange(agents)], 0) for x in (begun, ended)
    )
    return begun, ended
