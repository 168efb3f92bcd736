"""`table1`: the paper's Table 1 beside ours, as the paper sets it and as we do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mavic.envs import api
from mavic.experiments.studies import WORLDS
from mavic.reporting.formats import number, percent
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

METRICS = {"base": "base", "followed": "compliance", "leak": "leak", "live": "live"}
PAPERS = "paper/add"  # the condition of the paper: at most one instruction an episode, and a penalty for every kind


def draw(found: Sequence[Found]) -> Page:
    """Return the table of every world."""
    json: dict[str, Any] = {}
    parts = [
        "# Table 1\n",
        "Base is the discounted return without instructions, followed the share of instructions that were followed; "
        "± is the standard deviation over seeds. The paper's figures (five seeds) stand only beside rows with its "
        "network, rule, schedule and numbers.\n",
    ]
    for world in WORLDS:
        record = api.known(world)
        json[world] = {"paper": {m: figures._asdict() for m, figures in record.paper.items()}}
        parts.append(f"## {record.title or world}\n")
        for one in (one for one in found if one.world == world):
            for condition in one.conditions():
                rows = one.of(condition)
                name = _name(rows[0])
                json[world][name] = {row.config.method: _entry(row) for row in rows}
                parts += [f"**{_title(rows[0])}** ({setting(rows[0])}). {seeds_text(rows)}\n"]
                parts.append(_table(rows, _is_papers(rows[0])))
        if record.paper_note:
            parts.append(f"Of the paper's figures: {record.paper_note}.\n")
    return Page(json=json, markdown="\n".join(parts))


def beside(first: Sequence[Found], second: Sequence[Found]) -> str:
    """Return two runs of this study in one table: each figure beside the other, and beside the paper's."""
    header = ("setting", "method", "base", "again", "paper", "followed", "again", "paper")
    again = {row.config: row for one in second for row in one.rows}
    lines = []
    for row in (row for world in WORLDS for one in first if one.world == world for row in one.rows):
        if row.method.random:
            continue
        base, followed = (
            [text(one, metric) for one in (row, again[row.config])]
            for metric in ("base", "compliance")
        )
        papers = _paper(row) if _is_papers(row) else (MISSING, MISSING)
        place = f"{api.known(row.config.world).title}, {_name(row)}"
        lines.append([place, label(row), *base, papers[0], *followed, papers[1]])
    return table(header, lines)


def _is_papers(row: Row) -> bool:
    """Return whether a row is set as the paper sets it."""
    return row.config.preset == "paper" and row.config.is_papers()


def _name(row: Row) -> str:
    """Return the key of a setting: "paper preset", "tuned", and what differs from them."""
    first = "paper preset" if row.config.preset == "paper" else row.config.preset
    usual = PAPERS if row.config.preset == "paper" else "live/by-kind"
    more = [row.config.condition()] if row.config.condition() != usual else []
    return ", ".join([first, *row.config.backbone_name(), *more])


def _title(row: Row) -> str:
    return "As the paper sets it" if _is_papers(row) else _name(row).capitalize()


def _entry(row: Row) -> dict[str, Any]:
    return {**numbers(row, METRICS), **facts(row)}


def _table(rows: Sequence[Row], papers: bool) -> str:
    header = ["method", "base", "followed", "return with instructions", "value bias"]
    lines = [
        [label(row), *(text(row, metric) for metric in ("base", "compliance", "live", "leak"))]
        for row in rows
    ]
    if papers:
        header[2:2], header[4:4] = ["paper"], ["paper"]
        for row, line in zip(rows, lines, strict=True):
            base, followed = _paper(row)
            line[2:2], line[4:4] = [base], [followed]
    return table(header, lines)


def _paper(row: Row) -> tuple[str, str]:
    """Return the paper's base return and share of followed instructions as texts."""
    figures = api.known(row.config.world).paper.get(row.config.method)
    if figures is None:
        return MISSING, MISSING
    base = f"{number(figures.base)} ± {number(figures.base_std)}"
    if figures.compliance is None or figures.compliance_std is None:
        return base, MISSING
    mean, std = percent(figures.compliance), percent(figures.compliance_std, 2)
    return base, f"{mean.removesuffix(' %')} ± {std}"
