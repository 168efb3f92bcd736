"""The recorded episodes of the reference environments: the folder that MAVIC_GOLDEN names, else the sample in `data`.

The start of a file's name tells the world. The options of its environment are read from the rest of the name and from
the file's arrays, so a further file is tested without a change here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pytest

from golden.sample import episodes_folder, files, load

PREFIXES = {"bp": "box_pushing", "wtd": "warehouse", "oc": "overcooked"}


@dataclass(frozen=True)
class Recording:
    """One file: episodes of one environment, one after another along the first axis of its arrays."""

    path: Path

    @property
    def name(self) -> str:
        """The file's name without its endings."""
        return self.path.name.split(".")[0]

    @property
    def world(self) -> str | None:
        """The id of the recorded world. None if the name does not begin with one of `PREFIXES`."""
        return PREFIXES.get(self.name.split("_")[0].rstrip("0123456789"))

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """Every array of the file."""
        return load(self.path)

    @property
    def alive(self) -> np.ndarray:
        """Bool [E, T]: the tick belongs to the episode."""
        lengths = self.arrays["ep_len"]
        alive = np.arange(lengths.max())[None] < lengths[:, None]
        assert alive.sum() == len(self.arrays["act"])
        return alive

    def by_episode(self, key: str) -> np.ndarray:
        """Return an array as [E, T, …]. Episodes that are shorter than T are padded with zeros."""
        rows, alive = self.arrays[key], self.alive
        padded = np.zeros((*alive.shape, *rows.shape[1:]), rows.dtype)
        padded[alive] = rows
        return padded


@lru_cache(maxsize=1)
def recordings(folder: Path) -> tuple[Recording, ...]:
    """Return the recordings in a folder, in the order of their names."""
    return tuple(map(Recording, files(folder).values()))


def all_of_world(world: str) -> tuple[Recording, ...]:
    """Return all recordings of a world."""
    return tuple(own for own in recordings(episodes_folder()) if own.world == world)


def of_world(world: str, *names: str) -> pytest.MarkDecorator:
    """Parametrize a test by all recordings of a world, or by those named."""
    found = all_of_world(world)
    if unknown := set(names) - {recording.name for recording in found}:
        raise ValueError(f"no such recordings: {unknown}")
    cases = [pytest.param(r, id=r.name) for r in found if r.name in names or not names]
    return pytest.mark.parametrize("recording", cases, scope="module")
