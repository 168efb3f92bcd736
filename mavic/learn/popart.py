"""The scale of values: a critic's outputs are small numbers, and its values have the task's units (PopArt)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from mavic.types import Array, record

VALUE_HEADS = 2  # of a critic: uninstructed, instructed


@record
class Scale:
    """PopArt statistics of one agent's values, for each value head. Without PopArt: mean 0 and spread `value_scale`."""

    mean: Array  # [VALUE_HEADS]
    square: Array  # [VALUE_HEADS]
    weight: Array  # [VALUE_HEADS] how much has been averaged, for debiasing

    @classmethod
    def of(cls, size: Array | float) -> Scale:
        """Return statistics for values in units of `size`. Their tiny weight lets PopArt's first batch replace them."""
        weight = jnp.full(VALUE_HEADS, 1e-6, jnp.float32)
        return cls(mean=jnp.zeros(VALUE_HEADS), square=weight * size**2, weight=weight)

    def centre(self) -> Array:
        """Return the mean [VALUE_HEADS] that values are shifted by."""
        return jnp.where(self.weight > 0, self.mean / jnp.maximum(self.weight, 1e-8), 0.0)

    def spread(self) -> Array:
        """Return the standard deviation [VALUE_HEADS] that values are divided by."""
        square = self.square / jnp.maximum(self.weight, 1e-8)
        variance = jnp.maximum(square - self.centre() ** 2, 1e-2)
        return jnp.where(self.weight > 0, jnp.sqrt(variance), 1.0)

    def unscale(self, raw: Array, instructed: Array) -> Array:
        """Return the value that a head's output stands for."""
        i = instructed.astype(jnp.int32)
        return raw * self.spread()[i] + self.centre()[i]

    def track(self, target: Array, instructed: Array, valid: Array, beta: Array) -> Scale:
        """Return the statistics after a batch of targets.

        Args:
            target: [K, L].
            instructed: [K, L], whether the row counts for the instructed head.
            valid: [K, L], 1 for rows that have a target, else 0.
            beta: The weight of the batch in the running means. 0: the statistics stay.
        """
        hot = jax.nn.one_hot(instructed.astype(jnp.int32), VALUE_HEADS) * valid[..., None]
        count = hot.sum((0, 1))
        mean = (hot * target[..., None]).sum((0, 1)) / jnp.maximum(count, 1.0)
        square = (hot * target[..., None] ** 2).sum((0, 1)) / jnp.maximum(count, 1.0)
        step = jnp.where((beta > 0) & (count > 0), beta, 0.0)
        return Scale(
            mean=self.mean + step * (mean - self.mean),
            square=self.square + step * (square - self.square),
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
