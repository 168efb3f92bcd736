"""The search for the best plan of a small world, against plans worked out by hand and the planners of our worlds."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
import yard

import mavic
from mavic.envs import api
from mavic.envs.box_pushing.optimum import best_return
from mavic.rollout.plan import plan, searched
from mavic.types import record, replace

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


@record
class Lottery(yard.Yard):
    def tick(self, key, state, macro, fresh, effect):
        tick = yard.Yard.tick(self, key, state, macro, fresh, effect)
        return replace(tick, reward=tick.reward + jax.random.uniform(key))


@record
class Anywhere(yard.Yard):
    def reset(self, key):
        first = yard.Yard.reset(self, key)
        return replace(first, x=jax.random.randint(key, (2,), 0, 3).astype(jnp.int32))


@pytest.mark.parametrize(
    ("env", "why"), [(Lottery(), "a tick of yard"), (Anywhere(), "the first state of yard")]
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
