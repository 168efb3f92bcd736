"""Rows → tables of texts, which all writers share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mavic.envs.api import PaperFigures
from mavic.experiments.metrics import METRICS, Metric
from mavic.instruct.pairs import JOINED
from mavic.reporting import captions, formats, styles
from mavic.reporting.formats import Lines, hundredths, number, percent
from mavic.reporting.rows import Row, UnseenPhrases, grouped, known_kinds
from mavic.reporting.stats import Estimate
from mavic.reporting.styles import MISSING


@dataclass(frozen=True)
class Column:
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


@dataclass(frozen=True, kw_only=True)
class GroupTables:
    """The tables of one preset, network and condition, by the names of TABLES."""

    key: str
    tables: dict[str, Grid]

    @property
    def main(self) -> Grid:
        """The table that comes first."""
        return self.tables["main"]


def _name(row: Row) -> Lines:
    label, *shield = row.label.split(" + ")
    return (*label.split(), *(f"+ {word}" for word in shield))


def _metric(metric: Metric) -> Column:
    return Column(metric.title, lambda row: formats.cell(row.estimate(metric.name), metric.format))


def _base(row: Row) -> Lines:
    estimate, format = row.estimate("base"), METRICS["base"].format
    return (*formats.cell(estimate, format), f"worst {formats.worst(estimate, format)}")


def _compliance(row: Row) -> Lines:
    estimate, format = row.estimate("compliance"), METRICS["compliance"].format
    return (
        *formats.cell(estimate, format),
        f"worst {formats.worst(estimate, format)}",
        f"greedy {formats.mean(row.estimate('compliance_greedy'), format)}",
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
    share, solved, obeyed = (
        row.over_kinds(name) for name in ("under_share", "under_solved", "under_obeyed")
    )
    if not row.kinds("under_task"):
        return (MISSING,)
    return (
        percent(share[0]),
        f"worst {percent(share[1])}",
        f"solved ≥{percent(solved[1], 0)}",
        f"obeyed ≥{percent(obeyed[1], 0)}",
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


METHOD = Column("Method", _name)
UNDER = (Column("Under an instruction", _under), Column("Live", _live))
MAIN = (
    METHOD,
    Column(METRICS["base"].title, _base),
    replace(_metric(METRICS["share"]), title="Of optimum"),
    Column(METRICS["compliance"].title, _compliance),
    Column(METRICS["leak"].title, _leak),
    Column("Paper", lambda row: _paper(row.paper)),
)


def _column_grid(title: str, columns: Sequence[Column], rows: Sequence[Row], caption: str) -> Grid:
    return Grid(
        title=title,
        header=tuple(column.title for column in columns),
        rows=tuple(tuple(column.text(row) for column in columns) for row in rows),
        caption=caption,
    )


def _shown_in(table: str) -> list[Metric]:
    return [metric for metric in METRICS.values() if metric.table == table]


def main(rows: Sequence[Row]) -> Grid:
    """Return the main table: base return, compliance and value bias, next to the paper's figures if it has any."""
    known = any(row.kinds("under_task") for row in rows)
    paper = MAIN[-1:] if any(row.paper for row in rows) else ()
    columns = (*MAIN[:-1], *(UNDER if known else ()), *paper)
    grid = _column_grid("Main results", columns, rows, captions.main(rows))
    return replace(grid, second=tuple(column.title for column in UNDER) if known else ())


def task(rows: Sequence[Row]) -> Grid:
    """Return the table of the task without instructions."""
    found = _shown_in("task")
    episodes = Column("Episodes", lambda row: (f"{row.evaluation_episodes['base']:,}",))
    columns = (METHOD, *map(_metric, found), episodes)
    return _column_grid("Task", columns, rows, captions.task(rows, found))


def compliance(rows: Sequence[Row]) -> Grid:
    """Return the table of compliance, measured in several ways."""
    found = _shown_in("compliance")
    columns = (
        METHOD,
        *map(_metric, found),
        Column("Given", lambda row: (f"{sum(row.given_by_seed):,}",)),
        Column("Episodes", lambda row: (f"{row.evaluation_episodes['compliance']:,}",)),
    )
    return _column_grid("Compliance", columns, rows, captions.compliance(rows, found))


def kinds(rows: Sequence[Row]) -> Grid:
    """Return the table of compliance by kind of instruction: a line per kind, a column per method."""

    def followed(row: Row, kind: str) -> Lines:
        if kind not in row.kinds("compliance"):
            return (MISSING,)
        found = row.estimate("compliance", kind)
        return (f"{hundredths(found.mean)} ({hundredths(found.min)})",)

    return _kinds_grid(
        "Compliance by kind", known_kinds(rows, "compliance"), rows, followed, captions.kinds(rows)
    )


def under(rows: Sequence[Row]) -> Grid | None:
    """Return the table of the task under an instruction held to the end; None if no kind leaves the task on."""
    found = known_kinds(rows, "under_task")
    if not found:
        return None
    shown = {METRICS[f"under_{name}"]: name for name in ("share", "task", "solved", "obeyed")}
    twins = known_kinds(rows, "under_twin")

    def earned(row: Row, kind: str) -> Lines:
        if kind not in row.kinds("under_task"):
            return (MISSING,)
        lines = [_mean_and_worst(row, metric, name, kind) for metric, name in shown.items()]
        if kind in twins:
            pair = (row.estimate(name, kind).mean for name in ("under_twin", "twin_uninstructed"))
            under, free = map(percent, pair)
            lines.append(f"twin {under} ({free.removesuffix(' %')})")
        return tuple(lines)

    caption = captions.under(rows, shown, bool(twins))
    grid = _kinds_grid("The task under an instruction", found, rows, earned, caption)
    return _with_best_plans(grid, {kind: (kind,) for kind in found}, rows)


def pairs(rows: Sequence[Row]) -> Grid | None:
    """Return the table of the task under two prohibitions at once; None if no pair was evaluated."""
    found = known_kinds(rows, "pairs_task")
    if not found:
        return None
    shown = {METRICS[f"pairs_{name}"]: name for name in ("task", "solved", "obeyed")}

    def earned(row: Row, pair: str) -> Lines:
        if pair not in row.kinds("pairs_task"):
            return (MISSING,)
        return tuple(_mean_and_worst(row, metric, name, pair) for metric, name in shown.items())

    grid = _kinds_grid("Two at once", found, rows, earned, captions.pairs(rows, shown))
    return _with_best_plans(grid, {pair: tuple(pair.split(JOINED)) for pair in found}, rows)


def _with_best_plans(grid: Grid, names: Mapping[str, Lines], rows: Sequence[Row]) -> Grid:
    """Return a table by kind whose first column has these names, and the return of the best obedient plan if known."""

    def first(kind: str) -> Lines:
        best = next((row.optima.get(kind) for row in rows if kind in row.optima), None)
        return names[kind] if best is None else (*names[kind], f"best {number(best, 1)}")

    lines = zip(names, grid.rows, strict=True)
    return replace(grid, rows=tuple((first(kind), *line[1:]) for kind, line in lines))


def _mean_and_worst(row: Row, metric: Metric, name: str, kind: str) -> str:
    """Return a line of a cell: a metric's name, its mean over seeds and its worst seed."""
    estimate = row.estimate(metric.name, kind)
    least = formats.worst(estimate, metric.format).removesuffix(" %")
    return f"{name} {formats.mean(estimate, metric.format)} ({least})"


def _kinds_grid(
    title: str,
    kinds: Sequence[str],
    rows: Sequence[Row],
    text: Callable[[Row, str], Lines],
    caption: str,
) -> Grid:
    return Grid(
        title=title,
        header=("Kind", *(row.full_label for row in rows)),
        rows=tuple(((kind,), *(text(row, kind) for row in rows)) for kind in kinds),
        caption=caption,
    )


def unseen(rows: Sequence[Row]) -> Grid | None:
    """Return the table of compliance with unseen phrases; None if no row was evaluated with them.

    All rows hear alike. A team that hears kinds hears of every phrase what the reader makes of it, so for it there is
    no other way to hear an understood phrase.
    """
    columns: dict[str, Callable[[UnseenPhrases], Estimate]] = {
        "Followed": lambda found: found.followed,
        "Own vector": lambda found: found.own_vector,
        "Unsure too": lambda found: found.own_vector_anyway,
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
        caption=captions.unseen(rows),
    )


TABLES: dict[str, Callable[[Sequence[Row]], Grid | None]] = {
    "main": main,
    "task": task,
    "compliance": compliance,
    "kinds": kinds,
    "under": under,
    "pairs": pairs,
    "unseen": unseen,
}


def group_tables(rows: Sequence[Row]) -> list[GroupTables]:
    """Return all tables of all groups of rows."""
    made = []
    for key, found in grouped(rows, lambda row: row.group).items():
        grids = {name: grid for name, make in TABLES.items() if (grid := make(found)) is not None}
        made.append(GroupTables(key=key, tables=grids))
    return made
