"""How much memory a training will need, estimated from its traced program before anything is compiled.

The estimate walks the program in order and adds up the arrays that are alive. Results of elementwise operations count
as nothing, because the compiler computes them together with what uses them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from mavic.rollout.scalars import ELEMENTWISE

FUSED = ELEMENTWISE | {
    "broadcast_in_dim",
    "expand_dims",
    "iota",
    "reshape",
    "slice",
    "squeeze",
    "transpose",
}
GB = 1e9
CACHED_FILES = ("active_file", "inactive_file")  # entries of memory.stat


class NotEnoughMemoryError(ValueError):
    """A training does not fit into memory. The message says what would."""


def peak_bytes(jaxpr: Any) -> int:
    """Return the most bytes that a traced program holds at once: its arguments, results and what lies between."""
    end = len(jaxpr.eqns)
    last = {v: i for i, eqn in enumerate(jaxpr.eqns) for v in _variables(eqn.invars)}
    last |= dict.fromkeys(_variables(jaxpr.outvars), end)
    alive = {v: _bytes(v) for v in (*jaxpr.invars, *jaxpr.constvars)}
    now = most = sum(alive.values())
    for i, eqn in enumerate(jaxpr.eqns):
        inside = max((_inside(eqn, inner) for inner in _inner(eqn)), default=0)
        fused = eqn.primitive.name in FUSED
        made = {v: 0 if fused else _bytes(v) for v in eqn.outvars}
        alive |= made
        now += sum(made.values())
        most = max(most, now + inside)
        done = {v for v in (*_variables(eqn.invars), *made) if last.get(v, i) <= i}
        now -= sum(alive.pop(v, 0) for v in done)
    return most


def _inside(eqn: Any, inner: Any) -> int:
    """Return what an inner program holds beyond its arguments, on all devices that run it."""
    own = sum(_bytes(v) for v in inner.invars)
    mesh = eqn.params.get("mesh")
    copies = mesh.size if eqn.primitive.name == "shard_map" and mesh is not None else 1
    return copies * (peak_bytes(inner) - own)


def _inner(eqn: Any) -> Iterator[Any]:
    for value in eqn.params.values():
        for one in value if isinstance(value, tuple | list) else (value,):
            found = getattr(one, "jaxpr", one)
            if hasattr(found, "eqns"):
                yield found


def _variables(variables: Any) -> list[Any]:
    return [v for v in variables if not hasattr(v, "val")]  # the others are literals


def _bytes(variable: Any) -> int:
    shape = getattr(variable.aval, "shape", ())
    return math.prod(shape) * getattr(getattr(variable.aval, "dtype", None), "itemsize", 8)


def free_bytes() -> int | None:
    """Return the memory that a training may use on the present device; None if nobody says."""
    device = jax.local_devices()[0]
    if device.platform != "cpu":
        stats = device.memory_stats() or {}
        limit = stats.get("bytes_limit")
        return (
            None
            if limit is None
            else (limit - stats.get("bytes_in_use", 0)) * len(jax.local_devices())
        )
    return _free_of_machine()


def _free_of_machine() -> int | None:
    """Return the free memory of the machine, or what a container's limit leaves of it."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(
            int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")
        )
    except (OSError, StopIteration, ValueError):
        return None
    left = left_by_container()
    return free if left is None else min(free, left)


def left_by_container(group: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return what the limit of a control group leaves; None if there is none.

    Cached files count as used there, but the system gives their memory back when it is needed.
    """
    try:
        limit, used = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        lines = (group / "memory.stat").read_text().splitlines()
        cached = sum(int(line.split()[1]) for line in lines if line.split()[0] in CACHED_FILES)
    except (OSError, ValueError, IndexError):  # "max" stands for no limit
        return None
    return limit - used + cached


def check(needed: int, free: int | None, runs: int) -> str:
    """Return a line that says what a training needs. Raise `NotEnoughMemoryError` if it does not fit."""
    if free is None or needed <= free:
        room = "" if free is None else f" of {free / GB:.1f} GB that are free"
        return f"this training needs about {needed / GB:.2f} GB of memory{room}"
    fit = int(runs * free / needed)  # all large arrays have an axis of runs
    advice = (
        f"about {fit} of its {runs} runs fit at once: give fewer seeds, methods or conditions in one command, or a "
        "smaller --batch"
        if fit
        else "not even one run fits: give a smaller --batch"
    )
    raise NotEnoughMemoryError(
        f"this training needs about {needed / GB:.1f} GB of memory and {free / GB:.1f} GB are free; {advice}"
    )
