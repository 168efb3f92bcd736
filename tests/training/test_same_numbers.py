"""A short training in every world gives the numbers that it gave before.

`same_numbers.json` was written by the code before drills, contexts and hearing kinds came, which in turn trained as
version 0.1 did. Warehouse has the penalty of that time. A change of the code that is to leave training alone must leave
these numbers alone. One that is to change them writes the file anew and says so in the changelog.
"""

from __future__ import annotations

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from mavic.experiment.config import ExperimentConfig
from mavic.experiment.task import task_of
from mavic.preset import Preset
from mavic.training import train
from mavic.training.runs import Run, make_run

CASES = json.loads((Path(__file__).parent / "same_numbers.json").read_text())
SEED, UPDATES, NUM_ENVS = 3, 3, 16


def norm(tree):
    return sum((np.asarray(leaf, np.float64) ** 2).sum() for leaf in jax.tree.leaves(tree)) ** 0.5


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=[case["config"]["world"] for case in CASES])
def test_a_short_training_gives_the_numbers_that_it_gave_before(case):
    config, preset = ExperimentConfig.of(case["config"]), Preset.of(case["preset"])
    task = task_of(config)
    static = task.static_config(preset, config.network)
    runs = Run.stack([make_run(config, preset, task, SEED)])
    state = train.init_states(static, runs)
    state, metrics = train.train_updates(static, NUM_ENVS, UPDATES, task.vectors, runs, state)
    found = {
        "task_return": metrics.task_return[0],
        "critic_loss": metrics.update.critic_loss[0],
        "entropy": metrics.update.entropy[0],
        "value": metrics.update.value[0],
        "ticks": metrics.ticks[0],
        "actor_norm": norm(state.actor),
        "critic_norm": norm(state.critic),
    }
    assert found.keys() == case["found"].keys()
    for name, number in case["found"].items():
        np.testing.assert_allclose(found[name], number, rtol=1e-4, err_msg=name)
