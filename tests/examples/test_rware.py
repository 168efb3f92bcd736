"""The example in the Robotic Warehouse: its macros work, teams train in it, and a person can talk to one."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from mavic.apps.recording import Recording
from mavic.envs import api
from mavic.evaluation import evaluate
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.task import task_of
from mavic.session import runner
from mavic.simulators.check import difference
from mavic.simulators.macro_simulator import MacroSimulator, Row
from mavic.training.groups import groups_of

FOLDER = Path(__file__).parents[2] / "examples" / "rware"
pytestmark = pytest.mark.long


@pytest.fixture
def rware(monkeypatch):
    monkeypatch.setattr(api, "REGISTERED", {})
    monkeypatch.syspath_prepend(str(FOLDER))
    sys.modules.pop("rware_team", None)
    import rware_team

    monkeypatch.setitem(sys.modules, "rware_team", rware_team)
    return rware_team


def test_it_is_short():
    lines = [path.read_text().count("\n") for path in FOLDER.glob("rware_team.*")]
    assert len(lines) == 2 and sum(lines) <= 150


def earned(env, choose, episodes=3):
    """The mean return of episodes in which idle robots choose a macro from what is available."""
    description, total = env.description, 0.0
    simulator = MacroSimulator(description)
    for seed in range(episodes):
        row, macro = Row(simulator.reset(seed), description.sizes), [0] * len(env.agents)
        while simulator.time < description.horizon:
            for robot in np.flatnonzero(row.ended):
                macro[robot] = choose(np.flatnonzero(row.available[robot]))
            fresh = (row.ended > 0).tolist()
            row = Row(simulator.tick(macro, fresh), description.sizes)
            total += float(row.reward[0])
    return total / episodes


@pytest.mark.parametrize("robots", [2, 8])
def test_a_simple_rule_delivers_shelves(rware, robots):
    env = api.make("rware", robots=robots)
    assert env.agents[0] == "robot_1" and len(env.agents) == robots
    names = [macro.name for macro in env.macros[0]]
    assert names == ["FETCH_1", "FETCH_2", "FETCH_3", "DELIVER", "RETURN", "WAIT"]
    assert difference(env.description) == ""
    order = [names.index(name) for name in ("DELIVER", "RETURN", "FETCH_1", "FETCH_2", "FETCH_3")]
    busy = earned(env, lambda can: next((m for m in order if m in can), names.index("WAIT")))
    assert busy >= 5
    assert earned(env, lambda can: names.index("WAIT"), episodes=1) == 0


def test_a_picture_shows_shelves_and_robots(rware):
    simulator = MacroSimulator(api.make("rware").description)
    simulator.reset(0)
    scene = simulator.picture()
    assert [sprite.name for sprite in scene.sprites[-2:]] == ["robot 1", "robot 2"]
    assert sum(sprite.colour == "orange" for sprite in scene.sprites) == 4  # requested


def test_the_kinds_fit_the_world(rware):
    task = task_of(ExperimentConfig(world="rware"))
    assert task.file.names() == ("not-aisle-2", "aisle-1-first", "robot-1-stop")


def test_a_team_is_trained_and_talked_to(rware, monkeypatch, tmp_path):
    monkeypatch.setattr(evaluate, "PROGRESS_EPISODES", 4)
    config = ExperimentConfig(world="rware")
    (group,) = groups_of([config], (0,), episodes=16, batch=8, hidden=8)
    trained = runner.train_group(group, points=1, num_envs=4, console=Console(quiet=True))
    assert np.isfinite(trained.curve[0]["base"]).all()
    assert "dropped_episodes" not in trained.curve[0]
    path = trained.save_team(tmp_path / "team", config, 0)
    said = [(5, "robot 1, stop", 20)]
    recording = Recording.of_policy(path, seed=1, script=said, ticks=30)
    told = [frame["instruction"] for frame in recording.frames]
    assert told[4] is None and told[6]["kind"] == "robot-1-stop" and told[6]["agents"] == [0]
    sprites = [frame["scene"]["sprites"] for frame in recording.frames]
    assert sprites[0] != sprites[20]  # robots moved
    api.make("rware").pool.close()
