"""From parameters to decisions: what training, evaluation and a loaded policy all call."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mavic.learn import networks
from mavic.learn.losses import mixture
from mavic.learn.networks import Net, Shape
from mavic.types import Array


def empty(shape: Shape, lanes: int) -> Array:
    """No memory: [N, parts, W, H]."""
    return jnp.zeros((shape.agents, shape.parts, lanes, shape.hidden))


def with_phrases(params: Any, vectors: Array) -> Net:
    """All agents' networks and the phrases as each sees them; computed once for fixed parameters."""
    return jax.vmap(networks.with_phrases, in_axes=(0, None))(params, vectors)


def own_first(phrase: Array) -> Array:
    """[W, N] → [N, W, N]: everybody's phrases as each agent sees them, its own first."""
    agents = phrase.shape[-1]
    order = (jnp.arange(agents)[:, None] + jnp.arange(agents)) % agents
    return jnp.moveaxis(phrase[..., order], -2, 0)


class Seen(NamedTuple):
    """What a decision is made from."""

    observation: Array  # [W, N, O]
    previous: Array  # [W, N] the macro before
    phrase: Array  # [W, N]

    @property
    def instructed(self) -> Array:
        """[W] whether anybody is."""
        return (self.phrase > 0).any(-1)


def logits(shape: Shape, net: Net, memory: Array, seen: Seen, idle: Array) -> tuple[Array, Array]:
    """One decision of all actors in all lanes: what they choose by [N, W, M], and their memory, which only moves for
    agents that are idle."""
    out, memory = _step(shape, net, memory, seen, idle)
    return jax.vmap(lambda heads: networks.logits(shape, heads, seen.instructed))(out), memory


def heads(shape: Shape, net: Net, memory: Array, seen: Seen, idle: Array) -> tuple[Array, Array]:
    """The same of all critics: heads of the speaking part [N, W, CONTEXTS]."""
    out, memory = _step(shape, net, memory, seen, idle)
    return jax.vmap(networks.of_context, in_axes=(0, None))(out, seen.instructed), memory


def _step(shape: Shape, net: Net, memory: Array, seen: Seen, idle: Array) -> tuple[Array, Array]:
    by_agent = {
        "observation": jnp.moveaxis(seen.observation, -2, 0),
        "previous": jnp.moveaxis(seen.previous, -1, 0),
        "phrases": own_first(seen.phrase),
    }
    after, out = jax.vmap(lambda n, c, s: networks.step(shape, n, c, s))(net, memory, by_agent)
    moves = jnp.moveaxis(idle, -1, 0)[:, None, :, None]
    return out, jnp.where(moves, after, memory)


def choose(logits: Array, available: Array, epsilon: Array, draws: Array, greedy: Array) -> Array:
    """Macros from logits [..., M] with one uniform number each; `greedy` takes the likeliest."""
    mixed, soft = mixture(logits, available, epsilon)
    total = jnp.cumsum(mixed * available, axis=-1)
    sampled = (total <= jnp.minimum(draws, 1 - 1e-6)[..., None] * total[..., -1:]).sum(-1)
    return jnp.where(greedy, jnp.argmax(soft, -1), sampled).astype(jnp.int32)
