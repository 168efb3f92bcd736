"""`mavic.learn.returns` on sampled rows, in double precision, against exact expected targets."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import jax
import numpy as np

from mavic.experiments import semi_mdp as tabular
from mavic.learn.returns import CORRECTIONS, targets

HORIZON = 12  # rows until all lanes are cut
Targets = Callable[..., np.ndarray]


@functools.cache
def world_and_sample(arrivals: str, over: float = 0.03) -> tuple[tabular.SemiMDP, tabular.Sample]:
    """One world with true ends and horizons, and enough of its rows to see a wrong target."""
    rng = np.random.default_rng(7)
    world = tabular.draw(rng, arrivals, over=over)
    return world, tabular.sample(world, rng, lanes=4000, blocks=2, horizon=HORIZON)


@functools.partial(jax.jit, static_argnames=("correction", "n_steps"))
def _jitted(columns, correction, n_steps):
    return targets(**columns, correction=CORRECTIONS[correction], n_steps=n_steps)


def ours(columns: dict, correction: str, n_steps: float) -> np.ndarray:
    """The library's targets."""
    with jax.enable_x64(True):
        return np.asarray(_jitted(columns, correction, n_steps))


def expected(
    e: tabular.Evaluation, reading: str, n_steps: float, remaining: int, values: np.ndarray
) -> np.ndarray:
    """Exact mean target of a row with `remaining` rows, itself included, until the horizon cuts."""
    follow, direct = tabular.READINGS[reading](e)
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
    places = tabular.CLASSES * tabular.STATES
    values = np.random.default_rng(1).normal(size=places) + np.repeat([10.0, -10.0, 30.0], 6)
    e = tabular.evaluate(tabular.rows(world), world.policy)
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
    truth = tabular.single_values(tabular.rows(world), world.policy)
    place = sample.place.ravel()
    count = np.bincount(place, minlength=len(truth))
    values = np.zeros_like(truth)
    for _ in range(150):
        got = made_by(sample.columns(values, world.gamma), n_steps)
        values = np.bincount(place, weights=got.ravel(), minlength=len(truth)) / count
    return float(np.abs(values - truth).max() / np.abs(truth).max())
