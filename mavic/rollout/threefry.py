"""Random numbers of the rollout: those of `jax.random`, bit for bit, without a loop.

On a CPU `jax.random` runs its cipher (Threefry-2x32, 20 rounds) as a loop of small operations, which costs more than
everything else in a tick. The functions here return the same numbers (`tests/rollout/test_threefry.py`).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from mavic.types import Array, Float, Int, Key, assert_rank

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))  # of the cipher's odd and even groups of rounds
PARITY = 0x1BD11BDA


def fold_in(key: Key[Array, ""], number: Int[Array, ""] | int) -> Key[Array, ""]:
    """Return what `jax.random.fold_in` returns for a scalar key."""
    assert_rank("", key=key, number=number)
    return _key(_cipher(key, jnp.asarray(number).astype(jnp.uint32)))


def split(key: Key[Array, ""], count: int) -> Key[Array, " {count}"]:
    """Return what `jax.random.split` returns for a scalar key."""
    assert_rank("", key=key)
    return _key(_cipher(key, jnp.arange(count, dtype=jnp.uint32)))


def uniform(key: Key[Array, ""], count: int) -> Float[Array, " {count}"]:
    """Return what `jax.random.uniform(key, (count,))` returns."""
    assert_rank("", key=key)
    left, right = _cipher(key, jnp.arange(count, dtype=jnp.uint32))
    mantissa = ((left ^ right) >> 9) | jnp.uint32(0x3F800000)  # the float's exponent: [1, 2)
    return jax.lax.bitcast_convert_type(mantissa, jnp.float32) - 1.0


def _key(words: tuple[Array, Array]) -> Array:
    return jax.random.wrap_key_data(jnp.stack(words, axis=-1))


def _cipher(key: Array, right: Array) -> tuple[Array, Array]:
    """Return the Threefry-2x32 encryption of the blocks (0, right)."""
    first, second = jax.random.key_data(key)
    keys = (first, second, first ^ second ^ jnp.uint32(PARITY))
    left, right = jnp.zeros_like(right) + keys[0], right + keys[1]
    for group in range(5):
        for turn in ROTATIONS[group % 2]:
            left = left + right
            right = left ^ ((right << turn) | (right >> (32 - turn)))
        left = left + keys[(group + 1) % 3]
        right = right + keys[(group + 2) % 3] + jnp.uint32(group + 1)
    return left, right
