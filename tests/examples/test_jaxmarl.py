"""The example in JaxMARL's Overcooked: its macros cook and serve soups, with one pot or both."""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from mavic.envs import api
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.task import task_of

FOLDER = Path(__file__).parents[2] / "examples" / "jaxmarl"
NAMES = ["ONION", "PLATE", "TOP_POT", "LOWER_POT", "SERVE", "WAIT"]
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture
def env(monkeypatch):
    monkeypatch.setattr(api, "REGISTERED", {})
    monkeypatch.syspath_prepend(str(FOLDER))
    sys.modules.pop("jaxmarl_team", None)
    with jax.numpy_rank_promotion("allow"):  # JaxMARL relies on it
        import jaxmarl_team

        assert jaxmarl_team.TOP == (2, 4) and jaxmarl_team.LOWER == (3, 4)
        yield api.make("jaxmarl")


def test_it_is_short():
    lines = [path.read_text().count("\n") for path in FOLDER.glob("jaxmarl_team.*")]
    assert len(lines) == 2 and sum(lines) <= 150


def test_a_simple_rule_serves_soups_with_one_pot_and_more_with_both(env):
    assert [macro.name for macro in env.macros[0]] == NAMES

    def served(key, order):
        def tick(carry, _):
            state, macro, idle = carry
            can = jnp.argmax(env.available(state)[:, order], 1)  # the first that can start
            macro = jnp.where(idle, order[can], macro)
            now = env.tick(key, state, macro, idle, jnp.zeros(2, jnp.int32))
            return (now.state, macro, now.ended), (now.reward[0], now.events[1])

        start = env.reset(key), jnp.full(2, 5), jnp.ones(2, bool)
        return jax.lax.scan(tick, start, length=env.horizon)[1]

    orders = [
        ("SERVE", "TOP_POT", "LOWER_POT", "PLATE", "ONION", "WAIT"),
        ("SERVE", "LOWER_POT", "PLATE", "ONION", "WAIT", "TOP_POT"),  # the top pot is never used
        ("WAIT", *NAMES[:-1]),
    ]
    numbers = jnp.array([[NAMES.index(name) for name in order] for order in orders])
    earned, soups = jax.jit(jax.vmap(served, (None, 0)))(jax.random.key(0), numbers)
    both, lower, none = earned.sum(1).tolist()
    assert both > lower >= 60 and none == 0
    assert (earned == 20 * soups).all()


def test_the_kinds_fit_the_world(env):
    task = task_of(ExperimentConfig(world="jaxmarl"))
    assert task.env.agents == ("cook_1", "cook_2") and task.observation_size == 26
    assert task.file.names() == ("not-top-pot", "cook-1-stop")


def test_a_picture_shows_both_pots_and_both_cooks(env):
    sprites = env.scene(env.reset(jax.random.key(0)), None).sprites
    assert [(s.x, s.y) for s in sprites if s.name == "pot"] == [(4, 2), (4, 3)]
    assert [s.name for s in sprites[-2:]] == ["cook 1", "cook 2"]
