"""Actor and critic: two dense layers, a GRU, a dense layer and a head, for each agent and each part.

Everything here is for one agent; agents are a stacked leading axis that callers `vmap` over. Inside an agent,
`parts` is 1 (the `shared` network, the paper's) or 2 (`protected`: part 0 computes all that is uninstructed and
never sees a phrase, part 1 all the rest; each has its own weights and memory, and both follow the true history). In a
`residual` actor part 1 adds to what part 0 would do.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mavic.types import Array, record, static

NETWORKS = {  # what of a `Shape` they are
    "shared": {"parts": 1},
    "protected": {"parts": 2},
    "residual": {"parts": 2, "residual": True},
}
SLOPE = 0.01  # of the leaky rectifier, as in the reference
CONTEXTS = 2  # uninstructed, instructed
# rows up to which a sequence may be compiled without a loop: long ones would take for ever
SHORT = 8


@record
class Shape:
    """Sizes of a network."""

    observation: int = static()
    macros: int = static()
    agents: int = static()
    embedding: int = static()
    hidden: int = static(32)
    projected: int = static(32)
    parts: int = static(2)
    last_macro: bool = static(False)
    residual: bool = static(False)


def init_actor(key: Array, shape: Shape) -> Any:
    """Parameters of one agent's actor."""
    extra = shape.projected + 1  # own phrase; a teammate is instructed
    return _init(key, shape, extra, shape.macros, ("own",))


def init_critic(key: Array, shape: Shape) -> Any:
    """Parameters of one agent's critic; one head a context, so that each can have its own scale."""
    return _init(key, shape, 2 * shape.projected, CONTEXTS, ("own", "team"))


def _init(key: Array, shape: Shape, extra: int, out: int, projections: tuple[str, ...]) -> Any:
    width, gain = shape.hidden, (2 / (1 + SLOPE**2)) ** 0.5
    inputs = shape.observation + shape.macros * shape.last_macro + extra

    def xavier(inputs: int, outputs: int, gain: float) -> tuple[tuple[int, ...], float]:
        return (inputs, outputs), gain * (6 / (inputs + outputs)) ** 0.5

    def dense(inputs: int, outputs: int, gain: float) -> dict:
        return {"w": xavier(inputs, outputs, gain), "b": ((outputs,), 0.0)}

    square, row = (width, 3 * width), (3 * width,)
    plan = {  # every array's shape, and the bound of its uniform distribution
        "first": dense(inputs, width, gain),
        "second": dense(width, width, gain),
        "gru": {
            name: (size, width**-0.5)
            for name, size in {"wi": square, "wh": square, "bi": row, "bh": row}.items()
        },
        "third": dense(width, width, gain),
        "head": dense(width, out, 1.0),
        "project": {name: xavier(shape.embedding, shape.projected, 1.0) for name in projections},
    }
    leaves, tree = jax.tree.flatten(plan, is_leaf=lambda node: isinstance(node, tuple))
    ends = np.cumsum([math.prod(size) for size, _ in leaves])

    def part(key: Array) -> Any:
        drawn = jax.random.uniform(
            key, (int(ends[-1]),), minval=-1.0
        )  # a draw each compiles slowly
        cut = jnp.split(drawn, ends[:-1])
        arrays = [
            bound * piece.reshape(size) for piece, (size, bound) in zip(cut, leaves, strict=True)
        ]
        return jax.tree.unflatten(tree, arrays)

    return jax.vmap(part)(jax.random.split(key, shape.parts))


class Net(NamedTuple):
    """Weights [parts, ...], and what each phrase adds to the first layer of the part that hears it, the last."""

    trunk: Any
    table: dict[str, Array]


def with_phrases(params: Any, vectors: Array) -> Net:
    """Project every phrase and pass it through its share of the first layer once, [P, hidden]: rows then look theirs
    up and add it, which is the first layer of the concatenated inputs (D3) at a fraction of the work. Silence (row 0,
    the zero vector) adds nothing, for the projection has no bias; a part that is not the last hears nothing but
    silence. An actor has one more input, whether a teammate is instructed."""
    weight = params["first"]["w"]
    widths = [w.shape[-1] for w in params["project"].values()]
    bits = 1 if len(widths) == 1 else 0
    plain = weight.shape[1] - sum(widths) - bits
    table, start = {}, plain
    for (name, projection), width in zip(params["project"].items(), widths, strict=True):
        table[name] = vectors @ projection[-1] @ weight[-1, start : start + width]
        start += width
    if bits:
        table["bit"] = weight[-1, start:]
    trunk = {name: layer for name, layer in params.items() if name != "project"}
    trunk["first"] = {"w": weight[:, :plain], "b": params["first"]["b"]}
    return Net(trunk, table)


@jax.custom_vjp
def _lookup(table: Array, index: Array) -> Array:
    return table[index]


def _lookup_forward(table: Array, index: Array) -> tuple[Array, tuple[Array, Array]]:
    return table[index], (index, jnp.zeros(table.shape[0]))


def _lookup_backward(saved: tuple, gradient: Array) -> tuple[Array, None]:
    index, rows = saved
    index, gradient = index.reshape(-1), gradient.reshape(-1, gradient.shape[-1])

    def scatter(index: Array, gradient: Array) -> Array:
        return jnp.zeros((*rows.shape, gradient.shape[-1]), gradient.dtype).at[index].add(gradient)

    def product(index: Array, gradient: Array) -> Array:
        # a GPU's scatter adds in no fixed order, and runs could not be repeated exactly
        return jax.nn.one_hot(index, rows.shape[0], dtype=gradient.dtype).T @ gradient

    return jax.lax.platform_dependent(index, gradient, cpu=scatter, default=product), None


_lookup.defvjp(_lookup_forward, _lookup_backward)


def _heard(shape: Shape, table: dict[str, Array], phrases: Array) -> Array:
    """What phrases [..., N], own first, add to the first layer."""
    total = _lookup(table["own"], phrases[..., 0])
    if "bit" in table:
        return total + (phrases[..., 1:] > 0).any(-1, keepdims=True) * table["bit"]
    for mate in range(1, shape.agents):
        total = total + _lookup(table["team"], phrases[..., mate]) / (shape.agents - 1)
    return total


def _first(shape: Shape, part: Any, heard: Array, seen: dict[str, Array]) -> Array:
    """The first layer of one part. `seen`: observation [..., O] and previous [...]."""
    plain = seen["observation"]
    if shape.last_macro:
        plain = jnp.concatenate([plain, jax.nn.one_hot(seen["previous"], shape.macros)], axis=-1)
    return _apply(part["first"], plain) + heard


def _enter(part: Any, first: Array) -> Array:
    """First layer → what the GRU takes in."""
    hidden = _leaky(_apply(part["second"], _leaky(first)))
    return _product(hidden, part["gru"]["wi"]) + part["gru"]["bi"]


def _hears(shape: Shape) -> Array:
    return (jnp.arange(shape.parts) == shape.parts - 1).astype(jnp.float32)


@jax.custom_vjp
def _product(x: Array, weight: Array) -> Array:
    return x @ weight


def _product_backward(saved: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    # rows flattened, the weight's gradient is a plain product; left to itself it is one of transposed copies
    x, weight = saved
    rows, towards = (y.reshape(-1, y.shape[-1]) for y in (x, gradient))
    return gradient @ weight.T, rows.T @ towards


_product.defvjp(lambda x, weight: (x @ weight, (x, weight)), _product_backward)


def _leaky(x: Array) -> Array:
    return jnp.where(x >= 0, x, SLOPE * x)


def _apply(layer: dict[str, Array], x: Array) -> Array:
    return _product(x, layer["w"]) + layer["b"]


def _gates(from_hidden: Array, gates_in: Array) -> tuple[Array, Array, Array, Array]:
    """Reset, update and new, and the hidden product that the reset gate acts on (PyTorch's convention: bias
    included)."""
    reset_in, update_in, new_in = jnp.split(gates_in, 3, axis=-1)
    reset_h, update_h, new_h = jnp.split(from_hidden, 3, axis=-1)
    reset = jax.nn.sigmoid(reset_in + reset_h)
    return reset, jax.nn.sigmoid(update_in + update_h), jnp.tanh(new_in + reset * new_h), new_h


def _cell(gru: dict[str, Array], carry: Array, gates_in: Array) -> Array:
    """One GRU step."""
    _, update, new, _ = _gates(carry @ gru["wh"] + gru["bh"], gates_in)
    return new + update * (carry - new)


def _leave(part: Any, carry: Array) -> Array:
    """GRU state → head."""
    return _apply(part["head"], _leaky(_apply(part["third"], carry)))


def empty(shape: Shape, *batch: int) -> Array:
    """Memory at the start of an episode: [parts, *batch, hidden]."""
    return jnp.zeros((shape.parts, *batch, shape.hidden))


def step(shape: Shape, net: Net, carry: Array, seen: dict[str, Array]) -> tuple[Array, Array]:
    """One decision of every lane: new memory [parts, ..., H] and heads [parts, ..., out]."""

    heard = _heard(shape, net.table, seen["phrases"])

    def one(part: Any, hears: Array, carry: Array) -> tuple[Array, Array]:
        carry = _cell(part["gru"], carry, _enter(part, _first(shape, part, hears * heard, seen)))
        return carry, _leave(part, carry)

    return jax.vmap(one)(net.trunk, _hears(shape), carry)


def unroll(
    shape: Shape,
    net: Net,
    carry: Array,
    seen: dict[str, Array],
    first: Array,
    memory: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Rows [B, W] in order, memory emptied before each `first` row. Gives the memory after the block, the memory
    after each row [B, parts, W, H] and the heads [parts, B, W, out]. A `memory` that is known from an earlier pass is
    not computed again; gradients are as if it were."""

    heard = _heard(shape, net.table, seen["phrases"])

    def one(part: Any, hears: Array, carry: Array, known: Any) -> tuple[Array, Array, Array]:
        gates = _enter(part, _first(shape, part, hears * heard, seen))
        if known is None:
            carries = _remember(part["gru"], carry, gates, first)
        else:
            carries = _recall(part["gru"]["wh"], part["gru"]["bh"], carry, gates, first, known)
        return carries[-1], carries, _leave(part, carries)

    over_parts = jax.vmap(one, in_axes=(0, 0, 0, 1), out_axes=(0, 1, 0))
    return over_parts(net.trunk, _hears(shape), carry, memory)


def _remember(gru: dict[str, Array], carry: Array, gates: Array, first: Array) -> Array:
    """[B, W, H] the memory after each row, one row after another.

    The next row's gates travel with the carry: a slice taken in the middle of the arithmetic would keep a CPU from
    doing it on whole vectors, which costs three times as much."""

    def on(state: tuple[Array, Array], row: tuple[Array, Array]) -> tuple[tuple, Array]:
        carry, gates_in = state
        begins, following = row
        carry = _cell(gru, jnp.where(begins[:, None], 0.0, carry), gates_in)
        return (carry, following), carry

    rows = (first, jnp.roll(gates, -1, axis=0))
    return jax.lax.scan(on, (carry, gates[0]), rows, unroll=_unrolled(first))[1]


def _unrolled(rows: Array) -> bool:
    """Whether these rows are compiled without a loop: a GPU wants that of few rows, a CPU gains by the loop."""
    return rows.shape[0] <= SHORT and jax.default_backend() != "cpu"


def _once(x: Array) -> Array:
    """Computed once, however many use it: a CPU would do it again for each."""
    return jax.lax.optimization_barrier(x) if jax.default_backend() == "cpu" else x


@jax.custom_vjp
def _recall(wh: Array, bh: Array, carry: Array, gates: Array, first: Array, known: Array) -> Array:
    """What `_remember` gives, which is already known: only its gradient is left to do. Everything but the way back
    through the memories is then done for all rows at once."""
    return known


def _recall_forward(*args: Array) -> tuple[Array, tuple]:
    return args[-1], args


def _recall_backward(saved: tuple, towards: Array) -> tuple:
    wh, bh, carry, gates, first, known = saved
    before = jnp.where(first[..., None], 0.0, jnp.concatenate([carry[None], known[:-1]]))
    reset, update, new, new_h = _gates(before @ wh + bh, gates)
    slope = (1 - update) * (1 - new**2)  # of the memory, by the argument of `new`
    by_product = _once(  # of the memory, by the product of the memory before and `wh`
        jnp.concatenate(
            [
                slope * new_h * reset * (1 - reset),
                (before - new) * update * (1 - update),
                slope * reset,
            ],
            axis=-1,
        )
    )
    back_weights = wh.T

    def back(towards: Array, row: tuple) -> tuple[Array, Array]:
        direct, by_product, update, begins = row
        total = towards + direct
        past = total * update + (jnp.tile(total, 3) * by_product) @ back_weights
        return jnp.where(begins[:, None], 0.0, past), total

    rows = (towards, by_product, update, first)
    towards_carry, total = jax.lax.scan(
        back, jnp.zeros_like(carry), rows, reverse=True, unroll=_unrolled(first)
    )
    product = _once(jnp.tile(total, 3) * by_product)
    entered = _once(jnp.concatenate([product[..., : 2 * slope.shape[-1]], total * slope], axis=-1))
    weights = _product_backward((before, wh), product)[1]
    return weights, product.sum((0, 1)), towards_carry, entered, None, None


_recall.defvjp(_recall_forward, _recall_backward)


def of_context(heads: Array, instructed: Array) -> Array:
    """[parts, ..., out] → [..., out]: the part that speaks in each row's context."""
    return heads[0] if heads.shape[0] == 1 else jnp.where(instructed[..., None], heads[1], heads[0])


def logits(shape: Shape, heads: Array, instructed: Array) -> Array:
    """[parts, ..., M] → [..., M]: what an actor chooses by. Of a `residual` one the instructed part says what to change
    about what the other would do, who learns nothing from that: so skills are not learnt once more under every
    instruction."""
    if not shape.residual:
        return of_context(heads, instructed)
    return of_context(heads.at[1].add(jax.lax.stop_gradient(heads[0])), instructed)


def value(heads: Array, instructed: Array, scale: Scale) -> Array:
    """[parts, ..., CONTEXTS] → [...]: the value in the task's units."""
    raw = of_context(heads, instructed)
    raw = jnp.where(instructed, raw[..., 1], raw[..., 0])
    return scale.unscale(raw, instructed)


@record
class Scale:
    """PopArt statistics of one agent's values, one a context; mean 0 and spread `value_scale` when it is off."""

    mean: Array  # [CONTEXTS]
    square: Array  # [CONTEXTS]
    weight: Array  # [CONTEXTS] how much has been averaged, for debiasing

    def centre(self) -> Array:
        """[CONTEXTS] the mean used."""
        return jnp.where(self.weight > 0, self.mean / jnp.maximum(self.weight, 1e-8), 0.0)

    def spread(self) -> Array:
        """[CONTEXTS] the standard deviation used."""
        square = self.square / jnp.maximum(self.weight, 1e-8)
        return jnp.where(
            self.weight > 0, jnp.sqrt(jnp.maximum(square - self.centre() ** 2, 1e-2)), 1.0
        )

    def unscale(self, raw: Array, instructed: Array) -> Array:
        """Head output → value."""
        i = instructed.astype(jnp.int32)
        return raw * self.spread()[i] + self.centre()[i]


def scale_of(size: Array | float) -> Scale:
    """Values in units of `size`, believed so weakly that PopArt's first batch overrules it."""
    weight = jnp.full(CONTEXTS, 1e-6, jnp.float32)
    return Scale(mean=jnp.zeros(CONTEXTS), square=weight * size**2, weight=weight)


def rescale(params: Any, old: Scale, new: Scale) -> Any:
    """Change the value heads so that values stay as they were under new statistics (PopArt)."""
    ratio = old.spread() / new.spread()
    head = params["head"]
    moved = (head["b"] * old.spread() + old.centre() - new.centre()) / new.spread()
    return {**params, "head": {"w": head["w"] * ratio, "b": moved}}
