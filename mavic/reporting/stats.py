"""Estimates over seeds (D18): mean, standard deviation, minimum, and bootstrap intervals of the mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mavic.reporting.extras import require

LEVEL, RESAMPLES, BOOTSTRAP_SEED = 0.95, 9_999, 18
BATCH_SIZE = 4_000_000  # numbers that a batch of resamples holds at most


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A metric over seeds. `std` divides by n − 1; `low` and `high` bound the mean."""

    values: tuple[float, ...]
    mean: float
    std: float
    min: float
    low: float
    high: float


UNKNOWN = Estimate(
    values=(), mean=math.nan, std=math.nan, min=math.nan, low=math.nan, high=math.nan
)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The difference of two means and the bounds of its interval."""

    mean: float
    low: float
    high: float

    @property
    def contains_zero(self) -> bool:
        """Whether the interval contains 0, so that there may be no difference."""
        return self.low <= 0.0 <= self.high


def interval(*samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds [columns] of 95 % percentile-bootstrap intervals.

    All columns share their resamples. The interval of a column that does not vary is its mean. A column with a missing
    number has nan.

    Args:
        *samples: One sample [seeds, columns] for intervals of its means, or two for those of the differences of their
            means.
    """
    point = _contrast(*samples, axis=0)
    finite = np.all([np.isfinite(s).all(0) for s in samples], axis=0)
    # A column with a missing number is one of zeros here. Its mean is nan.
    constant = np.all([np.ptp(np.where(finite, s, 0.0), axis=0) == 0 for s in samples], axis=0)
    if constant.all():
        return point, point
    # scipy refuses a sample of one observation; the same observation twice resamples to itself
    data = [np.where(finite, s, 0.0).repeat(2 if len(s) == 1 else 1, axis=0) for s in samples]
    found = require("scipy.stats").bootstrap(
        data,
        _contrast,
        n_resamples=RESAMPLES,
        batch=max(1, BATCH_SIZE // max(d.size for d in data)),
        confidence_level=LEVEL,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(BOOTSTRAP_SEED),
    )
    bounds = found.confidence_interval  # of equal numbers they miss the mean by rounding
    return np.where(constant, point, bounds.low), np.where(constant, point, bounds.high)


def _contrast(*samples: np.ndarray, axis: int = 0) -> np.ndarray:
    first, *rest = (sample.mean(axis) for sample in samples)
    return first - rest[0] if rest else first


def estimates(values: np.ndarray) -> list[Estimate]:
    """Return the estimate of each column of [seeds, columns]. One seed has no standard deviation: it is nan."""
    low, high = interval(values)
    several = len(values) > 1
    return [
        Estimate(
            values=tuple(map(float, column)),
            mean=float(column.mean()),
            std=float(column.std(ddof=1)) if several else math.nan,
            min=float(column.min()),
            low=float(low[i]),
            high=float(high[i]),
        )
        for i, column in enumerate(values.T)
    ]


def difference(first: ArrayLike, second: ArrayLike) -> Difference:
    """Return the difference of two means. The two samples are resampled independently.

    Args:
        first: One number per seed.
        second: One number per seed, to be subtracted.
    """
    pair = np.asarray(first, float)[:, None], np.asarray(second, float)[:, None]
    low, high = interval(*pair)
    return Difference(mean=float(_contrast(*pair)[0]), low=float(low[0]), high=float(high[0]))
