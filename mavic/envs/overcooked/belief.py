"""What each cook remembers: where it last saw every thing and every cook."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from mavic.envs.overcooked.kitchen import NOWHERE, Kitchen
from mavic.envs.overcooked.macros import Thing
from mavic.envs.overcooked.paths import is_in_view
from mavic.envs.overcooked.state import State, is_patty
from mavic.types import Array, replace


def remember(kitchen: Kitchen, state: State) -> State:
    """What is in view is known; what is missing where remembered is believed at its start."""
    cooks = state.cook.shape[0]
    starts = jnp.asarray((*kitchen.homes, NOWHERE, *kitchen.starts[:cooks]), jnp.int32)[None]
    true = jnp.concatenate([state.cell, state.cook])[None]
    own = state.cook[:, None]
    seen = is_in_view(own, true)
    missed = is_in_view(own, state.recalled)
    recalled = jnp.where(seen, true, jnp.where(missed, starts, state.recalled))
    dish = seen[:, Thing.DISH]
    recalled_patty = jnp.where(dish, is_patty(state), state.recalled_patty)
    return replace(state, recalled=recalled, recalled_patty=recalled_patty)


SPACE, COUNTER, COOK, PLATE, BOARD, DELIVERY = 0, 1, 2, 5, 6, 7  # the reference's codes
FOOD_CODES = (3, 4, 8)  # tomato, lettuce, onion


def reference_grid(kitchen: Kitchen, recalled: Array, own: Array) -> Array:
    """[CELLS] the reference's belief grid of one cook; later things hide earlier ones."""
    grid = jnp.asarray(np.where(kitchen.is_floor(), SPACE, COUNTER), jnp.int32)
    for thing, code in enumerate((*FOOD_CODES, PLATE, PLATE)):
        grid = grid.at[recalled[thing]].set(code)
    grid = grid.at[np.array(kitchen.boards)].set(BOARD).at[kitchen.delivery].set(DELIVERY)
    return grid.at[recalled[len(Thing) :]].set(COOK).at[own].set(COOK)
