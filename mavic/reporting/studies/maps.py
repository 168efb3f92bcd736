"""`heatmap` and `atlas`: maps over penalty, rate and hold, naive beside MAVIC."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from mavic.evaluation.metrics import METRICS
from mavic.reporting import formats
from mavic.reporting.drawing import frame, panel, square, subplots
from mavic.reporting.rows import Row, grouped
from mavic.reporting.studies import page
from mavic.reporting.studies.page import Page, TrainingRows
from mavic.reporting.styles import MISSING


def _heatmap(found: Sequence[TrainingRows]) -> Page:
    """Draw the maps of base return and compliance over penalty × rate, one pair for each method."""
    rows = [row for one in found for row in one.rows]
    methods = _by_method(rows)
    lines = []
    for own in methods.values():
        best = max(own, key=_both)
        numbers = [_number_of(best, name) for name in ("penalty", "rate")]
        lines.append([page.label(best), *numbers, *page.texts(best, "base", "compliance")])
    titles = ("method", "penalty", "rate", "base", "followed")
    markdown = "\n".join(
        [
            "# Penalty × rate\n",
            "Box Pushing with the one kind “do not push any boxes”, held to the end of the episode. "
            f"{page.setting(rows[0])}, and each penalty and rate. {page.seeds_text(rows[:1])} The best setting of "
            "each method, by the smaller of its share of the optimum and its share of followed instructions:\n",
            page.table(titles, lines),
            *(f"\n**{METRICS[metric].title}**, rows: method and penalty, columns: rate\n\n" + _grid(rows, metric)
              for metric in ("base", "compliance")),
        ]
    )  # fmt: skip
    json = {
        method: [
            {"penalty": r.config.penalty, "rate": r.config.rate, **page.numbers(r), **page.facts(r)}
            for r in own
        ]
        for method, own in methods.items()
    }
    return Page(json=json, markdown=markdown, figures={"heatmap": lambda: _draw_heatmap(rows)})


def _by_method(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return grouped(rows, lambda row: row.config.method)


def _both(row: Row) -> float:
    """Return the smaller of the share of the optimum and the share of followed instructions."""
    both = row.estimate("share").mean, row.estimate("compliance").mean
    return min(both) if all(map(math.isfinite, both)) else -math.inf


def _number_of(row: Row, name: str) -> str:
    """Return a number of a row's condition as text."""
    value = getattr(row.config, name)
    return MISSING if value is None else f"{value:g}"


def _axes(rows: Sequence[Row], *names: str) -> list[list[Any]]:
    return [sorted({getattr(row.config, name) for row in rows}) for name in names]


def _grid(rows: Sequence[Row], metric: str) -> str:
    penalties, rates = _axes(rows, "penalty", "rate")
    lines = []
    for method, own in _by_method(rows).items():
        cells = {(r.config.penalty, r.config.rate): page.texts(r, metric)[0] for r in own}
        for penalty in penalties:
            line = [cells.get((penalty, rate), MISSING) for rate in rates]
            lines.append([f"{method}, {penalty:g}", *line])
    return page.table(["", *(f"{rate:g}" for rate in rates)], lines)


def _draw_heatmap(rows: Sequence[Row]) -> Any:
    penalties, rates = _axes(rows, "penalty", "rate")
    methods = _by_method(rows)
    figure, panels = subplots(0.8 + 2.9 * len(methods), len(methods), 2)
    for line, found in zip(panels, methods.values(), strict=True):
        own = {(r.config.penalty, r.config.rate): r for r in found}
        for axes, metric in zip(line, ("base", "compliance"), strict=True):
            panel(axes, f"{page.label(found[0])}: {METRICS[metric].title.lower()}")
            for (y, penalty), (x, rate) in product(enumerate(penalties), enumerate(rates)):
                square(axes, x, y, *_shade(own.get((penalty, rate)), metric))
            frame(axes, [f"{r:g}" for r in rates], [f"{p:g}" for p in penalties], "rate", "penalty")
    return figure


def _shade(row: Row | None, metric: str) -> tuple[float, str]:
    """Return how bright a cell is, from 0 to 1, and its text. The base return is as bright as its share."""
    if row is None:
        return math.nan, MISSING
    mean = row.estimate(metric).mean
    if METRICS[metric].format.percent:
        return mean, formats.hundredths(mean, 1)
    return row.estimate("share").mean, f"{mean:.0f}"


GAINS = {  # titles of what MAVIC has more than naive, in percentage points
    "share": "gain in base return,\n% of the optimum",
    "live_of_optimum": "gain in return with instructions,\n% of the optimum",
    "bias": "value bias removed, %,\n|naive| − |MAVIC|",
}


def _atlas(found: Sequence[TrainingRows]) -> Page:
    """Draw where the correction matters: what MAVIC has more than naive, by rate, hold, penalty and network."""
    rows = [row for one in found for row in one.rows]
    points = _points(rows)
    metrics = ("base", "live", "compliance", "leak")
    lines = [
        [
            point["network"], f"{point['penalty']:g}", f"{point['rate']:g}", "–".join(map(str, point["hold"])),
            *(page.texts(row, metric)[0] for metric in metrics for row in pair),
        ]
        for point, pair in points
    ]  # fmt: skip
    header = ["network", "penalty", "rate", "hold"]
    columns = ("base", "live", "followed", "bias")
    header += [f"{column}, {who}" for column in columns for who in ("naive", "MAVIC")]
    intro = (
        "# Where the correction matters\n\nBox Pushing with all kinds under the rule add; nothing but what the "
        "schedule gives (no uninstructed episodes, no interrupts without words, no drills). Live is the task return "
        "while instructions come and go; bias is that of the critic on uninstructed histories. A penalty alone "
        "teaches no method to go where it is told, for what it earns on its way is worth more; so few commands are "
        f"followed, and a team that gives up the big box follows more of them. {page.seeds_text(rows[:1])}\n\n"
    )
    json = [
        {**point, "naive": {**page.numbers(a), **page.facts(a)}, "mavic": {**page.numbers(b), **page.facts(b)}}
        for point, (a, b) in points
    ]  # fmt: skip
    return Page(
        json={"points": json},
        markdown=intro + page.table(header, lines),
        figures={"atlas": lambda: _draw_atlas(points)},
    )


_Point = tuple[Mapping[str, Any], tuple[Row, Row]]


def _points(rows: Sequence[Row]) -> list[_Point]:
    """Return the settings that both methods have, with the rows of naive and MAVIC."""
    by_setting: dict[tuple, dict[str, Row]] = {}
    for row in rows:
        c = row.config
        by_setting.setdefault((c.network, c.penalty, c.rate, c.hold), {})[c.method] = row
    names = ("network", "penalty", "rate", "hold")
    return [
        (dict(zip(names, key, strict=True)), (pair["naive"], pair["mavic"]))
        for key, pair in sorted(by_setting.items())
        if {"naive", "mavic"} <= set(pair)
    ]


def _gain(pair: tuple[Row, Row], name: str) -> float:
    """Return a gain of GAINS from the rows of naive and MAVIC."""
    naive, mavic = pair
    if name == "bias":
        return abs(naive.estimate("leak").mean) - abs(mavic.estimate("leak").mean)
    if name == "live_of_optimum":
        best = naive.optimum or math.nan
        return (mavic.estimate("live").mean - naive.estimate("live").mean) / best
    return mavic.estimate(name).mean - naive.estimate(name).mean


def _draw_atlas(points: Sequence[_Point]) -> Any:
    settings = sorted({(p["network"], p["penalty"]) for p, _ in points})
    rates = sorted({p["rate"] for p, _ in points})
    holds = sorted({p["hold"] for p, _ in points})
    height = 0.9 + (0.9 + 0.45 * len(holds)) * len(settings)
    figure, panels = subplots(height, len(settings), len(GAINS))
    for line, (network, penalty) in zip(panels, settings, strict=True):
        own = {
            (p["rate"], p["hold"]): pair
            for p, pair in points
            if (p["network"], p["penalty"]) == (network, penalty)
        }
        for axes, (name, title) in zip(line, GAINS.items(), strict=True):
            panel(axes, title if axes in panels[0] else "")
            for (x, rate), (y, hold) in product(enumerate(rates), enumerate(holds)):
                pair = own.get((rate, hold))
                more = math.nan if pair is None else _gain(pair, name)
                said = formats.hundredths(more, 0, sign=True) if math.isfinite(more) else MISSING
                square(axes, x, y, 0.5 + more / 2, said, "PuOr_r")
            frame(
                axes, [f"{r:g}" for r in rates], ["–".join(map(str, h)) for h in holds], "rate",
                f"{network}, −{penalty:g}\nhold" if name == "share" else "",
            )  # fmt: skip
            axes.title.set_fontsize(9)
    return figure


DRAWINGS = {"heatmap": _heatmap, "atlas": _atlas}
