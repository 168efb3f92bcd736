"""The planner of Box Pushing: the best return, and the kinds under which obeying is best."""

from __future__ import annotations

import numpy as np
import pytest

from mavic.envs.box_pushing import BoxPushing, Macro
from mavic.envs.box_pushing.optimum import BEST_PLAN, best_return
from mavic.types import replace
from tools.search_box_pushing import (
    obedience_values,
    optimal_return,
    share_where_disobeying_pays,
)

ENV = BoxPushing()
HALTED = -0.1 / (1 - 0.995)  # the step cost alone, forever
SMALL = (Macro.GO_SMALL_BOX_0, Macro.GO_SMALL_BOX_1)
ASKED = (*SMALL, Macro.GO_BIG_SPOT_0, Macro.GO_BIG_SPOT_1, Macro.PUSH, Macro.STAY)  # one kind each


LONG = pytest.mark.long
# The smallest grid has fewer states, so its proofs are faster. The usual grid is left to make test-long.
GRIDS = pytest.mark.parametrize(
    "env", [BoxPushing(size=4), pytest.param(ENV, marks=LONG)], ids=["4x4", "6x6"]
)


def only(*macros: Macro) -> np.ndarray:
    return np.isin(np.arange(len(Macro)), macros)[None].repeat(2, 0)


def without(*macros: Macro) -> np.ndarray:
    return ~only(*macros)


def test_the_shipped_plan_earns_what_is_reported():
    assert BEST_PLAN == ((Macro.GO_BIG_SPOT_0, Macro.GO_BIG_SPOT_1), (Macro.PUSH, Macro.PUSH))
    assert best_return(ENV, 0.995) == pytest.approx(291.982, abs=1e-3)


@pytest.mark.long
@GRIDS
def test_the_shipped_plan_is_the_optimum(env):
    assert optimal_return(env) == pytest.approx(best_return(env, 0.995), abs=1e-3)


@pytest.mark.long
def test_the_planner_follows_the_rewards():
    """If the big box pays nothing, both small boxes in four ticks are best."""
    assert optimal_return(replace(ENV, big=0.0)) == pytest.approx(19.304, abs=1e-3)
    by_hand = 20 * 0.9**3 - 0.1 * (1 - 0.9**4) / 0.1
    assert optimal_return(replace(ENV, big=0.0), gamma=0.9) == pytest.approx(by_hand)


@pytest.mark.long
def test_disobeying_dont_push_pays_under_add():
    obeying, free = obedience_values(ENV, without(Macro.PUSH), "add", penalty=-50.0)
    assert obeying == pytest.approx(HALTED, abs=1e-3)
    assert free == pytest.approx(291.982 - 50 * 0.995**4, abs=1e-3)


@pytest.mark.long
def test_a_large_penalty_makes_obeying_dont_push_best():
    for penalty, pays in ((-300.0, True), (-320.0, False)):
        obeying, free = obedience_values(ENV, without(Macro.PUSH), "add", penalty=penalty)
        assert (free > obeying + 1e-2) == pays


@pytest.mark.long
@GRIDS
def test_avoiding_small_boxes_costs_nothing(env):
    for forbidden in ((Macro.GO_SMALL_BOX_0,), (Macro.GO_SMALL_BOX_0, Macro.GO_SMALL_BOX_1)):
        obeying, free = obedience_values(env, without(*forbidden), "add")
        assert obeying == free == pytest.approx(optimal_return(env))


@pytest.mark.long
@GRIDS
@pytest.mark.parametrize(
    "allowed",
    [
        pytest.param(only(Macro.STAY), id="stay"),
        pytest.param(only(Macro.GO_SMALL_BOX_0), id="go-small-box-0"),
        pytest.param(without(Macro.PUSH), id="dont-push"),
    ],
)
def test_obeying_is_best_under_replace(env, allowed):
    obeying, free = obedience_values(env, allowed, "replace")
    assert obeying == free == pytest.approx(200.0)


@pytest.mark.long
def test_an_addressed_robot_gains_nothing_by_helping_the_other():
    """Its teammate would gain by its help at the big box, but the addressed robot would not."""
    allowed = np.stack([only(Macro.STAY)[0], np.ones(len(Macro), bool)])
    helping = -(1 - 0.995**6) / 0.005
    obeying, free = obedience_values(ENV, allowed, "replace")
    assert obeying == pytest.approx((200.0 + HALTED) / 2)
    assert free == pytest.approx((helping + 291.982) / 2, abs=1e-3)
    own = obedience_values(ENV, allowed, "replace", weights=(1.0, 0.0))
    assert own == pytest.approx((200.0, 200.0))


@GRIDS
@pytest.mark.parametrize(
    "allowed",
    [
        pytest.param(only(Macro.STAY), marks=LONG, id="stay"),
        pytest.param(only(Macro.PUSH), id="push"),
        pytest.param(only(Macro.GO_BIG_SPOT_1), marks=LONG, id="go-big-spot-1"),
        pytest.param(without(Macro.PUSH), marks=LONG, id="dont-push"),
    ],
)
def test_obeying_is_best_in_every_state_under_replace(env, allowed):
    """This holds even for "push" below a box, where obeying ends the task, because the instruction goes on."""
    assert share_where_disobeying_pays(env, allowed, "replace") == 0.0


@pytest.mark.long
@pytest.mark.parametrize(
    "allowed",
    [*(only(macro) for macro in ASKED), only(*SMALL), without(Macro.PUSH)],
    ids=[*(macro.name for macro in ASKED), "small boxes", "all but push"],
)
def test_disobeying_pays_in_nearly_every_state_under_add(allowed):
    """This holds for all kinds except those that forbid small boxes."""
    assert share_where_disobeying_pays(ENV, allowed, "add") > 0.99


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="allowed: add, replace"):
        obedience_values(ENV, only(Macro.STAY), "subtract")
    with pytest.raises(ValueError, match="allowed no macro"):
        obedience_values(ENV, only(), "add")
    with pytest.raises(ValueError, match="dynamics 'reference' cannot be planned; allowed: paper"):
        optimal_return(BoxPushing(dynamics="reference"))
