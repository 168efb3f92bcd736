"""The table of backbones: base return and compliance by world, backbone and method, on the page docs/backbones.md.

    python -m mavic.reporting.backbones results/backbones docs/backbones.md

reads the records in the folders results/backbones/<world>, writes results/backbones/table.json, and puts the table
between the two marks of the page. Figures are never typed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from mavic.experiments import records
from mavic.reporting import stats

BEGIN, END = "<!-- table of backbones -->", "<!-- end -->"
NO_FIGURES = "There are no figures yet."
HEADER = "| world | backbone | method | network | seeds | base return | instructions followed | steps/s |"


def table_of(folder: Path) -> list[dict[str, Any]]:
    """Return one entry for each finished record below the folder, in the order of worlds and names."""
    found = []
    for path in sorted(folder.glob("*/*.jsonl")):
        record = records.read(path)
        if record.score is None:
            continue
        config = record.config()
        found.append(
            {
                "world": config.world,
                "backbone": config.backbone,
                "method": config.method,
                "network": config.network,
                "preset": config.preset,
                "condition": config.condition(),
                "seeds": list(record.run["seeds"]),
                "base": _numbers(record.score["base"]["discounted"]),
                "followed": _numbers(record.score["compliance"]["per_instruction"]),
                "steps_per_second": record.run.get("steps_per_second"),
            }
        )
    return found


def _numbers(values: list[float]) -> dict[str, float]:
    (estimate,) = stats.estimates(np.asarray(values, float)[:, None])
    return {name: getattr(estimate, name) for name in ("mean", "low", "high", "min")}


def markdown(table: list[dict[str, Any]]) -> str:
    """Return the table as Markdown. Intervals are those of the mean over seeds; the worst seed follows."""
    if not table:
        return NO_FIGURES
    lines = [HEADER, "|" + "---|" * (HEADER.count("|") - 1)]
    for row in table:
        base, followed, speed = row["base"], row["followed"], row["steps_per_second"]
        cells = [
            row["world"],
            row["backbone"],
            row["method"],
            row["network"],
            str(len(row["seeds"])),
            f"{base['mean']:.2f} [{base['low']:.2f}, {base['high']:.2f}], worst {base['min']:.2f}",
            f"{followed['mean']:.1%} [{followed['low']:.1%}, {followed['high']:.1%}], "
            f"worst {followed['min']:.1%}",
            f"{speed:,.0f}" if speed else "",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def with_table(page: str, table: list[dict[str, Any]]) -> str:
    """Return the page with this table between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{markdown(table)}\n{END}{after}"


def read_table(folder: Path) -> list[dict[str, Any]]:
    """Return the table that was written, or an empty one."""
    path = folder / "table.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def main(folder: Path, page: Path) -> None:
    """Make the table anew and put it on the page."""
    table = records.plain(table_of(folder))
    (folder / "table.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    page.write_text(with_table(page.read_text(encoding="utf-8"), table), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
