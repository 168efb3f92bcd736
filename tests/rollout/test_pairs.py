"""Two instructions that hold together: each ends and is judged on its own, and both bind."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from corridor import (
    ARRIVES,
    FILE,
    HURRY,
    RING,
    RULES,
    WALK,
    Corridor,
    Left,
    Right,
    draws,
    instructed,
)

from mavic.envs import api
from mavic.instruct import reward
from mavic.instruct.pairs import conflict, prohibited_pairs
from mavic.instruct.spec import InstructionFile
from mavic.ranges import FOREVER
from mavic.rollout import step as steps
from mavic.rollout.step import shielded
from mavic.types import replace

KEY = jax.random.key(0)
BOTH, LEFT_ONLY = jnp.array([True, True]), jnp.array([True, False])
step, reset = jax.jit(steps.step), jax.jit(steps.reset)
interrupt = jax.jit(steps.interrupt, static_argnames="also")


def under(place, kinds, holds=(9, 9), agents=(BOTH, BOTH)):
    """The corridor's first state after two instructions."""
    state = reset(place, KEY)
    for number, (kind, hold, whom) in enumerate(zip(kinds, holds, agents, strict=True)):
        given = jnp.int32(kind), jnp.int32(10 + kind), whom, jnp.int32(hold)
        state, _ = interrupt(place, state, *given, also=number == 1)
    return state


def play(place, state, *choices):
    rows = []
    for left, right in choices:
        state, row = step(place, state, jnp.array([left, right]), draws())
        rows.append(row)
    return state, rows


def test_each_clock_ends_on_its_own():
    place = instructed()
    state = under(place, (HURRY, WALK), holds=(3, 1))
    assert state.instruction.kind.tolist() == [HURRY] * 2 and state.also.kind.tolist() == [WALK] * 2
    state, (row,) = play(place, state, (Left.WALK, Right.WALK))
    assert (int(row.closed), int(row.also.closed)) == (0, WALK) and bool(row.also.followed)
    assert state.instruction.kind.tolist() == [HURRY] * 2 and not state.also.kind.any()
    assert bool(row.switched) and bool(state.idle.all())  # the end of one wakes everybody
    state, rows = play(place, state, (Left.RING, Right.WALK), (Left.RING, Right.WALK))
    assert [int(row.closed) for row in rows] == [0, HURRY] and bool(rows[-1].followed)
    assert [int(row.also.closed) for row in rows] == [0, 0]


def test_each_is_judged_on_its_own():
    place = instructed()
    state = under(place, (HURRY, WALK), holds=(1, 1))
    _, (row,) = play(place, state, (Left.RING, Right.WALK))  # not waiting, not walking either
    assert row.complied.tolist() == [True, True] and row.also.complied.tolist() == [False, True]
    assert row.also.kind.tolist() == [WALK] * 2 and row.also.phrase.tolist() == [10 + WALK] * 2
    assert bool(row.followed) and not bool(row.also.followed)
    # One is fulfilled by an event, which concerns only the agent that it is meant for.
    state = under(place, (HURRY, RING), holds=(9, 9))
    assert state.also.kind.tolist() == [RING, 0]
    state, (row,) = play(place, state, (Left.RING, Right.WAIT))
    assert int(row.also.closed) == RING and bool(row.also.followed)
    assert state.instruction.kind.tolist() == [HURRY] * 2 and not bool(state.instruction.obeyed)
    assert not bool(row.switched)  # an event ended it


def test_what_each_pays_is_added_and_a_command_replaces_the_task():
    place = instructed()
    _, (row,) = play(place, under(place, (HURRY, RING)), (Left.WALK, Right.WAIT))
    # left: task 1, hurry's bonus 3, ring's penalty -4; right: task 10, hurry's penalty -7
    assert row.reward.tolist() == [0.0, 3.0]
    for kinds in ((HURRY, WALK), (WALK, HURRY)):
        _, (row,) = play(place, under(place, kinds), (Left.WALK, Right.WAIT))
        assert row.reward.tolist() == [2.0 + 3.0, -2.0 - 7.0]  # walk's pay instead of the task
        assert row.context.tolist() == [2, 2]


def test_under_the_shield_what_either_forbids_is_gone():
    place = instructed()
    for env, enforced in ((shielded(place), True), (place, False)):
        state = under(env, (HURRY, RING))
        gone = np.asarray(env.env.available(None)) & ~np.asarray(state.available)
        names = [[Left(i).name for i in np.flatnonzero(row)] for row in gone]
        assert names == ([["WAIT", "WALK"], ["WAIT"]] if enforced else [[], []])
        assert np.flatnonzero(state.forbidden[0]).tolist() == [Left.WAIT, Left.WALK]


def test_an_empty_second_place_changes_nothing_and_none_compiles_nothing():
    place = instructed(rate=1.0, hold_min=2, hold_max=2)
    open_place = replace(place, also=jnp.int32(0))
    state, other = reset(place, KEY), reset(open_place, KEY)
    assert state.also is None and not other.also.kind.any()
    for _ in range(4):
        chance = draws(**ARRIVES, kind=0.5)
        state, row = step(place, state, jnp.array([Left.WALK, Right.WAIT]), chance)
        other, twin = step(open_place, other, jnp.array([Left.WALK, Right.WAIT]), chance)
        assert row.also is None
        found = (replace(state, key=None), row)
        same = replace(other, key=None, also=None), replace(twin, also=None)
        jax.tree.map(np.testing.assert_array_equal, found, same)


def test_one_may_hold_from_the_start_and_the_schedule_gives_none_beside_it():
    place = replace(instructed(rate=1.0, hold_min=2, hold_max=2), also=jnp.int32(HURRY))
    state = reset(place, KEY)
    assert state.also.kind.tolist() == [HURRY] * 2 and int(state.also.ticks_left) == FOREVER
    assert set(state.also.phrase.tolist()) < {4, 5}  # hurry's phrases
    state, row = step(place, state, jnp.array([Left.WALK, Right.WAIT]), draws(**ARRIVES))
    assert not state.instruction.kind.any() and row.also.complied.tolist() == [True, False]
    closed_door = replace(place, also=jnp.int32(RING))  # its precondition does not hold yet
    assert not reset(closed_door, KEY).also.kind.any()


def test_what_cannot_hold_together_is_named():
    env, none = Corridor(), [0, 0]
    assert conflict(env, RULES, [HURRY] * 2, [HURRY, 0]) == "hurry holds already"
    assert conflict(env, RULES, [HURRY, 0], [0, HURRY]) == ""  # to different agents
    assert conflict(env, RULES, [HURRY] * 2, [WALK] * 2) == conflict(env, RULES, none, none) == ""
    why = conflict(env, RULES, [WALK] * 2, [RING, 0])
    assert why == "walk and ring together leave left nothing to do"
    echo = replace(RULES, effect=RULES.effect.at[HURRY].set(1))
    assert "both change what the world does" in conflict(env, echo, [HURRY] * 2, [RING, 0])


def test_pairs_are_of_prohibitions_alone_and_each_is_judged_by_its_own_kinds():
    """`brisk` and `still` leave right nothing. Each kind from `command` on could hold beside `silent`, but is none."""
    crash = {"rule": "add", "forbid": ["CRASH"]}
    kinds = {
        "brisk": {"rule": "add", "forbid": ["WAIT"]},
        "silent": {"rule": "add", "forbid": ["RING"]},
        "still": {"rule": "add", "forbid": ["WALK"]},
        "command": {**crash, "rule": "replace"},
        "listed": {"rule": "add", "allow": ["WAIT", "WALK"]},
        "until": {**crash, "resolved_by": {"bell": 1}},
        "echoing": {**crash, "effect": "echo"},
        "rare": {**crash, "extra": True},
    }
    raw = {**FILE, "kinds": {name: {**one, "train": [name]} for name, one in kinds.items()}}
    rules = reward.rules_of(Corridor(), InstructionFile.parse(raw, "corridor.toml"))
    found = prohibited_pairs(Corridor(), rules)
    assert found == {"brisk+silent": (1, 2), "silent+still": (2, 3)}
    found = prohibited_pairs(Corridor(), rules, [("still", "silent")])
    assert found == {"brisk+silent": (1, 2)}


@pytest.mark.parametrize(
    ("world", "count"), [("overcooked", 12), ("box_pushing", 3), ("warehouse", 0)]
)
def test_the_pairs_that_are_evaluated_leave_the_task_on(world, count):
    known, env = api.world(world), api.make(world)
    rules = reward.rules_of(env, known.instructions)
    found = prohibited_pairs(env, rules, known.impossible_together)
    assert len(found) == count
    assert all(name == "+".join(rules.names[i] for i in pair) for name, pair in found.items())
    assert not any(
        {*name.split("+")} == {*pair} for name in found for pair in known.impossible_together
    )
