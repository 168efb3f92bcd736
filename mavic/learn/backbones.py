"""Backbones: which actors and critics a team has, and what they see. A backbone is a row of a table.

All rows share one update. The correction at instruction boundaries is part of the targets and works with every one.

    mac-iac          each agent has an actor and a critic, which see its own macros
    mac-cac          one actor chooses for all agents; one critic; both see the team
    mac-naive-iacc   each agent has an actor; one critic sees the team
    mac-iaicc        each agent has an actor, and a critic of its own that sees the team
    acac             as mac-naive-iacc, with a critic that attends to each agent's own history, GAE and PPO
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from mavic.hints import look_up
from mavic.learn import acac, bptt, gru, networks, update
from mavic.learn import values as value_functions
from mavic.learn.batches import Batch
from mavic.learn.losses import ActorOutputs
from mavic.learn.networks import Network, Shape
from mavic.learn.returns import Correction
from mavic.learn.update import (
    BY_ACTOR,
    BY_CRITIC,
    CriticOutputs,
    HyperParams,
    StaticConfig,
    TrainState,
)
from mavic.learn.values import Loop, Spans, Values
from mavic.learn.views import VIEWS
from mavic.preset import ACAC
from mavic.run_axis import max_over_runs
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
    """Where a critic sees the team: whether a macro's advantage is that of the team's row in which it `begun` or
    `ended`."""
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
    """Return the actors' and the critics' network of a backbone, from the shape of one agent's own network.

    The second is None where critics have the actors' shape.
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
    """Return the network of a backbone's actors or critics, which have this shape."""
    attends = role == "critic" and look_up(BACKBONES, name, "backbone").attends
    if shape.cell:
        return networks.of_own_cell(shape)
    return acac.critic(shape) if attends else gru.network(shape)


def loops_of(rows: MacroTransitions) -> Loop:
    """Return the lengths of the loops over these transitions [K, L, N]. They are the same in all runs of a program."""
    longest = rows.valid.sum(0).max()
    return Loop(
        blocks=bptt.blocks_for(max_over_runs(longest), len(rows.valid)),
        chunks=max_over_runs(bptt.chunks_for(value_functions.bootstraps(rows))),
    )


def _by_column(rows: Any) -> Any:
    """Return rows [K, L, G, ...] with the columns first, [G, K, L, ...]."""
    return jax.tree.map(lambda x: jnp.moveaxis(x, 2, 0), rows)


def _spans_of(backbone: Backbone, batch: Batch) -> Spans | None:
    """Return where each agent's macros lie in its critic's rows, [N, K, L], if they are what has targets."""
    if not backbone.critic_per_agent:
        return None
    assert batch.begun is not None and batch.ended is not None
    return Spans(rows=batch.actor, begun=batch.begun, ended=batch.ended)


def values(config: StaticConfig, vectors: Array, state: TrainState, batch: Batch) -> Values:
    """Return the values [Q, J, L] of the critics' rows, by each of `Q` critics."""
    rows = bptt.pad(batch.critic)
    loop = loops_of(rows)
    found = _over_critics(
        config,
        lambda state, rows, _: value_functions.agent_values(
            config.critic, vectors, state.critic, state.scale, rows, loop
        ),
        0,
    )(state, _by_column(rows), None)
    return jax.tree.map(lambda x: x[:, : batch.critic.macro.shape[0]], found)


def valued_rows(
    config: StaticConfig, vectors: Array, state: TrainState, batch: Batch
) -> tuple[MacroTransitions, Values]:
    """Return the transitions that have targets [Q, K, L], and their values."""
    found = values(config, vectors, state, batch)
    spans = _spans_of(BACKBONES[config.backbone], batch)
    if spans is None:
        return _by_column(batch.critic), found
    own = _by_column(spans)
    return own.rows, jax.vmap(value_functions.spanned)(found, own)


def _over_critics(config: StaticConfig, function: Any, out_axes: Any) -> Any:
    """Return `function(state, rows, spans)` for all critics. A team's rows [1, K, L] are the same for every critic."""

    def mapped(state: TrainState, rows: Any, spans: Any) -> Any:
        alone = rows.valid.shape[0] == config.critic.shape.count
        shared = rows if alone else jax.tree.map(lambda x: x[0], rows)
        axes = (BY_CRITIC, 0 if alone else None, 0)
        return jax.vmap(function, in_axes=axes, out_axes=out_axes)(state, shared, spans)

    return mapped


@record
class Learnt:
    """What one step of all critics and actors computed, with their columns first."""

    rows: MacroTransitions  # [S, J, L] of the critics
    own: MacroTransitions  # [G, K, L] of the actors
    critic: CriticOutputs  # [Q, J, L], by each of `Q` critics
    advantage: Array  # [G, K, L]
    actor: ActorOutputs  # [G, K, L]


def learn(
    config: StaticConfig,
    hyper: HyperParams,
    correction: Correction,
    vectors: Array,
    state: TrainState,
    batch: Batch,
) -> tuple[TrainState, Learnt]:
    """Take one step of every critic, then one of every actor, from one batch."""
    backbone = BACKBONES[config.backbone]
    rows = bptt.pad(batch.critic)
    same = batch.actor is batch.critic
    own = rows if same else bptt.pad(batch.actor)
    loop = loops_of(rows)
    own_loop = loop if same else loops_of(own)
    now = update.anneal(hyper, state.episodes)

    def critic(state: TrainState, rows: Any, spans: Any) -> tuple[TrainState, CriticOutputs]:
        return update.update_critic(
            config, hyper, correction, vectors, now, loop, state, rows, spans
        )

    def actor(state: TrainState, rows: Any, advantage: Array) -> tuple[TrainState, Any]:
        return update.update_actor(config, hyper, vectors, now, own_loop, state, rows, advantage)

    spans = _spans_of(backbone, batch)
    spans = None if spans is None else _by_column(bptt.pad(spans))
    rows, own = _by_column(rows), _by_column(own)
    state, found = _over_critics(config, critic, (BY_CRITIC, 0))(state, rows, spans)
    advantage = found.advantage
    if not same:
        at = batch.begun if backbone.advantage_at == "begun" else batch.ended
        at = _by_column(bptt.pad(at))
        wide = jnp.broadcast_to(advantage, (own.valid.shape[0], *advantage.shape[1:]))
        advantage = jax.vmap(value_functions.read)(wide, at)
    state, acted = jax.vmap(actor, in_axes=(BY_ACTOR, 0, 0), out_axes=(BY_ACTOR, 0))(
        state, own, advantage
    )
    state = update.copy_target(config, hyper, state, state.episodes + config.batch)
    return state, Learnt(rows=rows, own=own, critic=found, advantage=advantage, actor=acted)


def step(
    config: StaticConfig,
    hyper: HyperParams,
    correction: Correction,
    vectors: Array,
    state: TrainState,
    batch: Batch,
) -> tuple[TrainState, UpdateMetrics]:
    """Learn from one batch. Return the next state and metrics."""
    state, learnt = learn(config, hyper, correction, vectors, state, batch)
    critic, own = learnt.critic, learnt.own
    told = _told(jnp.broadcast_to(learnt.rows.kind, critic.valid.shape), critic.valid)
    own_told = _told(own.kind, own.valid)
    metrics = UpdateMetrics(
        value=_mean(told, critic.value),
        target=_mean(told, critic.target),
        entropy=_mean(own_told, learnt.actor.entropy),
        rows=own_told.sum((1, 2)),
        critic_loss=critic.loss,
    )
    return state, jax.tree.map(lambda x: x.mean(0), metrics)


def _told(kind: Array, valid: Array) -> Array:
    """Return [G, K, L, 2]: a 1 for each valid row, in the first place if it is uninstructed, else in the second."""
    told = jax.nn.one_hot((kind > 0).astype(jnp.int32), networks.VALUE_HEADS)
    return told * valid[..., None].astype(jnp.float32)


def _mean(told: Array, x: Array) -> Array:
    """Return the means [G, 2] of numbers [G, K, L] over uninstructed and over instructed rows."""
    return (told * x[..., None]).sum((1, 2)) / jnp.maximum(told.sum((1, 2)), 1.0)
