"""Blocks of README and guide: the paper's Table 1 in brief, what our recipe adds, the studies, and times."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mavic.envs import api
from mavic.experiment.methods import preset_of
from mavic.reporting import styles
from mavic.reporting.formats import number, percent
from mavic.reporting.studies import answers
from mavic.studies import trainings
from mavic.studies.studies import STUDIES

ROWS = ("mavic", "naive", "switch", "vanilla")  # those of the paper
WORLDS = ("overcooked", "box_pushing", "warehouse")
INSTEAD = (
    "Not trained yet with a learner that learns (preset `paper-tuned`). With the paper's own hyper-parameters, with "
    "which many seeds do not learn the task:\n\n"
)
CAPTIONS = {
    "table1": "Return and compliance over training in the paper's conditions: MAVIC, its shift, naive, dual, switch, "
    "vanilla"
}
TUNED = "tuned/residual/live/by-kind"


def table(header: list[str], lines: list[list[str]]) -> str:
    """Return a table in Markdown, from the cells of its header and of its lines."""
    written = [header, ["---"] * len(header), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in written)


def table1(results: Path, block: str) -> str:
    """Return a block of Table 1, one column for each world, or in one line if it is ours.

    As long as "paper_conditions" has no records, "paper_literal" stands in its place, and says so.

    Args:
        results: The folder of results.
        block: "paper_conditions", "paper_literal", or "ours".
    """
    blocks = _json(results / "table1.json")
    found = blocks.get(block, {})
    if block == "ours":
        return _ours(results, found)
    if block == "paper_conditions" and not found:
        return INSTEAD + table1(results, "paper_literal")
    worlds = [world for world in WORLDS if world in found]
    best = {world: _best(found[world]) for world in worlds}
    lines = [
        [styles.look(method).label, *(_cell(found[w], method, best[w]) for w in worlds)]
        for method in ROWS
    ]
    shown = table(["base return · followed", *(api.known(w).title for w in worlds)], lines)
    missing = [api.known(world).title for world in WORLDS if world not in found]
    return shown + (f"\nNot trained yet: {' and '.join(missing)}.\n" if missing else "")


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _best(rows: Mapping[str, Any]) -> tuple[str, str]:
    """Return the largest base return and the largest share of followed instructions, as they are written."""
    shown = [rows[method] for method in ROWS if method in rows]
    return (
        number(max(row["base_mean"] for row in shown), 1),
        percent(max(row["compliance_mean"] for row in shown)),
    )


def _cell(rows: Mapping[str, Any], method: str, best: tuple[str, str]) -> str:
    """Return a method's base return and share of followed instructions, with the paper's below. Bold is the best."""
    if method not in rows:
        return styles.MISSING
    row = rows[method]
    base, followed = number(row["base_mean"], 1), percent(row["compliance_mean"])
    base, followed = (
        f"**{text}**" if text == top else text
        for text, top in zip((base, followed), best, strict=True)
    )
    spread = "" if row["base_std"] is None else f" ± {number(row['base_std'], 1)}"
    hears = method != "vanilla"
    ours = f"{base}{spread}{f' · {followed}' if hears else ''}"
    return f"{ours}<br>{_paper(row['paper'])}".replace(" %", "\N{NO-BREAK SPACE}%")


def _paper(figures: Mapping[str, Any]) -> str:
    said = f"paper {number(figures['base'], 1)} ± {number(figures['base_std'], 1)}"
    if figures["compliance"] is None:
        return said
    return f"{said} · {100 * figures['compliance']:.0f} %"


def _ours(results: Path, found: Mapping[str, Any]) -> str:
    """Return what our recipe reaches in every world, in one line: block "ours", or a world's record of version 0.2."""
    said = []
    for world in WORLDS:
        preset = "default" if world in found else "tuned"
        rows = found[world] if world in found else _json(results / world / "table.json")[TUNED]
        row = rows["mavic-population" if "mavic-population" in rows else "mavic"]
        record = api.world(world)
        assert record.optimum is not None
        best = record.optimum(record.make(), preset_of(preset, world).gamma, None)
        base, followed = number(row["base_mean"], 1), percent(row["compliance_mean"], 2)
        of = f"{base} of {number(best or math.nan, 1)}"
        said.append(f"{record.title} {of}, {followed} (preset `{preset}`)")
    return f"{'; '.join(said)}. MAVIC, ten seeds.\n"


def studies(results: Path, _: str = "") -> str:
    """Return the studies: what each tests, its figure or page, its command, and what came out."""
    lines = []
    for name in STUDIES:
        figure = answers.figure(name, results)
        link = f"[figure](../results/{figure.name})" if figure else "[table](record/studies.md)"
        said = answers.answer(name, results) or "Not run yet."
        lines.append([answers.ANSWERS[name].claim, link, f"`mavic reproduce {name}`", said])
    return table(["claim", "shown in", "command", "answer"], lines)


def figure(results: Path, name: str) -> str:
    """Return a study's figure as a page in docs/ shows it; empty as long as it is not drawn."""
    found = answers.figure(name, results)
    return f"![{CAPTIONS[name]}](../results/{found.name})\n" if found else ""


def times(_: Path, __: str = "") -> str:
    """Return how long one team takes to train in each world, from measured speeds."""
    lines = []
    for world in WORLDS:
        one = trainings.training(
            name=world, world=world, preset="default", method="mavic", seeds=1, population=1
        )
        shown = [
            _duration(training.seconds(device))
            for training in (one, one.but(population=8))
            for device in ("cpu", "gpu")
        ]
        lines.append([api.known(world).title, f"{one.preset().episodes:,}", *shown])
    titles = ("one run, two cores", "one run, H200", "8 members, two cores", "8 members, H200")
    return table(["world", "episodes", *titles], lines)


def _duration(seconds: float) -> str:
    return f"{max(1, math.ceil(seconds / 60))} min"
