"""The compiled programs behind a stage: one tick of one episode, with people who may drive some of the agents."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mavic.experiments import policy_file
from mavic.experiments.policy_file import Carry, Listening
from mavic.experiments.team_networks import Networks
from mavic.instruct import schedule
from mavic.learn.networks import Scale
from mavic.rollout import step as steps
from mavic.rollout.step import InstructedEnv
from mavic.types import Array, InstructedState, Instruction, replace

SHOWN = (  # the fields of a `Timestep` that a frame shows
    *("macro", "fresh", "kind", "complied", "task_reward", "events"),
    *("terminal", "truncated", "closed", "followed", "also"),
)

reset = jax.jit(steps.reset)
interrupt = jax.jit(steps.interrupt, static_argnames="also")


class Turn(NamedTuple):
    """What a tick leads to, and what the frame before it shows."""

    after: InstructedState
    carry: Any
    row: dict[str, Any]  # the fields of its `Timestep` named in SHOWN
    before: Any  # the environment's state before the tick
    instruction: Instruction  # after the tick
    also: Instruction | None  # the second one after the tick
    values: Any  # [C] mean over agents, or None


@partial(jax.jit, static_argnames="networks")
def turn_of_policy(
    networks: Networks,
    instructed_env: InstructedEnv,
    listening: Listening,
    scale: Scale,
    state: InstructedState,
    carry: Carry,
    greedy: Array | bool,
    *people: Array,
) -> Turn:
    """Return what a tick of a `TeamPolicy` leads to: look, decide and move in one compiled program.

    The environment may have more agents than the team; a person drives those beyond it.
    """
    own = networks.actor.shape.agents
    state, observation, driven, key = prepare(instructed_env, state, *people)
    kinds = instructed_env.rules.addressed[:, :own]
    phrases = jnp.where(kinds, jnp.arange(kinds.shape[0])[:, None], 0)
    values = policy_file.values(
        networks, listening.critics, scale, carry, observation[:own], phrases
    )
    seen = state.observation[:own], state.idle[:own], state.available[:own]
    macro, carry = policy_file.decide(networks, listening, key, carry, *seen, greedy)
    macro = jnp.pad(macro, (0, observation.shape[0] - own))
    after, row = move(instructed_env, state, macro, driven)
    carry = replace(carry, macro=row["macro"][:own])
    return Turn(after, carry, row, state.state, after.instruction, after.also, values.mean(1))


@jax.jit
def permitted(instructed_env: InstructedEnv, state: InstructedState) -> Array:
    """Return bool [C], the kinds that the state permits, whether or not the schedule would give them."""
    return schedule.permitted_kinds(instructed_env.env.check(state.state), instructed_env.rules)


@jax.jit
def prepare(
    instructed_env: InstructedEnv, state: InstructedState, seated: Array, wish: Array, rest: Array
) -> tuple[InstructedState, Array, Array, Array]:
    """Return what a decision needs: the state in which all agents with a wish are idle, the present observations, the
    macros [N] of driven agents (-1: the team decides, or a macro goes on), and the key of the choices."""
    env = instructed_env.env
    observation = env.observe(state.state)
    choices = steps.choices_of(instructed_env, state.state, state.instruction, state.also)
    macros = jnp.arange(choices.available.shape[1])[None]
    now = seated & jnp.any(choices.available & (macros == wish[:, None]), axis=1)
    after = replace(
        state,
        idle=state.idle | now,
        observation=jnp.where(now[:, None], observation, state.observation),
        available=jnp.where(now[:, None], choices.available, state.available),
        forbidden=jnp.where(now[:, None], choices.forbidden, state.forbidden),
    )
    driven = jnp.where(now, wish, jnp.where(seated & state.idle, rest, -1))
    # this is the rollout's key, so a stage plays the very episode that the rollout plays
    return after, observation, driven, jax.random.fold_in(state.key, state.time)


@jax.jit
def move(
    instructed_env: InstructedEnv, state: InstructedState, macro: Array, driven: Array
) -> tuple[InstructedState, dict[str, Any]]:
    """Return the state after the tick, and the fields of its `Timestep` that a frame shows."""
    choice = jnp.where(driven >= 0, driven, macro)
    after, row = steps.step(instructed_env, state, choice, steps.draws_for(state)[macro.shape[0] :])
    return after, {name: getattr(row, name) for name in SHOWN}
