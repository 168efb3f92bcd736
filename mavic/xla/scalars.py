"""A function of small arrays, computed number by number.

A GPU runs a tick as a chain of kernels, and a tick takes longer the more kernels it has. The compiler fuses operations
into one kernel only if their results have the same shape. The arrays of a tick are small and have many shapes: two
cooks, six things, four directions each. If every number is computed on its own, all results have the shape of the
batch, and a few kernels do most of a tick. Results are the same, up to the order in which floats are added.

On an H200 an update of Overcooked (preset `paper`, fifty runs) takes 33.3 instead of 41.3 ms: 1.24 times as fast
(`results/overcooked/bench-kernels-gpu.json`, lab 105 in `docs/lab.md`). On a CPU it would be slower, so it is off
there. The environment variable MAVIC_SCALARS=0 switches it off, and 1 switches it on, on every device.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from mavic.types import Array

SMALL = 32  # numbers; larger arrays stay whole

# An array taken apart is a NumPy array of objects, each a JAX scalar. Values known while tracing are ordinary NumPy
# arrays or scalars. All other values are JAX arrays and stay whole.
Value = Any

ELEMENTWISE = frozenset(
    [
        "abs",
        "add",
        "and",
        "bitcast_convert_type",
        "ceil",
        "clamp",
        "convert_element_type",
        "copy",
        "cos",
        "div",
        "eq",
        "erf",
        "exp",
        "exp2",
        "expm1",
        "floor",
        "ge",
        "gt",
        "integer_pow",
        "is_finite",
        "le",
        "log",
        "log1p",
        "logistic",
        "lt",
        "max",
        "min",
        "mul",
        "ne",
        "neg",
        "nextafter",
        "not",
        "or",
        "pow",
        "rem",
        "round",
        "rsqrt",
        "select_n",
        "shift_left",
        "shift_right_arithmetic",
        "shift_right_logical",
        "sign",
        "sin",
        "sqrt",
        "square",
        "stop_gradient",
        "sub",
        "tanh",
        "xor",
    ]
)
REDUCTIONS: dict[str, Callable] = {
    "reduce_and": lax.bitwise_and,
    "reduce_max": lax.max,
    "reduce_min": lax.min,
    "reduce_or": lax.bitwise_or,
    "reduce_sum": lax.add,
}
CALLS = ("jit", "pjit", "closed_call", "custom_jvp_call")


def _wanted() -> bool:
    """Return whether programs are computed number by number: everywhere but on a CPU, where it is slower.

    The environment variable MAVIC_SCALARS overrides this: 0 switches it off, 1 switches it on.
    """
    chosen = os.environ.get("MAVIC_SCALARS", "")
    if chosen not in ("", "0", "1"):
        raise ValueError(f"MAVIC_SCALARS is {chosen!r}; it must be 0 or 1")
    return jax.default_backend() != "cpu" if not chosen else chosen == "1"


class Packing:
    """How a loop carries a tree: small arrays as one vector of 32-bit words, and a list of the large arrays.

    Where programs are not computed number by number, the tree stays as it is.
    """

    def __init__(self, like: Any) -> None:
        """Make the packing of trees that have the structure and shapes of `like`."""
        self._like = like

    def pack(self, tree: Any) -> Any:
        """Return a tree as a loop carries it."""
        if not _wanted():
            return tree
        leaves = jax.tree.leaves(tree)
        words = [
            _to_word(leaf[i]) for leaf in leaves if _is_small(leaf) for i in np.ndindex(leaf.shape)
        ]
        return jnp.stack(words), [leaf for leaf in leaves if not _is_small(leaf)]

    def unpack(self, packed: Any) -> Any:
        """Return the tree that `pack` was given. All arrays may have further axes in front."""
        if not _wanted():
            return packed
        words, large = packed
        leaves, tree = jax.tree.flatten(self._like)
        number, others = iter(range(words.shape[-1])), iter(large)

        def leaf_of(leaf: Any) -> Array:
            if not _is_small(leaf):
                return next(others)
            numbers = [_from_word(words[..., next(number)], leaf.dtype) for _ in range(leaf.size)]
            if not leaf.ndim:
                return numbers[0]
            return jnp.stack(numbers, axis=-1).reshape(*words.shape[:-1], *leaf.shape)

        return jax.tree.unflatten(tree, [leaf_of(leaf) for leaf in leaves])


def _is_small(leaf: Any) -> bool:
    """Return whether a leaf goes into the words: few numbers, each of which fits into one word."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return False
    whole = leaf.dtype == bool or jnp.issubdtype(leaf.dtype, jnp.integer)
    return leaf.size <= SMALL and (leaf.dtype.itemsize == 4 or (whole and leaf.dtype.itemsize < 4))


def _to_word(number: Array) -> Array:
    if number.dtype.itemsize == 4:
        return lax.bitcast_convert_type(number, jnp.int32)
    return number.astype(jnp.int32)


def _from_word(word: Array, dtype: Any) -> Array:
    return lax.bitcast_convert_type(word, dtype) if dtype.itemsize == 4 else word.astype(dtype)


def number_by_number(function: Callable) -> Callable:
    """Return the same function of trees of arrays, computed number by number except on a CPU.

    Arrays stay whole until they meet one that was put together from numbers, as `Packing.unpack` does. MAVIC_SCALARS
    switches this off or on, see `_wanted`.
    """
    if not _wanted():
        return function

    def call(*args: Any) -> Any:
        leaves, tree = jax.tree.flatten(args)
        traced, shapes = jax.make_jaxpr(
            lambda *leaves: function(*jax.tree.unflatten(tree, leaves)), return_shape=True
        )(*leaves)
        found = _evaluate(traced.jaxpr, traced.consts, leaves)
        whole = [_whole(x, v.aval) for x, v in zip(found, traced.jaxpr.outvars, strict=True)]
        return jax.tree.unflatten(jax.tree.structure(shapes), whole)

    return call


def _evaluate(jaxpr: Any, consts: Sequence[Value], args: Sequence[Value]) -> list[Value]:
    """Return the results of a traced program."""
    values: dict[Any, Value] = {}

    def read(variable: Any) -> Value:
        if not isinstance(variable, core.Literal):
            return values[variable]
        like: Any = variable.aval
        return np.asarray(variable.val, like.dtype)

    for variables, given in ((jaxpr.constvars, consts), (jaxpr.invars, args)):
        values |= dict(zip(variables, given, strict=True))
    for equation in jaxpr.eqns:
        inputs = [read(variable) for variable in equation.invars]
        values |= dict(zip(equation.outvars, _apply(equation, inputs), strict=True))
    return [read(variable) for variable in jaxpr.outvars]


def _apply(equation: Any, inputs: list[Value]) -> Sequence[Value]:
    """Return the results of one operation."""
    name, params = equation.primitive.name, equation.params
    sizes = [variable.aval.size for variable in equation.outvars]
    small = bool(sizes) and max(sizes) <= SMALL
    if name in CALLS and small:
        inner = params.get("jaxpr") or params["call_jaxpr"]
        return _evaluate(inner.jaxpr, inner.consts, inputs)
    apart = any(map(_is_apart, inputs))
    known = not apart and not any(map(_is_traced, inputs))
    if known and (name in ELEMENTWISE or name in STRUCTURAL or name == "iota"):
        with jax.ensure_compile_time_eval():
            return [np.asarray(equation.primitive.bind(*map(jnp.asarray, inputs), **params))]
    numbers = name in ("broadcast_in_dim", "stack") and not any(map(np.ndim, inputs))
    if (small or name in ("concatenate", "stack")) and (apart or numbers):
        found = _by_numbers(equation, inputs)
        if found is not None:
            return [found]
    whole = [_whole(x, v.aval) for x, v in zip(inputs, equation.invars, strict=True)]
    bound = equation.primitive.get_bind_params(params)
    functions, bound = bound if isinstance(bound, tuple) else ([], bound)  # in older JAX a pair
    found = equation.primitive.bind(*functions, *whole, **bound)
    return found if equation.primitive.multiple_results else [found]


def _by_numbers(equation: Any, inputs: list[Value]) -> Value | None:
    """Return the result of an operation on arrays that are taken apart, or None if it must stay whole."""
    name, params = equation.primitive.name, equation.params
    shape = equation.outvars[0].aval.shape
    dtypes = [variable.aval.dtype for variable in equation.invars]
    if name in ELEMENTWISE:
        numbers = [np.broadcast_to(_apart(x), shape) for x in inputs]

        def compute(*index: int) -> Array:
            own = [jnp.asarray(x[index], d) for x, d in zip(numbers, dtypes, strict=True)]
            return equation.primitive.bind(*own, **params)

        return _filled(shape, compute)
    if name in STRUCTURAL:
        return _as_value(STRUCTURAL[name](*map(_apart, inputs), **params))
    if name in REDUCTIONS or (name in ("argmax", "argmin") and dtypes[0] in (bool, jnp.int32)):
        axes = tuple(params["axes"])
        first = np.moveaxis(_apart(inputs[0]), axes, range(len(axes)))
        rows = first.reshape(-1, *first.shape[len(axes) :])

        def reduce(*index: int) -> Array:
            numbers = [jnp.asarray(x[index], dtypes[0]) for x in rows]
            if name in REDUCTIONS:
                return functools.reduce(REDUCTIONS[name], numbers)
            return _best(numbers, lax.gt if name == "argmax" else lax.lt, params["index_dtype"])

        return _filled(shape, reduce)
    if name == "cumsum" and not params["reverse"]:
        sums = np.moveaxis(_apart(inputs[0]).copy(), params["axis"], 0)
        for index in np.ndindex(sums.shape):
            if index[0] > 0:
                sums[index] = lax.add(sums[(index[0] - 1, *index[1:])], sums[index])
        return np.moveaxis(sums, 0, params["axis"])
    if name == "gather":
        return _gathered(equation, inputs)
    if name == "dynamic_slice" and _is_apart(inputs[0]) and not any(map(_is_traced, inputs[1:])):
        sizes = params["slice_sizes"]
        most = np.subtract(inputs[0].shape, sizes)
        starts = np.clip([int(x) for x in inputs[1:]], 0, most)
        return _as_value(inputs[0][tuple(map(slice, starts, starts + sizes))])
    return None


def _gathered(equation: Any, inputs: list[Value]) -> Value | None:
    """Return table[index] for a table of one axis, number by number."""
    params, (table, index) = equation.params, inputs
    numbers = params["dimension_numbers"]
    plain = params["slice_sizes"] == (1,) and numbers.collapsed_slice_dims == (0,)
    if not plain or _is_apart(table) or not _is_apart(index):
        return None
    places, table = index[..., 0], jnp.asarray(table)
    alone = lax.GatherDimensionNumbers(
        offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    how = {name: params[name] for name in ("slice_sizes", "mode", "fill_value")}
    return _filled(
        places.shape, lambda *i: lax.gather(table, jnp.asarray(places[i])[None], alone, **how)
    )


def _best(numbers: list[Array], better: Callable, dtype: Any) -> Array:
    """Return the place of the first best number."""
    if numbers[0].dtype == bool:
        numbers = [x.astype(jnp.int32) for x in numbers]
    best, place = numbers[0], jnp.asarray(0, dtype)
    for i, number in enumerate(numbers[1:], start=1):
        wins = better(number, best)
        best, place = lax.select(wins, number, best), lax.select(wins, jnp.asarray(i, dtype), place)
    return place


def _broadcast(
    x: np.ndarray, *, shape: Sequence, broadcast_dimensions: Sequence, **_: Any
) -> np.ndarray:
    wide = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, x.shape, strict=True):
        wide[axis] = size
    return np.broadcast_to(x.reshape(wide), shape)


def _sliced(
    x: np.ndarray,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None,
) -> np.ndarray:
    steps = strides or [1] * x.ndim
    return x[tuple(map(slice, start_indices, limit_indices, steps))]


STRUCTURAL: dict[str, Callable[..., np.ndarray]] = {
    "broadcast_in_dim": _broadcast,
    "concatenate": lambda *xs, dimension: np.concatenate([x.astype(object) for x in xs], dimension),
    "expand_dims": lambda x, *, dimensions: np.expand_dims(x, tuple(dimensions)),
    "reshape": lambda x, *, new_sizes, **_: x.reshape(new_sizes),
    "slice": _sliced,
    "squeeze": lambda x, *, dimensions: x.squeeze(tuple(dimensions)),
    "stack": lambda *xs, axis=0, **_: np.moveaxis(_stacked(xs), 0, axis),
    "transpose": lambda x, *, permutation: x.transpose(permutation),
}


def _is_apart(value: Value) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object


def _is_traced(value: Value) -> bool:
    return not isinstance(value, np.ndarray | np.generic)


def _apart(value: Value) -> np.ndarray:
    """Return a value as an array of numbers, even if it is a single one."""
    if isinstance(value, np.ndarray):
        return value
    found = np.empty(np.shape(value), object)
    for index in np.ndindex(found.shape):
        found[index] = value[index] if index else value
    return found


def _filled(shape: tuple[int, ...], number: Callable[..., Any]) -> Value:
    """Return the array of numbers whose entry at each index is `number(*index)`; of no axes, the number itself."""
    found = np.empty(shape, object)
    for index in np.ndindex(shape):
        found[index] = number(*index)
    return _as_value(found)


def _stacked(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return _filled((len(arrays), *arrays[0].shape), lambda first, *rest: arrays[first][rest])


def _as_value(array: np.ndarray) -> Value:
    """Return the array; of no axes, its number."""
    return array[()] if array.ndim == 0 else array


def _whole(value: Value, like: Any) -> Value:
    """Return a value as one array, of the type that `like` has."""
    if not isinstance(value, np.ndarray):
        return value
    if not _is_apart(value):
        return jnp.asarray(value, like.dtype)
    return jnp.stack([jnp.asarray(x, like.dtype) for x in value.reshape(-1)]).reshape(like.shape)
