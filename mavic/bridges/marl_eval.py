"""Records as the JSON of marl-eval: environment, task, algorithm, run, step.

A run is a seed; seeds that diverged are left out. `step_count` counts training episodes. The metrics are `base_return`
and `compliance`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mavic.experiment.records import Record, read_folder
from mavic.reporting.styles import label

ENVIRONMENT = "mavic"


def export(folder: str | Path) -> dict[str, Any]:
    """Return all finished records of a folder as one dictionary."""
    return _export_records(read_folder(folder))


def _export_records(records: Sequence[Record]) -> dict[str, Any]:
    """Return records by task (world/preset/network/condition) and algorithm."""
    tasks: dict[str, Any] = {}
    for record in (record.finite() for record in records):
        if record.score is None:  # unfinished, or every seed diverged
            continue
        config = record.config()
        task = tasks.setdefault(f"{config.world}/{config.table_group()}", {})
        runs = task.setdefault(label(config), {})
        found = {
            f"seed_{seed}": _run(record, number) for number, seed in enumerate(record.run["seeds"])
        }
        if twice := sorted(runs.keys() & found.keys()):
            raise ValueError(
                f"{record.path}: {twice[0]} of {label(config)} is in another record of this folder too; "
                "marl-eval cannot tell the two apart; move one of the records elsewhere"
            )
        runs |= found
    return {ENVIRONMENT: tasks}


def _run(record: Record, seed: int) -> dict[str, Any]:
    points = {
        f"step_{number}": {
            "step_count": line["episodes"],
            "base_return": [line["base"][seed]],
            "compliance": [line["compliance"][seed]],
        }
        for number, line in enumerate(record.curve)
    }
    assert record.score is not None
    final = {
        "base_return": [record.score["base"]["discounted"][seed]],
        "compliance": [record.score["compliance"]["per_instruction"][seed]],
    }
    return {**points, "absolute_metrics": final}
