"""Kinds that leave the task on, but under which a team hardly does it any more: a collapse.

What a team earns under a kind is compared with its own base return. Where the best plans are known, the base return is
first reduced by what obeying must cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mavic.evaluation.metrics import UNDER

LEAST = 0.5
"""A smaller share of the base return is a collapse."""
HELP = "docs/not-learning.md"


def shares_of_base(score: Mapping[str, Any], seed: int | None = None) -> dict[str, float]:
    """Return by kind what a team earns under it, as a share of the base return. Kinds without a share are left out.

    Args:
        score: The score line of a record.
        seed: The position of one seed; None: the mean over seeds.
    """
    base = _mean(score["base"]["discounted"], seed)
    if not base > 0:
        return {}
    best, optima = score.get("optimum"), score.get("optima", {})
    found = {}
    for kind, entry in score.get(UNDER, {}).items():
        known = best and optima.get(kind)
        most = base * optima[kind] / best if known else base
        share = _mean(entry["task"], seed) / most if most > 0 else math.nan
        if math.isfinite(share):
            found[kind] = share
    return found


def collapses(score: Mapping[str, Any], seed: int | None = None) -> dict[str, float]:
    """Return the shares of `shares_of_base` that are below `LEAST`."""
    return {kind: share for kind, share in shares_of_base(score, seed).items() if share < LEAST}


def sentence(kind: str, share: float) -> str:
    """Return what to say of a collapse.

    Args:
        kind: The kind.
        share: The share of the base return.
    """
    return f"under {kind} the task collapses to {max(share, 0.0):.0%} of what it earns without an instruction: {HELP}"


def _mean(values: Any, seed: int | None) -> float:
    """Return the mean over seeds that have a number, or the number of one seed; nan if there is none."""
    numbers = np.array([math.nan if x is None else x for x in values], float)
    chosen = numbers if seed is None else numbers[seed : seed + 1]
    chosen = chosen[np.isfinite(chosen)]
    return float(chosen.mean()) if len(chosen) else math.nan
