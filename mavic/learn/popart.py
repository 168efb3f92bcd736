"""The scale of values: a critic's outputs are small numbers, and its values have the task's units.

The scale is a constant, follows the targets (PopArt), or grows with them. A scale that grows makes training free of
units: if all rewards are multiplied by a number, so are all values, and nothing else changes.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from mavic.types import Array, record

VALUE_HEADS = 2  # of a critic: values in units of the task, values of instructions that replace it


@record
class Scale:
    """Statistics of one agent's values, for each value head. A constant scale has mean 0 and spread `value_scale`."""

    mean: Array  # [VALUE_HEADS]
    square: Array  # [VALUE_HEADS]
    weight: Array  # [VALUE_HEADS] how much has been averaged, for debiasing, never 0; 1 if the scale grows

    @classmethod
    def of(cls, size: Array | float) -> Scale:
        """Return statistics for values in units of `size`; 0: the scale grows with the targets.

        The tiny weight of a constant scale lets PopArt's first batch replace it.
        """
        weight = jnp.full(VALUE_HEADS, jnp.where(jnp.asarray(size) > 0, 1e-6, 1.0), jnp.float32)
        return cls(mean=jnp.zeros(VALUE_HEADS), square=weight * size**2, weight=weight)

    def centre(self) -> Array:
        """Return the mean [VALUE_HEADS] that values are shifted by."""
        return self.mean / self.weight

    def spread(self) -> Array:
        """Return the standard deviation [VALUE_HEADS] that values are divided by."""
        least = jnp.where(
            self.weight < 1, 1e-2, 1e-30
        )  # a scale that grows has no units of its own
        return jnp.sqrt(jnp.maximum(self.square / self.weight - self.centre() ** 2, least))

    def unscale(self, raw: Array, head: Array) -> Array:
        """Return the value that the output of a `head` stands for."""
        return raw * self.spread()[head] + self.centre()[head]

    def track(self, target: Array, head: Array, valid: Array, beta: Array) -> Scale:
        """Return the statistics after a batch of targets.

        Args:
            target: [K, L].
            head: [K, L], the value head of the row.
            valid: [K, L], 1 for rows that have a target, else 0.
            beta: The weight of the batch in the running means. 0: the statistics stay, unless the scale grows.
        """
        hot = jax.nn.one_hot(head, VALUE_HEADS) * valid[..., None]
        count = hot.sum((0, 1))
        mean = (hot * target[..., None]).sum((0, 1)) / jnp.maximum(count, 1.0)
        square = (hot * target[..., None] ** 2).sum((0, 1)) / jnp.maximum(count, 1.0)
        grows = self.weight >= 1
        step = jnp.where((beta > 0) & (count > 0) & ~grows, beta, 0.0)
        moved = self.square + step * (square - self.square)
        return Scale(
            mean=self.mean + step * (mean - self.mean),
            square=jnp.where(grows, jnp.maximum(self.square, square), moved),
            weight=self.weight + step * (1.0 - self.weight),
        )

    def rescale(self, critic: dict[str, Any], new: Scale) -> dict[str, Any]:
        """Return the parameters of a `critic` of this scale that give the same values under the `new` one."""
        head, kinds = critic["head"], critic.get("kind_heads")
        before, after = self.spread()[None], new.spread()[None]
        ratio = before / after
        moved = (head["b"] * before + self.centre()[None] - new.centre()[None]) / after
        made = {**critic, "head": {"w": head["w"] * ratio[None], "b": moved}}
        if kinds is not None:  # what they add has no mean of its own
            made["kind_heads"] = {"w": kinds["w"] * ratio[None], "b": kinds["b"] * ratio}
        return made
