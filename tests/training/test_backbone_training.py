"""Every backbone from training to a table: trained, evaluated, saved, loaded and evaluated again."""

from __future__ import annotations

import numpy as np
import pytest
from rich.console import Console

from mavic.evaluation import evaluate
from mavic.experiment.config import ExperimentConfig
from mavic.learn.backbones import BACKBONES
from mavic.session import runner
from mavic.training.groups import Group, groups_of
from mavic.training.trained import trained_of


def config_of(backbone: str, method: str = "mavic", **fields) -> ExperimentConfig:
    return ExperimentConfig(
        world="box_pushing",
        method=method,
        backbone=backbone,
        hear="vectors",
        options={"size": 4},
        **fields,
    )


def test_names_tell_any_backbone_but_mac_iac():
    fields = dict(network="protected", preset="tuned")
    assert config_of("mac-iac", **fields).name() == "mavic-tuned-protected-live-by-kind"
    assert config_of("acac", **fields).name() == "mavic-tuned-acac-protected-live-by-kind"
    assert config_of("acac", **fields).table_group() == "tuned/acac/protected/live/by-kind"
    with pytest.raises(ValueError, match="mac-iaicc"):
        config_of("mac-iacc")


def test_backbones_train_in_programs_of_their_own():
    configs = [config_of(name, method) for name in BACKBONES for method in ("mavic", "naive")]
    groups = groups_of(configs, range(2))
    assert [len(group.configs) for group in groups] == [2] * len(BACKBONES)
    assert groups[-1].preset.baseline == "target" and groups[0].preset.baseline == "before"
    with pytest.raises(ValueError, match="share their options and world, network, backbone"):
        Group(configs=tuple(configs), seeds=(0,), preset=groups[0].preset)


@pytest.mark.slow
@pytest.mark.parametrize("network", ["residual"])
@pytest.mark.parametrize("backbone", BACKBONES)
def test_from_training_to_a_table(tmp_path, backbone, network):
    methods = ("vanilla", "naive", "switch", "mavic", "mavic-shift")
    configs = [config_of(backbone, method, network=network) for method in methods]
    (group,) = groups_of(configs, [0], episodes=48, batch=16, hidden=8)
    trained = runner.train_group(group, points=1, num_envs=4, console=Console(quiet=True))
    scores = evaluate.evaluate(trained, num_envs=32, scale=0.02)
    for config, score in scores.items():
        assert np.isfinite(score["base"]["discounted"]).all()
        assert np.isfinite(score["leak"]["none"]).all(), config
    path = trained.save_team(tmp_path / "team", configs[3], 0)
    again = evaluate.evaluate(trained_of(path), num_envs=32, scale=0.02)
    np.testing.assert_allclose(
        again[configs[3]]["base"]["discounted"],
        scores[configs[3]]["base"]["discounted"],
        rtol=1e-4,
    )
