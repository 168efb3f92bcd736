"""The state of a kitchen, the places where things can be, and questions about them."""

from __future__ import annotations

from enum import IntEnum

import jax.numpy as jnp
import numpy as np

from mavic.envs.overcooked.kitchen import Kitchen
from mavic.envs.overcooked.macros import Thing
from mavic.types import Array, record

CHOPS, BLENDS, COOKS = 3, 5, 10  # pushes until done (paper, appendix Overcooked)
FOODS = 3  # tomato, lettuce, onion or peas: the first three of `Thing`
PLATES = (Thing.PLATE_1, Thing.PLATE_2)


class Place(IntEnum):
    """Where a thing is. The place determines the cell, except for a counter."""

    COUNTER = 0
    HAND = 1  # the hand of the first cook; 2 and 3 are those of the second and third
    PLATE_1 = 4
    PLATE_2 = 5
    BOARD_1 = 6
    BOARD_2 = 7
    BLENDER = 8
    OVEN_1 = 9
    OVEN_2 = 10
    DISH = 11  # a blended ingredient, now part of the bowl or patty
    NOWHERE = 12  # the dish before it exists
    LOST = 13  # below a thing that came to the same cell; the reference never finds it again
    FLOOR = -1
    DELIVERY = -2


class Event(IntEnum):
    """The events of a tick. Names in `Env.events` are these in lower case with hyphens."""

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
    """The full state of a kitchen and of its cooks' memories. `B` counts all cooks, a scripted one included."""

    cook: Array  # [B] cell of each cook
    place: Array  # [6] `Place` of each `Thing`
    cell: Array  # [6] cell of each `Thing`
    chopped: Array  # [3] chopping pushes each food has had
    blended: Array  # [] blending pushes the blender's contents have had
    cooked: Array  # [] cooking pushes the dish has had in the oven
    paid: Array  # [V] bool, events that have happened in this episode
    chop_pushes: Array  # [B] pushes of the running CHOP; only `reference` counts them, and rarely resets them
    last_seen: Array  # [B, 6 + B] cells where each cook last saw the things and the cooks
    last_seen_patty: Array  # [B] bool, whether the dish was a patty when the cook last saw it


def in_hand(state: State) -> Array:
    """Return [B], the `Thing` each cook holds, or len(Thing) for none."""
    cooks = jnp.arange(state.cook.shape[0])
    held = state.place[None, :] == Place.HAND + cooks[:, None]
    return jnp.where(jnp.any(held, axis=1), jnp.argmax(held, axis=1), len(Thing)).astype(jnp.int32)


def _can_be_chopped(kitchen: Kitchen) -> np.ndarray:
    """Return bool [6]: things that can be chopped. Peas go into the blender unchopped."""
    return np.array([True, True, not kitchen.patty, False, False, False])


def is_raw(kitchen: Kitchen, state: State) -> Array:
    """Return bool [6]: food that still needs chopping."""
    done = jnp.concatenate([state.chopped >= CHOPS, jnp.zeros(len(Thing) - FOODS, bool)])
    return jnp.asarray(_can_be_chopped(kitchen)) & ~done


def is_patty(state: State) -> Array:
    """Return whether the dish is cooked, which makes it a patty."""
    return state.cooked >= COOKS


def can_be_blended(kitchen: Kitchen, state: State) -> Array:
    """Return whether all three ingredients are in the blender."""
    if not kitchen.patty:
        return jnp.asarray(False)
    return jnp.all(state.place[:FOODS] == Place.BLENDER)
