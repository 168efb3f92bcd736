"""The example in Jumanji's Level-Based Foraging: a JAX environment that others wrote, with macros."""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from mavic.envs import api
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.task import task_of

FOLDER = Path(__file__).parents[2] / "examples" / "foraging"
pytestmark = pytest.mark.long


@pytest.fixture
def env(monkeypatch):
    monkeypatch.setattr(api, "REGISTERED", {})
    monkeypatch.syspath_prepend(str(FOLDER))
    sys.modules.pop("foraging_team", None)
    import foraging_team

    assert foraging_team.FOODS == 2
    with jax.numpy_rank_promotion("allow"):  # Jumanji relies on it
        yield api.make("foraging")


def test_it_is_short():
    lines = [path.read_text().count("\n") for path in FOLDER.glob("foraging_team.*")]
    assert len(lines) == 2 and sum(lines) <= 150


def test_a_simple_rule_loads_all_food(env):
    """Both go to food 1 and load, then to food 2. Most episodes are solved; waiting solves none."""
    names = [macro.name for macro in env.macros[0]]
    assert names == ["GO_1", "GO_2", "LOAD", "WAIT"]

    def solved(key, works):
        def tick(carry, _):
            state, macro, idle, done = carry
            food = state.world.food_items.eaten[0].astype(jnp.int32)
            after_go = jnp.where(macro < 2, 2, food)  # load after each walk
            macro = jnp.where(idle, jnp.where(works, after_go, 3), macro)
            can = jnp.take_along_axis(env.available(state), macro[:, None], 1)[:, 0]
            macro = jnp.where(can, macro, 2)
            now = env.tick(key, state, macro, idle, jnp.zeros(2, jnp.int32))
            return (now.state, macro, now.ended, done | (now.events[0] > 0)), None

        start = env.reset(key), jnp.full(2, 3), jnp.ones(2, bool), jnp.bool_(False)
        return jax.lax.scan(tick, start, length=env.horizon)[0][-1]

    keys = jax.random.split(jax.random.key(0), 64)
    share = jax.jit(jax.vmap(lambda key: jnp.stack([solved(key, True), solved(key, False)])))(keys)
    assert share[:, 0].mean() > 0.5 and share[:, 1].sum() == 0


def test_the_kinds_fit_the_world(env):
    task = task_of(ExperimentConfig(world="foraging"))
    assert task.env.agents == env.agents and task.observation_size == 10
    assert task.file.names() == ("not-food-1", "stop", "agent-1-stop")
