"""The planner: what is best, and under which kinds obeying is not."""

from __future__ import annotations

import numpy as np
import pytest

from mavic.envs.box_pushing import BoxPushing, Macro
from mavic.envs.box_pushing.optimum import (
    best_plan,
    obedience_gap,
    optimum,
    states_where_disobeying_pays,
)
from mavic.types import replace

WORLD = BoxPushing()
HALTED = -0.1 / (1 - 0.995)  # nothing but the step cost, for ever
SMALL = (Macro.GO_SMALL_BOX_0, Macro.GO_SMALL_BOX_1)
ASKED = (*SMALL, Macro.GO_BIG_SPOT_0, Macro.GO_BIG_SPOT_1, Macro.PUSH, Macro.STAY)  # each by a kind


def only(*macros: Macro) -> np.ndarray:
    return np.isin(np.arange(len(Macro)), macros)[None].repeat(2, 0)


def without(*macros: Macro) -> np.ndarray:
    return ~only(*macros)


def test_the_shipped_plan_is_the_optimum():
    plan, value = best_plan(WORLD)
    assert plan == [(Macro.GO_BIG_SPOT_0, Macro.GO_BIG_SPOT_1), (Macro.PUSH, Macro.PUSH)]
    assert value == pytest.approx(291.982, abs=1e-3)
    assert optimum(WORLD) == pytest.approx(value, abs=1e-3)


def test_the_shipped_plan_is_the_optimum_of_the_smallest_world():
    small = BoxPushing(size=4)
    assert optimum(small) == pytest.approx(best_plan(small)[1], abs=1e-3)


def test_the_planner_follows_the_rewards():
    """With a big box worth nothing, both small ones in four ticks are best."""
    assert optimum(replace(WORLD, big=0.0)) == pytest.approx(19.304, abs=1e-3)
    undiscounted_enough = 20 * 0.9**3 - 0.1 * (1 - 0.9**4) / 0.1
    assert optimum(replace(WORLD, big=0.0), gamma=0.9) == pytest.approx(undiscounted_enough)


def test_dont_push_is_named_under_add():
    obeying, free = obedience_gap(WORLD, without(Macro.PUSH), "add", penalty=-50.0)
    assert obeying == pytest.approx(HALTED, abs=1e-3)
    assert free == pytest.approx(291.982 - 50 * 0.995**4, abs=1e-3)


def test_dont_push_breaks_even_where_obeying_is_worth_as_much():
    for penalty, pays in ((-300.0, True), (-320.0, False)):
        obeying, free = obedience_gap(WORLD, without(Macro.PUSH), "add", penalty=penalty)
        assert (free > obeying + 1e-2) == pays


def test_avoiding_small_boxes_costs_nothing():
    for forbidden in ((Macro.GO_SMALL_BOX_0,), (Macro.GO_SMALL_BOX_0, Macro.GO_SMALL_BOX_1)):
        obeying, free = obedience_gap(WORLD, without(*forbidden), "add")
        assert obeying == free == pytest.approx(optimum(WORLD))


@pytest.mark.parametrize(
    "allowed",
    [only(Macro.STAY), only(Macro.GO_SMALL_BOX_0), without(Macro.PUSH)],
    ids=["stay", "go-small-box-0", "dont-push"],
)
def test_obeying_is_best_under_replace(allowed):
    obeying, free = obedience_gap(WORLD, allowed, "replace")
    assert obeying == free == pytest.approx(200.0)


def test_one_addressed_robot_has_interests_of_its_own():
    """Its mate would gain by its help at the big box; it would not."""
    allowed = np.stack([only(Macro.STAY)[0], np.ones(len(Macro), bool)])
    helping = -(1 - 0.995**6) / 0.005
    obeying, free = obedience_gap(WORLD, allowed, "replace")
    assert obeying == pytest.approx((200.0 + HALTED) / 2)
    assert free == pytest.approx((helping + 291.982) / 2, abs=1e-3)
    own = obedience_gap(WORLD, allowed, "replace", weights=(1.0, 0.0))
    assert own == pytest.approx((200.0, 200.0))


@pytest.mark.parametrize(
    "allowed",
    [only(Macro.STAY), only(Macro.PUSH), only(Macro.GO_BIG_SPOT_1), without(Macro.PUSH)],
    ids=["stay", "push", "go-big-spot-1", "dont-push"],
)
def test_obeying_is_best_in_every_state_under_replace(allowed):
    """Even "push" below a box, where obeying ends the task: what is asked goes on."""
    assert states_where_disobeying_pays(WORLD, allowed, "replace") == 0.0


@pytest.mark.parametrize(
    "allowed",
    [*(only(macro) for macro in ASKED), only(*SMALL), without(Macro.PUSH)],
    ids=[*(macro.name for macro in ASKED), "small boxes", "all but push"],
)
def test_disobeying_pays_in_nearly_every_state_under_add(allowed):
    """Of the kinds that are asked for, all but those that keep away from small boxes."""
    assert states_where_disobeying_pays(WORLD, allowed, "add") > 0.99


def test_bad_questions_are_refused():
    with pytest.raises(ValueError, match="allowed: add, replace"):
        obedience_gap(WORLD, only(Macro.STAY), "subtract")
    with pytest.raises(ValueError, match="allowed nothing"):
        obedience_gap(WORLD, only(), "add")
    with pytest.raises(ValueError, match="only the rules 'paper'"):
        optimum(BoxPushing(rules="reference"))
