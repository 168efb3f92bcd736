"""The scripted third cook, who does the work that an instruction takes away from the other cooks.

While the effect "partner-chops" holds for any cook, it fetches raw vegetables, puts them on a free board and chops
them. While "partner-delivers" holds, it fetches the plated patty and delivers it. It brings away what it already
carries even after the instruction has ended. Otherwise it stands still. It knows where all things and cooks are.
"""

from __future__ import annotations

import jax.numpy as jnp

from mavic.envs.overcooked.grid import is_beside
from mavic.envs.overcooked.kitchen import Kitchen
from mavic.envs.overcooked.macros import NO_MACRO, MacroTable, Thing
from mavic.envs.overcooked.state import PLATES, Place, State, in_hand, is_raw
from mavic.types import Array, replace

EFFECTS = ("partner-chops", "partner-delivers")


def choose(kitchen: Kitchen, macros: MacroTable, state: State, effect: Array) -> Array:
    """Return the macro of the scripted cook, which is the last one, in this tick.

    Args:
        kitchen: The kitchen.
        macros: What its macros do.
        state: The state.
        effect: [N] what the instructions of the other cooks change, as `Env.tick` says.
    """
    raw, place = is_raw(kitchen, state), state.place
    held, cell = in_hand(state)[-1], state.cook[-1]
    chops = jnp.any(effect == 1 + EFFECTS.index("partner-chops"))
    delivers = jnp.any(effect == 1 + EFFECTS.index("partner-delivers"))
    idle = held == len(Thing)
    carries_raw = jnp.any(raw & (jnp.arange(raw.size) == held))
    macro = jnp.int32(macros.number("STAY"))

    def when(applies: Array, name: str) -> Array:
        number = macros.number(name)
        return macro if number == NO_MACRO else jnp.where(applies, number, macro)

    third = f"GET_{kitchen.third_food.upper()}"
    for food, name in enumerate(("GET_TOMATO", "GET_LETTUCE", third)):
        macro = when(chops & idle & raw[food] & (place[food] == Place.COUNTER), name)
    for k in (1, 0):
        board = Place.BOARD_1 + k
        waiting = jnp.any(raw & (place == board))
        macro = when(carries_raw & ~jnp.any(place == board), f"GO_BOARD_{k + 1}")
        macro = when(chops & idle & waiting, f"GO_BOARD_{k + 1}")
    for k, board_cell in enumerate(kitchen.boards):
        waiting = jnp.any(raw & (place == Place.BOARD_1 + k)) & is_beside(
            cell, jnp.int32(board_cell)
        )
        macro = when(chops & idle & waiting, "CHOP")
    for k, plate in enumerate(PLATES):
        laden = jnp.any(place == Place.PLATE_1 + k)
        macro = when(
            delivers & idle & laden & (place[plate] == Place.COUNTER), f"GET_PLATE_{k + 1}"
        )
        macro = when(laden & (held == plate), "DELIVER")
    return macro


def know_all(state: State) -> State:
    """Let the scripted cook remember the true cells of all things and cooks."""
    truth = jnp.concatenate([state.cell, state.cook])
    return replace(state, last_seen=state.last_seen.at[-1].set(truth))
