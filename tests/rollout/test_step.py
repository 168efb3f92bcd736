"""One tick of the world: who holds, who decides, what a change does, and how an episode ends."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from corridor import ARRIVES, HURRY, PHRASES, RING, WALK, Corridor, Left, Right, draws, instructed

from mavic.envs.conformance import check_env
from mavic.instruct.schedule import DRAWS
from mavic.learn.transitions import macro_transitions
from mavic.rollout import threefry
from mavic.rollout.step import _tick_key, draws_for, reset, step
from mavic.types import Phrases, replace

RUN = jax.jit(step)
KEY = jax.random.key(0)
LONG = (Left.WALK, Right.WALK)
SHORT = (Left.WAIT, Right.WAIT)


def go(place, world, choice, **drawn):
    return RUN(place, world, jnp.array(choice, jnp.int32), draws(**drawn))


def play(place, choices, **drawn):
    """Rows of one episode; `at_3=...` gives the clock's numbers after tick 3."""
    world, rows = reset(place, KEY), []
    for tick, choice in enumerate(choices):
        world, row = go(place, world, choice, **drawn.get(f"at_{tick}", {}))
        rows.append(row)
    return world, rows


def under(place, kind, agents=(True, True), **changes):
    """The first moment of an episode, under an instruction that holds long."""
    world = reset(place, KEY)
    to = jnp.array(agents)
    clock = replace(
        world.instruction,
        kind=jnp.where(to, kind, 0),
        phrase=jnp.where(to, 1, 0),
        ticks_left=jnp.int32(50),
        given=jnp.int32(1),
    )
    return replace(world, instruction=clock, **changes)


LIVE = dict(rate=0.5, hold_min=2, hold_max=2)


def test_a_users_own_world_keeps_the_promises():
    check_env(Corridor(), ticks=40)


def test_idle_agents_choose_and_the_others_go_on():
    world, rows = play(
        instructed(), [(Left.WALK, Right.WAIT), (Left.RING, Right.WALK), (Left.CRASH, Right.WAIT)]
    )
    assert [row.macro.tolist() for row in rows] == [[1, 0], [1, 1], [1, 1]]
    assert [row.fresh.tolist() for row in rows] == [[True, True], [False, True], [False, False]]
    assert [row.ended.tolist() for row in rows] == [[False, True], [False, False], [True, False]]
    assert [row.last_macro.tolist() for row in rows] == [[-1, -1], [-1, 0], [-1, 0]]
    assert [row.events.sum() for row in rows] == [0, 0, 0]  # left never came to ring or crash
    assert world.idle.tolist() == [True, False]


def test_who_does_not_decide_keeps_the_observation_of_its_decision():
    world, rows = play(instructed(), [(Left.WALK, Right.WAIT), (Left.WALK, Right.WALK)])
    assert rows[1].observation[:, 0].tolist() == [0.0, 1.0]
    assert world.observation[:, 0].tolist() == [0.0, 1.0]
    assert rows[1].next_observation[:, 0].tolist() == [2.0, 2.0]


def test_a_change_ends_all_macros_and_everybody_sees_anew():
    place = instructed(**LIVE)
    world, rows = play(place, [LONG, LONG], at_1=ARRIVES)
    assert rows[0].ended.tolist() == [False, False] and not bool(rows[0].switched)
    assert rows[1].ended.tolist() == [True, True] and bool(rows[1].switched)
    assert not bool(rows[1].unfinished.any())
    assert world.idle.tolist() == [True, True]
    assert world.observation.tolist() == [[2.0, 1.0], [2.0, 1.0]]
    _, row = go(place, world, SHORT)
    assert row.fresh.tolist() == [True, True] and row.macro.tolist() == list(SHORT)
    assert row.kind.tolist() == [WALK, WALK]


def test_a_word_to_one_agent_is_a_boundary_for_all():
    place = instructed(**LIVE, one_agent=1.0)
    world, rows = play(place, [LONG, LONG], at_1=dict(arrival=0.0, agent=0.9))
    assert rows[1].ended.tolist() == [True, True]
    assert world.instruction.kind.tolist() == [0, WALK]


def test_the_end_of_an_instruction_is_a_change_too():
    world, rows = play(instructed(**LIVE), [LONG] * 5, at_0=ARRIVES)
    assert [bool(row.switched) for row in rows] == [True, False, True, False, False]
    assert [row.kind.tolist()[0] for row in rows] == [0, WALK, WALK, 0, 0]
    assert rows[2].ended.tolist() == [True, True]  # 2 of the 3 ticks of a walk
    assert rows[3].fresh.tolist() == [True, True]
    assert [int(row.closed) for row in rows] == [0, 0, WALK, 0, 0]
    assert bool(rows[2].followed)
    assert not bool(world.idle.any())


def test_a_tick_is_paid_under_the_instruction_that_governed_it():
    _, rows = play(instructed(**LIVE), [SHORT] * 4, at_0=ARRIVES)
    assert [row.reward.tolist() for row in rows] == [[1, 10], [-2, -2], [-2, -2], [1, 10]]
    assert [float(row.task_reward) for row in rows] == [
        5.5
    ] * 4  # the base return never hears of it


def test_the_penalty_falls_on_the_first_tick_of_the_addressed_agent_alone():
    place = instructed()
    world = under(place, RING, (True, False))  # left may not walk
    rewards = []
    for _ in range(4):
        world, row = go(place, world, LONG)
        rewards.append(row.reward.tolist())
    assert rewards == [[-3, 10], [1, 10], [1, 10], [-3, 10]]


def test_what_ran_before_it_arrived_is_interrupted_not_punished():
    _, rows = play(
        instructed(**LIVE),
        [SHORT, SHORT, (Left.WALK, Right.WALK)],
        at_1=dict(arrival=0.0, kind=0.5),
    )
    assert rows[1].reward.tolist() == [1, 10] and rows[1].complied.tolist() == [True, True]
    assert rows[2].kind.tolist() == [HURRY, HURRY]
    assert rows[2].reward.tolist() == [1 + 3, 10 + 3]


def test_the_world_is_told_what_is_asked_of_whom():
    place = instructed()
    world, _ = go(place, under(place, RING, (True, False)), SHORT)
    assert world.state.heard.tolist() == [1, 0]
    world, _ = go(place, under(place, HURRY), SHORT)
    assert world.state.heard.tolist() == [0, 0]


def test_a_condition_is_that_of_the_state_after_the_tick():
    place = instructed(rate=0.5)
    last = dict(arrival=0.0, kind=0.99)
    assert play(place, [SHORT], at_0=last)[0].instruction.kind.tolist() == [HURRY, HURRY]
    assert play(place, [SHORT] * 2, at_1=last)[0].instruction.kind.tolist() == [RING, 0]


def test_an_event_ends_an_instruction_and_everybody_decides():
    place = instructed()
    world, row = go(place, under(place, RING, (True, False)), (Left.RING, Right.WALK))
    assert row.reward.tolist() == [21, 10]
    assert (int(row.closed), bool(row.followed)) == (RING, True)
    assert row.ended.tolist() == [True, True] and world.instruction.kind.tolist() == [0, 0]
    assert not bool(row.switched)  # the value of what was asked goes on beyond its fulfilment


@pytest.mark.parametrize("horizon_ends", [False, True])
def test_the_horizon_cuts_everything_and_nothing_arrives(horizon_ends):
    place = instructed(Corridor(horizon_ends=horizon_ends), rate=1.0)
    world, row = go(place, under(place, HURRY, time=jnp.int32(4)), LONG, **ARRIVES)
    assert not bool(row.truncated | row.terminal)
    world, row = go(place, world, LONG, **ARRIVES)
    assert bool(row.truncated) and bool(row.terminal) is horizon_ends
    assert row.ended.tolist() == row.unfinished.tolist() == [True, True]
    assert not bool(row.switched) and not bool(row.bootstraps_from_self.any())
    assert int(row.closed) == HURRY and bool(row.followed)  # cut by the end, it counts
    assert int(world.instruction.given) == 1


def test_nothing_arrives_with_a_true_end_either():
    _, rows = play(instructed(rate=1.0), [(Left.FINISH, Right.WALK)], at_0=ARRIVES)
    assert bool(rows[0].terminal) and not bool(rows[0].truncated | rows[0].switched)


def test_an_end_in_the_last_tick_is_an_end_and_no_cut():
    place = instructed()
    _, row = go(place, under(place, 0, time=jnp.int32(5)), (Left.FINISH, Right.WAIT))
    assert bool(row.terminal) and not bool(row.truncated)


def test_a_teammate_in_mid_macro_is_paid_with_the_true_end():
    """Right walks when left finishes in the second tick: its macro ends there with both ticks' pay."""
    _, rows = play(instructed(), [(Left.WAIT, Right.WALK), (Left.FINISH, Right.WALK)])
    assert rows[1].ended.tolist() == [True, True]
    assert rows[1].unfinished.tolist() == [False, True]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves)[:, None], *rows)
    macros = jax.jit(macro_transitions)(stacked, jnp.float32(0.5))
    right = {name: getattr(macros, name)[:, 0, 1] for name in ("reward", "discount", "valid")}
    assert right["valid"].tolist() == [True, False]
    assert float(right["reward"][0]) == 10 + 0.5 * 10
    assert float(right["discount"][0]) == 0


@pytest.mark.parametrize(
    ("kind", "agents", "bootstraps_from_self"),
    [
        (WALK, (True, True), [True, True]),
        (WALK, (False, True), [False, True]),
        (HURRY, (True, True), [False, False]),
        (0, (True, True), [False, False]),
    ],
)
def test_a_true_end_is_no_end_of_what_replaces_the_task(kind, agents, bootstraps_from_self):
    place = instructed()
    _, row = go(place, under(place, kind, agents), (Left.FINISH, Right.WALK))
    assert bool(row.terminal) and row.bootstraps_from_self.tolist() == bootstraps_from_self
    _, row = go(place, under(place, kind, agents), SHORT)
    assert not bool(row.bootstraps_from_self.any())


@pytest.mark.parametrize("kind", [0, WALK])
def test_a_spurious_interrupt_wakes_everybody_and_says_nothing(kind):
    place = instructed(spurious_interrupt_prob=0.5)
    world, row = go(place, under(place, kind), LONG, spurious=0.4)
    assert row.ended.tolist() == [True, True] and not bool(row.switched)
    assert not bool(row.unfinished.any()) and int(row.closed) == 0
    assert world.instruction.kind.tolist() == [kind, kind]
    assert world.idle.tolist() == [True, True]
    assert world.observation[:, 0].tolist() == [1.0, 1.0]
    world, row = go(place, under(place, kind), LONG, spurious=0.6)
    assert row.ended.tolist() == [False, False]


def test_from_start_governs_the_first_tick_and_the_last():
    place = instructed(from_start=1.0)
    _, rows = play(place, [LONG] * 6)
    kinds = {tuple(row.kind.tolist()) for row in rows}
    assert len(kinds) == 1 and max(kinds.pop()) > 0
    assert not any(bool(row.switched) for row in rows) and int(rows[-1].closed) > 0


def test_who_hears_nothing_is_judged_all_the_same():
    mute = Phrases(table=jnp.zeros_like(PHRASES.table), count=PHRASES.count)
    script = dict(at_0=dict(arrival=0.0, phrase=0.7))
    _, heard = play(instructed(**LIVE), [LONG] * 4, **script)
    _, silent = play(instructed(**LIVE, phrases=mute), [LONG] * 4, **script)
    assert [row.phrase.tolist() for row in heard] == [[0, 0], [3, 3], [3, 3], [0, 0]]
    assert not any(bool(row.phrase.any()) for row in silent)
    for name in ("kind", "closed", "followed", "reward", "complied"):
        pairs = zip(heard, silent, strict=True)
        assert all((getattr(a, name) == getattr(b, name)).all() for a, b in pairs)


def test_random_numbers_depend_on_the_episode_and_the_time_alone():
    world = reset(instructed(), KEY)
    later = replace(world, time=jnp.int32(1))
    assert (draws_for(world) == draws_for(under(instructed(), WALK))).all()
    assert not (draws_for(world) == draws_for(later)).any()
    assert not (draws_for(world) == draws_for(reset(instructed(), jax.random.key(1)))).any()


def test_the_environments_key_comes_from_no_block_of_the_draws():
    """Otherwise what happens in the environment would depend on what an agent happens to choose."""
    state = reset(instructed(), KEY)
    this_tick = threefry.fold_in(state.key, state.time)
    blocks = range(2 + DRAWS + 1)
    numbers, key = threefry.uniform(this_tick, len(blocks)), jax.random.key_data(_tick_key(state))
    (own,) = [
        block
        for block in blocks
        if (jax.random.key_data(threefry.fold_in(this_tick, block)) == key).all()
    ]
    assert draws_for(state).tolist() == [x for i, x in enumerate(numbers.tolist()) if i != own]
    assert own == 2 + 6  # as when the clock had six numbers: recorded episodes are played again
