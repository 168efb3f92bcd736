"""Runs shared out among devices end as they do side by side on one, and a double never shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import preset_of
from mavic.experiment.task import task_of
from mavic.training import train
from mavic.training.runs import Run, make_run

SEEDS = 3  # on two devices: one of them is done twice


def learnt() -> list[np.ndarray]:
    """Two updates of a small training, as plain arrays."""
    config = ExperimentConfig(network="shared", hear="vectors", options={"size": 4})
    task = task_of(config)
    preset = preset_of("tuned", "box_pushing", batch=16, episodes=320, target_update_episodes=16)
    static = task.static_config(preset, "shared")
    runs = Run.stack([make_run(config, preset, task, seed) for seed in range(SEEDS)])
    state = train.init_states(static, runs)
    for _ in range(2):
        state, metrics = train.train_updates(static, 4, 1, task.lexicon.vectors, runs, state)
    return [np.asarray(leaf) for leaf in jax.tree.leaves((state, metrics))]


def elsewhere(path: str) -> None:
    """The same on two devices, in a process of its own: devices are settled when the first is used."""
    jax.config.update("jax_disable_most_optimizations", True)
    jax.config.update("jax_num_cpu_devices", 2)
    leaves = learnt()
    assert jax.local_device_count() == 2 and train.train_updates._cache_size() == 1
    np.savez(path, *leaves)


@pytest.mark.long
def test_two_devices_learn_what_one_learns(tmp_path):
    path = tmp_path / "leaves.npz"
    command = f"import test_devices; test_devices.elsewhere({str(path)!r})"
    subprocess.run([sys.executable, "-c", command], cwd=Path(__file__).parent, check=True)
    found, here = np.load(path), learnt()
    assert len(found.files) == len(here)
    for name, leaf in zip(found.files, here, strict=True):
        assert found[name].shape == leaf.shape and leaf.shape[0] == SEEDS
        np.testing.assert_allclose(found[name], leaf, rtol=1e-4, atol=1e-5)
