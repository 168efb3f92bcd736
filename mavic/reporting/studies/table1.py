"""`table1`: the paper's Table 1 beside ours, as the paper sets it and as we do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mavic.envs import api
from mavic.reporting.formats import number, percent
from mavic.reporting.rows import Row
from mavic.reporting.studies import page
from mavic.reporting.studies.page import Page, TrainingRows
from mavic.reporting.styles import MISSING
from mavic.studies.studies import WORLDS

METRICS = {name: page.NAMES[name] for name in ("base", "followed", "leak", "live")}
PAPERS = "paper/add"  # the condition of the paper: at most one instruction an episode, and a penalty for every kind


def _table1(found: Sequence[TrainingRows]) -> Page:
    """Draw the table of every world."""
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
                json[world][name] = {
                    row.config.method: {**page.numbers(row, METRICS), **page.facts(row)}
                    for row in rows
                }
                parts += [
                    f"**{_title(rows[0])}** ({page.setting(rows[0])}). {page.seeds_text(rows)}\n"
                ]
                parts.append(_table(rows, _is_papers(rows[0])))
        if record.paper_note:
            parts.append(f"Of the paper's figures: {record.paper_note}.\n")
    return Page(json=json, markdown="\n".join(parts))


def beside(first: Sequence[TrainingRows], second: Sequence[TrainingRows]) -> str:
    """Return two runs of this study in one table: each number beside its repetition and the paper's.

    Args:
        first: The rows of the first run.
        second: The rows of its repetition, with the same configurations.
    """
    header = ("setting", "method", "base", "again", "paper", "followed", "again", "paper")
    again = {row.config: row for one in second for row in one.rows}
    lines = []
    for row in (row for world in WORLDS for one in first if one.world == world for row in one.rows):
        if row.method.random:
            continue
        pair = (page.texts(one, "base", "compliance") for one in (row, again[row.config]))
        papers = _paper(row) if _is_papers(row) else (MISSING, MISSING)
        base, followed = zip(*pair, papers, strict=True)
        setting = f"{api.known(row.config.world).title}, {_name(row)}"
        lines.append([setting, page.label(row), *base, *followed])
    return page.table(header, lines)


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


def _table(rows: Sequence[Row], papers: bool) -> str:
    header = ["method", "base", "followed", "return with instructions", "value bias"]
    metrics = ("base", "compliance", "live", "leak")
    lines = [[page.label(row), *page.texts(row, *metrics)] for row in rows]
    if papers:
        header[2:2], header[4:4] = ["paper"], ["paper"]
        for row, line in zip(rows, lines, strict=True):
            base, followed = _paper(row)
            line[2:2], line[4:4] = [base], [followed]
    return page.table(header, lines)


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


DRAWINGS = {"table1": _table1}
