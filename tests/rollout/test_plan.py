"""The search for the best plan of a small world, against plans worked out by hand and the planners of our worlds."""

from __future__ import annotations

import math
from enum import IntEnum
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import yard
from corridor import HURRY, RING, RULES, Corridor, Left, Right

import mavic
from mavic.envs import api
from mavic.envs.box_pushing.optimum import best_return
from mavic.rollout import plan as search
from mavic.rollout.plan import Plan, _Asked, _distinct, _Move, _move, _search, plan, searched
from mavic.types import Tick, record, replace

GAMMA = 0.9
KINDS = {
    "no-ringing": {"rule": "add", "forbid": ["RING"], "train": ["no ringing"]},
    "no-digging": {"rule": "add", "forbid": ["DIG", "PATROL"], "train": ["no digging"]},
    "stay": {"rule": "replace", "allow": ["STAY"], "train": ["stay"]},
    "ring-first": {
        "rule": "add",
        "forbid": ["WALK"],
        "resolved_by": {"bell": 1},
        "train": ["ring first"],
    },
    "never-ring": {
        "rule": "add",
        "forbid": ["FLY"],
        "resolved_by": {"bell": -1},
        "train": ["never ring"],
    },
}


def of_ticks(ticks: int) -> float:
    """What the yard's task earns if it is done in so many ticks."""
    return -0.1 * (1 - GAMMA**ticks) / (1 - GAMMA) + 100 * GAMMA ** (ticks - 1)


@pytest.fixture(autouse=True)
def world(tmp_path, monkeypatch):
    lines = ['world = "yard"']
    for name, kind in KINDS.items():
        lines.append(f"[kinds.{name}]")
        for key, value in kind.items():
            text = str(value).replace("'", '"').replace('{"bell": ', "{ bell = ")
            lines.append(f"{key} = {text}" if not isinstance(value, str) else f'{key} = "{value}"')
    path = tmp_path / "yard.toml"
    path.write_text("\n".join(lines))
    monkeypatch.setattr(api, "REGISTERED", {})
    api.register("yard", yard.Yard, instructions=path)
    return path


def test_the_best_plan_of_the_yard_by_hand():
    """Two steps and one to dig: three ticks."""
    found = plan(yard.Yard(), gamma=GAMMA, most=100.0)
    assert found.exact and found.value == pytest.approx(of_ticks(3)) == found.bound
    assert found.macros == (("WALK", "WALK"), ("WALK", "WALK"), ("DIG", "DIG"))


def test_the_best_obedient_plans_of_the_yard_by_hand():
    def best(kind):
        return plan(yard.Yard(), kind, gamma=GAMMA, most=100.0)

    assert best("no-ringing").value == pytest.approx(of_ticks(3))
    waiting = best("no-digging")  # the task cannot be done: 30 ticks of waiting
    assert waiting.exact and waiting.value == pytest.approx(-0.1 * (1 - GAMMA**30) / (1 - GAMMA))
    assert not any("DIG" in joint for joint in waiting.macros)
    assert best("stay") is None
    rung = best("ring-first")  # one tick more: the bell ends the instruction, then all may walk
    assert rung.value == pytest.approx(of_ticks(4)) and {"RING", "KNOCK"} & {*rung.macros[0]}
    assert best("never-ring").value == pytest.approx(of_ticks(3))
    assert best("no-ringing+no-digging").value == pytest.approx(waiting.value)


def test_a_narrow_search_says_that_it_is_not_exact():
    found = plan(yard.Yard(length=5), gamma=GAMMA, most=100.0, width=1)
    assert found is not None and not found.exact and found.bound > found.value
    unknown = plan(yard.Yard(length=5), gamma=GAMMA, width=1)
    assert unknown.bound == float("inf") and not unknown.exact


class Only(IntEnum):
    WAIT = 0
    TAKE = 1


@record
class Treasure(Corridor):
    """A treasure that grows: who takes it in tick 0, 1 or 2 has 1, 8 or 12, and the episode ends."""

    agents = ("only",)
    macros = (Only,)
    events = ()

    def reset(self, key):
        return jnp.int32(0)

    def tick(self, key, state, macro, fresh, effect):
        takes = macro[0] == Only.TAKE
        return Tick(
            state=state + 1,
            reward=jnp.where(takes, jnp.array([1.0, 8.0, 12.0])[state], 0.0)[None],
            ended=jnp.ones(1, bool),
            terminal=takes,
            events=jnp.zeros(0),
            effective_macro=macro,
        )

    def available(self, state):
        return jnp.ones((1, 2), bool)


def test_what_can_still_be_earned_keeps_a_situation_that_earned_nothing_yet():
    """At a discount of a half the treasure is worth 1, 4 or 3. Taking it at once is found first."""
    found = plan(Treasure(horizon=3), gamma=0.5, most=12.0)
    assert (found.value, found.bound, found.exact) == (4.0, 4.0, True)
    assert found.macros == (("WAIT",), ("TAKE",))


def test_a_search_that_finds_nothing_better_returns_the_plan_that_is_known():
    known = Plan(value=100.0, exact=False, bound=math.inf, macros=(("TAKE",),))
    found = _search(
        Treasure(horizon=3), None, 0.5, lambda state, gamma: jnp.float32(12.0), 9, known
    )
    assert found == known._replace(exact=True, bound=100.0)


def test_a_move_tells_the_world_what_is_asked_and_judges_only_what_still_holds():
    """Ring, which changes what the world does, is meant for left alone. Hurry forbids to wait."""
    env, fresh = Corridor(), jnp.ones(2, bool)
    first, wait = env.reset(None), jnp.array([Left.WAIT, Right.WAIT])
    asked = _Asked(rules=RULES, kinds=np.array([RING, HURRY], np.int32))
    move = jax.jit(partial(_move, env, asked))
    alone = jax.jit(partial(_move, env, None))(first, wait, fresh, jnp.zeros(0, bool))
    assert alone.state.heard.tolist() == [0, 0] and not bool(alone.broken)
    for held, heard, broken in (
        ([True, False], [1, 0], False),
        ([True, True], [1, 0], True),
        ([False, False], [0, 0], False),
    ):
        moved = move(first, wait, fresh, jnp.array(held))
        assert (moved.state.heard.tolist(), bool(moved.broken)) == (heard, broken)
        assert moved.held.tolist() == held and float(moved.reward) == 5.5
    # The bell ends ring, and with it right's macro too.
    moved = move(first, jnp.array([Left.RING, Right.WALK]), fresh, jnp.array([True, True]))
    assert (moved.held.tolist(), moved.idle.tolist()) == ([False, True], [True, True])


def test_of_the_same_situations_the_one_that_earned_most_is_kept():
    """Row 1 may not go on. Rows 0 and 3 are the same situation. In row 2 the agent goes on with another macro."""
    idle = np.array([[True], [True], [False], [True]])
    moved = _Move(np.full(4, 7), np.zeros(4), idle, np.zeros((4, 0), bool), idle[:, 0], idle[:, 0])
    macro, value = np.array([[0], [0], [1], [1]]), np.array([2.0, 9.0, 1.0, 3.0])
    nodes, rows = _distinct(moved, macro, value, np.array([0, 2, 3]))
    assert rows.tolist() == [3, 2] and nodes.value.tolist() == [3.0, 1.0]
    nodes, rows = _distinct(moved, macro, value, np.arange(0))
    assert not len(rows) and not len(nodes.value)


def test_an_optimum_is_searched_once_and_only_one_that_is_exact_counts(monkeypatch, world):
    """By the kind: the file may change, and so may the options. A world without a file has an optimum too."""
    found = {None: (1.23456, True), "narrow": (5.0, False), "quiet": (4.0, True)}
    asked = []

    def stand_in(env, kind, **more):
        asked.append((env.name, kind, more["gamma"], more["most"], more["width"]))
        return None if kind == "stay" else Plan(*found[kind], bound=9.0, macros=())

    monkeypatch.setattr(search, "plan", stand_in)
    optimum = searched(most=100.0, width=8)
    for _ in range(2):
        assert optimum(yard.Yard(), 0.5) == 1.2346
        assert optimum(yard.Yard(), 0.5, "narrow") is None
        assert optimum(yard.Yard(), 0.5, "stay") is None
    kinds = [None, "narrow", "stay"]
    assert asked == [("yard", kind, 0.5, 100.0, 8) for kind in kinds]
    optimum(yard.Yard(length=4), 0.5)
    optimum(yard.Yard(), 0.25)
    world.write_text(world.read_text() + "# changed")
    optimum(yard.Yard(), 0.5)
    assert len(asked) == 6
    api.register("corridor", Corridor)
    assert optimum(Corridor(), 0.5, "quiet") == 4.0


@record
class Lottery(yard.Yard):
    def tick(self, key, state, macro, fresh, effect):
        tick = yard.Yard.tick(self, key, state, macro, fresh, effect)
        return replace(tick, reward=tick.reward + jax.random.uniform(key))


@record
class Blind(yard.Yard):
    """What digs in vain moves by chance."""

    def available(self, state):
        return jnp.ones((2, len(yard.Macro)), bool)

    def tick(self, key, state, macro, fresh, effect):
        tick = yard.Yard.tick(self, key, state, macro, fresh, effect)
        moved = jnp.where(macro == yard.Macro.DIG, jax.random.uniform(key), 0.0)
        return replace(tick, reward=tick.reward + moved)


@record
class Anywhere(yard.Yard):
    def reset(self, key):
        first = yard.Yard.reset(self, key)
        return replace(first, x=jax.random.randint(key, (2,), 0, 3).astype(jnp.int32))


@pytest.mark.parametrize(
    ("env", "why"),
    [
        (Lottery(), "a tick of yard"),
        (Blind(), "a tick of yard"),
        (Anywhere(), "the first state of yard"),
    ],
)
def test_a_world_of_chance_is_refused(env, why):
    with pytest.raises(ValueError, match=f"{why} is random"):
        plan(env, gamma=GAMMA)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=r"kind 'no-ring' is unknown; did you mean 'no-ringing'"):
        plan(yard.Yard(), "no-ring", gamma=GAMMA)


@pytest.mark.long
def test_a_world_gets_its_optima_for_free(world):
    api.register("yard", yard.Yard, optimum=searched(most=100.0))
    optimum = api.world("yard").optimum
    assert optimum(yard.Yard(), GAMMA, None) == pytest.approx(of_ticks(3), abs=1e-4)
    assert optimum(yard.Yard(length=4), GAMMA, None) == pytest.approx(of_ticks(4), abs=1e-4)
    assert optimum(yard.Yard(), GAMMA, "ring-first") == pytest.approx(of_ticks(4), abs=1e-4)
    assert optimum(yard.Yard(), GAMMA, "stay") is None
    assert mavic.plan("yard", gamma=GAMMA, most=100.0, length=4).value == pytest.approx(of_ticks(4))


@pytest.mark.long
@pytest.mark.parametrize("size", [4, 6])
def test_it_finds_the_optimum_of_box_pushing(size):
    env = api.make("box_pushing", size=size)
    found = mavic.plan("box_pushing", gamma=0.995, most=300.0, size=size)
    assert found.exact and found.value == pytest.approx(best_return(env, 0.995), abs=1e-3)
    if size == 6:
        assert found.value == pytest.approx(291.982, abs=1e-3)
        obedient = plan(env, "avoid-small-boxes", gamma=0.995, most=300.0)
        assert obedient.value == pytest.approx(291.982, abs=1e-3)
