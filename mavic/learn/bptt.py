"""Back-propagation through time over macro transitions, block by block, up to the end of the fullest lane.

The number of rows is known only while the program runs. A `scan` would pay for the longest possible batch; these loops
stop after the last row in use. A forward pass stores only the memory after each row. The gradient is then taken block
by block from the end, so little is stored and only the pass back through the memories is sequential.

Each loop carries the next block in its state. A slice taken in the middle of the arithmetic would keep a CPU from
vectorising it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from mavic.run_axis import max_over_runs
from mavic.types import Array, Bool, Float, Int, assert_rank

_BLOCK = 8  # rows
_CPU_BLOCK = 16  # fewer and larger products: 7 % more steps/s in Box Pushing
# A GPU's time goes by the number of kernels, and each block adds some. So lanes of one long episode each have larger
# blocks there. With lanes of several short episodes (Box Pushing) the program would compile three times as long.
_LONG_BLOCK, _LONG_LANE = 40, 200
_CHUNKS = 16  # into which `map_where` divides all rows


def _block_size(length: int) -> int:
    """Return the rows of a block on the present device, for lanes of `length` rows, padded or not."""
    if jax.default_backend() == "cpu":
        return _CPU_BLOCK
    fits = length % _LONG_BLOCK == 0 and length <= _LONG_LANE
    return _LONG_BLOCK if fits else _BLOCK


def lengths(valid: Bool[Array, "K L N"], wanted: Bool[Array, "K L N"]) -> tuple[Array, Array]:
    """Return the lengths of the loops over rows. They are the same for all agents and in all runs of a program.

    Args:
        valid: The rows in use.
        wanted: The rows that `map_where` computes.

    Returns:
        How many blocks of rows the fullest lane has, and how many chunks hold the wanted rows.
    """
    blocks = _blocks_for(max_over_runs(valid.sum(0).max()), len(valid))
    return blocks, max_over_runs(_chunks_for(wanted))


def _blocks_for(longest: Array, length: int) -> Array:
    """Return how many blocks hold the `longest` of the lanes of `length` rows."""
    size = _block_size(length)
    return (longest + size - 1) // size


def pad(rows: Any) -> Any:
    """Return the rows, a tree of arrays [K, ...], padded with zeros to whole blocks."""
    length = _length(rows)
    extra = -length % _block_size(length)
    return jax.tree.map(lambda x: jnp.pad(x, [(0, extra)] + [(0, 0)] * (x.ndim - 1)), rows)


def _length(rows: Any) -> int:
    return jax.tree.leaves(rows)[0].shape[0]


def _block(rows: Any, number: Array) -> Any:
    size = _block_size(_length(rows))
    return jax.tree.map(
        lambda x: jax.lax.dynamic_slice_in_dim(x, number * size, size, axis=0), rows
    )


def _write(all_: Any, block: Any, number: Array) -> Any:
    start = number * _block_size(_length(all_))
    return jax.tree.map(
        lambda a, b: jax.lax.dynamic_update_slice_in_dim(a, b, start, axis=0), all_, block
    )


def _zeros(block: Any, length: int) -> Any:
    return jax.tree.map(lambda b: jnp.zeros((length, *b.shape[1:]), b.dtype), block)


def forward(segment: Callable, carry: Array, rows: Any, blocks: Array) -> Any:
    """Return the outputs [K, ...] of all blocks; zero beyond the last block.

    Args:
        segment: (carry, block) → the carry after the block, and the block's outputs.
        carry: The carry before the first block.
        rows: A tree of arrays [K, ...], padded.
        blocks: How many blocks to run, from `lengths`.
    """
    length = _length(rows)
    shapes = jax.eval_shape(segment, carry, _block(rows, jnp.int32(0)))[1]

    def step(number: Array, state: tuple) -> tuple:
        block, carry, outputs = state
        carry, found = segment(carry, block)
        return _block(rows, number + 1), carry, _write(outputs, found, number)

    start = (_block(rows, jnp.int32(0)), carry, _zeros(shapes, length))
    return jax.lax.fori_loop(0, blocks, step, start)[2]


def _chunks_for(wanted: Bool[Array, "K L *agents"]) -> Int[Array, ""]:
    """Return the chunks needed to cover this mask [K, L]; for [K, L, N] the maximum over agents."""
    assert_rank("K L" + " N" * (wanted.ndim - 2), wanted=wanted)
    length, lanes = wanted.shape[:2]
    return (wanted.sum((0, 1)).max() + _chunk(length * lanes) - 1) // _chunk(length * lanes)


def _chunk(rows: int) -> int:
    return -(-rows // _CHUNKS)


def map_where(
    wanted: Bool[Array, "K L"], function: Callable, chunks: Int[Array, ""]
) -> Float[Array, "K L"]:
    """Return `function` of the wanted rows, and 0 elsewhere.

    Args:
        wanted: The rows to compute.
        function: (k [S], w [S]) → [S], the results of rows k in lanes w. It is called once per chunk of wanted rows, so
            few rows cost little.
        chunks: How many chunks hold the wanted rows, from `lengths`.
    """
    assert_rank("K L", wanted=wanted)
    length, lanes = wanted.shape
    total, size = length * lanes, _chunk(length * lanes)
    flat = wanted.reshape(-1)
    slot = jnp.where(flat, jnp.cumsum(flat) - 1, _CHUNKS * size)
    place = jnp.full(_CHUNKS * size, total, jnp.int32)
    place = place.at[slot].set(jnp.arange(total, dtype=jnp.int32), mode="drop")

    def chunk(number: Array, found: Array) -> Array:
        here = jax.lax.dynamic_slice_in_dim(place, number * size, size)
        inside = jnp.minimum(here, total - 1)
        return found.at[here].set(function(inside // lanes, inside % lanes), mode="drop")

    return jax.lax.fori_loop(0, chunks, chunk, jnp.zeros(total)).reshape(length, lanes)


def gradient(
    segment: Callable, params: Any, carry: Array, rows: Any, memory: Array, blocks: Array
) -> tuple[Any, Array, Any]:
    """Return the gradient of the summed loss by full back-propagation through time, the loss, and outputs [K, ...].

    Args:
        segment: (params, carry, block, known) → the carry after the block, its loss [], its outputs. `known` is the
            block's part of `memory`.
        params: What the gradient is taken by.
        carry: The carry before the first block.
        rows: A tree of arrays [K, ...], padded.
        memory: [K, ...], the carry after each row, from `forward`.
        blocks: How many blocks to run, from `lengths`.
    """
    length = _length(rows)
    size = _block_size(length)
    rows = (rows, memory)
    first = _block(rows, jnp.int32(0))
    shapes = jax.eval_shape(segment, params, carry, *first)[2]

    def back(count: Array, state: tuple) -> tuple:
        number = blocks - 1 - count
        block, grads, towards, total, outputs = state
        start = jnp.where(number > 0, memory[jnp.maximum(number * size - 1, 0)], carry)

        def forward_block(params: Any, start: Array) -> tuple[tuple[Array, Array], Any]:
            after, loss, found = segment(params, start, *block)
            return (after, loss), found

        (_, loss), pull, found = jax.vjp(forward_block, params, start, has_aux=True)
        more, towards = pull((towards, jnp.ones_like(loss)))
        grads = jax.tree.map(jnp.add, grads, more)
        outputs = _write(outputs, found, number)
        return _block(rows, number - 1), grads, towards, total + loss, outputs

    zero = jax.tree.map(jnp.zeros_like, (params, carry))
    start = (_block(rows, blocks - 1), *zero, jnp.float32(0.0), _zeros(shapes, length))
    _, grads, _, total, outputs = jax.lax.fori_loop(0, blocks, back, start)
    return grads, total, outputs
