"""`heatmap` and `atlas`: maps over penalty, rate and hold, naive beside MAVIC."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from mavic.envs.painting import ink
from mavic.experiments.metrics import METRICS
from mavic.reporting import formats
from mavic.reporting.extras import require
from mavic.reporting.figures import panel, plain_figure
from mavic.reporting.rows import Row
from mavic.reporting.studies.page import (
    Found,
    Page,
    facts,
    label,
    numbers,
    seeds_text,
    setting,
    table,
)
from mavic.reporting.studies.page import shown as text
from mavic.reporting.styles import MISSING

SHOWN = {"base": "base", "followed": "compliance", "live": "live", "leak": "leak"}


def heatmap(found: Sequence[Found]) -> Page:
    """Return the maps of base return and compliance over penalty × rate, one pair for each method."""
    rows = [row for one in found for row in one.rows]
    methods = list(dict.fromkeys(row.config.method for row in rows))
    lines = []
    for method in methods:
        own = [row for row in rows if row.config.method == method]
        best = max(own, key=_both)
        lines.append(
            [label(best), number_of(best, "penalty"), number_of(best, "rate")]
            + [text(best, metric) for metric in ("base", "compliance")]
        )
    titles = ("method", "penalty", "rate", "base", "followed")
    markdown = "\n".join(
        [
            "# Penalty × rate\n",
            f"Box Pushing with the one kind “do not push any boxes”, held to the end of the episode. "
            f"{setting(rows[0])}, "
            f"and each penalty and rate. {seeds_text(rows[:1])} The best setting of each method, by the smaller of its "
            "share of the optimum and its share of followed instructions:\n",
            table(titles, lines),
            *(f"\n**{METRICS[metric].title}**, rows: method and penalty, columns: rate\n\n" + _grid(rows, metric)
              for metric in ("base", "compliance")),
        ]
    )  # fmt: skip
    json = {
        method: [
            {"penalty": r.config.penalty, "rate": r.config.rate, **numbers(r, SHOWN), **facts(r)}
            for r in rows
            if r.config.method == method
        ]
        for method in methods
    }
    return Page(json=json, markdown=markdown, figures={"heatmap": lambda: _draw(rows, methods)})


def _both(row: Row) -> float:
    """Return the smaller of the share of the optimum and the share of followed instructions."""
    both = row.estimate("share").mean, row.estimate("compliance").mean
    return min(both) if all(map(math.isfinite, both)) else -math.inf


def number_of(row: Row, name: str) -> str:
    """Return a number of a row's condition as text."""
    value = getattr(row.config, name)
    return MISSING if value is None else f"{value:g}"


def _axes(rows: Sequence[Row], *names: str) -> list[list[Any]]:
    return [sorted({getattr(row.config, name) for row in rows}) for name in names]


def _grid(rows: Sequence[Row], metric: str) -> str:
    penalties, rates = _axes(rows, "penalty", "rate")
    lines = []
    for method in dict.fromkeys(row.config.method for row in rows):
        for penalty in penalties:
            cells = {
                r.config.rate: text(r, metric)
                for r in rows
                if (r.config.method, r.config.penalty) == (method, penalty)
            }
            lines.append([f"{method}, {penalty:g}", *(cells.get(rate, MISSING) for rate in rates)])
    return table(["", *(f"{rate:g}" for rate in rates)], lines)


def _draw(rows: Sequence[Row], methods: Sequence[str]) -> Any:
    penalties, rates = _axes(rows, "penalty", "rate")
    figure = plain_figure(0.8 + 2.9 * len(methods))
    panels = figure.subplots(len(methods), 2, squeeze=False)
    for line, method in zip(panels, methods, strict=True):
        own = {(r.config.penalty, r.config.rate): r for r in rows if r.config.method == method}
        for axes, (metric, of) in zip(
            line, {"base": "share", "compliance": "compliance"}.items(), strict=True
        ):
            named = label(next(iter(own.values())))
            panel(axes, f"{named}: {METRICS[metric].title.lower()}")
            for (y, penalty), (x, rate) in product(enumerate(penalties), enumerate(rates)):
                row = own.get((penalty, rate))
                square(axes, x, y, *_shade(row, metric, of))
            frame(axes, [f"{r:g}" for r in rates], [f"{p:g}" for p in penalties], "rate", "penalty")
    return figure


def _shade(row: Row | None, metric: str, of: str) -> tuple[float, str]:
    """Return how bright a cell is, from 0 to 1, and its text."""
    if row is None:
        return math.nan, MISSING
    mean = row.estimate(metric).mean
    percent = METRICS[metric].format.percent
    return row.estimate(of).mean, formats.hundredths(mean, 1) if percent else f"{mean:.0f}"


def square(
    axes: Any, x: float, y: float, shade: float, text: str, colours: str = "cividis"
) -> None:
    """Draw a cell of a map with its text. A shade that is not finite is white."""
    fill = "#FFFFFF"
    if math.isfinite(shade):
        map_ = require("matplotlib").colormaps[colours]
        fill = require("matplotlib.colors").to_hex(map_(float(np.clip(shade, 0, 1))))
    box = require("matplotlib.patches").Rectangle((x, y), 1, 1, facecolor=fill, edgecolor="white")
    axes.add_patch(box)
    axes.text(x + 0.5, y + 0.5, text, color=ink(fill), fontsize=9, ha="center", va="center")


def frame(axes: Any, columns: Sequence[str], lines: Sequence[str], x: str, y: str) -> None:
    """Label the cells of a map."""
    axes.set_xlim(0, len(columns))
    axes.set_ylim(0, len(lines))
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns)
    axes.set_yticks(np.arange(len(lines)) + 0.5, lines)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
    axes.set_xlabel(x)
    axes.set_ylabel(y)


GAINS = {  # of MAVIC over naive in percentage points: the title, and the scale of the colours
    "share": ("gain in base return,\n% of the optimum", 1.0),
    "live_of_optimum": ("gain in return with instructions,\n% of the optimum", 1.0),
    "bias": ("value bias removed, %,\n|naive| − |MAVIC|", 1.0),
}


def atlas(found: Sequence[Found]) -> Page:
    """Return where the correction matters: what MAVIC has more than naive, by rate, hold, penalty and network."""
    rows = [row for one in found for row in one.rows]
    points = _points(rows)
    lines = [
        [
            point["network"], f"{point['penalty']:g}", f"{point['rate']:g}", "–".join(map(str, point["hold"])),
            *(text(row, metric) for metric in ("base", "live", "compliance", "leak") for row in pair),
        ]
        for point, pair in points
    ]  # fmt: skip
    header = ["network", "penalty", "rate", "hold"]
    columns = ("base", "live", "followed", "bias")
    header += [f"{column}, {who}" for column in columns for who in ("naive", "MAVIC")]
    intro = (
        "# Where the correction matters\n\nBox Pushing with all kinds under the rule add; nothing "
        "but what the schedule "
        "gives (no uninstructed episodes, no interrupts without words, no drills). Live is the task return while "
        "instructions come and go; bias is that of the critic on uninstructed histories. A penalty alone teaches no "
        "method to go where it is told, for what it earns on its way is worth more; so few commands are followed, and "
        f"a team that gives up the big box follows more of them. {seeds_text(rows[:1])}\n\n"
    )
    json = [
        {**point, "naive": {**numbers(a, SHOWN), **facts(a)}, "mavic": {**numbers(b, SHOWN), **facts(b)}}
        for point, (a, b) in points
    ]  # fmt: skip
    return Page(
        json={"points": json},
        markdown=intro + table(header, lines),
        figures={"atlas": lambda: _draw_atlas(points)},
    )


Point = tuple[Mapping[str, Any], tuple[Row, Row]]


def _points(rows: Sequence[Row]) -> list[Point]:
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


def gain(pair: tuple[Row, Row], name: str) -> float:
    """Return what MAVIC has more than naive."""
    naive, mavic = pair
    if name == "bias":
        return abs(naive.estimate("leak").mean) - abs(mavic.estimate("leak").mean)
    if name == "live_of_optimum":
        best = naive.optimum or math.nan
        return (mavic.estimate("live").mean - naive.estimate("live").mean) / best
    return mavic.estimate(name).mean - naive.estimate(name).mean


def _draw_atlas(points: Sequence[Point]) -> Any:
    settings = sorted({(p["network"], p["penalty"]) for p, _ in points})
    rates = sorted({p["rate"] for p, _ in points})
    holds = sorted({p["hold"] for p, _ in points})
    figure = plain_figure(0.9 + (0.9 + 0.45 * len(holds)) * len(settings))
    panels = figure.subplots(len(settings), len(GAINS), squeeze=False)
    for line, (network, penalty) in zip(panels, settings, strict=True):
        own = {
            (p["rate"], p["hold"]): pair
            for p, pair in points
            if (p["network"], p["penalty"]) == (network, penalty)
        }
        for axes, (name, (title, scale)) in zip(line, GAINS.items(), strict=True):
            panel(axes, title if axes in panels[0] else "")
            for (x, rate), (y, hold) in product(enumerate(rates), enumerate(holds)):
                pair = own.get((rate, hold))
                more = math.nan if pair is None else gain(pair, name)
                said = formats.hundredths(more, 0, sign=True) if math.isfinite(more) else MISSING
                square(axes, x, y, 0.5 + more / scale / 2, said, "PuOr_r")
            frame(
                axes, [f"{r:g}" for r in rates], ["–".join(map(str, h)) for h in holds], "rate",
                f"{network}, −{penalty:g}\nhold" if name == "share" else "",
            )  # fmt: skip
            axes.title.set_fontsize(9)
    return figure
