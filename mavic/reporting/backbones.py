"""The table of backbones: what every method reaches on every backbone, by world.

    python -m mavic.reporting.backbones results/backbones docs/backbones.md

reads the records in the folders results/backbones/<world>, writes results/backbones/table.json, and puts the table
between the two marks of the page. `mavic report results/backbones` writes the same file. Figures are never typed.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from mavic.experiments import files, records
from mavic.experiments.records import plain, read_folder
from mavic.reporting.formats import number, percent
from mavic.reporting.rows import Row, table
from mavic.reporting.writers import numbers_of

BEGIN, END = "<!-- table of backbones -->", "<!-- end -->"
NO_FIGURES = "There are no figures yet."
ENOUGH = 0.95  # of the best plan, for the column that tells how many episodes it takes
Table = dict[str, dict[str, dict[str, dict[str, Any]]]]
"""World → backbone → method → its numbers."""
COLUMNS = (
    "world",
    "backbone",
    "method",
    "base return (worst seed)",
    "of the best plan",
    "followed (worst seed)",
    "task while an instruction holds",
    "obeyed meanwhile",
    f"episodes to {ENOUGH:.0%}",
    "seconds",
)


def table_of(folder: Path) -> Table:
    """Return the numbers of all finished records in the folders below `folder`.

    A backbone with several presets, networks or conditions has the numbers of the one that tables show first.
    """
    found: Table = {}
    for world in record_folders(folder):
        first: dict[tuple[str, str], str] = {}  # rows are in the order of tables
        for row in table(read_folder(world)):
            team = row.config.world, row.config.backbone
            if first.setdefault(team, row.group) != row.group:
                continue
            methods = found.setdefault(row.config.world, {}).setdefault(row.config.backbone, {})
            methods[row.name] = _numbers(row)
    return found


def record_folders(folder: Path) -> list[Path]:
    """Return the folders below `folder` that hold records."""
    return sorted({path.parent for path in records.paths_in(folder, "*/")})


def _numbers(row: Row) -> dict[str, Any]:
    """Return a row's headline numbers, and how long its training took in episodes and in seconds.

    `episodes_to_95` is the median over seeds, None if half of them never come so far.
    """
    needed = np.full(len(row.seeds), math.nan)
    if row.optimum:
        needed = row.curve.episodes_to(ENOUGH * row.optimum)
    median = float(np.median(needed)) if needed.size else math.nan
    return numbers_of(row) | plain({"episodes_to_95": median, "seconds": row.curve.seconds})


def markdown(found: Table) -> str:
    """Return the table as Markdown. Rows with the shield are left to the file."""
    if not found:
        return NO_FIGURES
    lines = [COLUMNS, ("---",) * len(COLUMNS)]
    for world, backbones in found.items():
        for backbone, methods in backbones.items():
            for method, numbers in methods.items():
                if not method.endswith("+shield"):
                    lines.append((world, backbone, method, *_cells(numbers)))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cells(numbers: dict[str, Any]) -> tuple[str, ...]:
    def value(name: str) -> float:
        found = numbers.get(name)
        return math.nan if found is None else found

    return (
        f"{number(value('base_mean'))} ({number(value('base_min'))})",
        percent(value("share_of_optimum")),
        f"{percent(value('compliance_mean'), 2)} ({percent(value('compliance_min'), 2)})",
        percent(value("under_share_mean")),
        percent(value("under_obeyed_mean")),
        number(value("episodes_to_95"), 0),
        number(value("seconds"), 0),
    )


def with_table(page: str, found: Table) -> str:
    """Return the page with this table between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{markdown(found)}\n{END}{after}"


def read_table(folder: Path) -> Table:
    """Return the table that was written, or an empty one."""
    path = folder / "table.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def write_table(found: Table, folder: Path) -> Path:
    """Write the table to the file `table.json` of the folder, and return its path."""
    path = folder / "table.json"
    files.write_text(path, json.dumps(found, indent=1, allow_nan=False) + "\n")
    return path


def main(folder: Path, page: Path) -> None:
    """Make the table anew and put it on the page."""
    found = table_of(folder)
    write_table(found, folder)
    page.write_text(with_table(page.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
