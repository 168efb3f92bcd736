"""The first step of a shortest path through what a cook believes, in two ways.

`shortest` spreads a set of cells, held in the bits of one word, from the target until it touches
the cook: a few integer operations a sweep, whatever the lane, and ties are broken in a fixed order.
`reference` replays the reference's A* with its binary heap, which decides ties in an order of its
own.
"""

from __future__ import annotations

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs.overcooked.kitchen import (
    CELLS,
    NOWHERE,
    SIZE,
    STRIDE,
    Kitchen,
    neighbours,
    row_column,
)
from mavic.envs.overcooked.macros import Primitive
from mavic.types import Array

STEPS = np.array([1, STRIDE, -1, -STRIDE, 0], np.int32)  # right, down, left, up, stay
ROOM = SIZE - 2
BITS_PER_ROW = (
    ROOM + 1
)  # one bit more than the room is wide, never floor: rows do not run into each other


def step_from(cell: Array, primitive: Array) -> Array:
    """The cell that a primitive moves to, or against."""
    return cell + jnp.asarray(STEPS)[primitive]


def row(cell: Array) -> Array:
    """The row of a cell."""
    return cell >> 3


def column(cell: Array) -> Array:
    """The column of a cell."""
    return cell & (STRIDE - 1)


def is_beside(one: Array, other: Array) -> Array:
    """Whether two cells share an edge."""
    apart = jnp.abs(one - other)
    return (apart == 1) | (apart == STRIDE)


def is_in_view(cook: Array, cell: Array) -> Array:
    """Whether a cell lies in the 5x5 window around a cook."""
    return (jnp.abs(row(cook) - row(cell)) <= 2) & (jnp.abs(column(cook) - column(cell)) <= 2)


def look_up(table: np.ndarray, cell: Array) -> Array:
    """A table over cells read at `cell`; what is nowhere reads like the last, unused cell."""
    return jnp.asarray(table).at[cell].get(mode="clip")


def bit_of(cell: int) -> int:
    """The bit that stands for a cell of the room."""
    r, c = row_column(cell)
    return 1 << (BITS_PER_ROW * (r - 1) + c - 1)


@lru_cache(maxsize=64)
def bit_tables(kitchen: Kitchen) -> tuple[np.ndarray, np.ndarray, int]:
    """Per cell its bit, 0 unless floor, and the bits of the floor beside it; and all floor."""
    own, beside = np.zeros(CELLS, np.uint32), np.zeros(CELLS, np.uint32)
    for cell in kitchen.floor:
        own[cell] = bit_of(cell)
    for cell in range(CELLS):
        beside[cell] = sum(int(own[n]) for n in neighbours(cell) if 0 <= n < CELLS)
    return own, beside, int(own.sum())


def spread(bits: Array) -> Array:
    """A set of cells and all cells beside it."""
    return bits | bits << 1 | bits >> 1 | bits << BITS_PER_ROW | bits >> BITS_PER_ROW


def shortest(kitchen: Kitchen, cook: Array, target: Array, ghosts: Array, cooks: Array) -> Array:
    """The primitive that starts a shortest path from `cook` to `target`, or pushes against it.

    `ghosts` [G] are remembered cells that block; `cooks` [B] remembered cells of cooks, passable,
    but of two equally short ways the one that does not begin with a cook is taken; then right,
    down, left, up. STAY if none.
    """
    own, beside, floor = bit_tables(kitchen)
    people = _union(look_up(own, cooks))
    passable = jnp.uint32(floor) & ~_union(look_up(own, ghosts)) | people
    goal = look_up(beside, cook) & passable
    reached = look_up(beside, target) & passable
    for _ in range(len(kitchen.floor) - 2):
        reached = jnp.where((reached & goal) != 0, reached, spread(reached) & passable)
    ways = look_up(own, cook + jnp.asarray(STEPS[:4])) & reached
    free = ways & ~people
    ways = jnp.where(jnp.any(free != 0), free, ways)
    walk = jnp.where(jnp.any(ways != 0), jnp.argmax(ways != 0), Primitive.STAY)
    against = cook + jnp.asarray(STEPS[:4]) == target
    return jnp.where(jnp.any(against), jnp.argmax(against), walk).astype(jnp.int32)


def _union(bits: Array) -> Array:
    total = bits[0]
    for k in range(1, bits.shape[0]):
        total = total | bits[k]
    return total


# The reference's A*: neighbours are tried in this order; equal nodes count as "less".
TRIED = np.array([Primitive.RIGHT, Primitive.LEFT, Primitive.DOWN, Primitive.UP], np.int32)
HEAP = 32  # at most 25 nodes
LEVELS = 5


def reference(cook: Array, target: Array, walkable: Array, crowded: Array) -> Array:
    """The first primitive of the reference's A* from `cook` to `target`, STAY without a path.

    `walkable`, `crowded` [CELLS]: cells that the belief grid shows as space or cook, and as cook.
    """

    def distance(cell: Array) -> Array:
        return jnp.abs(row(cell) - row(target)) + jnp.abs(column(cell) - column(target))

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
    risen = _rise(heap.at[size].set(node), size)
    return jnp.where(wanted, risen, heap), size + wanted


def _rise(heap: Array, place: Array) -> Array:
    """The node at `place` moves above every parent that is not smaller."""
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
    """The root; the last leaf takes its place, sinks along the smaller children, rises again."""
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


assert NOWHERE >= CELLS
