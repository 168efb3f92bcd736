"""Pieces of figures that reports and the pages of studies share."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mavic.envs.painting import PALETTE, ink
from mavic.reporting import styles
from mavic.reporting.extras import require
from mavic.reporting.rows import Row, grouped
from mavic.reporting.stats import interval
from mavic.reporting.styles import look

WIDTH = 9  # inches
COLOURS = 128  # of a PNG
RC = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so figures have the same bytes everywhere
    "font.size": 10,
    "lines.linewidth": 1.8,
    "svg.hashsalt": "mavic",
    "svg.fonttype": "path",
}


def save(stem: Path, draw: Callable[[], Any]) -> list[Path]:
    """Draw a figure and write it as SVG and PNG. The same data give the same bytes.

    Args:
        stem: The path of both files without their endings.
        draw: Returns the figure.
    """
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


def subplots(height: float, lines: int, columns: int, **shared: bool) -> tuple[Any, np.ndarray]:
    """Return an empty figure and its panels [lines, columns].

    Args:
        height: Of the figure, in inches.
        lines: How many lines of panels it has.
        columns: How many panels stand in a line.
        **shared: `sharex` and `sharey`: whether panels share their axes.
    """
    figure = require("matplotlib.figure").Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots(lines, columns, squeeze=False, **shared)


def panel(axes: Any, title: str) -> None:
    """Give a panel its title, frame and grid."""
    axes.set_title(title, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#E6E6E6", linewidth=0.8)
    axes.set_axisbelow(True)


def in_percent(axis: Any) -> None:
    """Write an axis of shares in percent."""
    axis.set_major_formatter(require("matplotlib.ticker").PercentFormatter(1.0, decimals=None))


def in_episodes(axes: Any, ticks: int) -> None:
    """Make the x-axis of a panel one of training episodes, with at most so many ticks."""
    ticker = require("matplotlib.ticker")
    axes.set_xlim(left=0)
    axes.set_xlabel("training episodes")
    axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    axes.xaxis.set_major_locator(ticker.MaxNLocator(ticks))


def legend(figure: Any, rows: Sequence[Row], more: Sequence[Any] = (), **style: Any) -> None:
    """Put a legend below a figure: one entry per method, in the order of tables.

    Args:
        figure: The figure.
        rows: The rows that it shows.
        more: Further entries, which come last.
        **style: How entries of methods are drawn beyond their colours, as `Line2D` takes it.
    """
    line = require("matplotlib.lines").Line2D
    handles = []
    for method, found in grouped(rows, lambda row: row.config.method).items():
        seen = look(method)
        own = {"linestyle": seen.dash, **style}
        handles.append(line([], [], color=seen.colour, label=_legend_text(found), **own))
    figure.legend(handles=[*handles, *more], loc="outside lower center", ncols=3, frameon=False)


def _legend_text(rows: Sequence[Row]) -> str:
    """Return the label of one method's rows, which may be on several networks."""
    dual = [row for row in rows if styles.is_dual(row.config)]
    if not dual:
        return rows[0].full_label
    return dual[0].label if len(dual) == len(rows) else "naive (on protected: dual)"


def draw_curve(axes: Any, row: Row, name: str, seen: styles.Look | None = None) -> None:
    """Draw a row's curve of a metric: the mean and the 95 % interval over seeds.

    Args:
        axes: The panel.
        row: The row. If the metric was not measured in its training, no curve is drawn.
        name: The metric, one of `rows.CURVES`.
        seen: How it looks, if not like its method.
    """
    if not row.curve.has(name):
        return
    points = row.curve.points[name]
    low, high = interval(points.T)
    episodes, style = row.curve.episodes, seen or look(row.config.method)
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


def square(
    axes: Any, x: float, y: float, shade: float, text: str, colours: str = "cividis"
) -> None:
    """Draw a cell of a map with its text.

    Args:
        axes: The panel.
        x: Its left end.
        y: Its lower end.
        shade: Its place in the colours, from 0 to 1. If it is not finite, the cell is white.
        text: What stands in it.
        colours: The name of a colour map of matplotlib.
    """
    fill = PALETTE["white"]
    if math.isfinite(shade):
        known = require("matplotlib").colormaps[colours]
        fill = require("matplotlib.colors").to_hex(known(float(np.clip(shade, 0, 1))))
    box = require("matplotlib.patches").Rectangle((x, y), 1, 1, facecolor=fill, edgecolor="white")
    axes.add_patch(box)
    axes.text(x + 0.5, y + 0.5, text, color=ink(fill), fontsize=9, ha="center", va="center")


def frame(axes: Any, columns: Sequence[str], lines: Sequence[str], x: str, y: str) -> None:
    """Label the cells of a map.

    Args:
        axes: The panel.
        columns: The texts below its columns.
        lines: The texts beside its lines, the lowest first.
        x: The title of the columns.
        y: The title of the lines.
    """
    axes.set_xlim(0, len(columns))
    axes.set_ylim(0, len(lines))
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns)
    axes.set_yticks(np.arange(len(lines)) + 0.5, lines)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
