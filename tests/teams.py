"""Untrained teams as policy files, to play with in every world."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import preset_of
from mavic.experiment.task import task_of
from mavic.learn import update
from mavic.training.groups import Group
from mavic.training.trained import Trained


def _one_run(leaf: Any) -> np.ndarray:
    """Return a leaf as that of the only run of a group. What a policy does not hold is zero."""
    given = isinstance(leaf, np.ndarray)
    return leaf[None].astype(np.float32) if given else np.zeros((1, *leaf.shape))


def untrained(
    folder: Path,
    world: str,
    method: str = "mavic",
    seed: int = 0,
    collapsed: dict[str, float] | None = None,
    **fields: Any,
) -> Path:
    """Write `folder/<world>/<method>` as training would, with random weights. `fields` are of the configuration."""
    config = ExperimentConfig(world=world, method=method, **fields)
    preset = preset_of("tuned", "box_pushing", config.backbone)  # for its sizes: nothing is trained
    task = task_of(config)
    static = task.static_config(preset, config.network, config.backbone)
    blank = jax.eval_shape(lambda key: update.init(key, static), jax.random.key(0))
    random = np.random.default_rng(seed)
    some = jax.tree.map(lambda leaf: random.normal(0, 0.1, leaf.shape), blank.actor)
    more = jax.tree.map(lambda leaf: random.normal(0, 0.1, leaf.shape), blank.critic)
    ones = np.ones(blank.scale.weight.shape)
    plain = dataclasses.replace(blank.scale, mean=0 * ones, square=ones, weight=ones)
    state = dataclasses.replace(blank, actor=some, critic=more, scale=plain)
    trained = Trained(
        group=Group(configs=(config,), seeds=(seed,), preset=preset),
        task=task,
        static=static,
        state=jax.tree.map(_one_run, state),
        curve=[],
        steps_per_second=0.0,
    )
    path = folder / world / method
    path.parent.mkdir(parents=True, exist_ok=True)
    more = {} if collapsed is None else {"collapsed": collapsed}
    return trained.save_team(path, config, seed, **more)
