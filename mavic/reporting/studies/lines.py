"""`curves`, `compliance`, `single` and `dual`: what happens over training, and under one kind alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mavic.experiments.metrics import METRICS
from mavic.reporting.extras import require
from mavic.reporting.figures import (
    draw_curve,
    draw_curves,
    has_curve,
    in_percent,
    legend,
    method_handles,
    panel,
    plain_figure,
)
from mavic.reporting.rows import CURVES, Row, grouped
from mavic.reporting.stats import estimates
from mavic.reporting.studies.page import (
    Found,
    Page,
    facts,
    label,
    numbers,
    seeds_text,
    table,
    text_of,
)
from mavic.reporting.studies.page import shown as text
from mavic.reporting.styles import look

PHASES = {"early": 1 / 3, "middle": 2 / 3, "late": 1.0}


def _learnt(found: Sequence[Found]) -> list[Row]:
    return [row for one in found for row in one.rows if not row.method.random]


def curves(found: Sequence[Found]) -> Page:
    """Return return with instructions, return without, and compliance over training."""
    rows = _learnt(found)
    json = {
        f"{row.group} {row.config.method}": {
            "episodes": list(row.curve.episodes),
            **{
                name: {"mean": points.mean(1), "std": _std(points)}
                for name, points in row.curve.points.items()
                if has_curve(row, name)
            },
            **facts(row),
        }
        for row in rows
    }
    lines = [
        [label(row), row.network, text(row, "live"), text(row, "base"), text(row, "compliance")]
        for row in rows
    ]
    header = ("method", "network", "return with instructions", "return without", "followed")
    markdown = (
        f"# Over training\n\nThe end of training; the figure shows the way there. {seeds_text(rows)}\n\n"
        + table(header, lines)
    )
    return Page(json=json, markdown=markdown, figures={"curves": lambda: draw_curves(rows)})


def _std(points: np.ndarray) -> np.ndarray:
    return points.std(1, ddof=1) if points.shape[1] > 1 else np.full(len(points), np.nan)


def compliance(found: Sequence[Found]) -> Page:
    """Return compliance early, in the middle and late in training."""
    rows = [row for row in _learnt(found) if has_curve(row, "compliance")]
    json, lines = {}, []
    for row in rows:
        phases = {name: _at(row, share) for name, share in PHASES.items()}
        entry = {
            name: {"episodes": episodes, "followed": one.mean, "followed_std": one.std}
            for name, (episodes, one) in phases.items()
        }
        json[f"{row.group} {row.config.method}"] = {**entry, **facts(row)}
        cells = (f"{text_of(one, 'compliance')}" for _, one in phases.values())
        lines.append([label(row), row.network, *cells, text(row, "base")])
    header = ("method", "network", *PHASES, "base return at the end")
    markdown = (
        "# Compliance early, in the middle and late\n\nThe share of instructions followed after a "
        "third, two thirds and "
        f"all of the training (128 episodes at each point). {seeds_text(rows)}\n\n"
        + table(header, lines)
    )
    return Page(json=json, markdown=markdown, figures={"compliance": lambda: _draw_phases(rows)})


def _at(row: Row, share: float) -> tuple[int, Any]:
    """Return the training episodes and the compliance over seeds at the point nearest to a share of training."""
    episodes = np.asarray(row.curve.episodes)
    place = int(np.abs(episodes - share * episodes[-1]).argmin())
    (one,) = estimates(row.curve.points["compliance"][place][:, None])
    return int(episodes[place]), one


def _draw_phases(rows: Sequence[Row]) -> Any:
    networks = grouped(rows, lambda row: row.network)
    figure = plain_figure(3.4)
    panels = figure.subplots(1, len(networks), squeeze=False, sharey=True)[0]
    for axes, (network, own) in zip(panels, networks.items(), strict=True):
        width = 0.8 / len(own)
        for number, row in enumerate(own):
            for place, share in enumerate(PHASES.values()):
                _, one = _at(row, share)
                x = place + width * (number - (len(own) - 1) / 2)
                axes.bar(x, one.mean, 0.9 * width, color=look(row.config.method).colour, zorder=2)
                ends = [max(0.0, one.low), one.high]
                axes.plot([x, x], ends, color="black", linewidth=1, zorder=3)
        panel(axes, f"Instructions followed · {network}")
        axes.set_xticks(range(len(PHASES)), PHASES)
        in_percent(axes.yaxis)
    legend(figure, method_handles(rows, linewidth=6))
    return figure


def single(found: Sequence[Found]) -> Page:
    """Return what one kind alone does: returns, compliance, and the use of what it names when nothing is asked."""
    lines, json = [], {}
    for one in found:
        for condition in one.conditions():
            for row in one.of(condition):
                (kind,) = row.config.kinds or ("",)
                lines.append(
                    [
                        f"`{condition}`", label(row), text(row, "base"), text(row, "live"), text(row, "compliance"),
                        text(row, "use_uninstructed", kind), text(row, "under_use", kind),
                    ]
                )  # fmt: skip
                own = {"base": "base", "live": "live", "followed": "compliance"}
                used = {"use_uninstructed": "use_uninstructed", "use": "under_use"}
                json[f"{condition} {row.config.method}"] = {
                    **numbers(row, own),
                    **numbers(row, used, kind),
                    **facts(row),
                }
    rows = _learnt(found)
    header = (
        "condition", "method", "return without instructions", "return with", "followed",
        "use of what the kind names, nothing asked", "the same while it holds",
    )  # fmt: skip
    markdown = (
        "# One kind alone\n\nOvercooked with one kind of instruction, and nothing but what the "
        "schedule gives. Use is the "
        "share of agents' ticks in which a macro runs that the kind names: the board that it "
        "forbids, the tomato that it "
        "asks for. Vanilla is trained once for all conditions, so the figure has no curves of it with "
        f"instructions. {seeds_text(rows)}\n\n" + table(header, lines)
    )
    return Page(json=json, markdown=markdown, figures={"single": lambda: _draw_conditions(rows)})


def _draw_conditions(rows: Sequence[Row]) -> Any:
    by_condition = grouped(rows, lambda row: row.config.condition())
    figure = plain_figure(0.8 + 2.4 * len(by_condition))
    panels = figure.subplots(len(by_condition), len(CURVES), squeeze=False, sharex=True)
    for line, (condition, own) in zip(panels, by_condition.items(), strict=True):
        for axes, name in zip(line, CURVES, strict=True):
            for row in own:
                draw_curve(axes, row, name)
            panel(axes, f"{METRICS[name].title}\n{condition.partition('kinds=')[2]}")
            if METRICS[name].format.percent:
                axes.set_ylim(0.0, 1.04)
                in_percent(axes.yaxis)
    _episodes(panels[-1])
    legend(figure, method_handles(rows, linewidth=2))
    return figure


def _episodes(panels: Iterable[Any]) -> None:
    ticker = require("matplotlib.ticker")
    for axes in panels:
        axes.set_xlim(left=0)
        axes.set_xlabel("training episodes")
        axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
        axes.xaxis.set_major_locator(ticker.MaxNLocator(5))


def dual(found: Sequence[Found]) -> Page:
    """Return separate networks without the correction (dual) beside MAVIC and naive, with instructions active."""
    rows = [row for row in _learnt(found) if row.config.method in ("naive", "mavic", "vanilla")]
    header = (
        "method",
        "network",
        "return with instructions",
        "of base",
        "base",
        "followed",
        "bias",
    )
    metrics = ("live", "live_share", "base", "compliance", "leak")
    lines = [[label(row), row.network, *(text(row, metric) for metric in metrics)] for row in rows]
    names = {"live": "live", "base": "base", "followed": "compliance", "leak": "leak"}
    json = {
        f"{row.network} {row.config.method}": {**numbers(row, names), **facts(row)} for row in rows
    }
    markdown = (
        "# Is separating the networks enough?\n\nDual has separate networks for instructed and "
        "uninstructed decisions and "
        "naive targets; MAVIC has the correction. Returns are of the task, while instructions come and go. "
        f"{seeds_text(rows)}\n\n" + table(header, lines)
    )
    return Page(json=json, markdown=markdown, figures={"dual": lambda: _draw_dual(rows)})


def _draw_dual(rows: Sequence[Row]) -> Any:
    networks = grouped(rows, lambda row: row.network)
    figure = plain_figure(3.4)
    panels = figure.subplots(1, len(networks), squeeze=False, sharey=True)[0]
    for axes, (network, own) in zip(panels, networks.items(), strict=True):
        for row in own:
            draw_curve(axes, row, "live")
        panel(axes, f"Return with instructions · {network}")
    _episodes(panels)
    legend(figure, method_handles(rows, linewidth=2))
    return figure
