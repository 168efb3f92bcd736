"""Rows and tables on a terminal: the main tables, or in brief the headline group and a sentence on what it shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rich import box
from rich.console import Console
from rich.console import Group as Stacked
from rich.table import Table
from rich.text import Text

from mavic.reporting.formats import number, percent
from mavic.reporting.rows import Row
from mavic.reporting.styles import BASELINE
from mavic.reporting.tables import Grid, group_tables

COLUMNS: dict[str, Callable[[Row], str]] = {
    "base return": lambda row: number(row.estimate("base").mean),
    "followed": lambda row: percent(row.estimate("compliance").mean),
    "task under an instruction": lambda row: _under(row),
    "obeyed while held": lambda row: percent(row.over_kinds("under_obeyed")[0]),
}
"""The task and obedience under a held instruction stand together: a disobedient team can score 100 % of the task."""


def _under(row: Row) -> str:
    """Return the task under an instruction as a share of the best obedient plans, or of the base return."""
    if row.kinds("under_share"):
        return percent(row.over_kinds("under_share")[0])
    share = row.over_kinds("under_of_base")[0]
    return percent(share) + " of base" * math.isfinite(share)


def show(rows: Sequence[Row], console: Console, *, brief: bool = False) -> None:
    """Print the main tables, those of unseen phrases, and compliance by kind for the first group alone.

    Args:
        rows: All rows of a report.
        console: Where to print.
        brief: Print instead one small table of the first group, the headline, and a sentence on it.
    """
    if brief:
        return _show_brief(rows, console)
    for i, (key, tables) in enumerate(group_tables(rows).items()):
        for name, grid in tables.items():
            if name in ("main", "unseen") or (name == "kinds" and i == 0):
                heading = key if name == "main" else f"{key}: {grid.title}"
                halves = [_table(half) for half in grid.halves()]
                caption = Text(f"{grid.caption}\n", "dim")
                console.print(Stacked(Text(heading, "bold"), *halves, caption))


def _table(grid: Grid) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    tall = any(len(cell) > 1 for row in grid.rows for cell in row)
    for i, title in enumerate(grid.header):
        stacked = "\n".join(title.split())
        shown.add_column(stacked, justify="right" if i else "left", no_wrap=True)
    for row in grid.rows:
        shown.add_row(*("\n".join(cell) for cell in row), end_section=tall)
    return shown


def _show_brief(rows: Sequence[Row], console: Console) -> None:
    own = [row for row in rows if row.group == rows[0].group and not row.shield]
    table = Table(
        box=box.SIMPLE, title=own[0].world.title or own[0].config.world, title_justify="left"
    )
    table.add_column("")
    for title in COLUMNS:
        table.add_column(title, justify="right")
    for row in own:
        table.add_row(row.full_label, *(cell(row) for cell in COLUMNS.values()))
    console.print(table)
    console.print(_sentence(own), highlight=False)


def _sentence(rows: Sequence[Row]) -> str:
    """Return a sentence on the rows: the share of the task that is kept, and of instructions that are followed."""
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
