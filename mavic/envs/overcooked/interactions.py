"""What moving against a counter or station does: pick up, put down, chop, blend, cook, plate, deliver."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from mavic.envs.overcooked.grid import CELLS, NOWHERE, look_up
from mavic.envs.overcooked.kitchen import Kitchen
from mavic.envs.overcooked.macros import NO_MACRO, MacroTable, Thing
from mavic.envs.overcooked.state import (
    BLENDS,
    CHOPS,
    FOODS,
    PLATES,
    Event,
    Place,
    State,
    can_be_blended,
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
)  # on the reference's grid both plates look alike


@record
class _Contact:
    """A cook in front of a cell: the cell, what the cook holds, and what lies there."""

    hand: Array  # [] the `Place` of what the cook holds
    against: Array  # [] the cell
    station: Array  # [] the `Place` of what lies on the cell
    held: Array  # [6] bool, at most one: what the cook holds
    there: Array  # [6] bool, at most one: what lies on top
    full: Array  # [] the cook holds something
    taken: Array  # [] something lies there
    own_plate: Array  # [] the `Place` of things on the plate in hand; meaningless if it is no plate
    that_plate: Array  # [] the `Place` of things on the plate that lies there; meaningless if it is no plate


@record
class _Interaction:
    """What the cook does there, as bools []. At most one is true, except that `swaps` implies `loads`."""

    chops: Array
    blends: Array
    cooks: Array
    takes: Array
    puts: Array
    loads: Array  # what the cook holds goes onto the plate there
    swaps: Array  # and the cook picks the plate up
    fills: Array  # what lies there goes onto the plate that the cook holds
    delivers: Array


@record
class _Outcome:
    """The result of one interaction."""

    state: State
    events: Array  # [V] float
    named: Array  # [] the macro that does the same work, or `NO_MACRO`


def interact(
    kitchen: Kitchen,
    recipe: np.ndarray,
    macros: MacroTable,
    buries: bool,
    state: State,
    cook: Array,
    against: Array,
) -> _Outcome:
    """Let a cook move against a cell. Against floor it has no effect.

    Args:
        kitchen: The kitchen.
        recipe: Bool [3], the foods of a salad.
        macros: What the kitchen's macros do.
        buries: A thing that is put or returned onto another hides it for the rest of the episode.
        state: The state.
        cook: The number of the cook.
        against: The cell.
    """
    contact = _contact(kitchen, state, cook, against)
    done = _decide(kitchen, state, contact)
    after = _do(state, contact, done)
    solved, gone = _deliver(kitchen, recipe, state, contact, done)
    after = _return(kitchen, after, gone)
    if buries:
        on_counter = contact.held & done.puts & (contact.station == Place.COUNTER)
        after = replace(after, place=_bury(after, on_counter | gone))
    return _Outcome(
        state=after,
        events=_events(state, after, contact, done, solved),
        named=_name(kitchen, macros, state, contact, done),
    )


def macro_of_work(
    kitchen: Kitchen, macros: MacroTable, state: State, cook: Array, against: Array
) -> Array:
    """Return the macro that does the same work as a cook's move against a cell, or `NO_MACRO`.

    Args:
        kitchen: The kitchen.
        macros: What the kitchen's macros do.
        state: The state.
        cook: The number of the cook.
        against: The cell.
    """
    contact = _contact(kitchen, state, cook, against)
    return _name(kitchen, macros, state, contact, _decide(kitchen, state, contact))


def _contact(kitchen: Kitchen, state: State, cook: Array, against: Array) -> _Contact:
    """Return what the cook meets at the cell."""
    station = look_up(_place_of_cell(kitchen), against)
    held = state.place == Place.HAND + cook
    there = (state.place == station) & (state.cell == against)
    on_top = jnp.argmax(there).astype(jnp.int32)
    return _Contact(
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


def _place_of_cell(kitchen: Kitchen) -> np.ndarray:
    """Return [CELLS], the `Place` that a thing put onto the cell gets."""
    table = np.full(CELLS, Place.COUNTER, np.int32)
    table[list(kitchen.floor)] = Place.FLOOR
    table[kitchen.delivery] = Place.DELIVERY
    table[list(kitchen.boards)] = Place.BOARD_1, Place.BOARD_2
    if kitchen.patty:
        table[kitchen.blender] = Place.BLENDER
        table[list(kitchen.ovens)] = Place.OVEN_1, Place.OVEN_2
    return table


def _decide(kitchen: Kitchen, state: State, contact: _Contact) -> _Interaction:
    """Return which interaction takes place."""
    at_counter = contact.station == Place.COUNTER
    at_board = _is_one_of(contact.station, Place.BOARD_1, Place.BOARD_2)
    at_blender = contact.station == Place.BLENDER
    at_oven = _is_one_of(contact.station, Place.OVEN_1, Place.OVEN_2)
    raw, patty = is_raw(kitchen, state), is_patty(state)
    ready = jnp.asarray(IS_FOOD) & ~raw
    plateable = jnp.asarray(IS_DISH) & patty if kitchen.patty else ready
    dish_there, dish_held = contact.there[Thing.DISH], contact.held[Thing.DISH]

    chops = ~contact.full & at_board & jnp.any(contact.there & raw)
    cooks = ~contact.full & at_oven & dish_there & ~patty
    takes = ~contact.full & contact.taken & jnp.where(at_blender, dish_there, ~chops & ~cooks)
    fits = at_counter | at_board | (at_oven & dish_held & ~patty)
    loads = jnp.any(contact.there & jnp.asarray(IS_PLATE)) & jnp.any(contact.held & plateable)
    return _Interaction(
        chops=chops,
        blends=~contact.full & at_blender & can_be_blended(kitchen, state),
        cooks=cooks,
        takes=takes,
        puts=contact.full
        & jnp.where(at_blender, jnp.any(contact.held & ready), fits & ~contact.taken),
        loads=loads,
        swaps=loads & at_board & (not kitchen.patty),
        fills=jnp.any(contact.held & jnp.asarray(IS_PLATE)) & jnp.any(contact.there & plateable),
        delivers=contact.full & (contact.station == Place.DELIVERY),
    )


def _do(state: State, contact: _Contact, done: _Interaction) -> State:
    """Return the state after the interaction, before a delivery is checked against the task."""
    blended = state.blended + done.blends
    bowl = done.blends & (blended >= BLENDS)
    food, dish = jnp.asarray(IS_FOOD), jnp.asarray(IS_DISH)
    place = jnp.where(contact.there & (done.takes | done.swaps), contact.hand, state.place)
    leaves = contact.held & (done.puts | done.delivers)
    place = jnp.where(leaves, contact.station, place)
    place = jnp.where(contact.held & done.loads, contact.that_plate, place)
    place = jnp.where(contact.there & done.fills, contact.own_plate, place)
    place = jnp.where(food & bowl, Place.DISH, jnp.where(dish & bowl, Place.BLENDER, place))
    return replace(
        state,
        place=place,
        cell=jnp.where(leaves | (dish & bowl), contact.against, state.cell),
        chopped=state.chopped + (contact.there & done.chops)[:FOODS],
        blended=blended,
        cooked=state.cooked + done.cooks,
    )


def _deliver(
    kitchen: Kitchen, recipe: np.ndarray, state: State, contact: _Contact, done: _Interaction
) -> tuple[Array, Array]:
    """Return whether the task is solved, and bool [6]: what goes back to its start after a wrong delivery."""
    on_plate = (state.place == contact.own_plate) & jnp.any(contact.held & jnp.asarray(IS_PLATE))
    salad = jnp.all(on_plate[:FOODS] == jnp.asarray(recipe))
    correct = on_plate[Thing.DISH] if kitchen.patty else salad
    solved = done.delivers & correct
    gone = contact.held | on_plate
    gone = gone | (gone[Thing.DISH] & (state.place == Place.DISH))
    return solved, gone & done.delivers & ~solved


def _return(kitchen: Kitchen, state: State, gone: Array) -> State:
    """Return the state with the things `gone` [6] back at their starts, raw and uncooked."""
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
    """Return the places after things `arrived` [6] have hidden what lay on the same cell.

    A cell of the reference shows one code, so a thing below another is never found again. The two plates share a
    code, and of two plates on one cell the first plate is found.
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


def _events(
    before: State, after: State, contact: _Contact, done: _Interaction, solved: Array
) -> Array:
    """Return [V], how often each event happened."""
    at_oven = _is_one_of(contact.station, Place.OVEN_1, Place.OVEN_2)
    chopped = done.chops & (after.chopped >= CHOPS) & contact.there[:FOODS]
    dish_there = contact.there[Thing.DISH]
    happened = {
        Event.SOLVED: solved,
        Event.TOMATO_CHOPPED: chopped[Thing.TOMATO],
        Event.LETTUCE_CHOPPED: chopped[Thing.LETTUCE],
        Event.BLENDED: done.blends & (after.blended >= BLENDS),
        Event.COOKED: done.cooks & is_patty(after),
        Event.WRONG_DELIVERY: done.delivers & ~solved,
        Event.BOWL_IN_OVEN: done.puts & at_oven,
        Event.PATTY_TAKEN: (done.takes | done.fills) & at_oven & is_patty(before),
        Event.PATTY_PLATED: (done.loads & contact.held[Thing.DISH]) | (done.fills & dish_there),
        Event.ONION_CHOPPED: chopped[Thing.THIRD],
    }
    return jnp.stack([happened[event] for event in Event]).astype(float)


def _name(
    kitchen: Kitchen, macros: MacroTable, state: State, contact: _Contact, done: _Interaction
) -> Array:
    """Return the macro that does the same work as the interaction, or `NO_MACRO`."""
    got = contact.there & (done.takes | done.loads | done.fills)
    patty = is_patty(state)
    names = {
        "CHOP": done.chops,
        "BLEND": done.blends,
        "COOK": done.cooks,
        "DELIVER": done.delivers,
        "GO_BOARD_1": done.puts & (contact.station == Place.BOARD_1),
        "GO_BOARD_2": done.puts & (contact.station == Place.BOARD_2),
        "GO_BLENDER": done.puts & (contact.station == Place.BLENDER),
        "GO_OVEN_1": done.puts & (contact.station == Place.OVEN_1),
        "GO_OVEN_2": done.puts & (contact.station == Place.OVEN_2),
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
    """Return whether a place is one of these."""
    found = place == places[0]
    for other in places[1:]:
        found = found | (place == other)
    return found
