"""The targets of every method: one recursion over macro rows.

A macro of length tau is an ordinary step with discount gamma**tau (0 at a true end); a change of
instruction is an ordinary step whose future is read from another place:

    G_k = reward_k + discount_k * onward_k
    onward_k = following_k                                                where c' = c
             = following_k                                 `none`         where c' != c
             = V(h', c) + (following_k - V(h', c'))        `shift`
             = V(h', c)                                    `cut`

`following` is V(h', c'), or the target of the next row where the return goes on, or `td_lambda` of the
way from the one to the other (the lambda of lambda-returns: nearer to 0 less noise, nearer to 1 less
trust in the critic). `shift` and `cut` both have the value under one lasting instruction as their
fixed point and `none` has not (`tests/theory/`, `docs/theory.md`); only `cut` reads nothing that
happened under c'.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import lax

from mavic.types import Array, record


@record
class Correction:
    """What a target does where the instruction changes; numbers from 0 to 1, so methods can be vmapped."""

    cut: float | Array  # the return stops at a change and bootstraps V(h', c)
    shift: float | Array  # the return goes on past it, moved by V(h', c) - V(h', c')


CORRECTIONS = {
    "none": Correction(cut=0.0, shift=0.0),
    "shift": Correction(cut=0.0, shift=1.0),  # paper, Algorithm 1 line 12
    "cut": Correction(cut=1.0, shift=0.0),
}


def targets(
    *,
    reward: Array,
    discount: Array,
    v_same_instruction: Array,
    v_next_instruction: Array,
    switched: Array,
    last: Array,
    correction: Correction,
    n_steps: float,
    td_lambda: float | Array = 1.0,
) -> Array:
    """The n-step target G of every macro row; all arrays `[K, ...]`, time first.

    `reward` is the discounted reward gathered during the row, `discount` gamma**tau and 0 at a true
    end, which so overrides a change of instruction in the same tick. `v_same_instruction` is V(h', c), the value
    after the row under the row's own instruction, `v_next_instruction` V(h', c') under the next row's;
    `switched` says that c' replaced c: by the clock or a person, not because what was asked came true
    (B12). A `last` row of an episode, and the final row of the arrays, bootstraps
    and never reads the row below it, so episodes may follow one another along K and padding may
    follow them. `n_steps` counts macro rows: a static whole number >= 1, or `math.inf`. With `inf`
    and `CORRECTIONS["none"]` the target is the realised return. No gradient is stopped here.
    """
    if not (n_steps == math.inf or (n_steps >= 1 and n_steps == int(n_steps))):
        raise ValueError(f"n_steps must be a whole number >= 1 or math.inf, not {n_steps}")
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
