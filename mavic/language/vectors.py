"""Vectors and states of texts: the shipped ones where they exist, else cached on disk, else encoded.

The files in `mavic/language/data` belong to the built-in worlds and carry their ids. A vectors file holds two tables.
`vectors` (float32) has the phrases that teams hear in training and evaluation, whose vectors must be exact.
`half_vectors` (float16) has phrases that only measurements of the reader and the encoders use.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np

from mavic.language import encoder as encoders
from mavic.language.text import name as text_name
from mavic.storage import files

FOLDER = Path(str(resources.files("mavic"))) / "language" / "data"


class _ShippedDataError(ValueError):
    """A shipped file does not belong to the encoder's weights; the message says how to remake it."""


def vectors(texts: Sequence[str], encoder: str = encoders.DEFAULT) -> np.ndarray:
    """Return the vectors of texts: shipped, from the cache on disk, or encoded now and cached.

    Args:
        texts: P texts.
        encoder: The encoder's name.

    Returns:
        Vectors, [P, D] float32.
    """
    known = _shipped_vectors(encoder)
    folder = cache_folder() / "vectors" / encoders.encoder_hash(encoder)
    rows = [
        row if (row := known.get(text_name(text))) is not None else _from_cache(folder, text)
        for text in texts
    ]
    missing = [i for i, row in enumerate(rows) if row is None]
    if missing:
        made = encoders.open_encoder(encoder).encode([texts[i] for i in missing])
        for i, row in zip(missing, made, strict=True):
            rows[i] = row
            _to_cache(folder, texts[i], row)
    if not rows:
        built = encoders.BUILT_IN.get(encoder) or encoders.open_encoder(encoder)
        return np.zeros((0, built.dimension), np.float32)
    return np.stack([row for row in rows if row is not None])


def states(texts: Sequence[str], encoder: str = encoders.DEFAULT) -> list[np.ndarray]:
    """Return the hidden states of texts: the shipped ones where they exist, else computed.

    Args:
        texts: P texts.
        encoder: The encoder's name.

    Returns:
        For each text the states of its word pieces, [S, D].
    """
    known = _shipped_states() if encoder == encoders.DEFAULT else {}
    missing = [text for text in texts if text_name(text) not in known]
    computed = iter(encoders.open_encoder(encoder).states(missing) if missing else ())
    return [
        row if (row := known.get(text_name(text))) is not None else next(computed) for text in texts
    ]


def shipped_path(world: str, what: str) -> Path:
    """Return the path of a shipped file, which need not exist.

    Args:
        world: The world's id.
        what: "head", "states", or an encoder's name for its vectors.

    Returns:
        The path.
    """
    return FOLDER / f"{world}.{what}.npz"


def cache_folder() -> Path:
    """Return the folder of the whole cache on disk: vectors, heads and compiled programs."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mavic"


@cache
def _shipped_vectors(encoder: str) -> dict[str, np.ndarray]:
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
def _shipped_states() -> dict[str, np.ndarray]:
    """Return all shipped states [S, D] float16 by the default encoder, by `text.name` of the corrected phrase."""
    known: dict[str, np.ndarray] = {}
    for path in sorted(FOLDER.glob("*.states.npz")):
        with np.load(path, allow_pickle=False) as file:
            _check_encoder(path, str(file["encoder_hash"]), encoders.DEFAULT)
            parts = np.split(file["states"], np.cumsum(file["lengths"])[:-1])
            known.update(zip(map(str, file["names"]), parts, strict=True))
    return known


def _check_encoder(path: Path, found: str, encoder: str) -> None:
    if found != encoders.encoder_hash(encoder):
        raise _ShippedDataError(
            f"{path}: made by other weights than {encoder!r}; "
            "run: python -m tools.ship_reader mavic/envs/WORLD"
        )


def _from_cache(folder: Path, text: str) -> np.ndarray | None:
    try:
        row = np.load(folder / f"{text_name(text)}.npy", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return row if row.ndim == 1 and row.dtype == np.float32 else None


def _to_cache(folder: Path, text: str, row: np.ndarray) -> None:
    """Write a vector into the cache. A folder that cannot be written is no error."""
    data = io.BytesIO()
    np.save(data, row)
    with contextlib.suppress(OSError):
        files.write_bytes(folder / f"{text_name(text)}.npy", data.getvalue())
