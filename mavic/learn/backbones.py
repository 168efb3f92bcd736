"""Backbones: which actor and critic each agent has. A backbone is one record of functions.

The correction at instruction boundaries is part of the targets and works with every backbone. The only backbone is
Mac-IAC, in which every agent has its own actor, critic and target critic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from mavic.learn import act, bptt, networks, update
from mavic.learn.returns import Correction
from mavic.learn.update import BY_AGENT, HyperParams, Loop, StaticConfig, TrainState, Values
from mavic.run_axis import max_over_runs
from mavic.types import Array, MacroTransitions, record


@record
class UpdateMetrics:
    """Means over one batch and all agents; pairs are [uninstructed, instructed]."""

    value: Array  # [2]
    target: Array  # [2]
    entropy: Array  # [2]
    rows: Array  # [2] number of transitions of an agent
    critic_loss: Array  # []


@dataclass(frozen=True)
class Backbone:
    """An actor-critic over macro transitions. All functions are pure and can be called alone or under `vmap`."""

    init: Callable[..., TrainState]
    """(key, static config, value_scale, critic_init_scale) → a fresh state."""
    act: Callable[..., tuple[Array, Array]]
    """`mavic.learn.act.decide`: parameters, memory and what is seen → macros and memory."""
    values: Callable[..., Values]
    """(static config, vectors, state, transitions) → values [N, K, W] of all transitions."""
    update: Callable[..., tuple[TrainState, UpdateMetrics]]
    """(static config, hyperparameters, correction, vectors, state, transitions) → the next state, metrics."""


def loops_of(rows: MacroTransitions) -> Loop:
    """Return the lengths of the loops over these transitions [K, W, N]. They are the same in all runs of a program."""
    longest = rows.valid.sum(0).max()
    return Loop(
        blocks=bptt.blocks_for(max_over_runs(longest)),
        chunks=max_over_runs(bptt.chunks_for(update.bootstraps(rows))),
    )


def _by_agent(rows: MacroTransitions) -> MacroTransitions:
    """Return transitions [K, W, N, ...] with the agents first, [N, K, W, ...]."""
    return jax.tree.map(lambda x: jnp.moveaxis(x, 2, 0), rows)


def independent_values(
    config: StaticConfig, vectors: Array, state: TrainState, transitions: MacroTransitions
) -> Values:
    """Return every agent's values [N, K, W] by its own critic."""
    rows = bptt.pad(transitions)
    loop = loops_of(rows)

    def agent(critic: Any, scale: Any, rows: MacroTransitions) -> Values:
        return update.agent_values(config, vectors, critic, scale, rows, loop)

    found = jax.vmap(agent)(state.critic, state.scale, _by_agent(rows))
    return jax.tree.map(lambda x: x[:, : transitions.macro.shape[0]], found)


def update_independent(
    config: StaticConfig,
    hyper: HyperParams,
    correction: Correction,
    vectors: Array,
    state: TrainState,
    transitions: MacroTransitions,
) -> tuple[TrainState, UpdateMetrics]:
    """Take one critic step and one actor step for every agent."""
    rows = bptt.pad(transitions)
    loop = loops_of(rows)
    now = update.anneal(hyper, state.episodes)

    def agent(state: TrainState, rows: MacroTransitions) -> tuple[TrainState, UpdateMetrics]:
        state, critic = update.update_critic(
            config, hyper, correction, vectors, now, loop, state, rows
        )
        advantage = critic.target - critic.value
        state, actor = update.update_actor(
            config, hyper, vectors, now, loop, state, rows, advantage
        )
        half = jax.nn.one_hot((rows.kind > 0).astype(jnp.int32), networks.VALUE_HEADS)
        half = half * rows.valid[..., None].astype(jnp.float32)
        count = jnp.maximum(half.sum((0, 1)), 1.0)

        def mean(x: Array) -> Array:
            return (half * x[..., None]).sum((0, 1)) / count

        return state, UpdateMetrics(
            value=mean(critic.value),
            target=mean(critic.target),
            entropy=mean(actor.entropy),
            rows=half.sum((0, 1)),
            critic_loss=critic.loss,
        )

    step = jax.vmap(agent, in_axes=(BY_AGENT, 0), out_axes=(BY_AGENT, 0))
    state, metrics = step(state, _by_agent(rows))
    state = update.copy_target(config, hyper, state, state.episodes + config.batch)
    return state, jax.tree.map(lambda x: x.mean(0), metrics)


BACKBONES = {
    "mac-iac": Backbone(
        init=update.init, act=act.decide, values=independent_values, update=update_independent
    ),
}
