"""The picture of a kitchen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mavic.envs.overcooked.kitchen import SIZE, cell_of, row_column
from mavic.envs.overcooked.macros import Thing
from mavic.envs.overcooked.state import BLENDS, CHOPS, COOKS, FOODS, PLATES, Place, State
from mavic.types import Array, Scene, Sprite

if TYPE_CHECKING:
    from mavic.envs.overcooked.dynamics import Overcooked

COOK_COLOURS = ("blue", "orange", "purple")
FOOD_COLOURS = {"tomato": "red", "lettuce": "green", "onion": "pink", "peas": "green"}
LOAD = {Place.PLATE_1: "p1", Place.PLATE_2: "p2"}


def picture(env: Overcooked, state: State, macro: Array) -> Scene:
    """Counters, stations, what lies on them, cooks and what they hold; progress as notes."""
    kitchen = env.kitchen
    words = _words(env, state)
    sprites = [
        Sprite(shape="counter", x=column, y=row, colour="sand")
        for row in range(SIZE)
        for column in range(SIZE)
        if cell_of(row, column) not in kitchen.floor
    ]
    sprites.append(_sprite("goal", kitchen.delivery, "✱", "green"))
    sprites += [
        _sprite("station", board, f"K{k}", "grey") for k, board in enumerate(kitchen.boards, 1)
    ]
    if kitchen.patty:
        sprites.append(_sprite("station", kitchen.blender, "mix", "sky"))
        sprites += [
            _sprite("station", oven, f"O{k}", "slate") for k, oven in enumerate(kitchen.ovens, 1)
        ]
    for thing in reversed(Thing):
        place = int(state.place[thing])
        if place == Place.COUNTER or place in (Place.BOARD_1, Place.BOARD_2):
            shape = "plate" if thing in PLATES else "food"
            sprites.append(
                _sprite(shape, int(state.cell[thing]), words[thing], _colour(env, thing))
            )
    notes = []
    names = [env.macros[0](int(m)).name for m in np.asarray(macro)]
    for cook in range(env.bodies):
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


def _sprite(shape: str, cell: int, label: str, colour: str) -> Sprite:
    row, column = row_column(cell)
    return Sprite(shape=shape, x=column, y=row, label=label, colour=colour)


def _colour(env: Overcooked, thing: Thing) -> str:
    if thing in PLATES:
        return "white"
    foods = ("tomato", "lettuce", env.kitchen.third_food)
    return FOOD_COLOURS[foods[thing]] if thing < FOODS else "brown"


def _words(env: Overcooked, state: State) -> dict[Thing, str]:
    """A few letters for each thing: t, l, o, p raw; T, L, O chopped; t1, t2 while being chopped."""
    words = {}
    for thing, letter in zip(Thing, ("t", "l", env.kitchen.third_food[0]), strict=False):
        times = int(state.chopped[thing])
        words[thing] = letter.upper() if times >= CHOPS else letter + str(times or "")
    words[Thing.DISH] = "patty" if int(state.cooked) >= COOKS else "bowl"
    for plate, inside in zip(PLATES, (Place.PLATE_1, Place.PLATE_2), strict=True):
        load = [words[t] for t in (*range(FOODS), Thing.DISH) if int(state.place[t]) == inside]
        words[plate] = f"{plate - Thing.PLATE_1 + 1}{''.join(load)}"
    return words


def _progress(env: Overcooked, state: State) -> list[str]:
    if not env.kitchen.patty:
        return []
    dish, notes = int(state.place[Thing.DISH]), []
    foods = ("tomato", "lettuce", env.kitchen.third_food)
    inside = [food for k, food in enumerate(foods) if int(state.place[k]) == Place.BLENDER]
    if inside:
        notes.append(f"blender: {', '.join(inside)}, {int(state.blended)} of {BLENDS}")
    if dish == Place.BLENDER:
        notes.append("blender: bowl")
    for k in (1, 2):
        if dish == Place.OVEN_1 + k - 1:
            patty = int(state.cooked) >= COOKS
            notes.append(
                f"oven {k}: {'patty' if patty else f'bowl, {int(state.cooked)} of {COOKS}'}"
            )
    return notes
