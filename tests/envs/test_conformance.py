"""`check_env` against environments that each break one promise."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
import yard

from mavic.envs import conformance
from mavic.envs.box_pushing import BoxPushing
from mavic.envs.conformance import EnvError, check_env
from mavic.types import Scene, Sprite, record, replace


@record
class FirstEventNotSolved(BoxPushing):
    events = ("done", "small-box-home", "penalty", "shared-push")


@record
class TwoAgentsOfOneName(BoxPushing):
    agents = ("robot", "robot")


@record
class ObservationOfThreeAxes(BoxPushing):
    def observe(self, state):
        return BoxPushing.observe(self, state)[None]


@record
class ObservesTheInstruction(BoxPushing):
    def observe(self, state, effect=None):
        return BoxPushing.observe(self, state)


@record
class ObservesNaN(BoxPushing):
    def observe(self, state):
        return jnp.where(state.big > 2, jnp.nan, BoxPushing.observe(self, state))


@record
class NothingAvailable(BoxPushing):
    def available(self, state):
        return jnp.zeros((2, 8), bool)


@record
class ChangesADtype(BoxPushing):
    def tick(self, key, state, macro, fresh, effect):
        tick = BoxPushing.tick(self, key, state, macro, fresh, effect)
        return replace(tick, state=replace(tick.state, big=tick.state.big.astype(jnp.int32)))


@record
class Impure(BoxPushing):
    def tick(self, key, state, macro, fresh, effect):
        tick = BoxPushing.tick(self, key, state, macro, fresh, effect)
        CALLS.append(0)
        return replace(tick, reward=tick.reward + len(CALLS))


CALLS: list[int] = []


@record
class SpriteOutside(BoxPushing):
    def scene(self, state, macro):
        return Scene(width=6, height=6, sprites=(Sprite(shape="robot", x=5.5, y=0),))


@record
class UnknownColour(BoxPushing):
    def scene(self, state, macro):
        return Scene(width=6, height=6, sprites=(Sprite(shape="robot", x=0, y=0, colour="blu"),))


@pytest.mark.parametrize(
    ("env", "complaint"),
    [
        (FirstEventNotSolved, 'events\\[0\\] must be "solved"'),
        (TwoAgentsOfOneName, "agents names something twice"),
        (ObservationOfThreeAxes, r"observe must return \[N, O\]"),
        (ObservesTheInstruction, "observe must depend on the state alone"),
        (ChangesADtype, "tick turns a leaf of the state from int16"),
        (Impure, "a compiled tick differs from an eager one"),
        (ObservesNaN, "an observation is not finite"),
        (NothingAvailable, "an agent has no macro available"),
        (SpriteOutside, "lies outside the picture"),
        (UnknownColour, "did you mean 'blue'"),
    ],
)
def test_check_env_names_what_is_wrong(env, complaint, monkeypatch):
    found_in_rollout = env in (ObservesNaN, NothingAvailable)
    found_in_scene = env in (SpriteOutside, UnknownColour)
    if found_in_rollout or found_in_scene:  # leave out the slower checks that come before
        monkeypatch.setattr(conformance, "_check_purity", lambda *_: None)
    if found_in_scene:
        first = (BoxPushing().reset(jax.random.key(0)), jnp.zeros(2, jnp.int32))
        played = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None, None], first)
        monkeypatch.setattr(conformance, "_check_rollout", lambda *_: played)
    with pytest.raises(EnvError, match=complaint):
        check_env(env(), ticks=1 if found_in_scene else 20)


def test_an_object_that_is_no_environment_is_refused():
    with pytest.raises(EnvError, match=r"the environment lacks name, agents, macros"):
        check_env(object())


def test_the_argument_of_observe_may_have_any_name():
    assert yard.Yard.observe.__code__.co_varnames[:2] == ("self", "s")
    check_env(yard.Yard(), ticks=20)
