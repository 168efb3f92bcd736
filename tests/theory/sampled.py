"""Sampled rows of a semi-MDP, and `mavic.learn.returns` on them, in double precision, against exact targets."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

import jax
import numpy as np
from readings import READINGS

from mavic.learn.returns import CORRECTIONS, targets
from mavic.theory.semi_mdp import CLASSES, STATES, Evaluation, SemiMDP, draw

HORIZON = 12  # rows until all lanes are cut
Targets = Callable[..., np.ndarray]


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


def sample_rows(
    world: SemiMDP, rng: np.random.Generator, *, lanes: int, blocks: int, horizon: int
) -> Sample:
    """Run the world tick by tick under its policy."""
    found: dict[str, list[np.ndarray]] = {}

    def note(**columns):
        for name, column in columns.items():
            found.setdefault(name, []).append(column)

    def fresh_class():
        return rng.integers(CLASSES, size=lanes)

    def fresh_state():
        return rng.integers(STATES, size=lanes)

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


@functools.cache
def world_and_sample(arrivals: str, over: float = 0.03) -> tuple[SemiMDP, Sample]:
    """One world with true ends and horizons, and enough of its rows to see a wrong target."""
    rng = np.random.default_rng(7)
    world = draw(rng, arrivals, over=over)
    return world, sample_rows(world, rng, lanes=4000, blocks=2, horizon=HORIZON)


@functools.partial(jax.jit, static_argnames=("correction", "n_steps"))
def _jitted(columns, correction, n_steps):
    return targets(**columns, correction=CORRECTIONS[correction], n_steps=n_steps)


def ours(columns: dict, correction: str, n_steps: float) -> np.ndarray:
    """The library's targets."""
    with jax.enable_x64(True):
        return np.asarray(_jitted(columns, correction, n_steps))


def expected(
    e: Evaluation, reading: str, n_steps: float, remaining: int, values: np.ndarray
) -> np.ndarray:
    """Exact mean target of a row with `remaining` rows, itself included, until the horizon cuts."""
    follow, direct = e.parts(READINGS[reading])
    target, applied = values, n_steps
    if n_steps >= remaining:
        target, applied = e.gain + (e.stay + e.v_same_instruction) @ values, remaining - 1
    for _ in range(int(applied)):
        target = e.gain + follow @ target + direct @ values
    return target


def surprise(
    arrivals: str,
    reading: str,
    n_steps: float,
    columns: Callable[..., dict] | None = None,
    made_by: Targets = ours,
) -> float:
    """Largest distance of a (class, state)'s mean target from the exact one, in standard errors."""
    world, sample = world_and_sample(arrivals)
    # Any table will do as the critic; classes far apart make a confusion of them visible.
    places = CLASSES * STATES
    values = np.random.default_rng(1).normal(size=places) + np.repeat([10.0, -10.0, 30.0], 6)
    e = world.kernels().under(world.policy)
    right = sample.columns(values, world.gamma)
    got = made_by(columns(right, sample, world) if columns else right, reading, n_steps)
    rows = len(got)
    exact = np.stack(
        [expected(e, reading, n_steps, HORIZON - k % HORIZON, values) for k in range(rows)]
    )
    rest = got - np.take_along_axis(exact, sample.place, axis=1)
    worst = 0.0
    for place in range(places):
        by_lane = np.where(sample.place == place, rest, 0.0).sum(axis=0)  # lanes are independent
        worst = max(worst, abs(by_lane.sum()) / math.sqrt((by_lane**2).sum()))
    return worst


def learn_table(
    arrivals: str, n_steps: float, made_by: Callable[..., np.ndarray], over: float = 0.03
) -> float:
    """Tabular learning from a sample; deviation from V_c as a share of the largest |V_c|."""
    world, sample = world_and_sample(arrivals, over)
    truth = world.kernels().values(world.policy)
    place = sample.place.ravel()
    count = np.bincount(place, minlength=len(truth))
    values = np.zeros_like(truth)
    for _ in range(150):
        got = made_by(sample.columns(values, world.gamma), n_steps)
        values = np.bincount(place, weights=got.ravel(), minlength=len(truth)) / count
    return float(np.abs(values - truth).max() / np.abs(truth).max())
