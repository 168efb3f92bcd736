"""The tables of speed, from records: `bench-cpu.json`, `bench-gpu.json` and `reference.json` of each world,
and `bench-backbones-*.json` of worlds in which all backbones were timed side by side.

A record holds the steps per second of each measurement, with machine and versions. `mavic bench WORLD --json FILE`
writes one for this machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from mavic.envs import api
from mavic.learn.backbones import BACKBONES
from mavic.reporting.styles import MISSING
from mavic.studies.benchmark import entry_of

COLUMNS = {  # title → file, entry
    "reference: environment": ("reference.json", "environment alone"),
    "reference: training": ("reference.json", "training"),
    "two cores: environment": ("bench-cpu.json", "environment alone"),
    "training": ("bench-cpu.json", "training, residual"),
    "one H200: training, shared": ("bench-gpu.json", "training, shared"),
    "protected": ("bench-gpu.json", "training, protected"),
    "residual": ("bench-gpu.json", "training, residual"),
}

GUIDE = {
    title: COLUMNS[title]
    for title in (
        "two cores: environment",
        "training",
        "one H200: training, shared",
        "protected",
    )
}

BY_BACKBONE = {  # file of a world → where all backbones were timed
    "bench-backbones-cpu.json": "two cores",
    "bench-backbones-gpu.json": "one H200",
}


def markdown(results: Path, of: str = "") -> str:
    """Return a table of speed in Markdown.

    Args:
        results: The folder of results.
        of: Empty for the table of worlds, "guide" for some of its columns, "backbones" for that of backbones, "parts"
            for what a training spends its time on.
    """
    if of == "backbones":
        return _by_backbone(results)
    if of == "parts":
        return _by_part(results)
    return _by_world(results, {"": COLUMNS, "guide": GUIDE}[of])


def _by_world(results: Path, columns: Mapping[str, tuple[str, str]]) -> str:
    rows = {
        api.world(world).title: [
            _cell(results / world / file, entry) for file, entry in columns.values()
        ]
        for world in api.BUILT_IN
    }
    return _table(tuple(columns), rows)


def _by_part(results: Path) -> str:
    """Return what each part of a training costs on two cores."""
    found = {
        world: json.loads((results / world / "bench-cpu.json").read_text(encoding="utf-8"))
        for world in api.BUILT_IN
    }
    parts = next(iter(found.values()))["microseconds_a_tick"]
    rows = {
        f"{part}, µs a tick": [f"{one['microseconds_a_tick'][part]:.2f}" for one in found.values()]
        for part in parts
    }
    return _table([api.world(world).title for world in found], rows, first="training, two cores")


def _by_backbone(results: Path) -> str:
    """Return the training speed of each backbone with the network `protected`."""
    every = product(api.BUILT_IN, BY_BACKBONE)
    places = [(world, file) for world, file in every if (results / world / file).is_file()]
    columns = [f"{api.world(world).title}, {BY_BACKBONE[file]}" for world, file in places]
    rows = {}
    for backbone in BACKBONES:
        entry = entry_of("protected", backbone)
        rows[f"`{backbone}`"] = [_cell(results / world / file, entry) for world, file in places]
    return _table(columns, rows)


def _table(
    columns: Sequence[str], rows: Mapping[str, Iterable[str]], first: str = "steps/s"
) -> str:
    lines = [f"| {first} | " + " | ".join(columns) + " |", "|" + "---|" * (1 + len(columns))]
    lines += [f"| {name} | " + " | ".join(cells) + " |" for name, cells in rows.items()]
    return "\n".join(lines) + "\n"


def _cell(path: Path, entry: str) -> str:
    """Return a speed, rounded to three digits, and how many trainings ran at once if the record says it."""
    if not path.is_file():
        return MISSING
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")).get(entry, {})
    if "steps_per_second" not in found:
        return MISSING
    rate = float(f"{found['steps_per_second']:.3g}")
    at_once = f" ({found['trainings']} at once)" if "trainings" in found else ""
    return f"{rate:,.0f}{at_once}"
