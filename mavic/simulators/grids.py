"""Shortest paths on a grid, in NumPy and in JAX. Both return the same distances.

Cells are (row, column); row 0 is the northern one. Directions are 0 north, 1 east, 2 south, 3 west.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # north, east, south, west
WAIT, LOST = -1, -2  # no direction: others are in the way, or no path leads there
FAR = 1 << 24  # the distance of cells that cannot be reached

Cell = tuple[int, int]


def distances(free: np.ndarray, target: Cell) -> np.ndarray:
    """Return int [H, W]: the steps from each cell to the target; `FAR` where there is no path.

    Args:
        free: bool [H, W], the cells that can be entered. The target counts as free.
        target: The cell.
    """
    return np.array(_ways(free, (int(target[0]), int(target[1]))), np.int32)


def _ways(free: np.ndarray, target: Cell) -> list[list[int]]:
    """Return the distances as lists, whose single numbers are read faster than those of an array."""
    return _distances(np.asarray(free, bool).tobytes(), free.shape, target)


@functools.lru_cache(4096)
def _distances(free: bytes, shape: tuple[int, int], target: Cell) -> list[list[int]]:
    height, width = shape
    found = [FAR] * (height * width)
    start = target[0] * width + target[1]
    found[start] = 0
    edge = [start]
    steps = 0
    while edge:
        steps += 1
        following = []
        for place in edge:
            row, column = divmod(place, width)
            for near, inside in (
                (place - width, row > 0),
                (place + 1, column < width - 1),
                (place + width, row < height - 1),
                (place - 1, column > 0),
            ):
                if inside and free[near] and found[near] == FAR:
                    found[near] = steps
                    following.append(near)
        edge = following
    return [found[start : start + width] for start in range(0, height * width, width)]


def next_direction(
    free: np.ndarray, taken: Collection[Cell], position: Cell, target: Cell, heading: int | None
) -> int:
    """Return the direction of the next step on a shortest path, WAIT if another agent is in the way, or LOST.

    The path leads around cells that others take. If there is none, it is the one that would be shortest without
    them. Of equal directions the one with fewest turns comes first, then the first of north, east, south and west.

    Args:
        free: bool [H, W], the cells that can be entered.
        taken: The cells where other agents are.
        position: Where the agent is.
        target: Where it goes.
        heading: Where it looks. None: turning costs nothing.
    """
    ways = _ways(free, target)
    without_others = _first_step(ways, position, heading)
    if without_others is None:
        return LOST
    if not _leads_past(ways, taken, position, without_others):
        return without_others  # the way around others cannot be shorter
    left = np.array(free, bool)
    for cell in taken:
        left[cell] = False
    around_others = _first_step(_ways(left, target), position, heading)
    way = without_others if around_others is None else around_others
    return WAIT if (position[0] + MOVES[way][0], position[1] + MOVES[way][1]) in taken else way


def _first_step(ways: list[list[int]], position: Cell, heading: int | None) -> int | None:
    """Return the direction of the neighbour that is nearest to the target; None if none is connected to it."""
    best, chosen = FAR, None
    height, width = len(ways), len(ways[0])
    for way, (down, right) in enumerate(MOVES):
        row, column = position[0] + down, position[1] + right
        if 0 <= row < height and 0 <= column < width and (far := ways[row][column]) < FAR:
            turns = 0 if heading is None else (0, 1, 2, 1)[(way - heading) % 4]
            if (cost := 8 * far + turns) < best:
                best, chosen = cost, way
    return chosen


def _leads_past(ways: list[list[int]], taken: Collection[Cell], position: Cell, way: int) -> bool:
    """Return whether a shortest path that begins with a direction leads through a cell that is taken."""
    row, column = position[0] + MOVES[way][0], position[1] + MOVES[way][1]
    left = ways[row][column]
    if all(ways[y][x] > left for y, x in taken):  # the others are farther from the target
        return False
    shape = len(ways), len(ways[0])
    while left > 0:
        if (row, column) in taken:
            return True
        row, column = min(around((row, column), shape), key=lambda cell: ways[cell[0]][cell[1]])
        left = ways[row][column]
    return (row, column) in taken


def around(cell: Cell, shape: tuple[int, ...]) -> list[Cell]:
    """Return the neighbours of a cell that lie on the grid."""
    found = [(cell[0] + down, cell[1] + right) for down, right in MOVES]
    return [(r, c) for r, c in found if 0 <= r < shape[0] and 0 <= c < shape[1]]


def ways_beside(floor: np.ndarray, targets: Sequence[Cell]) -> tuple[np.ndarray, np.ndarray]:
    """Return how to reach the nearest of some cells that are not floor, such as counters, and to face it.

    Floors that never change need no search in each tick: this is computed once, and looked up.

    Args:
        floor: bool [H, W], the cells that can be entered.
        targets: The cells to face.

    Returns:
        int [H, W]: the direction of the next step from each cell, or of the target if the agent stands beside it; WAIT
        where no path leads to one. bool [H, W]: whether the agent stands beside it.
    """
    best = np.full(floor.shape, FAR)
    way, there = np.full(floor.shape, WAIT), np.zeros(floor.shape, bool)
    for target in targets:
        for stand in around(target, floor.shape):
            if not floor[stand]:
                continue
            far = distances(floor, stand)
            for row, column in np.argwhere((far < best) & floor).tolist():
                cell = (row, column)
                best[cell], there[cell] = far[cell], cell == stand
                towards = (
                    target if cell == stand else min(around(cell, far.shape), key=far.__getitem__)
                )
                way[cell] = MOVES.index((towards[0] - row, towards[1] - column))
    return way, there


def compiled_distances(free: Any, target: Any) -> Any:
    """Return `distances` as a JAX function of arrays: free bool [H, W], target int [2]."""
    import jax
    import jax.numpy as jnp

    height, width = free.shape
    rows, columns = jnp.arange(height)[:, None], jnp.arange(width)[None]
    goal = (rows == target[0]) & (columns == target[1])
    start = jnp.where(goal, 0, FAR)

    def spread(carry: tuple) -> tuple:
        ways, _ = carry
        padded = jnp.pad(ways, 1, constant_values=FAR)
        near = jnp.minimum(
            jnp.minimum(padded[:-2, 1:-1], padded[2:, 1:-1]),
            jnp.minimum(padded[1:-1, :-2], padded[1:-1, 2:]),
        )
        after = jnp.where(goal, 0, jnp.where(free, jnp.minimum(ways, near + 1), FAR))
        after = jnp.minimum(after, FAR)
        return after, (after != ways).any()

    return jax.lax.while_loop(lambda carry: carry[1], spread, (start, jnp.bool_(True)))[0]


def compiled_next_direction(free: Any, taken: Any, position: Any, target: Any, heading: Any) -> Any:
    """Return `next_direction` as a JAX function of arrays. A heading of -1: turning costs nothing."""
    import jax.numpy as jnp

    height, width = free.shape
    moves = jnp.array(MOVES)
    cells = position[None] + moves
    inside = (cells >= 0).all(1) & (cells[:, 0] < height) & (cells[:, 1] < width)
    at = (jnp.clip(cells[:, 0], 0, height - 1), jnp.clip(cells[:, 1], 0, width - 1))
    turns = jnp.array([0, 1, 2, 1])[(jnp.arange(4) - heading) % 4]
    turns = jnp.where(heading < 0, 0, turns)

    def best(open_cells: Any) -> tuple[Any, Any]:
        ways = compiled_distances(open_cells, target)[at]
        cost = jnp.where(inside & (ways < FAR), ways * 8 + turns, FAR * 8)
        way = jnp.argmin(cost)
        return way, cost[way] < FAR * 8

    around, some = best(free & ~taken)
    through, any_path = best(free)
    way = jnp.where(some, around, through)
    way = jnp.where(taken[at][way], WAIT, way)
    return jnp.where(some | any_path, way, LOST).astype(jnp.int32)
