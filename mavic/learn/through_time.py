"""Recurrent passes over macro rows in blocks, as many as the fullest lane needs and no more.

The number of rows is known only while the program runs. A `scan` would pay for the longest thinkable batch; these
loops stop after the last row in use. Gradients are taken block by block from the end, from memories saved at each
block's start (so memory is small as well).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from mavic.types import Array

BLOCK = 8  # rows


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
        carry, outputs = state
        carry, block = segment(carry, _block(rows, number))
        return carry, _write(outputs, block, number)

    return jax.lax.fori_loop(0, blocks, on, (carry, _room(shapes, length)))[1]


def gradient(
    segment: Callable, params: Any, carry: Array, rows: Any, blocks: Array
) -> tuple[Any, Array, Any]:
    """`segment(params, carry, block) -> carry, loss [], outputs [BLOCK, ...]`; gives the gradient of the summed loss
    by full back-propagation through time, the loss, and outputs [K, ...]."""
    length = jax.tree.leaves(rows)[0].shape[0]
    shapes = jax.eval_shape(segment, params, carry, _block(rows, jnp.int32(0)))[2]

    def remember(number: Array, state: tuple) -> tuple:
        carry, saved = state
        saved = saved.at[number].set(carry)
        return segment(params, carry, _block(rows, number))[0], saved

    saved = jnp.zeros((length // BLOCK, *carry.shape), carry.dtype)
    saved = jax.lax.fori_loop(0, blocks, remember, (carry, saved))[1]

    def back(count: Array, state: tuple) -> tuple:
        number = blocks - 1 - count
        grads, towards, total, outputs = state

        def forward_block(params: Any, carry: Array) -> tuple[tuple[Array, Array], Any]:
            carry, loss, block = segment(params, carry, _block(rows, number))
            return (carry, loss), block

        (_, loss), pull, block = jax.vjp(forward_block, params, saved[number], has_aux=True)
        more, towards = pull((towards, jnp.ones_like(loss)))
        grads = jax.tree.map(jnp.add, grads, more)
        return grads, towards, total + loss, _write(outputs, block, number)

    start = (
        jax.tree.map(jnp.zeros_like, params),
        jnp.zeros_like(carry),
        jnp.float32(0.0),
        _room(shapes, length),
    )
    grads, _, total, outputs = jax.lax.fori_loop(0, blocks, back, start)
    return grads, total, outputs
