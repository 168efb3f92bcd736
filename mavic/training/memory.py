"""How much memory a training needs, as the compiler says, and how much is free."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax

GB = 1e9
CACHED_FILES = ("active_file", "inactive_file")  # entries of memory.stat
FEWER_RUNS = (
    "give fewer seeds, methods or conditions in one command, a smaller --batch or smaller networks"
)
SMALLER_RUN = "give a smaller --batch or smaller networks"


class _NotEnoughMemoryError(ValueError):
    """A training does not fit into memory. The message says what would."""


def _needed_bytes(compiled: Any, runs: int) -> int | None:
    """Return the memory that a compiled program holds at most, on all devices that run it.

    Args:
        compiled: a program of `jax.jit`, lowered and compiled.
        runs: the length of its axis of runs, which is divided among the devices.

    Returns:
        Bytes of arguments, results and all arrays between them. None if the compiler does not say.
    """
    found = compiled.memory_analysis()
    if found is None:
        return None
    own = found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes
    return (own - found.alias_size_in_bytes) * min(runs, jax.local_device_count())


def _free_bytes() -> int | None:
    """Return the free memory of all devices of this process; None if it is unknown."""
    device = jax.local_devices()[0]
    if device.platform != "cpu":
        stats = device.memory_stats() or {}
        limit = stats.get("bytes_limit")
        if limit is None:
            return None
        return (limit - stats.get("bytes_in_use", 0)) * jax.local_device_count()
    return _free_of_machine()


def _free_of_machine() -> int | None:
    """Return the free memory of the machine, or of the container if that is less."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(
            int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")
        )
    except (OSError, StopIteration, ValueError):
        return None
    left = _left_by_container()
    return free if left is None else min(free, left)


def _left_by_container(group: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the free memory of the control group; None without a limit.

    Cached files count as free, because the system drops them when a program needs their memory.
    """
    try:
        limit, used = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        lines = (group / "memory.stat").read_text().splitlines()
        cached = sum(int(line.split()[1]) for line in lines if line.split()[0] in CACHED_FILES)
    except (OSError, ValueError, IndexError):  # "max" means no limit
        return None
    return limit - used + cached


def _line(needed: int, free: int | None, runs: int) -> str:
    """Return a line that says what a training needs.

    Args:
        needed: bytes that the training needs.
        free: bytes that are free, or None if unknown.
        runs: how many runs the training has. All large arrays have an axis of runs.

    Raises:
        _NotEnoughMemoryError: The training does not fit. The message says how many runs would.
    """
    if free is None or needed <= free:
        room = "" if free is None else f" of {free / GB:.1f} GB that are free"
        return f"this training needs about {needed / GB:.2f} GB of memory{room}"
    fit = int(runs * free / needed)
    advice = f"about {fit} of its {runs} runs fit at once: {FEWER_RUNS}"
    if not fit:
        advice = f"not even one run fits: {SMALLER_RUN}"
    raise _NotEnoughMemoryError(
        f"this training needs about {needed / GB:.1f} GB of memory and {free / GB:.1f} GB are free; {advice}"
    )


def check(compiled: Any, runs: int) -> str:
    """Return a line that says how much memory a compiled training needs.

    Args:
        compiled: a program of `jax.jit`, lowered and compiled.
        runs: the length of its axis of runs.

    Returns:
        The line. It is empty if the compiler does not say what the program needs.

    Raises:
        ValueError: The training does not fit. The message says how many runs would.
    """
    needed = _needed_bytes(compiled, runs)
    return "" if needed is None else _line(needed, _free_bytes(), runs)


@contextmanager
def explained(runs: int) -> Iterator[None]:
    """Turn an out-of-memory error of the compiler or the device into one that says what to change."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        advice = f"half of them may fit: {FEWER_RUNS}" if runs > 1 else SMALLER_RUN
        raise _NotEnoughMemoryError(
            f"the device ran out of memory with {runs} run{'s' * (runs > 1)} at once; {advice}"
        ) from error
