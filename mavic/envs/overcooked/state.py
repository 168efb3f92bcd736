"""What a kitchen's state holds, and where things can be."""

from __future__ import annotations

from enum import IntEnum

import jax.numpy as jnp
import numpy as np

from mavic.envs.overcooked.kitchen import CELLS, NOWHERE, Kitchen
from mavic.envs.overcooked.macros import Thing
from mavic.types import Array, record

CHOPS, BLENDS, COOKS = 3, 5, 10  # pushes until done; paper, appendix Overcooked
FOODS = 3
PLATES = (Thing.PLATE_1, Thing.PLATE_2)


class Place(IntEnum):
    """Where a thing is. Its cell follows from that, except on a counter."""

    COUNTER = 0
    HAND = 1  # of the first cook; then of the second and third
    PLATE_1 = 4
    PLATE_2 = 5
    BOARD_1 = 6
    BOARD_2 = 7
    BLENDER = 8
    OVEN_1 = 9
    OVEN_2 = 10
    DISH = 11  # blended: part of the bowl or patty
    NOWHERE = 12  # the dish that does not exist yet
    LOST = (
        13  # under something that was returned to the same cell: the reference never finds it again
    )
    FLOOR = -1
    DELIVERY = -2


class Event(IntEnum):
    """What can happen in a tick."""

    SOLVED = 0
    TOMATO_CHOPPED = 1
    LETTUCE_CHOPPED = 2
    BLENDED = 3
    COOKED = 4
    WRONG_DELIVERY = 5
    BOWL_IN_OVEN = 6
    PATTY_TAKEN = 7
    PATTY_PLATED = 8
    ONION_CHOPPED = 9


@record
class State:
    """All that a kitchen and its cooks' controllers remember. `B` cooks, scripted ones included."""

    cook: Array  # [B] cells
    place: Array  # [6] `Place` of each `Thing`
    cell: Array  # [6] cells
    chopped: Array  # [3] pushes each food has had
    blended: Array  # [] pushes the blender's contents have had
    cooked: Array  # [] pushes the dish has had in the oven
    paid: Array  # [V] bool, events that have happened
    pushes: Array  # [B] of the running chop; only `reference` counts, and rarely resets
    recalled: Array  # [B, 6 + B] cells where each cook last saw the things and the cooks
    recalled_patty: Array  # [B] bool, whether the dish was a patty when last seen


def first_state(kitchen: Kitchen, cooks: int) -> State:
    """Everything at its start; every cook knows where."""
    cook = jnp.asarray(kitchen.starts[:cooks], jnp.int32)
    cell = jnp.asarray((*kitchen.homes, NOWHERE), jnp.int32)
    known = jnp.concatenate([cell, cook])
    return State(
        cook=cook,
        place=jnp.asarray([Place.COUNTER] * len(kitchen.homes) + [Place.NOWHERE], jnp.int32),
        cell=cell,
        chopped=jnp.zeros(FOODS, jnp.int32),
        blended=jnp.int32(0),
        cooked=jnp.int32(0),
        paid=jnp.zeros(len(Event), bool),
        pushes=jnp.zeros(cooks, jnp.int32),
        recalled=jnp.broadcast_to(known[None], (cooks, known.size)),
        recalled_patty=jnp.zeros(cooks, bool),
    )


def ground(kitchen: Kitchen) -> np.ndarray:
    """Per cell the `Place` of what is put there."""
    table = np.full(CELLS, Place.COUNTER, np.int32)
    table[list(kitchen.floor)] = Place.FLOOR
    table[kitchen.delivery] = Place.DELIVERY
    table[list(kitchen.boards)] = Place.BOARD_1, Place.BOARD_2
    if kitchen.patty:
        table[kitchen.blender] = Place.BLENDER
        table[list(kitchen.ovens)] = Place.OVEN_1, Place.OVEN_2
    return table


def in_hand(state: State) -> Array:
    """[B] the `Thing` each cook holds, len(Thing) for none."""
    cooks = jnp.arange(state.cook.shape[0])
    held = state.place[None, :] == Place.HAND + cooks[:, None]
    return jnp.where(jnp.any(held, axis=1), jnp.argmax(held, axis=1), len(Thing)).astype(jnp.int32)


def can_be_chopped(kitchen: Kitchen) -> np.ndarray:
    """Bool [6]: peas go into the blender as they are."""
    return np.array([True, True, not kitchen.patty, False, False, False])


def is_raw(kitchen: Kitchen, state: State) -> Array:
    """Bool [6]: food that still needs chopping."""
    done = jnp.concatenate([state.chopped >= CHOPS, jnp.zeros(len(Thing) - FOODS, bool)])
    return jnp.asarray(can_be_chopped(kitchen)) & ~done


def is_patty(state: State) -> Array:
    """Whether the dish is cooked."""
    return state.cooked >= COOKS


def can_be_blended(kitchen: Kitchen, state: State) -> Array:
    """Whether all three ingredients are in the blender."""
    if not kitchen.patty:
        return jnp.asarray(False)
    return jnp.all(state.place[:FOODS] == Place.BLENDER)


def follow(state: State) -> Array:
    """[6] cells once everything carried, plated or blended has followed what it is in."""
    cell, place = state.cell, state.place
    for cook in range(state.cook.shape[0]):
        cell = jnp.where(place == Place.HAND + cook, state.cook[cook], cell)
    for plate, inside in zip(PLATES, (Place.PLATE_1, Place.PLATE_2), strict=True):
        cell = jnp.where(place == inside, cell[plate], cell)
    return jnp.where(place == Place.DISH, cell[Thing.DISH], cell)
