"""Rows and tables as texts of files: JSON, CSV, Markdown and LaTeX."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from mavic.evaluation.metrics import METRICS, OVERALL, PAIRS, UNDER
from mavic.experiment.records import plain
from mavic.reporting.extras import require
from mavic.reporting.formats import Lines
from mavic.reporting.rows import Row, grouped, shown_lines
from mavic.reporting.stats import Estimate
from mavic.reporting.tables import Grid, group_tables

CONFIG_FIELDS = (
    "world", "method", "backbone", "network", "hear", "preset", "schedule", "rule", "overlap", "extras",
)  # fmt: skip
PARTS = ("mean", "std", "min", "low", "high")


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What the files of a report show."""

    rows: Sequence[Row]
    figures: Sequence[Path] = ()
    """The files of figures, relative to those of tables."""
    unfinished: Sequence[Path] = ()
    """The records that are left out."""


def _json(shown: Contents) -> str:
    """Return numbers by group and method; unknown ones are null."""
    found = {
        key: {row.name: numbers_of(row) for row in same}
        for key, same in grouped(shown.rows, lambda row: row.group).items()
    }
    return json.dumps(found, indent=1, allow_nan=False) + "\n"


def numbers_of(row: Row) -> dict[str, Any]:
    """Return all numbers of a row under their names in `table.json`; unknown ones are None."""
    numbers: dict[str, Any] = {}
    more: dict[str, Any] = {}  # newer keys go last
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
    twins = {
        kind: {
            "under": row.estimate("under_twin", kind).mean,
            "uninstructed": row.estimate("twin_uninstructed", kind).mean,
        }
        for kind in row.kinds("under_twin")
    }
    return {UNDER: _by_kind(row, UNDER), **_over_kinds(row, UNDER), "twin": twins}


def _pairs(row: Row) -> dict[str, Any]:
    """Return the numbers of a row by pair of prohibitions, and over pairs and seeds; empty if none was evaluated."""
    found = _by_kind(row, PAIRS)
    return {PAIRS: found, **_over_kinds(row, PAIRS)} if found else {}


def _by_kind(row: Row, section: str) -> dict[str, Any]:
    """Return by kind or pair the best plan's return, and mean and worst of each metric of a section. Shares go last."""
    shown = shown_lines(section, [row])
    found: dict[str, Any] = {}
    for kind in row.kinds(f"{section}_task"):
        found[kind] = {"optimum": row.optima.get(kind)}
        for metric in sorted(shown, key=lambda metric: bool(metric.per)):
            one = row.estimate(metric.name, kind)
            line = metric.line.replace(" ", "_")
            found[kind] |= {f"{line}_mean": one.mean, f"{line}_min": one.min}
    return found


def _over_kinds(row: Row, section: str) -> dict[str, float]:
    """Return the mean and the minimum over kinds and seeds of the metrics of a section that have them."""
    found: dict[str, float] = {}
    for metric in METRICS.values():
        if metric.section == section and metric.over_kinds:
            mean, least = row.over_kinds(metric.name)
            found |= {f"{metric.name}_mean": mean, f"{metric.name}_min": least}
    return found


def _csv(shown: Contents) -> str:
    """Return one line per row, with all its numbers. Shares, compliance and value bias are fractions."""

    def line(row: Row) -> dict[str, Any]:
        found = {**_identity(row), "seeds": len(row.seeds), "episodes": row.episodes}
        found |= {"optimum": row.optimum, "hears": row.method.hears}
        for metric in METRICS.values():
            if metric.overall:
                found |= _parts(metric.name, row.estimate(metric.name))
        found |= _over_kinds(row, UNDER)
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

    return _csv_lines(line(row) for row in shown.rows)


def _kinds_csv(shown: Contents) -> str:
    """Return one line per row and kind of instruction, with the metrics that are known by kind."""

    def line(row: Row, kind: str) -> dict[str, Any]:
        found = {**_identity(row), "kind": kind, "given": sum(row.given[kind])}
        found["optimum"] = row.optima.get(kind)
        for metric in METRICS.values():
            if metric.by_kind:
                found |= _parts(metric.name, row.estimate(metric.name, kind))
        return found

    return _csv_lines(
        line(row, kind) for row in shown.rows for kind in row.given if kind != OVERALL
    )


def _identity(row: Row) -> dict[str, Any]:
    fields = {name: getattr(row.config, name) for name in CONFIG_FIELDS}
    return {**fields, "shield": row.shield, "label": row.label}


def _parts(name: str, estimate: Estimate) -> dict[str, float]:
    return {f"{name}_{part}": getattr(estimate, part) for part in PARTS}


def _csv_lines(lines: Iterable[dict[str, Any]]) -> str:
    """Return lines as CSV with six significant digits. Unknown numbers are empty."""

    def known(value: Any) -> Any:
        return math.nan if isinstance(value, float) and not math.isfinite(value) else value

    frame = require("pandas").DataFrame(
        [{name: known(value) for name, value in line.items()} for line in lines]
    )
    return frame.to_csv(index=False, float_format="%.6g", lineterminator="\n")


def _markdown(shown: Contents) -> str:
    """Return all tables with their captions, then the names of the figures."""
    world = shown.rows[0].world
    parts = [f"# {world.title or world.name}\n"]
    if names := [f"`{path.name}`" for path in shown.unfinished]:
        parts.append(f"Unfinished records, left out: {', '.join(names)}.\n")
    for key, tables in group_tables(shown.rows).items():
        parts.append(f"## {key}\n")
        for name, grid in tables.items():
            parts += [] if name == "main" else [f"### {grid.title}\n"]
            parts.append(_markdown_grid(grid))
    if figures := [path for path in shown.figures if path.suffix == ".png"]:
        parts.append("## Figures\n")
        parts.append("`mavic report` draws them next to this file, as SVG and PNG.\n")
        parts.append("\n".join(f"- `{path.as_posix()}`" for path in figures) + "\n")
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


def _latex(shown: Contents) -> str:
    """Return all tables for LaTeX. They need the package booktabs."""
    parts = [r"% \usepackage{booktabs}"]
    for key, tables in group_tables(shown.rows).items():
        label = "-".join([*shown.rows[0].config.world.split("_"), *key.split("/")])
        for name, grid in tables.items():
            parts.append(_latex_grid(grid, label if name == "main" else f"{label}-{name}"))
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


FILES: dict[str, tuple[str, Callable[[Contents], str]]] = {
    "json": ("table.json", _json),
    "markdown": ("table.md", _markdown),
    "latex": ("table.tex", _latex),
    "csv": ("table.csv", _csv),
    "kinds_csv": ("kinds.csv", _kinds_csv),
}
"""The files of a report by their fields in `ReportPaths`: the name of each, and the function that writes its text."""
