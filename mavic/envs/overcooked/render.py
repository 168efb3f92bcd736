"""The picture of an Overcooked state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mavic.envs.overcooked.grid import SIZE, cell_of, row_column
from mavic.envs.overcooked.macros import Thing
from mavic.envs.overcooked.state import BLENDS, CHOPS, COOKS, FOODS, PLATES, Place, State
from mavic.types import ArrayLike, Scene, Sprite

if TYPE_CHECKING:
    from mavic.envs.overcooked.env import Overcooked

COOK_COLOURS = ("blue", "orange", "purple")
FOOD_COLOURS = {"tomato": "red", "lettuce": "green", "onion": "pink", "peas": "green"}


def picture(env: Overcooked, state: State, macro: ArrayLike) -> Scene:
    """Return counters, stations, things, cooks and what they hold. Notes tell macros and progress."""
    kitchen = env.kitchen
    words = _words(env, state)
    sprites = [
        Sprite(shape="counter", x=column, y=row, colour="sand")
        for row in range(SIZE)
        for column in range(SIZE)
        if cell_of(row, column) not in kitchen.floor
    ]
    sprites.append(_sprite("goal", kitchen.delivery, "✱", "green"))
    for cell, name, colour, place in _stations(env):
        inside = [words[thing] for thing in Thing if int(state.place[thing]) == place]
        sprites.append(_sprite("station", cell, name, colour, " ".join(inside)))
    for thing in reversed(Thing):
        if int(state.place[thing]) == Place.COUNTER:
            shape = "plate" if thing in PLATES else "food"
            sprites.append(
                _sprite(shape, int(state.cell[thing]), words[thing], _colour(env, thing))
            )
    notes = []
    names = [env.macros[0](int(m)).name for m in np.asarray(macro)]
    for cook in range(env.cook_count):
        held = [words[t] for t in Thing if int(state.place[t]) == Place.HAND + cook]
        sprites.append(
            Sprite(
                shape="robot",
                x=row_column(int(state.cook[cook]))[1],
                y=row_column(int(state.cook[cook]))[0],
                label=str(cook),
                colour=COOK_COLOURS[cook],
                holds=held[0] if held else "",
            )
        )
        notes.append(f"cook_{cook}: {names[cook] if cook < env.cooks else 'scripted'}")
    return Scene(
        width=SIZE, height=SIZE, sprites=tuple(sprites), notes=(*notes, *_progress(env, state))
    )


def _stations(env: Overcooked) -> list[tuple[int, str, str, Place]]:
    kitchen = env.kitchen
    found = [
        (kitchen.boards[0], "K1", "grey", Place.BOARD_1),
        (kitchen.boards[1], "K2", "grey", Place.BOARD_2),
    ]
    if kitchen.patty:
        found += [
            (kitchen.blender, "mix", "sky", Place.BLENDER),
            (kitchen.ovens[0], "O1", "slate", Place.OVEN_1),
            (kitchen.ovens[1], "O2", "slate", Place.OVEN_2),
        ]
    return found


def _sprite(shape: str, cell: int, label: str, colour: str, holds: str = "") -> Sprite:
    row, column = row_column(cell)
    return Sprite(shape=shape, x=column, y=row, label=label, colour=colour, holds=holds)


def _colour(env: Overcooked, thing: Thing) -> str:
    if thing in PLATES:
        return "white"
    foods = ("tomato", "lettuce", env.kitchen.third_food)
    return FOOD_COLOURS[foods[thing]] if thing < FOODS else "brown"


def _words(env: Overcooked, state: State) -> dict[Thing, str]:
    """Return a short label for each thing: tom, then tom1 and tom2 while it is chopped, then tom✓."""
    words = {}
    for thing, name in zip(Thing, ("tomato", "lettuce", env.kitchen.third_food), strict=False):
        times = int(state.chopped[thing])
        words[thing] = name[:3] + ("✓" if times >= CHOPS else str(times or ""))
    words[Thing.DISH] = "patty" if int(state.cooked) >= COOKS else "bowl"
    for plate, inside in zip(PLATES, (Place.PLATE_1, Place.PLATE_2), strict=True):
        load = [t for t in (*list(Thing)[:FOODS], Thing.DISH) if int(state.place[t]) == inside]
        words[plate] = " ".join([f"pl{plate - Thing.PLATE_1 + 1}", *(words[t] for t in load)])
    return words


def _progress(env: Overcooked, state: State) -> list[str]:
    if not env.kitchen.patty:
        return []
    notes = []
    if bool((state.place[:FOODS] == Place.BLENDER).all()):
        notes.append(f"blending: {int(state.blended)} of {BLENDS}")
    for k, place in enumerate((Place.OVEN_1, Place.OVEN_2), 1):
        if int(state.place[Thing.DISH]) == place:
            notes.append(f"oven {k}: {int(state.cooked)} of {COOKS}")
    return notes
