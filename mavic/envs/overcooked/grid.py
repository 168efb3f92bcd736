"""The geometry of a kitchen: cells are numbers, `STRIDE * row + column`."""

from __future__ import annotations

from typing import TypeVar

import jax.numpy as jnp
import numpy as np

from mavic.types import Array

T = TypeVar("T", int, Array)
SIZE = 7  # rows and columns of a map
STRIDE = 8  # a power of two, so that row and column of a cell are a shift and a mask
CELLS = STRIDE * STRIDE
NOWHERE = 127  # the cell of things that do not exist; no cook sees it
STEPS = np.array([1, STRIDE, -1, -STRIDE, 0], np.int32)  # right, down, left, up, stay

assert NOWHERE >= CELLS


def cell_of(row: int, column: int) -> int:
    """Return the number of a cell."""
    return STRIDE * row + column


def row_column(cell: T) -> tuple[T, T]:
    """Return the row and column of a cell, or the rows and columns of an array of cells."""
    return cell >> 3, cell & (STRIDE - 1)


def neighbours(cell: int) -> tuple[int, int, int, int]:
    """Return the cells to the right, below, to the left and above."""
    return cell + 1, cell + STRIDE, cell - 1, cell - STRIDE


def step_from(cell: Array, primitive: Array) -> Array:
    """Return the cell that a primitive moves to, or pushes against."""
    return cell + jnp.asarray(STEPS)[primitive]


def is_beside(one: Array, other: Array) -> Array:
    """Return whether two cells share an edge."""
    apart = jnp.abs(one - other)
    return (apart == 1) | (apart == STRIDE)


def is_in_view(cook: Array, cell: Array) -> Array:
    """Return whether a cell lies in the 5x5 window around a cook."""
    (row, column), (cell_row, cell_column) = row_column(cook), row_column(cell)
    return (jnp.abs(row - cell_row) <= 2) & (jnp.abs(column - cell_column) <= 2)


def look_up(table: np.ndarray, cell: Array) -> Array:
    """Return the entry of a table [CELLS] for a cell. NOWHERE reads the last entry, which no map uses."""
    return jnp.asarray(table).at[cell].get(mode="clip")
