"""The instruction clock: how instructions arrive, end, are judged and paid.

Order in a tick: reward under the old instruction, then the change; a change ends every running macro.
"""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs.api import Env, macro_count
from mavic.instructions import InstructionFile, InstructionFileError, Macros, read, suggest
from mavic.types import Array, Instruction, Phrases, Rules, Schedule, record, replace

FOREVER = 1_000_000  # ticks: to the end of any episode
DRAWS = 6  # uniform numbers the clock uses a tick: arrival, kind, phrase, hold, scope, alarm
UNRESOLVED_COUNTS_AFTER = 40  # ticks, D14: an instruction that waits for an event and never saw it

SCHEDULES = {
    # D12. `live` comes and goes again and again; `paper` at most once and to the end; `off` never.
    "off": dict(rate=0.0),
    "live": dict(rate=0.05, hold_min=5, hold_max=20),
    "paper": dict(rate=0.00347, once=True),
    "from_start": dict(rate=0.0, from_start=0.5),
}


def schedule(
    *,
    rate: float = 0.0,
    hold_min: int = FOREVER,
    hold_max: int = FOREVER,
    once: bool = False,
    overlap: bool = False,
    one_agent: bool = False,
    from_start: float = 0.0,
    quiet: float = 0.0,
    lasting: float = 0.0,
    alarm: float = 0.0,
) -> Schedule:
    """A schedule from plain numbers."""
    return Schedule(
        rate=jnp.float32(rate),
        hold_min=jnp.int32(hold_min),
        hold_max=jnp.int32(hold_max),
        once=jnp.asarray(once),
        overlap=jnp.asarray(overlap),
        one_agent=jnp.asarray(one_agent),
        from_start=jnp.float32(from_start),
        quiet=jnp.float32(quiet),
        lasting=jnp.float32(lasting),
        alarm=jnp.float32(alarm),
    )


def rules_of(
    env: Env,
    file: InstructionFile | str | Path,
    *,
    rule: str = "by-kind",
    only: tuple[str, ...] | None = None,
    extras: bool = False,
) -> Rules:
    """Compile a file's rules for a world. `rule`: "by-kind" as the file says, or "add" everywhere (paper-literal);
    `only`: the kinds that are handed out (default all but `extra` ones; with `extras` those too)."""
    if not isinstance(file, InstructionFile):
        file = read(file)
    if rule not in ("by-kind", "add"):
        raise ValueError(f"rule {rule!r} is unknown; {suggest(rule, ('by-kind', 'add'))}")
    if file.world != env.name:
        raise InstructionFileError(
            f"{file.source}: world: the file is for {file.world!r}, this world is {env.name!r}"
        )
    for name in only or ():
        if name not in file.names():
            raise ValueError(f"kind {name!r} is unknown; {suggest(name, file.names())}")
    kinds, agents, macros = len(file.kinds) + 1, len(env.agents), macro_count(env)
    allowed = np.ones((kinds, agents, macros), bool)
    addressed = np.zeros((kinds, agents), bool)
    lists_allowed = np.array([False] + [kind.allow is not None for kind in file.kinds])
    outcome = np.zeros((kinds, len(env.events)), np.float32)
    condition, effect = np.zeros(kinds, np.int32), np.zeros(kinds, np.int32)
    for number, kind in enumerate(file.kinds, start=1):
        where = f"{file.source}: kinds.{kind.name}"
        for name in kind.agents or env.agents:
            addressed[number, _index(name, env.agents, f"{where}.agents")] = True
        if kind.allow is not None:
            allowed[number] = _named(kind.allow, env, f"{where}.allow", unnamed=True)
        if kind.forbid is not None:
            allowed[number] = ~_named(kind.forbid, env, f"{where}.forbid", unnamed=False)
        for event, sign in kind.resolved_by.items():
            outcome[number, _index(event, env.events, f"{where}.resolved_by")] = sign
        if kind.given_if is not None:
            condition[number] = 1 + _index(kind.given_if, env.conditions, f"{where}.given_if")
        if kind.effect is not None:
            effect[number] = 1 + _index(kind.effect, env.effects, f"{where}.effect")
    every = file.kinds
    handed_out = only or [kind.name for kind in every if extras or not kind.extra]

    def column(values: list, null: float = 0.0) -> Array:
        return jnp.asarray(np.array([null, *values], np.float32))

    return Rules(
        allowed=jnp.asarray(allowed),
        lists_allowed=jnp.asarray(lists_allowed),
        addressed=jnp.asarray(addressed),
        replaces=jnp.asarray(
            np.array([False] + [k.rule == "replace" and rule == "by-kind" for k in every])
        ),
        pay=column([k.pay for k in every]),
        penalty=column([k.penalty for k in every]),
        bonus=column([k.bonus for k in every]),
        outcome=jnp.asarray(outcome),
        credit=column([k.credit for k in every]),
        condition=jnp.asarray(condition),
        effect=jnp.asarray(effect),
        given=jnp.asarray(np.array([False] + [k.name in handed_out for k in every])),
        names=("none", *file.names()),
    )


def _index(name: str, names: tuple[str, ...], where: str) -> int:
    if name not in names:
        raise InstructionFileError(f"{where}: {name!r} is unknown; {suggest(name, names)}")
    return names.index(name)


def _named(macros: Macros, env: Env, where: str, unnamed: bool) -> np.ndarray:
    """[N, M] the macros listed; an agent that a table by agent does not name gets `unnamed` throughout."""
    listed = np.zeros((len(env.agents), macro_count(env)), bool)
    by_agent = macros if isinstance(macros, dict) else None
    for agent in by_agent or ():
        _index(agent, env.agents, where)
    for number, agent in enumerate(env.agents):
        own = tuple(macro.name for macro in env.macros[number])
        if by_agent is None:
            shared = {macro.name for enum in env.macros for macro in enum}
            for name in macros:
                if name in own:
                    listed[number, own.index(name)] = True
                elif name not in shared:
                    _index(name, own, where)
        elif agent in by_agent:
            for name in by_agent[agent]:
                listed[number, _index(name, own, f"{where}.{agent}")] = True
        else:
            listed[number] = unnamed
    return listed


def nobody(agents: int) -> Instruction:
    """No instruction."""
    zeros = jnp.zeros(agents, jnp.int32)
    return Instruction(
        kind=zeros,
        phrase=zeros,
        left=jnp.int32(0),
        held=jnp.int32(0),
        obeyed=jnp.asarray(True),
        decided=jnp.asarray(False),
        given=jnp.int32(0),
        spared=jnp.asarray(False),
    )


def begin(
    draws: Array, possible: Array, rules: Rules, schedule: Schedule, phrases: Phrases
) -> Instruction:
    """The instruction at reset: none, or one for the whole episode under `from_start`."""
    silence = replace(nobody(rules.addressed.shape[1]), spared=draws[5] < schedule.quiet)
    drawn, found = _draw(draws, possible, silence, rules, schedule, phrases)
    drawn = replace(drawn, left=jnp.int32(FOREVER))
    return _choose(found & ~silence.spared & (draws[0] < schedule.from_start), drawn, silence)


def possible_kinds(conditions: Array, rules: Rules) -> Array:
    """[C] kinds that may be given in a state with these conditions."""
    holds = jnp.concatenate([jnp.ones(1, bool), conditions])
    return rules.given & holds[rules.condition]


def comply(instruction: Instruction, macro: Array, judged: Array, rules: Rules) -> Array:
    """[N] whether what each agent does is allowed; true for those not addressed.

    A macro may do another's work (`judged`: a step to the left against a board works on it). Who is told what to do
    obeys by either name; who is told what not to do must keep away under both."""
    agents, kind = jnp.arange(judged.shape[0]), instruction.kind
    by_name, by_work = rules.allowed[kind, agents, macro], rules.allowed[kind, agents, judged]
    return jnp.where(rules.lists_allowed[kind], by_name | by_work, by_name & by_work)


def verdict(kind: Array, events: Array, rules: Rules) -> Array:
    """1: an event fulfils the kind, -1: one breaks it, 0: neither. What happens in the same tick happens first
    together, so fulfilling wins."""
    met = rules.outcome[kind] * (events > 0)
    return jnp.where((met > 0).any(-1), 1.0, jnp.where((met < 0).any(-1), -1.0, 0.0))


def pay(
    instruction: Instruction,
    task: Array,
    complied: Array,
    fresh: Array,
    events: Array,
    rules: Rules,
) -> Array:
    """[N] reward under the instruction that governs this tick (D13)."""
    kind = instruction.kind
    once = jnp.where(complied, rules.bonus[kind], rules.penalty[kind]) * fresh
    each_tick = jnp.where(complied, rules.pay[kind], -rules.pay[kind])
    reward = jnp.where(rules.replaces[kind], each_tick, task + jnp.where(kind > 0, once, 0.0))
    return reward + rules.credit[kind] * verdict(kind, events, rules)


@record
class Judgement:
    """What the clock says after a tick."""

    instruction: Instruction
    switched: Array  # [] bool: the joint instruction changed
    resolved: Array  # [] bool: it ended by an event that fulfils or breaks it, not by the clock
    alarmed: Array  # [] bool: a false alarm
    closed: Array  # [] kind judged now, 0 if none
    followed: Array  # [] bool


def advance(
    draws: Array,
    instruction: Instruction,
    complied: Array,
    fresh: Array,
    events: Array,
    possible: Array,
    over: Array,
    rules: Rules,
    schedule: Schedule,
    phrases: Phrases,
) -> Judgement:
    """Judge the tick and move the clock: the instruction ends, another arrives, or nothing changes.

    `over`: the episode ends with this tick, so what was active is judged and nothing arrives.
    """
    addressed = instruction.kind > 0
    active = addressed.any()
    kind = instruction.kind.max()  # one clock: all addressed agents hold the same kind
    decides = addressed & fresh
    now = replace(
        instruction,
        obeyed=instruction.obeyed & ~(decides & ~complied).any(),
        decided=instruction.decided | decides.any(),
        held=instruction.held + active,
        left=instruction.left - active,
    )
    awaits = (rules.outcome[kind] != 0).any()
    sign = verdict(kind, events, rules)
    resolved = active & (sign != 0)
    ends = active & (resolved | (now.left <= 0))

    may = ~over & ~now.spared & ~(schedule.once & (now.given > 0))
    may &= ~active | (schedule.overlap & ~ends)
    new, found = _draw(
        draws, possible & (jnp.arange(possible.shape[0]) != kind), now, rules, schedule, phrases
    )
    arrives = may & found & (draws[0] < schedule.rate)

    judged = active & (ends | arrives | over)
    counts = now.decided & (~awaits | resolved | (now.held >= UNRESOLVED_COUNTS_AFTER))
    silence = replace(nobody(addressed.shape[0]), given=now.given, spared=now.spared)
    after = _choose(arrives, new, _choose(ends, silence, now))
    return Judgement(
        instruction=after,
        switched=(arrives | ends) & ~over,
        resolved=resolved,
        alarmed=~now.spared & (draws[5] < schedule.alarm),
        closed=jnp.where(judged & counts, kind, 0),
        followed=judged & counts & now.obeyed & (~awaits | (sign > 0)),
    )


def give(
    instruction: Instruction, kind: Array, phrase: Array, agents: Array, hold: Array, rules: Rules
) -> Judgement:
    """Give `kind` now to those of `agents` [N] it is meant for, for `hold` ticks; kind 0 ends what is active.

    What was active is judged as if replaced under `overlap`; a word that reaches nobody is silence.
    """
    addressed = instruction.kind > 0
    active, old = addressed.any(), instruction.kind.max()
    awaits = (rules.outcome[old] != 0).any()
    counts = instruction.decided & (~awaits | (instruction.held >= UNRESOLVED_COUNTS_AFTER))
    target = agents & rules.addressed[kind]
    new = Instruction(
        kind=jnp.where(target, kind, 0).astype(jnp.int32),
        phrase=jnp.where(target, phrase, 0).astype(jnp.int32),
        left=jnp.where(target.any(), hold, 0).astype(jnp.int32),
        held=jnp.int32(0),
        obeyed=jnp.asarray(True),
        decided=jnp.asarray(False),
        given=instruction.given + target.any(),
        spared=instruction.spared,
    )
    return Judgement(
        instruction=new,
        switched=active | target.any(),
        resolved=jnp.asarray(False),
        alarmed=jnp.asarray(False),
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
) -> tuple[Instruction, Array]:
    """A new instruction, uniform over possible kinds, then phrases; and whether there was one to give."""
    rank = jnp.floor(draws[1] * possible.sum())
    kind = jnp.argmax(jnp.cumsum(possible) > rank).astype(jnp.int32)
    count = phrases.count[kind]
    phrase = phrases.table[kind, jnp.minimum((draws[2] * count).astype(jnp.int32), count - 1)]
    span = schedule.hold_max - schedule.hold_min + 1
    lasts = ~rules.replaces[kind] & (draws[3] < schedule.lasting)
    rest = (draws[3] - schedule.lasting) / jnp.maximum(1.0 - schedule.lasting, 1e-6)
    length = jnp.where(rules.replaces[kind], draws[3], rest)  # uniform in [0, 1) either way
    hold = schedule.hold_min + jnp.minimum((length * span).astype(jnp.int32), span - 1)
    awaits = (rules.outcome[kind] != 0).any()
    meant = rules.addressed[kind]
    rank = jnp.floor(draws[4] * meant.sum())
    chosen = jnp.arange(meant.shape[0]) == jnp.argmax(jnp.cumsum(meant) > rank)
    target = meant & (chosen | ~schedule.one_agent)
    new = Instruction(
        kind=jnp.where(target, kind, 0),
        phrase=jnp.where(target, phrase, 0),
        left=jnp.where(awaits | lasts, FOREVER, hold),
        held=jnp.int32(0),
        obeyed=jnp.asarray(True),
        decided=jnp.asarray(False),
        given=instruction.given + 1,
        spared=instruction.spared,
    )
    return new, possible.any()


def _choose(condition: Array, this: Instruction, other: Instruction) -> Instruction:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), this, other)
