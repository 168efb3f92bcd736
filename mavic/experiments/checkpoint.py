"""Checkpoints of a training: the state of all runs and the curve so far. It is written whole or not at all."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from mavic.experiments import records
from mavic.experiments.config import ExperimentConfig, instructions_of
from mavic.instruct import spec
from mavic.learn.update import TrainState
from mavic.preset import Preset

if TYPE_CHECKING:
    from mavic.experiments.runner import Group


class CheckpointError(ValueError):
    """A checkpoint cannot be used. The message names the folder and says what to do."""


def flatten(tree: Any) -> dict[str, np.ndarray]:
    """Return the arrays of a pytree by their paths."""
    named = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in named}


def unflatten(named: dict[str, np.ndarray], like: Any) -> Any:
    """Return the pytree of these arrays, with the structure and shapes of `like`. A mismatch is an error."""
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    leaves = []
    for path, leaf in paths:
        name = jax.tree_util.keystr(path)
        if name not in named:
            raise KeyError(f"{name} is missing")
        if named[name].shape != leaf.shape:
            raise ValueError(f"{name} has shape {named[name].shape}, not {leaf.shape}")
        leaves.append(jnp.asarray(named[name], leaf.dtype))
    return jax.tree.unflatten(structure, leaves)


def identity(group: Group) -> dict[str, Any]:
    """Return what identifies the training of a group. A checkpoint is resumed only by a group with the same identity.

    Default-valued numbers are omitted, so adding a number to `Preset` keeps old checkpoints valid.
    """
    default, own = dataclasses.asdict(Preset()), dataclasses.asdict(group.preset)
    file = spec.read(instructions_of(group.configs[0].world))
    asked = json.dumps(dataclasses.asdict(dataclasses.replace(file, source="")), default=str)
    return json.loads(
        json.dumps(
            {
                "configs": [_identity(config) for config in group.trained()],
                "seeds": group.seeds,
                "preset": {name: value for name, value in own.items() if value != default[name]},
                "instructions": hashlib.sha256(asked.encode()).hexdigest(),
                **({"initial": group.initial} if group.initial else {}),
            }
        )
    )


def _identity(config: ExperimentConfig) -> dict[str, Any]:
    """Return a configuration's fields. Mac-IAC is left out, so that older checkpoints stay valid."""
    fields = dataclasses.asdict(config)
    return (
        fields if config.backbone_name() else {k: v for k, v in fields.items() if k != "backbone"}
    )


def name_of(group: Group) -> str:
    """Return a short name for the checkpoint's folder. Different groups have different names."""
    text = json.dumps(identity(group), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    config = group.configs[0]
    return "-".join([*config.backbone_name(), config.network, config.preset, digest])


def exists(folder: Path) -> bool:
    """Return whether the folder holds a checkpoint."""
    return (folder / "state.json").is_file()


def save(folder: Path, group: Group, state: TrainState, curve: list[dict[str, Any]]) -> None:
    """Write the state, then the curve that refers to it, so that an interruption leaves the previous checkpoint."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = f"state-{len(curve)}.safetensors"
    save_file(flatten(state), folder / "state.part")
    (folder / "state.part").replace(folder / weights)
    draft = folder / "state.json.part"
    draft.write_text(json.dumps({"group": identity(group), "curve": records.plain(curve)}))
    draft.replace(folder / "state.json")
    for old in folder.glob("state-*.safetensors"):
        if old.name != weights:
            old.unlink()


def load(
    folder: Path, group: Group, like: TrainState, episodes: int
) -> tuple[TrainState, list[dict[str, Any]]]:
    """Return the state and curve of this group's checkpoint. `episodes` is the distance of two points of the curve."""
    try:
        found = json.loads((folder / "state.json").read_text())
        if found["group"] != identity(group):
            raise CheckpointError(
                f"{folder} holds a checkpoint of other configurations, seeds, numbers or instructions; "
                "choose another folder or remove it"
            )
        curve = found["curve"]
        state = unflatten(load_file(folder / f"state-{len(curve)}.safetensors"), like)
    except (json.JSONDecodeError, KeyError, OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{folder} holds a broken checkpoint ({error}); remove it to begin anew"
        ) from None
    if int(state.episodes[0]) != len(curve) * episodes:
        raise CheckpointError(
            f"{folder} holds a checkpoint with another number of points; choose another folder or remove it"
        )
    # The state is placed on devices like an untrained one, so that one compiled program fits both.
    placed = jax.tree.map(
        lambda new, old: jax.device_put(new, old.sharding if old.committed else None), state, like
    )
    return placed, curve
