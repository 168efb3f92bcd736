"""Exports two teams and records episodes that they play with JAX, for the tests that run without it.

    PYTHONPATH=.:tests python tests/robot_recordings.py

Each episode is an `.npz`: what every agent saw, who decided, what was available, the kinds of both instructions, the
random numbers, and the macros that the JAX team chose. The rescue team has kinds by predicate; it is untrained, its
instructions are enforced, and its episodes also have which predicates held of each choice.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import jax
import numpy as np
from teams import untrained

import mavic
from mavic.bridges import team_folder
from mavic.teams.episode import Cue
from mavic.teams.stage import Stage, open_stage

DATA = Path(__file__).parent / "runtime" / "data"
EPISODES = {
    ("overcooked", 1): [
        Cue(4, "avoid-left-board", None, 40),
        Cue(9, "avoid-plate-1", None, 20, True),
        Cue(60, "stay", ["cook_0"], 8),
    ],
    ("overcooked", 2): [Cue(0, "partner-chops", ["cook_1"], 30), Cue(50, "get-tomato", None, 10)],
    ("warehouse", 3): [
        Cue(2, "fetch-tool-1-first"),
        Cue(30, "none"),
        Cue(40, "fetch-tool-2-first"),
    ],
    ("rescue", 4): [
        Cue(0, "left-is-one-way", None, 14),
        Cue(3, "robot-2-keeps-off-the-beam", None, 8, True),
        Cue(16, "charge", ["robot_0", "robot_1"], 8),
        Cue(18, "left-is-one-way", ["robot_2"], 6, True),
        Cue(26, "come-back", None, 10),
    ],
}
TICKS = {"overcooked": 90, "warehouse": 70, "rescue": 40}
EXAMPLES = Path(__file__).parents[1] / "examples"


def team_of(world: str, folder: Path) -> str | Path:
    """The shipped team of a world. The rescue team is written into the folder; its module must be on the path."""
    if world != "rescue":
        return f"{world}/mavic"
    __import__("rescue")  # registers it
    return untrained(folder, world)


def stage_of(world: str, team: str | Path) -> Stage:
    """The stage of a recorded team."""
    return open_stage(team, shield=world == "rescue")


def episode(stage: Stage, seed: int, script: list[Cue], ticks: int) -> dict[str, np.ndarray]:
    """Play an episode by a script. Return its arrays [T, ...]."""
    agents = len(stage.env.agents)
    rows: dict[str, list] = {}
    for before, moment in stage.play(jax.random.key(seed), script, ticks):
        state = before.state
        if before.over or before.time >= ticks:
            break
        key = jax.random.fold_in(state.key, state.time)
        also = np.zeros(agents) if state.also is None else state.also.kind
        row = dict(
            observation=np.asarray(state.observation, np.float32),
            idle=state.idle,
            available=stage.env.available(state.state),
            kind=np.asarray(state.instruction.kind, np.int8),
            also=np.asarray(also, np.int8),
            draws=jax.random.uniform(key, (agents,)),
            macro=np.asarray(moment.macro, np.int8),
        )
        if stage.instructed_env.rules.predicate is not None:
            row["holds"] = stage.env.holds(state.state)
        for name, value in row.items():
            rows.setdefault(name, []).append(np.asarray(value))
    return {name: np.stack(values) for name, values in rows.items()}


if __name__ == "__main__":
    sys.path.insert(0, str(EXAMPLES))
    with tempfile.TemporaryDirectory() as place:
        teams = {world: team_of(world, Path(place)) for world in TICKS}
        stages = {world: stage_of(world, team) for world, team in teams.items()}
        for world, team in teams.items():
            team_folder.export(mavic.load_policy(team), DATA / world, reader=False)
    for (world, seed), script in EPISODES.items():
        played = episode(stages[world], seed, script, TICKS[world])
        np.savez_compressed(DATA / f"{world}-{seed}.npz", **played)
        print(world, seed, played["macro"].shape, int(played["idle"].sum()), "decisions")
