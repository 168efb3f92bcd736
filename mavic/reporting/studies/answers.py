"""What each study claims and what it showed, in one line made from its published JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mavic.reporting.formats import hundredths, number

Json = Mapping[str, Any]
RARE = "avoid-small-box-0@0.01+push@0.01"
SHARED, PROTECTED = "tuned/shared/live/by-kind", "tuned/protected/live/by-kind"


def _one(value: float) -> str:
    return number(value, 1)


def _share(value: float) -> str:
    return hundredths(value, 1)


def _range(values: Iterable[float]) -> str:
    found = list(values)
    return f"{_share(min(found))} to {_share(max(found))} %"


def _table1(found: Json) -> str:
    block, name = found["paper_conditions"], "in the paper's conditions"
    if not block:
        block, name = found["paper_literal"], "with the paper's own numbers"
    bases = (
        f"{world.replace('_', ' ')} {_one(rows['mavic']['base_mean'])} and {_one(rows['naive']['base_mean'])}"
        for world, rows in block.items()
        if {"mavic", "naive"} <= set(rows)
    )
    return f"Base of MAVIC and naive, {name}: {'; '.join(bases)}."


def _heatmap(found: Json) -> str:
    best = max(point["base"] for points in found.values() for point in points)
    kept = {
        method: sum(min(point["base"] / best, point["followed"]) >= 0.95 for point in points)
        for method, points in found.items()
    }
    return (
        f"At least 95 % of the best base and of the instructions: MAVIC in {kept['mavic']} of "
        f"{len(found['mavic'])} settings, naive in {kept['naive']}."
    )


def _curves(found: Json) -> str:
    ends = {m: found[f"{SHARED} {m}"]["base"]["mean"][-1] for m in ("mavic", "naive", "switch")}
    return (
        f"On the paper's network MAVIC ends at {_one(ends['mavic'])}, naive at {_one(ends['naive'])}, "
        f"switch at {_one(ends['switch'])}."
    )


def _single(found: Json) -> str:
    def base(kind: str, method: str) -> str:
        return _one(found[f"live/add/kinds={kind} {method}"]["base"])

    return (
        f"With “get the tomato” alone naive ends at {base('get-tomato', 'naive')}, MAVIC at "
        f"{base('get-tomato', 'mavic')}; with “avoid the right board” at {base('avoid-right-board', 'naive')} and "
        f"{base('avoid-right-board', 'mavic')}."
    )


def _compliance(found: Json) -> str:
    early = {m: found[f"{SHARED} {m}"]["early"]["followed"] for m in ("mavic", "naive")}
    return f"After a third of the training MAVIC follows {_share(early['mavic'])} %, naive {_share(early['naive'])} %."


def _dual(found: Json) -> str:
    dual, mavic = found["protected naive"], found["protected mavic"]
    return (
        f"While instructions come and go dual earns {_one(dual['live'])}, MAVIC {_one(mavic['live'])}; the critics' "
        f"bias is {_share(dual['leak'])} and {_share(mavic['leak'])} %."
    )


def _ood(found: Json) -> str:
    own = (
        row["own_vector_anyway"]
        for rows in found.values()
        for name, row in rows.items()
        if name.endswith(" mavic")
    )
    return f"MAVIC follows the paper's three unseen phrases in {_range(own)}."


def _infeasible(found: Json) -> str:
    stays = (
        macros["STAY"]
        for row, requests in found.items()
        if row.endswith(" mavic")
        for request, macros in requests.items()
        if request.endswith(", own") and not request.startswith("none")
    )
    return f"Heard as vectors, five impossible requests make MAVIC's teams stay in {_range(stays)} of their choices."


def _rare(found: Json) -> str:
    mavic, naive = (
        found[f"rate=0.002 {method}"]["followed, all kinds"] for method in ("mavic", "naive")
    )
    seldom = found[f"weights={RARE} mavic"]["followed, rare kinds"]
    return (
        f"At a rate of 0.002 a tick MAVIC follows {_share(mavic)} %, naive {_share(naive)} %. Of kinds a hundred times "
        f"rarer than the others MAVIC follows {_share(seldom)} %."
    )


def _shaping(found: Json) -> str:
    worlds = found["anytime"]
    return (
        f"In {worlds['same_policy_as_naive']} of {worlds['worlds']} exact worlds the closest potential leaves naive's "
        f"policy as it is; {worlds['suboptimal']['naive']} of these policies are not optimal, "
        f"{worlds['suboptimal']['correction']} of the correction's."
    )


def _agents(found: Json) -> str:
    mavic, naive = (found[f"box_pushing, one of them, {method}"] for method in ("mavic", "naive"))
    return (
        f"With one robot addressed MAVIC follows {_share(mavic['followed'])} % (naive {_share(naive['followed'])} %) "
        f"and earns {_one(mavic['live'])} meanwhile (naive {_one(naive['live'])})."
    )


def _unreliable(found: Json) -> str:
    tested, practised = (
        found[f"{where}, unreliable, mavic"] for where in ("reliable", "unreliable")
    )
    return (
        f"With unreliable macros MAVIC earns {_one(tested['base'])} if trained without, "
        f"{_one(practised['base'])} if trained with them."
    )


def _atlas(found: Json) -> str:
    points = found["points"]
    best = max(point["mavic"]["base"] for point in points)
    kept = {m: sum(point[m]["base"] >= 0.95 * best for point in points) for m in ("mavic", "naive")}
    return f"MAVIC keeps 95 % of the task in {kept['mavic']} of {len(points)} settings, naive in {kept['naive']}."


def _ablation(found: Json) -> str:
    boxes, cooks = found["box_pushing"], found["overcooked"]
    return (
        f"Without hysteresis Box Pushing ends at {_one(boxes['without hysteresis']['base'])}. Hearing vectors, cooks "
        f"obey lasting prohibitions in {_share(cooks['hears vectors']['obeyed_mean'])} %, hearing kinds in "
        f"{_share(cooks['as we train it (`cut`)']['obeyed_mean'])} %."
    )


class _Answer(NamedTuple):
    """What a study tests, and the function of its JSON that says what came out."""

    claim: str
    line: Callable[[Json], str]


ANSWERS: dict[str, _Answer] = {
    "table1": _Answer("The correction keeps the task", _table1),
    "heatmap": _Answer("Naive has no setting with a high return and high compliance", _heatmap),
    "curves": _Answer("MAVIC learns task and instructions together", _curves),
    "single": _Answer("One kind alone can spoil the task", _single),
    "compliance": _Answer("Compliance alone does not tell methods apart", _compliance),
    "dual": _Answer("Separate networks are not enough", _dual),
    "ood": _Answer("Teams follow unseen phrases", _ood),
    "infeasible": _Answer("Teams fall back to something harmless", _infeasible),
    "rare": _Answer("Rare instructions are hard (the paper's limitation)", _rare),
    "shaping": _Answer("The correction is not potential-based shaping", _shaping),
    "agents": _Answer("Instructions for one agent of several work too", _agents),
    "unreliable": _Answer("What macros that fail, slip and stop late cost", _unreliable),
    "atlas": _Answer("The correction matters where instructions are frequent or dear", _atlas),
    "ablation": _Answer("What each part of our recipe does", _ablation),
}


def answer(name: str, folder: Path) -> str:
    """Return what a study showed, in one line; empty if the folder has no page of it.

    Args:
        name: The study.
        folder: A folder with published pages, such as `results`.
    """
    path = folder / f"{name}.json"
    if not path.is_file():
        return ""
    try:
        return ANSWERS[name].line(json.loads(path.read_text(encoding="utf-8")))
    except (KeyError, ValueError, ZeroDivisionError):  # of a part of the study, or of --quick
        return f"{path} lacks trainings that the answer needs."


def figure(name: str, folder: Path) -> Path | None:
    """Return the file of a study's figure in a folder; None if it has none."""
    path = folder / f"{name}.png"
    return path if path.is_file() else None
