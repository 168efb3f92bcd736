"""Values of macro transitions by one critic, and the targets made of them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from mavic.learn import bptt, networks
from mavic.learn.networks import Network, Scale, Seen
from mavic.learn.returns import Correction, targets
from mavic.types import Array, MacroTransitions, record, replace


@record
class Loop:
    """The lengths of the loops over one batch."""

    blocks: Array  # [] blocks of rows that cover the fullest lane
    chunks: Array  # [] chunks that cover the rows whose target reads V(h', c)


@record
class Values:
    """One agent's values of its transitions, [K, L]."""

    value: Array  # V(h, c)
    v_same_instruction: Array  # V(h', c)
    v_next_instruction: Array  # V(h', c')
    memory: Array  # [K, R, L, H] the critic's memory after each row


@record
class Spans:
    """One agent's macros [K, L] among the rows of a critic that sees the whole team (`mavic.learn.batches`)."""

    rows: MacroTransitions
    begun: Array  # the critic's row in which the macro began, among all of them
    ended: Array  # the one in which it ended


def seen_before(rows: MacroTransitions) -> Seen:
    """Return the input of the networks when the row's macro is chosen."""
    return Seen(observation=rows.observation, last_macro=rows.last_macro, phrases=rows.phrases)


def seen_after(rows: MacroTransitions) -> Seen:
    """Return the input of the networks after the macro, if the instruction were still the row's own."""
    return Seen(observation=rows.next_observation, last_macro=rows.macro, phrases=rows.phrases)


def bootstraps(rows: MacroTransitions) -> Array:
    """Return bool, the rows whose target may read V(h', c): the instruction changed, or the horizon cut the episode.

    For all other rows the next row's value is V(h', c), or nothing follows.
    """
    return (rows.switched | rows.last) & (rows.discount > 0) & ~rows.bootstraps_from_self


def agent_values(
    network: Network,
    vectors: Array,
    critic: Any,
    scale: Scale,
    rows: MacroTransitions,
    loop: Loop,
) -> Values:
    """Return one critic's values of its transitions [K, L]."""
    net = network.project(critic, vectors)
    instructed, after = rows.kind > 0, seen_after(rows)
    value, memory = values_before(network, net, scale, rows, loop)

    def value_after(k: Array, w: Array) -> Array:
        """Return V(h', c) of some rows [S]: one extra step from the true memory with the new observation and the old
        phrase. The memory after that step is discarded (D3)."""
        here = jax.tree.map(lambda x: x[k, w], after)
        before = jnp.moveaxis(memory[k, :, w], 1, 0)
        heads = network.step(network.shape, net, before, here)[1]
        return networks.value(heads, instructed[k, w], scale)

    following = jnp.roll(value, -1, axis=0)
    wanted = bootstraps(rows)
    same = jnp.where(wanted, bptt.map_where(wanted, value_after, loop.chunks), following)
    # The task ended, but the instruction replaces the task. It continues from where the row began, so that ending the
    # episode neither escapes the instruction nor earns a prize.
    same = jnp.where(rows.bootstraps_from_self, value, same)
    # The next row starts where this one ended. The last row of an episode has no next row and no new instruction.
    return Values(
        value=value,
        v_same_instruction=same,
        v_next_instruction=jnp.where(rows.last, same, following),
        memory=memory,
    )


def values_before(
    network: Network, net: Any, scale: Scale, rows: MacroTransitions, loop: Loop
) -> tuple[Array, Array]:
    """Return V(h, c) [K, L] and the critic's memory after each row."""

    def segment(memory: Array, block: tuple[Seen, Array, Array]) -> tuple[Array, tuple]:
        seen, first, instructed = block
        memory, memories, heads = network.unroll(network.shape, net, memory, seen, first)
        return memory, (networks.value(heads, instructed, scale), memories)

    blocks = (seen_before(rows), rows.first, rows.kind > 0)
    return bptt.forward(segment, network.empty(rows.macro.shape[1]), blocks, loop.blocks)


def spanned(found: Values, spans: Spans) -> Values:
    """Return the values of an agent's own macros [K, L], from those of the team's rows that they span.

    V(h, c) is read where the macro began, and the values after it where it ended.
    """
    own = spans.rows
    value = read(found.value, spans.begun)
    same = jnp.where(own.bootstraps_from_self, value, read(found.v_same_instruction, spans.ended))
    following = read(found.v_next_instruction, spans.ended)
    return replace(
        found,
        value=value,
        v_same_instruction=same,
        v_next_instruction=jnp.where(own.last, same, following),
    )


def read(values: Array, index: Array) -> Array:
    """Return values [J, L'] at an index among all of them."""
    return values.reshape(-1)[index]


def targets_of(
    n_steps: float,
    td_lambda: Array | float,
    correction: Correction,
    rows: MacroTransitions,
    found: Values,
) -> Array:
    """Return the targets [K, L] of transitions from their values."""
    return targets(
        reward=rows.reward,
        discount=rows.discount,
        v_same_instruction=found.v_same_instruction,
        v_next_instruction=found.v_next_instruction,
        switched=rows.switched,
        last=rows.last,
        correction=correction,
        n_steps=n_steps,
        td_lambda=td_lambda,
    )
