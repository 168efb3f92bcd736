"""The interface of a network: `init`, `step` and `unroll` for one agent's actor or critic, and how its heads are read.

Everything here is for one agent; agents are a stacked leading axis that callers `vmap` over. A network has one or two
parts, each with its own weights and memory. `shared` (the paper's) has one. `protected` has two: part 0 computes all
uninstructed decisions and values and never sees a phrase, and part 1 computes all others. Both parts follow the true
history. `residual` is `protected`, and the instructed actor adds to the logits of the uninstructed one.

The implementation that training uses is `mavic.learn.gru`. `from_cell` makes a network from any recurrent cell.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mavic.hints import look_up
from mavic.types import Array, record, static

NETWORKS: dict[str, dict[str, Any]] = {  # by name, the fields of `Shape` that differ
    "shared": {"parts": 1},
    "protected": {"parts": 2},
    "residual": {"parts": 2, "residual": True},
}
VALUE_HEADS = 2  # of a critic: uninstructed, instructed
OWN_ONLY = ("own",)  # the projections of an agent's actor: of its own phrase alone


class Cell(NamedTuple):
    """A recurrent cell of one's own; `from_cell` says what its functions take and return."""

    init: Callable[[Array, int, int], Any]
    step: Callable[[Any, Array, Array], tuple[Array, Array]]


CELLS: dict[str, Cell] = {}
"""Cells by name, for rows of `NETWORKS` such as {"parts": 2, "cell": "mine"}."""


@record
class Shape:
    """Sizes of a network."""

    observation: int = static()
    macros: int = static()
    agents: int = static()
    embedding: int = static()
    hidden: int = static(default=32)
    projected: int = static(default=32)
    parts: int = static(default=2)
    last_macro: bool = static(default=False)
    residual: bool = static(default=False)
    kind_heads: bool = static(default=False)  # the part that hears has an output layer by kind
    view: str = static(default="own")  # a row of `mavic.learn.views.VIEWS`
    macro_counts: tuple[int, ...] = static(default=())  # each agent's number of macros
    copies: int | None = static(default=None)  # how many networks there are; None: one per agent
    tells_macro: bool = static(default=False)  # the observation holds each agent's last macro
    hears_each: bool = static(default=False)  # every agent's phrase has inputs of its own
    layer_norm: bool = static(default=False)  # before the actor's head
    memory: int | None = static(default=None)  # numbers that a network remembers; None: `hidden`
    cell: str = static(default="")  # a row of `CELLS`; empty: the GRU of `mavic.learn.gru`

    @property
    def count(self) -> int:
        """Return how many networks of this shape a team has."""
        return self.agents if self.copies is None else self.copies

    @property
    def joint(self) -> bool:
        """Return whether one network stands for the whole team."""
        return self.hears_each and self.copies == 1


@record
class Seen:
    """The input of a network at a decision; `...` is any batch."""

    observation: Array  # [..., O]
    last_macro: Array  # [...] the macro that ran before; -1 for none
    phrases: Array  # [..., N] of all agents, the agent's own first; 0 is silence
    also: Array | None = None  # [..., N] of a second instruction, for critics: they hear the sum

    @property
    def heard(self) -> tuple[Array, ...]:
        """The phrases of each instruction that may hold."""
        return (self.phrases,) if self.also is None else (self.phrases, self.also)


@dataclass(frozen=True)
class Network:
    """An actor and a critic for agents of one shape. All functions are pure.

    `R` parts, `B` rows in order, `L` lanes, `H` memory, `out` is M for an actor and VALUE_HEADS for a critic.
    """

    shape: Shape
    init_actor: Callable[[Array, Shape], Any]
    """Key → one agent's parameters [R, ...]: a dictionary whose entry "head" is the linear output layer {"w", "b"}. A
    shape with `kind_heads` has them beside it, from `init_kind_heads`."""
    init_critic: Callable[[Array, Shape], Any]
    project: Callable[[Any, Array], Any]
    """Parameters and the vectors of all phrases → what `step` and `unroll` take; done once for many decisions."""
    step: Callable[[Shape, Any, Array, Seen], tuple[Array, Array]]
    """One decision: memory [R, ..., H] → new memory and heads [R, ..., out]."""
    unroll: Callable[..., tuple[Array, Array, Array]]
    """(shape, net, memory [R, L, H], seen [B, L], first [B, L], known) → memory after the block, after each row
    [B, R, L, H], and heads [R, B, L, out]. Memory is emptied before `first` rows. `known` is the memory after each
    row if an earlier pass found it; a network may ignore it."""

    def empty(self, *batch: int) -> Array:
        """Return the memory [R, *batch, H] at the start of an episode."""
        return jnp.zeros((self.shape.parts, *batch, self.shape.memory or self.shape.hidden))


def from_cell(
    shape: Shape,
    init: Callable[[Array, int, int], Any],
    cell: Callable[[Any, Array, Array], tuple[Array, Array]],
    read: Callable[[Any, Array], Array] | None = None,
) -> Network:
    """Return a network from any recurrent cell, differentiated by JAX. It is slower than `gru.network`.

    `init(key, inputs, hidden)` returns the parameters of one part as any pytree of float arrays. `cell(params, memory,
    inputs)` takes memory [..., hidden] and inputs [..., I] and returns the new memory and features [..., hidden]. A
    linear head follows. Inputs are the observation, the last macro (if the shape has it), the projected own phrase,
    and for an actor whether a teammate is instructed, for a critic the mean projection of the teammates' phrases. A
    network that stands for the whole team gets every agent's projected phrase instead. `read(params, memory)` returns
    the features of many memories at once; without it the cell's own features are taken.
    """
    return Network(shape, *_cell_functions(init, cell, read))


@functools.lru_cache
def of_own_cell(shape: Shape) -> Network:
    """Return the network of the cell that a shape names. Equal shapes have the same network."""
    return from_cell(shape, *look_up(CELLS, shape.cell, "cell"))


def projections_of(shape: Shape, role: str) -> tuple[tuple[str, ...], int]:
    """Return the names of a network's projections of phrases, and the size of its inputs that tell what is heard."""
    if shape.hears_each:
        return ("each",), shape.agents * shape.projected
    if role == "actor":
        return OWN_ONLY, shape.projected + 1
    return ("own", "team"), 2 * shape.projected


def _cell_functions(init: Callable, cell: Callable, read: Callable | None) -> tuple[Callable, ...]:
    def initialize(key: Array, shape: Shape, role: str) -> Any:
        projections, extra = projections_of(shape, role)
        inputs = shape.observation + shape.macros * shape.last_macro + extra
        outputs = shape.macros if role == "actor" else VALUE_HEADS

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
        return {**made, **init_kind_heads(shape, outputs)}

    def project(params: Any, vectors: Array) -> Any:
        tables = jax.vmap(lambda p: jax.tree.map(lambda w: vectors @ w, p))(params["project"])
        parts = {"cell": params["cell"], "head": params["head"], "table": tables}
        return {"parts": parts, "kinds": kind_heads_of(params, vectors)}

    def step(shape: Shape, net: Any, memory: Array, seen: Seen) -> tuple[Array, Array]:
        memory, features = recur(shape, net, memory, seen)
        return memory, heads_of(net, memory if read else features, seen)

    def recur(shape: Shape, net: Any, memory: Array, seen: Seen) -> tuple[Array, Array]:
        def part(net: Any, hears: Array, memory: Array) -> tuple[Array, Array]:
            return cell(net["cell"], memory, _inputs(shape, net["table"], hears, seen))

        return jax.vmap(part)(net["parts"], hearing_parts(shape), memory)

    def heads_of(net: Any, found: Array, seen: Seen) -> Array:
        """Return the heads [R, ..., out]. `found` are memories if there is `read`, else the cell's features."""

        def part(net: Any, found: Array) -> tuple[Array, Array]:
            features = read(net["cell"], found) if read else found
            bias = jax.lax.broadcast_to_rank(net["head"]["b"], features.ndim)
            return features @ net["head"]["w"] + bias, features

        heads, features = jax.vmap(part)(net["parts"], found)
        own_only = tuple(net["parts"]["table"]) == OWN_ONLY
        phrases = tuple(head_phrase(each, own_only) for each in seen.heard)
        return with_kind_heads(net["kinds"], phrases, heads, features)

    def unroll(
        shape: Shape, net: Any, memory: Array, seen: Seen, first: Array, known: Any = None
    ) -> tuple[Array, Array, Array]:
        def row(memory: Array, row: tuple[Seen, Array]) -> tuple[Array, tuple[Array, Array]]:
            seen, begins = row
            memory = jnp.where(begins[None, :, None], 0.0, memory)
            memory, features = recur(shape, net, memory, seen)
            return memory, (memory, features)

        memory, (memories, features) = jax.lax.scan(row, memory, (seen, first))
        found = jnp.moveaxis(memories if read else features, 1, 0)
        return memory, memories, heads_of(net, found, seen)

    return (
        lambda key, shape: initialize(key, shape, "actor"),
        lambda key, shape: initialize(key, shape, "critic"),
        project,
        step,
        unroll,
    )


def _inputs(shape: Shape, table: dict[str, Array], hears: Array, seen: Seen) -> Array:
    """Return the concatenated inputs of one part of a `from_cell` network. A part that does not hear gets silence."""

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
        parts.append(hears * teammate_instructed(seen))
    return jnp.concatenate(parts, axis=-1)


class KindHeads(NamedTuple):
    """The output layers of the kinds, and the numbers that each phrase switches them on with."""

    weight: Array  # [E, H, out]
    bias: Array  # [E, out]
    heard: Array  # [phrases, E]


def init_kind_heads(shape: Shape, outputs: int) -> dict[str, Any]:
    """Return the entry "kind_heads" of an untrained agent's parameters: all zero. A shape without them has no entry."""
    if not shape.kind_heads:
        return {}
    size = (shape.embedding, shape.hidden, outputs)
    return {"kind_heads": {"w": jnp.zeros(size), "b": jnp.zeros((size[0], outputs))}}


def kind_heads_of(params: Any, vectors: Array) -> KindHeads | None:
    """Return the kinds' output layers of an agent's parameters, or None if it has none."""
    layers = params.get("kind_heads")
    return None if layers is None else KindHeads(layers["w"], layers["b"], vectors)


def head_phrase(phrases: Array, own_only: bool) -> Array:
    """Return the phrase [...] by which the kinds' layers go, from those of all agents [..., N], own first.

    An agent's actor goes by its own phrase. A critic, and one actor for the whole team, go by anybody's: all agents
    that are addressed hear the same kind.
    """
    return phrases[..., 0] if own_only else phrases.max(-1)


def teammate_instructed(seen: Seen) -> Array:
    """Return bool [..., 1], whether any teammate is instructed."""
    return (seen.phrases[..., 1:] > 0).any(-1, keepdims=True)


def with_kind_heads(
    kinds: KindHeads | None,
    phrases: tuple[Array, ...],
    heads: Array,
    features: Array,
    product: Callable[[Array, Array], Array] = jnp.matmul,
) -> Array:
    """Return heads [R, ..., out] to which the layers of the kind that is heard add: sum_e heard[e] (h K[e] + k[e]).

    `features` [R, ..., H] are the inputs of the heads. Only the last part, which hears, has such layers. `phrases`
    [...] come from `head_phrase`, one for each instruction that may hold. Silence adds nothing.
    """
    if kinds is None:
        return heads
    table = jax.lax.stop_gradient(kinds.heard)
    heard = functools.reduce(jnp.add, (table[phrase] for phrase in phrases))
    flat = jnp.moveaxis(kinds.weight, 0, 1).reshape(kinds.weight.shape[1], -1)  # [H, E * out]
    each = product(features[-1], flat).reshape(*heard.shape, heads.shape[-1])
    each = each + jax.lax.broadcast_to_rank(kinds.bias, each.ndim)
    return heads.at[-1].add((heard[..., None] * each).sum(-2))


def own_first_order(agents: int) -> Array:
    """Return [N, N], for each agent the order of all agents in which it takes in their phrases: itself first."""
    return (jnp.arange(agents)[:, None] + jnp.arange(agents)[None]) % agents


def hearing_parts(shape: Shape) -> Array:
    """Return [R]: 1 for the last part, which hears phrases, and 0 for the others."""
    return (jnp.arange(shape.parts) == shape.parts - 1).astype(jnp.float32)


def of_part(heads: Array, instructed: Array) -> Array:
    """Return the heads [..., out] of the part that decides, from [R, ..., out]: the last where `instructed`."""
    return heads[0] if heads.shape[0] == 1 else jnp.where(instructed[..., None], heads[1], heads[0])


def logits(shape: Shape, heads: Array, instructed: Array) -> Array:
    """Return the logits [..., M] of an actor from its heads [R, ..., M].

    In a `residual` actor the instructed part adds to the uninstructed logits and passes no gradient to them. So skills
    need not be learnt again under every instruction.
    """
    if not shape.residual:
        return of_part(heads, instructed)
    return of_part(heads.at[1].add(jax.lax.stop_gradient(heads[0])), instructed)


def value(heads: Array, instructed: Array, scale: Scale) -> Array:
    """Return the value [...] in the task's units from a critic's heads [R, ..., VALUE_HEADS]."""
    raw = of_part(heads, instructed)
    raw = jnp.where(instructed, raw[..., 1], raw[..., 0])
    return scale.unscale(raw, instructed)


@record
class Scale:
    """PopArt statistics of one agent's values, for each value head. Without PopArt: mean 0 and spread `value_scale`."""

    mean: Array  # [VALUE_HEADS]
    square: Array  # [VALUE_HEADS]
    weight: Array  # [VALUE_HEADS] how much has been averaged, for debiasing

    def centre(self) -> Array:
        """Return the mean [VALUE_HEADS] that values are shifted by."""
        return jnp.where(self.weight > 0, self.mean / jnp.maximum(self.weight, 1e-8), 0.0)

    def spread(self) -> Array:
        """Return the standard deviation [VALUE_HEADS] that values are divided by."""
        square = self.square / jnp.maximum(self.weight, 1e-8)
        return jnp.where(
            self.weight > 0, jnp.sqrt(jnp.maximum(square - self.centre() ** 2, 1e-2)), 1.0
        )

    def unscale(self, raw: Array, instructed: Array) -> Array:
        """Return the value that a head's output stands for."""
        i = instructed.astype(jnp.int32)
        return raw * self.spread()[i] + self.centre()[i]


def scale_of(size: Array | float) -> Scale:
    """Return statistics for values in units of `size`. Their weight is tiny, so PopArt's first batch replaces them."""
    weight = jnp.full(VALUE_HEADS, 1e-6, jnp.float32)
    return Scale(mean=jnp.zeros(VALUE_HEADS), square=weight * size**2, weight=weight)


def rescale(critic: dict[str, Any], old: Scale, new: Scale) -> dict[str, Any]:
    """Return a critic's parameters that give the same values under new statistics (PopArt)."""
    head, kinds = critic["head"], critic.get("kind_heads")
    before, after = old.spread()[None], new.spread()[None]
    moved = (head["b"] * before + old.centre()[None] - new.centre()[None]) / after
    made = {**critic, "head": {"w": head["w"] * (before / after)[None], "b": moved}}
    if kinds is not None:  # what they add has no mean of its own
        ratio = before / after
        made["kind_heads"] = {"w": kinds["w"] * ratio[None], "b": kinds["b"] * ratio}
    return made
