"""The registry, and `check_env` against worlds that break one promise each."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from mavic.envs import api
from mavic.envs.api import EnvError, check_env, make, register
from mavic.envs.box_pushing import BoxPushing
from mavic.types import Scene, Sprite, record, replace


def test_worlds_are_made_by_name():
    assert make("box_pushing", size=8) == BoxPushing(size=8)


def test_an_unknown_world_names_the_known_ones():
    with pytest.raises(ValueError, match=r"did you mean 'box_pushing'.*warehouse.*overcooked"):
        make("box_pushin")


def test_an_unknown_option_names_the_known_ones():
    with pytest.raises(ValueError, match=r"no option 'sise'; did you mean 'size'"):
        make("box_pushing", sise=8)


def test_users_register_their_worlds(monkeypatch):
    monkeypatch.setattr(api, "WORLDS", {})
    register("box_pushing", BoxPushing)
    assert make("box_pushing", size=4) == BoxPushing(size=4)
    register("warehouse", "mavic.envs.warehouse.env:Warehouse")
    assert make("warehouse").name == "warehouse"
    with pytest.raises(ValueError, match="already registered"):
        register("box_pushing", "another:World")
    register("mine", BoxPushing)
    with pytest.raises(ValueError, match="registered as 'mine' calls itself 'box_pushing'"):
        make("mine")


@record
class Unsolved(BoxPushing):
    events = ("done", "small-box-home", "penalty", "shared-push")


@record
class Nameless(BoxPushing):
    agents = ("robot", "robot")


@record
class Wide(BoxPushing):
    def observe(self, state):
        return BoxPushing.observe(self, state)[None]


@record
class Peeking(BoxPushing):
    def observe(self, state, effect=None):
        return BoxPushing.observe(self, state)


@record
class Dark(BoxPushing):
    def observe(self, state):
        return jnp.where(state.big > 2, jnp.nan, BoxPushing.observe(self, state))


@record
class Stuck(BoxPushing):
    def available(self, state):
        return jnp.zeros((2, 8), bool)


@record
class Widening(BoxPushing):
    def tick(self, key, state, macro, fresh, effect):
        tick = BoxPushing.tick(self, key, state, macro, fresh, effect)
        return replace(tick, state=replace(tick.state, big=tick.state.big.astype(jnp.int32)))


@record
class Moody(BoxPushing):
    def tick(self, key, state, macro, fresh, effect):
        tick = BoxPushing.tick(self, key, state, macro, fresh, effect)
        COUNTER.append(0)
        return replace(tick, reward=tick.reward + len(COUNTER))


COUNTER: list[int] = []


@record
class Adrift(BoxPushing):
    def scene(self, state, macro):
        return Scene(width=6, height=6, sprites=(Sprite(shape="robot", x=5.5, y=0),))


@record
class Gaudy(BoxPushing):
    def scene(self, state, macro):
        return Scene(width=6, height=6, sprites=(Sprite(shape="robot", x=0, y=0, colour="blu"),))


@pytest.mark.parametrize(
    ("world", "complaint"),
    [
        (Unsolved, 'events\\[0\\] must be "solved"'),
        (Nameless, "agents names something twice"),
        (Wide, r"observe must give \[N, O\]"),
        (Peeking, "observe must depend on the state alone"),
        (Widening, "tick turns a leaf of the state from int16"),
        (Moody, "a compiled tick differs from an eager one"),
        (Dark, "an observation is not finite"),
        (Stuck, "an agent has no macro available"),
        (Adrift, "lies outside the picture"),
        (Gaudy, "did you mean 'blue'"),
    ],
)
def test_check_env_names_what_is_wrong(world, complaint, monkeypatch):
    if world in (Dark, Stuck):  # only a rollout shows it
        monkeypatch.setattr(api, "_check_purity", lambda *_: None)
    if world in (Adrift, Gaudy):
        monkeypatch.setattr(api, "_check_purity", lambda *_: None)
        first = (BoxPushing().reset(None), jnp.zeros(2, jnp.int32))
        lanes = api.jax.tree.map(lambda leaf: jnp.asarray(leaf)[None, None], first)
        monkeypatch.setattr(api, "_check_rollout", lambda *_: lanes)
    with pytest.raises(EnvError, match=complaint):
        check_env(world(), ticks=1 if world in (Adrift, Gaudy) else 20)


def test_a_thing_that_is_no_world_is_refused():
    with pytest.raises(EnvError, match=r"the world lacks name, agents, macros"):
        check_env(object())
