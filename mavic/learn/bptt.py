"""Recurrent passes over macro rows in blocks, as many as the fullest lane needs and no more.

The number of rows is known only while the program runs. A `scan` would pay for the longest thinkable batch; these
loops stop after the last row in use. Gradients are taken block by block from the end; a pass forward has left the
memory after each row and nothing else, so little is kept and within a block only the way back is sequential.
The next block travels with the state of the loop: a slice taken in the middle of the arithmetic would keep a CPU from
doing it on whole vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from mavic.types import Array

BLOCK = 8  # rows
ROUNDS = 16  # in which a function is computed for all rows, if all are wanted


def blocks_for(longest: Array) -> Array:
    """How many blocks hold `longest` rows."""
    return (longest + BLOCK - 1) // BLOCK


def pad(rows: Any) -> Any:
    """Make the number of rows [K, ...] a multiple of the block."""
    length = jax.tree.leaves(rows)[0].shape[0]
    extra = -length % BLOCK
    return jax.tree.map(lambda x: jnp.pad(x, [(0, extra)] + [(0, 0)] * (x.ndim - 1)), rows)


def _block(rows: Any, number: Array) -> Any:
    return jax.tree.map(
        lambda x: jax.lax.dynamic_slice_in_dim(x, number * BLOCK, BLOCK, axis=0), rows
    )


def _write(all_: Any, block: Any, number: Array) -> Any:
    return jax.tree.map(
        lambda a, b: jax.lax.dynamic_update_slice_in_dim(a, b, number * BLOCK, axis=0), all_, block
    )


def _room(block: Any, length: int) -> Any:
    return jax.tree.map(lambda b: jnp.zeros((length, *b.shape[1:]), b.dtype), block)


def forward(segment: Callable, carry: Array, rows: Any, blocks: Array) -> Any:
    """`segment(carry, block) -> carry, outputs [BLOCK, ...]`; gives outputs [K, ...], zero beyond the last block."""
    length = jax.tree.leaves(rows)[0].shape[0]
    shapes = jax.eval_shape(segment, carry, _block(rows, jnp.int32(0)))[1]

    def on(number: Array, state: tuple) -> tuple:
        block, carry, outputs = state
        carry, found = segment(carry, block)
        return _block(rows, number + 1), carry, _write(outputs, found, number)

    start = (_block(rows, jnp.int32(0)), carry, _room(shapes, length))
    return jax.lax.fori_loop(0, blocks, on, start)[2]


def rounds_for(wanted: Array) -> Array:
    """How many rounds `where` takes if `wanted` [K, W] holds in no more rows than here; [K, W, N]: of all N."""
    length, lanes = wanted.shape[:2]
    return (wanted.sum((0, 1)).max() + _share(length * lanes) - 1) // _share(length * lanes)


def _share(rows: int) -> int:
    return -(-rows // ROUNDS)


def where(wanted: Array, function: Callable, rounds: Array) -> Array:
    """`function(k, w) -> [S]` of rows k [S] in lanes w [S] at all places where `wanted` [K, W] holds, 0 elsewhere. It
    is called for as many rows as there are, a part of all at a time: few cost little, and none is left out."""
    length, lanes = wanted.shape
    total, share = length * lanes, _share(length * lanes)
    flat = wanted.reshape(-1)
    slot = jnp.where(flat, jnp.cumsum(flat) - 1, ROUNDS * share)
    place = jnp.full(ROUNDS * share, total, jnp.int32)
    place = place.at[slot].set(jnp.arange(total, dtype=jnp.int32), mode="drop")

    def on(number: Array, found: Array) -> Array:
        here = jax.lax.dynamic_slice_in_dim(place, number * share, share)
        inside = jnp.minimum(here, total - 1)
        return found.at[here].set(function(inside // lanes, inside % lanes), mode="drop")

    return jax.lax.fori_loop(0, rounds, on, jnp.zeros(total)).reshape(length, lanes)


def gradient(
    segment: Callable, params: Any, carry: Array, rows: dict, blocks: Array
) -> tuple[Any, Array, Any]:
    """`segment(params, carry, block) -> carry, loss [], outputs [BLOCK, ...]`; gives the gradient of the summed loss
    by full back-propagation through time, the loss, and outputs [K, ...]. `rows["memory"]` [K, ...]: the carry after
    each row, from a pass forward."""
    length = jax.tree.leaves(rows)[0].shape[0]
    memory = rows["memory"]
    shapes = jax.eval_shape(segment, params, carry, _block(rows, jnp.int32(0)))[2]

    def back(count: Array, state: tuple) -> tuple:
        number = blocks - 1 - count
        block, grads, towards, total, outputs = state
        start = jnp.where(number > 0, memory[jnp.maximum(number * BLOCK - 1, 0)], carry)

        def forward_block(params: Any, start: Array) -> tuple[tuple[Array, Array], Any]:
            after, loss, found = segment(params, start, block)
            return (after, loss), found

        (_, loss), pull, found = jax.vjp(forward_block, params, start, has_aux=True)
        more, towards = pull((towards, jnp.ones_like(loss)))
        grads = jax.tree.map(jnp.add, grads, more)
        outputs = _write(outputs, found, number)
        return _block(rows, number - 1), grads, towards, total + loss, outputs

    zero = jax.tree.map(jnp.zeros_like, (params, carry))
    start = (_block(rows, blocks - 1), *zero, jnp.float32(0.0), _room(shapes, length))
    _, grads, _, total, outputs = jax.lax.fori_loop(0, blocks, back, start)
    return grads, total, outputs
