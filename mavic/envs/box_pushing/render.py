"""The picture of a Box Pushing state."""

from __future__ import annotations

import numpy as np

from mavic.envs.api import plain
from mavic.envs.box_pushing import words
from mavic.envs.box_pushing.macros import Macro
from mavic.envs.box_pushing.state import State
from mavic.types import ArrayLike, Scene, Sprite, Step

ROBOT_COLOURS = ("blue", "orange")


def picture(
    state: State, macro: ArrayLike, *, size: int, box_row: int, columns: tuple[int, int, int, int]
) -> Scene:
    """Return the goal row, waypoints, boxes and robots. A robot outside the grid is drawn at the edge, with a note.

    Args:
        state: The state.
        macro: The macro that each robot runs.
        size: Rows and columns of the grid.
        box_row: The row where all boxes start.
        columns: As in `BoxPushing`.
    """
    first, last, left, _ = columns
    top = size - 1
    sprites = [Sprite(shape="goal", x=0, y=0, width=size, colour="green", name="green row")]
    sprites += [
        Sprite(shape="spot", x=column, y=top - (box_row - 1), colour="grey", name=name)
        for column, name in zip(columns, ("", "", *words.SPOTS), strict=True)
    ]
    for index, (column, row) in enumerate(zip((first, last), state.small, strict=True)):
        sprites.append(
            Sprite(
                shape="box",
                x=column,
                y=_within(top - int(row), top),
                label=words.SMALL[index][0].upper(),
                colour="sand",
                name=words.SMALL[index],
                picture="crate",
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
            name=words.BIG,
            picture="crate",
        )
    )
    notes = []
    names = [Macro(int(m)).name for m in np.asarray(macro)]
    doing = [words.MACRO_WORDS.get(name) or plain(name) for name in names]
    for index, robot in enumerate(state.robots):
        name, x, y = words.ROBOTS[index], int(robot.x), int(robot.y)
        inside = 0 <= x <= top and 0 <= y <= top
        sprites.append(
            Sprite(
                shape="robot",
                x=_within(x, top),
                y=_within(top - y, top),
                label=name[0].upper(),
                colour=ROBOT_COLOURS[index],
                heading="NESW"[int(robot.heading)],
                name=name,
                picture="rover",
            )
        )
        notes.append(f"{name}: {doing[index]}" + ("" if inside else f", outside at ({x}, {y})"))
    if bool(state.pushing):
        notes.append("pushing the big box together")
    far = top - box_row
    rows = (state.big, *state.small)
    steps = [
        Step(name=name, done=min(max(int(row) - box_row, 0), far), of=far)
        for name, row in zip((words.BIG, *words.SMALL), rows, strict=True)
    ]
    return Scene(
        width=size, height=size, sprites=tuple(sprites), notes=tuple(notes), steps=tuple(steps)
    )


def _within(value: int, top: int) -> int:
    return min(max(value, 0), top)
