"""What the cooks observe: everything in the 5x5 window around each cook, without memory.

Under `reference` the observation holds foods (row, column, chop count), plates, boards, delivery, cooks, and one of
seven tasks (one-hot). Under `paper` it holds the same with always three cooks; then blender, ovens and dish where the
kitchen has them; what the cook itself holds; and one of ten tasks. Rows and columns are fractions of the map's size.
Everything out of view is zero.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from mavic.envs.overcooked.grid import NOWHERE, SIZE, is_in_view, row_column
from mavic.envs.overcooked.kitchen import Kitchen
from mavic.envs.overcooked.macros import Thing
from mavic.envs.overcooked.state import (
    BLENDS,
    CHOPS,
    COOKS,
    FOODS,
    Place,
    State,
    in_hand,
    is_patty,
)
from mavic.types import Array

TASKS = (
    "tomato salad",
    "lettuce salad",
    "onion salad",
    "lettuce-tomato salad",
    "onion-tomato salad",
    "lettuce-onion salad",
    "lettuce-onion-tomato salad",
    "peas salad",
    "lettuce-peas salad",
    "lettuce-peas-tomato patty",
)
REFERENCE_TASKS = TASKS[:7]
SLOTS = 3  # places for cooks, so that a policy of two cooks also runs beside a third


def _observe_reference(kitchen: Kitchen, task: str, state: State, cooks: int) -> Array:
    """Return [N, O] in the layout of the reference."""
    fixed, cook_cells = _fixed(kitchen, state), state.cook
    parts = [_foods(state, cooks), _places(state, fixed, cooks), _places(state, cook_cells, cooks)]
    return jnp.concatenate([*parts, _task(task, REFERENCE_TASKS, cooks)], axis=1)


def _observe_paper(kitchen: Kitchen, task: str, state: State, cooks: int) -> Array:
    """Return [N, O] with the status of stations and what the cook holds."""
    fixed = _fixed(kitchen, state)
    absent = jnp.full(SLOTS - state.cook.shape[0], NOWHERE, jnp.int32)
    cook_cells = jnp.concatenate([state.cook, absent])
    parts = [_foods(state, cooks), _places(state, fixed, cooks), _places(state, cook_cells, cooks)]
    if kitchen.patty:
        parts += _stations(kitchen, state, cooks)
    return jnp.concatenate(
        [*parts, _hands(kitchen, state, cooks), _task(task, TASKS, cooks)], axis=1
    )


def _fixed(kitchen: Kitchen, state: State) -> Array:
    """Return [5], the cells of plates, boards and delivery."""
    stations = jnp.asarray((*kitchen.boards, kitchen.delivery), jnp.int32)
    return jnp.concatenate([state.cell[Thing.PLATE_1 : Thing.PLATE_2 + 1], stations])


def _seen(state: State, cells: Array, cooks: int) -> Array:
    """Return bool [N, K]: the cook sees the cell."""
    return is_in_view(state.cook[:cooks, None], cells[None])


def _shares(cells: Array) -> Array:
    """Return [K, 2], rows and columns as fractions of the map's size."""
    return jnp.stack(row_column(cells), axis=-1).astype(float) / SIZE


def _shown(seen: Array, facts: Array) -> Array:
    """Return [N, K * F]: facts [K, F] where seen [N, K], else zero."""
    masked = jnp.where(seen[:, :, None], facts[None], 0.0)
    return masked.reshape(masked.shape[0], -1)


def _places(state: State, cells: Array, cooks: int) -> Array:
    """Return [N, 2 K], the places of cells [K] that a cook sees."""
    return _shown(_seen(state, cells, cooks), _shares(cells))


def _foods(state: State, cooks: int) -> Array:
    """Return [N, 9]: place and chopping progress of the three foods."""
    cells = jnp.where(state.place[:FOODS] == Place.DISH, NOWHERE, state.cell[:FOODS])
    chopped = state.chopped.astype(float) / CHOPS
    facts = jnp.concatenate([_shares(cells), chopped[:, None]], axis=1)
    return _shown(_seen(state, cells, cooks), facts)


def _stations(kitchen: Kitchen, state: State, cooks: int) -> list[Array]:
    """Return what a cook sees of the blender, the ovens and the dish.

    Blender: ingredients, progress, finished. Each oven: bowl, progress, patty. Dish: bowl, patty.
    """
    dish, patty = state.place[Thing.DISH], is_patty(state)
    inside = state.place[:FOODS] == Place.BLENDER
    finished = dish == Place.BLENDER
    blending = (dish == Place.NOWHERE) * state.blended.astype(float) / BLENDS + finished
    cells = jnp.asarray((kitchen.blender, *kitchen.ovens), jnp.int32)
    blender = _numbers(inside[0], inside[1], inside[2], blending, finished)
    facts = jnp.concatenate([_shares(cells[:1]), blender[None]], axis=1)
    parts = [_shown(_seen(state, cells[:1], cooks), facts)]

    holds = dish == jnp.asarray([Place.OVEN_1, Place.OVEN_2])
    cooking = holds * state.cooked.astype(float) / COOKS
    ovens = jnp.stack([holds & ~patty, cooking, holds & patty], axis=1).astype(float)
    facts = jnp.concatenate([_shares(cells[1:]), ovens], axis=1)
    parts.append(_shown(_seen(state, cells[1:], cooks), facts))

    where = state.cell[Thing.DISH :]
    facts = jnp.concatenate([_shares(where), _numbers(~patty, patty)[None]], axis=1)
    return [*parts, _shown(_seen(state, where, cooks), facts)]


def _numbers(*values: Array) -> Array:
    return jnp.stack([jnp.asarray(value, float) for value in values])


def _hands(kitchen: Kitchen, state: State, cooks: int) -> Array:
    """Return [N, H], one-hot over three foods, two plates and, with a blender, bowl and patty."""
    held = in_hand(state)[:cooks, None]
    if not kitchen.patty:
        return (held == jnp.arange(Thing.DISH)[None]).astype(float)
    patty = (held == Thing.DISH) & is_patty(state)
    held = jnp.where(held == len(Thing), -1, held + patty)
    return (held == jnp.arange(Thing.DISH + 2)[None]).astype(float)


def _task(task: str, tasks: tuple[str, ...], cooks: int) -> Array:
    """Return [N, tasks], the task as one-hot."""
    wanted = np.array([[one == task for one in tasks]], float)
    return jnp.broadcast_to(jnp.asarray(wanted, float), (cooks, len(tasks)))


OBSERVE: dict[str, Callable[[Kitchen, str, State, int], Array]] = {
    "paper": _observe_paper,
    "reference": _observe_reference,
}
"""By dynamics: the observations [N, O] of the first N cooks, from the kitchen, the task, the state and N."""
