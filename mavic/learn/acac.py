"""The critic of ACAC.

Each agent's history has an encoder of its own: two dense layers and a GRU. It takes a step only when that agent's
observation is new, so histories of different speed are not mixed. The encoders' memories are the tokens of one
attention block: position, pre-norm self-attention with two heads, pre-norm MLP, a last norm. The value is a linear
function of the tokens' mean. The published critic has dropout; this one has none.

ACAC's advantages are GAE: with `n_steps` infinite, a target G of `mavic.learn.returns` minus V is
δ_k + γ^τ λ A_{k+1}, and `cut` stops the sum at a change of instruction.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp

from mavic.learn.cells import from_cell
from mavic.learn.gru import SLOPE, normed
from mavic.learn.networks import Network, Shape
from mavic.types import Array, replace

_HEADS = 2


@lru_cache
def critic(shape: Shape) -> Network:
    """Return the critic of this shape. Equal shapes have the same network.

    Args:
        shape: The network's sizes. Its view is `tokens`.

    Raises:
        ValueError: `hidden` is not a multiple of the number of heads.
    """
    if shape.hidden % _HEADS:
        raise ValueError(f"hidden must be a multiple of {_HEADS} for acac, not {shape.hidden}")
    init, cell, read = partial(_init, shape), partial(_cell, shape), partial(_read, shape)
    return from_cell(replace(shape, memory=shape.agents * shape.hidden), init, cell, read)


def _init(shape: Shape, key: Array, inputs: int, hidden: int) -> Any:
    """Return the parameters of one part."""
    agents, gain = shape.agents, (2 / (1 + SLOPE**2)) ** 0.5
    own = _own_size(shape) + shape.projected
    keys = iter(jax.random.split(key, 16))

    def uniform(bound: float, *size: int) -> Array:
        return jax.random.uniform(next(keys), size, minval=-bound, maxval=bound)

    def dense(rows: int, columns: int) -> dict[str, Array]:
        bound = gain * (6 / (rows + columns)) ** 0.5
        return {"w": uniform(bound, agents, rows, columns), "b": jnp.zeros((agents, columns))}

    def linear(rows: int, columns: int, size: float = 0.02) -> dict[str, Array]:
        weight = size * jax.random.normal(next(keys), (rows, columns))
        return {"w": weight, "b": jnp.zeros(columns)}

    def norm() -> dict[str, Array]:
        return {"gain": jnp.zeros(hidden), "b": jnp.zeros(hidden)}

    gates, bound = 3 * hidden, hidden**-0.5
    return {
        "first": dense(own, hidden),
        "second": dense(hidden, hidden),
        "gru": {
            "wi": uniform(bound, agents, hidden, gates),
            "wh": uniform(bound, agents, hidden, gates),
            "bi": uniform(bound, agents, gates),
            "bh": uniform(bound, agents, gates),
        },
        "position": 0.02 * jax.random.normal(next(keys), (agents, hidden)),
        "attend_norm": norm(),
        "attend": linear(hidden, gates),
        "attended": linear(hidden, hidden, 0.02 / math.sqrt(2)),
        "mlp_norm": norm(),
        "mlp": linear(hidden, 4 * hidden),
        "mlp_out": linear(4 * hidden, hidden, 0.02 / math.sqrt(2)),
        "last_norm": norm(),
    }


def _own_size(shape: Shape) -> int:
    """Return the size of one agent's own input, without its phrase."""
    return shape.observation // shape.agents - 1  # the rest are the flags


def _cell(shape: Shape, params: Any, memory: Array, inputs: Array) -> tuple[Array, Array]:
    """Return the memories [..., N·H] of all agents' encoders. Those without a new observation are kept."""
    agents, own = shape.agents, _own_size(shape)
    batch = inputs.shape[:-1]
    plain, flags, heard = jnp.split(inputs, (agents * own, agents * (own + 1)), axis=-1)
    seen = jnp.concatenate(
        [plain.reshape(*batch, agents, own), heard.reshape(*batch, agents, shape.projected)],
        axis=-1,
    )
    before = memory.reshape(*batch, agents, shape.hidden)
    encoders = {name: params[name] for name in ("first", "second", "gru")}
    after = jax.vmap(_encode, in_axes=(0, -2, -2), out_axes=-2)(encoders, before, seen)
    memory = jnp.where(flags[..., None] > 0, after, before).reshape(*batch, -1)
    return memory, memory


def _encode(params: Any, memory: Array, seen: Array) -> Array:
    hidden = _leaky(_dense(params["second"], _leaky(_dense(params["first"], seen))))
    gru = params["gru"]
    entered = _dense({"w": gru["wi"], "b": gru["bi"]}, hidden)
    kept = _dense({"w": gru["wh"], "b": gru["bh"]}, memory)
    (reset_in, update_in, new_in), (reset_h, update_h, new_h) = (
        jnp.split(x, 3, axis=-1) for x in (entered, kept)
    )
    new = jnp.tanh(new_in + jax.nn.sigmoid(reset_in + reset_h) * new_h)
    return new + jax.nn.sigmoid(update_in + update_h) * (memory - new)


def _read(shape: Shape, params: Any, memory: Array) -> Array:
    """Return the features [..., H] that the value is a linear function of."""
    tokens = memory.reshape(*memory.shape[:-1], shape.agents, shape.hidden)
    tokens = tokens + jax.lax.broadcast_to_rank(params["position"], tokens.ndim)
    tokens = tokens + _attention(params, normed(params["attend_norm"], tokens))
    wide = _dense(params["mlp"], normed(params["mlp_norm"], tokens))
    tokens = tokens + _dense(params["mlp_out"], jax.nn.gelu(wide, approximate=True))
    return normed(params["last_norm"], tokens).mean(-2)


def _attention(params: Any, tokens: Array) -> Array:
    """Return the self-attention of tokens [..., N, H], projected: [..., N, H]."""
    *batch, agents, hidden = tokens.shape
    queries, keys, values = (
        x.reshape(*batch, agents, _HEADS, hidden // _HEADS)
        for x in jnp.split(_dense(params["attend"], tokens), 3, axis=-1)
    )
    scores = jnp.einsum("...qhd,...khd->...hqk", queries, keys) / math.sqrt(hidden // _HEADS)
    mixed = jnp.einsum("...hqk,...khd->...qhd", jax.nn.softmax(scores), values)
    return _dense(params["attended"], mixed.reshape(*batch, agents, hidden))


def _leaky(x: Array) -> Array:
    return jnp.where(x >= 0, x, SLOPE * x)


def _dense(layer: dict[str, Array], x: Array) -> Array:
    return x @ layer["w"] + jax.lax.broadcast_to_rank(layer["b"], x.ndim)
