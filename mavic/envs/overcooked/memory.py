"""What each cook remembers: the cell where it last saw each thing and each cook."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from mavic.envs.overcooked.grid import NOWHERE, is_in_view
from mavic.envs.overcooked.kitchen import Kitchen
from mavic.envs.overcooked.macros import Thing
from mavic.envs.overcooked.state import State, is_patty
from mavic.types import Array, replace


def remember(kitchen: Kitchen, state: State) -> State:
    """Update the cooks' memories.

    A cook remembers what it sees. If a thing is missing from the cell where the cook remembers it, the cook assumes
    that it is back at its start.
    """
    cooks = state.cook.shape[0]
    starts = jnp.asarray((*kitchen.homes, NOWHERE, *kitchen.starts[:cooks]), jnp.int32)[None]
    true = jnp.concatenate([state.cell, state.cook])[None]
    own = state.cook[:, None]
    seen = is_in_view(own, true)
    missed = is_in_view(own, state.last_seen)
    last_seen = jnp.where(seen, true, jnp.where(missed, starts, state.last_seen))
    dish = seen[:, Thing.DISH]
    last_seen_patty = jnp.where(dish, is_patty(state), state.last_seen_patty)
    return replace(state, last_seen=last_seen, last_seen_patty=last_seen_patty)


SPACE, COUNTER, COOK, PLATE, BOARD, DELIVERY = 0, 1, 2, 5, 6, 7  # codes of the reference
FOOD_CODES = (3, 4, 8)  # tomato, lettuce, onion


def reference_grid(kitchen: Kitchen, last_seen: Array, own: Array) -> Array:
    """Return [CELLS], the reference's grid of what one cook remembers. Things drawn later hide earlier ones.

    Args:
        kitchen: The kitchen.
        last_seen: [6 + B] the cells where the cook last saw the things and the cooks.
        own: The cook's cell.
    """
    grid = jnp.asarray(np.where(kitchen.is_floor(), SPACE, COUNTER), jnp.int32)
    for thing, code in enumerate((*FOOD_CODES, PLATE, PLATE)):
        grid = grid.at[last_seen[thing]].set(code)
    grid = grid.at[np.array(kitchen.boards)].set(BOARD).at[kitchen.delivery].set(DELIVERY)
    return grid.at[last_seen[len(Thing) :]].set(COOK).at[own].set(COOK)
