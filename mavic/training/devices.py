"""Many runs in one program: side by side on a device, and divided among all devices.

On a CPU each core can be a device (`use_cores`), because one program keeps little more than one core busy and runs do
not depend on each other.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from mavic.run_axis import DEVICES, RUNS

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


def runs_at_once(cells: int) -> int | None:
    """Return how many runs a program trains at once; None: all.

    On a CPU more runs take more time, so all members of a population can use the program of one member of each cell,
    one after another. Fewer runs than cores would leave cores idle. On a GPU runs side by side cost little.

    Args:
        cells: configurations times seeds.
    """
    if jax.default_backend() != "cpu":
        return None
    return cells * -(-len(jax.local_devices()) // cells)


def in_parts(size: int | None, function: Callable, *trees: Any) -> Any:
    """Return a function's result for many runs, called for `size` runs at a time.

    The last part is filled with copies of its last run. All arguments and results have a first axis of runs.

    Args:
        size: runs in a part; None: all in one.
        function: of trees of runs.
        trees: its arguments.
    """
    count = jax.tree.leaves(trees)[0].shape[0]
    if size is None or count == size:
        return function(*trees)
    found = []
    for start in range(0, count, size):
        places = np.minimum(np.arange(start, start + size), count - 1)
        made = function(*jax.tree.map(lambda leaf: leaf[places], trees))  # noqa: B023
        found.append(jax.tree.map(lambda leaf: leaf[: count - start], made))  # noqa: B023
    return jax.tree.map(lambda *parts: _joined(parts), *found)


def _joined(parts: Sequence[Any]) -> Any:
    return (jnp if isinstance(parts[0], jax.Array) else np).concatenate(parts)


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
