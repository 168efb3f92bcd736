"""Losses of one agent over a block of macro rows."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from mavic.learn import networks
from mavic.learn.networks import Scale, Shape
from mavic.types import Array


def mixture(logits: Array, available: Array, epsilon: Array) -> tuple[Array, Array]:
    """Probabilities of the behaviour (1-ε)·softmax + ε/|available| and logarithms of the softmax alone, over the last
    axis."""
    log_soft = jax.nn.log_softmax(jnp.where(available, logits, -1e9))
    uniform = available / available.sum(-1, keepdims=True)
    return (1 - epsilon[..., None]) * jnp.exp(log_soft) + epsilon[..., None] * uniform, log_soft


def actor_segment(shape: Shape, net: networks.Net, carry: Array, rows: dict) -> tuple:
    """Policy gradient through the ε-mixture, plus entropy of the softmax; each row carries its own weights."""
    carry, _, heads = networks.unroll(
        shape, net, carry, rows["seen"], rows["first"], rows.get("memory")
    )
    logits = networks.logits(shape, heads, rows["instructed"])
    mixed, soft = mixture(logits, rows["available"], rows["epsilon"])
    log_mixed = jnp.log(jnp.maximum(mixed, 1e-20))
    taken = jnp.take_along_axis(log_mixed, rows["macro"][..., None], axis=-1)[..., 0]
    entropy = -(jnp.exp(soft) * jnp.where(rows["available"], soft, 0.0)).sum(-1)
    loss = -(rows["weight"] * (rows["advantage"] * taken + rows["entropy"] * entropy)).sum()
    return carry, loss, {"log_prob": taken, "entropy": entropy}


def critic_segment(
    shape: Shape, scale: Scale, net: networks.Net, carry: Array, rows: dict
) -> tuple:
    """Squared error to the target, in units of the context's scale; errors that call for a lower value weigh `mild`."""
    carry, _, heads = networks.unroll(
        shape, net, carry, rows["seen"], rows["first"], rows.get("memory")
    )
    values = networks.value(heads, rows["instructed"], scale)
    spread = scale.spread()[rows["instructed"].astype(jnp.int32)]
    error = (rows["target"] - values) / spread
    error_weight = jnp.where(error < 0, rows["mild"], 1.0)
    loss = (rows["weight"] * error_weight * error**2).sum()
    return carry, loss, {"value": values}


def value_segment(
    shape: Shape, scale: Scale, net: networks.Net, carry: Array, rows: dict
) -> tuple[Array, dict]:
    """V(h, c) of each row, and the memory after it."""
    carry, memory, heads = networks.unroll(shape, net, carry, rows["seen"], rows["first"])
    return carry, {"value": networks.value(heads, rows["instructed"], scale), "memory": memory}


def value_after(shape: Shape, scale: Scale, net: networks.Net, memory: Array, rows: dict) -> Array:
    """V(h', c) after rows [S] under their own instruction: one extra step of the cell from the true memory
    [S, parts, H] with the new observation and the old phrase, whose memory is thrown away (D3)."""
    heads = networks.step(shape, net, jnp.moveaxis(memory, 1, 0), rows["seen"])[1]
    return networks.value(heads, rows["instructed"], scale)
