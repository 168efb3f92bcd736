"""From parameters to decisions. Training, evaluation, loaded policies and the playground all act by `decide`.

`W` environments side by side, `N` agents, `M` macros, `G` networks (one per agent, or one for the team), `R` parts of
a network, `H` memory. A network's view (`mavic.learn.views`) selects its input.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from mavic.learn import networks
from mavic.learn.losses import mixture
from mavic.learn.networks import Network
from mavic.learn.popart import Scale
from mavic.learn.views import VIEWS, Observed, joint_available, split_macro
from mavic.types import Array, Bool, Float, Int, assert_rank, replace


def empty_memory(network: Network, num_envs: int, second: bool = False) -> Array:
    """Return the memory of all networks at the start of an episode.

    Args:
        network: The actors' or the critics' network.
        num_envs: The number of environments `W`.
        second: Whether there is room for a second instruction.

    Returns:
        [G, R, W, H]. With room for a second instruction [3, G, R, W, H]: one memory while agents hear the first
        instruction alone, one while they hear the second alone, and one while they hear silence.
    """
    one = jnp.zeros((network.shape.count, *network.empty(num_envs).shape))
    return jnp.stack([one] * 3) if second else one


def project(network: Network, params: Any, vectors: Array) -> Any:
    """Return all parameters with the phrases projected. Call it once for fixed parameters and phrases.

    Args:
        network: The actors' or the critics' network.
        params: The parameters of all `G` networks.
        vectors: The vectors of all phrases.
    """
    return jax.vmap(network.project, in_axes=(0, None))(params, vectors)


def decide(
    network: Network,
    actors: Any,
    memory: Float[Array, "*heard G R W H"],
    observed: Observed,
    idle: Bool[Array, "W N"],
    available: Bool[Array, "W N M"],
    epsilon: Float[Array, "W E"],
    draws: Float[Array, "W N"],
    greedy: Bool[Array, ""] | bool = False,
) -> tuple[Int[Array, "W N"], Float[Array, "*heard G R W H"]]:
    """Return macros [W, N] and the actors' memory after the decision.

    A macro is drawn from the mixture of the softmax and a uniform choice among the available macros. One actor for the
    whole team chooses a macro for every agent, conditional on the macros that still run.

    Args:
        network: The actors' network.
        actors: The actors' parameters, from `project`.
        memory: The actors' memory before the decision. If `observed.also` is given, it has room for a second
            instruction (`empty_memory`).
        observed: The input of the decision.
        idle: Which agents decide. The others keep their macro and memory.
        available: Which macros each agent may choose.
        epsilon: The share of the uniform choice, of each agent or (`E` is 1) of all.
        draws: One uniform number for each agent.
        greedy: Whether to take the likeliest macro instead of a random one.
    """
    assert_rank("W N O", observation=observed.observation)
    assert_rank("W N", idle=idle, draws=draws, last_macro=observed.last_macro)
    assert_rank("W N M", available=available)
    assert_rank("W E", epsilon=epsilon)
    logits, memory = _policy_logits(network, actors, memory, observed, idle, available)
    if network.shape.joint:
        args = (network.shape.macro_counts, observed.last_macro, idle)
        return _choose_jointly(
            *args, logits[0], available, epsilon[:, 0], draws[:, 0], greedy
        ), memory
    explore = jnp.broadcast_to(epsilon, draws.shape)
    chosen = _choose(logits.swapaxes(0, 1), available, explore, draws, jnp.asarray(greedy))
    return jnp.where(idle, chosen, observed.last_macro), memory


def _policy_logits(
    network: Network,
    actors: Any,
    memory: Array,
    observed: Observed,
    idle: Array,
    available: Array,
) -> tuple[Array, Array]:
    """Return the logits [G, W, M] of all actors, and the memory after the decision.

    With room for a second instruction, an actor runs three times over the true history: it hears the first alone, the
    second alone, and silence. An actor that both address keeps both (`_both_kept`). An actor that one of them
    addresses follows that one. An uninstructed actor runs under the first instruction if that addresses a teammate,
    else under the second.
    """
    shape = network.shape

    def heard(phrase: Array, memory: Array) -> tuple[Array, Array]:
        alone = replace(observed, phrase=phrase, also=None)
        heads, memory = _step(network, actors, memory, alone, idle)
        return jax.vmap(lambda h: shape.logits(h, alone.instructed))(heads), memory

    if observed.also is None:
        return heard(observed.phrase, memory)
    phrases = observed.phrase, observed.also, jnp.zeros_like(observed.phrase)
    # one after another: as one batch, the last digits would differ from those of a single instruction
    ran = [heard(phrase, memory[i]) for i, phrase in enumerate(phrases)]
    (one, other, silent), after = zip(*ran, strict=True)
    told, also = (_told(shape, phrase) for phrase in phrases[:2])
    second = ~told & (also | ~(observed.phrase > 0).any(-1)[None])
    both = _both_kept(one, other, silent, _choices(shape, observed, idle, available))
    logits = jnp.where(second[..., None], other, one)
    return jnp.where((told & also)[..., None], both, logits), jnp.stack(after)


def _both_kept(
    one: Float[Array, "*batch M"],
    other: Float[Array, "*batch M"],
    silent: Float[Array, "*batch M"],
    choices: Bool[Array, "*batch M"],
) -> Float[Array, "*batch M"]:
    """Return the logits [..., M] under two instructions, from those under each alone and under neither.

    Each macro has the log-probability, among `choices`, that is farther from the one under neither. So a macro that
    one instruction makes unlikely stays unlikely, and one that it makes likely stays likely, unless the other
    instruction moves the same macro farther the other way. A change that both make is made once.
    """
    first, second, neither = (
        jax.nn.log_softmax(jnp.where(choices, logits, -1e9)) for logits in (one, other, silent)
    )
    return jnp.where(jnp.abs(first - neither) >= jnp.abs(second - neither), first, second)


def _told(shape: networks.Shape, phrase: Array) -> Array:
    """Return bool [G, W], whether an instruction addresses each network's agent, or any agent of a team's network."""
    said = phrase > 0
    return said.any(-1)[None] if shape.hears_each else said.swapaxes(0, 1)


def _choices(shape: networks.Shape, observed: Observed, idle: Array, available: Array) -> Array:
    """Return bool [G, W, M], the macros that each network can choose now."""
    if not shape.joint:
        return available.swapaxes(0, 1)
    counts = shape.macro_counts
    return (joint_available(counts, available) & _goes_on(counts, observed.last_macro, idle))[None]


def _goes_on(counts: tuple[int, ...], running: Array, idle: Array) -> Array:
    """Return bool [W, A], the combinations of macros in which busy agents keep the `running` ones."""
    macros = split_macro(counts, jnp.arange(math.prod(counts)))
    return (idle[:, None] | (macros[None] == running[:, None])).all(-1)


def values(
    network: Network,
    critics: Any,
    scale: Scale,
    memory: Array,
    observed: Observed,
    context: Array,
    idle: Array,
) -> Array:
    """Return V(h, c) [W, G] by all critics.

    Args:
        network: The critics' network.
        critics: The critics' parameters, from `project`.
        scale: The scales of their values.
        memory: Their memory before the coming decision.
        observed: The input of that decision.
        context: [W, N] of each agent. One critic of the whole team has the largest.
        idle: bool [W, N], which agents decide.
    """
    heads, _ = _step(network, critics, memory, observed, idle)
    own = context if len(heads) == context.shape[-1] else context.max(-1, keepdims=True)
    found = jax.vmap(networks.value)(heads, own.swapaxes(0, 1), scale)
    return found.swapaxes(0, 1)


def advance(network: Network, nets: Any, memory: Array, observed: Observed, idle: Array) -> Array:
    """Return the memory of actors or critics after the decision.

    Args:
        network: The actors' or the critics' network.
        nets: Their parameters, from `project`.
        memory: Their memory before the decision.
        observed: The input of the decision.
        idle: bool [W, N], which agents decide.
    """
    return _step(network, nets, memory, observed, idle)[1]


def _step(
    network: Network, nets: Any, memory: Array, observed: Observed, idle: Array
) -> tuple[Array, Array]:
    """Return heads [G, R, W, out] and the memory, which changes only where a network decides."""
    seen, moves = VIEWS[network.shape.view].seen(network.shape, observed, idle)
    if moves.shape[0] != network.shape.count:
        # Each agent has a network of its own that sees the whole team.
        seen, moves = jax.tree.map(
            lambda x: jnp.repeat(x, network.shape.count, axis=0), (seen, moves)
        )
    step = jax.vmap(lambda net, memory, seen: network.step(network.shape, net, memory, seen))
    after, heads = step(nets, memory, seen)
    return heads, jnp.where(moves[:, None, :, None], after, memory)


def _choose(
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


def _choose_jointly(
    counts: tuple[int, ...],
    running: Int[Array, "W N"],
    idle: Bool[Array, "W N"],
    logits: Float[Array, "W A"],
    available: Bool[Array, "W N M"],
    epsilon: Float[Array, " W"],
    draws: Float[Array, " W"],
    greedy: Bool[Array, ""] | bool,
) -> Int[Array, "W N"]:
    """Return every agent's macro [W, N] from the logits [W, A] of all combinations, with one uniform number each.

    The behaviour policy of all combinations is restricted to those in which busy agents keep their `running` macros.
    """
    allowed = joint_available(counts, available)
    mixed, soft = mixture(logits, allowed, epsilon)
    fits = _goes_on(counts, running, idle)
    likeliest = jnp.argmax(jnp.where(fits, soft, -jnp.inf), -1)
    # The restricted policy may underflow to 0 everywhere; then all that fits is equally likely.
    floor = jnp.where(allowed, 1e-12, 1e-30)
    total = jnp.cumsum(jnp.where(fits, mixed + floor, 0.0), axis=-1)
    sampled = (total <= jnp.minimum(draws, 1 - 1e-6)[:, None] * total[:, -1:]).sum(-1)
    chosen = split_macro(counts, jnp.where(greedy, likeliest, sampled).astype(jnp.int32))
    return jnp.where(idle, chosen, running)
