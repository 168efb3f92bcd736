"""Runs whose numbers are not finite any more. Such a run has no score; the other runs of its program go on.

The weights of such a run are set to zero, so that no file holds a number that is not finite. In the curve its entries
are nan from that point on, which JSON writes as null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

SHARED = (  # entries of a point that all runs share
    *("episodes", "seconds", "steps_per_second", "dropped_episodes"),
)


class DivergenceError(ValueError):
    """No run has finite numbers any more. The message says which run diverged when."""


def finite_runs(*trees: Any) -> np.ndarray:
    """Return bool [runs]: whether all numbers of a run are finite. Every leaf has a first axis of runs."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.device_get(trees))]
    checks = [np.isfinite(leaf).reshape(len(leaf), -1).all(1) for leaf in leaves]
    return np.logical_and.reduce(checks)


def cleared(state: Any, alive: np.ndarray) -> Any:
    """Return the state with the weights of diverged runs set to zero. Whole numbers stay.

    Args:
        state: the states of all runs.
        alive: bool [runs].
    """
    if alive.all():
        return state

    def clear(leaf: Any) -> Any:
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            return leaf
        kept = alive.reshape(-1, *[1] * (leaf.ndim - 1))
        return jax.device_put(jnp.where(kept, leaf, 0), leaf.sharding if leaf.committed else None)

    return jax.tree.map(clear, state)


def blank_point(point: dict[str, Any], alive: np.ndarray) -> dict[str, Any]:
    """Return a point of the curve in which the entries of runs that are not alive are nan."""
    if alive.all():
        return point
    return {
        name: value if name in SHARED else _blank(np.asarray(value, float), alive)
        for name, value in point.items()
    }


def first_points(curve: Sequence[dict[str, Any]], runs: int) -> list[int | None]:
    """Return for each run the number of the point at which it diverged, counted from 1, or None.

    Args:
        curve: the points so far.
        runs: how many runs there are.
    """
    found: list[int | None] = [None] * runs
    for number, point in enumerate(curve, start=1):
        lost = np.isnan(np.asarray(point["base"], float))
        found = [
            number if at is None and gone else at for at, gone in zip(found, lost, strict=True)
        ]
    return found


def marked(score: dict[str, Any], points: Sequence[int | None]) -> dict[str, Any]:
    """Return a score line without the numbers of seeds that diverged, and with the points at which they did."""
    if all(point is None for point in points):
        return score
    return {**blank_score(score, points), "diverged": list(points)}


def blank_score(score: Any, points: Sequence[int | None]) -> Any:
    """Return a score in which the entries of seeds that diverged are nan. Every list and array is by seed."""
    alive = np.array([point is None for point in points])
    if alive.all():
        return score
    if isinstance(score, dict):
        return {name: blank_score(value, points) for name, value in score.items()}
    if isinstance(score, list | np.ndarray) and len(score) == len(points):
        return _blank(np.asarray(score, float), alive)
    return score


def _blank(values: np.ndarray, alive: np.ndarray) -> np.ndarray:
    return np.where(alive.reshape(-1, *[1] * (values.ndim - 1)), values, np.nan)
