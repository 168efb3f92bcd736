"""Small random semi-MDPs with changing instructions, solved exactly.

Axes: `C` classes of instruction, `S` states, `M` macros. In each tick a running macro moves the state, pays the reward
of the present class, and may end by itself; the class may change. Vectors over (class, state) are flat, `[CS]`, class
first. M_c is the world in which class c lasts forever, with the same interruptions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

CLASSES, STATES, MACROS = 3, 6, 4
GAMMA = 0.95
CHANGE = 0.15
ARRIVALS = ("anytime", "boundary")
OTHERS = (np.ones((CLASSES, CLASSES)) - np.eye(CLASSES)) / (CLASSES - 1)  # [C C] the next class


class Reading(NamedTuple):
    """How a target reads a row after which the class changes from c to c': three factors.

    A factor may also be a vector over classes, [C].
    """

    follow: float  # of the next row's target, which is under c'
    same: float | np.ndarray  # of the bootstrap V(h', c)
    next: float  # of the bootstrap V(h', c')


READINGS = {
    "none": Reading(follow=1, same=0, next=0),
    "shift": Reading(follow=1, same=1, next=-1),
    "cut": Reading(follow=0, same=1, next=0),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class SemiMDP:
    """One world.

    With arrivals `anytime`, a change of class ends the running macro at once. With `boundary`, a change that comes up
    during a macro waits until the macro ends by itself.
    """

    moves: np.ndarray  # [C M S S] a tick of a macro; the present class may matter
    ends: np.ndarray  # [M S] chance that the macro ends by itself on reaching a state
    reward: np.ndarray  # [C M S] of a tick
    policy: np.ndarray  # [C S M]
    arrivals: str
    change: float = CHANGE  # chance per tick that the class changes
    over: float = 0.0  # chance per tick that the episode truly ends
    gamma: float = GAMMA

    def kernels(self) -> Kernels:
        """Return the exact kernels of this world's macro rows."""
        tick = self.gamma * (1 - self.over) * self.moves
        goes_on, ends = 1 - self.ends[:, None, :], self.ends[:, None, :]
        unchanged = 1 - self.change
        if self.arrivals == "anytime":
            running = tick * goes_on * unchanged
            stay = _until(running, tick * ends * unchanged)
            leave = _until(running, tick * self.change)
        else:
            running = tick * goes_on
            stay = _until(running * unchanged, tick * ends * unchanged)
            leave = _until(running, tick * ends) - stay
        gain = _until(running, self.reward[..., None])[..., 0]
        gain, stay, leave = (np.moveaxis(kernel, 1, 2) for kernel in (gain, stay, leave))
        return Kernels(gain=gain, stay=stay, leave=leave)


def _until(step: np.ndarray, finish: np.ndarray) -> np.ndarray:
    """Return the sum over k of step^k finish."""
    return np.linalg.solve(np.eye(STATES) - step, finish)


def draw(rng: np.random.Generator, arrivals: str, over: float = 0.0) -> SemiMDP:
    """Return a random world with a random policy.

    Args:
        rng: The source of random numbers.
        arrivals: When changes of class take effect, one of ARRIVALS.
        over: The chance per tick that the episode truly ends.
    """
    return SemiMDP(
        moves=rng.dirichlet(np.full(STATES, 0.5), size=(CLASSES, MACROS, STATES)),
        ends=rng.uniform(0.1, 0.6, size=(MACROS, STATES)),
        reward=rng.normal(size=(CLASSES, MACROS, STATES)),
        policy=rng.dirichlet(np.ones(MACROS), size=(CLASSES, STATES)),
        arrivals=arrivals,
        over=over,
    )


def worlds(count: int, arrivals: str, seed: int = 0) -> Iterator[SemiMDP]:
    """Yield the worlds of the figures; they are the same for every reading.

    Args:
        count: How many worlds.
        arrivals: When changes of class take effect, one of ARRIVALS.
        seed: The seed of the random numbers.
    """
    for child in np.random.SeedSequence(seed).spawn(count):
        yield draw(np.random.default_rng(child), arrivals)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kernels:
    """What one macro row does in expectation, discounted by γ^τ."""

    gain: np.ndarray  # [C S M] discounted reward of the row
    stay: np.ndarray  # [C S M S] discounted chance to end there with the class unchanged
    leave: np.ndarray  # [C S M S] discounted chance to end there with the class changed

    def under(self, policy: np.ndarray) -> Evaluation:
        """Return the kernels averaged over a policy [C S M]."""
        leave = np.einsum("csm,csmt->cst", policy, self.leave)
        return Evaluation(
            gain=np.einsum("csm,csm->cs", policy, self.gain).ravel(),
            stay=block_diag(*np.einsum("csm,csmt->cst", policy, self.stay)),
            v_same_instruction=block_diag(*leave),
            v_next_instruction=np.einsum("cst,cd->csdt", leave, OTHERS).reshape(
                2 * (CLASSES * STATES,)
            ),
        )

    def values(self, policy: np.ndarray) -> np.ndarray:
        """Return V_c [CS], the value of a policy [C S M] in M_c."""
        e = self.under(policy)
        return np.linalg.solve(np.eye(len(e.gain)) - e.stay - e.v_same_instruction, e.gain)

    def best_values(self) -> np.ndarray:
        """Return V*_c [CS], the best value in M_c, by value iteration."""
        onward, values = self.stay + self.leave, np.zeros((CLASSES, STATES))
        while True:
            better = (self.gain + np.einsum("csmt,ct->csm", onward, values)).max(axis=2)
            if np.abs(better - values).max() < 1e-13 * np.abs(better).max():
                return better.ravel()
            values = better

    def loss(self, policy: np.ndarray) -> float:
        """Return the largest shortfall of a policy against V*_c in any M_c, as a share of the largest V*_c."""
        best = self.best_values()
        return float((best - self.values(policy)).max() / np.abs(best).max())

    def macro_values(self, reading: Reading, values: np.ndarray) -> np.ndarray:
        """Return Q [C S M], the one-step expected target of each macro, with `values` [CS] as the bootstrap."""
        own = values.reshape(CLASSES, STATES)
        same = np.broadcast_to(reading.same, CLASSES)[:, None]
        after_change = same * own + (reading.follow + reading.next) * (OTHERS @ own)
        return (
            self.gain
            + np.einsum("csmt,ct->csm", self.stay, own)
            + np.einsum("csmt,ct->csm", self.leave, after_change)
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The kernels under a policy, as matrices on vectors over (class, state)."""

    gain: np.ndarray  # [CS]
    stay: np.ndarray  # [CS CS] V(h', c) of rows without a change
    v_same_instruction: np.ndarray  # [CS CS] V(h', c) of rows with a change
    v_next_instruction: np.ndarray  # [CS CS] V(h', c') of rows with a change

    def parts(self, reading: Reading) -> tuple[np.ndarray, np.ndarray]:
        """Return two matrices [CS CS]: where a target continues into the next row, and where it bootstraps."""
        same = np.repeat(np.broadcast_to(reading.same, CLASSES), STATES)[:, None]
        follow = self.stay + reading.follow * self.v_next_instruction
        return follow, same * self.v_same_instruction + reading.next * self.v_next_instruction

    def expected_target(self, reading: Reading, n_steps: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the expected n-step target as an affine map of the bootstrap table: matrix and offset."""
        follow, direct = self.parts(reading)
        eye = np.eye(len(self.gain))
        if n_steps == np.inf:
            return np.linalg.solve(eye - follow, direct), np.linalg.solve(eye - follow, self.gain)
        matrix, offset = eye, 0 * self.gain
        for _ in range(int(n_steps)):
            matrix, offset = follow @ matrix + direct, follow @ offset + self.gain
        return matrix, offset

    def fixed_point(self, reading: Reading, n_steps: float) -> np.ndarray:
        """Return the table [CS] that equals its own expected targets."""
        matrix, offset = self.expected_target(reading, n_steps)
        return np.linalg.solve(np.eye(len(offset)) - matrix, offset)


def iterate_policy(kernels: Kernels, reading: Reading, most: int = 100) -> np.ndarray:
    """Return the policy [C S M] of exact policy iteration: the reading's fixed point, then the greedy policy.

    Args:
        kernels: The world.
        reading: The target whose fixed point evaluates a policy.
        most: The largest number of iterations.
    """
    choice = np.zeros((CLASSES, STATES), int)
    for _ in range(most):
        policy = np.eye(MACROS)[choice]
        q = kernels.macro_values(reading, kernels.under(policy).fixed_point(reading, 1))
        better = q.max(axis=2) > np.take_along_axis(q, choice[..., None], 2)[..., 0] + 1e-10
        if not better.any():
            break
        choice = np.where(better, q.argmax(axis=2), choice)
    return np.eye(MACROS)[choice]
