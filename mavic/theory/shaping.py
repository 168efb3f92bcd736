"""The correction is not potential-based shaping: shown exactly, on random semi-MDPs with changing instructions.

Potential-based shaping pays γ^τ Φ(x′) − Φ(x) for some fixed potential Φ over states x, here pairs of class and state.
It leaves every optimal policy as it was, so with naive targets it ends where naive ends. The correction pays
γ^τ (V(s′, c) − V(s′, c′)) where the class changes from c to c′, and 0 elsewhere.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from mavic.theory.semi_mdp import (
    CLASSES,
    OTHERS,
    READINGS,
    STATES,
    Kernels,
    SemiMDP,
    iterate_policy,
    worlds,
)

OPTIMAL = 1e-9
PLACES = CLASSES * STATES


def _correction(kernels: Kernels, values: np.ndarray) -> np.ndarray:
    """Return the expected pay of the correction for each macro row, [C S M]. `values` [CS] are V."""
    own = values.reshape(CLASSES, STATES)
    return np.einsum("csmt,ct->csm", kernels.leave, own - OTHERS @ own)


def _potential_pay(kernels: Kernels) -> np.ndarray:
    """Return [C S M, CS], the matrix that turns a potential into the expected pay of its shaping."""
    columns = []
    for unit in np.eye(PLACES):
        phi = unit.reshape(CLASSES, STATES)
        after = np.einsum("csmt,ct->csm", kernels.stay, phi)
        after += np.einsum("csmt,ct->csm", kernels.leave, OTHERS @ phi)
        columns.append((after - phi[..., None]).ravel())
    return np.stack(columns, axis=1)


def _closest_potential(kernels: Kernels, pay: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the pay [C S M] of the potential that comes nearest to `pay`, and the share of `pay` that it misses."""
    matrix = _potential_pay(kernels)
    phi = np.linalg.lstsq(matrix, pay.ravel(), rcond=None)[0]
    found = (matrix @ phi).reshape(pay.shape)
    return found, float(np.linalg.norm(pay - found) / np.linalg.norm(pay))


def _compare(world: SemiMDP) -> dict[str, Any]:
    """Return the figures of one world.

    `missed` is the share of the correction that the closest potential misses. `moved` is by how much the correction
    changes from the world's policy to the final one. `same_policy` says whether naive targets end in the same policy
    with that potential. The others say how far each way ends from the best in any M_c.
    """
    kernels = world.kernels()
    pay = _correction(kernels, kernels.values(world.policy))
    shaped_pay, missed = _closest_potential(kernels, pay)
    naive = iterate_policy(kernels, READINGS["none"])
    shaped = iterate_policy(
        dataclasses.replace(kernels, gain=kernels.gain + shaped_pay), READINGS["none"]
    )
    ended = iterate_policy(kernels, READINGS["cut"])
    later = _correction(kernels, kernels.values(ended))
    return {
        "missed": missed,
        "moved": float(np.linalg.norm(later - pay) / np.linalg.norm(pay)),
        "same_policy": bool((naive == shaped).all()),
        "naive": kernels.loss(naive),
        "naive + the closest potential": kernels.loss(shaped),
        "correction": kernels.loss(ended),
    }


def figures(count: int, arrivals: str) -> dict[str, Any]:
    """Return the figures over `count` worlds as plain numbers. `arrivals` is one of `semi_mdp.ARRIVALS`."""
    found = [_compare(world) for world in worlds(count, arrivals)]
    ways = ("naive", "naive + the closest potential", "correction")
    losses = {way: np.array([one[way] for one in found]) for way in ways}
    # Losses below OPTIMAL are rounding, which differs between machines.
    losses = {way: np.where(loss > OPTIMAL, loss, 0.0) for way, loss in losses.items()}
    missed = np.array([one["missed"] for one in found])
    moved = np.array([one["moved"] for one in found])
    return {
        "worlds": count,
        "missed_median": float(np.median(missed)),
        "missed_min": float(missed.min()),
        "moved_median": float(np.median(moved)),
        "same_policy_as_naive": int(sum(one["same_policy"] for one in found)),
        "suboptimal": {way: int((loss > 0).sum()) for way, loss in losses.items()},
        "worst_loss": {way: float(loss.max()) for way, loss in losses.items()},
    }
