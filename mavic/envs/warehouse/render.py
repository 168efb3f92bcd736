"""The picture of a Warehouse state, seen from above. A cell is half a metre.

The tool room is on the left and the people are on the right.
"""

from __future__ import annotations

import jax
import numpy as np

from mavic.envs.api import Env, plain
from mavic.envs.warehouse import macros, words
from mavic.envs.warehouse.state import State
from mavic.types import ArrayLike, Scene, Sprite, Step

CELLS = 2  # per metre
WIDTH, HEIGHT = (CELLS * length for length in macros.ROOM)
WALL = 3.5  # metres; the paper's wall divides the room, and its door is wide enough for every drive
DOOR = (0.75, 4.25)
SPOTS = ((1.6, 2.8), (1.6, 2.2))  # metres: the hand-over spots, the front one first
ROBOT_COLOURS = ("blue", "orange", "purple")
TOOL_COLOURS = ("sky", "yellow", "green", "pink", "red", "sand", "white", "brown")


def picture(env: Env, state: State, macro: ArrayLike) -> Scene:
    """Return shelves, hand-over spots, people with their tools, and robots with what they carry.

    Args:
        env: The warehouse.
        state: The state.
        macro: The macro that each robot runs.
    """
    state = jax.tree.map(np.asarray, state)
    chosen = [env.macros[agent](int(m)).name for agent, m in enumerate(np.asarray(macro))]
    sprites = [*_room(state), *_people(state), *_robots(state)]
    return Scene(
        width=WIDTH,
        height=HEIGHT,
        sprites=tuple(sprites),
        notes=(*_robot_notes(env, state, chosen), *_people_notes(state)),
        steps=tuple(_steps(state)),
    )


def _sprite(shape: str, centre: tuple[float, float], **more: str) -> Sprite:
    """Return a sprite of one cell around a point in metres, moved inside the picture.

    Metres grow upwards, and cells grow downwards.
    """
    x, y = CELLS * float(centre[0]) - 0.5, HEIGHT - CELLS * float(centre[1]) - 0.5
    x, y = min(max(x, 0), WIDTH - 1), min(max(y, 0), HEIGHT - 1)
    return Sprite(shape=shape, x=x, y=y, **more)  # type: ignore[arg-type]


def _held(counts: np.ndarray) -> dict[str, str]:
    """Return the tools in a count, in words and as a picture, such as `tools 0, 2, 2`."""
    tools = [str(tool) for tool, count in enumerate(counts) for _ in range(int(count))]
    if not tools:
        return {}
    many = "tools " if len(tools) > 1 else "tool "
    return {"holds": many + ", ".join(tools), "carries": "tool-" + "-".join(tools)}


def _steps(state: State) -> list[Step]:
    """Return how many tools each person has."""
    return [
        Step(name=f"tools for {words.PEOPLE[person]}", done=int(got.sum()), of=len(got))
        for person, got in enumerate(state.received)
    ]


def _room(state: State) -> list[Sprite]:
    wall = CELLS * WALL - 0.1
    top, bottom = HEIGHT - CELLS * DOOR[1], CELLS * DOOR[0]
    people = len(state.step)
    sprites = [
        Sprite(shape="wall", x=wall, y=0, width=0.2, height=top, colour="slate"),
        Sprite(shape="wall", x=wall, y=HEIGHT - bottom, width=0.2, height=bottom, colour="slate"),
        _sprite("spot", macros.TOOL_ROOM),
        *(_sprite("spot", place) for place in macros.TABLE),
        *(_sprite("spot", place) for place in macros.WORK_AREAS[:people]),
    ]
    tools = len(state.shelf)
    for tool, count in enumerate(state.shelf):
        height = HEIGHT / max(tools, HEIGHT / 2)
        shelf = Sprite(
            shape="station",
            x=0,
            y=tool * height + (HEIGHT - tools * height) / 2,
            height=height,
            label=f"{tool}×{int(count)}",
            colour=TOOL_COLOURS[tool],
            name=words.TOOLS[tool],
            picture=f"shelf-{tool}-{int(count)}",
        )
        sprites.append(shelf)
    for spot, tool in zip(SPOTS, state.staged, strict=True):
        sprites.append(_sprite("spot", spot))
        if tool >= 0:
            sprites.append(
                _sprite("tool", spot, label=str(tool), colour=TOOL_COLOURS[tool], **_tool(tool))
            )
    return sprites


def _tool(tool: int) -> dict[str, str]:
    return {"name": words.TOOLS[tool], "picture": f"tool-{tool}"}


def _people(state: State) -> list[Sprite]:
    return [
        _sprite(
            "human",
            (x + 0.5, y),
            label=str(person + 1),
            colour="sand",
            name=words.PEOPLE[person],
            picture="person",
            **_held(received),
        )
        for person, (received, (x, y)) in enumerate(
            zip(state.received, macros.WORK_AREAS, strict=False)
        )
    ]


def _robots(state: State) -> list[Sprite]:
    bots = [
        _sprite(
            "robot",
            (float(x), float(y)),
            label=words.ROBOTS[bot][0].upper(),
            colour=ROBOT_COLOURS[bot],
            name=words.ROBOTS[bot],
            picture="rover",
            **_held(basket),
        )
        for bot, ((x, y), basket) in enumerate(zip(state.xy, state.basket, strict=True))
    ]
    arm = dict(label="F", colour=ROBOT_COLOURS[-1], name=words.ROBOTS[-1], picture="arm")
    return [*bots, _sprite("robot", macros.FETCH, **arm)]


def _robot_notes(env: Env, state: State, chosen: list[str]) -> list[str]:
    notes = []
    doing = [words.MACRO_WORDS.get(name) or plain(name) for name in chosen]
    for bot, said in enumerate(doing[: macros.TURTLEBOTS]):
        waited = -int(state.timer[bot])
        at_table = state.place[bot] == len(state.step) + 1
        more = f", waited {waited}" if at_table and waited > 0 else ""
        notes.append(f"{words.ROBOTS[bot]}: {said}{more}")
    more = f", {int(state.busy)} ticks to go" if state.busy > 0 else ""
    return [*notes, f"{words.ROBOTS[-1]}: {doing[-1]}{more}"]


def _people_notes(state: State) -> list[str]:
    notes = []
    for person, (step, left) in enumerate(zip(state.step, state.left, strict=True)):
        if state.received[person].all():
            doing = "has every tool"
        elif state.served[person]:
            doing = f"at work on step {step}, {int(left)} ticks to go"
        elif left > 0:
            doing = f"needs a tool for step {step} within {int(left)} ticks"
        else:
            doing = f"waits for a tool for step {step}, {-int(left)} ticks late"
        notes.append(f"{words.PEOPLE[person]}: {doing}")
    return notes
