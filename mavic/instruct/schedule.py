"""The instruction clock: when instructions arrive and end, and whether they were followed (D11, D12, D14)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from mavic.instruct.reward import verdict
from mavic.ranges import FOREVER, RangeError, Share, Ticks, check_arguments
from mavic.types import (
    Array,
    Bool,
    Float,
    Instruction,
    Phrases,
    Rules,
    Schedule,
    assert_rank,
    record,
    replace,
)

# Uniform numbers that the clock uses in a tick: arrival, kind, phrase, hold, scope, spurious interrupt, drill.
DRAWS = 7
UNRESOLVED_COUNTS_AFTER = 40  # ticks (D14): an instruction that no event resolved counts then

# D12. A row holds arguments of `make_schedule`. `live`: instructions come and go. `paper`: at most one per episode,
# held to its end. Options such as --rate and --hold replace numbers of a row.
SCHEDULES: dict[str, dict[str, Any]] = {
    "live": dict(rate=0.05, hold_min=5, hold_max=20),
    "paper": dict(rate=0.00347, once=True),
}
# Schedules that a method trains under whatever the condition says. `off`: no instruction. `from_start`: half of the
# episodes hold one kind from reset to end.
METHOD_SCHEDULES: dict[str, dict[str, Any]] = {
    "off": dict(rate=0.0),
    "from_start": dict(rate=0.0, from_start=0.5),
}


def make_schedule(
    *,
    rate: Share = 0.0,
    hold_min: Ticks = FOREVER,
    hold_max: Ticks = FOREVER,
    once: bool = False,
    overlap: bool = False,
    one_agent: Share = 0.0,
    from_start: Share = 0.0,
    from_start_adds: bool = False,
    single_instruction: bool = False,
    uninstructed_episode_prob: Share = 0.0,
    hold_to_end_prob: Share = 0.0,
    spurious_interrupt_prob: Share = 0.0,
    drill_prob: Share = 0.0,
    shield: bool | Array = False,
) -> Schedule:
    """Return a schedule from plain numbers. The default gives no instructions. `Schedule` explains the arguments."""
    check_arguments(make_schedule, locals())
    if hold_min > hold_max:
        raise RangeError(f"hold_min must be at most hold_max ({hold_max}), not {hold_min}")
    return Schedule(
        rate=jnp.float32(rate),
        hold_min=jnp.int32(hold_min),
        hold_max=jnp.int32(hold_max),
        once=jnp.asarray(once),
        overlap=jnp.asarray(overlap),
        one_agent=jnp.float32(one_agent),
        from_start=jnp.float32(from_start),
        from_start_adds=jnp.asarray(from_start_adds),
        single_instruction=jnp.asarray(single_instruction),
        uninstructed_episode_prob=jnp.float32(uninstructed_episode_prob),
        hold_to_end_prob=jnp.float32(hold_to_end_prob),
        spurious_interrupt_prob=jnp.float32(spurious_interrupt_prob),
        drill_prob=jnp.float32(drill_prob),
        shield=jnp.asarray(shield),
    )


def no_instruction(agents: int) -> Instruction:
    """Return the empty instruction: no agent is addressed."""
    zeros = jnp.zeros(agents, jnp.int32)
    return Instruction(
        kind=zeros,
        phrase=zeros,
        ticks_left=jnp.int32(0),
        ticks_held=jnp.int32(0),
        obeyed=jnp.asarray(True),
        decided=jnp.asarray(False),
        given=jnp.int32(0),
        uninstructed=jnp.asarray(False),
        context=zeros,
        enforced=jnp.asarray(False),
    )


def begin(
    draws: Array, possible: Array, rules: Rules, schedule: Schedule, phrases: Phrases
) -> Instruction:
    """Return the instruction at reset: none, or one for the whole episode (`from_start`).

    Args:
        draws: The clock's uniform numbers, [DRAWS].
        possible: Bool [C], the kinds that may be given.
        rules: What each kind asks for.
        schedule: When instructions arrive.
        phrases: The phrases of each kind.
    """
    silence = replace(
        no_instruction(rules.addressed.shape[1]),
        uninstructed=draws[5] < schedule.uninstructed_episode_prob,
    )
    possible = possible & ~(schedule.from_start_adds & rules.replaces)
    drawn, found = _draw(draws, possible, silence, rules, schedule, phrases, to_end=True)
    drawn = replace(drawn, uninstructed=drawn.uninstructed | schedule.single_instruction)
    return _choose(found & ~silence.uninstructed & (draws[0] < schedule.from_start), drawn, silence)


def held_from_start(
    kind: Array,
    draw: Array,
    preconditions: Array,
    rules: Rules,
    schedule: Schedule,
    phrases: Phrases,
) -> Instruction:
    """Return an instruction for the whole episode, to all agents that its kind is meant for.

    Args:
        kind: The kind; 0 gives no instruction. The schedule need not give this kind, but its precondition must hold.
        draw: A number in [0, 1) that chooses the phrase.
        preconditions: Which of the environment's preconditions hold.
        rules: What each kind asks for.
        schedule: Its `shield` says whether the instruction is enforced.
        phrases: The phrases of each kind.
    """
    kind = jnp.where(possible_kinds(preconditions, rules, scheduled=False)[kind], kind, 0)
    agents = rules.addressed.shape[1]
    return give(
        no_instruction(agents),
        kind,
        _phrase_of(kind, draw, phrases),
        jnp.ones(agents, bool),
        jnp.int32(FOREVER),
        rules,
        schedule.shield,
    ).instruction


def possible_kinds(
    preconditions: Bool[Array, " preconditions"], rules: Rules, *, scheduled: bool = True
) -> Bool[Array, " C"]:
    """Return bool [C], the kinds that may be given in a state.

    Args:
        preconditions: Which of the environment's preconditions hold in the state.
        rules: The kinds.
        scheduled: Only kinds that the schedule gives.
    """
    assert_rank("preconditions", preconditions=preconditions)
    holds = jnp.concatenate([jnp.ones(1, bool), preconditions])
    permitted = holds[rules.precondition]
    return rules.given & permitted if scheduled else permitted


@record
class ClockUpdate:
    """What the clock did after a tick."""

    instruction: Instruction
    changed: Array  # [] bool: the instruction ended, or another replaced it
    resolved: Array  # [] bool: an event ended the instruction by fulfilling or breaking it
    spurious: Array  # [] bool: all macros end without an instruction
    closed: Array  # [] kind of the instruction that ended and is counted now; 0 for none
    followed: Array  # [] bool: that instruction was followed


def advance(
    draws: Float[Array, " DRAWS"],
    instruction: Instruction,
    complied: Bool[Array, " N"],
    fresh: Bool[Array, " N"],
    events: Float[Array, " V"],
    possible: Bool[Array, " C"],
    over: Bool[Array, ""],
    rules: Rules,
    schedule: Schedule,
    phrases: Phrases,
) -> ClockUpdate:
    """Advance the clock by one tick: the instruction ends, another arrives, or it stays.

    Args:
        draws: The clock's uniform numbers.
        instruction: The instruction that held in this tick.
        complied: Whether each agent's macro was allowed.
        fresh: Which agents chose a macro in this tick.
        events: How often each event happened in this tick.
        possible: The kinds that may be given in the state after the tick.
        over: Whether the episode ends with this tick. Then no instruction arrives.
        rules: What each kind asks for.
        schedule: When instructions arrive and end.
        phrases: The phrases of each kind.
    """
    assert_rank("DRAWS", draws=draws)
    assert_rank("N", kind=instruction.kind, complied=complied, fresh=fresh)
    assert_rank("V", events=events)
    assert_rank("C", possible=possible)
    assert_rank("", over=over)
    addressed = instruction.kind > 0
    active = addressed.any()
    kind = instruction.kind.max()  # one clock: all addressed agents have the same kind
    decides = addressed & fresh
    now = replace(
        instruction,
        obeyed=instruction.obeyed & ~(decides & ~complied).any(),
        decided=instruction.decided | decides.any(),
        ticks_held=instruction.ticks_held + active,
        ticks_left=instruction.ticks_left - active,
    )
    awaits = (rules.outcome[kind] != 0).any()
    sign = verdict(kind, events, rules)
    resolved = active & (sign != 0)
    ends = active & (resolved | (now.ticks_left <= 0))

    may = ~over & ~now.uninstructed & ~(schedule.once & (now.given > 0))
    may &= ~active | (schedule.overlap & ~ends)
    new, found = _draw(
        draws, possible & (jnp.arange(possible.shape[0]) != kind), now, rules, schedule, phrases
    )
    arrives = may & found & (draws[0] < schedule.rate)

    closing = active & (ends | arrives | over)
    counts = now.decided & (~awaits | resolved | (now.ticks_held >= UNRESOLVED_COUNTS_AFTER))
    silence = replace(
        no_instruction(addressed.shape[0]), given=now.given, uninstructed=now.uninstructed
    )
    after = _choose(arrives, new, _choose(ends, silence, now))
    return ClockUpdate(
        instruction=after,
        changed=(arrives | ends) & ~over,
        resolved=resolved,
        spurious=~now.uninstructed & (draws[5] < schedule.spurious_interrupt_prob),
        closed=jnp.where(closing & counts, kind, 0),
        followed=closing & counts & now.obeyed & (~awaits | (sign > 0)),
    )


def give(
    instruction: Instruction,
    kind: Array,
    phrase: Array,
    agents: Array,
    hold: Array,
    rules: Rules,
    enforced: Array | bool = False,
) -> ClockUpdate:
    """Give an instruction now. The active one is counted as if the schedule had replaced it.

    Args:
        instruction: The active instruction.
        kind: The new kind; 0 only ends the active instruction.
        phrase: The new phrase.
        agents: Bool [N], the agents that are addressed if the kind is meant for them. Without any, no instruction
            follows the active one.
        hold: For how many ticks it holds.
        rules: What each kind asks for.
        enforced: Whether forbidden macros are unavailable while it holds.
    """
    addressed = instruction.kind > 0
    active, old = addressed.any(), instruction.kind.max()
    awaits = (rules.outcome[old] != 0).any()
    counts = instruction.decided & (~awaits | (instruction.ticks_held >= UNRESOLVED_COUNTS_AFTER))
    target = agents & rules.addressed[kind]
    new = Instruction(
        kind=jnp.where(target, kind, 0).astype(jnp.int32),
        phrase=jnp.where(target, phrase, 0).astype(jnp.int32),
        ticks_left=jnp.where(target.any(), hold, 0).astype(jnp.int32),
        ticks_held=jnp.int32(0),
        obeyed=jnp.asarray(True),
        decided=jnp.asarray(False),
        given=instruction.given + target.any(),
        uninstructed=instruction.uninstructed,
        context=contexts_of(target, rules.replaces[kind]),
        enforced=target.any() & enforced,
    )
    return ClockUpdate(
        instruction=new,
        changed=active | target.any(),
        resolved=jnp.asarray(False),
        spurious=jnp.asarray(False),
        closed=jnp.where(active & counts, old, 0),
        followed=active & counts & instruction.obeyed & ~awaits,
    )


def _draw(
    draws: Array,
    possible: Array,
    instruction: Instruction,
    rules: Rules,
    schedule: Schedule,
    phrases: Phrases,
    to_end: bool = False,
) -> tuple[Instruction, Array]:
    """Return a new instruction and whether any was possible. Kinds are drawn by their weights, phrases uniformly.

    With `to_end` it holds to the end of the episode. Of the prohibitions with rule add that hold to the end, a share of
    `drill_prob` is enforced, so that the team visits the states in which it must use something else.
    """
    possible &= rules.weight > 0
    upto = jnp.cumsum(possible * rules.weight)
    kind = jnp.argmax(upto > draws[1] * upto[-1]).astype(jnp.int32)
    phrase = _phrase_of(kind, draws[2], phrases)
    span = schedule.hold_max - schedule.hold_min + 1
    lasts = ~rules.replaces[kind] & (draws[3] < schedule.hold_to_end_prob)
    rest = (draws[3] - schedule.hold_to_end_prob) / jnp.maximum(
        1.0 - schedule.hold_to_end_prob, 1e-6
    )
    length = jnp.where(rules.replaces[kind], draws[3], rest)  # uniform in [0, 1) in both cases
    hold = schedule.hold_min + jnp.minimum((length * span).astype(jnp.int32), span - 1)
    drilled = (lasts | to_end) & ~rules.replaces[kind] & ~rules.lists_allowed[kind]
    drilled &= draws[6] < schedule.drill_prob
    awaits = (rules.outcome[kind] != 0).any()
    meant = rules.addressed[kind]
    alone = draws[4] < schedule.one_agent
    rank = jnp.floor(draws[4] / jnp.maximum(schedule.one_agent, 1e-6) * meant.sum())
    chosen = jnp.arange(meant.shape[0]) == jnp.argmax(jnp.cumsum(meant) > rank)
    target = meant & (chosen | ~alone)
    new = Instruction(
        kind=jnp.where(target, kind, 0),
        phrase=jnp.where(target, phrase, 0),
        ticks_left=jnp.where(awaits | lasts | to_end, FOREVER, hold),
        ticks_held=jnp.int32(0),
        obeyed=jnp.asarray(True),
        decided=jnp.asarray(False),
        given=instruction.given + 1,
        uninstructed=instruction.uninstructed,
        context=contexts_of(target, rules.replaces[kind]),
        enforced=drilled | schedule.shield,
    )
    return new, possible.any()


def _phrase_of(kind: Array, draw: Array, phrases: Phrases) -> Array:
    """Return one of a kind's phrases, chosen by a uniform number."""
    count = phrases.count[kind]
    return phrases.table[kind, jnp.minimum((draw * count).astype(jnp.int32), count - 1)]


def contexts_of(target: Array, replaces: Array) -> Array:
    """Return the context of each agent [..., N] under an instruction: 0, 1 or 2, as `mavic.types.CONTEXTS` says.

    An agent that is not addressed goes on with the task, whatever is asked of its teammates.

    Args:
        target: Bool [..., N], the agents that are addressed.
        replaces: Bool [...], whether the instruction replaces the task.
    """
    own = target & jnp.asarray(replaces)[..., None]
    return jnp.where(target.any(-1, keepdims=True), 1 + own, 0).astype(jnp.int32)


def _choose(condition: Array, this: Instruction, other: Instruction) -> Instruction:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), this, other)
