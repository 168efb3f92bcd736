"""A population: several members of each seed begin a training, and the worse half is dropped at shares of it.

What a member of a seed becomes is decided early and is partly luck. A choice needs no number from the user, and dropped
members free their share of the machine. The principle is successive halving.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

FIRST, LAST = 0.4, 0.75  # shares of the training at which the first and the last choice fall


def cuts(members: int, points: int) -> dict[int, int]:
    """Return the points of a training after which members are dropped, and how many are left then.

    Before the first, teams still explore too much to be compared. Between the first and the last, choices are evenly
    spaced.

    Args:
        members: how many begin.
        points: how many points the training has.
    """
    left = members
    sizes = [left := -(-left // 2) for _ in range(math.ceil(math.log2(members)))]
    shares = np.linspace(FIRST, LAST, len(sizes)) if len(sizes) > 1 else [(FIRST + LAST) / 2]
    # Two choices that fall on one point are one.
    return {max(1, int(share * points)): size for share, size in zip(shares, sizes, strict=False)}


def cost(members: int, points: int) -> float:
    """Return what a population costs, in trainings of one member."""
    steps = [(0, members), *cuts(members, points).items(), (points, 0)]
    return sum(size * (end - at) for (at, size), (end, _) in pairwise(steps)) / points


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What was dropped after a point. Lists are by cell (a configuration and a seed), then by member."""

    point: int
    members: list[list[int]]
    """The numbers of the members before the choice."""
    judged: dict[str, list[list[float]]]
    """Their merit, and what it is made of."""
    kept: list[list[int]]
    """The numbers of the members that stay."""


def choose(point: int, present: np.ndarray, judged: Mapping[str, np.ndarray], size: int) -> Choice:
    """Return the choice of the `size` members with the greatest merit in each cell.

    Args:
        point: the point of the training.
        present: [cells, members] the numbers of the members.
        judged: numbers by name, [cells * members] each. "merit" decides; a member without a finite one goes first.
        size: how many members of each cell stay.
    """
    tables = {name: np.asarray(x, float).reshape(present.shape) for name, x in judged.items()}
    merit = np.nan_to_num(tables["merit"], nan=-np.inf)
    best = np.sort(np.argsort(-merit, axis=1, kind="stable")[:, :size], axis=1)
    return Choice(
        point=point,
        members=present.tolist(),
        judged={name: table.tolist() for name, table in tables.items()},
        kept=np.take_along_axis(present, best, axis=1).tolist(),
    )


def present(cells: int, members: int, choices: Sequence[Choice]) -> np.ndarray:
    """Return the numbers [cells, members left] of the members that are left after some choices.

    Args:
        cells: configurations times seeds.
        members: how many began.
        choices: what was chosen so far.
    """
    if choices:
        return np.asarray(choices[-1].kept)
    return np.tile(np.arange(members), (cells, 1))


def places(members: int, left: np.ndarray) -> np.ndarray:
    """Return the indices [runs] of the members that are left among the runs that began.

    Args:
        members: how many of each cell began.
        left: from `present`.
    """
    return (np.arange(len(left))[:, None] * members + left).reshape(-1)
