"""The table of speed, from records: `bench-cpu.json`, `bench-gpu.json` and `reference.json` of each world.

A record holds for each thing that was measured its steps per second, with machine and versions. `mavic bench WORLD
--json FILE` writes one for this machine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mavic.envs import api
from mavic.reporting.styles import MISSING

COLUMNS = {  # title → file, entry
    "reference: environment": ("reference.json", "environment alone"),
    "reference: training": ("reference.json", "training"),
    "two cores: environment": ("bench-cpu.json", "environment alone"),
    "training, shared": ("bench-cpu.json", "training, shared"),
    "training, protected": ("bench-cpu.json", "training, protected"),
    "one H200: training, shared": ("bench-gpu.json", "training, shared"),
    "protected": ("bench-gpu.json", "training, protected"),
    "residual": ("bench-gpu.json", "training, residual"),
}


def markdown(results: Path, of: str = "") -> str:
    """Return the table of all worlds in Markdown."""
    del of  # other blocks of pages are of something
    lines = [
        "| steps/s | " + " | ".join(COLUMNS) + " |",
        "|" + "---|" * (1 + len(COLUMNS)),
    ]
    for world in api.BUILT_IN:
        cells = [_cell(results / world / file, entry) for file, entry in COLUMNS.values()]
        lines.append(f"| {api.world(world).title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(path: Path, entry: str) -> str:
    """Return one figure, rounded to three digits, and how many trainings ran at once if the record says it."""
    if not path.is_file():
        return MISSING
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")).get(entry, {})
    if "steps_per_second" not in found:
        return MISSING
    rate = float(f"{found['steps_per_second']:.3g}")
    at_once = f" ({found['trainings']} at once)" if "trainings" in found else ""
    return f"{rate:,.0f}{at_once}"
