"""The picture of a Box Pushing state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mavic.envs.box_pushing.macros import Macro
from mavic.types import ArrayLike, Scene, Sprite

if TYPE_CHECKING:
    from mavic.envs.box_pushing.env import BoxPushing, State

ROBOT_COLOURS = ("blue", "orange")


def picture(env: BoxPushing, state: State, macro: ArrayLike) -> Scene:
    """Return the goal row, waypoints, boxes and robots. A robot outside the grid is drawn at the edge, with a note."""
    size, (first, last, left, _) = env.size, env.columns
    top = size - 1
    sprites = [Sprite(shape="goal", x=0, y=0, width=size, colour="green")]
    sprites += [
        Sprite(shape="spot", x=column, y=top - (env.box_row - 1), colour="grey")
        for column in env.columns
    ]
    for index, (column, row) in enumerate(zip((first, last), state.small, strict=True)):
        sprites.append(
            Sprite(
                shape="box",
                x=column,
                y=_within(top - int(row), top),
                label=str(index),
                colour="sand",
            )
        )
    sprites.append(
        Sprite(
            shape="box",
            x=left,
            y=_within(top - int(state.big), top),
            width=2,
            label="BIG",
            colour="brown",
        )
    )
    notes = []
    names = [Macro(int(m)).name for m in np.asarray(macro)]
    for index, robot in enumerate(state.robots):
        x, y = int(robot.x), int(robot.y)
        inside = 0 <= x <= top and 0 <= y <= top
        sprites.append(
            Sprite(
                shape="robot",
                x=_within(x, top),
                y=_within(top - y, top),
                label=str(index),
                colour=ROBOT_COLOURS[index],
                heading="NESW"[int(robot.heading)],
            )
        )
        notes.append(
            f"{env.agents[index]}: {names[index]}" + ("" if inside else f", outside at ({x}, {y})")
        )
    if bool(state.pushing):
        notes.append("pushing the big box together")
    return Scene(width=size, height=size, sprites=tuple(sprites), notes=tuple(notes))


def _within(value: int, top: int) -> int:
    return min(max(value, 0), top)
