"""The axis of runs: many trainings or evaluations side by side in one program.

A loop must stop in all runs together; otherwise `vmap` computes both outcomes of every step.
`mavic.training.devices.over_runs` names the axis. A function that is called alone has no such axis.
"""

from __future__ import annotations

import jax

from mavic.types import Array

RUNS = "runs"
DEVICES = "devices"


def max_over_runs(x: Array) -> Array:
    """Return the largest `x` of all runs of this program. Without an axis of runs, return `x`."""
    try:
        return jax.lax.pmax(x, RUNS)
    except NameError:  # no such axis: this run is alone
        return x


def device() -> tuple[Array | int, int]:
    """Return the number of this device, and how many there are. Without an axis of devices: 0 and 1."""
    try:
        return jax.lax.axis_index(DEVICES), jax.lax.psum(1, DEVICES)
    except NameError:  # no such axis: this device is alone
        return 0, 1
