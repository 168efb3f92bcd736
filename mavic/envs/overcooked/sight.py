"""What the cooks observe: whatever lies in the 5x5 window around each of them, now, without memory.

`reference`: foods (row, column, chop count), plates, boards, delivery, cooks, then the task of
seven. `paper`: the same with always three cooks, then blender, ovens and dish where the kitchen has
them, what the cook itself holds, and the task of ten. Rows and columns are shares of the map's
size, everything out of view is zero.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from mavic.envs.overcooked.kitchen import NOWHERE, SIZE, Kitchen
from mavic.envs.overcooked.macros import Thing
from mavic.envs.overcooked.paths import column, is_in_view, row
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
SLOTS = 3  # of cooks: a policy of two also runs beside a third


def observe_reference(kitchen: Kitchen, task: str, state: State, cooks: int) -> Array:
    """[N, O] the reference's numbers."""
    fixed, bodies = _fixed(kitchen, state), state.cook
    parts = [_foods(state, cooks), _places(state, fixed, cooks), _places(state, bodies, cooks)]
    return jnp.concatenate([*parts, _task(task, REFERENCE_TASKS, cooks)], axis=1)


def observe_paper(kitchen: Kitchen, task: str, state: State, cooks: int) -> Array:
    """[N, O] with statuses of stations and what is in hand."""
    fixed = _fixed(kitchen, state)
    absent = jnp.full(SLOTS - state.cook.shape[0], NOWHERE, jnp.int32)
    bodies = jnp.concatenate([state.cook, absent])
    parts = [_foods(state, cooks), _places(state, fixed, cooks), _places(state, bodies, cooks)]
    if kitchen.patty:
        parts += _stations(kitchen, state, cooks)
    return jnp.concatenate(
        [*parts, _hands(kitchen, state, cooks), _task(task, TASKS, cooks)], axis=1
    )


def _fixed(kitchen: Kitchen, state: State) -> Array:
    stations = jnp.asarray((*kitchen.boards, kitchen.delivery), jnp.int32)
    return jnp.concatenate([state.cell[Thing.PLATE_1 : Thing.PLATE_2 + 1], stations])


def _seen(state: State, cells: Array, cooks: int) -> Array:
    """Bool [N, K]."""
    return is_in_view(state.cook[:cooks, None], cells[None])


def _shares(cells: Array) -> Array:
    """[K, 2]"""
    return jnp.stack([row(cells), column(cells)], axis=-1).astype(float) / SIZE


def _shown(seen: Array, facts: Array) -> Array:
    """[N, K * F] from seen [N, K] and facts [K, F]."""
    masked = jnp.where(seen[:, :, None], facts[None], 0.0)
    return masked.reshape(masked.shape[0], -1)


def _places(state: State, cells: Array, cooks: int) -> Array:
    return _shown(_seen(state, cells, cooks), _shares(cells))


def _foods(state: State, cooks: int) -> Array:
    cells = jnp.where(state.place[:FOODS] == Place.DISH, NOWHERE, state.cell[:FOODS])
    chopped = state.chopped.astype(float) / CHOPS
    facts = jnp.concatenate([_shares(cells), chopped[:, None]], axis=1)
    return _shown(_seen(state, cells, cooks), facts)


def _stations(kitchen: Kitchen, state: State, cooks: int) -> list[Array]:
    """Blender: ingredients, progress, finished. Ovens: bowl, progress, patty. Dish: which."""
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
    """[N, H] one-hot: three foods, two plates and, with a blender, bowl and patty."""
    held = in_hand(state)[:cooks, None]
    if not kitchen.patty:
        return (held == jnp.arange(Thing.DISH)[None]).astype(float)
    patty = (held == Thing.DISH) & is_patty(state)
    held = jnp.where(held == len(Thing), -1, held + patty)
    return (held == jnp.arange(Thing.DISH + 2)[None]).astype(float)


def _task(task: str, tasks: tuple[str, ...], cooks: int) -> Array:
    wanted = np.array([[one == task for one in tasks]], float)
    return jnp.broadcast_to(jnp.asarray(wanted, float), (cooks, len(tasks)))
