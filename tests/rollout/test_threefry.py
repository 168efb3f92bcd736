"""The rollout's random numbers are those of `jax.random`."""

import jax
import jax.numpy as jnp
import numpy as np

from mavic.rollout import threefry

KEYS = [jax.random.key(0), jax.random.key(20_260_000), jax.random.fold_in(jax.random.key(7), 5)]


def same_keys(one, other):
    np.testing.assert_array_equal(jax.random.key_data(one), jax.random.key_data(other))


def test_numbers_and_keys_are_those_of_jax():
    for key in KEYS:
        np.testing.assert_array_equal(threefry.uniform(key, 9), jax.random.uniform(key, (9,)))
        same_keys(threefry.split(key, 3), jax.random.split(key, 3))
        for number in (0, 1, 99, 2**31 - 1):
            same_keys(threefry.fold_in(key, number), jax.random.fold_in(key, number))


def test_many_at_once_are_each_alone():
    keys, numbers = jnp.stack(KEYS), jnp.arange(3, dtype=jnp.int32)
    same_keys(
        jax.vmap(threefry.fold_in)(keys, numbers), jax.vmap(jax.random.fold_in)(keys, numbers)
    )
    drawn = jax.jit(jax.vmap(lambda key: threefry.uniform(key, 8)))(keys)
    np.testing.assert_array_equal(drawn, jnp.stack([jax.random.uniform(k, (8,)) for k in KEYS]))
