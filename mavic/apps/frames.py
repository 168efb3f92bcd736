"""What one tick of an episode looks like: the data that replays and the playground draw.

A frame is a plain dict, ready for JSON. It shows a state, the reward and the events of the tick that led to it, and
what the agents do next: their macros, the instruction they are under, and whether they comply.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from mavic.types import Scene


class ActiveInstruction(TypedDict):
    """The instruction that holds in a frame."""

    number: int  # 1 for the first of the episode
    text: str
    kind: str
    agents: list[int]  # the addressed agents
    left: int | None  # ticks it still holds, this one included; None: to the end of the episode
    held: int  # ticks it has held so far
    forbids: NotRequired[list[str]]  # names of things that must not be used, as in the scene
    wants: NotRequired[list[str]]  # names of things that must be used
    replaces: NotRequired[bool]  # the team is to leave its work


class AgentFrame(TypedDict):
    """One agent in a frame."""

    name: str
    macro: str
    doing: NotRequired[str]  # the macro in words
    decided: bool  # the agent chose its macro in this tick
    complies: bool | None  # None: the agent is not addressed
    holds: str  # what it carries


class Verdict(TypedDict):
    """Whether an instruction that ended was followed. Instructions that are not counted get none."""

    number: int
    kind: str
    followed: bool


class Frame(TypedDict):
    """One tick of an episode."""

    time: int
    scene: dict[str, Any]  # width, height, sprites, notes and steps, as in `mavic.types.Scene`
    agents: list[AgentFrame]
    instruction: ActiveInstruction | None
    reward: float  # task reward of the tick that led here
    earned: float  # undiscounted sum of these rewards
    events: list[str]  # of the tick that led here
    verdicts: list[Verdict]  # on instructions that ended in the tick that led here
    refused: list[str]  # sentences said here that the state does not permit
    judged: int  # instructions that have ended and were counted so far
    followed: int  # how many of these were followed
    values: dict[str, float] | None  # V(h, c) by kind, mean over agents
    also: NotRequired[ActiveInstruction]  # a second instruction that holds beside `instruction`
    over: str  # "" while the episode goes on, else "solved", "ended" or "time is up"


def scene_as_json(scene: Scene) -> dict[str, Any]:
    """Return a scene as plain dicts and lists."""
    sprites = [dict(vars(sprite)) for sprite in scene.sprites]
    steps = [dict(vars(step)) for step in scene.steps]
    return {**vars(scene), "sprites": sprites, "notes": list(scene.notes), "steps": steps}
