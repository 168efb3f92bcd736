"""The picture of an Overcooked state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mavic.envs.api import plain
from mavic.envs.overcooked import words
from mavic.envs.overcooked.grid import SIZE, cell_of, row_column
from mavic.envs.overcooked.macros import Thing
from mavic.envs.overcooked.state import BLENDS, CHOPS, COOKS, FOODS, PLATES, Place, State
from mavic.types import ArrayLike, Scene, Sprite, Step

if TYPE_CHECKING:
    from mavic.envs.overcooked.env import Overcooked

COOK_COLOURS = ("blue", "orange", "purple")
FOOD_COLOURS = {"tomato": "red", "lettuce": "green", "onion": "pink", "peas": "green"}


def picture(env: Overcooked, state: State, macro: ArrayLike) -> Scene:
    """Return counters, stations, things, cooks and what they hold. Notes tell macros and progress."""
    kitchen = env.kitchen
    labels = _labels(env, state)
    sprites = [
        Sprite(shape="counter", x=column, y=row, colour="sand")
        for row in range(SIZE)
        for column in range(SIZE)
        if cell_of(row, column) not in kitchen.floor
    ]
    hatch = dict(name=words.HATCH, picture="hatch")
    sprites.append(_sprite("goal", kitchen.delivery, "✱", "green", **hatch))
    for cell, label, name, drawn, colour, place in _stations(env):
        inside = [thing for thing in Thing if int(state.place[thing]) == place]
        held = _held(env, state, inside)
        sprites.append(_sprite("station", cell, label, colour, name=name, picture=drawn, **held))
    for thing in reversed(Thing):
        if int(state.place[thing]) == Place.COUNTER:
            shape = "plate" if thing in PLATES else "food"
            load = _held(env, state, _load(state, thing))
            about = dict(name=_name(env, thing), picture=_picture(env, state, thing), **load)
            cell, colour = int(state.cell[thing]), _colour(env, thing)
            sprites.append(_sprite(shape, cell, labels[thing], colour, **about))
    notes = []
    names = [env.macros[0](int(m)).name for m in np.asarray(macro)]
    for cook in range(env.cook_count):
        held_things = [t for t in Thing if int(state.place[t]) == Place.HAND + cook]
        about = dict(name=words.COOKS[cook], picture="cook", **_held(env, state, held_things))
        cell, label = int(state.cook[cook]), str(cook + 1)
        sprites.append(_sprite("robot", cell, label, COOK_COLOURS[cook], **about))
        doing = words.MACRO_WORDS.get(names[cook]) or plain(names[cook]) if cook < env.cooks else ""
        notes.append(f"{words.COOKS[cook]}: {doing or 'plays by a script'}")
    return Scene(
        width=SIZE,
        height=SIZE,
        sprites=tuple(sprites),
        notes=(*notes, *_progress(env, state)),
        steps=tuple(_steps(env, state)),
    )


def _stations(env: Overcooked) -> list[tuple[int, str, str, str, str, Place]]:
    """Return the cell, label, name, picture, colour and place of every station."""
    kitchen = env.kitchen
    found = [
        (cell, f"K{k + 1}", words.BOARDS[k], "board", "grey", Place(Place.BOARD_1 + k))
        for k, cell in enumerate(kitchen.boards)
    ]
    if kitchen.patty:
        found.append((kitchen.blender, "mix", words.BLENDER, "blender", "sky", Place.BLENDER))
        found += [
            (cell, f"O{k + 1}", words.OVENS[k], "oven", "slate", Place(Place.OVEN_1 + k))
            for k, cell in enumerate(kitchen.ovens)
        ]
    return found


def _sprite(shape: str, cell: int, label: str, colour: str, **more: str) -> Sprite:
    row, column = row_column(cell)
    return Sprite(shape=shape, x=column, y=row, label=label, colour=colour, **more)  # type: ignore[arg-type]


def _name(env: Overcooked, thing: Thing) -> str:
    """Return what people call a thing."""
    foods = ("tomato", "lettuce", env.kitchen.third_food)
    return (*foods, *words.PLATES, "dish")[thing]


def _picture(env: Overcooked, state: State, thing: Thing) -> str:
    """Return what a thing is drawn as."""
    if thing in PLATES:
        return "plate"
    if thing == Thing.DISH:
        return "patty" if int(state.cooked) >= COOKS else "bowl"
    return _name(env, thing) + ("-chopped" if int(state.chopped[thing]) >= CHOPS else "")


def _load(state: State, thing: Thing) -> list[Thing]:
    """Return what lies on a plate."""
    if thing not in PLATES:
        return []
    inside = Place.PLATE_1 + PLATES.index(thing)
    return [t for t in (*list(Thing)[:FOODS], Thing.DISH) if int(state.place[t]) == inside]


def _held(env: Overcooked, state: State, things: list[Thing]) -> dict[str, str]:
    """Return what a cook, a station or a plate has, in words and as a picture."""
    if not things:
        return {}
    said = []
    for thing in things:
        load = [_said(env, state, one) for one in _load(state, thing)]
        said.append(_said(env, state, thing) + (f" with {' and '.join(load)}" if load else ""))
    full = [t for t in things if _load(state, t)]
    shown = f"plate-{_picture(env, state, _load(state, full[0])[-1])}" if full else ""
    return {
        "holds": ", ".join(said),
        "carries": shown or _picture(env, state, things[-1]),
    }


def _said(env: Overcooked, state: State, thing: Thing) -> str:
    """Return a thing in words, such as `chopped tomato`."""
    if thing == Thing.DISH:
        return _picture(env, state, thing)
    chopped = thing < FOODS and int(state.chopped[thing]) >= CHOPS
    return ("chopped " if chopped else "") + _name(env, thing)


def _colour(env: Overcooked, thing: Thing) -> str:
    if thing in PLATES:
        return "white"
    foods = ("tomato", "lettuce", env.kitchen.third_food)
    return FOOD_COLOURS[foods[thing]] if thing < FOODS else "brown"


def _labels(env: Overcooked, state: State) -> dict[Thing, str]:
    """Return a short label for each thing: tom, then tom1 and tom2 while it is chopped, then tom✓."""
    labels = {}
    for thing, name in zip(Thing, ("tomato", "lettuce", env.kitchen.third_food), strict=False):
        times = int(state.chopped[thing])
        labels[thing] = name[:3] + ("✓" if times >= CHOPS else str(times or ""))
    labels[Thing.DISH] = "patty" if int(state.cooked) >= COOKS else "bowl"
    for number, plate in enumerate(PLATES, 1):
        labels[plate] = " ".join([f"pl{number}", *(labels[t] for t in _load(state, plate))])
    return labels


def _progress(env: Overcooked, state: State) -> list[str]:
    if not env.kitchen.patty:
        return []
    notes = []
    if bool((state.place[:FOODS] == Place.BLENDER).all()):
        notes.append(f"blending: {int(state.blended)} of {BLENDS}")
    for k, place in enumerate((Place.OVEN_1, Place.OVEN_2), 1):
        if int(state.place[Thing.DISH]) == place:
            notes.append(f"{words.OVENS[k - 1]}: {int(state.cooked)} of {COOKS}")
    return notes


def _steps(env: Overcooked, state: State) -> list[Step]:
    """Return the recipe, step by step."""
    foods = ("tomato", "lettuce", env.kitchen.third_food)
    place = [int(p) for p in state.place]
    if env.kitchen.patty:
        blended = BLENDS if place[Thing.DISH] != Place.NOWHERE else int(state.blended)
        wanted = [food for food in foods if food != "peas"]
        more = [
            Step(name="blend", done=min(blended, BLENDS), of=BLENDS),
            Step(name="cook", done=min(int(state.cooked), COOKS), of=COOKS),
        ]
        plated = place[Thing.DISH] in (Place.PLATE_1, Place.PLATE_2)
    else:
        wanted = [food for food in foods if food in env.order]
        more = []
        plated = all(place[foods.index(f)] in (Place.PLATE_1, Place.PLATE_2) for f in wanted)
    chopped = [int(state.chopped[foods.index(food)]) for food in wanted]
    served = any(place[plate] == Place.DELIVERY for plate in PLATES)
    return [
        *(
            Step(name=f"chop {food}", done=min(times, CHOPS), of=CHOPS)
            for food, times in zip(wanted, chopped, strict=True)
        ),
        *more,
        Step(name="plate", done=int(plated)),
        Step(name="deliver", done=int(served)),
    ]
