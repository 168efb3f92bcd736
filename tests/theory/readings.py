"""The readings of the paper, right and wrong, and how far each is from V_c."""

from __future__ import annotations

import dataclasses

import numpy as np

from mavic.theory import semi_mdp
from mavic.theory.semi_mdp import CLASSES, STATES, Reading, SemiMDP

READINGS = semi_mdp.READINGS | {
    # Paper, the return equation alone: r + gamma^tau (V_c - V_c') at a change.
    "literal": Reading(follow=0, same=1, next=-1),
    # Algorithm 1 line 12 has corrected the reward, and the return equation does so again.
    "double": Reading(follow=0, same=2, next=-2),
    # Paper, appendix on Q: no bootstrap when an instruction ends (class 0 is none).
    "appendix": Reading(follow=0, same=(np.arange(CLASSES) == 0) * 1.0, next=0),
}
FOREIGN = np.kron(1 - np.eye(CLASSES), np.ones((STATES, STATES))).astype(bool)  # c row, c' column


def uninterrupted(world: SemiMDP) -> SemiMDP:
    """The same world without changes of instruction, and so without interruptions."""
    return dataclasses.replace(world, change=0.0)


def _evaluation(world: SemiMDP) -> semi_mdp.Evaluation:
    return world.kernels().under(world.policy)


def deviation(world: SemiMDP, reading: str, n_steps: float) -> float:
    """Largest deviation of a reading's fixed point from V_c, as a share of the largest |V_c|."""
    truth = world.kernels().values(world.policy)
    found = _evaluation(world).fixed_point(READINGS[reading], n_steps)
    return float(np.abs(found - truth).max() / np.abs(truth).max())


def spectral_radius(world: SemiMDP, reading: str, n_steps: float) -> float:
    """Spectral radius of the expected update. Above 1, updates diverge even if each target is fitted exactly."""
    matrix, _ = _evaluation(world).expected_target(READINGS[reading], n_steps)
    return float(np.abs(np.linalg.eigvals(matrix)).max())


def leak_of_errors(world: SemiMDP, reading: str, n_steps: float) -> float:
    """Largest change of a class's expected target per unit error in the other classes' values."""
    matrix, _ = _evaluation(world).expected_target(READINGS[reading], n_steps)
    return float(np.abs(matrix * FOREIGN).sum(axis=1).max())


def leak_of_worth(world: SemiMDP, reading: str, n_steps: float) -> float:
    """Largest change of a class's fixed point per unit change of the other classes' V_c."""
    e = _evaluation(world)
    eye = np.eye(len(e.gain))
    matrix, per_gain = dataclasses.replace(e, gain=eye).expected_target(READINGS[reading], n_steps)
    per_worth = np.linalg.solve(eye - matrix, per_gain) @ (eye - e.stay - e.v_same_instruction)
    return float(np.abs(per_worth * FOREIGN).sum(axis=1).max())
