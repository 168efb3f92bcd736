"""Rows and tables as texts of files: JSON, CSV, Markdown and LaTeX; and as tables on a terminal."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.console import Group as Stacked
from rich.table import Table
from rich.text import Text

from mavic.experiments.metrics import METRICS, OVERALL
from mavic.experiments.records import plain
from mavic.reporting.extras import require
from mavic.reporting.formats import Lines
from mavic.reporting.rows import Row, grouped
from mavic.reporting.stats import Estimate
from mavic.reporting.tables import Grid, group_tables

CONFIG_FIELDS = (
    "world",
    "method",
    "backbone",
    "network",
    "hear",
    "preset",
    "schedule",
    "rule",
    "overlap",
    "extras",
)
OVER_KINDS = ("under_share", "under_solved", "under_obeyed")
"""Metrics by kind whose mean and minimum over kinds and seeds are reported."""
PARTS = ("mean", "std", "min", "low", "high")


def json_text(rows: Sequence[Row]) -> str:
    """Return `table.json`: numbers by group and method; unknown ones are null."""
    found = {
        key: {row.name: numbers_of(row) for row in same}
        for key, same in grouped(rows, lambda row: row.group).items()
    }
    return json.dumps(found, indent=1, allow_nan=False) + "\n"


def numbers_of(row: Row) -> dict[str, Any]:
    """Return all numbers of a row under their names in `table.json`; unknown ones are None."""
    numbers: dict[str, Any] = {}
    more: dict[str, Any] = {}  # what came later stands behind what was always there
    for metric in METRICS.values():
        if not metric.json:
            continue
        found = row.estimate(metric.name)
        if metric.json_spread:
            numbers |= {
                f"{metric.json}_mean": found.mean,
                f"{metric.json}_std": found.std,
                f"{metric.json}_min": found.min,
                f"{metric.json}_ci": [found.low, found.high],
            }
        elif metric.json_min:
            more |= {metric.json: found.mean, f"{metric.json}_min": found.min}
        else:
            numbers[metric.json] = found.mean
    counts = {"seeds": len(row.seeds), "episodes": row.episodes}
    if row.diverged:
        more["diverged"] = len(row.diverged)
    return plain({**numbers, **counts, **more, **_under(row), **_pairs(row)})


def _under(row: Row) -> dict[str, Any]:
    """Return the numbers of a row by kind that held from the start, and over kinds and seeds."""
    names = ("task", "solved", "obeyed", "share")
    numbers = {
        "under": {kind: _held(row, "under", kind, names) for kind in row.kinds("under_task")},
        **_over_kinds(row, OVER_KINDS),
    }
    return numbers | {
        "twin": {
            kind: {
                "under": row.estimate("under_twin", kind).mean,
                "uninstructed": row.estimate("twin_uninstructed", kind).mean,
            }
            for kind in row.kinds("under_twin")
        }
    }


def _pairs(row: Row) -> dict[str, Any]:
    """Return the numbers of a row by pair of prohibitions, and over pairs and seeds; nothing if none were evaluated."""
    evaluated = row.kinds("pairs_task")
    if not evaluated:
        return {}
    names = ("task", "solved", "obeyed")
    return {
        "pairs": {pair: _held(row, "pairs", pair, names) for pair in evaluated},
        **_over_kinds(row, ("pairs_solved", "pairs_obeyed")),
    }


def _held(row: Row, section: str, kind: str, names: Iterable[str]) -> dict[str, Any]:
    """Return the numbers of a row under one kind or pair: the best plan's return, and mean and worst of each metric."""
    found: dict[str, Any] = {"optimum": row.optima.get(kind)}
    for name in names:
        estimate = row.estimate(f"{section}_{name}", kind)
        found |= {f"{name}_mean": estimate.mean, f"{name}_min": estimate.min}
    return found


def _over_kinds(row: Row, metrics: Iterable[str]) -> dict[str, float]:
    """Return the mean and the minimum of metrics over kinds and seeds."""
    found: dict[str, float] = {}
    for name in metrics:
        found[f"{name}_mean"], found[f"{name}_min"] = row.over_kinds(name)
    return found


def csv_text(rows: Iterable[Row]) -> str:
    """Return `table.csv`: one line per row, with all its numbers. Shares, compliance and value bias are fractions."""

    def line(row: Row) -> dict[str, Any]:
        found = {**_identity(row), "seeds": len(row.seeds), "episodes": row.episodes}
        found |= {"optimum": row.optimum, "hears": row.method.hears}
        for metric in METRICS.values():
            if metric.overall:
                found |= _parts(metric.name, row.estimate(metric.name))
        found |= _over_kinds(row, OVER_KINDS)
        against, paper = row.leak_over_baseline, row.paper
        return found | {
            "leak_over_vanilla": against and against.mean,
            "leak_over_vanilla_low": against and against.low,
            "leak_over_vanilla_high": against and against.high,
            "leak_over_vanilla_contains_zero": against and against.contains_zero,
            "base_episodes": row.evaluation_episodes["base"],
            "compliance_episodes": row.evaluation_episodes["compliance"],
            "given": sum(row.given_by_seed),
            "given_min": min(row.given_by_seed),
            "paper_base": paper and paper.base,
            "paper_base_std": paper and paper.base_std,
            "paper_compliance": paper and paper.compliance,
            "paper_compliance_std": paper and paper.compliance_std,
        }

    return _csv(line(row) for row in rows)


def kinds_csv_text(rows: Iterable[Row]) -> str:
    """Return `kinds.csv`: one line per row and kind of instruction, with the metrics that are known by kind."""

    def line(row: Row, kind: str) -> dict[str, Any]:
        found = {**_identity(row), "kind": kind, "given": sum(row.given[kind])}
        found["optimum"] = row.optima.get(kind)
        for metric in METRICS.values():
            if metric.by_kind:
                found |= _parts(metric.name, row.estimate(metric.name, kind))
        return found

    return _csv(line(row, kind) for row in rows for kind in row.given if kind != OVERALL)


def _identity(row: Row) -> dict[str, Any]:
    fields = {name: getattr(row.config, name) for name in CONFIG_FIELDS}
    return {**fields, "shield": row.shield, "label": row.label}


def _parts(name: str, estimate: Estimate) -> dict[str, float]:
    return {f"{name}_{part}": getattr(estimate, part) for part in PARTS}


def _csv(lines: Iterable[dict[str, Any]]) -> str:
    """Return lines as CSV with six significant digits. Unknown numbers are empty."""

    def known(value: Any) -> Any:
        return math.nan if isinstance(value, float) and not math.isfinite(value) else value

    frame = require("pandas").DataFrame(
        [{name: known(value) for name, value in line.items()} for line in lines]
    )
    return frame.to_csv(index=False, float_format="%.6g", lineterminator="\n")


def markdown_text(
    rows: Sequence[Row], figures: Iterable[Path] = (), unfinished: Iterable[Path] = ()
) -> str:
    """Return `table.md`: all tables with their captions, then the names of the figures."""
    world = rows[0].world
    parts = [f"# {world.title or world.name}\n"]
    if names := [f"`{path.name}`" for path in unfinished]:
        parts.append(f"Unfinished records, left out: {', '.join(names)}.\n")
    for group in group_tables(rows):
        parts.append(f"## {group.key}\n")
        for name, grid in group.tables.items():
            parts += [] if name == "main" else [f"### {grid.title}\n"]
            parts.append(_markdown_grid(grid))
    if shown := [path for path in figures if path.suffix == ".png"]:
        parts.append("## Figures\n")
        parts.append("`mavic report` draws them next to this file, as SVG and PNG.\n")
        parts.append("\n".join(f"- `{path.as_posix()}`" for path in shown) + "\n")
    return "\n".join(parts)


def _markdown_grid(grid: Grid) -> str:
    lines = [
        "| " + " | ".join(grid.header) + " |",
        "|" + "|".join([":--", *["--:"] * (len(grid.header) - 1)]) + "|",
        *("| " + " | ".join("<br>".join(cell) for cell in row) + " |" for row in grid.rows),
    ]
    return "\n".join(lines) + f"\n\n{grid.caption}\n"


_TEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{character: "\\" + character for character in "%&_#$"},
        **{"{": r"\{", "}": r"\}", "[": "{[}", "]": "{]}"},
        **{"−": "$-$", "±": r"$\pm$", "≥": r"$\geq$", "×": r"$\times$"},
        **{"Δ": r"$\Delta$", "σ": r"$\sigma$", "γ": r"$\gamma$"},
        **{"—": "---", "–": "--", "`": ""},
    }
)


def latex_text(rows: Sequence[Row]) -> str:
    """Return `table.tex`: all tables for LaTeX. It needs the package booktabs."""
    parts = [r"% \usepackage{booktabs}"]
    for group in group_tables(rows):
        place = "-".join([*rows[0].config.world.split("_"), *group.key.split("/")])
        for name, grid in group.tables.items():
            parts.append(_latex_grid(grid, place if name == "main" else f"{place}-{name}"))
    return "\n\n".join(parts) + "\n"


def _latex_grid(grid: Grid, name: str) -> str:
    def lines(row: Sequence[Lines]) -> list[str]:
        stacked = zip_longest(*row, fillvalue="")
        return [" & ".join(text.translate(_TEX) for text in line) + r" \\" for line in stacked]

    body: list[str] = []
    for row in grid.rows:
        if body and any(len(cell) > 1 for cell in row):
            body.append(r"\addlinespace")
        body += lines(row)
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
            rf"\caption{{{grid.caption.translate(_TEX)}}}",
            rf"\label{{tab:{name}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(grid.header) - 1)}}}",
            r"\toprule",
            *lines([tuple(title.split()) for title in grid.header]),
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def terminal(key: str, name: str, grid: Grid) -> Stacked:
    """Return a table of a group for a terminal."""
    heading = key if name == "main" else f"{key}: {grid.title}"
    parts = [_terminal_grid(half) for half in grid.halves()]
    return Stacked(Text(heading, "bold"), *parts, Text(f"{grid.caption}\n", "dim"))


def _terminal_grid(grid: Grid) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    tall = any(len(cell) > 1 for row in grid.rows for cell in row)
    for i, title in enumerate(grid.header):
        stacked = "\n".join(title.split())
        shown.add_column(stacked, justify="right" if i else "left", no_wrap=True)
    for row in grid.rows:
        shown.add_row(*("\n".join(cell) for cell in row), end_section=tall)
    return shown


def show(rows: Sequence[Row], console: Console) -> None:
    """Print the main tables, and what goes beyond them; compliance by kind only for the first group."""
    for i, group in enumerate(group_tables(rows)):
        for name, grid in group.tables.items():
            if name in ("main", "unseen") or (name == "kinds" and i == 0):
                console.print(terminal(group.key, name, grid))
