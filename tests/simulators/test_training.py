"""Training in a Python world: an interrupted training resumes and ends with the same numbers."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import toy_simulators as toys
from rich.console import Console

from mavic.envs import api
from mavic.evaluation import evaluate
from mavic.experiment.config import ExperimentConfig
from mavic.session import runner
from mavic.simulators.worlds import python_world
from mavic.training.groups import groups_of


@pytest.mark.long
def test_a_training_that_was_stopped_ends_with_the_same_weights(monkeypatch, tmp_path):
    monkeypatch.setattr(api, "REGISTERED", {})
    monkeypatch.setattr(evaluate, "PROGRESS_EPISODES", 4)
    (tmp_path / "line.toml").write_text(toys.LINE_FILE)
    make = python_world("line", toys.line, horizon=8, actions=toys.ACTIONS, workers=0)
    api.register("line", make, instructions=tmp_path / "line.toml")
    (group,) = groups_of([ExperimentConfig(world="line")], (0, 1), episodes=16, batch=4, hidden=4)
    more = {"points": 4, "num_envs": 2, "console": Console(quiet=True)}
    whole = runner.train_group(group, None, **more)
    with pytest.raises(KeyboardInterrupt):
        runner.train_group(group, tmp_path / "place", stop_after=2, **more)
    again = runner.train_group(group, tmp_path / "place", **more)
    pairs = zip(jax.tree.leaves(whole.state), jax.tree.leaves(again.state), strict=True)
    assert all(np.array_equal(one, two) for one, two in pairs)
    assert len(again.curve) == 4 and "dropped_episodes" not in again.curve[0]
