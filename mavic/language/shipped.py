"""The files in `mavic/language/data`: vectors, states and heads of the built-in worlds, found by the world's id.

A vectors file holds two tables. `vectors` (float32) has the phrases that teams hear in training and evaluation, whose
vectors must be exact. `half_vectors` (float16) has phrases that only measurements of the reader and the encoders use.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np

from mavic.language import encoder as encoders

FOLDER = Path(str(resources.files("mavic"))) / "language" / "data"


class ShippedDataError(ValueError):
    """A shipped file does not belong to the encoder's weights; the message says how to remake it."""


def vectors_path(world: str, encoder: str) -> Path:
    """Return the file with a world's vectors by one encoder."""
    return FOLDER / f"{world}.{encoder}.npz"


def states_path(world: str) -> Path:
    """Return the file with the states of a world's instruction phrases by the default encoder."""
    return FOLDER / f"{world}.states.npz"


def head_path(world: str) -> Path:
    """Return the file with a world's head; it need not exist."""
    return FOLDER / f"{world}.head.npz"


@cache
def vectors(encoder: str) -> dict[str, np.ndarray]:
    """Return all shipped vectors [D] float32 by an encoder; the key is `text.name` of the phrase."""
    exact: dict[str, np.ndarray] = {}
    half: dict[str, np.ndarray] = {}
    if encoder not in encoders.BUILT_IN:
        return exact
    for path in sorted(FOLDER.glob(f"*.{encoder}.npz")):
        with np.load(path, allow_pickle=False) as file:
            _check_encoder(path, str(file["encoder_hash"]), encoder)
            exact.update(zip(map(str, file["names"]), file["vectors"], strict=True))
            rows = file["half_vectors"].astype(np.float32)
            half.update(zip(map(str, file["half_names"]), rows, strict=True))
    return half | exact


@cache
def states() -> dict[str, np.ndarray]:
    """Return all shipped states [S, D] float16 by the default encoder, by `text.name` of the corrected phrase."""
    known: dict[str, np.ndarray] = {}
    for path in sorted(FOLDER.glob("*.states.npz")):
        with np.load(path, allow_pickle=False) as file:
            _check_encoder(path, str(file["encoder_hash"]), encoders.DEFAULT)
            parts = np.split(file["states"], np.cumsum(file["lengths"])[:-1])
            known.update(zip(map(str, file["names"]), parts, strict=True))
    return known


def _check_encoder(path: Path, found: str, encoder: str) -> None:
    if found != encoders.built_in_hash(encoder):
        raise ShippedDataError(
            f"{path}: made by other weights than {encoder!r}; "
            "run: python -m mavic.language.reader.ship mavic/envs/WORLD"
        )
