"""A report on one screen: a small table of the headline group and one sentence on what it shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from mavic.reporting.formats import number, percent
from mavic.reporting.rows import Row
from mavic.reporting.styles import BASELINE
from mavic.reporting.tables import group_tables

COLUMNS: dict[str, Callable[[Row], str]] = {
    "base return": lambda row: number(row.estimate("base").mean),
    "followed": lambda row: percent(row.estimate("compliance").mean),
    "task under an instruction": lambda row: percent(row.over_kinds("under_share")[0]),
    "obeyed while held": lambda row: percent(row.over_kinds("under_obeyed")[0]),
}
"""The task and obedience under a held instruction belong together: who disobeys keeps all of the task."""


def show(rows: Sequence[Row], console: Console) -> None:
    """Print the headline group: base return, instructions followed, the task under an instruction, and obedience."""
    own = _headline(rows)
    table = Table(
        box=box.SIMPLE, title=own[0].world.title or own[0].config.world, title_justify="left"
    )
    table.add_column("")
    for title in COLUMNS:
        table.add_column(title, justify="right")
    for row in own:
        table.add_row(row.full_label, *(cell(row) for cell in COLUMNS.values()))
    console.print(table)
    console.print(sentence(own), highlight=False)


def _headline(rows: Sequence[Row]) -> list[Row]:
    key = group_tables(rows)[0].key
    return [row for row in rows if row.config.table_group() == key and not row.shield]


def sentence(rows: Sequence[Row]) -> str:
    """Return what the rows show: how much of the task is kept and how many instructions are followed."""
    known = {row.config.method: row for row in rows}
    best = known.get("mavic", rows[0])
    said = [
        _kept(best, known),
        f"follows {percent(best.estimate('compliance').mean)} of the instructions",
    ]
    text = f"{best.label} " + " and ".join(part for part in said if part)
    others = [row for row in rows if row is not best and row.method.hears]
    shares = [f"{row.label} {percent(row.estimate('compliance').mean)}" for row in others]
    return text + (f"; {', '.join(shares)}." if shares else ".")


def _kept(row: Row, known: dict[str, Row]) -> str:
    if BASELINE not in known or row is known[BASELINE]:
        return ""
    share = row.estimate("base").mean / known[BASELINE].estimate("base").mean
    if not math.isfinite(share):
        return ""
    return f"earns {percent(share)} of what a team without instructions earns"
