"""Small random semi-MDPs with changing instructions, solved exactly, and sampled.

Classes of instruction `C`, states `S`, macros `M`. In each tick a running macro moves the state,
pays the reward of the present class, and may end by itself; the class may change. Vectors over
(class, state) are flat, `[C*S]`, class first. Nothing here is random but what a generator draws.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from scipy.linalg import block_diag

CLASSES, STATES, MACROS = 3, 6, 4
GAMMA = 0.95
CHANGE = 0.15
ARRIVALS = ("anytime", "boundary")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SemiMDP:
    """One world. `anytime`: a change of class ends the running macro at once; `boundary`: a change
    that comes up during a macro waits until the macro ends by itself."""

    moves: np.ndarray  # [C M S S] a tick of a macro; the present class may matter
    ends: np.ndarray  # [M S] chance that the macro ends by itself on reaching a state
    reward: np.ndarray  # [C M S] of a tick
    policy: np.ndarray  # [C S M]
    arrivals: str
    change: float = CHANGE  # chance a tick that the class changes
    over: float = 0.0  # chance a tick that the episode truly ends
    gamma: float = GAMMA


def draw(rng: np.random.Generator, arrivals: str, over: float = 0.0) -> SemiMDP:
    """A random world and a random policy."""
    return SemiMDP(
        moves=rng.dirichlet(np.full(STATES, 0.5), size=(CLASSES, MACROS, STATES)),
        ends=rng.uniform(0.1, 0.6, size=(MACROS, STATES)),
        reward=rng.normal(size=(CLASSES, MACROS, STATES)),
        policy=rng.dirichlet(np.ones(MACROS), size=(CLASSES, STATES)),
        arrivals=arrivals,
        over=over,
    )


def worlds(count: int, arrivals: str, seed: int = 0) -> Iterator[SemiMDP]:
    """The instances of the figures: the same for every reading."""
    for child in np.random.SeedSequence(seed).spawn(count):
        yield draw(np.random.default_rng(child), arrivals)


# --- kernels of one macro row, discounted by gamma**tau -------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rows:
    """What one macro row does, in expectation."""

    gain: np.ndarray  # [C S M] discounted reward gathered
    stay: np.ndarray  # [C S M S] discounted chance to end there with the class unchanged
    leave: np.ndarray  # [C S M S] ... with the class changed


def rows(world: SemiMDP) -> Rows:
    """The exact kernels of a world's macro rows."""
    tick = world.gamma * (1 - world.over) * world.moves
    goes_on, ends = 1 - world.ends[:, None, :], world.ends[:, None, :]
    unchanged = 1 - world.change
    eye = np.eye(STATES)

    def until(step, finish):
        return np.linalg.solve(eye - step, finish)

    if world.arrivals == "anytime":
        running = tick * goes_on * unchanged
        stay = until(running, tick * ends * unchanged)
        leave = until(running, tick * world.change)
    else:
        running = tick * goes_on
        stay = until(running * unchanged, tick * ends * unchanged)
        leave = until(running, tick * ends) - stay
    gain = until(running, world.reward[..., None])[..., 0]
    by_state = lambda kernel: np.moveaxis(kernel, 1, 2)  # noqa: E731
    return Rows(gain=by_state(gain), stay=by_state(stay), leave=by_state(leave))


def uninterrupted(world: SemiMDP) -> SemiMDP:
    """The same world if its instruction never changed and no macro was ever interrupted."""
    return dataclasses.replace(world, change=0.0)


OTHERS = (np.ones((CLASSES, CLASSES)) - np.eye(CLASSES)) / (CLASSES - 1)  # [C C] who comes next


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The same kernels under a policy, as matrices on vectors over (class, state)."""

    gain: np.ndarray  # [CS]
    stay: np.ndarray  # [CS CS] V(h', c) of rows without a change
    v_same_instruction: np.ndarray  # [CS CS] V(h', c) of rows with a change
    v_next_instruction: np.ndarray  # [CS CS] V(h', c') of rows with a change


def evaluate(rows: Rows, policy: np.ndarray) -> Evaluation:
    """Average the row kernels over a policy `[C S M]`."""
    leave = np.einsum("csm,csmt->cst", policy, rows.leave)
    return Evaluation(
        gain=np.einsum("csm,csm->cs", policy, rows.gain).ravel(),
        stay=block_diag(*np.einsum("csm,csmt->cst", policy, rows.stay)),
        v_same_instruction=block_diag(*leave),
        v_next_instruction=np.einsum("cst,cd->csdt", leave, OTHERS).reshape(
            2 * (CLASSES * STATES,)
        ),
    )


def single_values(rows: Rows, policy: np.ndarray) -> np.ndarray:
    """V_c, the value in M_c, with the same interruptions but the instruction lasting. `[CS]`"""
    e = evaluate(rows, policy)
    return np.linalg.solve(np.eye(len(e.gain)) - e.stay - e.v_same_instruction, e.gain)


# --- readings of the paper, as expected targets ---------------------------------------------------


def _no_end_of_instruction(e: Evaluation) -> np.ndarray:
    v_same_instruction = e.v_same_instruction.copy()
    v_same_instruction[STATES:] = 0
    return v_same_instruction


# Where a row's return goes on into the next row, and where it is bootstrapped at once.
READINGS = {
    "none": lambda e: (e.stay + e.v_next_instruction, 0 * e.v_same_instruction),
    "shift": lambda e: (e.stay + e.v_next_instruction, e.v_same_instruction - e.v_next_instruction),
    "cut": lambda e: (e.stay, e.v_same_instruction),
    # Paper, the return equation alone: r + gamma^tau (V_c - V_c') at a change.
    "literal": lambda e: (e.stay, e.v_same_instruction - e.v_next_instruction),
    # Algorithm 1 line 12 has corrected the reward, and the return equation does so again.
    "double": lambda e: (e.stay, 2 * (e.v_same_instruction - e.v_next_instruction)),
    # Paper, appendix on Q: nothing follows the end of an instruction (class 0 is none).
    "appendix": lambda e: (e.stay, _no_end_of_instruction(e)),
}


def expected_target(e: Evaluation, reading: str, n_steps: float) -> tuple[np.ndarray, np.ndarray]:
    """The expected n-step target as an affine map of the bootstrap table: `(matrix, offset)`."""
    follow, direct = READINGS[reading](e)
    eye = np.eye(len(e.gain))
    if n_steps == np.inf:
        return np.linalg.solve(eye - follow, direct), np.linalg.solve(eye - follow, e.gain)
    matrix, offset = eye, 0 * e.gain
    for _ in range(int(n_steps)):
        matrix, offset = follow @ matrix + direct, follow @ offset + e.gain
    return matrix, offset


def fixed_point(e: Evaluation, reading: str, n_steps: float) -> np.ndarray:
    """The table that its own expected targets give back."""
    matrix, offset = expected_target(e, reading, n_steps)
    return np.linalg.solve(np.eye(len(offset)) - matrix, offset)


def deviation(world: SemiMDP, reading: str, n_steps: float) -> float:
    """Largest deviation of a reading's fixed point from V_c, as a share of the largest |V_c|."""
    kernels = rows(world)
    truth = single_values(kernels, world.policy)
    found = fixed_point(evaluate(kernels, world.policy), reading, n_steps)
    return float(np.abs(found - truth).max() / np.abs(truth).max())


def spectral_radius(world: SemiMDP, reading: str, n_steps: float) -> float:
    """Above 1, the updates diverge however well each target is fitted."""
    matrix, _ = expected_target(evaluate(rows(world), world.policy), reading, n_steps)
    return float(np.abs(np.linalg.eigvals(matrix)).max())


FOREIGN = np.kron(1 - np.eye(CLASSES), np.ones((STATES, STATES))).astype(bool)  # c row, c' column


def leak_of_errors(world: SemiMDP, reading: str, n_steps: float) -> float:
    """Largest change of a class's expected target per unit error in the other classes' values."""
    matrix, _ = expected_target(evaluate(rows(world), world.policy), reading, n_steps)
    return float(np.abs(matrix * FOREIGN).sum(axis=1).max())


def leak_of_worth(world: SemiMDP, reading: str, n_steps: float) -> float:
    """Largest change of a class's fixed point per unit change of the other classes' V_c."""
    e = evaluate(rows(world), world.policy)
    eye = np.eye(len(e.gain))
    matrix, per_gain = expected_target(dataclasses.replace(e, gain=eye), reading, n_steps)
    per_worth = np.linalg.solve(eye - matrix, per_gain) @ (eye - e.stay - e.v_same_instruction)
    return float(np.abs(per_worth * FOREIGN).sum(axis=1).max())


# --- Theorem 1 ------------------------------------------------------------------------------------


def macro_values(kernels: Rows, reading: str, values: np.ndarray) -> np.ndarray:
    """Q of each macro: the reading's one-step expected target. `[C S M]`"""
    own = values.reshape(CLASSES, STATES)
    v_next_instruction = OTHERS @ own
    after_change = {
        "none": v_next_instruction,
        "shift": own,
        "cut": own,
        "literal": own - v_next_instruction,
        "double": 2 * (own - v_next_instruction),
        "appendix": own * (np.arange(CLASSES) == 0)[:, None],
    }[reading]
    return (
        kernels.gain
        + np.einsum("csmt,ct->csm", kernels.stay, own)
        + np.einsum("csmt,ct->csm", kernels.leave, after_change)
    )


def iterate_policy(kernels: Rows, reading: str, most: int = 100) -> np.ndarray:
    """Exact policy iteration under a reading: its fixed point, then the greedy policy. `[C S M]`"""
    choice = np.zeros((CLASSES, STATES), int)
    for _ in range(most):
        policy = np.eye(MACROS)[choice]
        q = macro_values(kernels, reading, fixed_point(evaluate(kernels, policy), reading, 1))
        better = q.max(axis=2) > np.take_along_axis(q, choice[..., None], 2)[..., 0] + 1e-10
        if not better.any():
            break
        choice = np.where(better, q.argmax(axis=2), choice)
    return np.eye(MACROS)[choice]


def best_values(kernels: Rows) -> np.ndarray:
    """V*_c, the best that can be done in M_c, by value iteration. `[CS]`"""
    onward, values = kernels.stay + kernels.leave, np.zeros((CLASSES, STATES))
    while True:
        better = (kernels.gain + np.einsum("csmt,ct->csm", onward, values)).max(axis=2)
        if np.abs(better - values).max() < 1e-13 * np.abs(better).max():
            return better.ravel()
        values = better


def loss(kernels: Rows, policy: np.ndarray) -> float:
    """Largest shortfall of a policy against the best in any M_c, as a share of the largest V*_c."""
    best = best_values(kernels)
    return float((best - single_values(kernels, policy)).max() / np.abs(best).max())


# --- sampling -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sample:
    """Macro rows of many lanes, `[K L]`; every `horizon` rows all lanes are cut by the horizon.

    Episodes that truly end are followed by another at once. `place` and `place_after` are indices
    into vectors over (class, state); `place_after` has the class that comes next, `place_kept`
    the row's own.
    """

    place: np.ndarray
    place_kept: np.ndarray
    place_after: np.ndarray
    reward: np.ndarray
    length: np.ndarray
    switched: np.ndarray
    last: np.ndarray
    over: np.ndarray
    ticks: np.ndarray  # [K J L] reward of each tick, 0 after the macro's end

    def columns(self, values: np.ndarray, gamma: float) -> dict[str, np.ndarray]:
        """What `returns.targets` reads, with a table of values as the critic."""
        return {
            "reward": self.reward,
            "discount": np.where(self.over, 0.0, gamma**self.length),
            "v_same_instruction": values[self.place_kept],
            "v_next_instruction": values[self.place_after],
            "switched": self.switched,
            "last": self.last,
        }


def _pick(rng: np.random.Generator, chances: np.ndarray) -> np.ndarray:
    """One index per row of `[L X]` chances."""
    ladder = np.cumsum(chances, axis=1)
    return (rng.random((len(chances), 1)) * ladder[:, -1:] > ladder).sum(axis=1)


def sample(
    world: SemiMDP, rng: np.random.Generator, *, lanes: int, blocks: int, horizon: int
) -> Sample:
    """Run the world tick by tick under its policy."""
    found: dict[str, list[np.ndarray]] = {}

    def note(**columns):
        for name, column in columns.items():
            found.setdefault(name, []).append(column)

    fresh_class = lambda: rng.integers(CLASSES, size=lanes)  # noqa: E731
    fresh_state = lambda: rng.integers(STATES, size=lanes)  # noqa: E731
    kind, state = fresh_class(), fresh_state()
    for k in range(blocks * horizon):
        cut = (k + 1) % horizon == 0
        begun = kind * STATES + state
        macro = _pick(rng, world.policy[kind, state])
        running, over, asked = np.ones(lanes, bool), np.zeros(lanes, bool), np.zeros(lanes, bool)
        reward, length, ticks = np.zeros(lanes), np.zeros(lanes, int), []
        while running.any():
            paid = np.where(running, world.reward[kind, macro, state], 0.0)
            ticks.append(paid)
            reward += world.gamma**length * paid
            length += running
            state = np.where(running, _pick(rng, world.moves[kind, macro, state]), state)
            ended = rng.random(lanes) < world.ends[macro, state]
            over |= running & (rng.random(lanes) < world.over)
            asked |= running & (rng.random(lanes) < world.change)
            if world.arrivals == "anytime":
                ended |= asked
            running &= ~(ended | over)
        switched = asked & ~over & (not cut)
        other = (kind + rng.integers(1, CLASSES, size=lanes)) % CLASSES
        after = np.where(switched, other, kind)
        last = over | cut
        note(
            place=begun,
            place_kept=kind * STATES + state,
            place_after=after * STATES + state,
            reward=reward,
            length=length,
            switched=switched,
            last=last,
            over=over,
            ticks=np.stack(ticks),
        )
        kind = np.where(last, fresh_class(), after)
        state = np.where(last, fresh_state(), state)
    longest = max(len(t) for t in found["ticks"])
    padded = [np.pad(t, ((0, longest - len(t)), (0, 0))) for t in found.pop("ticks")]
    return Sample(ticks=np.stack(padded), **{name: np.stack(c) for name, c in found.items()})
