"""Values of macro transitions by one critic."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from mavic.learn import bptt, networks
from mavic.learn.batches import Batch
from mavic.learn.networks import Net, Network, Seen
from mavic.learn.popart import Scale
from mavic.types import Array, MacroTransitions, record, replace


@record
class Values:
    """One agent's values of its transitions, [K, L]."""

    value: Array  # V(h, c)
    v_same_instruction: Array  # V(h', c)
    v_next_instruction: Array  # V(h', c')
    memory: Array  # [K, R, L, H] the critic's memory after each row

    def of_macros(self, batch: Batch) -> Values:
        """Return the values of the batch's rows [K, L], from these values of the team's rows.

        V(h, c) is read where the macro began, and the values after it where it ended. In a batch without rows of a
        team these values already belong to the batch's rows.
        """
        if batch.team is None:
            return self
        own = batch.rows
        value = self.value.reshape(-1)[batch.begun]
        same = self.v_same_instruction.reshape(-1)[batch.ended]
        same = jnp.where(own.bootstraps_from_self, value, same)
        following = self.v_next_instruction.reshape(-1)[batch.ended]
        return replace(
            self,
            value=value,
            v_same_instruction=same,
            v_next_instruction=jnp.where(own.last, same, following),
        )


def bootstraps(rows: MacroTransitions) -> Array:
    """Return bool, the rows whose target may read V(h', c): the instruction changed, or the horizon cut the episode.

    For all other rows the next row's value is V(h', c), or the episode ended.
    """
    return (rows.switched | rows.last) & (rows.discount > 0) & ~rows.bootstraps_from_self


def agent_values(
    network: Network,
    vectors: Array,
    critic: Any,
    scale: Scale,
    rows: MacroTransitions,
    blocks: Array,
    chunks: Array,
) -> Values:
    """Return one critic's values of its transitions.

    Args:
        network: The critics' network.
        vectors: The vectors of all phrases.
        critic: One critic's parameters.
        scale: The scale of its values.
        rows: Its transitions [K, L].
        blocks: How many blocks of rows the fullest lane has, from `bptt.lengths`.
        chunks: How many chunks hold the rows that read V(h', c), from `bptt.lengths`.
    """
    net = network.project(critic, vectors)
    after = Seen.after(rows)
    value, memory = values_before(network, net, scale, rows, blocks)

    def value_after(k: Array, w: Array) -> Array:
        """Return V(h', c) of some rows [S]: one extra step from the true memory with the new observation and the old
        phrase. The memory after that step is discarded (D3)."""
        here = jax.tree.map(lambda x: x[k, w], after)
        before = jnp.moveaxis(memory[k, :, w], 1, 0)
        heads = network.step(network.shape, net, before, here)[1]
        return networks.value(heads, rows.context[k, w], scale)

    following = jnp.roll(value, -1, axis=0)
    wanted = bootstraps(rows)
    same = jnp.where(wanted, bptt.map_where(wanted, value_after, chunks), following)
    # The task ended, but the instruction replaces the task. The value continues from where the row began, so that an
    # agent gains no advantage by ending the episode.
    same = jnp.where(rows.bootstraps_from_self, value, same)
    # The next row starts where this one ended. The last row of an episode has no next row and no new instruction.
    return Values(
        value=value,
        v_same_instruction=same,
        v_next_instruction=jnp.where(rows.last, same, following),
        memory=memory,
    )


def values_before(
    network: Network, net: Net, scale: Scale, rows: MacroTransitions, blocks: Array
) -> tuple[Array, Array]:
    """Return V(h, c) [K, L] and the critic's memory after each row.

    Args:
        network: The critics' network.
        net: One critic's parameters with the phrases projected.
        scale: The scale of its values.
        rows: Its transitions [K, L].
        blocks: How many blocks of rows the fullest lane has, from `bptt.lengths`.
    """

    def segment(memory: Array, block: tuple[Seen, Array, Array]) -> tuple[Array, tuple]:
        seen, first, context = block
        memory, memories, heads = network.unroll(network.shape, net, memory, seen, first)
        return memory, (networks.value(heads, context, scale), memories)

    parts = (Seen.before(rows), rows.first, rows.context)
    return bptt.forward(segment, network.empty(rows.macro.shape[1]), parts, blocks)
