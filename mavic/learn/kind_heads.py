"""Kind heads: output layers for each kind of instruction, beside the head of the part that hears."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mavic.types import Array


class KindHeads(NamedTuple):
    """The output layers of the kinds, and the weight of each layer for each phrase."""

    weight: Array  # [E, H, out]
    bias: Array  # [E, out]
    heard: Array  # [phrases, E]

    @staticmethod
    def init(kinds: int, hidden: int, outputs: int) -> dict[str, Array]:
        """Return untrained layers, which are zero."""
        return {"w": jnp.zeros((kinds, hidden, outputs)), "b": jnp.zeros((kinds, outputs))}

    @classmethod
    def of(cls, params: Any, vectors: Array) -> KindHeads | None:
        """Return the layers in an agent's parameters, or None if it has none."""
        layers = params.get("kind_heads")
        return None if layers is None else cls(layers["w"], layers["b"], vectors)

    def add(
        self,
        phrases: tuple[Array, ...],
        heads: Array,
        features: Array,
        product: Callable[[Array, Array], Array] = jnp.matmul,
    ) -> Array:
        """Return heads [R, ..., out] plus the output of the heard kind's layers: sum_e heard[e] (h K[e] + k[e]).

        Args:
            phrases: [...] for each instruction that may hold. Silence adds zero.
            heads: [R, ..., out]. Only the last part, which hears, changes.
            features: [R, ..., H], the inputs of the heads.
            product: How to multiply rows by a matrix.
        """
        table = jax.lax.stop_gradient(self.heard)
        heard = functools.reduce(jnp.add, (table[phrase] for phrase in phrases))
        flat = jnp.moveaxis(self.weight, 0, 1).reshape(self.weight.shape[1], -1)  # [H, E * out]
        each = product(features[-1], flat).reshape(*heard.shape, heads.shape[-1])
        each = each + jax.lax.broadcast_to_rank(self.bias, each.ndim)
        return heads.at[-1].add((heard[..., None] * each).sum(-2))
