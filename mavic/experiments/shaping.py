"""The correction is not potential-based shaping: shown exactly, on random semi-MDPs with changing instructions.

Potential-based shaping pays γ^τ Φ(x′) − Φ(x) for some fixed potential Φ over states x, here pairs of class and state.
It leaves every optimal policy as it was, so with naive targets it ends where naive ends. The correction pays
γ^τ (V(s′, c) − V(s′, c′)) where the class changes from c to c′, and nothing elsewhere.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from mavic.experiments import semi_mdp as tabular
from mavic.experiments.semi_mdp import CLASSES, STATES, Rows

OPTIMAL = 1e-9
PLACES = CLASSES * STATES


def correction(kernels: Rows, values: np.ndarray) -> np.ndarray:
    """Return the expected pay of the correction for each macro row, [C S M]. `values` [CS] are V."""
    own = values.reshape(CLASSES, STATES)
    return np.einsum("csmt,ct->csm", kernels.leave, own - tabular.OTHERS @ own)


def potential_pay(kernels: Rows) -> np.ndarray:
    """Return [C S M, CS], the matrix that turns a potential into the expected pay of its shaping."""
    columns = []
    for unit in np.eye(PLACES):
        phi = unit.reshape(CLASSES, STATES)
        after = np.einsum("csmt,ct->csm", kernels.stay, phi)
        after += np.einsum("csmt,ct->csm", kernels.leave, tabular.OTHERS @ phi)
        columns.append((after - phi[..., None]).ravel())
    return np.stack(columns, axis=1)


def closest_potential(kernels: Rows, pay: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the pay [C S M] of the potential that comes nearest to `pay`, and the share of `pay` that it misses."""
    matrix = potential_pay(kernels)
    phi = np.linalg.lstsq(matrix, pay.ravel(), rcond=None)[0]
    found = (matrix @ phi).reshape(pay.shape)
    return found, float(np.linalg.norm(pay - found) / np.linalg.norm(pay))


def compare(world: tabular.SemiMDP) -> dict[str, Any]:
    """Return what one world shows: what no potential explains, and how far each way ends from the best in any M_c."""
    kernels = tabular.rows(world)
    pay = correction(kernels, tabular.single_values(kernels, world.policy))
    shaped_pay, missed = closest_potential(kernels, pay)
    naive = tabular.iterate_policy(kernels, "none")
    shaped = tabular.iterate_policy(
        dataclasses.replace(kernels, gain=kernels.gain + shaped_pay), "none"
    )
    ended = tabular.iterate_policy(kernels, "cut")
    later = correction(kernels, tabular.single_values(kernels, ended))
    return {
        "missed": missed,
        "moved": float(np.linalg.norm(later - pay) / np.linalg.norm(pay)),
        "same_policy": bool((naive == shaped).all()),
        "naive": tabular.loss(kernels, naive),
        "naive + the closest potential": tabular.loss(kernels, shaped),
        "correction": tabular.loss(kernels, ended),
    }


def figures(worlds: int, arrivals: str) -> dict[str, Any]:
    """Return the figures over many worlds, plain."""
    found = [compare(world) for world in tabular.worlds(worlds, arrivals)]
    ways = ("naive", "naive + the closest potential", "correction")
    losses = {way: np.array([one[way] for one in found]) for way in ways}
    # Losses below OPTIMAL are rounding, which differs between machines.
    losses = {way: np.where(loss > OPTIMAL, loss, 0.0) for way, loss in losses.items()}
    missed = np.array([one["missed"] for one in found])
    moved = np.array([one["moved"] for one in found])
    return {
        "worlds": worlds,
        "missed_median": float(np.median(missed)),
        "missed_min": float(missed.min()),
        "moved_median": float(np.median(moved)),
        "same_policy_as_naive": int(sum(one["same_policy"] for one in found)),
        "suboptimal": {way: int((loss > 0).sum()) for way, loss in losses.items()},
        "worst_loss": {way: float(loss.max()) for way, loss in losses.items()},
    }
