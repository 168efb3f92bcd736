"""Where the recorded traces lie: the folder that MAVIC_GOLDEN names.

Without it the tests of this folder skip; with it a missing file is a failure.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Trace = dict[str, np.ndarray]


@pytest.fixture(scope="session")
def load_trace() -> Callable[[str], Trace]:
    """`load_trace("bp6")`: every array of that recording, in memory."""
    folder = os.environ.get("MAVIC_GOLDEN")
    if not folder:
        pytest.skip("MAVIC_GOLDEN does not name the folder of recorded traces")

    def load(name: str) -> Trace:
        path = Path(folder) / f"{name}.npz"
        if not path.is_file():
            pytest.fail(f"MAVIC_GOLDEN is set, but {path} is missing")
        with np.load(path) as stored:
            return {key: stored[key] for key in stored.files}

    return load


@pytest.fixture(scope="session")
def by_episode() -> Callable[[Trace, str], np.ndarray]:
    """`by_episode(trace, "act")`: rows of all episodes as [E, T, …], tails padded with zeros."""

    def pad(trace: Trace, key: str) -> np.ndarray:
        rows, starts, lengths = trace[key], trace["ep_start"], trace["ep_len"]
        out = np.zeros((len(starts), lengths.max(), *rows.shape[1:]), rows.dtype)
        for episode, (start, length) in enumerate(zip(starts, lengths, strict=True)):
            out[episode, :length] = rows[start : start + length]
        return out

    return pad
