"""Many runs in one program: side by side on a device, and shared out among the devices there are.

A processor's cores can stand for devices (`use_cores`): one program keeps little more than one core busy, and runs do
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

from mavic.runs import RUNS

DEVICES = "devices"
# cores wait for each other at the end of a piece of training; on a busy machine for longer than the forty seconds after
# which the compiler's library would end the program
PATIENCE = {
    "xla_cpu_collective_call_warn_stuck_timeout_seconds": 3_600,
    "xla_cpu_collective_call_terminate_timeout_seconds": 1_000_000,
}


def use_cores() -> None:
    """Let each core be a device, if the program runs on a CPU and has not computed anything yet."""
    usable = getattr(os, "sched_getaffinity", None)
    cores = len(usable(0)) if usable else os.cpu_count() or 1
    flags = os.environ.get("XLA_FLAGS", "")
    patience = [f"--{name}={seconds}" for name, seconds in PATIENCE.items() if name not in flags]
    os.environ["XLA_FLAGS"] = " ".join([flags, *patience]).strip()
    with contextlib.suppress(RuntimeError):  # the devices are settled
        jax.config.update("jax_num_cpu_devices", cores)


def over_runs(function: Callable) -> Callable:
    """`function` of one run made one of many: every leaf of arguments and results has a first axis for the runs.

    Runs on one device loop together; those on another are not waited for. Where runs do not divide among the devices
    the last is done twice and its double dropped."""
    together = jax.vmap(function, axis_name=RUNS)

    def call(*trees: Any) -> Any:
        count = jax.tree.leaves(trees)[0].shape[0]
        devices = jax.local_devices()[:count]
        if len(devices) == 1:
            return together(*trees)
        mesh = jax.sharding.Mesh(devices, (DEVICES,))
        places = jnp.arange(-(-count // len(devices)) * len(devices))
        doubled = jax.tree.map(lambda leaf: leaf[jnp.minimum(places, count - 1)], trees)
        over = PartitionSpec(DEVICES)
        split = jax.shard_map(together, mesh=mesh, in_specs=over, out_specs=over, check_vma=False)
        everywhere = NamedSharding(mesh, PartitionSpec())
        return jax.tree.map(
            lambda leaf: jax.lax.with_sharding_constraint(leaf[:count], everywhere),
            split(*doubled),
        )

    return call
