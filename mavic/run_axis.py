"""The axis of runs: many trainings or evaluations side by side in one program.

A loop whose length differs between runs must stop together in all of them, or `vmap` would compute both outcomes of
every step. `experiments.devices.over_runs` names the axis; functions that are called alone have no such axis.
"""

from __future__ import annotations

import jax

from mavic.types import Array

RUNS = "runs"


def max_over_runs(x: Array) -> Array:
    """Return the largest `x` of all runs of this program. Without an axis of runs, return `x`."""
    try:
        return jax.lax.pmax(x, RUNS)
    except NameError:  # no such axis: this run is alone
        return x
