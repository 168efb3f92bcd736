"""Rows → figures: learning curves, compliance by kind, base return against compliance, the task under each kind."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mavic.envs.painting import PALETTE, ink
from mavic.experiments.metrics import BASE, COMPLIANCE, METRICS
from mavic.reporting import styles
from mavic.reporting.extras import require
from mavic.reporting.formats import hundredths, number
from mavic.reporting.rows import CURVES, Row, grouped, known_kinds
from mavic.reporting.stats import Estimate, interval
from mavic.reporting.styles import MISSING, look

WIDTH = 9  # inches
COLOURS = 128  # of a PNG
UNDER_SHARE = "under_share"
ZOOMS = (0.97, 0.9)
"""Shares of the optimum above which points may get a panel of their own; `zoom_from` chooses one."""
RC = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so figures have the same bytes everywhere
    "font.size": 10,
    "lines.linewidth": 1.8,
    "svg.hashsalt": "mavic",
    "svg.fonttype": "path",
}


def write_figures(rows: Sequence[Row], folder: Path) -> tuple[Path, ...]:
    """Draw every figure of every preset and condition, as SVG and PNG. Networks share a figure."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for key, found in grouped(rows, _figure_key).items():
        for name, draw in FIGURES.items():
            if name == "under" and not known_kinds(found, UNDER_SHARE):
                continue
            stem = "-".join([name, *key.split("/")])
            written += save(folder / stem, partial(draw, found))
    return tuple(written)


def save(stem: Path, draw: Callable[[], Any]) -> list[Path]:
    """Draw a figure and write it as SVG and PNG. The same data give the same bytes."""
    matplotlib = require("matplotlib")
    svg, png = (stem.with_name(f"{stem.name}.{ending}") for ending in ("svg", "png"))
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **RC}):
        figure = draw()
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # the layout is final; both formats share it
        figure.savefig(svg, metadata={"Date": None, "Creator": None})
        drawn = io.BytesIO()
        figure.savefig(drawn, dpi=150, metadata={"Software": None})
    # A palette of few colours makes a file of a third of the size.
    picture = require("PIL.Image").open(drawn).convert("RGB")
    picture.quantize(COLOURS, dither=0).save(png, optimize=True)
    return [svg, png]


def _figure_key(row: Row) -> str:
    return f"{row.config.preset}/{row.config.condition()}"


def draw_curves(rows: Sequence[Row]) -> Any:
    """Base return and compliance in training: a line per method, the mean and the 95 % interval over seeds."""
    rows = _learners(rows)
    ticker = require("matplotlib.ticker")
    networks = grouped(rows, lambda row: row.network)
    shown = [name for name in CURVES if any(has_curve(row, name) for row in rows)] or CURVES[:2]
    figure = plain_figure(0.7 + 2.7 * len(networks))
    panels = figure.subplots(len(networks), len(shown), squeeze=False, sharex=True)
    for line, (network, found) in zip(panels, networks.items(), strict=True):
        for axes, name in zip(line, shown, strict=True):
            for row in found:  # dashed lines lie on the solid first one, which shows between dashes
                draw_curve(axes, row, name)
            panel(axes, f"{METRICS[name].title} · {network}{' network' * (len(shown) < 3)}")
            if METRICS[name].format.percent:
                in_percent(axes.yaxis)
                axes.set_ylim(-0.03, 1.03)
    for axes in panels[-1]:
        axes.set_xlim(left=0)
        axes.set_xlabel("training episodes")
        axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
        axes.xaxis.set_major_locator(ticker.MaxNLocator(6))
    handles = method_handles(rows, linewidth=2)
    base = panels[:, shown.index(BASE.name)] if BASE.name in shown else []
    handles += _optimum_lines(base, rows[0].optimum, vertical=False)
    legend(figure, handles)
    return figure


def has_curve(row: Row, name: str) -> bool:
    """Return whether a metric was measured during this row's training."""
    points = row.curve.points[name]
    return bool(len(points)) and not bool(np.isnan(points).all())


def draw_curve(axes: Any, row: Row, name: str) -> None:
    """Draw one row's curve of a metric: the mean and the 95 % interval over seeds."""
    if not has_curve(row, name):
        return
    points = row.curve.points[name]
    low, high = interval(points.T)
    episodes, style = row.curve.episodes, look(row.config.method)
    axes.fill_between(episodes, low, high, color=style.colour, alpha=0.18, linewidth=0, zorder=2)
    axes.plot(
        episodes,
        points.mean(1),
        color=style.colour,
        linestyle=style.dash,
        linewidth=2.4 if style.dash == "-" else 1.8,
        marker="o" if len(episodes) < 3 else None,
        zorder=3,
    )


def draw_kinds(rows: Sequence[Row]) -> Any:
    """Compliance by kind as a heat map of methods × kinds, in percent. The first column is all kinds together."""
    name = COMPLIANCE.name
    rows = [row for row in rows if not row.shield]  # with the shield everything is followed
    kinds = known_kinds(rows, name)
    networks = [row.network for row in rows]
    left = np.array([0.0, *(1.35 + np.arange(len(kinds)))])
    top = np.array([i + 0.25 * (network != networks[0]) for i, network in enumerate(networks)])
    figure = plain_figure(1.75 + 0.36 * (top[-1] + 1))
    axes = figure.subplots()
    for y, row in zip(top, rows, strict=True):
        for x, estimate in zip(
            left,
            [row.estimate(name), *(row.estimate(name, kind) for kind in kinds)],
            strict=True,
        ):
            _draw_square(axes, x, y, estimate)
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


def _draw_square(axes: Any, x: float, y: float, estimate: Estimate) -> None:
    fill, text = PALETTE["white"], MISSING
    if math.isfinite(estimate.mean):
        colours = require("matplotlib").colormaps["cividis"]
        fill = require("matplotlib.colors").to_hex(colours(estimate.mean))
        text = "100" if estimate.mean == 1 else hundredths(estimate.mean)
    square = require("matplotlib.patches").Rectangle(
        (x, y), 1, 1, facecolor=fill, edgecolor="white"
    )
    axes.add_patch(square)
    axes.text(x + 0.5, y + 0.5, text, color=ink(fill), fontsize=9, ha="center", va="center")


def _label_with_network(row: Row) -> str:
    if styles.is_dual(row.config):
        return row.label
    return f"{row.full_label} · {row.network}"


def zoom_from(shares: np.ndarray) -> float:
    """Return the highest of ZOOMS that at least half of the points reach; the first if none is reached by so many."""
    return next((share for share in ZOOMS if np.mean(shares >= share) >= 0.5), ZOOMS[0])


def draw_both(rows: Sequence[Row]) -> Any:
    """Base return against compliance, a point per seed. Teams that have both are in the upper right corner."""
    rows = _learners(rows)
    optimum = rows[0].optimum
    bases = np.array([value for row in rows for value in row.estimate(BASE.name).values])
    shares = bases / optimum if optimum is not None else np.ones(len(bases))
    zoom = zoom_from(shares)
    near = shares >= zoom
    zoomed = near.any() and not near.all()
    figure = plain_figure(4.9)
    panels = figure.subplots(1, 1 + zoomed, squeeze=False, sharey=True)[0]
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
    handles = _point_handles(rows) + _optimum_lines(panels, optimum, vertical=True)
    legend(figure, handles)
    return figure


def _in_paper(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the paper's figures by method, where it reports compliance."""
    found = {row.config.method: row.paper for row in rows if row.paper}
    return {method: paper for method, paper in found.items() if paper.compliance is not None}


def _draw_points(axes: Any, rows: Sequence[Row]) -> None:
    markers = styles.markers(row.network for row in rows)
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


def _point_handles(rows: Sequence[Row]) -> list[Any]:
    line = require("matplotlib.lines").Line2D
    point = {"linestyle": "none", "markersize": 7}
    handles = method_handles(rows, marker="o", **point)
    for network, marker in styles.markers(row.network for row in rows).items():
        mark = {"color": PALETTE["grey"], "marker": marker}
        handles.append(line([], [], label=f"{network} network", **mark, **point))
    if _in_paper(rows):
        mark = {"color": PALETTE["black"], "marker": "D", "markerfacecolor": "none"}
        handles.append(line([], [], label="reported in the paper", **mark, **point))
    return handles


def method_handles(rows: Sequence[Row], **style: Any) -> list[Any]:
    """Return legend entries, one per method, in the order of tables."""
    line = require("matplotlib.lines").Line2D
    handles = []
    for method, found in grouped(rows, lambda row: row.config.method).items():
        seen = look(method)
        own = {"linestyle": seen.dash, **style}
        handles.append(line([], [], color=seen.colour, label=_legend_text(found), **own))
    return handles


def _legend_text(rows: Sequence[Row]) -> str:
    """Return the label of one method's rows, which may be on several networks."""
    first = rows[0]
    dual = [row for row in rows if styles.is_dual(row.config)]
    if not dual:
        return first.full_label
    return dual[0].label if len(dual) == len(rows) else "naive (on protected: dual)"


def _learners(rows: Sequence[Row]) -> Sequence[Row]:
    """Return rows without the random policy, which learns nothing, and without those of the same team with the shield.

    Return the rest if there is nothing else.
    """
    rows = [row for row in rows if not row.shield]
    return [row for row in rows if not row.method.random] or rows


def draw_under(rows: Sequence[Row]) -> Any:
    """The task under each kind held from start to end, as a share of the best obedient plan: a point per seed.

    Methods stand side by side within a kind, in the order of tables; a hollow point is a team with the shield.
    """
    rows = [row for row in rows if not row.method.random]
    kinds = known_kinds(rows, UNDER_SHARE)
    networks = grouped([row for row in rows if row.kinds(UNDER_SHARE)], lambda row: row.network)
    figure = plain_figure(1.6 + 2.6 * len(networks))
    panels = figure.subplots(len(networks), 1, squeeze=False, sharex=True)[:, 0]
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
    point = {"marker": "o", "linestyle": "none", "markersize": 7}
    handles = method_handles([row for row in rows if not row.shield], **point)
    if any(row.shield for row in rows):
        line = require("matplotlib.lines").Line2D
        hollow = {"color": PALETTE["black"], "markerfacecolor": "none"}
        handles.append(line([], [], label="the same team with the shield", **point, **hollow))
    legend(figure, handles)
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


def plain_figure(height: float) -> Any:
    """Return an empty figure."""
    return require("matplotlib.figure").Figure(figsize=(WIDTH, height), layout="constrained")


def legend(figure: Any, handles: Sequence[Any]) -> None:
    """Put a legend below a figure."""
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)


def panel(axes: Any, title: str) -> None:
    """Give a panel its title, and its frame and grid."""
    axes.set_title(title, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#E6E6E6", linewidth=0.8)
    axes.set_axisbelow(True)


def in_percent(axis: Any) -> None:
    """Write an axis of shares in percent."""
    axis.set_major_formatter(require("matplotlib.ticker").PercentFormatter(1.0, decimals=None))


def _optimum_lines(panels: Iterable[Any], optimum: float | None, vertical: bool) -> list[Any]:
    """Mark the optimum in each panel; returns its legend entry."""
    if optimum is None:
        return []
    style = {"color": PALETTE["black"], "linewidth": 1, "linestyle": (0, (2, 2))}
    for axes in panels:
        (axes.axvline if vertical else axes.axhline)(optimum, zorder=1, **style)
    text = f"optimum {number(optimum)}"
    return [require("matplotlib.lines").Line2D([], [], label=text, **style)]


FIGURES: dict[str, Callable[[Sequence[Row]], Any]] = {
    "curves": draw_curves,
    "kinds": draw_kinds,
    "both": draw_both,
    "under": draw_under,
}
