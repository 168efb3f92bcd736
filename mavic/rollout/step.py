"""One tick: idle agents decide, the environment moves, the instruction clock advances."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from mavic.envs.api import Env
from mavic.instruct import reward, schedule
from mavic.rollout import threefry
from mavic.types import (
    Array,
    Float,
    InstructedState,
    Int,
    Phrases,
    Rules,
    Schedule,
    Timestep,
    assert_rank,
    record,
    replace,
)


@record
class InstructedEnv:
    """An environment with its instructions: everything that defines an episode, except the policy."""

    env: Env
    rules: Rules
    schedule: Schedule
    phrases: Phrases


class EpisodeDraws(NamedTuple):
    """The random numbers that an episode starts with."""

    state: Array  # key of the first state
    draws: Array  # [DRAWS] for an instruction that holds from the start
    key: Array  # of the ticks


def draw_episode(key: Array) -> EpisodeDraws:
    """Return an episode's first random numbers, drawn from its key."""
    state, draws, key = threefry.split(key, 3)
    return EpisodeDraws(state=state, draws=threefry.uniform(draws, schedule.DRAWS), key=key)


def reset(instructed: InstructedEnv, key: Array) -> InstructedState:
    """Return the first state of an episode, in which every agent decides."""
    return begin(instructed, draw_episode(key))


def begin(instructed: InstructedEnv, drawn: EpisodeDraws) -> InstructedState:
    """Return the first state of an episode from random numbers that are already drawn."""
    env = instructed.env
    state = env.reset(drawn.state)
    nothing = jnp.full(len(env.agents), -1, jnp.int32)
    return InstructedState(
        state=state,
        macro=nothing,
        last_macro=nothing,
        idle=jnp.ones(len(env.agents), bool),
        observation=env.observe(state),
        available=env.available(state),
        instruction=schedule.begin(
            drawn.draws,
            schedule.possible_kinds(env.check(state), instructed.rules),
            instructed.rules,
            instructed.schedule,
            instructed.phrases,
        ),
        time=jnp.int32(0),
        key=drawn.key,
    )


def draws_for(state: InstructedState) -> Array:
    """Return the uniform numbers [N + DRAWS] of this tick: one per agent for its choice, then those of the clock.

    They depend only on the episode's key and the time, so an episode is the same in any batch.
    """
    return threefry.uniform(threefry.fold_in(state.key, state.time), _draw_count(state))


def tick_key(state: InstructedState) -> Array:
    """Return the environment's key in this tick.

    It is the cipher block after those of `draws_for`, so the environment's random numbers are independent of those of
    the agents and the clock.
    """
    return threefry.fold_in(threefry.fold_in(state.key, state.time), _draw_count(state))


def _draw_count(state: InstructedState) -> int:
    return state.macro.shape[0] + schedule.DRAWS


def step(
    instructed: InstructedEnv,
    state: InstructedState,
    choice: Int[Array, " N"],
    draws: Float[Array, " DRAWS"],
) -> tuple[InstructedState, Timestep]:
    """Run one tick. Return the next state and what happened.

    Idle agents start their `choice` [N]; the others continue their macros. `draws` [DRAWS] are the clock's numbers. The
    reward is paid under the old instruction. Then the instruction may change, which ends every running macro (D11).
    """
    assert_rank("N", choice=choice, idle=state.idle)
    assert_rank("DRAWS", draws=draws)
    env, rules, instruction = instructed.env, instructed.rules, state.instruction
    macro = jnp.where(state.idle, choice, state.macro)
    last_macro = jnp.where(state.idle, state.macro, state.last_macro)
    tick = env.tick(tick_key(state), state.state, macro, state.idle, rules.effect[instruction.kind])

    complied = reward.comply(instruction, macro, tick.effective_macro, rules)
    paid = reward.pay(instruction, tick.reward, complied, state.idle, tick.events, rules)

    truncated = ~tick.terminal & (state.time + 1 >= env.horizon)
    over = tick.terminal | truncated
    clock = schedule.advance(
        draws,
        instruction,
        complied,
        state.idle,
        tick.events,
        schedule.possible_kinds(env.check(tick.state), rules),
        over,
        rules,
        instructed.schedule,
        instructed.phrases,
    )
    ended = tick.ended | clock.switched | clock.spurious | over
    seen = env.observe(tick.state)
    timestep = Timestep(
        observation=state.observation,
        available=state.available,
        last_macro=last_macro,
        macro=macro,
        fresh=state.idle,
        kind=instruction.kind,
        phrase=instruction.phrase,
        reward=paid,
        task_reward=tick.reward.mean(),
        complied=complied,
        ended=ended,
        unfinished=over & ~tick.ended,
        # An event that resolves an instruction is part of what was asked, so the target is not corrected there (B12).
        switched=clock.switched & ~clock.resolved,
        terminal=tick.terminal | (truncated & env.horizon_ends),
        bootstraps_from_self=tick.terminal & rules.replaces[instruction.kind],
        truncated=truncated,
        events=tick.events,
        closed=clock.closed,
        followed=clock.followed,
        next_observation=seen,
        time=state.time,
        alive=jnp.asarray(True),
    )
    after = replace(
        state,
        state=tick.state,
        macro=macro,
        last_macro=last_macro,
        idle=ended,
        observation=jnp.where(ended[:, None], seen, state.observation),
        available=jnp.where(ended[:, None], env.available(tick.state), state.available),
        instruction=clock.instruction,
        time=state.time + 1,
    )
    return after, timestep


def interrupt(
    instructed: InstructedEnv,
    state: InstructedState,
    kind: Array,
    phrase: Array,
    agents: Array,
    hold: Array,
) -> tuple[InstructedState, schedule.ClockUpdate]:
    """Give a person's instruction between two ticks. As after a change by the clock, every agent observes and decides.

    `agents` [N] bool says who is addressed. Kind 0 ends the active instruction. The returned update says whether the
    instruction that ended was followed.
    """
    clock = schedule.give(state.instruction, kind, phrase, agents, hold, instructed.rules)
    env, ended = instructed.env, clock.switched
    after = replace(
        state,
        idle=state.idle | ended,
        observation=jnp.where(ended, env.observe(state.state), state.observation),
        available=jnp.where(ended, env.available(state.state), state.available),
        instruction=clock.instruction,
    )
    return after, clock
