"""Backbones: the actors and critics of a team, and their views. A backbone is a row of the table `BACKBONES`.

All backbones share the update `learn`. The correction at instruction boundaries is part of the targets, so every
backbone has it.

    mac-iac          each agent has an actor and a critic, which see its own macros
    mac-cac          one actor chooses for all agents; one critic; both see the team
    mac-naive-iacc   each agent has an actor; one critic sees the team
    mac-iaicc        each agent has an actor, and a critic of its own that sees the team
    acac             as mac-naive-iacc, with a critic that attends to each agent's own history, GAE and PPO
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp

from mavic.hints import look_up
from mavic.learn import acac, bptt, gru
from mavic.learn.batches import Batch
from mavic.learn.cells import CELLS, from_cell
from mavic.learn.losses import ActorOutputs
from mavic.learn.networks import Network, Shape
from mavic.learn.popart import VALUE_HEADS
from mavic.learn.returns import Correction
from mavic.learn.update import (
    BY_ACTOR,
    BY_CRITIC,
    CriticOutputs,
    HyperParams,
    StaticConfig,
    TrainState,
    update_actor,
    update_critic,
)
from mavic.learn.values import Values, agent_values, bootstraps
from mavic.learn.views import VIEWS
from mavic.preset import ACAC
from mavic.types import Array, MacroTransitions, record, replace


@record
class UpdateMetrics:
    """Means over one batch and all agents; pairs are [uninstructed, instructed]."""

    value: Array  # [2]
    target: Array  # [2]
    entropy: Array  # [2]
    rows: Array  # [2] number of transitions of an agent
    critic_loss: Array  # []


@dataclass(frozen=True, kw_only=True)
class Backbone:
    """An actor-critic over macro transitions."""

    actor: str = "own"
    """What actors see: a row of `mavic.learn.views.VIEWS`."""
    critic: str = "own"
    """What critics see."""
    critic_per_agent: bool = False
    """Each agent has a critic of its own that sees the team. Its targets are those of the agent's own macros."""
    advantage_at: str = "begun"
    """Where a critic sees the team: which of the team's rows gives an actor's macro its advantage, the one in which the
    macro began (`begun`) or the one in which it ended (`ended`)."""
    actor_norm: bool = False
    """Actors normalize their last layer."""
    attends: bool = False
    """The critic attends to each agent's own history (`mavic.learn.acac`)."""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """Numbers of the preset that belong to the algorithm."""


BACKBONES = {
    "mac-iac": Backbone(),
    "mac-cac": Backbone(actor="team", critic="team"),
    "mac-naive-iacc": Backbone(critic="team", advantage_at="ended"),
    "mac-iaicc": Backbone(critic="team", critic_per_agent=True),
    "acac": Backbone(
        actor="timed",
        critic="tokens",
        actor_norm=True,
        attends=True,
        numbers=ACAC,
    ),
}


def networks_of(name: str, shape: Shape) -> tuple[Network, Network | None]:
    """Return the networks of a backbone.

    Args:
        name: A row of `BACKBONES`.
        shape: The shape of one agent's own network.

    Returns:
        The actors' network and the critics'. The second is None where critics have the actors' shape.

    Raises:
        ValueError: The backbone is unknown, or its networks cannot have the cell that the shape names.
    """
    backbone = look_up(BACKBONES, name, "backbone")
    if shape.cell and backbone.attends:
        raise ValueError(f"backbone {name} has networks of its own; it cannot have {shape.cell!r}")
    actor = replace(VIEWS[backbone.actor].widen(shape), layer_norm=backbone.actor_norm)
    critic = VIEWS[backbone.critic].widen(shape)
    if backbone.critic_per_agent:
        critic = replace(critic, copies=shape.agents)
    same = critic == actor
    return network_of(name, "actor", actor), None if same else network_of(name, "critic", critic)


def network_of(name: str, role: str, shape: Shape) -> Network:
    """Return the network of a backbone's actors or critics.

    Args:
        name: A row of `BACKBONES`.
        role: "actor" or "critic".
        shape: The shape of that network.
    """
    attends = role == "critic" and look_up(BACKBONES, name, "backbone").attends
    if shape.cell:
        return _of_own_cell(shape)
    return acac.critic(shape) if attends else gru.network(shape)


@lru_cache
def _of_own_cell(shape: Shape) -> Network:
    """Return the network of the cell that a shape names. Equal shapes have the same network."""
    return from_cell(shape, *look_up(CELLS, shape.cell, "cell"))


def _by_column(rows: Any) -> Any:
    """Return rows [K, L, G, ...] with the columns first, [G, K, L, ...]."""
    return jax.tree.map(lambda x: jnp.moveaxis(x, 2, 0), rows)


def _of_critics(config: StaticConfig, batch: Batch) -> tuple[Batch, Batch]:
    """Return the batch of each critic, with the axis of critics first, and these axes for `vmap`."""
    if batch.team is None or not BACKBONES[config.backbone].critic_per_agent:
        return _by_column(Batch(rows=batch.critic)), Batch(rows=0)  # type: ignore[arg-type]
    # The team's rows are the same for every critic, but for the context.
    team = jax.tree.map(lambda x: x[:, :, 0], batch.team)
    columns = _by_column(replace(batch, team=None))
    shared = jax.tree.map(lambda _: None, team)
    axes: Any = dict(rows=0, team=replace(shared, context=0), begun=0, ended=0)
    own = replace(team, context=columns.contexts)
    return replace(columns, team=own, contexts=None), Batch(**axes)


def values(
    config: StaticConfig, vectors: Array, state: TrainState, batch: Batch
) -> tuple[MacroTransitions, Values]:
    """Return the transitions that have targets [Q, K, L] and their values, by each of `Q` critics.

    Args:
        config: The static part of the training.
        vectors: The vectors of all phrases.
        state: The trained parameters.
        batch: Complete episodes.
    """
    padded = bptt.pad(batch)
    loops = bptt.lengths(padded.critic.valid, bootstraps(padded.critic))

    def one(state: TrainState, batch: Batch) -> Values:
        rows = batch.critic
        found = agent_values(config.critic, vectors, state.critic, state.scale, rows, *loops)
        return found.of_macros(batch)

    columns, axes = _of_critics(config, padded)
    found = jax.vmap(one, in_axes=(BY_CRITIC, axes))(state, columns)
    return jax.tree.map(lambda x: x[:, : len(batch.rows.macro)], (columns.rows, found))


@record
class _Learnt:
    """The results of one step of all critics and actors, with their columns first."""

    kind: Array  # [S, J, L] of the critics' rows
    rows: MacroTransitions  # [G, K, L] of the actors
    critic: CriticOutputs  # [Q, J, L], by each of `Q` critics
    advantage: Array  # [G, K, L]
    actor: ActorOutputs  # [G, K, L]

    def metrics(self) -> UpdateMetrics:
        """Return the means over the batch and all agents."""
        critic, own = self.critic, self.rows
        told = _told(jnp.broadcast_to(self.kind, critic.valid.shape), critic.valid)
        own_told = _told(own.kind, own.valid)
        metrics = UpdateMetrics(
            value=_mean(told, critic.value),
            target=_mean(told, critic.target),
            entropy=_mean(own_told, self.actor.entropy),
            rows=own_told.sum((1, 2)),
            critic_loss=critic.loss,
        )
        return jax.tree.map(lambda x: x.mean(0), metrics)


def learn(
    config: StaticConfig,
    hyper: HyperParams,
    correction: Correction,
    vectors: Array,
    state: TrainState,
    batch: Batch,
) -> tuple[TrainState, _Learnt]:
    """Take one step of every critic, then one of every actor.

    Args:
        config: The static part of the training.
        hyper: The learner's numbers.
        correction: How targets treat a change of instruction.
        vectors: The vectors of all phrases.
        state: Everything that training changes.
        batch: Complete episodes.

    Returns:
        The next state, and what the steps computed.
    """
    batch = bptt.pad(batch)
    blocks, chunks = bptt.lengths(batch.critic.valid, bootstraps(batch.critic))
    kind, rows = _by_column(batch.critic.kind), _by_column(batch.rows)
    columns, axes = _of_critics(config, batch)
    state, critic = jax.vmap(
        partial(update_critic, config, hyper, correction, vectors, blocks, chunks),
        in_axes=(BY_CRITIC, axes),
        out_axes=(BY_CRITIC, 0),
    )(state, columns)
    advantage = critic.advantage
    if batch.team is not None:
        blocks, _ = bptt.lengths(batch.rows.valid, bootstraps(batch.rows))
        at = batch.begun if BACKBONES[config.backbone].advantage_at == "begun" else batch.ended
        wide = jnp.broadcast_to(advantage, (len(rows.valid), *advantage.shape[1:]))
        advantage = jax.vmap(lambda x, at: x.reshape(-1)[at])(wide, _by_column(at))
    state, actor = jax.vmap(
        partial(update_actor, config, hyper, vectors, blocks),
        in_axes=(BY_ACTOR, 0, 0),
        out_axes=(BY_ACTOR, 0),
    )(state, rows, advantage)
    state = _copy_target(config, hyper, state, state.episodes + config.batch)
    return state, _Learnt(kind=kind, rows=rows, critic=critic, advantage=advantage, actor=actor)


def _copy_target(
    config: StaticConfig, hyper: HyperParams, state: TrainState, episodes: Array
) -> TrainState:
    """Return the state after `episodes` episodes, with the target critic copied if that is due."""
    period = hyper.target_update_episodes
    due = (episodes // period > state.episodes // period) | (not config.target_network)
    target = jax.tree.map(lambda new, old: jnp.where(due, new, old), state.critic, state.target)
    return replace(state, target=target, episodes=episodes)


def _told(kind: Array, valid: Array) -> Array:
    """Return [G, K, L, 2]: a 1 for each valid row, in the first place if it is uninstructed, else in the second."""
    told = jax.nn.one_hot((kind > 0).astype(jnp.int32), VALUE_HEADS)
    return told * valid[..., None].astype(jnp.float32)


def _mean(told: Array, x: Array) -> Array:
    """Return the means [G, 2] of numbers [G, K, L] over uninstructed and over instructed rows."""
    return (told * x[..., None]).sum((1, 2)) / jnp.maximum(told.sum((1, 2)), 1.0)
