"""From parameters to decisions. Training, evaluation, loaded policies and the playground all act by `decide`.

`W` environments side by side, `N` agents, `M` macros, `P` parts of a network, `H` memory.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from mavic.learn import networks
from mavic.learn.losses import mixture
from mavic.learn.networks import Network, Scale, Seen
from mavic.types import Array, Bool, Float, Int, assert_rank, record


@record
class Observed:
    """The input of a team's decision."""

    observation: Array  # [W, N, O]
    last_macro: Array  # [W, N] the macro that ran before; -1 for none
    phrase: Array  # [W, N] what each agent hears; 0 is silence

    @property
    def instructed(self) -> Array:
        """Return bool [W], whether any agent is instructed."""
        return (self.phrase > 0).any(-1)


def empty_memory(network: Network, num_envs: int) -> Array:
    """Return the memory [N, P, W, H] of all agents at the start of an episode."""
    return jnp.zeros((network.shape.agents, *network.empty(num_envs).shape))


def project(network: Network, params: Any, vectors: Array) -> Any:
    """Return all agents' parameters with the phrases projected. Compute it once for fixed parameters and phrases."""
    return jax.vmap(network.project, in_axes=(0, None))(params, vectors)


def own_first(phrase: Int[Array, "W N"]) -> Int[Array, "N W N"]:
    """Return phrases [W, N] as each agent takes them in, its own first: [N, W, N]."""
    assert_rank("W N", phrase=phrase)
    agents = phrase.shape[-1]
    order = networks.own_first_order(agents)
    return jnp.moveaxis(phrase[..., order], -2, 0)


def decide(
    network: Network,
    actors: Any,
    memory: Float[Array, "N P W H"],
    observed: Observed,
    idle: Bool[Array, "W N"],
    available: Bool[Array, "W N M"],
    epsilon: Float[Array, " W"],
    draws: Float[Array, "W N"],
    greedy: Bool[Array, ""] | bool = False,
) -> tuple[Int[Array, "W N"], Float[Array, "N P W H"]]:
    """Return macros [W, N] and the actors' memory after the decision.

    `actors` comes from `project`. Agents that are not `idle` [W, N] keep their macro and memory. A macro is drawn from
    the mixture of the softmax and a uniform choice among `available` [W, N, M], with one uniform number each, `draws`
    [W, N]. `epsilon` [W] is the share of the uniform choice. `greedy` takes the likeliest macro instead.
    """
    assert_rank("W N O", observation=observed.observation)
    assert_rank("W N", idle=idle, draws=draws, last_macro=observed.last_macro)
    assert_rank("W N M", available=available)
    assert_rank("W", epsilon=epsilon)
    heads, memory = _step(network, actors, memory, observed, idle)
    logits = jax.vmap(lambda h: networks.logits(network.shape, h, observed.instructed))(heads)
    explore = jnp.broadcast_to(epsilon[:, None], draws.shape)
    chosen = choose(logits.swapaxes(0, 1), available, explore, draws, jnp.asarray(greedy))
    return jnp.where(idle, chosen, observed.last_macro), memory


def values(
    network: Network, critics: Any, scale: Scale, memory: Array, observed: Observed, idle: Array
) -> Array:
    """Return V(h, c) [W, N] of all agents, for the memory before the coming decision."""
    heads, _ = _step(network, critics, memory, observed, idle)
    found = jax.vmap(lambda h, s: networks.value(h, observed.instructed, s))(heads, scale)
    return found.swapaxes(0, 1)


def advance(network: Network, nets: Any, memory: Array, observed: Observed, idle: Array) -> Array:
    """Return the memory of actors or critics after the decision."""
    return _step(network, nets, memory, observed, idle)[1]


def _step(
    network: Network, nets: Any, memory: Array, observed: Observed, idle: Array
) -> tuple[Array, Array]:
    """Return heads [N, P, W, out] and the memory, which changes only for idle agents."""
    seen = Seen(
        observation=jnp.moveaxis(observed.observation, -2, 0),
        last_macro=jnp.moveaxis(observed.last_macro, -1, 0),
        phrases=own_first(observed.phrase),
    )
    step = jax.vmap(lambda net, memory, seen: network.step(network.shape, net, memory, seen))
    after, heads = step(nets, memory, seen)
    moves = jnp.moveaxis(idle, -1, 0)[:, None, :, None]
    return heads, jnp.where(moves, after, memory)


def choose(
    logits: Float[Array, "*batch M"],
    available: Bool[Array, "*batch M"],
    epsilon: Float[Array, "*batch"],
    draws: Float[Array, "*batch"],
    greedy: Bool[Array, ""],
) -> Int[Array, "*batch"]:
    """Return macros [...] from logits [..., M], with one uniform number each. `greedy` takes the likeliest macro."""
    assert_rank("batch " * (logits.ndim - 1), draws=draws)
    mixed, soft = mixture(logits, available, epsilon)
    total = jnp.cumsum(mixed * available, axis=-1)
    sampled = (total <= jnp.minimum(draws, 1 - 1e-6)[..., None] * total[..., -1:]).sum(-1)
    return jnp.where(greedy, jnp.argmax(soft, -1), sampled).astype(jnp.int32)
