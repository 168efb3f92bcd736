"""The table of backbones: what every method reaches on every backbone, by world.

`mavic report results/backbones` writes it to results/backbones/table.json, from the records in the folders
results/backbones/<world>.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from mavic.experiment.records import paths_in, plain, read_folder
from mavic.reporting.rows import Row, table
from mavic.reporting.writers import numbers_of
from mavic.storage import files

ENOUGH = 0.95  # of the best plan, for the number of episodes that training takes


def record_folders(folder: Path) -> list[Path]:
    """Return the folders below `folder` that hold records."""
    return sorted({path.parent for path in paths_in(folder, "*/")})


def write_table(folder: Path, out: Path) -> Path | None:
    """Write the table of backbones and return its path; None, and no file, if no world has several backbones.

    Args:
        folder: The folder whose folders hold the records.
        out: Where `table.json` goes.
    """
    found = _table_of(folder)
    if not any(len(world) > 1 for world in found.values()):
        return None
    path = out / "table.json"
    files.write_text(path, json.dumps(found, indent=1, allow_nan=False) + "\n")
    return path


def _table_of(folder: Path) -> dict[str, dict[str, dict[str, dict[str, Any]]]]:
    """Return world → backbone → method → numbers, of all finished records in the folders below `folder`.

    A backbone with several presets, networks or conditions has the numbers of the one that tables show first.
    """
    found: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}
    for world in record_folders(folder):
        first: dict[tuple[str, str], str] = {}  # rows are in the order of tables
        for row in table(read_folder(world)):
            team = row.config.world, row.config.backbone
            if first.setdefault(team, row.group) == row.group:
                methods = found.setdefault(row.config.world, {}).setdefault(row.config.backbone, {})
                methods[row.name] = _numbers(row)
    return found


def _numbers(row: Row) -> dict[str, Any]:
    """Return a row's headline numbers, and how long its training took in episodes and in seconds.

    `episodes_to_95` is the median over seeds; None if at least half of them never reach 95 % of the optimum.
    """
    needed = np.full(len(row.seeds), math.nan)
    if row.optimum:
        needed = row.curve.episodes_to(ENOUGH * row.optimum)
    median = float(np.median(needed)) if needed.size else math.nan
    return numbers_of(row) | plain({"episodes_to_95": median, "seconds": row.curve.seconds})
