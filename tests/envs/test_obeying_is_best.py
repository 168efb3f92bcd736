"""D13: a kind that leaves the task on costs more than disobeying can gain, in every state that can be reached."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mavic.envs import api
from mavic.envs.box_pushing import optimum as box_pushing
from mavic.envs.overcooked import optimum as overcooked
from mavic.envs.overcooked.grid import cell_of
from mavic.envs.overcooked.macros import PattyMacro, Thing
from mavic.envs.overcooked.state import COOKS, Event, Place
from mavic.envs.warehouse import optimum as warehouse
from mavic.instruct.reward import rules_of
from mavic.instruct.spec import InstructionFile
from mavic.types import replace
from tools import search_box_pushing, search_overcooked


def adding(world: str):
    """The kinds of a world that leave the task on, as they stand in its instruction file."""
    return [
        kind
        for kind in InstructionFile.read(api.world(world).instructions).kinds
        if kind.rule == "add"
    ]


def named(kind) -> set[str]:
    return set(kind.forbid)


@pytest.mark.parametrize("world", api.BUILT_IN)
def test_the_best_obedient_plan_is_known_for_every_kind_that_leaves_the_task_on(world):
    record = api.world(world)
    env, gamma = record.make(), record.presets["tuned"].gamma
    best = record.optimum(env, gamma, None)
    for kind in InstructionFile.read(record.instructions).kinds:
        found = record.optimum(env, gamma, kind.name)
        assert (found is not None) == (kind.rule == "add"), kind.name
        assert found is None or 0.9 * best < found <= best


@pytest.mark.parametrize("planner", [box_pushing, overcooked], ids=["box_pushing", "overcooked"])
def test_the_planners_leave_out_what_the_instruction_files_forbid(planner):
    world = planner.__name__.split(".")[-2]
    asked = {kind.name: named(kind) for kind in adding(world)}
    assert {name: {m.name for m in macros} for name, macros in planner.FORBIDDEN.items()} == asked


@pytest.mark.long
@pytest.mark.parametrize("kind", adding("box_pushing"), ids=lambda kind: kind.name)
def test_box_pushing_in_every_state(kind):
    env = search_box_pushing.BoxPushing()
    allowed = np.array(rules_of(env, api.world("box_pushing").instructions).allowed)
    number = 1 + InstructionFile.read(api.world("box_pushing").instructions).names().index(
        kind.name
    )
    gain = search_box_pushing.largest_gain(env, allowed[number])
    assert 9 < gain < 10  # a robot may turn back to a small box while the other is on its way
    assert -kind.penalty > gain
    assert (
        search_box_pushing.share_where_disobeying_pays(env, allowed[number], "add", kind.penalty)
        == 0
    )


def test_overcooked_by_a_bound_that_is_nearly_reached():
    """The patty lies on plate 1, next to the delivery: without plate 1 it can never be delivered."""
    env, gamma = overcooked.Overcooked(), overcooked.GAMMA
    bound = search_overcooked.gain_bound(env)
    for kind in adding("overcooked"):
        assert -kind.penalty > bound, f"{kind.name}: disobeying may gain {bound:.1f}"
    start = env.reset(jax.random.key(0))
    beside = cell_of(4, 0)
    place = start.place.at[:3].set(Place.DISH).at[Thing.DISH].set(Place.PLATE_1)
    paid = start.paid
    for event in (Event.TOMATO_CHOPPED, Event.LETTUCE_CHOPPED, Event.BLENDED, Event.COOKED):
        paid = paid.at[event].set(True)
    state = replace(
        start,
        cook=jnp.array([cell_of(4, 1), cell_of(1, 4)], jnp.int32),
        place=place.astype(jnp.int32),
        cell=start.cell.at[Thing.PLATE_1].set(beside).at[Thing.DISH].set(beside),
        cooked=jnp.int32(COOKS),
        paid=paid,
    )
    moves = [PattyMacro.LEFT, PattyMacro.UP, PattyMacro.LEFT]
    earned, works = 0.0, []
    for time, move in enumerate(moves):
        tick = env.advance(state, jnp.array([move, PattyMacro.STAY]), jnp.zeros(2, jnp.int32))[0]
        state, earned = tick.state, earned + gamma**time * float(tick.reward[0])
        works.append(PattyMacro(int(tick.effective_macro[0])))
    assert bool(tick.terminal) and works[0] == PattyMacro.GET_PLATE_1
    waiting = -0.1 / (1 - gamma)
    assert bound - 6 < earned - waiting < bound
    assert earned - waiting > 200  # so a penalty of 200 would not do


def test_warehouse_from_the_start():
    """Best plans, with the credit: obeying against the most that disobeying can earn (`search` proves it, slow)."""
    free = warehouse.OPTIMAL_RETURNS[None]
    for kind in adding("warehouse"):
        obeying = warehouse.best_return(warehouse.Warehouse(), 1.0, kind.name) + kind.credit
        assert obeying > free + kind.credit + kind.penalty
        assert obeying > free - kind.credit


@pytest.mark.parametrize("world", api.BUILT_IN)
def test_the_papers_rule_has_the_papers_penalty(world):
    record = api.world(world)
    rules = rules_of(record.make(), record.instructions, rule="add")
    paper = -25 if world == "warehouse" else -50
    np.testing.assert_array_equal(rules.penalty[1:], paper)
