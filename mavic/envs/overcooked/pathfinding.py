"""The first step of a shortest path through the kitchen as a cook remembers it.

`shortest_step` is for the paper's dynamics. It spreads a set of cells, held as bits of one integer, from the target
until it touches the cook. Each sweep is a few integer operations that are the same for every environment, and ties
are broken in a fixed order. `reference_astar_step` replays the reference's A* with its binary heap, whose internal
order decides ties.
"""

from __future__ import annotations

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs.overcooked.grid import (
    CELLS,
    SIZE,
    STEPS,
    look_up,
    neighbours,
    row_column,
    step_from,
)
from mavic.envs.overcooked.kitchen import Kitchen
from mavic.envs.overcooked.macros import Primitive
from mavic.types import Array

ROOM = SIZE - 2  # rows and columns inside the border
BITS_PER_ROW = ROOM + 1  # the extra bit is never floor, so a shift does not wrap into the next row


def _bit_of(cell: int) -> int:
    """Return the bit that stands for a cell inside the border."""
    r, c = row_column(cell)
    return 1 << (BITS_PER_ROW * (r - 1) + c - 1)


@lru_cache(maxsize=64)
def _bit_tables(kitchen: Kitchen) -> tuple[np.ndarray, np.ndarray, int]:
    """Return per cell its own bit (0 unless floor) and the bits of the floor beside it, and the bits of all floor."""
    own, beside = np.zeros(CELLS, np.uint32), np.zeros(CELLS, np.uint32)
    for cell in kitchen.floor:
        own[cell] = _bit_of(cell)
    for cell in range(CELLS):
        beside[cell] = sum(int(own[n]) for n in neighbours(cell) if 0 <= n < CELLS)
    return own, beside, int(own.sum())


def _grow(bits: Array) -> Array:
    """Return a set of cells and all cells beside it."""
    return bits | bits << 1 | bits >> 1 | bits << BITS_PER_ROW | bits >> BITS_PER_ROW


def shortest_step(
    kitchen: Kitchen, cook: Array, target: Array, obstacles: Array, cooks: Array
) -> Array:
    """Return the primitive that starts a shortest path to a cell, or that pushes against it; STAY without a path.

    Of equally short paths it prefers one that does not begin at a cook, then the order right, down, left, up.

    Args:
        kitchen: The kitchen.
        cook: The cell where the path begins.
        target: The cell where it ends.
        obstacles: [G] remembered cells that block the way.
        cooks: [B] remembered cells of cooks, which do not block.
    """
    own, beside, floor = _bit_tables(kitchen)
    people = _union(look_up(own, cooks))
    passable = jnp.uint32(floor) & ~_union(look_up(own, obstacles)) | people
    goal = look_up(beside, cook) & passable
    reached = look_up(beside, target) & passable
    for _ in range(len(kitchen.floor) - 2):
        reached = jnp.where((reached & goal) != 0, reached, _grow(reached) & passable)
    ways = look_up(own, cook + jnp.asarray(STEPS[:4])) & reached
    free = ways & ~people
    ways = jnp.where(jnp.any(free != 0), free, ways)
    walk = jnp.where(jnp.any(ways != 0), jnp.argmax(ways != 0), Primitive.STAY)
    against = cook + jnp.asarray(STEPS[:4]) == target
    return jnp.where(jnp.any(against), jnp.argmax(against), walk).astype(jnp.int32)


def _union(bits: Array) -> Array:
    """Return the union of sets [G] of cells."""
    total = bits[0]
    for k in range(1, bits.shape[0]):
        total = total | bits[k]
    return total


# The reference's A* tries neighbours in this order, and its comparison calls equal nodes "less".
TRIED = np.array([Primitive.RIGHT, Primitive.LEFT, Primitive.DOWN, Primitive.UP], np.int32)
HEAP = 32  # at most 25 nodes
LEVELS = 5


def reference_astar_step(cook: Array, target: Array, walkable: Array, crowded: Array) -> Array:
    """Return the first primitive of the reference's A*, or STAY if there is no path.

    Args:
        cook: The cell where the path begins.
        target: The cell where it ends.
        walkable: [CELLS] the cells that the memory grid shows as space or cook.
        crowded: [CELLS] the cells that it shows as cook.
    """

    def distance(cell: Array) -> Array:
        (row, column), (to_row, to_column) = row_column(cell), row_column(target)
        return jnp.abs(row - to_row) + jnp.abs(column - to_column)

    def visit(number: Array, search: tuple[Array, ...]) -> tuple[Array, ...]:
        heap, size, visited, answer, node = search
        primitive = jnp.asarray(TRIED)[number]
        near = step_from(node[1], primitive)
        first = jnp.where(node[3] < 0, primitive, node[3])
        new = ~visited[near] & (answer < 0)
        push = new & walkable[near]
        depth = node[2] + 1
        key = 2 * (depth + distance(near)) + crowded[near]
        pushed = jnp.stack([key, near, depth, first]).astype(jnp.int32)
        heap, size = _push(heap, size, pushed, push)
        visited = visited.at[near].set(visited[near] | push)
        answer = jnp.where(new & (near == target), first, answer)
        return heap, size, visited, answer, node

    def expand(search: tuple[Array, ...]) -> tuple[Array, ...]:
        heap, size, visited, answer = search
        node, heap, size = _pop(heap, size)
        start = (heap, size, visited, answer, node)
        return jax.lax.fori_loop(0, len(TRIED), visit, start)[:-1]

    root = jnp.stack([jnp.int32(0), cook, jnp.int32(0), jnp.int32(-1)]).astype(jnp.int32)
    heap = jnp.zeros((HEAP, 4), jnp.int32).at[0].set(root)
    visited = jnp.arange(CELLS) == cook
    start: tuple[Array, ...] = (heap, jnp.int32(1), visited, jnp.int32(-1))
    final: tuple[Array, ...] = jax.lax.while_loop(lambda s: (s[1] > 0) & (s[3] < 0), expand, start)
    answer = final[3]
    return jnp.where(answer < 0, Primitive.STAY, answer).astype(jnp.int32)


def _push(heap: Array, size: Array, node: Array, wanted: Array) -> tuple[Array, Array]:
    """Return the heap and its size after the node is pushed, or unchanged if not `wanted`."""
    risen = _rise(heap.at[size].set(node), size)
    return jnp.where(wanted, risen, heap), size + wanted


def _rise(heap: Array, place: Array) -> Array:
    """Move the node at `place` above every parent that is not smaller."""
    node = heap[place]

    def climb(_: Array, search: tuple[Array, Array]) -> tuple[Array, Array]:
        heap, place = search
        parent = (place - 1) // 2
        rises = (place > 0) & (node[0] <= heap[parent, 0])
        heap = heap.at[place].set(jnp.where(rises, heap[parent], heap[place]))
        return heap, jnp.where(rises, parent, place)

    heap, place = jax.lax.fori_loop(0, LEVELS, climb, (heap, place))
    return heap.at[place].set(node)


def _pop(heap: Array, size: Array) -> tuple[Array, Array, Array]:
    """Return the root, and the heap and size without it. The last leaf fills the gap as in `heapq`."""
    root, size = heap[0], size - 1
    last = heap[size]

    def sink(_: Array, search: tuple[Array, Array]) -> tuple[Array, Array]:
        heap, place = search
        left, right = 2 * place + 1, 2 * place + 2
        keys = heap.at[jnp.stack([left, right]), 0].get(mode="clip")
        child = jnp.where((right < size) & (keys[1] < keys[0]), right, left)
        sinks = left < size
        moved = heap.at[child].get(mode="clip")
        heap = heap.at[place].set(jnp.where(sinks, moved, heap[place]))
        return heap, jnp.where(sinks, child, place)

    heap, place = jax.lax.fori_loop(0, LEVELS, sink, (heap, jnp.int32(0)))
    return root, _rise(heap.at[place].set(last), place), size
