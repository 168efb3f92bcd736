"""The interface of a network: `init`, `step` and `unroll` for one agent's actor or critic, and how its heads are read.

Each function serves one agent. Callers stack agents on a leading axis and `vmap` over it. A network has one or two
parts, each with its own weights and memory. `shared` (the paper's) has one. `protected` has two: part 0 computes all
uninstructed decisions and values and never sees a phrase, and part 1 computes all others. Both parts follow the true
history. `residual` is `protected`, and the instructed actor adds to the logits of the uninstructed one.

The implementation that training uses is `mavic.learn.gru`. `mavic.learn.cells` makes a network from any recurrent cell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mavic.learn.kind_heads import KindHeads
from mavic.learn.popart import VALUE_HEADS, Scale
from mavic.types import CONTEXTS, Array, MacroTransitions, record, static

NETWORKS: dict[str, dict[str, Any]] = {  # by name, the fields of `Shape` that differ
    "shared": {"parts": 1},
    "protected": {"parts": 2},
    "residual": {"parts": 2, "residual": True},
}


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
    cell: str = static(default="")  # a row of `mavic.learn.cells.CELLS`; empty: the GRU

    @property
    def count(self) -> int:
        """Return how many networks of this shape a team has."""
        return self.agents if self.copies is None else self.copies

    @property
    def joint(self) -> bool:
        """Return whether one network stands for the whole team."""
        return self.hears_each and self.copies == 1

    @property
    def hears(self) -> Array:
        """Return [R]: 1 for the last part, which hears phrases, and 0 for the others."""
        return (jnp.arange(self.parts) == self.parts - 1).astype(jnp.float32)

    def outputs(self, role: str) -> int:
        """Return the number of outputs of an actor or a critic."""
        return self.macros if role == "actor" else VALUE_HEADS

    def inputs(self, role: str) -> tuple[tuple[str, ...], int, int]:
        """Return the names of the projections of phrases, the number of inputs, and how many of them are phrases."""
        projections: tuple[str, ...]
        if self.hears_each:
            projections, heard = ("each",), self.agents * self.projected
        elif role == "actor":
            projections, heard = ("own",), self.projected + 1
        else:
            projections, heard = ("own", "team"), 2 * self.projected
        plain = self.observation + self.macros * self.last_macro
        return projections, plain + heard, heard

    def logits(self, heads: Array, instructed: Array) -> Array:
        """Return the logits [..., M] of an actor.

        In a `residual` actor the instructed part adds to the uninstructed logits and passes no gradient to them. So
        skills need not be learnt again under every instruction.

        Args:
            heads: [R, ..., M].
            instructed: bool [...], whether any agent is instructed.
        """
        if not self.residual:
            return _of_part(heads, instructed)
        return _of_part(heads.at[1].add(jax.lax.stop_gradient(heads[0])), instructed)

    def with_kind_heads(self, params: dict[str, Any], role: str) -> dict[str, Any]:
        """Return untrained parameters with the entry "kind_heads", if the shape has them."""
        if not self.kind_heads:
            return params
        layers = KindHeads.init(self.embedding, self.hidden, self.outputs(role))
        return {**params, "kind_heads": layers}


@record
class Seen:
    """The input of a network at a decision; `...` is any batch."""

    observation: Array  # [..., O]
    last_macro: Array  # [...] the macro that ran before; -1 for none
    phrases: Array  # [..., N] of all agents, the agent's own first; 0 is silence
    also: Array | None = None  # [..., N] of a second instruction, for critics: they hear the sum

    @classmethod
    def before(cls, rows: MacroTransitions) -> Seen:
        """Return the input when the row's macro is chosen."""
        return cls(observation=rows.observation, last_macro=rows.last_macro, phrases=rows.phrases)

    @classmethod
    def after(cls, rows: MacroTransitions) -> Seen:
        """Return the input after the macro, if the instruction were still the row's own."""
        return cls(observation=rows.next_observation, last_macro=rows.macro, phrases=rows.phrases)

    @property
    def heard(self) -> tuple[Array, ...]:
        """The phrases of each instruction that may hold."""
        return (self.phrases,) if self.also is None else (self.phrases, self.also)

    @property
    def teammate_instructed(self) -> Array:
        """Return bool [..., 1], whether any teammate is instructed."""
        return (self.phrases[..., 1:] > 0).any(-1, keepdims=True)


class Net(NamedTuple):
    """Parameters with the phrases projected."""

    trunk: Any  # the weights of all parts, [R, ...]
    table: dict[str, Array]  # what each phrase adds, by projection
    kinds: KindHeads | None = None

    def with_kinds(
        self,
        seen: Seen,
        heads: Array,
        features: Array,
        product: Callable[[Array, Array], Array] = jnp.matmul,
    ) -> Array:
        """Return heads [R, ..., out] plus the output of the heard kind's layers.

        An agent's actor uses its own phrase. A critic and a team's joint actor use any agent's phrase, because all
        addressed agents hear the same kind.

        Args:
            seen: The input of the decision.
            heads: [R, ..., out].
            features: [R, ..., H], the inputs of the heads.
            product: How to multiply rows by a matrix.
        """
        if self.kinds is None:
            return heads
        any_agents = "team" in self.table or "each" in self.table
        phrases = tuple(x.max(-1) if any_agents else x[..., 0] for x in seen.heard)
        return self.kinds.add(phrases, heads, features, product)


@dataclass(frozen=True)
class Network:
    """An actor and a critic for agents of one shape. All functions are pure.

    `R` parts, `B` rows in order, `L` lanes, `H` memory, `out` is M for an actor and VALUE_HEADS for a critic.
    """

    shape: Shape
    init: Callable[[Array, Shape, str], Any]
    """(key, shape, "actor" or "critic") → one agent's parameters [R, ...]: a dictionary whose entry "head" is the
    linear output layer {"w", "b"}. Shapes with `kind_heads` have an entry "kind_heads", too."""
    project: Callable[[Any, Array], Net]
    """Parameters and the vectors of all phrases → what `step` and `unroll` take; done once for many decisions."""
    step: Callable[[Shape, Net, Array, Seen], tuple[Array, Array]]
    """One decision: memory [R, ..., H] → new memory and heads [R, ..., out]."""
    unroll: Callable[..., tuple[Array, Array, Array]]
    """(shape, net, memory [R, L, H], seen [B, L], first [B, L], known) → memory after the block, after each row
    [B, R, L, H], and heads [R, B, L, out]. Memory is emptied before `first` rows. `known` is the memory after each
    row if an earlier pass found it; a network may ignore it."""

    def empty(self, *batch: int) -> Array:
        """Return the memory [R, *batch, H] at the start of an episode."""
        return jnp.zeros((self.shape.parts, *batch, self.shape.memory or self.shape.hidden))


def _of_part(heads: Array, instructed: Array) -> Array:
    """Return the heads [..., out] of the part that decides, from [R, ..., out]: the last where `instructed`."""
    return heads[0] if heads.shape[0] == 1 else jnp.where(instructed[..., None], heads[1], heads[0])


def value_head(context: Array) -> Array:
    """Return the value head [...] of decisions in these contexts (`mavic.types.CONTEXTS`)."""
    return (context == CONTEXTS - 1).astype(jnp.int32)


def value(heads: Array, context: Array, scale: Scale) -> Array:
    """Return the value [...] in the units of the rewards.

    Args:
        heads: [R, ..., VALUE_HEADS], of a critic.
        context: [...], of the agent.
        scale: The scale of the critic's values.
    """
    raw, head = _of_part(heads, context > 0), value_head(context)
    return scale.unscale(jnp.where(head > 0, raw[..., 1], raw[..., 0]), head)
