"""Rows → tables of texts, which all writers share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

from mavic.envs.api import PaperFigures
from mavic.evaluation.metrics import METRICS, PAIRS, Metric
from mavic.evaluation.metrics import UNDER as UNDER_SECTION
from mavic.instruct.pairs import JOINED
from mavic.reporting import formats, styles
from mavic.reporting.captions import caption
from mavic.reporting.formats import Lines, hundredths, number, percent
from mavic.reporting.rows import Row, grouped, known_kinds, shown_lines
from mavic.reporting.styles import MISSING


@dataclass(frozen=True)
class _Column:
    """A column of a table: its title, and the lines of a row's cell."""

    title: str
    text: Callable[[Row], Lines]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table of texts; a cell is one or more lines."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Lines, ...], ...]
    caption: str
    second: tuple[str, ...] = ()
    """Columns that stand in a second table where there is little room."""

    def halves(self) -> tuple[Grid, ...]:
        """Return the table without the columns of `second`, and one with only them beside the first column."""
        if not self.second:
            return (self,)
        late = [i for i, title in enumerate(self.header) if title in self.second]
        early = [i for i in range(len(self.header)) if i not in late]
        return tuple(
            replace(
                self,
                header=tuple(self.header[i] for i in part),
                rows=tuple(tuple(row[i] for i in part) for row in self.rows),
            )
            for part in (early, [0, *late])
        )


def _name(row: Row) -> Lines:
    label, *shield = row.label.split(" + ")
    return (*label.split(), *(f"+ {word}" for word in shield))


def _metric(metric: Metric) -> _Column:
    return _Column(metric.title, lambda row: formats.cell(row.estimate(metric.name), metric.format))


def _base(row: Row) -> Lines:
    estimate, format = row.estimate("base"), METRICS["base"].format
    return (*formats.cell(estimate, format), f"worst {formats.text(estimate.min, format)}")


def _compliance(row: Row) -> Lines:
    estimate, format = row.estimate("compliance"), METRICS["compliance"].format
    return (
        *formats.cell(estimate, format),
        f"worst {formats.text(estimate.min, format)}",
        f"greedy {formats.text(row.estimate('compliance_greedy').mean, format)}",
        *(() if row.method.hears or row.shield else (styles.HEARS_NOTHING,)),
    )


def _leak(row: Row) -> Lines:
    format = METRICS["leak"].format
    own = percent(row.estimate("leak").mean, format.digits, format.sign)
    found = row.leak_over_baseline
    if found is None or not math.isfinite(found.mean):
        return (own,)
    gap = hundredths(found.mean, format.digits, format.sign)
    verdict = "same" if found.contains_zero else "differs"
    return (own, f"Δ {gap}", formats.bounds(found, format), verdict)


def _under(row: Row) -> Lines:
    name = "under_share" if row.kinds("under_share") else "under_of_base"
    share, solved, obeyed = (
        row.over_kinds(name) for name in (name, "under_solved", "under_obeyed")
    )
    if not row.kinds("under_task"):
        return (MISSING,)
    of_base = name != "under_share" and math.isfinite(share[0])
    return (
        percent(share[0]) + " of base" * of_base,
        f"worst {percent(share[1])}",
        f"solved ≥{percent(solved[1], 0)}",
        f"obeyed ≥{percent(obeyed[1], 0)}",
        *([f"{len(row.collapsed)} {COLLAPSED}"] if row.collapsed else []),
    )


def _live(row: Row) -> Lines:
    solved = row.estimate("solved_instructed")
    if not math.isfinite(row.estimate("live_share").mean):
        return (MISSING,)
    share = formats.cell(row.estimate("live_share"), METRICS["live_share"].format)
    return (*share, f"solved {percent(solved.mean, 0)}")


def _paper(figures: PaperFigures | None) -> Lines:
    if figures is None:
        return (MISSING,)
    base = (number(figures.base), f"± {number(figures.base_std)}")
    if figures.compliance is None or figures.compliance_std is None:
        return base
    return (*base, f"{100 * figures.compliance:.0f} ± {100 * figures.compliance_std:.3g} %")


METHOD = _Column("Method", _name)
UNDER = (_Column("Under an instruction", _under), _Column("Live", _live))
MAIN = (
    METHOD,
    _Column(METRICS["base"].title, _base),
    replace(_metric(METRICS["share"]), title="Of optimum"),
    _Column(METRICS["compliance"].title, _compliance),
    _Column(METRICS["leak"].title, _leak),
    _Column("Paper", lambda row: _paper(row.paper)),
)


def _column_grid(title: str, columns: Sequence[_Column], rows: Sequence[Row], caption: str) -> Grid:
    return Grid(
        title=title,
        header=tuple(column.title for column in columns),
        rows=tuple(tuple(column.text(row) for column in columns) for row in rows),
        caption=caption,
    )


def _shown_in(table: str, rows: Sequence[Row]) -> list[Metric]:
    """Return the metrics that a table has columns for."""

    def known(metric: Metric) -> bool:
        return any(math.isfinite(row.estimate(metric.name).mean) for row in rows)

    own = [metric for metric in METRICS.values() if metric.table == table]
    return [metric for metric in own if not metric.if_known or known(metric)]


def _main(rows: Sequence[Row]) -> Grid:
    """Return the main table: base return, compliance and value bias, next to the paper's figures if it has any."""
    known = any(row.kinds("under_task") for row in rows)
    paper = MAIN[-1:] if any(row.paper for row in rows) else ()
    columns = (*MAIN[:-1], *(UNDER if known else ()), *paper)
    grid = _column_grid("Main results", columns, rows, caption("main", rows))
    return replace(grid, second=tuple(column.title for column in UNDER) if known else ())


def _task(rows: Sequence[Row]) -> Grid:
    """Return the table of the task without instructions."""
    found = _shown_in("task", rows)
    episodes = _Column("Episodes", lambda row: (f"{row.evaluation_episodes['base']:,}",))
    columns = (METHOD, *map(_metric, found), episodes)
    return _column_grid("Task", columns, rows, caption("task", rows, found))


def _compliance_table(rows: Sequence[Row]) -> Grid:
    """Return the table of compliance, measured in several ways."""
    found = _shown_in("compliance", rows)
    columns = (
        METHOD,
        *map(_metric, found),
        _Column("Given", lambda row: (f"{sum(row.given_by_seed):,}",)),
        _Column("Episodes", lambda row: (f"{row.evaluation_episodes['compliance']:,}",)),
    )
    return _column_grid("Compliance", columns, rows, caption("compliance", rows, found))


def _kinds(rows: Sequence[Row]) -> Grid:
    """Return the table of compliance by kind of instruction: a line per kind, a column per method."""

    def followed(row: Row, kind: str) -> Lines:
        if kind not in row.kinds("compliance"):
            return (MISSING,)
        found = row.estimate("compliance", kind)
        return (f"{hundredths(found.mean)} ({hundredths(found.min)})",)

    names = {kind: (kind,) for kind in known_kinds(rows, "compliance")}
    return _kinds_grid("Compliance by kind", names, rows, followed, caption("kinds", rows))


COLLAPSED = "collapsed"
HELD = {UNDER_SECTION: "The task under an instruction", PAIRS: "Two at once"}
"""The titles of tables in which each cell has one line per metric of a section."""


def _held(section: str, rows: Sequence[Row]) -> Grid | None:
    """Return the table of a section of HELD: a line per kind or pair; None if no row has any.

    Each cell shows the metrics of METRICS that have a `line`, shares first. A metric that no row has is left out.
    """
    task = f"{section}_task"
    shown = sorted(shown_lines(section, rows), key=lambda metric: not metric.per)

    def text(row: Row, kind: str) -> Lines:
        if kind not in row.kinds(task):
            return (MISSING,)
        lines = [_mean_and_worst(row, metric, kind) for metric in shown]
        if section == UNDER_SECTION and kind in row.collapsed:
            lines.append(COLLAPSED)
        if section == UNDER_SECTION and kind in known_kinds(rows, "under_twin"):
            pair = (row.estimate(name, kind).mean for name in ("under_twin", "twin_uninstructed"))
            under, free = map(percent, pair)
            lines.append(f"twin {under} ({free.removesuffix(' %')})")
        return tuple(lines)

    names = {kind: _with_best_plan(kind, rows) for kind in known_kinds(rows, task)}
    if not names:
        return None
    return _kinds_grid(HELD[section], names, rows, text, caption(section, rows, shown))


def _with_best_plan(kind: str, rows: Sequence[Row]) -> Lines:
    """Return the name of a kind or pair, and the return of the best plan that obeys it if it is known."""
    names = tuple(kind.split(JOINED))
    best = next((row.optima.get(kind) for row in rows if kind in row.optima), None)
    return names if best is None else (*names, f"best {number(best, 1)}")


def _mean_and_worst(row: Row, metric: Metric, kind: str) -> str:
    """Return a line of a cell: a metric's name, its mean over seeds and its worst seed."""
    estimate = row.estimate(metric.name, kind)
    least = formats.text(estimate.min, metric.format).removesuffix(" %")
    return f"{metric.line} {formats.text(estimate.mean, metric.format)} ({least})"


def _kinds_grid(
    title: str,
    names: Mapping[str, Lines],
    rows: Sequence[Row],
    text: Callable[[Row, str], Lines],
    caption: str,
) -> Grid:
    return Grid(
        title=title,
        header=("Kind", *(row.full_label for row in rows)),
        rows=tuple((name, *(text(row, k) for row in rows)) for k, name in names.items()),
        caption=caption,
    )


def _unseen(rows: Sequence[Row]) -> Grid | None:
    """Return the table of compliance with unseen phrases; None if no row was evaluated with them.

    All rows of a group hear alike. A team that hears kinds hears the reader's probabilities of every phrase, so the
    column of the phrase's own vector is left out.
    """
    columns = {
        "Followed": attrgetter("followed"),
        "Own vector": attrgetter("own_vector"),
        "Unsure too": attrgetter("own_vector_anyway"),
    }
    if rows[0].config.hear == "kinds":
        del columns["Own vector"]
    format = METRICS["compliance"].format
    lines: list[tuple[Lines, ...]] = []
    for row in rows:
        for name, found in row.unseen.items():
            understood = f"{found.understood} of {found.phrases}"
            cells = (formats.cell(share(found), format) for share in columns.values())
            lines.append(((row.label,), (name,), (understood,), *cells))
    if not lines:
        return None
    return Grid(
        title="Phrases not seen in training",
        header=("Method", "Phrases", "Understood", *columns),
        rows=tuple(lines),
        caption=caption("unseen", rows),
    )


TABLES: dict[str, Callable[[Sequence[Row]], Grid | None]] = {
    "main": _main,
    "task": _task,
    "compliance": _compliance_table,
    "kinds": _kinds,
    **{section: partial(_held, section) for section in HELD},
    "unseen": _unseen,
}


def group_tables(rows: Sequence[Row]) -> dict[str, dict[str, Grid]]:
    """Return all tables: by the group of their rows, and in it by the names of TABLES."""
    return {
        key: {name: grid for name, make in TABLES.items() if (grid := make(found)) is not None}
        for key, found in grouped(rows, lambda row: row.group).items()
    }
