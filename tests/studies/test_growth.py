"""How costs grow: the slope on logarithmic scales, and a field in which nothing else changes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from mavic.envs import api
from tools import growth


def test_the_exponent_is_the_slope_of_the_last_points():
    points = [(size, 3.0 * size**1.5) for size in (4, 8, 16)]
    assert growth.exponent([(2, 1e6), *points]) == pytest.approx(1.5)


def test_every_robot_works_alone_and_an_episode_lasts_to_the_horizon():
    env = growth.Field(robots=3, ticks=5, kinds=2)
    assert (env.name, len(env.agents), env.horizon) == ("field_2", 3, 5)
    state, macro = env.reset(jax.random.key(0)), jnp.asarray(list(growth.Macro))
    fresh, paid, ended = jnp.ones(3, bool), [], []
    for _ in range(4):
        tick = env.tick(jax.random.key(0), state, macro, fresh, jnp.zeros(3, jnp.int32))
        state, fresh = tick.state, tick.ended
        paid.append(round(3 * float(tick.reward[0])))
        ended.append(tick.ended.tolist())
        assert not tick.terminal
    assert paid == [0, 1, 0, 1 + 3]
    assert ended == [[1, 0, 0], [1, 1, 0], [1, 0, 0], [1, 1, 1]]


def test_a_world_has_as_many_kinds_as_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(api, "REGISTERED", dict(api.REGISTERED))
    assert growth.world_of(3, tmp_path) == "field_3"
    assert (tmp_path / "field_3.toml").read_text().count("[kinds.") == 3
