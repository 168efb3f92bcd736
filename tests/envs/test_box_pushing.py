"""Box Pushing: each test shows a picture, runs macros and compares the picture after. Then invariants."""

from __future__ import annotations

import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mavic.envs import painting
from mavic.envs.api import make
from mavic.envs.box_pushing import BoxPushing, Macro, Robot, State
from mavic.envs.conformance import check_env
from mavic.types import Tick, replace

SB0, SB1, BB0, BB1, PUSH, LEFT, RIGHT, STAY = Macro
PAPER = BoxPushing()
REFERENCE = BoxPushing(dynamics="reference")
KEY = jax.random.key(0)
GAMMA = 0.995

tick = jax.jit(BoxPushing.tick)


def robot(x: int, y: int, heading: str, waypoint: int = -1) -> Robot:
    numbers = (x, y, "NESW".index(heading), waypoint)
    return Robot(
        **dict(zip(("x", "y", "heading", "waypoint"), map(jnp.int16, numbers), strict=True))
    )


def place(rows: list[str]) -> State:
    """Return the state that a picture shows."""
    found = {}
    for y, row in enumerate(reversed(rows)):
        for name in "01":
            for arrow, heading in zip("▲▶▼◀", "NESW", strict=True):
                if (at := row.find(arrow + name)) >= 0:
                    found["robot" + name] = robot(at // painting.CELL, y, heading)
            if f"[ {name}" in row:
                found["box" + name] = jnp.int16(y)
        if "BIG" in row:
            found["big"] = jnp.int16(y)
    return State(
        robots=(found["robot0"], found["robot1"]),
        small=(found["box0"], found["box1"]),
        big=found["big"],
        pushing=jnp.bool_(False),
    )


def show(env: BoxPushing, state: State) -> list[str]:
    """Return what `painting.text` draws, without frame, waypoints and notes."""
    lines = painting.text(env.scene(state, jnp.array([STAY, STAY]))).splitlines()
    numbers = {
        "B": "0",
        "O": "1",
        "L": "0",
        "R": "1",
    }  # of the blue and orange robot, the left and right box
    plain = [line[1:-1].replace("·", " ").rstrip() for line in lines[1 : env.size + 1]]
    return [re.sub(r"\b[BOLR]\b", lambda found: numbers[found[0]], line) for line in plain]


def run(env: BoxPushing, state: State, *choices: tuple[Macro | None, Macro | None]) -> list[Tick]:
    """Run one tick per pair of choices. None lets the running macro run on."""
    macro, ticks = jnp.array([STAY, STAY]), []
    for pair in choices:
        fresh = jnp.array([choice is not None for choice in pair])
        macro = jnp.where(fresh, jnp.array([0 if c is None else c for c in pair]), macro)
        ticks.append(tick(env, KEY, state, macro, fresh, jnp.zeros(2, jnp.int32)))
        state = ticks[-1].state
    return ticks


def follow(
    env: BoxPushing, picture: str, *choices: tuple[Macro | None, Macro | None]
) -> list[Tick]:
    """Play from the left picture and compare the result with the right one."""
    rows = [line.split("|") for line in picture.strip("\n").splitlines()]
    before = [left.removeprefix("    ").rstrip() for left, _ in rows]
    after = [right.removeprefix(" ").rstrip() for _, right in rows]
    assert show(env, place(before)) == before, "the test's own picture is not what it shows"
    ticks = run(env, place(before), *choices)
    assert show(env, ticks[-1].state) == after
    return ticks


def fines(ticks: list[Tick]) -> list[int]:
    return [int(t.events[PAPER.events.index("penalty")]) for t in ticks]


def ends(ticks: list[Tick], agent: int = 0) -> list[bool]:
    return [bool(t.ended[agent]) for t in ticks]


def discounted(ticks: list[Tick]) -> float:
    return sum(GAMMA**k * float(t.reward[0]) for k, t in enumerate(ticks))


ON = (None, None)


@pytest.mark.parametrize("env", [PAPER, REFERENCE], ids=["paper", "reference"])
def test_straight_plan_is_worth_291_98(env):
    ticks = run(env, env.reset(KEY), (BB0, BB1), ON, ON, ON, (PUSH, PUSH), ON)
    assert ends(ticks) == ends(ticks, 1) == [False, False, False, True, False, True]
    assert [bool(t.terminal) for t in ticks] == [False] * 5 + [True]
    assert discounted(ticks) == pytest.approx(291.982, abs=1e-3)


@pytest.mark.parametrize("env", [PAPER, REFERENCE], ids=["paper", "reference"])
def test_crossed_plan_passes_through_and_is_worth_290_42(env):
    ticks = run(env, env.reset(KEY), (BB1, BB0), *[ON] * 4, (PUSH, PUSH), ON)
    assert bool(ticks[-1].terminal) and len(ticks) == 7
    assert discounted(ticks) == pytest.approx(290.4222, abs=1e-3)


def test_both_small_boxes_pay_together():
    ticks = run(PAPER, PAPER.reset(KEY), (SB0, SB1), ON, (PUSH, PUSH), ON)
    assert ends(ticks) == [False, True, False, True]
    assert discounted(ticks) == pytest.approx(19.304, abs=1e-3)
    assert np.asarray(ticks[-1].events).tolist() == [0.0, 2.0, 0.0, 0.0]


def test_go_to_walks_along_its_heading():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      [   BIG    ]      [ 1  ]
                                         |
    ▶0                            ◀1     |       ▶0                ◀1
                                         |
""",
        (BB0, BB1),
    )
    assert ends(ticks) == [False]


def test_go_to_takes_a_tick_to_turn_aside():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      [   BIG    ]      [ 1  ]
                                         |
                ▶0    ◀1                 |             ▲0    ▲1
                                         |
""",
        (BB0, BB1),
    )
    assert ends(ticks) == [False]


def test_go_to_turns_right_to_turn_back():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      [   BIG    ]      [ 1  ]
                                         |
                ▼1                       |             ◀1
                ◀0                       |             ▲0
""",
        (SB1, BB0),
    )
    assert ends(ticks) == [False]


def test_go_to_ends_facing_north():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      [   BIG    ]      [ 1  ]
    ◀0                                   | ▲0                            ▲1
                                  ▲1     |
                                         |
""",
        (SB0, SB1),
    )
    assert ends(ticks) == ends(ticks, 1) == [True]


def test_go_to_walks_round_the_boxes():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                  ◀1     |
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      [   BIG    ]      [ 1  ]
                                         |                         ▼1
    ▶0                                   | ▶0
                                         |
""",
        (STAY, SB1),
        (STAY, None),
        (STAY, None),
        (STAY, None),
    )
    assert not any(ends(ticks, 1))


def test_go_to_stays_inside_in_paper():
    follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                  ▼1     |                               ◀1
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      [   BIG    ]      [ 1  ]
                                         |
    ▶0                                   | ▶0
                                         |
""",
        (STAY, SB1),
    )


def test_go_to_walks_outside_in_reference():
    """The picture shows the robot at the edge, and a note says where it is."""
    ticks = follow(
        REFERENCE,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                  ▶1     |                               ▶1
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      [   BIG    ]      [ 1  ]
                                         |
    ▶0                                   | ▶0
                                         |
""",
        (STAY, SB1),
    )
    assert int(ticks[-1].state.robots[1].x) == 6
    assert "outside at (6, 4)" in painting.text(
        REFERENCE.scene(ticks[-1].state, jnp.array([STAY, SB1]))
    )


def test_push_runs_to_the_wall_without_a_fine():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░▲0░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      [   BIG    ]      [ 1  ]
          ▲0                             |
                            ◀1           |       ◀1
                                         |
""",
        (PUSH, PUSH),
        ON,
        ON,
    )
    assert ends(ticks) == [False, False, True]
    assert ends(ticks, 1) == [False, False, False]
    assert fines(ticks) == [0, 0, 0]
    assert not bool(ticks[-1].terminal)


def test_push_against_a_wall_is_fined():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      [   BIG    ]      [ 1  ]
                                         |
    ◀0                                   | ◀0
                                  ▼1     |                               ▼1
""",
        (PUSH, PUSH),
    )
    assert fines(ticks) == [2] and ends(ticks) == ends(ticks, 1) == [True]
    assert float(ticks[0].reward[0]) == pytest.approx(-0.1 - 5 - 5)


def test_push_carries_a_small_box_home():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | [ 0  ]░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         | ▲0
    [ 0  ]      [   BIG    ]      [ 1  ] |             [   BIG    ]      [ 1  ]
    ▲0                                   |
                                  ◀1     |                               ◀1
                                         |
""",
        (PUSH, STAY),
        (None, STAY),
    )
    assert ends(ticks) == [False, True]
    assert [bool(t.terminal) for t in ticks] == [False, True]
    assert float(ticks[1].reward[0]) == pytest.approx(10 - 0.1)


def test_small_boxes_move_north_alone():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                  ▼1     |                               ▼1
    [ 0  ]◀0    [   BIG    ]      [ 1  ] | [ 0  ]◀0    [   BIG    ]      [ 1  ]
                                         |
                                         |
                                         |
""",
        (PUSH, PUSH),
    )
    assert fines(ticks) == [2] and ends(ticks) == ends(ticks, 1) == [True]


def test_nobody_pushes_the_big_box_alone():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      [   BIG    ]      [ 1  ]
                ▲0    ▲1                 |             ▲0    ▲1
                                         |
                                         |
""",
        (PUSH, STAY),
    )
    assert fines(ticks) == [1] and ends(ticks) == [True]


def test_the_big_box_cannot_be_pushed_from_the_side():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |
    [ 0  ]▶0    [   BIG    ]◀1    [ 1  ] | [ 0  ]▶0    [   BIG    ]◀1    [ 1  ]
                                         |
                                         |
                                         |
""",
        (PUSH, PUSH),
    )
    assert fines(ticks) == [2]


def test_turns_take_one_tick():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      [   BIG    ]      [ 1  ]
                                         |
    ▶0                            ◀1     | ▲0                            ▲1
                                         |
""",
        (LEFT, RIGHT),
    )
    assert ends(ticks) == ends(ticks, 1) == [True]


def test_stay_takes_one_tick():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      [   BIG    ]      [ 1  ]
                                         |
    ▶0                            ◀1     | ▶0                            ◀1
                                         |
""",
        (STAY, STAY),
    )
    assert ends(ticks) == ends(ticks, 1) == [True]
    assert float(ticks[0].reward[0]) == pytest.approx(-0.1)


def test_robots_share_a_cell():
    follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      [   BIG    ]      [ 1  ]
                                         |
                ▶0          ◀1           |                   ▶0◀1
                                         |
""",
        (PUSH, PUSH),
    )


def test_robot_1_meets_the_boxes_as_robot_0_left_them():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         | [ 0  ]
    [ 0  ]      [   BIG    ]      [ 1  ] | ▲0▲1        [   BIG    ]      [ 1  ]
    ▲0▲1                                 |
                                         |
                                         |
""",
        (PUSH, PUSH),
    )
    assert fines(ticks) == [0]


def test_the_shared_push_moves_everything_up():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |             [   BIG    ]
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      ▲0    ▲1          [ 1  ]
                ▲0    ▲1                 |
                                         |
                                         |
""",
        (PUSH, PUSH),
    )
    assert ends(ticks) == [False] and fines(ticks) == [0]
    assert np.asarray(ticks[0].effective_macro).tolist() == [PUSH, PUSH]


def test_the_shared_push_works_with_sides_swapped():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░[   BIG    ]░░░░░░░░░░░░
                                         |             ▲1    ▲0
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]                        [ 1  ]
                ▲1    ▲0                 |
                                         |
                                         |
""",
        (PUSH, PUSH),
        ON,
    )
    assert bool(ticks[-1].terminal) and float(ticks[-1].events[0]) == 1
    assert float(ticks[-1].reward[1]) == pytest.approx(299.9)
    assert ends(ticks) == ends(ticks, 1) == [False, True]


def test_the_shared_push_needs_both_to_choose_in_the_same_tick():
    """Robot 0 came pushing and is not idle when robot 1 chooses."""
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      [   BIG    ]      [ 1  ]
                      ▲1                 |             ▲0    ▲1
                ▲0                       |
                                         |
""",
        (PUSH, STAY),
        (None, PUSH),
    )
    assert fines(ticks) == [0, 2]
    assert ends(ticks) == [False, True]


def test_the_shared_push_needs_both_to_face_north():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      [   BIG    ]      [ 1  ]
                ▲0    ▶1                 |             ▲0          ▶1
                                         |
                                         |
""",
        (PUSH, PUSH),
    )
    assert fines(ticks) == [1]


def test_the_shared_push_needs_both_halves():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      [   BIG    ]      [ 1  ]
                ▲0▲1                     |             ▲0▲1
                                         |
                                         |
""",
        (PUSH, PUSH),
    )
    assert fines(ticks) == [2]


def test_the_shared_push_needs_both_below_the_box():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      [   BIG    ]      [ 1  ]
                ▲0                       |             ▲0    ▲1
                      ▲1                 |
                                         |
""",
        (PUSH, PUSH),
    )
    assert fines(ticks) == [1]


def test_an_interruption_stops_the_shared_push():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |             [   BIG    ]
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      ▲0    ▲1          [ 1  ]
                ▲0    ▲1                 |
                                         |
                                         |
""",
        (PUSH, PUSH),
        (STAY, STAY),
        (STAY, STAY),
    )
    assert not bool(ticks[-1].state.pushing) and fines(ticks) == [0, 0, 0]


def test_an_interrupted_push_is_taken_up_where_they_stand():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░[   BIG    ]░░░░░░░░░░░░
                                         |             ▲0    ▲1
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]                        [ 1  ]
                ▲0    ▲1                 |
                                         |
                                         |
""",
        (PUSH, PUSH),
        (STAY, STAY),
        (PUSH, PUSH),
    )
    assert bool(ticks[-1].terminal) and fines(ticks) == [0, 0, 0]


def test_a_push_chosen_anew_by_both_goes_on():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░[   BIG    ]░░░░░░░░░░░░
                                         |             ▲0    ▲1
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]                        [ 1  ]
                ▲0    ▲1                 |
                                         |
                                         |
""",
        (PUSH, PUSH),
        (PUSH, PUSH),
    )
    assert bool(ticks[-1].terminal)


def test_one_interrupted_robot_stops_the_other():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |             [   BIG    ]
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      ▲0    ▼1          [ 1  ]
                ▲0    ▲1                 |
                                         |
                                         |
""",
        (PUSH, PUSH),
        (None, RIGHT),
        (STAY, RIGHT),
    )
    assert fines(ticks) == [0, 1, 0]
    assert ends(ticks) == [False, True, True]


def test_one_robot_pushing_anew_does_not_continue_the_shared_push():
    ticks = follow(
        PAPER,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |             [   BIG    ]
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      ▲0    ▲1          [ 1  ]
                ▲0    ▲1                 |
                                         |
                                         |
""",
        (PUSH, PUSH),
        (None, PUSH),
    )
    assert fines(ticks) == [0, 2]


def test_the_reference_cannot_be_interrupted():
    ticks = follow(
        REFERENCE,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░[   BIG    ]░░░░░░░░░░░░
                                         |             ▲0    ▲1
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]                        [ 1  ]
                                         |
                ▲0    ▲1                 |
                                         |
""",
        (BB0, BB1),
        (PUSH, PUSH),
        (STAY, LEFT),
    )
    assert bool(ticks[-1].terminal) and np.asarray(ticks[-1].effective_macro).tolist() == [
        PUSH,
        PUSH,
    ]


def test_the_reference_asks_for_the_remembered_waypoint():
    """The robots stand below the box, but no Go-To brought them there."""
    ticks = follow(
        REFERENCE,
        """
    ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ | ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                         |
    [ 0  ]      [   BIG    ]      [ 1  ] | [ 0  ]      [   BIG    ]      [ 1  ]
                ▲0    ▲1                 |             ▲0    ▲1
                                         |
                                         |
""",
        (PUSH, PUSH),
    )
    assert fines(ticks) == [2]


def test_the_reference_remembers_the_waypoint_from_afar():
    """Robots that have left their waypoints still start the push, because their positions do not matter."""
    first = REFERENCE.reset(KEY)
    robots = (robot(0, 0, "N", BB0), robot(5, 0, "N", BB1))
    ticks = run(REFERENCE, replace(first, robots=robots), (PUSH, PUSH))
    assert bool(ticks[0].state.pushing) and int(ticks[0].state.big) == 4


@pytest.mark.parametrize("size", [4, 6, 8, 10, 12])
@pytest.mark.parametrize("dynamics", ["paper", "reference"])
def test_the_first_observation_is_empty(size, dynamics):
    env = BoxPushing(size=size, dynamics=dynamics)
    assert np.asarray(env.observe(env.reset(KEY))).tolist() == [[0, 0, 1, 0, 0]] * 2


@pytest.mark.parametrize(
    ("pose", "mate", "bits"),
    [
        ((0, 2, "N"), (5, 1, "W"), [1, 0, 0, 0, 0]),
        ((5, 4, "S"), (5, 1, "W"), [1, 0, 0, 0, 0]),
        ((2, 2, "N"), (5, 1, "W"), [0, 1, 0, 0, 0]),
        ((4, 3, "W"), (5, 1, "W"), [0, 1, 0, 0, 0]),
        ((1, 1, "N"), (5, 1, "W"), [0, 0, 1, 0, 0]),
        ((0, 1, "W"), (5, 1, "W"), [0, 0, 0, 1, 0]),
        ((3, 5, "N"), (5, 1, "W"), [0, 0, 0, 1, 0]),
        ((3, 0, "S"), (5, 1, "W"), [0, 0, 0, 1, 0]),
        ((5, 2, "E"), (5, 1, "W"), [0, 0, 0, 1, 0]),
        ((4, 1, "E"), (5, 1, "W"), [0, 0, 0, 0, 1]),
        ((5, 1, "E"), (5, 1, "W"), [0, 0, 0, 1, 0]),
        ((5, 2, "N"), (5, 3, "W"), [1, 0, 0, 0, 1]),
    ],
)
def test_what_a_robot_sees(pose, mate, bits):
    state = replace(PAPER.reset(KEY), robots=(robot(*pose), robot(*mate)))
    assert np.asarray(PAPER.observe(state)[0]).tolist() == bits
    swapped = replace(state, robots=state.robots[::-1])
    assert np.asarray(PAPER.observe(swapped)[1]).tolist() == bits


@pytest.mark.parametrize("size", [0, 2, 3, 5, 7, -6, 6.0, "6"])
def test_impossible_sizes_are_refused(size):
    with pytest.raises(ValueError, match="even and 4 or more"):
        BoxPushing(size=size)


def test_unknown_dynamics_are_refused():
    with pytest.raises(ValueError, match="allowed: paper, reference"):
        BoxPushing(dynamics="house")


def test_a_grid_of_rewards_is_one_vmap():
    big = jnp.array([100.0, 300.0])
    envs = jax.vmap(lambda b: BoxPushing(big=b))(big)
    state = replace(PAPER.reset(KEY), robots=(robot(2, 3, "N"), robot(3, 3, "N")), big=jnp.int16(4))
    both, yes, none = jnp.array([PUSH, PUSH]), jnp.ones(2, bool), jnp.zeros(2, jnp.int32)
    axes = (BoxPushing(big=0, small=None, penalty=None, step=None), *[None] * 5)
    out = jax.vmap(BoxPushing.tick, axes)(replace(PAPER, big=envs.big), KEY, state, both, yes, none)
    np.testing.assert_allclose(out.reward, [[99.9, 99.9], [299.9, 299.9]], rtol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [{}, {"dynamics": "reference"}, {"size": 4}],
    ids=["paper", "reference", "4x4"],
)
def test_conforms_to_the_protocol(options):
    check_env(make("box_pushing", **options))


def go_everywhere(env: BoxPushing, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ticks each Go-To takes (0: more than 100) and whether it leaves the grid.

    It tries every cell up to row `rows`, heading and target, with each small box raised by 0 or 1.
    """
    half = env.box_row
    heights = (half, min(half + 1, env.goal - 1))
    ranges = (range(env.size), range(rows), range(4), range(4), set(heights), set(heights))
    cases = jnp.asarray(list(itertools.product(*ranges)), jnp.int16)

    def go(case):
        x, y, heading, target, first, second = case
        walker = Robot(x=x, y=y, heading=heading, waypoint=jnp.int16(-1))
        state = replace(env.reset(KEY), robots=(walker, robot(0, 0, "N")), small=(first, second))
        macro = jnp.array([target, jnp.int16(STAY)])

        def step(carry, time):
            state, took, left = carry
            after = env.tick(KEY, state, macro, jnp.array([time == 0, True]), jnp.zeros(2, int))
            walker = after.state.robots[0]
            out = (walker.x < 0) | (walker.x > env.goal) | (walker.y < 0) | (walker.y > env.goal)
            took = jnp.where((took == 0) & after.ended[0], time + 1, took)
            return (after.state, took, left | (out & ((took == 0) | (took == time + 1)))), None

        return jax.lax.scan(step, (state, 0, jnp.bool_(False)), jnp.arange(100))[0][1:]

    return jax.tree.map(np.asarray, jax.jit(jax.vmap(go))(cases))


@pytest.mark.parametrize(
    ("dynamics", "size", "rows", "longest", "outside"),
    [
        ("paper", 4, 2, 7, 0),  # no robot can pass the full row of boxes before the end
        ("paper", 6, 6, 21, 0),
        pytest.param("paper", 8, 8, 20, 0, marks=pytest.mark.long),
        pytest.param("paper", 10, 10, 22, 0, marks=pytest.mark.long),
        ("reference", 6, 6, 18, 202),
        pytest.param("reference", 8, 8, 20, 0, marks=pytest.mark.long),
    ],
)
def test_every_go_to_ends(dynamics, size, rows, longest, outside):
    took, left = go_everywhere(BoxPushing(size=size, dynamics=dynamics), rows)
    assert took.min() >= 1 and took.max() == longest
    assert left.sum() == outside


@jax.jit
def play(env: BoxPushing, choices: jax.Array, forced: jax.Array) -> tuple[Tick, State]:
    """Play an episode, past its end. Idle or forced robots take the next choice."""

    def step(carry, row):
        state, macro, idle = carry
        choice, force = row
        fresh = idle | force
        macro = jnp.where(fresh, choice, macro)
        after = env.tick(KEY, state, macro, fresh, jnp.zeros(2, jnp.int32))
        return (after.state, after.effective_macro, after.ended), (
            after,
            state,
            after.effective_macro,
        )

    carry = (env.reset(KEY), choices[0], jnp.ones(2, bool))
    return jax.lax.scan(step, carry, (choices, forced))[1]


TICKS = 60
PAIRS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=TICKS, max_size=TICKS)
FORCES = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=TICKS, max_size=TICKS)


def played(env: BoxPushing, pairs: list, forces: list) -> tuple[Tick, State, np.ndarray, int]:
    """Return the episode as numpy arrays, and the number of ticks until it ends."""
    runs = play(env, jnp.asarray(pairs, jnp.int32), jnp.asarray(forces, bool))
    after, before, macros = jax.tree.map(np.asarray, runs)
    over = np.flatnonzero(after.terminal)
    return after, before, macros, int(over[0]) + 1 if len(over) else TICKS


@settings(max_examples=150, deadline=None)
@given(pairs=PAIRS, forces=FORCES)
def test_invariants_of_the_paper_dynamics(pairs, forces):
    after, before, macros, length = played(PAPER, pairs, forces)
    for t in range(length):
        old, new = (jax.tree.map(lambda leaf, t=t: leaf[t], s) for s in (before, after.state))
        for one in new.robots:
            assert 0 <= one.x < 6 and 0 <= one.y < 6 and 0 <= one.heading < 4
        rises = [n - o for o, n in zip((*old.small, old.big), (*new.small, new.big), strict=True)]
        assert min(rises) >= 0
        if rises[2]:
            assert {int(r.x) for r in old.robots} == {2, 3}
            assert all(r.y == old.big - 1 and r.heading == 0 for r in old.robots)
            assert (macros[t] == PUSH).all() and new.pushing and rises[2] == 1
        home = [
            int(row == 5) for row in (*new.small, new.big)
        ]  # ints, because numpy's True + True is True
        assert after.terminal[t] == any(home)
        assert after.events[t][0] == home[2] and after.events[t][1] == home[0] + home[1]
        due = -0.1 + 10 * (home[0] + home[1]) + 300 * home[2] - 5 * after.events[t][2]
        assert after.reward[t] == pytest.approx([due, due], abs=1e-4)
        assert all(bool(e) for m, e in zip(macros[t], after.ended[t], strict=True) if m > PUSH)


@settings(max_examples=100, deadline=None)
@given(pairs=PAIRS)
def test_the_two_dynamics_differ_only_where_documented(pairs):
    """Without interruptions they agree until a push starts in only one of them or a robot leaves the grid."""
    never = [(False, False)] * TICKS
    paper, _, _, length = played(PAPER, pairs, never)
    reference, _, _, _ = played(REFERENCE, pairs, never)
    places = np.stack([(r.x, r.y) for r in reference.state.robots])
    outside = ((places < 0) | (places > 5)).any((0, 1))
    apart = np.flatnonzero(outside | (paper.state.pushing != reference.state.pushing))
    until = min(length, apart[0] if len(apart) else TICKS)
    # Under `paper` a Go-To turns away from the edge one tick before it would have crossed it.
    until = max(until - 1, 0) if len(apart) and outside[apart[0]] else until
    for one, two in zip(paper.state.robots, reference.state.robots, strict=True):
        for field in ("x", "y", "heading"):
            assert (getattr(one, field)[:until] == getattr(two, field)[:until]).all()
    assert (paper.reward[:until] == reference.reward[:until]).all()
    assert (paper.ended[:until] == reference.ended[:until]).all()
