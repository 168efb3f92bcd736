"""Pytrees as named arrays, for files."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def flatten(tree: Any) -> dict[str, np.ndarray]:
    """Return the arrays of a pytree by their paths."""
    named = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in named}


def unflatten(named: dict[str, np.ndarray], like: Any) -> Any:
    """Return the pytree of named arrays.

    Args:
        named: arrays by path, as `flatten` returns them.
        like: a pytree with the wanted structure, shapes and types.

    Raises:
        KeyError, ValueError: an array is missing, has another shape or type, or holds numbers that are not finite.
    """
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    leaves = []
    for path, leaf in paths:
        name = jax.tree_util.keystr(path)
        if name not in named:
            raise KeyError(f"{name} is missing")
        if named[name].shape != leaf.shape:
            raise ValueError(f"{name} has shape {named[name].shape}, not {leaf.shape}")
        if named[name].dtype != leaf.dtype:
            raise ValueError(f"{name} has type {named[name].dtype}, not {leaf.dtype}")
        if not np.isfinite(named[name]).all():
            raise ValueError(f"{name} holds numbers that are not finite")
        leaves.append(jnp.asarray(named[name]))
    return jax.tree.unflatten(structure, leaves)
