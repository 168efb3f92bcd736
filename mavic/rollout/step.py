"""One tick: idle agents decide, the environment moves, the instruction clock advances."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax.numpy as jnp

from mavic.envs import api
from mavic.envs.api import Env
from mavic.instruct import reward, schedule
from mavic.rollout import threefry
from mavic.types import (
    AlsoHeld,
    Array,
    Bool,
    Float,
    InstructedState,
    Instruction,
    Int,
    Phrases,
    Rules,
    Schedule,
    Tick,
    Timestep,
    assert_rank,
    record,
    replace,
    static,
)

# The drill's number is newer than the others. It is drawn behind the environment's key, so that every episode of
# earlier versions is played again bit for bit.
LATER_DRAWS = 1


@record
class InstructedEnv:
    """An environment with its instructions: everything that defines an episode, except the policy."""

    env: Env
    rules: Rules
    schedule: Schedule
    phrases: Phrases
    also: Array | None = None
    """[] The kind of a second instruction, which holds from the start of every episode to its end; 0: none at first.
    None: the program has no room for a second instruction."""
    judges_work: bool = static(default=True)
    """Whether choices are judged by the work that they would do. This costs time in every tick. Disable it only if
    training enforces no instruction and never reads `forbidden`, which is then all False."""


class _EpisodeDraws(NamedTuple):
    """The random numbers that an episode starts with."""

    state: Array  # key of the first state
    draws: Array  # [DRAWS] for an instruction that holds from the start
    key: Array  # of the ticks


def draw_episode(key: Array) -> _EpisodeDraws:
    """Return an episode's first random numbers, drawn from its key."""
    state, draws, key = threefry.split(key, 3)
    return _EpisodeDraws(state=state, draws=threefry.uniform(draws, schedule.DRAWS), key=key)


def reset(instructed: InstructedEnv, key: Array) -> InstructedState:
    """Return the first state of an episode, in which every agent decides.

    Args:
        instructed: The environment and its instructions.
        key: The episode's key.
    """
    return begin(instructed, draw_episode(key))


def begin(instructed: InstructedEnv, drawn: _EpisodeDraws, state: Any = None) -> InstructedState:
    """Return the first state of an episode.

    Args:
        instructed: The environment and its instructions.
        drawn: The episode's first random numbers, from `draw_episode`.
        state: The environment's first state; None: it is made here.
    """
    env = instructed.env
    state = env.reset(drawn.state) if state is None else state
    no_macro = jnp.full(len(env.agents), -1, jnp.int32)
    instruction = schedule.begin(
        drawn.draws,
        schedule.possible_kinds(env.check(state), instructed.rules),
        instructed.rules,
        instructed.schedule,
        instructed.phrases,
    )
    also = None
    if instructed.also is not None:
        # An instruction that holds from the start needs no length, so that number chooses the second one's phrase.
        also = schedule.held_from_start(
            instructed.also,
            drawn.draws[3],
            env.check(state),
            instructed.rules,
            instructed.schedule,
            instructed.phrases,
        )
    choices = choices_of(instructed, state, instruction, also)
    return InstructedState(
        state=state,
        macro=no_macro,
        last_macro=no_macro,
        idle=jnp.ones(len(env.agents), bool),
        observation=env.observe(state),
        available=choices.available,
        forbidden=choices.forbidden,
        instruction=instruction,
        time=jnp.int32(0),
        key=drawn.key,
        also=also,
        holds=reward.predicates_in(env, state, instructed.rules),
    )


class _Choices(NamedTuple):
    """The choices of agents in a state, [N, M] each."""

    available: Array  # what the environment offers, less what an enforced instruction forbids
    forbidden: Array  # what the environment offers and the instruction forbids, enforced or not


def choices_of(
    instructed: InstructedEnv, state: Any, instruction: Instruction, also: Instruction | None = None
) -> _Choices:
    """Return what each agent may choose, and what the instructions forbid.

    Args:
        instructed: The environment and its instructions.
        state: A state of the environment.
        instruction: The one that holds.
        also: A second one that holds beside it.
    """
    env = instructed.env
    offered = env.available(state)
    if not instructed.judges_work:
        return _Choices(offered, jnp.zeros_like(offered))
    effective = api.effective_macros(env, state)
    holds = reward.predicates_in(env, state, instructed.rules)
    allowed = reward.allowed_macros(instruction, effective, instructed.rules, holds)
    bound = allowed | ~instruction.enforced
    if also is not None:
        besides = reward.allowed_macros(also, effective, instructed.rules, holds)
        bound &= besides | ~also.enforced
        allowed &= besides
    return _Choices(reward.enforce(offered, bound), offered & ~allowed)


def shielded(instructed: InstructedEnv, shield: bool = True) -> InstructedEnv:
    """Return the environment with the shield on or off. The shield enforces every instruction."""
    clock = instructed.schedule
    return replace(instructed, schedule=replace(clock, shield=jnp.full_like(clock.shield, shield)))


def draws_for(state: InstructedState) -> Array:
    """Return the uniform numbers [N + DRAWS] of this tick: one per agent for its choice, then those of the clock.

    They depend only on the episode's key and the time, so an episode is the same in any batch.
    """
    key, block = threefry.fold_in(state.key, state.time), _key_block(state)
    numbers = threefry.uniform(key, block + 1 + LATER_DRAWS)
    return jnp.concatenate([numbers[:block], numbers[block + 1 :]])


def _tick_key(state: InstructedState) -> Array:
    """Return the environment's key in this tick.

    It is a cipher block that `draws_for` leaves out, so the environment's random numbers are independent of those of
    the agents and the clock.
    """
    return threefry.fold_in(threefry.fold_in(state.key, state.time), _key_block(state))


def _key_block(state: InstructedState) -> int:
    return state.macro.shape[0] + schedule.DRAWS - LATER_DRAWS


def step(
    instructed: InstructedEnv,
    state: InstructedState,
    choice: Int[Array, " N"],
    draws: Float[Array, " DRAWS"],
) -> tuple[InstructedState, Timestep]:
    """Run one tick. Return the next state and what happened.

    The reward is paid under the old instruction. Then the instruction may change, which ends every running macro (D11).
    A second instruction (`state.also`) is paid, judged and ended like the first. While it holds, the schedule gives no
    other.

    Args:
        instructed: The environment and its instructions.
        state: Before the tick.
        choice: The macros that idle agents start. The others continue theirs.
        draws: The clock's random numbers, the last of `draws_for`.
    """
    assert_rank("N", choice=choice, idle=state.idle)
    assert_rank("DRAWS", draws=draws)
    env, rules, instruction, also = instructed.env, instructed.rules, state.instruction, state.also
    held = (instruction,) if also is None else (instruction, also)
    macro = jnp.where(state.idle, choice, state.macro)
    last_macro = jnp.where(state.idle, state.macro, state.last_macro)
    effect = functools.reduce(jnp.maximum, (rules.effect[one.kind] for one in held))
    tick = env.tick(_tick_key(state), state.state, macro, state.idle, effect)

    complied = tuple(
        reward.comply(one, macro, tick.effective_macro, rules, state.holds) for one in held
    )
    paid = reward.pay(held, tick.reward, complied, state.idle, tick.events, rules)

    cut = state.time + 1 >= env.horizon
    truncated = ~tick.terminal & (cut if tick.truncated is None else cut | tick.truncated)
    over = tick.terminal | truncated
    clocks = _clock_updates(instructed, held, complied, state.idle, tick, over, draws)
    after_tick = tuple(clock.instruction for clock in clocks)
    ended = tick.ended | _any(clock.changed for clock in clocks) | clocks[0].spurious | over
    seen = env.observe(tick.state)
    choices = choices_of(instructed, tick.state, *after_tick)
    timestep = Timestep(
        observation=state.observation,
        available=state.available,
        forbidden=state.forbidden,
        last_macro=last_macro,
        macro=macro,
        fresh=state.idle,
        kind=instruction.kind,
        phrase=instruction.phrase,
        context=functools.reduce(jnp.maximum, (one.context for one in held)),
        reward=paid,
        task_reward=tick.reward.mean(),
        complied=complied[0],
        ended=ended,
        unfinished=over & ~tick.ended,
        # An event that resolves an instruction is part of what was asked, so the target is not corrected there (B12).
        switched=_any(clock.changed & ~clock.resolved for clock in clocks),
        terminal=tick.terminal | (truncated & env.horizon_ends),
        bootstraps_from_self=tick.terminal & _any(rules.replaces[one.kind] for one in held),
        truncated=truncated,
        events=tick.events,
        closed=clocks[0].closed,
        followed=clocks[0].followed,
        next_observation=seen,
        time=state.time,
        alive=jnp.asarray(True),
        also=None if also is None else _also_held(also, complied[1], clocks[1]),
    )
    after = replace(
        state,
        state=tick.state,
        macro=macro,
        last_macro=last_macro,
        idle=ended,
        observation=jnp.where(ended[:, None], seen, state.observation),
        available=jnp.where(ended[:, None], choices.available, state.available),
        forbidden=jnp.where(ended[:, None], choices.forbidden, state.forbidden),
        instruction=after_tick[0],
        time=state.time + 1,
        also=None if also is None else after_tick[1],
        holds=seen_anew(instructed, tick.state, ended, state.holds),
    )
    return after, timestep


def seen_anew(
    instructed: InstructedEnv, state: Any, decides: Bool[Array, "*agents"], before: Array | None
) -> Array | None:
    """Return the predicates [N, M, Q] by which choices are judged: those of the state in which an agent decides.

    Args:
        instructed: The environment and its instructions.
        state: Its state now.
        decides: [N] the agents that decide now, or one for all.
        before: The predicates of the last decisions; None if no kind depends on one.
    """
    now = reward.predicates_in(instructed.env, state, instructed.rules)
    if before is None or now is None:
        return None
    return jnp.where(decides[..., None, None], now, before)


def _clock_updates(
    instructed: InstructedEnv,
    held: tuple[Instruction, ...],
    complied: tuple[Array, ...],
    fresh: Bool[Array, " N"],
    tick: Tick,
    over: Bool[Array, ""],
    draws: Float[Array, " DRAWS"],
) -> tuple[schedule.ClockUpdate, ...]:
    """Return how a tick changed each instruction that holds: one, or two that may hold together.

    The schedule fills only the first place. It gives no instruction while a second one holds.
    """
    possible = schedule.possible_kinds(instructed.env.check(tick.state), instructed.rules)
    arriving = [possible]
    if len(held) > 1:
        arriving = [possible & ~(held[1].kind > 0).any(), jnp.zeros_like(possible)]
    return tuple(
        schedule.advance(
            draws,
            one,
            met,
            fresh,
            tick.events,
            kinds,
            over,
            instructed.rules,
            instructed.schedule,
            instructed.phrases,
        )
        for one, met, kinds in zip(held, complied, arriving, strict=True)
    )


def _also_held(also: Instruction, complied: Array, clock: schedule.ClockUpdate) -> AlsoHeld:
    return AlsoHeld(
        kind=also.kind,
        phrase=also.phrase,
        complied=complied,
        closed=clock.closed,
        followed=clock.followed,
    )


def _any(flags: Iterable[Array]) -> Array:
    """Return where any of the flags holds."""
    return functools.reduce(operator.or_, flags)


def interrupt(
    instructed: InstructedEnv,
    state: InstructedState,
    kind: Array,
    phrase: Array,
    agents: Array,
    hold: Array,
    *,
    also: bool = False,
) -> tuple[InstructedState, schedule.ClockUpdate]:
    """Give a person's instruction between two ticks. As after a change by the clock, every agent observes and decides.

    Args:
        instructed: The environment and its instructions.
        state: Between the two ticks.
        kind: The kind of the instruction. 0 ends the active one.
        phrase: The phrase that the addressed agents hear.
        agents: bool [N], the addressed agents.
        hold: How many ticks it holds.
        also: Whether to give or end the second instruction. The first one then holds on. Call
            `mavic.instruct.pairs.conflict` before, to learn whether the two can hold together.

    Returns:
        The next state, and an update that says whether the instruction that ended was followed.
    """
    shield = instructed.schedule.shield
    before = state.instruction if not also else state.also or schedule.no_instruction(len(agents))
    clock = schedule.give(before, kind, phrase, agents, hold, instructed.rules, shield)
    first = state.instruction if also else clock.instruction
    second = clock.instruction if also else state.also
    env, ended = instructed.env, clock.changed
    choices = choices_of(instructed, state.state, first, second)
    after = replace(
        state,
        idle=state.idle | ended,
        observation=jnp.where(ended, env.observe(state.state), state.observation),
        available=jnp.where(ended, choices.available, state.available),
        forbidden=jnp.where(ended, choices.forbidden, state.forbidden),
        instruction=first,
        also=second,
        holds=seen_anew(instructed, state.state, ended, state.holds),
    )
    return after, clock
