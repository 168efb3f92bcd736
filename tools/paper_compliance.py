"""Why the paper's compliance does not come out in Warehouse and Box Pushing: `results/paper-compliance.json` and `.md`.

    python -m tools.paper_compliance

Two questions. What does obeying earn under the paper's rewards? Answered exactly for every kind of Box Pushing. What
would another way of counting give? Answered from the records of the paper's setting: the share of instructions that
were followed (D14), of decisions, and of ticks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from mavic.envs import api
from mavic.envs.box_pushing.env import BoxPushing
from mavic.experiment import records
from mavic.experiment.methods import METHODS
from mavic.instruct.reward import rules_of
from mavic.reporting import styles
from mavic.reporting.formats import number, percent
from mavic.storage import files
from tools import search_box_pushing

RESULTS = Path("results")
NAME = "paper-compliance"
RECORDS = "*-paper-shared-paper-add.jsonl.gz"
COUNTS = ("per_instruction", "per_decision", "per_step")


def obeying_in_box_pushing() -> dict[str, dict[str, float]]:
    """Return by kind what the best joint policies earn that obey it and that may disobey it, as the paper pays them.

    The kind holds from the first state on. `pays_to_disobey` is the share of all states in which a kind can arrive and
    the second policy earns more.
    """
    env = BoxPushing()
    path = api.world("box_pushing").instructions
    assert path is not None
    rules = rules_of(env, path, rule="add")
    found = {}
    for kind, name in enumerate(rules.names[1:], start=1):
        allowed, penalty = np.asarray(rules.allowed[kind]), float(rules.penalty[kind])
        obeying, free = search_box_pushing.obedience_values(env, allowed, "add", penalty)
        share = search_box_pushing.share_where_disobeying_pays(env, allowed, "add", penalty)
        found[name] = {
            "obeying": round(obeying, 2),
            "disobeying": round(free, 2),
            "pays_to_disobey": round(share, 4),
        }
    return found


def counted(results: Path, world: str) -> dict[str, dict[str, float]]:
    """Return the three shares by method, as means over seeds, from the records of the paper's setting."""
    found = {}
    for method in METHODS:
        path = results / world / RECORDS.replace("*", method)
        if path.is_file():
            score = records.read(path).score
            assert score is not None
            found[method] = {
                name: round(float(np.mean(score["compliance"][name])), 4) for name in COUNTS
            }
    return found


def markdown(found: dict[str, Any]) -> str:
    """Return both answers as Markdown."""
    lines = [
        "Box Pushing, exact: the discounted return of the best joint policy under a kind that holds from the start, as "
        "the paper pays it (−50 for a forbidden macro).",
        "",
        "| kind | obeying | disobeying | states in which disobeying pays |",
        "|---|---|---|---|",
        *(
            f"| {name} | {number(x['obeying'])} | {number(x['disobeying'])} | {percent(x['pays_to_disobey'])} |"
            for name, x in found["obeying"]["box_pushing"].items()
        ),
        "",
        "The same training counted in three ways (the paper's hyper-parameters and rewards, means over ten seeds):",
        "",
        "| world | method | instructions followed | decisions | ticks |",
        "|---|---|---|---|---|",
        *(
            f"| {api.world(world).title} | {styles.look(method).label} | "
            + " | ".join(percent(x[name]) for name in COUNTS)
            + " |"
            for world, rows in found["counted"].items()
            for method, x in rows.items()
        ),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write both files."""
    found = {
        "obeying": {"box_pushing": obeying_in_box_pushing()},
        "counted": {world: counted(RESULTS, world) for world in api.BUILT_IN},
    }
    files.write_text(RESULTS / f"{NAME}.json", json.dumps(found, indent=1) + "\n")
    files.write_text(RESULTS / f"{NAME}.md", markdown(found))


if __name__ == "__main__":
    main()
