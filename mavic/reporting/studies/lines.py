"""`curves`, `compliance`, `single` and `dual`: what happens over training, and under one kind alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mavic.evaluation.metrics import COMPLIANCE, METRICS, OVERALL
from mavic.reporting.drawing import draw_curve, in_episodes, in_percent, legend, panel, subplots
from mavic.reporting.figures import FIGURES
from mavic.reporting.formats import spread
from mavic.reporting.rows import CURVES, Row, grouped
from mavic.reporting.stats import estimates
from mavic.reporting.studies import page
from mavic.reporting.studies.page import Page, TrainingRows
from mavic.reporting.styles import look

PHASES = {"early": 1 / 3, "middle": 2 / 3, "late": 1.0}


def _learnt(found: Sequence[TrainingRows]) -> list[Row]:
    return [row for one in found for row in one.rows if not row.method.random]


def _curves(found: Sequence[TrainingRows]) -> Page:
    """Draw return with instructions, return without, and compliance over training."""
    rows = _learnt(found)
    json = {
        f"{row.group} {row.config.method}": {
            "episodes": list(row.curve.episodes),
            **{
                name: {"mean": points.mean(1), "std": _std(points)}
                for name, points in row.curve.points.items()
                if row.curve.has(name)
            },
            **page.facts(row),
        }
        for row in rows
    }
    lines = [
        [page.label(row), row.network, *page.texts(row, "live", "base", "compliance")]
        for row in rows
    ]
    header = ("method", "network", "return with instructions", "return without", "followed")
    markdown = (
        f"# Over training\n\nThe end of training; the figure shows the way there. {page.seeds_text(rows)}\n\n"
        + page.table(header, lines)
    )
    return Page(json=json, markdown=markdown, figures={"curves": lambda: FIGURES["curves"](rows)})


def _std(points: np.ndarray) -> np.ndarray:
    return points.std(1, ddof=1) if points.shape[1] > 1 else np.full(len(points), np.nan)


def _compliance(found: Sequence[TrainingRows]) -> Page:
    """Draw compliance early, in the middle and late in training."""
    rows = [row for row in _learnt(found) if row.curve.has("compliance")]
    json, lines = {}, []
    for row in rows:
        phases = {name: _at(row, share) for name, share in PHASES.items()}
        entry = {
            name: {"episodes": episodes, "followed": one.mean, "followed_std": one.std}
            for name, (episodes, one) in phases.items()
        }
        json[f"{row.group} {row.config.method}"] = {**entry, **page.facts(row)}
        cells = (spread(one, COMPLIANCE.format) for _, one in phases.values())
        lines.append([page.label(row), row.network, *cells, *page.texts(row, "base")])
    header = ("method", "network", *PHASES, "base return at the end")
    markdown = (
        "# Compliance early, in the middle and late\n\nThe share of instructions followed after a third, two thirds "
        f"and all of the training (128 episodes at each point). {page.seeds_text(rows)}\n\n"
        + page.table(header, lines)
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
    figure, (panels,) = subplots(3.4, 1, len(networks), sharey=True)
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
    legend(figure, rows, linewidth=6)
    return figure


def _single(found: Sequence[TrainingRows]) -> Page:
    """Draw what one kind alone does: returns, compliance, and the use of what it names without an instruction."""
    lines, json = [], {}
    for one in found:
        for condition in one.conditions():
            for row in one.of(condition):
                (kind,) = row.config.kinds or (OVERALL,)
                own = {"base": "base", "live": "live", "followed": "compliance"}
                used = {"use_uninstructed": "use_uninstructed", "use": "under_use"}
                cells = page.texts(row, *own.values()) + page.texts(row, *used.values(), kind=kind)
                lines.append([f"`{condition}`", page.label(row), *cells])
                json[f"{condition} {row.config.method}"] = {
                    **page.numbers(row, own),
                    **page.numbers(row, used, kind),
                    **page.facts(row),
                }
    rows = _learnt(found)
    header = (
        "condition", "method", "return without instructions", "return with", "followed",
        "use of what the kind names, nothing asked", "the same while it holds",
    )  # fmt: skip
    markdown = (
        "# One kind alone\n\nOvercooked with one kind of instruction, and nothing but what the schedule gives. Use is "
        "the share of agents' ticks in which a macro runs that the kind names: the board that it forbids, the tomato "
        "that it asks for. Vanilla is trained once for all conditions, so the figure has no curves of it with "
        f"instructions. {page.seeds_text(rows)}\n\n" + page.table(header, lines)
    )
    return Page(json=json, markdown=markdown, figures={"single": lambda: _draw_conditions(rows)})


def _draw_conditions(rows: Sequence[Row]) -> Any:
    by_condition = grouped(rows, lambda row: row.config.condition())
    height = 0.8 + 2.4 * len(by_condition)
    figure, panels = subplots(height, len(by_condition), len(CURVES), sharex=True)
    for line, (condition, own) in zip(panels, by_condition.items(), strict=True):
        for axes, name in zip(line, CURVES, strict=True):
            for row in own:
                draw_curve(axes, row, name)
            panel(axes, f"{METRICS[name].title}\n{condition.partition('kinds=')[2]}")
            if METRICS[name].format.percent:
                axes.set_ylim(0.0, 1.04)
                in_percent(axes.yaxis)
    for axes in panels[-1]:
        in_episodes(axes, ticks=5)
    legend(figure, rows, linewidth=2)
    return figure


def _dual(found: Sequence[TrainingRows]) -> Page:
    """Draw separate networks without the correction (dual) beside MAVIC and naive, with instructions active."""
    rows = [row for row in _learnt(found) if row.config.method in ("naive", "mavic", "vanilla")]
    header = ("method", "network", "return with instructions", "of base", "base", "followed", "bias")  # fmt: skip
    metrics = ("live", "live_share", "base", "compliance", "leak")
    lines = [[page.label(row), row.network, *page.texts(row, *metrics)] for row in rows]
    names = {name: page.NAMES[name] for name in ("live", "base", "followed", "leak")}
    json = {
        f"{row.network} {row.config.method}": {**page.numbers(row, names), **page.facts(row)}
        for row in rows
    }
    markdown = (
        "# Is separating the networks enough?\n\nDual has separate networks for instructed and uninstructed "
        "decisions and naive targets; MAVIC has the correction. Returns are of the task, while instructions come and "
        f"go. {page.seeds_text(rows)}\n\n" + page.table(header, lines)
    )
    return Page(json=json, markdown=markdown, figures={"dual": lambda: _draw_dual(rows)})


def _draw_dual(rows: Sequence[Row]) -> Any:
    networks = grouped(rows, lambda row: row.network)
    figure, (panels,) = subplots(3.4, 1, len(networks), sharey=True)
    for axes, (network, own) in zip(panels, networks.items(), strict=True):
        for row in own:
            draw_curve(axes, row, "live")
        panel(axes, f"Return with instructions · {network}")
        in_episodes(axes, ticks=5)
    legend(figure, rows, linewidth=2)
    return figure


DRAWINGS = {"curves": _curves, "compliance": _compliance, "single": _single, "dual": _dual}
