"""The default preset is free of units: if all rewards are multiplied by a number, nothing else changes."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import preset_of
from mavic.experiment.task import task_of
from mavic.training import train
from mavic.training.runs import Run, make_run
from mavic.types import replace

pytestmark = pytest.mark.long  # it compiles for long
SCALES = (1.0, 128.0, 1 / 128, 100.0)
REWARDS = ("big", "small", "penalty", "step")
PAID = ("pay", "penalty", "bonus", "credit")


def scaled(env, scale):
    """The instructed environment with everything that it pays multiplied by a number."""
    world = replace(env.env, **{name: getattr(env.env, name) * scale for name in REWARDS})
    rules = replace(env.rules, **{name: getattr(env.rules, name) * scale for name in PAID})
    return replace(env, env=world, rules=rules)


@pytest.fixture(scope="module")
def trained():
    config = ExperimentConfig(world="box_pushing", options={"size": 4}, population=1)
    task = task_of(config)
    preset = preset_of("default", "box_pushing", batch=16, episodes=160, hidden=8)
    static = task.static_config(preset, config.network)
    one = make_run(config, preset, task, 5)
    runs = Run.stack([replace(one, train_env=scaled(one.train_env, scale)) for scale in SCALES])
    state = train.init_states(static, runs)
    return train.train_updates(static, 16, 4, task.vectors, runs, state)


def test_rewards_times_a_power_of_two_give_the_same_weights_bit_by_bit(trained):
    state, metrics = trained
    for leaf in jax.tree.leaves((state.actor, state.critic, metrics.update.entropy)):
        np.testing.assert_array_equal(leaf[0], leaf[1])
        np.testing.assert_array_equal(leaf[0], leaf[2])


def test_values_have_the_units_of_the_rewards(trained):
    _, metrics = trained
    value = np.asarray(metrics.update.value)
    assert np.abs(value[0]).max() > 1e-3
    np.testing.assert_array_equal(value[0] * 128, value[1])
    np.testing.assert_allclose(value[0] * 100, value[3], rtol=1e-3, atol=1e-2)


def test_rewards_times_a_hundred_give_the_same_weights_up_to_rounding(trained):
    state, _ = trained
    for leaf in jax.tree.leaves(state.actor):
        np.testing.assert_allclose(leaf[0], leaf[3], rtol=1e-2, atol=1e-3)
