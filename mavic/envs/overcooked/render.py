"""The picture of an Overcooked state."""

from __future__ import annotations

from collections.abc import Sequence

from mavic.envs.api import plain
from mavic.envs.overcooked import words
from mavic.envs.overcooked.grid import SIZE, cell_of, row_column
from mavic.envs.overcooked.kitchen import Kitchen
from mavic.envs.overcooked.macros import Thing
from mavic.envs.overcooked.state import BLENDS, CHOPS, COOKS, FOODS, PLATES, Place, State
from mavic.types import Scene, Sprite, Step

COOK_COLOURS = ("blue", "orange", "purple")
FOOD_COLOURS = {"tomato": "red", "lettuce": "green", "onion": "pink", "peas": "green"}


def picture(kitchen: Kitchen, order: str, macros: Sequence[str], state: State) -> Scene:
    """Return counters, stations, things, cooks and what they hold. Notes tell macros and progress.

    Args:
        kitchen: The kitchen.
        order: The name of the task.
        macros: The names of the macros that run. The cooks that have none follow a script.
        state: The state.
    """
    labels = _labels(kitchen, state)
    sprites = [
        Sprite(shape="counter", x=column, y=row, colour="sand")
        for row in range(SIZE)
        for column in range(SIZE)
        if cell_of(row, column) not in kitchen.floor
    ]
    hatch = dict(name=words.HATCH, picture="hatch")
    sprites.append(_sprite("goal", kitchen.delivery, "✱", "green", **hatch))
    for cell, label, name, drawn, colour, place in _stations(kitchen):
        inside = [thing for thing in Thing if int(state.place[thing]) == place]
        held = _held(kitchen, state, inside)
        sprites.append(_sprite("station", cell, label, colour, name=name, picture=drawn, **held))
    for thing in reversed(Thing):
        if int(state.place[thing]) == Place.COUNTER:
            shape = "plate" if thing in PLATES else "food"
            load = _held(kitchen, state, _load(state, thing))
            about = dict(
                name=_name(kitchen, thing), picture=_picture(kitchen, state, thing), **load
            )
            cell, colour = int(state.cell[thing]), _colour(kitchen, thing)
            sprites.append(_sprite(shape, cell, labels[thing], colour, **about))
    notes = []
    for cook in range(len(state.cook)):
        held_things = [t for t in Thing if int(state.place[t]) == Place.HAND + cook]
        about = dict(name=words.COOKS[cook], picture="cook", **_held(kitchen, state, held_things))
        cell, label = int(state.cook[cook]), words.COOKS[cook][0].upper()
        sprites.append(_sprite("robot", cell, label, COOK_COLOURS[cook], **about))
        doing = "plays by a script"
        if cook < len(macros):
            doing = words.MACRO_WORDS.get(macros[cook]) or plain(macros[cook])
        notes.append(f"{words.COOKS[cook]}: {doing}")
    return Scene(
        width=SIZE,
        height=SIZE,
        sprites=tuple(sprites),
        notes=(*notes, *_progress(kitchen, state)),
        steps=tuple(_steps(kitchen, order, state)),
    )


def _stations(kitchen: Kitchen) -> list[tuple[int, str, str, str, str, Place]]:
    """Return the cell, label, name, picture, colour and place of every station."""
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


def _name(kitchen: Kitchen, thing: Thing) -> str:
    """Return what people call a thing."""
    foods = ("tomato", "lettuce", kitchen.third_food)
    return (*foods, *words.PLATES, "dish")[thing]


def _picture(kitchen: Kitchen, state: State, thing: Thing) -> str:
    """Return what a thing is drawn as."""
    if thing in PLATES:
        return "plate"
    if thing == Thing.DISH:
        return "patty" if int(state.cooked) >= COOKS else "bowl"
    return _name(kitchen, thing) + ("-chopped" if int(state.chopped[thing]) >= CHOPS else "")


def _load(state: State, thing: Thing) -> list[Thing]:
    """Return what lies on a plate."""
    if thing not in PLATES:
        return []
    inside = Place.PLATE_1 + PLATES.index(thing)
    return [t for t in (*list(Thing)[:FOODS], Thing.DISH) if int(state.place[t]) == inside]


def _held(kitchen: Kitchen, state: State, things: list[Thing]) -> dict[str, str]:
    """Return what a cook, a station or a plate has, in words and as a picture."""
    if not things:
        return {}
    said = []
    for thing in things:
        load = [_said(kitchen, state, one) for one in _load(state, thing)]
        said.append(_said(kitchen, state, thing) + (f" with {' and '.join(load)}" if load else ""))
    full = [t for t in things if _load(state, t)]
    shown = f"plate-{_picture(kitchen, state, _load(state, full[0])[-1])}" if full else ""
    return {
        "holds": ", ".join(said),
        "carries": shown or _picture(kitchen, state, things[-1]),
    }


def _said(kitchen: Kitchen, state: State, thing: Thing) -> str:
    """Return a thing in words, such as `chopped tomato`."""
    if thing == Thing.DISH:
        return _picture(kitchen, state, thing)
    chopped = thing < FOODS and int(state.chopped[thing]) >= CHOPS
    return ("chopped " if chopped else "") + _name(kitchen, thing)


def _colour(kitchen: Kitchen, thing: Thing) -> str:
    if thing in PLATES:
        return "white"
    foods = ("tomato", "lettuce", kitchen.third_food)
    return FOOD_COLOURS[foods[thing]] if thing < FOODS else "brown"


def _labels(kitchen: Kitchen, state: State) -> dict[Thing, str]:
    """Return a short label for each thing: tom, then tom1 and tom2 while it is chopped, then tom✓."""
    labels = {}
    for thing, name in zip(Thing, ("tomato", "lettuce", kitchen.third_food), strict=False):
        times = int(state.chopped[thing])
        labels[thing] = name[:3] + ("✓" if times >= CHOPS else str(times or ""))
    labels[Thing.DISH] = "patty" if int(state.cooked) >= COOKS else "bowl"
    for number, plate in enumerate(PLATES, 1):
        labels[plate] = " ".join([f"pl{number}", *(labels[t] for t in _load(state, plate))])
    return labels


def _progress(kitchen: Kitchen, state: State) -> list[str]:
    if not kitchen.patty:
        return []
    notes = []
    if bool((state.place[:FOODS] == Place.BLENDER).all()):
        notes.append(f"blending: {int(state.blended)} of {BLENDS}")
    for k, place in enumerate((Place.OVEN_1, Place.OVEN_2), 1):
        if int(state.place[Thing.DISH]) == place:
            notes.append(f"{words.OVENS[k - 1]}: {int(state.cooked)} of {COOKS}")
    return notes


def _steps(kitchen: Kitchen, order: str, state: State) -> list[Step]:
    """Return the recipe, step by step."""
    foods = ("tomato", "lettuce", kitchen.third_food)
    place = [int(p) for p in state.place]
    if kitchen.patty:
        blended = BLENDS if place[Thing.DISH] != Place.NOWHERE else int(state.blended)
        wanted = [food for food in foods if food != "peas"]
        more = [
            Step(name="blend", done=min(blended, BLENDS), of=BLENDS),
            Step(name="cook", done=min(int(state.cooked), COOKS), of=COOKS),
        ]
        plated = place[Thing.DISH] in (Place.PLATE_1, Place.PLATE_2)
    else:
        wanted = [food for food in foods if food in order]
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
