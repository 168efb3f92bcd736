"""What a team on robots costs: start-up, decisions, memory, and a day of operation.

    python -m tools.runtime_cost

exports `warehouse/mavic` (three agents) and `overcooked/mavic` (with reader and encoder), measures each in processes in
which JAX cannot be imported, on one core, and writes `results/runtime.json`. Only the export needs JAX.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mavic.runtime.team import Cancel, Command, RobotTeam, Start, open_team

ROOT = Path(__file__).parents[1]
SENTENCE = "the board on the left is off limits"  # no training phrase, so it needs the encoder
PROCESSES = 5
TICKS = 1_000_000
CODE = """
import os, sys
for name in ("jax", "jaxlib", "optax", "scipy", "torch", "onnx", "fastapi"):
    sys.modules[name] = None
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import time
start, busy = time.perf_counter(), time.process_time()
from mavic.runtime.team import open_team
team = open_team(sys.argv[1])
started, busy = time.perf_counter() - start, time.process_time() - busy
import numpy, pathlib
for agent in team.agents:
    team.observed(agent, numpy.zeros(team.observation_size))
spent = time.process_time()
for _ in range(300):
    for agent in team.agents:
        team.ended(agent, numpy.zeros(team.observation_size))
spent = (time.process_time() - spent) / 300
for sentence in sys.argv[2:]:
    assert team.say(sentence).kind == "avoid-left-board"
status = pathlib.Path("/proc/self/status").read_text().splitlines()
memory = int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1024
others = {name.split(".")[0] for name in sys.modules if sys.modules[name] is not None}
print(started, busy, spent, memory, *sorted(others - set(sys.stdlib_module_names) - {"__main__"}))
"""


class Cost(NamedTuple):
    """What one process needed."""

    start: float  # seconds from the first import to a team that takes events
    start_busy: float  # of them, those in which it had the core; the others went to other programs and the disk
    decision: float  # seconds of one core in which every agent decides once
    memory: float  # the most MB that were resident
    packages: frozenset[str]  # that were imported


def cost_of(team: Path, *sentences: str) -> Cost:
    """Measure an exported team in a process of its own, without JAX, on one core.

    Args:
        team: the folder.
        sentences: said after the decisions; each must forbid the left board.
    """
    ran = subprocess.run(
        [sys.executable, "-c", CODE, str(team), *sentences],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    start, busy, decision, memory, *packages = ran.stdout.split()
    return Cost(float(start), float(busy), float(decision), float(memory), frozenset(packages))


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        """Begin at 0."""
        self.time = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.time


def a_day(team: RobotTeam, clock: Clock, ticks: int, seed: int = 0) -> int:
    """Let robots work, fail, fall silent and be instructed for many ticks. Return the number of decisions.

    Args:
        team: the team.
        clock: its clock.
        ticks: how many seconds.
        seed: of what happens.
    """
    rng, decisions = np.random.default_rng(seed), 0
    busy: dict[str, float] = {}
    for _ in range(ticks):
        clock.time += 1.0
        commands: list[Command] = list(team.tick())
        if rng.random() < 0.01:
            kind = team.contract.kinds[rng.integers(1, len(team.contract.kinds))]
            until = clock.time + float(rng.integers(3, 20))
            commands += team.say(kind=kind, until=until).commands
        for agent in [one for one, left in busy.items() if left <= clock.time]:
            del busy[agent]
            if rng.random() < 0.02:
                commands += team.failed(agent, "stuck")
            else:
                commands += team.ended(agent)
        while commands:
            command = commands.pop()
            if isinstance(command, Cancel):
                busy.pop(command.agent, None)
                if team.status(command.agent) == "cancelling":
                    commands += team.ended(command.agent)
            else:
                decisions += 1
                busy[command.agent] = clock.time + float(rng.integers(1, 30))
        for agent in team.agents:
            silent = team.status(agent) == "silent"
            if agent not in busy and rng.random() < (0.05 if silent else 0.9):
                for command in team.observed(agent, rng.integers(0, 2, team.observation_size)):
                    if isinstance(command, Start):
                        decisions += 1
                        busy[command.agent] = clock.time + float(rng.integers(1, 30))
    return decisions


def growth_of(team: Path, ticks: int) -> tuple[int, float]:
    """Return the decisions of a long operation, and the MB that this process grew.

    Args:
        team: the folder.
        ticks: how many seconds.
    """
    clock = Clock()
    robots = open_team(team, clock=clock, silent_after=50.0)
    a_day(robots, clock, 5_000)
    before = _resident()
    decisions = a_day(robots, clock, ticks, seed=1)
    return decisions, _resident() - before


def _resident() -> float:
    """Return the memory of this process now, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _record(teams: Path, say: Callable[[str], Any]) -> dict[str, Any]:
    """Return the measurements as plain JSON data."""
    for world in ("warehouse", "overcooked"):
        command = ["export", "team", f"{world}/mavic", "--out", str(teams / world)]
        subprocess.run([sys.executable, "-m", "mavic", *command], cwd=ROOT, check=True)
    found = [cost_of(teams / "warehouse") for _ in range(PROCESSES)]
    start, busy, decision, memory, _ = zip(*found, strict=True)
    spoken = [cost_of(teams / "overcooked", SENTENCE).memory for _ in range(PROCESSES)]
    say(f"a day of {TICKS:,} ticks")
    began = time.process_time()
    decisions, growth = growth_of(teams / "warehouse", TICKS)
    spent = time.process_time() - began
    return {
        "what": "a team on robots, on one core",
        "processes": PROCESSES,
        "warehouse/mavic": {
            "agents": 3,
            "start_seconds": _spread(start, 2),
            "start_busy_seconds": _spread(busy, 2),
            "decision_ms": _spread([1000 * one for one in decision], 2),
            "memory_mb": _spread(memory, 0),
        },
        "overcooked/mavic": {"agents": 2, "memory_mb_after_a_sentence": _spread(spoken, 0)},
        "day": {
            "ticks": TICKS,
            "decisions": decisions,
            "growth_mb": round(growth, 1),
            "seconds": round(spent),
        },
        "machine": {
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "versions": {
            "mavic": version("mavic"),
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "onnxruntime", "tokenizers")},
        },
    }


def _spread(values: Iterable[float], digits: int) -> dict[str, float]:
    """Return the least, the median and the most."""
    ordered = sorted(values)
    named = dict(least=ordered[0], median=statistics.median(ordered), most=ordered[-1])
    return {name: round(value, digits) for name, value in named.items()}


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next(line.partition(": ")[2] for line in lines if line.startswith("model name"))


def main() -> None:
    """Measure, and write the record."""
    with tempfile.TemporaryDirectory() as place:
        found = _record(Path(place), print)
    text = json.dumps(found, indent=1) + "\n"
    (ROOT / "results" / "runtime.json").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
