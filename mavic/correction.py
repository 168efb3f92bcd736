"""The correction in your own code: targets and advantages for numpy, torch and JAX arrays.

This file imports the standard library alone, so it can be copied. `targets` returns the same numbers as
`mavic.learn.returns.targets`, and it also runs under `jax.jit`, which unrolls its loop.

Rows are macro transitions, or steps of any agent, in the order of time. A row was played under the instruction c, the
row after it under c'. Where the two differ, an ordinary learner bootstraps the value under c'. That value belongs to
another problem: it teaches the critic under c what happens under c'. The corrections bootstrap the value under c:

    none     reward + discount * V(h', c')
    cut      reward + discount * V(h', c)                                    the return stops here
    shift    reward + discount * (V(h', c) + later return - V(h', c'))       the return goes on
"""

from __future__ import annotations

import math
import sys
from typing import Any

CORRECTIONS = ("none", "cut", "shift")


def targets(
    reward: Any,
    discount: Any,
    v_same: Any,
    v_next: Any,
    switched: Any,
    last: Any,
    *,
    correction: str = "cut",
    n_steps: float = math.inf,
    td_lambda: float = 1.0,
) -> Any:
    """Return the target G of every row: n-step, or the λ-return if `td_lambda` is below 1.

    All arrays have the same shape [K, ...], time first. Rows of several episodes may follow one another.

    Args:
        reward: The reward of the row. For a macro that ran τ ticks it is the sum of γ^j r_j.
        discount: γ, or γ^τ for a macro; 0 where the task truly ended.
        v_same: V(h', c): the value after the row under the row's own instruction.
        v_next: V(h', c'): the value after the row under the instruction of the next row. If the episode was cut at a
            horizon, it is the value of the last state.
        switched: Bool, whether c' replaced c after the row.
        last: Bool, whether the row is the last of its episode. The final row always counts as one.
        correction: "none", "cut" or "shift".
        n_steps: The number of rows that a return spans, 1 or more; infinite for whole episodes.
        td_lambda: The share of the return that goes on at each row.

    Returns:
        Targets [K, ...]. No gradient is stopped: pass values without gradients.

    Raises:
        ValueError: shapes differ, or an argument is out of its range.
    """
    xp = _namespace(reward)
    if correction not in CORRECTIONS:
        raise ValueError(f"correction {correction!r} is unknown; one of {', '.join(CORRECTIONS)}")
    if not (_is_number(n_steps) and n_steps >= 1 and (n_steps == math.inf or n_steps % 1 == 0)):
        raise ValueError(f"n_steps must be a whole number >= 1 or math.inf, not {n_steps}")
    if not (_is_number(td_lambda) and 0 <= td_lambda <= 1):
        raise ValueError(f"td_lambda must be from 0 to 1, not {td_lambda}")
    _check_shapes(
        reward=reward,
        discount=discount,
        v_same=v_same,
        v_next=v_next,
        switched=switched,
        last=last,
    )
    rows = (reward, discount, v_same, v_next, _true(switched), _true(last))
    count = reward.shape[0]

    def back_up(part: Any, later: Any, share: float) -> Any:
        return _back_up(xp, tuple(row[part] for row in rows), later, correction, share)

    if n_steps >= count:
        made = [back_up(count - 1, v_next[count - 1], 0)]
        for k in range(count - 2, -1, -1):
            made.append(back_up(k, made[-1], td_lambda))
        return xp.stack(made[::-1])
    join = getattr(xp, "concat", None) or xp.concatenate  # numpy 1 has only the second
    upper, final = slice(0, count - 1), slice(count - 1, count)
    found = back_up(slice(0, count), v_next, td_lambda)
    for _ in range(int(n_steps) - 1):
        found = join([back_up(upper, found[1:], td_lambda), back_up(final, v_next[final], 0)])
    return found


def gae(
    reward: Any,
    discount: Any,
    value: Any,
    v_same: Any,
    v_next: Any,
    switched: Any,
    last: Any,
    *,
    correction: str = "cut",
    gae_lambda: float = 0.95,
) -> tuple[Any, Any]:
    """Return generalised advantages and the critic's targets, as PPO uses them.

    Args:
        reward: As in `targets`, like all that are not named here.
        discount: γ or γ^τ; 0 where the task truly ended.
        value: V(h, c), the value before the row under the row's own instruction.
        v_same: V(h', c).
        v_next: V(h', c').
        switched: Whether c' replaced c after the row.
        last: Whether the row is the last of its episode.
        correction: "none", "cut" or "shift".
        gae_lambda: λ.

    Returns:
        Advantages [K, ...] and targets [K, ...]; their difference is `value`.
    """
    _check_shapes(reward=reward, value=value)
    rows = (reward, discount, v_same, v_next, switched, last)
    found = targets(*rows, correction=correction, td_lambda=gae_lambda)
    return found - value, found


def _back_up(xp: Any, rows: tuple[Any, ...], later: Any, correction: str, td_lambda: float) -> Any:
    """Return the target of rows, from the target of the rows after them."""
    reward, discount, v_same, v_next, switched, last = rows
    onward = xp.where(last, v_next, v_next + td_lambda * (later - v_next))
    if correction == "cut":
        onward = xp.where(switched, v_same, onward)
    if correction == "shift":
        onward = xp.where(switched, v_same + (onward - v_next), onward)
    return reward + discount * onward


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and hasattr(value, "__float__")


def _true(flags: Any) -> Any:
    """Return flags as booleans; libraries may hold them as the numbers 0 and 1."""
    return flags != 0 if "bool" not in str(flags.dtype) else flags


def _namespace(array: Any) -> Any:
    """Return the library of an array: numpy, torch, jax.numpy, or another one that follows the array API."""
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    found = sys.modules.get(type(array).__module__.partition(".")[0])
    if hasattr(found, "where") and hasattr(found, "stack"):
        return found
    raise ValueError(f"reward must be an array of numpy, torch or JAX, not {type(array).__name__}")


def _check_shapes(**arrays: Any) -> None:
    """Raise ValueError unless all arrays have the shape of the first, which has at least one row."""
    wanted: tuple[int, ...] | None = None
    for name, array in arrays.items():
        if not hasattr(array, "shape"):
            raise ValueError(f"{name} must be an array, not {type(array).__name__}")
        shape = tuple(array.shape)
        wanted = shape if wanted is None else wanted
        if not shape or not shape[0]:
            raise ValueError(f"{name} must have a row for each step; its shape is {shape}")
        if shape != wanted:
            raise ValueError(f"{name} has shape {shape}, but reward has {wanted}")
