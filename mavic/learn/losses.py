"""Losses of one agent over a block of macro transitions [B, W]."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from mavic.learn import networks
from mavic.learn.networks import Network, Scale, Seen
from mavic.types import Array, Bool, Float, assert_rank, record

LEAST_LOG_ALLOWED = -50.0  # where nothing is allowed; it has no gradient


@record
class CriticRows:
    """The input of the critic's loss, [B, W, ...]."""

    seen: Seen
    first: Array  # memory is emptied before the row
    instructed: Array  # some agent is instructed
    target: Array
    hysteresis: Array  # weight of an error that calls for a lower value
    weight: Array  # of the row; sums to one over the batch


@record
class ActorRows:
    """The input of the actor's loss, [B, W, ...]."""

    seen: Seen
    first: Array
    instructed: Array
    available: Array  # [B, W, M]
    macro: Array  # the macro taken
    epsilon: Array  # exploration when it was taken
    entropy: Array  # weight of the entropy bonus
    advantage: Array
    weight: Array
    forbidden: Array  # [B, W, M] what the instruction forbids, available or not
    allowed_weight: Array | None = (
        None  # of the loss on the allowed probability; None: there is no such loss
    )


@record
class ActorOutputs:
    """What the actor's loss returns besides its value, [B, W]."""

    log_prob: Array  # of the macro taken, under the behaviour policy
    entropy: Array  # of the softmax


def mixture(
    logits: Float[Array, "*batch M"],
    available: Bool[Array, "*batch M"],
    epsilon: Float[Array, "*batch"],
) -> tuple[Float[Array, "*batch M"], Float[Array, "*batch M"]]:
    """Return the behaviour policy (1-ε)·softmax + ε/|available| and the log-softmax, over the last axis."""
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
    """
    memory, _, heads = network.unroll(network.shape, net, memory, rows.seen, rows.first, known)
    logits = networks.logits(network.shape, heads, rows.instructed)
    mixed, soft = mixture(logits, rows.available, rows.epsilon)
    log_mixed = jnp.log(jnp.maximum(mixed, 1e-20))
    taken = jnp.take_along_axis(log_mixed, rows.macro[..., None], axis=-1)[..., 0]
    entropy = -(jnp.exp(soft) * jnp.where(rows.available, soft, 0.0)).sum(-1)
    loss = -(rows.weight * (rows.advantage * taken + rows.entropy * entropy)).sum()
    if rows.allowed_weight is not None:
        found = log_allowed(logits, rows.available, rows.forbidden)
        loss = loss - (rows.allowed_weight * found).sum()
    return memory, loss, ActorOutputs(log_prob=taken, entropy=entropy)


def log_allowed(
    logits: Float[Array, "*batch M"],
    available: Bool[Array, "*batch M"],
    forbidden: Bool[Array, "*batch M"],
) -> Float[Array, "*batch"]:
    """Return the log-probability, under the softmax, that the choice is allowed; at least LEAST_LOG_ALLOWED.

    A forbidden macro counts even where a drill took it away: it is to be given up, not only missed.
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
    """Return the memory after the block, the squared error in units of each context's scale, and the values [B, W]."""
    memory, _, heads = network.unroll(network.shape, net, memory, rows.seen, rows.first, known)
    values = networks.value(heads, rows.instructed, scale)
    spread = scale.spread()[rows.instructed.astype(jnp.int32)]
    error = (rows.target - values) / spread
    error_weight = jnp.where(error < 0, rows.hysteresis, 1.0)
    loss = (rows.weight * error_weight * error**2).sum()
    return memory, loss, values
