"""`table1`: the paper's Table 1 in three blocks: in the paper's conditions, with its literal numbers, and with ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mavic.envs import api
from mavic.evaluation.metrics import COMPLIANCE, CURVES, METRICS
from mavic.reporting import formats, styles
from mavic.reporting.drawing import draw_curve, in_episodes, in_percent, legend, panel, subplots
from mavic.reporting.extras import require
from mavic.reporting.rows import Row, grouped
from mavic.reporting.stats import estimates
from mavic.reporting.studies import page
from mavic.reporting.studies.page import Page, TrainingRows
from mavic.reporting.styles import MISSING
from mavic.studies.studies import TABLE1
from mavic.studies.trainings import WORLDS

EARLY = 1 / 3  # of the training


class _Block(NamedTuple):
    """What the page says of a block."""

    title: str
    text: str
    beside_paper: bool = True
    """Whether the setting is the paper's, so that its figures stand beside."""


BLOCKS: Mapping[str, _Block] = {
    "paper_conditions": _Block(
        "The paper's conditions, with a learner that learns",
        "Instructions, penalties, network and sentences are the paper's. The learner has our numbers (preset "
        "`paper-tuned`), and nothing helps it to obey.",
    ),
    "paper_literal": _Block(
        "The paper's literal numbers",
        "The same with the paper's hyper-parameters (preset `paper`).",
    ),
    "ours": _Block(
        "Our recipe",
        "Instructions come and go, every kind has our rewards, and the preset is `default`. All methods train alone; "
        "MAVIC also with a population.",
        beside_paper=False,
    ),
}
METRIC_NAMES = {"base": "base", "compliance": "compliance", "live": "live", "value_bias": "leak"}


def _table1(found: Sequence[TrainingRows]) -> Page:
    """Draw the tables of every block and world."""
    blocks = {name: _rows(found, name) for name in TABLE1}
    parts = [
        "# Table 1\n",
        "Base is the discounted return without instructions, followed the share of instructions that were obeyed "
        "from beginning to end; ± is the standard deviation over seeds. Bold is the best of its column. The paper's "
        "figures (five seeds) stand beside the rows in its setting.\n",
    ]
    for name, worlds in blocks.items():
        parts += [f"## {BLOCKS[name].title}\n", f"{BLOCKS[name].text}\n"]
        parts += [_part(name, world, rows) for world, rows in worlds.items()]
        parts += [] if worlds else ["Not trained yet.\n"]
    json = {
        name: {
            world: {_method(row): _numbers(row) | _papers(name, row) for row in rows}
            for world, rows in worlds.items()
        }
        for name, worlds in blocks.items()
    }
    first = blocks["paper_conditions"]
    return Page(
        json=json,
        markdown="\n".join(parts),
        figures={"table1": lambda: _draw_curves(first)} if first else {},
    )


def _rows(found: Sequence[TrainingRows], block: str) -> dict[str, list[Row]]:
    """Return the rows of a block by world."""
    preset = TABLE1[block]["preset"]
    rows = [row for one in found for row in one.rows if one.training.axes["preset"] == preset]
    by_world = grouped(rows, lambda row: row.config.world)
    return {world: by_world[world] for world in WORLDS if world in by_world}


def _method(row: Row) -> str:
    """Return the key of a row in JSON."""
    name = "dual" if styles.is_dual(row.config) else row.config.method
    return f"{name}-population" if row.config.population > 1 else name


def _label(row: Row) -> str:
    label, members = page.label(row), row.config.population
    return f"{label}, {members} members" if members > 1 else label


def _numbers(row: Row) -> dict[str, Any]:
    """Return what JSON says of a row."""
    found = {name: row.estimate(metric) for name, metric in METRIC_NAMES.items()}
    numbers = {
        f"{name}_{part}": getattr(one, part)
        for name, one in found.items()
        for part in ("mean", "std")
    }
    return {**numbers, **page.facts(row)}


def _papers(block: str, row: Row) -> dict[str, Any]:
    """Return the paper's figures that stand beside a row."""
    figures = api.known(row.config.world).paper.get(_method(row))
    return {"paper": figures._asdict()} if figures and BLOCKS[block].beside_paper else {}


def _part(block: str, world: str, rows: Sequence[Row]) -> str:
    """Return the tables of a world in a block."""
    record, beside = api.known(world), BLOCKS[block].beside_paper
    parts = [
        f"### {record.title or world}\n",
        f"{page.setting(rows[0]).capitalize()}; dual has the network `protected`. {page.seeds_text(rows)}\n",
        _table(rows, beside),
    ]
    if beside and record.paper_note:
        parts.append(f"Of the paper's figures: {record.paper_note}.\n")
    if block == "paper_conditions":
        parts += [
            "Obedience counted in other ways: the share of decisions, the share of ticks, and the share of "
            f"instructions after a third of the training ({METRICS['leak'].title.lower()} beside):\n",
            _counts(rows),
        ]
    return "\n".join(parts)


def _table(rows: Sequence[Row], beside: bool) -> str:
    header, columns = ["method"], [[_label(row) for row in rows]]
    shown = (("base", "base", _paper_base), ("compliance", "followed", _paper_followed))
    for metric, title, of_paper in shown:
        header.append(title)
        columns.append(_bold_best(rows, metric))
        if beside:
            header.append("the paper")
            columns.append([_of_paper(row, of_paper) for row in rows])
    return page.table(header, list(zip(*columns, strict=True)))


def _bold_best(rows: Sequence[Row], metric: str) -> list[str]:
    """Return the cells of a metric. Those of the largest mean, as it is written, are bold."""
    texts = [page.texts(row, metric)[0] for row in rows]
    means = [formats.text(row.estimate(metric).mean, METRICS[metric].format) for row in rows]
    best = means[max(range(len(rows)), key=lambda i: rows[i].estimate(metric).mean)]
    return [f"**{text}**" if mean == best else text for text, mean in zip(texts, means, strict=True)]  # fmt: skip


def _of_paper(row: Row, write: Callable[[api.PaperFigures], str]) -> str:
    figures = api.known(row.config.world).paper.get(_method(row))
    return MISSING if figures is None else write(figures)


def _paper_base(figures: api.PaperFigures) -> str:
    return f"{formats.number(figures.base)} ± {formats.number(figures.base_std)}"


def _paper_followed(figures: api.PaperFigures) -> str:
    if figures.compliance is None or figures.compliance_std is None:
        return MISSING
    mean = formats.percent(figures.compliance).removesuffix(" %")
    return f"{mean} ± {formats.percent(figures.compliance_std, 2)}"


def _counts(rows: Sequence[Row]) -> str:
    """Return a table of compliance by decisions, by ticks and early, and of the critics' errors."""
    header = ("method", "decisions", "ticks", "early", METRICS["leak"].title.lower())
    lines = []
    for row in rows:
        decisions, ticks, bias = page.texts(row, "per_decision", "per_step", "leak")
        lines.append([page.label(row), decisions, ticks, _early(row), bias])
    return page.table(header, lines)


def _early(row: Row) -> str:
    if not row.curve.has(COMPLIANCE.name):
        return MISSING
    points = row.curve.points[COMPLIANCE.name]
    place = min(range(len(points)), key=lambda i: abs(row.curve.episodes[i] - EARLY * row.episodes))
    (one,) = estimates(points[place][:, None])
    return formats.spread(one, COMPLIANCE.format)


def _draw_curves(worlds: Mapping[str, Sequence[Row]]) -> Any:
    """Draw return and compliance over training, all methods in one panel for each world."""
    figure, panels = subplots(0.8 + 2.6 * len(worlds), len(worlds), len(_SHOWN))
    for line, (world, rows) in zip(panels, worlds.items(), strict=True):
        for axes, metric in zip(line, _SHOWN, strict=True):
            for row in rows:
                dual = styles.DUAL_LOOK if styles.is_dual(row.config) else None
                draw_curve(axes, row, metric.name, dual)
            panel(axes, f"{metric.title} · {api.known(world).title}")
            in_episodes(axes, ticks=5)
            if metric.format.percent:
                in_percent(axes.yaxis)
                axes.set_ylim(-0.03, 1.03)
    every = [row for rows in worlds.values() for row in rows]
    duals = [row for row in every if styles.is_dual(row.config)]
    line = require("matplotlib.lines").Line2D
    seen = styles.DUAL_LOOK
    more = [line([], [], color=seen.colour, linestyle=seen.dash, linewidth=2, label=seen.label)]
    legend(figure, [row for row in every if row not in duals], more if duals else (), linewidth=2)
    return figure


_SHOWN = tuple(metric for metric in CURVES if metric.name in ("base", "compliance"))
DRAWINGS = {"table1": _table1}
