"""Rows → figures: learning curves, compliance by kind, base return against compliance, the task under each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from mavic.envs.painting import PALETTE
from mavic.evaluation.metrics import BASE, COMPLIANCE, METRICS, OVERALL
from mavic.reporting import styles
from mavic.reporting.drawing import (
    draw_curve,
    in_episodes,
    in_percent,
    legend,
    panel,
    save,
    square,
    subplots,
)
from mavic.reporting.extras import require
from mavic.reporting.formats import hundredths, number
from mavic.reporting.rows import CURVES, Row, grouped, known_kinds
from mavic.reporting.stats import Estimate
from mavic.reporting.styles import look

UNDER_SHARE = "under_share"
POINT = {"linestyle": "none", "markersize": 7}  # of a legend
ZOOMS = (0.97, 0.9)
"""Shares of the optimum above which points may get a panel of their own; `_zoom_from` chooses one."""
MARKERS = {"protected": "o", "residual": "D", "shared": "s"}
FURTHER_MARKERS = "^v<>Phd*X"  # of other networks, hearings and backbones


def write_figures(rows: Sequence[Row], folder: Path) -> tuple[Path, ...]:
    """Draw every figure of every preset and condition into a folder, and return the files. Networks share a figure."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for key, found in grouped(rows, _figure_key).items():
        for name, draw in FIGURES.items():
            if name == "under" and not known_kinds(found, UNDER_SHARE):
                continue
            stem = "-".join([name, *key.split("/")])
            written += save(folder / stem, partial(draw, found))
    return tuple(written)


def _figure_key(row: Row) -> str:
    return f"{row.config.preset}/{row.config.condition()}"


def _draw_curves(rows: Sequence[Row]) -> Any:
    """Base return and compliance in training: a line per method, the mean and the 95 % interval over seeds."""
    rows = _learners(rows)
    networks = grouped(rows, lambda row: row.network)
    shown = [name for name in CURVES if any(row.curve.has(name) for row in rows)] or CURVES[:2]
    height = 0.7 + 2.7 * len(networks)
    figure, panels = subplots(height, len(networks), len(shown), sharex=True)
    for line, (network, found) in zip(panels, networks.items(), strict=True):
        for axes, name in zip(line, shown, strict=True):
            for row in found:  # dashed lines lie on the solid first one, which shows between dashes
                draw_curve(axes, row, name)
            panel(axes, f"{METRICS[name].title} · {network}{' network' * (len(shown) < 3)}")
            if METRICS[name].format.percent:
                in_percent(axes.yaxis)
                axes.set_ylim(-0.03, 1.03)
    for axes in panels[-1]:
        in_episodes(axes, ticks=6)
    base: Iterable[Any] = panels[:, shown.index(BASE.name)] if BASE.name in shown else ()
    legend(figure, rows, _optimum_lines(base, rows[0].optimum, vertical=False), linewidth=2)
    return figure


def _draw_kinds(rows: Sequence[Row]) -> Any:
    """Compliance by kind as a heat map of methods × kinds, in percent. The first column is all kinds together."""
    name = COMPLIANCE.name
    rows = [row for row in rows if not row.shield]  # with the shield everything is followed
    kinds = known_kinds(rows, name)
    networks = [row.network for row in rows]
    left = np.array([0.0, *(1.35 + np.arange(len(kinds)))])
    top = np.array([i + 0.25 * (network != networks[0]) for i, network in enumerate(networks)])
    figure, ((axes,),) = subplots(1.75 + 0.36 * (top[-1] + 1), 1, 1)
    for y, row in zip(top, rows, strict=True):
        for x, kind in zip(left, (OVERALL, *kinds), strict=True):
            mean = row.estimate(name, kind).mean
            square(axes, x, y, mean, "100" if mean == 1 else hundredths(mean))
    axes.set_xlim(0, left[-1] + 1)
    axes.set_ylim(top[-1] + 1, 0)
    axes.set_xticks(
        left + 0.5, ["all kinds", *kinds], rotation=35, ha="right", rotation_mode="anchor"
    )
    axes.set_yticks(top + 0.5, [_label_with_network(row) for row in rows])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title("Instructions followed, % (mean over seeds)", loc="left", fontsize=11)
    return figure


def _label_with_network(row: Row) -> str:
    if styles.is_dual(row.config):
        return row.label
    return f"{row.full_label} · {row.network}"


def _zoom_from(shares: np.ndarray) -> float:
    """Return the highest of ZOOMS that at least half of the points reach; the first if none is reached by so many."""
    return next((share for share in ZOOMS if np.mean(shares >= share) >= 0.5), ZOOMS[0])


def _draw_both(rows: Sequence[Row]) -> Any:
    """Base return against compliance, a point per seed. Teams that have both are in the upper right corner."""
    rows = _learners(rows)
    optimum = rows[0].optimum
    bases = np.array([value for row in rows for value in row.estimate(BASE.name).values])
    shares = bases / optimum if optimum is not None else np.ones(len(bases))
    zoom = _zoom_from(shares)
    near = shares >= zoom
    zoomed = bool(near.any() and not near.all())
    figure, (panels,) = subplots(4.9, 1, 1 + zoomed, sharey=True)
    for axes in panels:
        _draw_points(axes, rows)
        axes.set_xlabel("base return (uninstructed, discounted)")
    panel(panels[0], "One point per seed: upper right has both")
    panels[0].set_ylabel("instructions followed")
    in_percent(panels[0].yaxis)
    panels[0].set_ylim(-0.04, 1.04)
    if zoomed and optimum is not None:
        panel(panels[1], f"The same, from {zoom:.0%} of the optimum on")
        reach = max(optimum, bases.max()) - zoom * optimum
        panels[1].set_xlim(zoom * optimum, zoom * optimum + 1.06 * reach)
    more = _point_handles(rows) + _optimum_lines(panels, optimum, vertical=True)
    legend(figure, rows, more, marker="o", **POINT)
    return figure


def _in_paper(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the paper's figures by method, where it reports compliance."""
    found = {row.config.method: row.paper for row in rows if row.paper}
    return {method: paper for method, paper in found.items() if paper.compliance is not None}


def _draw_points(axes: Any, rows: Sequence[Row]) -> None:
    markers = _markers(rows)
    for row in reversed(rows):  # the first row of the table lies on top
        axes.scatter(
            row.estimate(BASE.name).values,
            row.estimate(COMPLIANCE.name).values,
            s=46,
            marker=markers[row.network],
            color=look(row.config.method).colour,
            edgecolor="white",
            linewidth=0.6,
            alpha=0.85,
            zorder=3,
        )
    for method, paper in _in_paper(rows).items():
        axes.scatter(
            [paper.base],
            [paper.compliance],
            s=110,
            marker="D",
            facecolor="none",
            edgecolor=look(method).colour,
            linewidth=1.8,
            zorder=4,
        )


def _markers(rows: Sequence[Row]) -> dict[str, str]:
    """Return a marker for each network, backbone and hearing, as `Row.network` names them."""
    further = cycle(FURTHER_MARKERS)
    names = dict.fromkeys(row.network for row in rows)
    return {name: MARKERS.get(name) or next(further) for name in names}


def _point_handles(rows: Sequence[Row]) -> list[Any]:
    """Return the legend entries of networks and of the paper's figures."""
    line = require("matplotlib.lines").Line2D
    handles = []
    for network, marker in _markers(rows).items():
        mark = {"color": PALETTE["grey"], "marker": marker}
        handles.append(line([], [], label=f"{network} network", **mark, **POINT))
    if _in_paper(rows):
        mark = {"color": PALETTE["black"], "marker": "D", "markerfacecolor": "none"}
        handles.append(line([], [], label="reported in the paper", **mark, **POINT))
    return handles


def _learners(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows of teams that learn, without the shield. If all are of the random policy, return them."""
    rows = [row for row in rows if not row.shield]
    return [row for row in rows if not row.method.random] or rows


def _draw_under(rows: Sequence[Row]) -> Any:
    """The task under each kind held from start to end, as a share of the best obedient plan: a point per seed.

    Methods stand side by side within a kind, in the order of tables; a hollow point is a team with the shield.
    """
    rows = [row for row in rows if not row.method.random]
    kinds = known_kinds(rows, UNDER_SHARE)
    networks = grouped([row for row in rows if row.kinds(UNDER_SHARE)], lambda row: row.network)
    figure, panels = subplots(1.6 + 2.6 * len(networks), len(networks), 1, sharex=True)
    panels = panels[:, 0]
    for axes, (network, found) in zip(panels, networks.items(), strict=True):
        step = 0.8 / len(found)
        for i, row in enumerate(found):
            for place, kind in enumerate(kinds):
                x = place + step * (i - (len(found) - 1) / 2)
                _draw_seeds(axes, x, step, row, row.estimate(UNDER_SHARE, kind))
        for place in range(1, len(kinds)):
            axes.axvline(place - 0.5, color=PALETTE["grey"], linewidth=0.6, alpha=0.5)
        panel(
            axes, f"Task return under an instruction, of the best obedient plan · {network} network"
        )
        axes.grid(visible=False, axis="x")
        in_percent(axes.yaxis)
        axes.set_ylim(-0.06, 1.06)
        axes.axhline(1.0, color=PALETTE["black"], linewidth=1, linestyle=(0, (2, 2)), zorder=1)
    panels[-1].set_xlim(-0.5, len(kinds) - 0.5)
    panels[-1].set_xticks(range(len(kinds)), kinds)
    panels[-1].tick_params(axis="x", length=0, rotation=0 if len(kinds) < 5 else 20)
    point = {"marker": "o", **POINT}
    more = []
    if any(row.shield for row in rows):
        hollow = {"color": PALETTE["black"], "markerfacecolor": "none", **point}
        line = require("matplotlib.lines").Line2D
        more = [line([], [], label="the same team with the shield", **hollow)]
    legend(figure, [row for row in rows if not row.shield], more, **point)
    return figure


def _draw_seeds(axes: Any, x: float, width: float, row: Row, estimate: Estimate) -> None:
    """Draw one point per seed side by side, and the mean as a bar. Shares below 0 are drawn at the lower edge."""
    values = np.clip(np.asarray(estimate.values), -0.03, None)
    if not len(values):
        return
    colour = look(row.config.method).colour
    places = x + 0.6 * width * (np.arange(len(values)) - (len(values) - 1) / 2) / len(values)
    face = "none" if row.shield else colour
    axes.scatter(places, values, s=20, facecolor=face, edgecolor=colour, alpha=0.85, zorder=3)
    ends = [x - 0.4 * width, x + 0.4 * width]
    axes.plot(ends, [max(estimate.mean, -0.03)] * 2, color=colour, linewidth=1.4, zorder=2)


def _optimum_lines(panels: Iterable[Any], optimum: float | None, vertical: bool) -> list[Any]:
    """Mark the optimum in each panel, and return its legend entries: one, or none if there is no optimum."""
    if optimum is None:
        return []
    style = {"color": PALETTE["black"], "linewidth": 1, "linestyle": (0, (2, 2))}
    for axes in panels:
        (axes.axvline if vertical else axes.axhline)(optimum, zorder=1, **style)
    text = f"optimum {number(optimum)}"
    return [require("matplotlib.lines").Line2D([], [], label=text, **style)]


FIGURES: dict[str, Callable[[Sequence[Row]], Any]] = {
    "curves": _draw_curves,
    "kinds": _draw_kinds,
    "both": _draw_both,
    "under": _draw_under,
}
