"""What moving against a counter or station does: pick, put, chop, blend, cook, plate, deliver."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from mavic.envs.overcooked.kitchen import NOWHERE, Kitchen
from mavic.envs.overcooked.macros import NO_MACRO, MacroTable, Thing
from mavic.envs.overcooked.paths import look_up
from mavic.envs.overcooked.state import (
    BLENDS,
    CHOPS,
    FOODS,
    PLATES,
    Event,
    Place,
    State,
    can_be_blended,
    ground,
    is_patty,
    is_raw,
)
from mavic.types import Array, record, replace

THINGS = np.arange(len(Thing), dtype=np.int32)
IS_PLATE = np.isin(THINGS, PLATES)
IS_DISH = THINGS == Thing.DISH
IS_FOOD = THINGS < FOODS
CODE = np.where(
    IS_PLATE, int(Thing.PLATE_1), THINGS
)  # the reference's grid tells foods apart, plates not


@record
class Meeting:
    """A cook in front of a cell: where, what is in hand, what lies there."""

    hand: Array  # [] the cook's `Place`
    against: Array  # [] the cell
    station: Array  # [] its `Place`
    held: Array  # [6] bool, at most one
    there: Array  # [6] bool, at most one: what lies on top
    full: Array  # [] something in hand
    taken: Array  # [] something there
    own_plate: Array  # [] the `Place` on the plate in hand, if it is one
    that_plate: Array  # [] the `Place` on the plate that lies there, if it is one


@record
class Deed:
    """What the cook does there: at most one is true, but that swapping is also loading."""

    chops: Array
    blends: Array
    cooks: Array
    takes: Array
    puts: Array
    loads: Array  # what it holds goes onto the plate there
    swaps: Array  # and it ends up with the plate
    fills: Array  # what lies there goes onto the plate it holds
    delivers: Array


@record
class Push:
    """What one push did."""

    state: State
    events: Array  # [V] float
    named: Array  # [] the macro that names it, `NO_MACRO` if none does


def push(
    kitchen: Kitchen,
    recipe: np.ndarray,
    macros: MacroTable,
    buries: bool,
    state: State,
    cook: Array,
    against: Array,
) -> Push:
    """Cook number `cook` moves against cell `against`; nothing happens if that is floor.

    `recipe` bool [3]: what a salad consists of. `buries`: a thing put or returned onto another
    hides it for good.
    """
    met = _meet(kitchen, state, cook, against)
    deed = _decide(kitchen, state, met)
    after = _do(state, met, deed)
    solved, gone = _deliver(kitchen, recipe, state, met, deed)
    after = _return(kitchen, after, gone)
    if buries:
        on_counter = met.held & deed.puts & (met.station == Place.COUNTER)
        after = replace(after, place=_bury(after, on_counter | gone))
    return Push(
        state=after,
        events=_events(state, after, met, deed, solved),
        named=_name(kitchen, macros, state, met, deed),
    )


def _meet(kitchen: Kitchen, state: State, cook: Array, against: Array) -> Meeting:
    station = look_up(ground(kitchen), against)
    held = state.place == Place.HAND + cook
    there = (state.place == station) & (state.cell == against)
    on_top = jnp.argmax(there).astype(jnp.int32)
    return Meeting(
        hand=Place.HAND + cook,
        against=against,
        station=station,
        held=held,
        there=there & (jnp.asarray(THINGS) == on_top),
        full=jnp.any(held),
        taken=jnp.any(there),
        own_plate=Place.PLATE_1 + jnp.argmax(held).astype(jnp.int32) - Thing.PLATE_1,
        that_plate=Place.PLATE_1 + on_top - Thing.PLATE_1,
    )


def _decide(kitchen: Kitchen, state: State, met: Meeting) -> Deed:
    at_counter = met.station == Place.COUNTER
    at_board = _is_one_of(met.station, Place.BOARD_1, Place.BOARD_2)
    at_blender = met.station == Place.BLENDER
    at_oven = _is_one_of(met.station, Place.OVEN_1, Place.OVEN_2)
    raw, patty = is_raw(kitchen, state), is_patty(state)
    ready = jnp.asarray(IS_FOOD) & ~raw
    plateable = jnp.asarray(IS_DISH) & patty if kitchen.patty else ready
    dish_there, dish_held = met.there[Thing.DISH], met.held[Thing.DISH]

    chops = ~met.full & at_board & jnp.any(met.there & raw)
    cooks = ~met.full & at_oven & dish_there & ~patty
    takes = ~met.full & met.taken & jnp.where(at_blender, dish_there, ~chops & ~cooks)
    fits = at_counter | at_board | (at_oven & dish_held & ~patty)
    loads = jnp.any(met.there & jnp.asarray(IS_PLATE)) & jnp.any(met.held & plateable)
    return Deed(
        chops=chops,
        blends=~met.full & at_blender & can_be_blended(kitchen, state),
        cooks=cooks,
        takes=takes,
        puts=met.full & jnp.where(at_blender, jnp.any(met.held & ready), fits & ~met.taken),
        loads=loads,
        swaps=loads & at_board & (not kitchen.patty),
        fills=jnp.any(met.held & jnp.asarray(IS_PLATE)) & jnp.any(met.there & plateable),
        delivers=met.full & (met.station == Place.DELIVERY),
    )


def _do(state: State, met: Meeting, deed: Deed) -> State:
    blended = state.blended + deed.blends
    bowl = deed.blends & (blended >= BLENDS)
    food, dish = jnp.asarray(IS_FOOD), jnp.asarray(IS_DISH)
    place = jnp.where(met.there & (deed.takes | deed.swaps), met.hand, state.place)
    leaves = met.held & (deed.puts | deed.delivers)
    place = jnp.where(leaves, met.station, place)
    place = jnp.where(met.held & deed.loads, met.that_plate, place)
    place = jnp.where(met.there & deed.fills, met.own_plate, place)
    place = jnp.where(food & bowl, Place.DISH, jnp.where(dish & bowl, Place.BLENDER, place))
    return replace(
        state,
        place=place,
        cell=jnp.where(leaves | (dish & bowl), met.against, state.cell),
        chopped=state.chopped + (met.there & deed.chops)[:FOODS],
        blended=blended,
        cooked=state.cooked + deed.cooks,
    )


def _deliver(
    kitchen: Kitchen, recipe: np.ndarray, state: State, met: Meeting, deed: Deed
) -> tuple[Array, Array]:
    """Whether the task is solved, and [6] what else goes back to its start."""
    on_plate = (state.place == met.own_plate) & jnp.any(met.held & jnp.asarray(IS_PLATE))
    salad = jnp.all(on_plate[:FOODS] == jnp.asarray(recipe))
    correct = on_plate[Thing.DISH] if kitchen.patty else salad
    solved = deed.delivers & correct
    gone = met.held | on_plate
    gone = gone | (gone[Thing.DISH] & (state.place == Place.DISH))
    return solved, gone & deed.delivers & ~solved


def _return(kitchen: Kitchen, state: State, gone: Array) -> State:
    starts = jnp.asarray(np.where(IS_DISH, int(Place.NOWHERE), int(Place.COUNTER)), jnp.int32)
    return replace(
        state,
        place=jnp.where(gone, starts, state.place),
        cell=jnp.where(gone, jnp.asarray((*kitchen.homes, NOWHERE), jnp.int32), state.cell),
        chopped=jnp.where(gone[:FOODS], 0, state.chopped),
        blended=jnp.where(gone[Thing.DISH], 0, state.blended),
        cooked=jnp.where(gone[Thing.DISH], 0, state.cooked),
    )


def _bury(state: State, arrived: Array) -> Array:
    """A cell of the reference shows one code: what another thing came upon is never found again.

    Of two plates, which share a code, the first is found, whichever came last.
    """
    place, cell = state.place, state.cell
    for thing in Thing:
        here = _is_one_of(place, Place.COUNTER, Place.LOST) & (cell == cell[thing])
        found = jnp.argmax(here & jnp.asarray(CODE[thing] == CODE))
        shown = jnp.where(jnp.asarray(THINGS) == found, int(Place.COUNTER), int(Place.LOST)).astype(
            place.dtype
        )
        place = jnp.where(arrived[thing] & here, shown, place)
    return place


def _events(before: State, after: State, met: Meeting, deed: Deed, solved: Array) -> Array:
    at_oven = _is_one_of(met.station, Place.OVEN_1, Place.OVEN_2)
    chopped = deed.chops & (after.chopped >= CHOPS) & met.there[:FOODS]
    dish_there = met.there[Thing.DISH]
    happened = {
        Event.SOLVED: solved,
        Event.TOMATO_CHOPPED: chopped[Thing.TOMATO],
        Event.LETTUCE_CHOPPED: chopped[Thing.LETTUCE],
        Event.BLENDED: deed.blends & (after.blended >= BLENDS),
        Event.COOKED: deed.cooks & is_patty(after),
        Event.WRONG_DELIVERY: deed.delivers & ~solved,
        Event.BOWL_IN_OVEN: deed.puts & at_oven,
        Event.PATTY_TAKEN: (deed.takes | deed.fills) & at_oven & is_patty(before),
        Event.PATTY_PLATED: (deed.loads & met.held[Thing.DISH]) | (deed.fills & dish_there),
        Event.ONION_CHOPPED: chopped[Thing.THIRD],
    }
    return jnp.stack([happened[event] for event in Event]).astype(float)


def _name(kitchen: Kitchen, macros: MacroTable, state: State, met: Meeting, deed: Deed) -> Array:
    got = met.there & (deed.takes | deed.loads | deed.fills)
    patty = is_patty(state)
    names = {
        "CHOP": deed.chops,
        "BLEND": deed.blends,
        "COOK": deed.cooks,
        "DELIVER": deed.delivers,
        "GO_BOARD_1": deed.puts & (met.station == Place.BOARD_1),
        "GO_BOARD_2": deed.puts & (met.station == Place.BOARD_2),
        "GO_BLENDER": deed.puts & (met.station == Place.BLENDER),
        "GO_OVEN_1": deed.puts & (met.station == Place.OVEN_1),
        "GO_OVEN_2": deed.puts & (met.station == Place.OVEN_2),
        "GET_TOMATO": got[Thing.TOMATO],
        "GET_LETTUCE": got[Thing.LETTUCE],
        f"GET_{kitchen.third_food.upper()}": got[Thing.THIRD],
        "GET_PLATE_1": got[Thing.PLATE_1],
        "GET_PLATE_2": got[Thing.PLATE_2],
        "GET_BOWL": got[Thing.DISH] & ~patty,
        "GET_PATTY": got[Thing.DISH] & patty,
    }
    named = jnp.int32(NO_MACRO)
    for name, applies in names.items():
        if macros.number(name) != NO_MACRO:
            named = jnp.where(applies, macros.number(name), named)
    return named


def _is_one_of(place: Array, *places: Place) -> Array:
    found = place == places[0]
    for other in places[1:]:
        found = found | (place == other)
    return found
