"""Many runs in one program: side by side on a device, and divided among all devices.

On a CPU each core can be a device (`use_cores`), because one program keeps little more than one core busy and runs do
not depend on each other.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from mavic.run_axis import RUNS

DEVICES = "devices"
# Cores wait for each other at the end of a chunk of training. On a busy machine that can take longer than the forty
# seconds after which XLA would end the program.
TIMEOUTS = {
    "xla_cpu_collective_call_warn_stuck_timeout_seconds": 3_600,
    "xla_cpu_collective_call_terminate_timeout_seconds": 1_000_000,
}


def use_cores() -> None:
    """Make each core a device, if the program runs on a CPU and has not computed anything yet."""
    usable = getattr(os, "sched_getaffinity", None)
    cores = len(usable(0)) if usable else os.cpu_count() or 1
    flags = os.environ.get("XLA_FLAGS", "")
    timeouts = [f"--{name}={seconds}" for name, seconds in TIMEOUTS.items() if name not in flags]
    os.environ["XLA_FLAGS"] = " ".join([flags, *timeouts]).strip()
    with contextlib.suppress(RuntimeError):  # the devices are already in use
        jax.config.update("jax_num_cpu_devices", cores)


def over_runs(function: Callable) -> Callable:
    """Return a function of many runs from one of a single run. All arguments and results get a first axis of runs.

    Runs on one device loop together and do not wait for those on another. If the runs do not divide evenly among the
    devices, the last run is repeated and its copies are dropped."""
    together = jax.vmap(function, axis_name=RUNS)

    def call(*trees: Any) -> Any:
        count = jax.tree.leaves(trees)[0].shape[0]
        devices = jax.local_devices()[:count]
        if len(devices) == 1:
            return together(*trees)
        mesh = jax.sharding.Mesh(devices, (DEVICES,))
        places = jnp.arange(-(-count // len(devices)) * len(devices))
        padded = jax.tree.map(lambda leaf: leaf[jnp.minimum(places, count - 1)], trees)
        over = PartitionSpec(DEVICES)
        split = jax.shard_map(together, mesh=mesh, in_specs=over, out_specs=over, check_vma=False)
        everywhere = NamedSharding(mesh, PartitionSpec())
        return jax.tree.map(
            lambda leaf: jax.lax.with_sharding_constraint(leaf[:count], everywhere),
            split(*padded),
        )

    return call
