"""Training from Python: choices, callbacks and results."""

from __future__ import annotations

import dataclasses
import inspect
import json
from dataclasses import replace

import jax
import jaxtyping
import numpy as np
import pytest
from sample_records import score_of

import mavic
from mavic.evaluation import evaluate
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import METHODS, preset_of
from mavic.experiment.task import task_of
from mavic.session import loggers, runner, session
from mavic.session.loggers import Point
from mavic.storage import files
from mavic.training.runs import make_run
from mavic.training.trained import trained_of


def test_choices_are_combined():
    found = list(session.configs_of("box_pushing", method=["mavic", "naive"], network="shared"))
    assert [(c.method, c.network) for c in found] == [("mavic", "shared"), ("naive", "shared")]
    every = list(
        session.configs_of("box_pushing", method="all", condition=["live/add", "paper/add"])
    )
    assert len(every) == 2 * len(METHODS)


def test_a_number_may_be_none():
    assert preset_of("tuned", "box_pushing").n_steps is not None
    assert preset_of("tuned", "box_pushing", n_steps=None).n_steps is None


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        (dict(seeds=0), "seeds must be a whole number from 1"),
        (dict(seeds=[]), "seeds .* must be a list that is not empty"),
        (dict(seeds=True), "seeds .* must be a list, not True"),
        (dict(seeds="3"), "seeds .* must be a list, not '3'"),
        (dict(seeds=[1, 1]), r"without the same thing twice \(1\)"),
        (dict(seeds=[1.5]), "seeds .* each of them a whole number"),
        (dict(overwrite="false"), "overwrite must be true or false, not 'false'"),
        (dict(method=[]), "method is empty"),
    ],
)
def test_what_is_no_choice_is_refused(choices, said, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as users have it
    with pytest.raises(ValueError, match=said):
        mavic.train("box_pushing", **choices)


def test_numpys_numbers_are_numbers(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as users have it
    groups = []
    monkeypatch.setattr(session, "run", lambda group, *_, **__: groups.append(group) or [])
    five = np.int64(5)
    choices = dict(episodes=five, penalty=np.float32(3), hold=(five, np.int32(9)))
    options = {"size": np.int16(4)}
    mavic.train("box_pushing", seeds=np.array([7, 8]), precheck=False, options=options, **choices)
    mavic.train("box_pushing", seeds=np.int64(2), precheck=False)
    (one, two) = groups
    assert one.seeds == (7, 8) and two.seeds == (0, 1) and one.preset.episodes == 5
    assert (one.configs[0].penalty, one.configs[0].hold) == (3.0, (5, 9))
    assert json.dumps(dataclasses.asdict(one.configs[0]))  # plain, for records
    assert mavic.make("box_pushing", size=np.int64(8)).size == 8


def test_a_relative_folder_stays_where_it_was(monkeypatch, tmp_path):
    folders = []

    def wanders(group, folder, **_):
        monkeypatch.chdir(tmp_path / "elsewhere")
        folders.append(folder)
        return []

    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "run", wanders)
    two = dict(network=["shared", "protected"], precheck=False)
    mavic.train("box_pushing", out="runs", hear="vectors", **two)
    assert folders == [tmp_path / "runs" / "box_pushing"] * 2 and not any(
        (tmp_path / "elsewhere").iterdir()
    )


def test_a_sweep_over_numbers_is_one_program():
    """Two values of a number make the same static part and arrays of the same shapes, so nothing compiles twice."""
    config = ExperimentConfig(options={"size": 4})
    task = task_of(config)
    presets = [
        preset_of("tuned", "box_pushing", gamma=gamma, actor_lr=rate)
        for gamma, rate in ((0.98, 1e-3), (0.99, 3e-3))
    ]
    one, other = (task.static_config(preset, config.network) for preset in presets)
    assert one == other and hash(one) == hash(other)
    programs = [jax.tree.map(jax.typeof, make_run(config, preset, task, 0)) for preset in presets]
    assert programs[0] == programs[1]
    assert task.static_config(replace(presets[0], hidden=8), config.network) != one


def test_python_trains_what_is_asked_for(monkeypatch, tmp_path):
    """Training and evaluation are replaced: this is about what reaches them and what comes back."""

    def train_group(group, place, *, on_point, console):
        groups.append((group, place))
        on_point[0]("a point")
        return trained

    trained = mavic_of_no_training()
    groups, points, asked = [], [], []
    monkeypatch.setattr(runner, "train_group", train_group)
    score = score_of([3.0], [0.5], [0.0])

    def evaluated(_, **options):
        asked.append(options)
        return {trained.group.configs[0]: dict(score)}

    monkeypatch.setattr(evaluate, "evaluate", evaluated)
    (result,) = mavic.train(
        "box_pushing", seeds=[4], on_point=points.append, gamma=0.9, options={"size": 4}
    )
    (group, place), *more = groups
    assert not more and place is None and points == ["a point"]
    assert group.seeds == (4,) and group.preset.gamma == 0.9
    assert group.configs[0].options == {"size": 4}
    assert result.base[0] == 3.0 and result.compliance[0] == 0.5 and result.record is None
    team = result.team()
    observation = np.zeros((2, team.shape.observation))
    macro, _ = team.act(jax.random.key(0), team.start(), observation, "stay")
    assert macro.shape == (2,)
    (config,) = trained.group.configs
    old = dict(network=config.network, hear=config.hear, preset=config.preset)
    old |= dict(out=tmp_path, on_point=points.append)
    (result,) = mavic.train("box_pushing", seeds=[4], quick=True, brief=True, **old)
    assert asked[0] == dict(scale=1.0, shield=True, pairs=True)
    assert asked[1] == dict(scale=session.QUICK, shield=False, pairs=False)
    assert groups[1][1].parent == tmp_path / "box_pushing" / "checkpoints"
    assert mavic.load_policy(result.policy).facts["seed"] == trained.group.seeds[0]
    with pytest.raises(ValueError, match="has other seeds"):
        mavic.train("box_pushing", seeds=[5], **old)
    with files.locked(tmp_path / "box_pushing"), pytest.raises(files.LockedError):
        mavic.train("box_pushing", seeds=[4], **old)
    (tmp_path / "file").write_text("")
    with pytest.raises(files._StorageError, match="files cannot be written here"):
        mavic.train("box_pushing", seeds=[4], **{**old, "out": tmp_path / "file"})
    assert len(groups) == 2  # nothing was trained in between


def mavic_of_no_training():
    """The shipped team, as if it had just been trained."""
    return trained_of("box_pushing/mavic")


def point(number=1):
    configs = (ExperimentConfig(method="mavic"), ExperimentConfig(method="naive"))
    values = {"episodes": 640, "steps_per_second": 1e5, "base": np.arange(4.0)}
    values |= {"compliance": np.full(4, 0.5), "value": np.arange(8.0).reshape(4, 2)}
    return Point(configs=configs, seeds=(3, 4), number=number, total=5, values=values)


def test_a_point_knows_its_runs():
    runs = list(point().runs())
    names = [(name.split("-")[0], seed) for name, seed, _ in runs]
    assert names == [("mavic", 3), ("mavic", 4), ("naive", 3), ("naive", 4)]
    assert runs[2][2] == {"base": 2.0, "compliance": 0.5, "value/0": 4.0, "value/1": 5.0}


def test_tensorboard_gets_every_run(tmp_path):
    pytest.importorskip("tensorboardX")
    call = loggers.tensorboard(tmp_path)
    call(point(4))
    call(point(5))
    for method in ("mavic", "naive"):
        for seed in (3, 4):
            place = tmp_path / f"{method}-default-residual-live-by-kind" / f"seed-{seed}"
            (events,) = place.iterdir()
            for tag in (b"base", b"compliance", b"value/1", b"steps_per_second"):
                assert events.read_bytes().count(tag) == 2, tag


def test_weights_and_biases_gets_every_run_offline(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    lines = []

    class Run:
        log = staticmethod(lines.append)

    monkeypatch.setattr(wandb, "init", lambda **how: Run if how["mode"] == "offline" else None)
    loggers.wandb(tmp_path, mode="offline")(point())
    (line,) = lines
    assert line["episodes"] == 640
    assert line["naive-default-residual-live-by-kind/seed-4/base"] == 3.0


def test_every_public_function_explains_its_arguments():
    for name in mavic.__all__:
        text = inspect.getdoc(getattr(mavic, name))
        for argument in inspect.signature(getattr(mavic, name)).parameters:
            assert f"\n    {argument}: " in text, argument
