"""One tick of the world: idle agents decide, the environment moves, the instruction clock strikes."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from mavic.envs.api import Env
from mavic.instruct import reward, schedule
from mavic.rollout import threefry
from mavic.types import Array, InstructedState, Phrases, Rules, Schedule, Timestep, record, replace


@record
class InstructedEnv:
    """All that defines what happens in a world, apart from who acts."""

    env: Env
    rules: Rules
    schedule: Schedule
    phrases: Phrases


class Deal(NamedTuple):
    """What chance gives an episode before it begins."""

    state: Array  # key of the first state
    draws: Array  # [DRAWS] for an instruction that holds from the start
    key: Array  # of the ticks


def deal(key: Array) -> Deal:
    """From the episode's key."""
    state, draws, key = threefry.split(key, 3)
    return Deal(state=state, draws=threefry.uniform(draws, schedule.DRAWS), key=key)


def reset(setting: InstructedEnv, key: Array) -> InstructedState:
    """The first moment of an episode: everybody decides."""
    return enter(setting, deal(key))


def enter(setting: InstructedEnv, dealt: Deal) -> InstructedState:
    """The same, from what was dealt."""
    env = setting.env
    state = env.reset(dealt.state)
    agents = len(env.agents)
    possible = schedule.possible_kinds(env.check(state), setting.rules)
    return InstructedState(
        state=state,
        macro=jnp.full(agents, -1, jnp.int32),
        previous=jnp.full(agents, -1, jnp.int32),
        idle=jnp.ones(agents, bool),
        observation=env.observe(state),
        available=env.available(state),
        instruction=schedule.begin(
            dealt.draws, possible, setting.rules, setting.schedule, setting.phrases
        ),
        time=jnp.int32(0),
        key=dealt.key,
    )


def draws_for(world: InstructedState) -> Array:
    """The uniform numbers of this tick: one an agent for its choice, then the clock's. They depend only on the
    episode's key and the time, so an episode is the same in whatever lane or batch it is played."""
    agents = world.macro.shape[0]
    return threefry.uniform(threefry.fold_in(world.key, world.time), agents + schedule.DRAWS)


def step(
    setting: InstructedEnv, world: InstructedState, choice: Array, draws: Array
) -> tuple[InstructedState, Timestep]:
    """`choice` [N] is taken by idle agents, the others go on; `draws` [DRAWS]: the clock's uniform numbers."""
    env, rules = setting.env, setting.rules
    instruction = world.instruction
    macro = jnp.where(world.idle, choice, world.macro)
    previous = jnp.where(world.idle, world.macro, world.previous)
    tick_key = threefry.fold_in(threefry.fold_in(world.key, world.time), 1)
    tick = env.tick(tick_key, world.state, macro, world.idle, rules.effect[instruction.kind])

    complied = reward.comply(instruction, macro, tick.judged, rules)
    paid = reward.pay(instruction, tick.reward, complied, world.idle, tick.events, rules)

    truncated = ~tick.terminal & (world.time + 1 >= env.horizon)
    over = tick.terminal | truncated
    judgement = schedule.advance(
        draws,
        instruction,
        complied,
        world.idle,
        tick.events,
        schedule.possible_kinds(env.check(tick.state), rules),
        over,
        rules,
        setting.schedule,
        setting.phrases,
    )
    ended = tick.ended | judgement.switched | judgement.alarmed | over
    seen = env.observe(tick.state)
    row = Timestep(
        observation=world.observation,
        available=world.available,
        previous=previous,
        macro=macro,
        fresh=world.idle,
        kind=instruction.kind,
        phrase=instruction.phrase,
        reward=paid,
        task=tick.reward.mean(),
        complied=complied,
        ended=ended,
        broken_off=over & ~tick.ended,
        # what resolves an instruction is part of what it asks, not an interruption of it: its value goes on after it
        switched=judgement.switched & ~judgement.resolved,
        terminal=tick.terminal | (truncated & env.horizon_ends),
        bootstraps_from_self=tick.terminal & rules.replaces[instruction.kind],
        truncated=truncated,
        events=tick.events,
        closed=judgement.closed,
        followed=judgement.followed,
        next_observation=seen,
        time=world.time,
        alive=jnp.asarray(True),
    )
    after = replace(
        world,
        state=tick.state,
        macro=macro,
        previous=previous,
        idle=ended,
        observation=jnp.where(ended[:, None], seen, world.observation),
        available=jnp.where(ended[:, None], env.available(tick.state), world.available),
        instruction=judgement.instruction,
        time=world.time + 1,
    )
    return after, row


def interrupt(
    setting: InstructedEnv,
    world: InstructedState,
    kind: Array,
    phrase: Array,
    agents: Array,
    hold: Array,
) -> tuple[InstructedState, schedule.Judgement]:
    """A person's word between two ticks, with the effect of the clock's: everybody sees anew and decides.

    `agents` [N] bool: to whom; kind 0 ends the active instruction. The judgement says how that one fared.
    """
    judgement = schedule.give(world.instruction, kind, phrase, agents, hold, setting.rules)
    ended = judgement.switched
    after = replace(
        world,
        idle=world.idle | ended,
        observation=jnp.where(ended, setting.env.observe(world.state), world.observation),
        available=jnp.where(ended, setting.env.available(world.state), world.available),
        instruction=judgement.instruction,
    )
    return after, judgement
