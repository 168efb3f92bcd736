"""Checkpoints of a training: the state of all runs and the curve so far, each written whole or not at all.

A checkpoint is `state-N.safetensors` and `state-N.json`, where N counts the points of the curve. The JSON holds the
hash of the weights and that of itself. The last two are kept. If the newer one is damaged, the older one is used.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as parse_weights
from safetensors.numpy import save as weights_bytes

from mavic.experiment import records
from mavic.experiment.task import instructions_of
from mavic.instruct.spec import InstructionFile
from mavic.language.encoder import encoder_hash
from mavic.learn.update import TrainState
from mavic.storage import files, json_shape
from mavic.storage.trees import flatten, unflatten
from mavic.training import population
from mavic.training.groups import Group
from mavic.training.population import Choice

KEPT = 2  # checkpoints: the second is used if the first is damaged
PER_RUN = ("base", "compliance", "value", "entropy")  # entries of a point with one entry per run
SHAPE = {
    "group": dict,
    "curve": [
        {
            "episodes": int,
            "steps_per_second": float,
            **{name: [(float, type(None), list)] for name in PER_RUN},
        }
    ],
    "choices": [{"point": int, "members": [list], "judged": dict, "kept": [list]}],
    "weights_sha256": str,
    "sha256": str,
}


class _CheckpointError(ValueError):
    """A checkpoint cannot be used. The message names the file or folder and says what to do."""


class _DamageError(ValueError):
    """A file is not as it was written. The message names it."""


def _identity(group: Group) -> dict[str, Any]:
    """Return what identifies a group's training. Only a group with the same identity resumes a checkpoint."""
    file = InstructionFile.read(instructions_of(group.configs[0].world))
    asked = json.dumps(asdict(replace(file, source="")), default=str)
    return json.loads(
        json.dumps(
            {
                "configs": [
                    {**asdict(config), "encoder_hash": encoder_hash(config.encoder)}
                    for config in group.trained()
                ],
                "seeds": group.seeds,
                "preset": asdict(group.preset),
                "instructions": hashlib.sha256(asked.encode()).hexdigest(),
                **({"initial": group.initial_sha256} if group.initial else {}),
            }
        )
    )


def folder_of(folder: Path, group: Group) -> Path:
    """Return where the checkpoints of a group are.

    Args:
        folder: the folder of its records.
        group: the group.
    """
    return folder / "checkpoints" / _name_of(group)


def _name_of(group: Group) -> str:
    """Return a short name for the checkpoint's folder. Different groups have different names."""
    text = json.dumps(_identity(group), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    config = group.configs[0]
    return "-".join([*config.backbone_name(), config.network, config.preset, digest])


def _found(folder: Path) -> list[Path]:
    """Return the descriptions of the checkpoints in a folder, the newest first."""
    numbered = [
        (int(match[1]), path)
        for path in folder.glob("state-*.json")
        if (match := re.fullmatch(r"state-(\d+)\.json", path.name))
    ]
    return [path for _, path in sorted(numbered, reverse=True)]


def exists(folder: Path) -> bool:
    """Return whether the folder holds a checkpoint."""
    return bool(_found(folder))


def save(
    folder: Path,
    group: Group,
    state: TrainState,
    curve: list[dict[str, Any]],
    choices: Sequence[Choice] = (),
) -> None:
    """Write the weights, then the description that names them. An interruption leaves the previous checkpoints.

    Args:
        folder: the folder of the group's checkpoints.
        group: what is trained.
        state: the states of all runs that are left.
        curve: their points so far.
        choices: what was chosen in their populations so far.
    """
    notes = folder / f"state-{len(curve)}.json"
    named = flatten(state)
    if wrong := [name for name, leaf in named.items() if not np.isfinite(leaf).all()]:
        raise ValueError(f"{notes}: not written, {wrong[0]} holds numbers that are not finite")
    weights = weights_bytes(named)
    files.write_bytes(notes.with_suffix(".safetensors"), weights)
    content = {
        "group": _identity(group),
        "curve": records.plain(curve),
        "choices": records.plain([asdict(choice) for choice in choices]),
        "weights_sha256": files.digest(weights),
    }
    files.write_text(notes, json.dumps({**content, "sha256": files.digest_of(content)}))
    for old in _found(folder)[KEPT:]:
        old.unlink(missing_ok=True)
    described = {path.stem for path in _found(folder)}
    for old in folder.glob("state-*.safetensors"):
        if old.stem not in described:
            old.unlink(missing_ok=True)


def load(
    folder: Path,
    group: Group,
    like: TrainState,
    episodes: int,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[TrainState, list[dict[str, Any]], list[Choice]]:
    """Return the state, curve and choices of this group's newest checkpoint that is whole.

    Args:
        folder: the folder of the group's checkpoints.
        group: what is trained.
        like: untrained states of all members that began.
        episodes: the distance of two points of the curve.
        say: is told which checkpoints are damaged.
    """
    damaged: list[str] = []
    for notes in _found(folder):
        try:
            state, curve, choices = _read(notes, group, like, episodes)
        except _DamageError as error:
            damaged.append(str(error))
            continue
        if damaged:
            say(f"{damaged[0]}; the checkpoint before it is used ({len(curve)} points)")
        # The state is placed on devices like an untrained one, so that one compiled program fits both.
        placed = jax.tree.map(
            lambda new, old: jax.device_put(new, old.sharding if old.committed else None),
            state,
            like,
        )
        return placed, curve, choices
    raise _CheckpointError(f"{'; '.join(damaged)}; remove {folder} to begin anew")


def _read(
    notes: Path, group: Group, like: TrainState, episodes: int
) -> tuple[TrainState, list[dict[str, Any]], list[Choice]]:
    """Return the state, curve and choices of one checkpoint. A damaged file is a `_DamageError`."""
    try:
        content = json_shape.parse(notes.read_bytes())
        json_shape.check(content, SHAPE)
    except (OSError, json_shape.ShapeError) as error:
        raise _DamageError(f"{notes} is damaged ({_why(error)})") from None
    if content.pop("sha256") != files.digest_of(content):
        raise _DamageError(f"{notes} is damaged or was edited (its hash differs)")
    if content["group"] != _identity(group):
        raise _CheckpointError(
            f"{notes} is a checkpoint of other configurations, seeds, numbers or instructions; "
            "choose another folder or remove it"
        )
    curve = content["curve"]
    if [point["episodes"] for point in curve] != [
        episodes * number for number in range(1, len(curve) + 1)
    ]:
        raise _CheckpointError(
            f"{notes} is a checkpoint with another number of points; choose another folder or remove it"
        )
    if notes.stem != f"state-{len(curve)}":
        raise _DamageError(f"{notes} is damaged (it holds {len(curve)} points)")
    choices = [Choice(**choice) for choice in content["choices"]]
    left = population.present(group.cells, group.population, choices)
    taken = population.places(group.population, left)
    path = notes.with_suffix(".safetensors")
    try:
        data = path.read_bytes()
        if files.digest(data) != content["weights_sha256"]:
            raise ValueError("its hash differs")
        state = unflatten(parse_weights(data), jax.tree.map(lambda leaf: leaf[taken], like))
    except (OSError, KeyError, ValueError, SafetensorError) as error:
        raise _DamageError(f"{path} is damaged ({_why(error)})") from None
    if state.episodes.tolist() != [len(curve) * episodes] * len(state.episodes):
        raise _DamageError(f"{path} is damaged (its number of episodes differs)")
    return state, curve, choices


def _why(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
