"""The table of docs/record/backbones.md: what every method reaches on every backbone, by world.

It shows `results/backbones/table.json`, which `mavic report results/backbones` writes.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from mavic.reporting.backbones import ENOUGH
from mavic.reporting.formats import number, percent

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


def markdown(results: Path, of: str = "") -> str:
    """Return the table in Markdown, without the rows of teams with the shield.

    Args:
        results: The folder of results.
        of: Unused; every block of a page has it.
    """
    del of
    path = results / "backbones" / "table.json"
    if not path.is_file():
        return "There are no figures yet.\n"
    lines = [COLUMNS, ("---",) * len(COLUMNS)]
    for world, backbones in json.loads(path.read_text(encoding="utf-8")).items():
        for backbone, methods in backbones.items():
            for method, numbers in methods.items():
                if not method.endswith("+shield"):
                    lines.append((world, backbone, method, *_cells(numbers)))
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


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
