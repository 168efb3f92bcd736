"""Arrays in `.npz` files. This module needs no JAX."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np

from mavic.storage import files


def read_npz(path: Path | io.BytesIO, largest: int = files.LARGEST) -> dict[str, np.ndarray]:
    """Return the arrays of an `.npz` file.

    Args:
        path: the file, or an open one.
        largest: the most bytes of arrays. A larger file is refused before it is unpacked.
    """
    try:
        with zipfile.ZipFile(path) as file:
            size = sum(part.file_size for part in file.infolist())
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path}: damaged ({error})") from None
    if not isinstance(path, Path):
        path.seek(0)
    if size > largest:
        raise files.TooLargeError(path, largest)
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)
