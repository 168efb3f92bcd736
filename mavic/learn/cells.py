"""A network from any recurrent cell, differentiated by JAX."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mavic.learn.kind_heads import KindHeads
from mavic.learn.networks import Net, Network, Seen, Shape
from mavic.types import Array


class Cell(NamedTuple):
    """A recurrent cell; `from_cell` says what its functions take and return."""

    init: Callable[[Array, int, int], Any]
    step: Callable[[Any, Array, Array], tuple[Array, Array]]


CELLS: dict[str, Cell] = {}
"""Cells by name, for rows of `mavic.learn.networks.NETWORKS` such as {"parts": 2, "cell": "mine"}."""


def from_cell(
    shape: Shape,
    init: Callable[[Array, int, int], Any],
    cell: Callable[[Any, Array, Array], tuple[Array, Array]],
    read: Callable[[Any, Array], Array] | None = None,
) -> Network:
    """Return a network from any recurrent cell. A linear head follows the cell. It is slower than `gru.network`.

    The inputs are the observation, the last macro (if the shape has it), the projected own phrase, and for an actor
    whether a teammate is instructed, for a critic the mean projection of the teammates' phrases. A network that stands
    for the whole team gets every agent's projected phrase instead.

    Args:
        shape: The network's sizes.
        init: (key, number of inputs, hidden) → the parameters of one part, any pytree of float arrays.
        cell: (parameters, memory [..., hidden], inputs [..., I]) → the new memory and features [..., hidden].
        read: (parameters, memories [..., hidden]) → the features of many memories at once, in place of the cell's own.
    """

    def initialize(key: Array, shape: Shape, role: str) -> Any:
        projections, inputs, _ = shape.inputs(role)
        outputs = shape.outputs(role)

        def dense(key: Array, rows: int, columns: int) -> Array:
            bound = (6 / (rows + columns)) ** 0.5
            return jax.random.uniform(key, (rows, columns), minval=-bound, maxval=bound)

        def part(key: Array) -> Any:
            cell_key, head_key, *keys = jax.random.split(key, 2 + len(projections))
            return {
                "cell": init(cell_key, inputs, shape.hidden),
                "head": {"w": dense(head_key, shape.hidden, outputs), "b": jnp.zeros(outputs)},
                "project": {
                    name: dense(k, shape.embedding, shape.projected)
                    for name, k in zip(projections, keys, strict=True)
                },
            }

        made = jax.vmap(part)(jax.random.split(key, shape.parts))
        return shape.with_kind_heads(made, role)

    def project(params: Any, vectors: Array) -> Net:
        tables = jax.vmap(lambda p: jax.tree.map(lambda w: vectors @ w, p))(params["project"])
        trunk = {"cell": params["cell"], "head": params["head"]}
        return Net(trunk, tables, KindHeads.of(params, vectors))

    def recur(shape: Shape, net: Net, memory: Array, seen: Seen) -> tuple[Array, Array]:
        def part(trunk: Any, table: Any, hears: Array, memory: Array) -> tuple[Array, Array]:
            return cell(trunk["cell"], memory, _inputs(shape, table, hears, seen))

        return jax.vmap(part)(net.trunk, net.table, shape.hears, memory)

    def heads_of(net: Net, memory: Array, features: Array, seen: Seen) -> Array:
        def part(trunk: Any, memory: Array, features: Array) -> tuple[Array, Array]:
            features = read(trunk["cell"], memory) if read else features
            bias = jax.lax.broadcast_to_rank(trunk["head"]["b"], features.ndim)
            return features @ trunk["head"]["w"] + bias, features

        return net.with_kinds(seen, *jax.vmap(part)(net.trunk, memory, features))

    def step(shape: Shape, net: Net, memory: Array, seen: Seen) -> tuple[Array, Array]:
        memory, features = recur(shape, net, memory, seen)
        return memory, heads_of(net, memory, features, seen)

    def unroll(
        shape: Shape, net: Net, memory: Array, seen: Seen, first: Array, known: Any = None
    ) -> tuple[Array, Array, Array]:
        def row(memory: Array, row: tuple[Seen, Array]) -> tuple[Array, tuple[Array, Array]]:
            seen, begins = row
            memory = jnp.where(begins[None, :, None], 0.0, memory)
            memory, features = recur(shape, net, memory, seen)
            return memory, (memory, features)

        memory, (memories, features) = jax.lax.scan(row, memory, (seen, first))
        of_part = jnp.moveaxis(memories, 1, 0), jnp.moveaxis(features, 1, 0)
        return memory, memories, heads_of(net, *of_part, seen)

    return Network(shape, initialize, project, step, unroll)


def _inputs(shape: Shape, table: dict[str, Array], hears: Array, seen: Seen) -> Array:
    """Return the concatenated inputs of one part. A part that does not hear gets silence."""

    def said(name: str, whose: Callable[[Array], Array]) -> Array:
        return functools.reduce(jnp.add, (table[name][whose(phrases)] for phrases in seen.heard))

    parts = [seen.observation]
    if shape.last_macro:
        parts.append(jax.nn.one_hot(seen.last_macro, shape.macros))
    if "each" in table:
        each = hears * said("each", lambda phrases: phrases)
        return jnp.concatenate([*parts, each.reshape(*each.shape[:-2], -1)], axis=-1)
    parts.append(hears * said("own", lambda phrases: phrases[..., 0]))
    if "team" in table:
        mates = said("team", lambda phrases: phrases[..., 1:])
        parts.append(hears * mates.sum(-2) / max(1, shape.agents - 1))
    else:
        parts.append(hears * seen.teammate_instructed)
    return jnp.concatenate(parts, axis=-1)
