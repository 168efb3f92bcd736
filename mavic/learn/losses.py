"""Losses of one agent over a block of macro transitions [B, L]."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from mavic.learn import networks
from mavic.learn.networks import Network, Seen
from mavic.learn.popart import Scale
from mavic.learn.views import joint_available
from mavic.types import Array, Bool, Float, assert_rank, record

LEAST_LOG_ALLOWED = -50.0  # where no macro is allowed; it has no gradient


@record
class CriticRows:
    """The input of the critic's loss, [B, L, ...]."""

    seen: Seen
    first: Array  # memory is emptied before the row
    context: Array  # of the joint instruction
    target: Array
    hysteresis: Array  # weight of an error that calls for a lower value
    weight: Array  # of the row; sums to one over the batch


@record
class ActorRows:
    """The input of the actor's loss, [B, L, ...]."""

    seen: Seen
    first: Array
    instructed: Array
    available: Array  # [B, L, M]
    macro: Array  # the macro taken
    epsilon: Array  # exploration when it was taken
    entropy: Array  # weight of the entropy bonus
    advantage: Array
    weight: Array
    forbidden: Array  # [B, L, M] what the instruction forbids, available or not
    allowed_weight: Array | None = None  # of the loss on the allowed probability; None: none


@record
class ClippedRows:
    """The input of the actor's clipped loss, [B, L, ...]."""

    rows: ActorRows
    log_prob: Array  # of the macro taken, before the first step on this batch
    clip: Array  # how far the ratio of probabilities may move from 1


@record
class ActorOutputs:
    """The outputs of the actor's loss besides its value, [B, L]."""

    log_prob: Array  # of the macro taken, under the behaviour policy
    entropy: Array  # of the softmax


def mixture(
    logits: Float[Array, "*batch M"],
    available: Bool[Array, "*batch M"],
    epsilon: Float[Array, "*batch"],
) -> tuple[Float[Array, "*batch M"], Float[Array, "*batch M"]]:
    """Return the behaviour policy (1-ε)·softmax + ε/|available| and the log-softmax, over the last axis.

    Args:
        logits: Those of the softmax.
        available: Which macros may be chosen. The others have probability 0.
        epsilon: The share of the uniform choice.
    """
    assert_rank("batch " * (logits.ndim - 1) + "M", logits=logits, available=available)
    assert_rank("batch " * (logits.ndim - 1), epsilon=epsilon)
    log_soft = jax.nn.log_softmax(jnp.where(available, logits, -1e9))
    uniform = available / available.sum(-1, keepdims=True)
    return (1 - epsilon[..., None]) * jnp.exp(log_soft) + epsilon[..., None] * uniform, log_soft


def actor_loss(
    network: Network, net: object, memory: Array, rows: ActorRows, known: Array | None
) -> tuple[Array, Array, ActorOutputs]:
    """Return the memory after the block, the policy-gradient loss minus the entropy bonus, and outputs.

    The gradient goes through the ε-mixture. With `allowed_weight`, the loss also holds minus the log-probability of
    all allowed macros together.

    Args:
        network: The actors' network.
        net: One actor's parameters with the phrases projected.
        memory: Before the block.
        rows: The block.
        known: The memory after each row if an earlier pass found it.
    """
    memory, acted, allowed = _decisions(network, net, memory, rows, known)
    gain = rows.advantage * acted.log_prob
    loss = -(rows.weight * (gain + rows.entropy * acted.entropy)).sum() - allowed
    return memory, loss, acted


def clipped_actor_loss(
    network: Network, net: object, memory: Array, block: ClippedRows, known: Array | None
) -> tuple[Array, Array, ActorOutputs]:
    """Return the same as `actor_loss` with PPO's clipped loss.

    The loss takes the smaller of two products: the advantage times the ratio of probabilities, and the advantage times
    that ratio clipped to 1 ± `clip`.
    """
    rows = block.rows
    memory, acted, allowed = _decisions(network, net, memory, rows, known)
    ratio = jnp.exp(acted.log_prob - block.log_prob)
    kept = jnp.clip(ratio, 1 - block.clip, 1 + block.clip)
    gain = jnp.minimum(ratio * rows.advantage, kept * rows.advantage)
    loss = -(rows.weight * (gain + rows.entropy * acted.entropy)).sum() - allowed
    return memory, loss, acted


def _decisions(
    network: Network, net: object, memory: Array, rows: ActorRows, known: Array | None
) -> tuple[Array, ActorOutputs, Array | float]:
    """Return the memory after the block, the outputs, and the weighted log-probability of all allowed macros."""
    memory, _, heads = network.unroll(network.shape, net, memory, rows.seen, rows.first, known)
    logits = network.shape.logits(heads, rows.instructed)
    available, forbidden = rows.available, rows.forbidden
    if network.shape.joint:  # a combination is available if each of its macros is
        counts, size = network.shape.macro_counts, (*available.shape[:-1], network.shape.agents, -1)
        each, other = (x.reshape(size) for x in (available, ~forbidden))
        available, forbidden = joint_available(counts, each), ~joint_available(counts, other)
    mixed, soft = mixture(logits, available, rows.epsilon)
    log_mixed = jnp.log(jnp.maximum(mixed, 1e-20))
    taken = jnp.take_along_axis(log_mixed, rows.macro[..., None], axis=-1)[..., 0]
    entropy = -(jnp.exp(soft) * jnp.where(available, soft, 0.0)).sum(-1)
    allowed: Array | float = 0.0
    if rows.allowed_weight is not None:
        allowed = (rows.allowed_weight * _log_allowed(logits, available, forbidden)).sum()
    return memory, ActorOutputs(log_prob=taken, entropy=entropy), allowed


def _log_allowed(
    logits: Float[Array, "*batch M"],
    available: Bool[Array, "*batch M"],
    forbidden: Bool[Array, "*batch M"],
) -> Float[Array, "*batch"]:
    """Return the log-probability, under the softmax, that the choice is allowed; at least LEAST_LOG_ALLOWED.

    Forbidden macros that an enforced prohibition masked stay in the normaliser, so their logits still fall.
    """
    every = jax.nn.logsumexp(jnp.where(available | forbidden, logits, -1e9), axis=-1)
    allowed = jax.nn.logsumexp(jnp.where(available & ~forbidden, logits, -1e9), axis=-1)
    return jnp.maximum(allowed - every, LEAST_LOG_ALLOWED)


def critic_loss(
    network: Network,
    scale: Scale,
    net: object,
    memory: Array,
    rows: CriticRows,
    known: Array | None,
) -> tuple[Array, Array, Array]:
    """Return the memory after the block, the loss, and the values [B, L].

    The loss is the weighted squared error, in units of the spread of the value head.

    Args:
        network: The critics' network.
        scale: The scale of the critic's values.
        net: The critic's parameters with the phrases projected.
        memory: Before the block.
        rows: The block.
        known: The memory after each row if an earlier pass found it.
    """
    memory, _, heads = network.unroll(network.shape, net, memory, rows.seen, rows.first, known)
    values = networks.value(heads, rows.context, scale)
    spread = scale.spread()[networks.value_head(rows.context)]
    error = (rows.target - values) / spread
    error_weight = jnp.where(error < 0, rows.hysteresis, 1.0)
    loss = (rows.weight * error_weight * error**2).sum()
    return memory, loss, values
