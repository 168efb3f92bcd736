"""`rare`, `agents`, `ablation` and `shaping`: studies that are lists of settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mavic.envs import api
from mavic.evaluation.metrics import COMPLIANCE, METRICS
from mavic.reporting.drawing import in_percent, panel, subplots
from mavic.reporting.formats import percent, spread
from mavic.reporting.rows import Row
from mavic.reporting.stats import estimates
from mavic.reporting.studies import page
from mavic.reporting.studies.page import Page, TrainingRows
from mavic.reporting.styles import look
from mavic.studies.studies import ABLATIONS
from mavic.theory import shaping as exact
from mavic.theory.semi_mdp import ARRIVALS

COLUMNS = ("base", "compliance", "live", "leak")  # metrics
TITLES = ("base", "followed", "return with instructions", "bias")
WORLDS_DRAWN = 200  # semi-MDPs


def _rare(found: Sequence[TrainingRows]) -> Page:
    """Draw what rare and unbalanced instructions do: how the rare kinds and the others are followed."""
    lines, json = [], {}
    rows = [row for one in found for row in one.rows]
    for row in rows:
        few = tuple(row.config.weights)
        rest = [kind for kind in row.kinds("compliance") if kind not in few]
        parts = {"rare kinds": few, "other kinds": rest} if few else {"all kinds": rest}
        followed = {name: _over(row, kinds) for name, kinds in parts.items() if kinds}
        said = "; ".join(
            f"{name} {spread(one, COMPLIANCE.format)}" for name, one in followed.items()
        )
        base, bias = page.texts(row, "base", "leak")
        lines.append([f"`{_short(row)}`", page.label(row), base, said, bias])
        json[f"{_short(row)} {row.config.method}"] = {
            **page.numbers(row),
            **{f"followed, {name}": one.mean for name, one in followed.items()},
            **page.facts(row),
        }
    header = ("instructions", "method", "base", "followed", "value bias")
    markdown = (
        "# Rare and unbalanced instructions\n\nBox Pushing. Rates are chances per tick that an instruction starts, "
        "in training and in evaluation (.05 is the usual one). Weights say how often two kinds were given in "
        f"training, compared with the nine others; evaluation gives all alike. {page.seeds_text(rows)}\n\n"
        + page.table(header, lines)
    )
    return Page(json=json, markdown=markdown)


def _over(row: Row, kinds: Sequence[str]) -> Any:
    """Return the share followed of some kinds together, over seeds: the mean over these kinds."""
    values = np.array([row.estimate("compliance", kind).values for kind in kinds], float)
    (one,) = estimates(values.mean(0)[:, None])
    return one


def _short(row: Row) -> str:
    """Return what a condition says beyond its schedule and rule."""
    parts = row.config.condition().split("/")
    return "/".join(parts[2:]) or "/".join(parts)


def _agents(found: Sequence[TrainingRows]) -> Page:
    """Draw instructions for one agent of several beside instructions for all."""
    lines, json = [], {}
    for one in found:
        for row in one.rows:
            to = "one of them" if row.config.one_agent else "all agents"
            cells = page.texts(row, *COLUMNS)
            lines.append([api.known(one.world).title, to, page.label(row), *cells])
            json[f"{one.world}, {to}, {row.config.method}"] = {
                **page.numbers(row),
                **page.facts(row),
            }
    rows = [row for one in found for row in one.rows]
    header = ("world", "addressed", "method", *TITLES)
    markdown = (
        "# Instructions for one agent of several\n\nAn instruction addresses one random agent; it alone hears it and "
        "is paid for it, and its teammates go on. In Warehouse every instruction is for Fetch alone, so that world "
        f"shows this in every table. {page.seeds_text(rows)}\n\n" + page.table(header, lines)
    )
    return Page(json=json, markdown=markdown)


VARIANTS = {  # what each training of the ablation leaves out or changes
    "full": "as we train it",
    "network-shared": "network `shared`",
    "network-protected": "network `protected`",
    "no-drills": "without drills",
    "hear-vectors": "hears vectors",
    "encoder-l6": "hears vectors of the 6-layer encoder",
    "no-hysteresis": "without hysteresis",
}


def _ablation(found: Sequence[TrainingRows]) -> Page:
    """Draw what each part of the preset and of the method does."""
    lines, json, shown = [], dict[str, Any](), list[tuple[str, str, Row]]()
    for one in found:
        changed = one.training.name.removeprefix(f"ablation-{one.world}-")
        assert changed in ABLATIONS
        for row in one.rows:
            said = VARIANTS[changed] if changed != "full" else _target(row)
            under, obeyed = row.over_kinds("under_share"), row.over_kinds("under_obeyed")
            cells = page.texts(row, *COLUMNS) + [percent(x) for x in (*under, *obeyed)]
            lines.append([api.known(one.world).title, said, *cells])
            json.setdefault(one.world, {})[said] = {
                **page.numbers(row),
                "under_mean": under[0],
                "under_min": under[1],
                "obeyed_mean": obeyed[0],
                "obeyed_min": obeyed[1],
                **page.facts(row),
            }
            shown.append((one.world, said, row))
    rows = [row for _, _, row in shown]
    worst = "worst kind, worst seed"
    under_titles = ("task under a prohibition", worst, "obeyed meanwhile", worst)
    header = ("world", "MAVIC", *TITLES, *under_titles)
    markdown = (
        "# What each part does\n\nEach line changes one thing in MAVIC as we train it (preset `tuned`, network "
        f"`residual`, hears kinds). The baselines run under the same numbers. {page.seeds_text(rows)}\n\n"
        + page.table(header, lines)
    )
    return Page(json=json, markdown=markdown, figures={"ablation": lambda: _draw_ablation(shown)})


def _target(row: Row) -> str:
    """Return the line of a row of the unchanged training: its method differs."""
    targets = {
        "mavic": "as we train it (`cut`)",
        "mavic-shift": "`shift` instead of `cut`",
        "naive": "no correction (naive)",
    }
    return targets.get(row.config.method, page.label(row))


def _draw_ablation(shown: Sequence[tuple[str, str, Row]]) -> Any:
    worlds = list(dict.fromkeys(world for world, _, _ in shown))
    lines = list(dict.fromkeys(said for _, said, _ in shown))
    metrics = ("share", "compliance")
    height = 1.0 + 0.3 * len(lines) * len(worlds)
    figure, panels = subplots(height, len(worlds), len(metrics), sharey=True)
    for line, world in zip(panels, worlds, strict=True):
        for axes, metric in zip(line, metrics, strict=True):
            for _, said, row in (one for one in shown if one[0] == world):
                one = row.estimate(metric)
                y, colour = lines.index(said), look(row.config.method).colour
                axes.scatter(one.values, [y] * len(one.values), s=16, color=colour, alpha=0.6)
                axes.plot([one.low, one.high], [y, y], color=colour, linewidth=2)
            panel(axes, f"{METRICS[metric].title} · {api.known(world).title}")
            axes.set_yticks(range(len(lines)), [said.replace("`", "") for said in lines])
            in_percent(axes.xaxis)
    panels[0, 0].invert_yaxis()  # of all panels: the unchanged training comes first
    return figure


def _shaping(found: Sequence[TrainingRows]) -> Page:
    """Draw that the correction is not potential-based shaping. It needs no training."""
    del found
    json = {arrivals: exact.figures(WORLDS_DRAWN, arrivals) for arrivals in ARRIVALS}
    lines = [
        [
            arrivals,
            f"{percent(one['missed_median'])} (least {percent(one['missed_min'])})",
            percent(one["moved_median"]),
            f"{one['same_policy_as_naive']} of {one['worlds']}",
            *(
                f"{one['suboptimal'][way]} (worst loss {percent(one['worst_loss'][way])})"
                for way in one["suboptimal"]
            ),
        ]
        for arrivals, one in json.items()
    ]
    header = (
        "changes of instruction", "what the closest potential misses", "what learning changes in the correction",
        "closest potential ends as naive does", "suboptimal: naive", "naive + closest potential", "correction",
    )  # fmt: skip
    markdown = (
        "# The correction is not potential-based shaping\n\n"
        "Exact, on 200 random semi-MDPs (docs/record/theory.md describes "
        "them). Over the macro rows of a world, the correction pays γ^τ (V(s′, c) − V(s′, c′)) at a change of "
        "instruction; a potential Φ would pay γ^τ Φ(x′) − Φ(x). The closest potential is the one that fits the "
        "expected pay best in the least-squares sense. It explains most of the pay and misses the part that matters: "
        "with it, policy iteration on naive targets ends in the very policy of naive, as the theory of shaping says "
        "it must. The correction also depends on the policy: from a random policy to the final one it changes by "
        "about its own size.\n\n" + page.table(header, lines)
    )
    return Page(json=json, markdown=markdown, figures={"shaping": lambda: _draw_shaping(json)})


def _draw_shaping(json: dict[str, Any]) -> Any:
    figure, (panels,) = subplots(2.8, 1, len(json), sharey=True)
    for axes, (arrivals, one) in zip(panels, json.items(), strict=True):
        ways = list(one["suboptimal"])
        counts = [one["suboptimal"][way] for way in ways]
        bars = axes.bar(range(len(ways)), counts, color=["#D55E00", "#CC79A7", "#0072B2"])
        axes.bar_label(bars)
        axes.set_xticks(range(len(ways)), [way.replace(" + the ", "\n+ the ") for way in ways])
        panel(axes, f"Worlds (of {one['worlds']}) that end suboptimal · {arrivals}")
    return figure


DRAWINGS = {"rare": _rare, "agents": _agents, "ablation": _ablation, "shaping": _shaping}
