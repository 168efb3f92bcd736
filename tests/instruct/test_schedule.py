"""The instruction clock by hand: when an instruction holds, whom it addresses, when it counts and what it pays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from corridor import ARRIVES, FILE, HURRY, PHRASES, RING, RULES, WALK, Corridor, draws

from mavic.experiment.config import ExperimentConfig
from mavic.instruct import reward, schedule, spec
from mavic.instruct.schedule import make_schedule, no_instruction, possible_kinds
from mavic.instruct.spec import InstructionFile
from mavic.ranges import FOREVER
from mavic.types import replace

EVERY = jnp.array([False, True, True, True])
GO = jax.jit(schedule.advance)
BEGIN = jax.jit(schedule.begin)
GIVE = jax.jit(schedule.give)
PAY = jax.jit(reward.pay)
QUIET, BELL, CRASH = (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def advance(
    instruction, clock, *, complied=(1, 1), fresh=(0, 0), events=QUIET, possible=EVERY,
    over=False, rules=RULES, **drawn,
):  # fmt: skip
    return GO(
        draws(**drawn),
        instruction,
        jnp.array(complied, bool),
        jnp.array(fresh, bool),
        jnp.array(events),
        jnp.asarray(possible),
        jnp.asarray(over),
        rules,
        clock,
        PHRASES,
    )


def instruction_of(kind, *, hold=9, agents=(1, 1), **changes):
    """An instruction that has just arrived."""
    target = jnp.array(agents, bool)
    return replace(
        no_instruction(2),
        kind=jnp.where(target, kind, 0),
        phrase=jnp.where(target, 1, 0),
        ticks_left=jnp.int32(hold),
        given=jnp.int32(1),
        **{name: jnp.asarray(value) for name, value in changes.items()},
    )


def governed(clock, ticks, **drawn):
    """The kind that governs each tick, and whether it changed after it."""
    instruction, kinds, changes = no_instruction(2), [], []
    for tick in range(ticks):
        kinds.append(int(instruction.kind.max()))
        update = advance(instruction, clock, **(drawn.get(f"at_{tick}") or drawn.get("always", {})))
        changes.append(bool(update.changed))
        instruction = update.instruction
    return kinds, changes, int(instruction.given)


@pytest.mark.parametrize("hold", [1, 3])
def test_arriving_after_tick_t_it_governs_the_next_hold_ticks(hold):
    clock = make_schedule(rate=0.5, hold_min=hold, hold_max=hold)
    kinds, changes, _ = governed(clock, 8, at_2=ARRIVES)
    assert [t for t, kind in enumerate(kinds) if kind] == list(range(3, 3 + hold))
    assert [t for t, change in enumerate(changes) if change] == [2, 2 + hold]


def test_none_starts_in_the_tick_in_which_another_ends():
    clock = make_schedule(rate=1.0, hold_min=2, hold_max=2)
    kinds, changes, given = governed(clock, 7, always=ARRIVES)
    assert kinds == [0, 1, 1, 0, 1, 1, 0]
    assert changes == [True, False, True, True, False, True, True]
    assert given == 3


def test_the_rate_is_the_chance_of_a_tick():
    clock = make_schedule(rate=0.3, hold_min=5, hold_max=5)
    assert bool(advance(no_instruction(2), clock, arrival=0.29).changed)
    assert not bool(advance(no_instruction(2), clock, arrival=0.31).changed)
    assert not bool(advance(no_instruction(2), make_schedule(), arrival=0.0).changed)


def test_once_means_once_an_episode():
    clock = make_schedule(rate=1.0, hold_min=2, hold_max=2, once=True)
    assert governed(clock, 7, always=ARRIVES) == (
        [0, 1, 1, 0, 0, 0, 0],
        [True, False, True, False, False, False, False],
        1,
    )


def test_overlap_replaces_by_another_kind_only():
    clock = make_schedule(rate=1.0, hold_min=3, hold_max=3, overlap=True)
    assert governed(clock, 5, always=ARRIVES)[0] == [0, WALK, HURRY, WALK, HURRY]
    walk_alone = EVERY & (jnp.arange(4) == WALK)
    instruction = instruction_of(WALK, hold=3)
    for left in (2, 1):
        update = advance(instruction, clock, possible=walk_alone, **ARRIVES)
        assert not bool(update.changed) and int(update.instruction.ticks_left) == left
        instruction = update.instruction


def test_without_overlap_nothing_replaces_a_running_one():
    clock = make_schedule(rate=1.0, hold_min=3, hold_max=3)
    update = advance(instruction_of(WALK, hold=3), clock, **ARRIVES)
    assert not bool(update.changed) and update.instruction.kind.tolist() == [WALK] * 2


def test_under_overlap_too_none_starts_in_the_tick_another_ends():
    clock = make_schedule(rate=1.0, hold_min=3, hold_max=3, overlap=True)
    update = advance(instruction_of(WALK, hold=1), clock, **ARRIVES)
    assert bool(update.changed) and update.instruction.kind.tolist() == [0, 0]


@pytest.mark.parametrize("complied", [True, False])
def test_what_is_replaced_is_judged_and_the_new_one_starts_clean(complied):
    clock = make_schedule(rate=1.0, hold_min=3, hold_max=3, overlap=True)
    update = advance(instruction_of(WALK), clock, fresh=(1, 0), complied=(complied, 1), **ARRIVES)
    assert (int(update.closed), bool(update.followed)) == (WALK, complied)
    new = update.instruction
    assert (int(new.kind.max()), int(new.ticks_held), int(new.ticks_left), int(new.given)) == (
        HURRY,
        0,
        3,
        2,
    )
    assert bool(new.obeyed) and not bool(new.decided)


@pytest.mark.parametrize(("agent", "kinds"), [(0.49, [WALK, 0]), (0.51, [0, WALK])])
def test_one_agent_is_asked_and_the_other_is_not(agent, kinds):
    clock = make_schedule(rate=1.0, hold_min=3, hold_max=3, one_agent=1.0)
    new = advance(no_instruction(2), clock, agent=agent, **ARRIVES).instruction
    assert new.kind.tolist() == kinds
    assert [phrase > 0 for phrase in new.phrase.tolist()] == [kind > 0 for kind in kinds]


@pytest.mark.parametrize("agent", [0.0, 0.5, 0.999])
@pytest.mark.parametrize("one_agent", [0.0, 0.6, 1.0])
def test_a_kind_never_reaches_those_it_is_not_meant_for(agent, one_agent):
    clock = make_schedule(rate=1.0, one_agent=one_agent)
    ring_alone = jnp.arange(4) == RING
    new = advance(no_instruction(2), clock, possible=ring_alone, agent=agent, **ARRIVES).instruction
    assert new.kind.tolist() == [RING, 0] and new.phrase.tolist() == [6, 0]


def test_a_share_of_the_instructions_is_for_one_agent_alone():
    clock = make_schedule(rate=1.0, one_agent=0.5)
    asked = [
        (advance(no_instruction(2), clock, agent=draw, **ARRIVES).instruction.kind > 0).tolist()
        for draw in (0.1, 0.4, 0.6, 0.9)
    ]
    assert asked == [[True, False], [False, True], [True, True], [True, True]]


def test_from_start_holds_for_the_whole_episode():
    clock = make_schedule(from_start=0.5)
    assert BEGIN(draws(arrival=0.51), EVERY, RULES, clock, PHRASES).kind.tolist() == [0, 0]
    instruction = BEGIN(draws(arrival=0.49, kind=0.4), EVERY, RULES, clock, PHRASES)
    assert instruction.kind.tolist() == [HURRY] * 2
    update = advance(replace(instruction, ticks_held=jnp.int32(500)), clock, **ARRIVES)
    assert not bool(update.changed) and int(update.instruction.ticks_left) > FOREVER // 2


@pytest.mark.parametrize(("drawn", "uninstructed"), [(0.29, True), (0.31, False)])
def test_an_uninstructed_episode_hears_nothing_whatever_the_clock_draws(drawn, uninstructed):
    clock = make_schedule(
        rate=1.0, hold_min=3, hold_max=3, from_start=1.0, uninstructed_episode_prob=0.3
    )
    possible = possible_kinds(jnp.array([True]), RULES)
    first = schedule.begin(draws(spurious=drawn, **ARRIVES), possible, RULES, clock, PHRASES)
    assert (
        bool(first.uninstructed) is uninstructed and bool((first.kind == 0).all()) is uninstructed
    )
    silent = replace(no_instruction(2), uninstructed=jnp.asarray(uninstructed))
    assert bool(advance(silent, clock, **ARRIVES).changed) is not uninstructed


@pytest.mark.parametrize(
    ("drawn", "kind", "left"),
    [(0.29, 0.0, 3), (0.29, 0.5, FOREVER), (0.31, 0.5, 3), (0.64, 0.5, 3), (0.66, 0.5, 4)],
)
def test_a_share_of_those_that_leave_the_task_on_holds_to_the_end(drawn, kind, left):
    clock = make_schedule(rate=1.0, hold_min=3, hold_max=4, hold_to_end_prob=0.3)
    new = advance(no_instruction(2), clock, kind=kind, **{**ARRIVES, "hold": drawn}).instruction
    assert int(new.ticks_left) == left


@pytest.mark.parametrize("single", [True, False])
def test_after_one_from_the_start_another_may_follow_or_none(single):
    """An event ends the first one. With `single_instruction` the rest of the episode is silent."""
    clock = make_schedule(rate=1.0, from_start=1.0, single_instruction=single)
    ring = EVERY & (jnp.arange(4) == RING)
    first = BEGIN(draws(**ARRIVES), ring, RULES, clock, PHRASES)
    assert first.kind.tolist() == [RING, 0]
    after = advance(first, clock, events=BELL).instruction
    assert after.kind.tolist() == [0, 0]
    assert advance(after, clock, **ARRIVES).instruction.kind.any() == (not single)
    silent = BEGIN(draws(), EVERY, RULES, make_schedule(single_instruction=single), PHRASES)
    assert not bool(silent.uninstructed)  # nothing was given at reset, so instructions may come


@pytest.mark.parametrize("adds", [True, False])
def test_episodes_may_begin_only_under_kinds_that_leave_the_task_on(adds):
    clock = make_schedule(from_start=1.0, from_start_adds=adds)
    kinds = [
        int(BEGIN(draws(**ARRIVES, kind=k), EVERY, RULES, clock, PHRASES).kind.max())
        for k in (0.0, 0.34, 0.99)
    ]
    assert kinds == ([HURRY, HURRY, RING] if adds else [WALK, HURRY, RING])


def by_kind(kind):
    return EVERY & (jnp.arange(4) == kind)


@pytest.mark.parametrize(
    ("kind", "lasts", "drill", "enforced"),
    [
        (HURRY, True, 0.49, True),  # a prohibition that holds to the end
        (HURRY, True, 0.51, False),
        (HURRY, False, 0.0, False),  # it comes and goes
        (WALK, True, 0.0, False),  # it replaces the task
        (RING, True, 0.49, True),
    ],
)
def test_drills_are_some_of_the_prohibitions_that_hold_to_the_end(kind, lasts, drill, enforced):
    clock = make_schedule(rate=1.0, hold_min=3, hold_max=3, hold_to_end_prob=0.5, drill_prob=0.5)
    drawn = draws(**ARRIVES, hold=0.4 if lasts else 0.6, drill=drill)
    update = GO(
        drawn, no_instruction(2), jnp.ones(2, bool), jnp.zeros(2, bool), jnp.zeros(3), by_kind(kind),
        jnp.asarray(False), RULES, clock, PHRASES,
    )  # fmt: skip
    assert bool(update.instruction.enforced) is enforced
    from_start = replace(clock, from_start=jnp.float32(1.0), hold_to_end_prob=jnp.float32(0.0))
    begun = BEGIN(drawn, by_kind(kind), RULES, from_start, PHRASES)
    assert bool(begun.enforced) is (drill < 0.5 and kind != WALK)


def test_a_command_is_never_a_drill_and_the_shield_enforces_everything():
    commands = replace(RULES, replaces=jnp.zeros(4, bool))  # as under rule "add"
    for rules, clock, enforced in (
        (commands, dict(drill_prob=1.0), False),
        (RULES, dict(shield=True), True),
    ):
        begun = BEGIN(
            draws(**ARRIVES, drill=0.0), by_kind(WALK), rules,
            make_schedule(from_start=1.0, **clock), PHRASES,
        )  # fmt: skip
        assert begun.kind.tolist() == [WALK, WALK] and bool(begun.enforced) is enforced


@pytest.mark.parametrize(("kind", "context"), [(WALK, 2), (HURRY, 1), (RING, 1)])
def test_the_context_tells_whether_the_task_goes_on(kind, context):
    clock = make_schedule(rate=1.0, hold_min=1, hold_max=1)
    instruction_now = advance(
        no_instruction(2), clock, possible=by_kind(kind), **ARRIVES
    ).instruction
    assert instruction_now.context.tolist() == [context] * 2
    assert no_instruction(2).context.tolist() == [0, 0]
    ended = advance(instruction_now, clock, events=BELL).instruction
    assert ended.context.tolist() == [0, 0]
    phrase, hold = jnp.int32(1), jnp.int32(5)
    # Only an agent that is addressed does something else instead of the task.
    for agents, found in (([1, 1], [context] * 2), ([1, 0], [context, 1]), ([0, 0], [0, 0])):
        to = jnp.asarray(agents, bool)
        given = schedule.give(instruction_now, jnp.int32(kind), phrase, to, hold, RULES)
        assert given.instruction.context.tolist() == found


def test_the_contexts_of_many_teams_are_each_their_own():
    targets = jnp.array([[True, False], [True, False], [False, False]])
    found = schedule.contexts_of(targets, jnp.array([True, False, True]))
    assert found.tolist() == [[2, 1], [1, 1], [0, 0]]


def test_without_from_start_an_episode_begins_in_silence():
    clock = make_schedule(rate=1.0, hold_min=5, hold_max=5)
    assert BEGIN(draws(arrival=0.0), EVERY, RULES, clock, PHRASES).kind.tolist() == [0, 0]


def test_a_kind_whose_condition_fails_is_not_given():
    assert possible_kinds(jnp.array([True]), RULES).tolist() == [False, True, True, True]
    shut = possible_kinds(jnp.array([False]), RULES)
    assert shut.tolist() == [False, True, True, False]
    clock = make_schedule(rate=1.0)
    for kind, expected in ((0.0, WALK), (0.49, WALK), (0.51, HURRY), (0.999999, HURRY)):
        new = advance(no_instruction(2), clock, possible=shut, kind=kind, **ARRIVES).instruction
        assert int(new.kind.max()) == expected
    nothing = jnp.zeros(4, bool)
    assert not bool(advance(no_instruction(2), clock, possible=nothing, **ARRIVES).changed)


def test_where_no_kind_is_possible_an_episode_begins_in_silence():
    clock = make_schedule(from_start=1.0, single_instruction=True)
    first = BEGIN(draws(**ARRIVES), jnp.zeros(4, bool), RULES, clock, PHRASES)
    assert (int(first.given), int(first.ticks_left), bool(first.uninstructed)) == (0, 0, False)


def test_only_the_kinds_asked_for_are_given():
    file = InstructionFile.parse(FILE, "corridor.toml")
    rules = reward.rules_of(Corridor(), file, only=("hurry",))
    assert possible_kinds(jnp.array([True]), rules).tolist() == [False, False, True, False]
    with pytest.raises(ValueError, match="'hury' is unknown; did you mean 'hurry'"):
        reward.rules_of(Corridor(), file, only=("hury",))


@pytest.mark.parametrize(("kind", "expected"), [(0.33, WALK), (0.34, HURRY), (0.67, RING)])
def test_kinds_are_drawn_uniformly(kind, expected):
    new = advance(no_instruction(2), make_schedule(rate=1.0), kind=kind, **ARRIVES).instruction
    assert int(new.kind.max()) == expected


@pytest.mark.parametrize(
    ("kind", "phrase", "row"),
    [(0.0, 0.0, 1), (0.0, 0.34, 2), (0.0, 0.999999, 3), (0.4, 0.49, 4), (0.4, 0.999999, 5)],
)
def test_phrases_are_drawn_uniformly_and_never_from_the_padding(kind, phrase, row):
    new = advance(
        no_instruction(2), make_schedule(rate=1.0), kind=kind, phrase=phrase, **ARRIVES
    ).instruction
    assert new.phrase.tolist() == [row, row]


@pytest.mark.parametrize(("hold", "ticks"), [(0.0, 5), (0.34, 6), (0.67, 7), (0.9999999, 7)])
def test_holds_are_drawn_uniformly_from_both_ends_included(hold, ticks):
    clock = make_schedule(rate=1.0, hold_min=5, hold_max=7)
    assert (
        int(advance(no_instruction(2), clock, hold=hold, **ARRIVES).instruction.ticks_left) == ticks
    )


@pytest.mark.parametrize(
    ("fresh", "complied", "verdict"),
    [
        ((1, 1), (1, 1), (WALK, True)),
        ((1, 0), (1, 1), (WALK, True)),
        ((1, 1), (1, 0), (WALK, False)),
        ((1, 0), (1, 0), (WALK, True)),  # what runs on was not decided under it
        ((0, 0), (0, 0), (0, False)),  # nobody decided: not counted
    ],
)
@pytest.mark.parametrize("over", [False, True])
def test_followed_means_every_decision_was_allowed(fresh, complied, verdict, over):
    """Whether its time is up or the episode cuts it."""
    hold = 9 if over else 1
    update = advance(
        instruction_of(WALK, hold=hold), make_schedule(), fresh=fresh, complied=complied, over=over
    )
    assert (int(update.closed), bool(update.followed)) == verdict


def test_a_decision_against_it_is_never_forgotten():
    update = advance(instruction_of(WALK, hold=3), make_schedule(), fresh=(1, 1), complied=(0, 1))
    update = advance(update.instruction, make_schedule(), fresh=(1, 1))
    assert int(update.closed) == 0
    update = advance(update.instruction, make_schedule(), fresh=(1, 1))
    assert int(update.closed) == WALK and not bool(update.followed)


def test_what_is_not_addressed_to_an_agent_is_not_judged_by_it():
    alone = instruction_of(WALK, hold=1, agents=(1, 0))
    assert reward.comply(alone, *[jnp.array([1, 0])] * 2, RULES).tolist() == [True, True]
    assert reward.comply(instruction_of(WALK), *[jnp.array([1, 0])] * 2, RULES).tolist() == [
        True,
        False,
    ]
    update = advance(alone, make_schedule(), fresh=(0, 1))
    assert int(update.closed) == 0  # the addressed agent has not decided


@pytest.mark.parametrize(("kind", "obeyed"), [(WALK, True), (HURRY, False)])
def test_a_macro_that_does_anothers_work_goes_by_both_names(kind, obeyed):
    """The kind WALK lists allowed macros, so one of the two macros must be WALK. The kind HURRY forbids WAIT, so
    neither of the two macros may be WAIT."""
    walk, wait = jnp.array([1, 1]), jnp.array([0, 0])
    for named, working in ((walk, wait), (wait, walk)):
        assert reward.comply(instruction_of(kind), named, working, RULES).tolist() == [obeyed] * 2
    assert reward.comply(instruction_of(kind), walk, walk, RULES).all()
    assert not reward.comply(instruction_of(kind), wait, wait, RULES).any()


def test_extra_kinds_are_given_only_when_asked_for():
    raw = {**FILE, "kinds": {k: {**v, "extra": k == "hurry"} for k, v in FILE["kinds"].items()}}
    file = InstructionFile.parse(raw, "corridor.toml")
    assert reward.rules_of(Corridor(), file).given.tolist() == [False, True, False, True]
    everything = reward.rules_of(Corridor(), file, extras=True)
    assert everything.given.tolist() == [False, True, True, True]
    by_name = reward.rules_of(Corridor(), file, only=("hurry",))
    assert by_name.given.tolist() == [False, False, True, False]


def test_nothing_arrives_when_the_episode_ends():
    clock = make_schedule(rate=1.0, hold_min=3, hold_max=3, overlap=True)
    for instruction in (no_instruction(2), instruction_of(WALK), instruction_of(WALK, hold=1)):
        update = advance(instruction, clock, over=True, **ARRIVES)
        assert not bool(update.changed)
        assert int(update.instruction.given) == int(instruction.given)


RINGING = dict(hold=FOREVER, agents=(1, 0))


@pytest.mark.parametrize(("events", "followed"), [(BELL, True), (CRASH, False)])
def test_an_event_resolves_it(events, followed):
    update = advance(instruction_of(RING, **RINGING), make_schedule(), fresh=(1, 0), events=events)
    assert bool(update.changed) and update.instruction.kind.tolist() == [0, 0]
    assert (int(update.closed), bool(update.followed)) == (RING, followed)


def test_fulfilled_and_broken_in_one_tick_is_fulfilled():
    both = instruction_of(RING, **RINGING)
    update = advance(both, make_schedule(), fresh=(1, 0), events=(0.0, 1.0, 1.0))
    assert (int(update.closed), bool(update.followed), bool(update.resolved)) == (RING, True, True)


def test_the_right_event_after_a_forbidden_decision_is_not_following():
    doubtful = instruction_of(RING, obeyed=False, decided=True, **RINGING)
    update = advance(doubtful, make_schedule(), events=BELL)
    assert (int(update.closed), bool(update.followed)) == (RING, False)


def test_it_waits_for_its_event_whatever_the_hold():
    clock = make_schedule(rate=1.0, hold_min=2, hold_max=2)
    ring_alone = jnp.arange(4) == RING
    instruction = advance(no_instruction(2), clock, possible=ring_alone, **ARRIVES).instruction
    for _ in range(4):
        update = advance(instruction, clock)
        assert not bool(update.changed)
        instruction = update.instruction


def test_an_event_means_nothing_to_another_kind():
    update = advance(instruction_of(WALK), make_schedule(), fresh=(1, 1), events=CRASH)
    assert not bool(update.changed) and int(update.closed) == 0


@pytest.mark.parametrize(("held", "closed"), [(38, 0), (39, RING)])
def test_unresolved_it_counts_as_not_followed_from_40_ticks_on(held, closed):
    """`held` before the last tick: 39 and 40 ticks."""
    update = advance(
        instruction_of(RING, ticks_held=held, decided=True, **RINGING), make_schedule(), over=True
    )
    assert (int(update.closed), bool(update.followed)) == (closed, False)


@pytest.mark.parametrize(
    ("kind", "before", "verdict"),
    [
        (WALK, dict(decided=True), (WALK, True)),
        (WALK, dict(decided=True, obeyed=False), (WALK, False)),
        (WALK, dict(decided=False, ticks_held=50), (0, False)),
        (RING, dict(decided=True, ticks_held=39), (0, False)),  # its event could still have come
        (RING, dict(decided=True, ticks_held=40), (RING, False)),
        (0, dict(decided=True, ticks_held=50), (0, False)),
    ],
)
def test_a_persons_word_judges_what_it_ends(kind, before, verdict):
    to = jnp.array([True, False])
    given = GIVE(
        instruction_of(kind, **before), jnp.int32(HURRY), jnp.int32(4), to, jnp.int32(7), RULES
    )
    assert (int(given.closed), bool(given.followed)) == verdict
    new = given.instruction
    assert (new.kind.tolist(), new.phrase.tolist()) == ([HURRY, 0], [4, 0])
    assert (int(new.ticks_left), int(new.ticks_held), int(new.given)) == (7, 0, 2)
    assert bool(given.changed) and not bool(new.enforced)


def test_under_the_shield_silence_enforces_nothing():
    to, hold = jnp.ones(2, bool), jnp.int32(7)
    for kind in (0, WALK):
        given = GIVE(no_instruction(2), jnp.int32(kind), jnp.int32(1), to, hold, RULES, True)
        assert bool(given.instruction.enforced) is bool(given.changed) is (kind > 0)


def test_a_spurious_interrupt_changes_no_instruction():
    clock = make_schedule(spurious_interrupt_prob=0.3)
    for instruction in (no_instruction(2), instruction_of(WALK, hold=5)):
        update = advance(instruction, clock, spurious=0.29)
        assert bool(update.spurious) and not bool(update.changed)
        assert update.instruction.kind.tolist() == instruction.kind.tolist()
        assert not bool(advance(instruction, clock, spurious=0.31).spurious)
    uninstructed = replace(
        no_instruction(2), uninstructed=jnp.asarray(True)
    )  # nor is it rung in a quiet episode
    assert not bool(advance(uninstructed, clock, spurious=0.29).spurious)


TASK = jnp.array([1.0, 10.0])


def paid(instruction, complied, fresh, events=QUIET, rules=RULES):
    return PAY(
        (instruction,),
        TASK,
        (jnp.array(complied, bool),),
        jnp.array(fresh, bool),
        jnp.array(events),
        rules,
    ).tolist()


@pytest.mark.parametrize("fresh", [(1, 1), (0, 0)])
def test_replace_pays_each_tick_instead_of_the_task(fresh):
    assert paid(instruction_of(WALK), (1, 0), fresh) == [2.0, -2.0]


def test_add_costs_once_a_forbidden_macro_at_its_first_tick():
    assert paid(instruction_of(HURRY), (0, 0), (1, 0)) == [1.0 - 7, 10.0]
    assert paid(instruction_of(HURRY), (1, 1), (1, 0)) == [1.0 + 3, 10.0]


@pytest.mark.parametrize(("kind", "left"), [(WALK, -2.0), (HURRY, 1.0 - 7)])
def test_only_the_addressed_agent_is_paid_for_obeying(kind, left):
    assert paid(instruction_of(kind, agents=(1, 0)), (0, 1), (1, 1)) == [left, 10.0]


def test_silence_pays_the_task_alone():
    assert paid(no_instruction(2), (1, 1), (1, 1), CRASH) == [1.0, 10.0]


def test_the_resolving_event_pays_or_costs_its_credit():
    assert paid(instruction_of(RING, **RINGING), (1, 1), (0, 0), BELL) == [21.0, 10.0]
    assert paid(instruction_of(RING, **RINGING), (1, 1), (0, 0), CRASH) == [-19.0, 10.0]


def test_the_paper_literal_rule_is_add_everywhere():
    file = InstructionFile.parse(FILE, "corridor.toml")
    rules = reward.rules_of(Corridor(), file, rule="add")
    assert paid(instruction_of(WALK), (0, 0), (1, 0), rules=rules) == [1.0 - 50, 10.0]
    np.testing.assert_array_equal(rules.allowed, RULES.allowed)


def test_a_rule_is_one_row(monkeypatch):
    row = spec.RULES["add"]._replace(each_tick=True, each_choice=False)
    monkeypatch.setitem(spec.RULES, "both", row)
    file = InstructionFile.parse(FILE, "corridor.toml")
    rules = reward.rules_of(Corridor(), file, rule="both")
    assert paid(instruction_of(WALK), (1, 0), (1, 1), rules=rules) == [1.0 + 2, 10.0 - 2]
    assert ExperimentConfig().with_condition("live/both").rule == "both"
