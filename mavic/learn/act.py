"""How agents choose macros. The rollout, a loaded policy and the playground all call `decide`.

`W` episodes are played side by side by `N` agents with `M` macros (padded). `params` are stacked over agents.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mavic.learn import networks
from mavic.learn.losses import mixture
from mavic.learn.networks import Net, Shape
from mavic.types import Array


class Seen(NamedTuple):
    """What a decision is made from."""

    observation: Array  # [W, N, O]
    previous: Array  # [W, N] the macro before, -1 if there was none
    phrase: Array  # [W, N] row of the phrase each agent hears, 0 for silence

    @property
    def instructed(self) -> Array:
        """Return bool [W]: whether any agent hears a phrase."""
        return (self.phrase > 0).any(-1)


def empty(shape: Shape, num_envs: int) -> Array:
    """Return the memory at the start of an episode, zeros [N, parts, W, H]."""
    return jnp.zeros((shape.agents, shape.parts, num_envs, shape.hidden))


def with_phrases(params: Any, vectors: Array) -> Net:
    """Return all agents' networks with the phrase vectors [P, D] projected. Fixed parameters need this only once."""
    return jax.vmap(networks.with_phrases, in_axes=(0, None))(params, vectors)


def decide(
    shape: Shape,
    actors: Net,
    memory: Array,
    seen: Seen,
    available: Array,
    idle: Array,
    epsilon: Array,
    draws: Array,
    greedy: Array | bool = False,
) -> tuple[Array, Array]:
    """Return the macros [W, N] and the actors' memory [N, parts, W, H] after the decision.

    Agents that are not `idle` [W, N] keep their macro and their memory. `available` [W, N, M] masks the macros.
    `epsilon` [2] is the share of uniformly random macros, without and with an instruction. `draws` [W, N] are uniform
    numbers, one per choice. `greedy` takes the most probable macro instead of a sample.
    """
    scores, memory = logits(shape, actors, memory, seen, idle)
    explore = epsilon[seen.instructed.astype(jnp.int32)]
    chosen = choose(scores.swapaxes(0, 1), available, explore[:, None], draws, jnp.asarray(greedy))
    return jnp.where(idle, chosen, seen.previous), memory


def logits(shape: Shape, net: Net, memory: Array, seen: Seen, idle: Array) -> tuple[Array, Array]:
    """Return the actors' logits [N, W, M] and their memory, which changes only for idle agents."""
    out, memory = _step(shape, net, memory, seen, idle)
    return jax.vmap(lambda heads: networks.logits(shape, heads, seen.instructed))(out), memory


def heads(shape: Shape, net: Net, memory: Array, seen: Seen, idle: Array) -> tuple[Array, Array]:
    """Return the critics' heads [N, W, CONTEXTS] and their memory, which changes only for idle agents."""
    out, memory = _step(shape, net, memory, seen, idle)
    return jax.vmap(networks.of_context, in_axes=(0, None))(out, seen.instructed), memory


def choose(logits: Array, available: Array, epsilon: Array, draws: Array, greedy: Array) -> Array:
    """Return macros [...] from logits [..., M] with one uniform number each; `greedy` takes the most probable one."""
    mixed, soft = mixture(logits, available, epsilon)
    total = jnp.cumsum(mixed * available, axis=-1)
    sampled = (total <= jnp.minimum(draws, 1 - 1e-6)[..., None] * total[..., -1:]).sum(-1)
    return jnp.where(greedy, jnp.argmax(soft, -1), sampled).astype(jnp.int32)


def own_first(phrase: Array) -> Array:
    """Return [N, W, N] from [W, N]: all agents' phrases as each agent sees them, its own first."""
    agents = phrase.shape[-1]
    order = (jnp.arange(agents)[:, None] + jnp.arange(agents)) % agents
    return jnp.moveaxis(phrase[..., order], -2, 0)


def _step(shape: Shape, net: Net, memory: Array, seen: Seen, idle: Array) -> tuple[Array, Array]:
    by_agent = {
        "observation": jnp.moveaxis(seen.observation, -2, 0),
        "previous": jnp.moveaxis(seen.previous, -1, 0),
        "phrases": own_first(seen.phrase),
    }
    after, out = jax.vmap(lambda n, c, s: networks.step(shape, n, c, s))(net, memory, by_agent)
    moves = jnp.moveaxis(idle, -1, 0)[:, None, :, None]
    return out, jnp.where(moves, after, memory)
