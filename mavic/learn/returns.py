"""The targets of every method: one recursion over macro transitions.

A macro of length tau is an ordinary step with discount gamma**tau (0 at a true end). A change of instruction is an
ordinary step with another bootstrap:

    G_k = reward_k + discount_k * onward_k
    onward_k = following_k                                                where c' = c
             = following_k                                 `none`         where c' != c
             = V(h', c) + (following_k - V(h', c'))        `shift`        where c' != c
             = V(h', c)                                    `cut`          where c' != c

`following` is V(h', c') + td_lambda * (G_{k+1} - V(h', c')) where the return goes on, else V(h', c'). The fixed point
of `shift` and of `cut` is the value under one instruction that never changes. That of `none` is not
(`tests/theory/`, `docs/record/theory.md`). Only the target of `cut` is independent of what happened under c'.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import lax

from mavic.types import Array, Bool, Float, assert_rank, record


@record
class Correction:
    """How a target treats a change of instruction. The fields are numbers for `vmap`.

    If either is above 0, the target bootstraps V(h', c) at a change. `shift` is the share of the later return that it
    adds, minus V(h', c').
    """

    cut: float | Array  # 1 or 0
    shift: float | Array  # from 0 to 1


CORRECTIONS = {
    "none": Correction(cut=0.0, shift=0.0),
    "shift": Correction(cut=0.0, shift=1.0),  # paper, Algorithm 1 line 12
    "cut": Correction(cut=1.0, shift=0.0),
}


def targets(
    *,
    reward: Float[Array, " K *batch"],
    discount: Float[Array, " K *batch"],
    v_same_instruction: Float[Array, " K *batch"],
    v_next_instruction: Float[Array, " K *batch"],
    switched: Bool[Array, " K *batch"],
    last: Bool[Array, " K *batch"],
    correction: Correction,
    n_steps: float,
    td_lambda: float | Float[Array, ""] = 1.0,
) -> Float[Array, " K *batch"]:
    """Return the n-step target G of every macro transition.

    All arrays have the same shape [K, ...], time first. The last row of an episode and the final row of the arrays
    bootstrap and never read the row below. So episodes may follow one another along K, and padding may follow them.
    With infinite `n_steps` and `CORRECTIONS["none"]` the target is the realised return. No gradient is stopped here.

    Args:
        reward: The discounted reward during the macro.
        discount: gamma**tau, or 0 at a true end. That 0 overrides a change of instruction in the same tick.
        v_same_instruction: V(h', c), the value after the macro under its own instruction.
        v_next_instruction: V(h', c'), the value after the macro under the instruction of the next row.
        switched: Whether c' replaced c. False where an event fulfilled or broke the instruction (B12).
        last: Whether the row is the last of its episode.
        correction: How the target treats a change of instruction.
        n_steps: The number of macro transitions: a static whole number >= 1, or `math.inf`.
        td_lambda: The share of the return that goes on; the rest bootstraps.

    Raises:
        ValueError: `n_steps` is neither.
    """
    if not (n_steps == math.inf or (n_steps >= 1 and n_steps == int(n_steps))):
        raise ValueError(f"n_steps must be a whole number >= 1 or math.inf, not {n_steps}")
    assert_rank(
        "K" + " batch" * (reward.ndim - 1),
        reward=reward,
        discount=discount,
        v_same_instruction=v_same_instruction,
        v_next_instruction=v_next_instruction,
        switched=switched,
        last=last,
    )
    rows = reward.shape[0]
    last = jnp.asarray(last).at[-1].set(True)
    corrected = jnp.asarray(switched) & (correction.cut + correction.shift > 0)

    def back_up(
        following, reward, discount, v_same_instruction, v_next_instruction, corrected, last
    ):
        following = jnp.where(
            last,
            v_next_instruction,
            v_next_instruction + td_lambda * (following - v_next_instruction),
        )
        moved = v_same_instruction + correction.shift * (following - v_next_instruction)
        return reward + discount * jnp.where(corrected, moved, following)

    parts = (reward, discount, v_same_instruction, v_next_instruction, corrected, last)
    target = back_up(v_next_instruction, *parts)
    if n_steps < rows:
        for _ in range(int(n_steps) - 1):
            target = back_up(jnp.roll(target, -1, axis=0), *parts)
        return target

    def step(following, row):
        target = back_up(following, *row)
        return target, target

    return lax.scan(step, jnp.zeros_like(target[-1]), parts, reverse=True)[1]
