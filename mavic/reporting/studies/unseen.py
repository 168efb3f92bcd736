"""`ood` and `infeasible`: phrases that no team was trained on, and requests that no team can fulfil."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mavic.envs import api
from mavic.evaluation.infeasible import NO_REQUEST
from mavic.evaluation.metrics import COMPLIANCE
from mavic.reporting.drawing import frame, panel, square, subplots
from mavic.reporting.formats import percent, spread
from mavic.reporting.rows import Row
from mavic.reporting.stats import Estimate, estimates
from mavic.reporting.studies import page
from mavic.reporting.studies.page import Page, TrainingRows
from mavic.reporting.styles import MISSING

WAYS = {
    "per_instruction": "followed, as our reader understands it",
    "own_vector_anyway": "followed, as its own vector (the paper's way)",
}
TOP = 8  # macros of a figure


def _one(values: Sequence[float | None] | None) -> Estimate | None:
    """Return an estimate over seeds; None if the instruction was not given."""
    if values is None or any(v is None for v in values):
        return None
    (found,) = estimates(np.asarray(values, float)[:, None])
    return found


def _ood(found: Sequence[TrainingRows]) -> Page:
    """Draw how each of the paper's unseen phrases is followed, by every method."""
    json: dict[str, Any] = {}
    lines = []
    for row in (row for one in found for row in one.rows):
        for phrase, entry in row.words.get("paper", {}).get("each", {}).items():
            ways = {way: _one(entry.get(way)) for way in WAYS}
            key = f"{row.group} {row.config.method}"
            json.setdefault(phrase, {})[key] = {
                **{way: None if e is None else e.mean for way, e in ways.items()},
                **{f"{way}_std": None if e is None else e.std for way, e in ways.items()},
                **page.facts(row),
            }
            texts = [
                "not asked (unsure)" if e is None else spread(e, COMPLIANCE.format)
                for e in ways.values()
            ]
            lines.append([f"“{phrase}”", page.label(row), row.network, *texts])
    lines.sort(key=lambda line: line[0])
    rows = [row for one in found for row in one.rows if row.words]
    header = ("phrase", "method", "network", *WAYS.values())
    papers = {
        phrase: figures
        for one in found
        for phrase, figures in api.known(one.world).paper_phrases.items()
    }
    said = ", ".join(f"“{phrase}” {_share(*figures)}" for phrase, figures in papers.items())
    markdown = (
        "# Phrases that no team was trained on\n\nThe paper's three. ± is the standard deviation over seeds. "
        f"As its own vector a phrase needs no reader. {page.seeds_text(rows)}\n\n"
        + page.table(header, lines)
        + f"\nThe paper has, with MAVIC under a schedule and rewards of its own: {said}.\n"
    )
    return Page(json=json, markdown=markdown)


def _share(mean: float, std: float) -> str:
    return f"{100 * mean:.1f} ± {100 * std:.1f} %"


def _infeasible(found: Sequence[TrainingRows]) -> Page:
    """Draw which macros are chosen under requests that no team can fulfil."""
    rows = [row for one in found for row in one.rows if row.requests]
    json: dict[str, Any] = {}
    lines = []
    for row in rows:
        means = {
            (request, way): _means(entry[way])
            for request, entry in row.requests.items()
            for way in ("own", "read")
            if way in entry
        }
        json[f"{row.group} {row.config.method}"] = {
            **{f"{request}, {way}": shares for (request, way), shares in means.items()},
            **page.facts(row),
        }
        for request, entry in _silence_first(row.requests):
            cells = [_most(means.get((request, way))) for way in ("own", "read")]
            asked = entry.get("asked", MISSING)
            said = "unsure: nothing is asked" if asked == NO_REQUEST else asked
            lines.append([page.label(row), row.network, _named(request), cells[0], said, cells[1]])
    most = "macro chosen most, as its own vector"
    header = ("method", "network", "request", most, "our reader", "then")
    markdown = (
        "# Requests that nobody can fulfil\n\nThe macro that is chosen most while the request holds from start to "
        "end, and its share of all choices. Heard as its own vector, a request moves the team somewhere. Our reader "
        f"may be unsure; then nothing is asked and the team goes on working. {page.seeds_text(rows)}\n\n"
        + page.table(header, lines)
    )
    shown = [row for row in rows if row.config.method == "mavic"] or rows
    return Page(
        json=json, markdown=markdown, figures={"infeasible": lambda: _draw_infeasible(shown)}
    )


def _silence_first(requests: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the requests and their entries, that of silence first."""
    return sorted(requests.items(), key=lambda item: item[0] != NO_REQUEST)


def _named(request: str) -> str:
    return "nothing asked" if request == NO_REQUEST else f"“{request}”"


def _means(shares: Mapping[str, Sequence[float | None]]) -> dict[str, float]:
    """Return each macro's share, the mean over seeds that did not diverge."""
    return {
        macro: float(np.mean([v for v in values if v is not None]))
        for macro, values in shares.items()
    }


def _most(shares: Mapping[str, float] | None) -> str:
    if not shares:
        return MISSING
    macro = max(shares, key=lambda name: shares[name])
    return f"{macro} {percent(shares[macro])}"


def _draw_infeasible(rows: Sequence[Row]) -> Any:
    figure, panels = subplots(0.7 + 2.6 * len(rows), len(rows), 1)
    for (axes,), row in zip(panels, rows, strict=True):
        means = {
            _named(request): _means(entry["own"]) for request, entry in _silence_first(row.requests)
        }
        total: dict[str, float] = {}
        for shares in means.values():
            for macro, share in shares.items():
                total[macro] = total.get(macro, 0.0) + share
        macros = sorted(total, key=lambda name: -total[name])[:TOP]
        panel(
            axes, f"Share of choices, %, heard as its own vector · {page.label(row)}, {row.network}"
        )
        for y, shares in enumerate(means.values()):
            for x, macro in enumerate(macros):
                square(axes, x, y, shares[macro], f"{100 * shares[macro]:.0f}")
        frame(axes, [m.replace("_", "\n") for m in macros], list(means), "", "")
        axes.invert_yaxis()
    return figure


DRAWINGS = {"ood": _ood, "infeasible": _infeasible}
