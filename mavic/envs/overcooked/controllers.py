"""From macros to primitives: what each cook's macro does in this tick, and when the macro ends.

There are two dynamics. `reference` has the quirks of the reference, fixed cell numbers included. `paper` follows the
paper's appendix. There a macro ends when it cannot proceed (the thing is gone or in a cook's hands, or there is no
place for it), when a cook blocks the way, or when its work is done.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs.overcooked import memory, pathfinding
from mavic.envs.overcooked.grid import (
    NOWHERE,
    STEPS,
    cell_of,
    is_beside,
    is_in_view,
    look_up,
    step_from,
)
from mavic.envs.overcooked.kitchen import Kitchen
from mavic.envs.overcooked.macros import Goal, MacroTable, Mode, Primitive, Thing
from mavic.envs.overcooked.state import (
    CHOPS,
    FOODS,
    PLATES,
    Place,
    State,
    can_be_blended,
    in_hand,
    is_patty,
    is_raw,
)
from mavic.types import Array, record

NOTHING = len(Thing)  # what an empty hand holds


@record
class _Steering:
    """What all cooks do in this tick."""

    primitive: Array  # [B]
    ended: Array  # [B] the macro ends with this tick, whatever the tick brings
    chop_pushes: Array  # [B] the new `State.chop_pushes`


@record
class _Aim:
    """What a cook's macro aims at, by what the cook remembers."""

    mode: Array  # [] `Mode`
    goal: Array  # [] `Goal`
    target: Array  # [] cell, or NOWHERE if the macro has none
    held: Array  # [] the `Thing` the cook holds, or NOTHING


def _read(table: np.ndarray, index: Array) -> Array:
    """Return table[index] for an index inside the table."""
    return jnp.asarray(table).at[index].get(mode="clip")


def _aim(kitchen: Kitchen, macros: MacroTable, state: State, macro: Array) -> _Aim:
    """Return what each cook's macro aims at, with an axis [B] on every leaf."""
    goal = _read(macros.goal, macro)
    stations = (*kitchen.boards, kitchen.blender, *kitchen.ovens, kitchen.delivery)
    places = jnp.broadcast_to(jnp.asarray(stations, jnp.int32)[None], (macro.size, len(stations)))
    cells = [state.last_seen[:, : len(Thing)], places]
    if kitchen.passes:
        cells.append(_first_free_pass(kitchen, state)[:, None])
    known = jnp.concatenate(cells, axis=1)
    chosen = jnp.arange(known.shape[1])[None] == goal[:, None]
    target = jnp.sum(jnp.where(chosen, known, 0), axis=1)
    return _Aim(
        mode=_read(macros.mode, macro),
        goal=goal,
        target=jnp.where(jnp.any(chosen, axis=1), target, NOWHERE),
        held=in_hand(state),
    )


def _first_free_pass(kitchen: Kitchen, state: State) -> Array:
    """Return [B], the first counter inside the room that is empty as far as the cook remembers."""
    passes = jnp.asarray(kitchen.passes, jnp.int32)
    laden = jnp.any(state.last_seen[:, None, : len(Thing)] == passes[None, :, None], axis=2)
    free = jnp.any(~laden, axis=1)
    return jnp.where(free, passes[jnp.argmin(laden, axis=1)], NOWHERE)


def _is_food(thing: Array) -> Array:
    """Return whether a thing is one of the three foods."""
    return thing < FOODS


def _is_plate(thing: Array) -> Array:
    """Return whether a thing is a plate."""
    return (thing == PLATES[0]) | (thing == PLATES[1])


def _flag(flags: Array, thing: Array) -> Array:
    """Return [B], the flags [6] of things [B]; false for NOTHING."""
    chosen = jnp.arange(flags.shape[0])[None] == thing[:, None]
    return jnp.any(chosen & flags[None], axis=1)


def _workable(kitchen: Kitchen, macros: MacroTable, state: State, macro: Array) -> Array:
    """Return bool [B, 4]: the directions in which a station needs the work that the macro does."""
    raw = is_raw(kitchen, state)
    places = [(board, Place.BOARD_1 + k) for k, board in enumerate(kitchen.boards)]
    jobs = [("CHOP", cell, jnp.any(raw & (state.place == place))) for cell, place in places]
    if kitchen.patty:
        jobs.append(("BLEND", kitchen.blender, can_be_blended(kitchen, state)))
        for k, oven in enumerate(kitchen.ovens):
            waits = (state.place[Thing.DISH] == Place.OVEN_1 + k) & ~is_patty(state)
            jobs.append(("COOK", oven, waits))
    around = state.cook[:, None] + jnp.asarray(STEPS[:4])[None]
    found = jnp.zeros(around.shape, bool)
    for name, cell, waits in jobs:
        chosen = (macro == macros.number(name))[:, None]
        found = found | (chosen & (around == cell) & waits)
    return found


def _steer_paper(
    kitchen: Kitchen, macros: MacroTable, state: State, macro: Array, polite: bool
) -> _Steering:
    """Return the primitives of this tick under the paper's dynamics."""
    goals = _aim(kitchen, macros, state, macro)
    work = _workable(kitchen, macros, state, macro)
    push = jnp.argmax(work, axis=1)
    obstacles, people = state.last_seen[:, : len(Thing)], state.last_seen[:, len(Thing) :]
    if polite:
        own = state.cook[:, None]
        last = (jnp.arange(macro.size) == macro.size - 1)[:, None]
        others = jnp.where(last & (people != own), people, NOWHERE)
        obstacles, people = (
            jnp.concatenate([obstacles, others], axis=1),
            jnp.where(last, own, people),
        )
    walk = jax.vmap(partial(pathfinding.shortest_step, kitchen))(
        state.cook, goals.target, obstacles, people
    )
    travels = (goals.mode == Mode.GET) | (goals.mode == Mode.GO)
    primitive = jnp.where(travels, walk, _read(macros.primitive, macro))
    primitive = jnp.where(goals.mode == Mode.WORK, push, primitive)
    idle = _cannot_proceed(kitchen, macros, state, macro)
    primitive = jnp.where(idle, Primitive.STAY, primitive)
    plates = _is_plate(goals.goal) & (goals.held != NOTHING)
    arrives = travels & is_beside(state.cook, goals.target) & ~plates
    ended = idle | (goals.mode == Mode.MOVE) | (primitive == Primitive.STAY) | arrives
    return _Steering(primitive=primitive, ended=ended, chop_pushes=state.chop_pushes)


def _has_ended_paper(
    kitchen: Kitchen,
    macros: MacroTable,
    before: State,
    after: State,
    macro: Array,
    primitive: Array,
) -> Array:
    """Return bool [B]: macros that end because of what the tick brought, under the paper's dynamics."""
    travels = (_read(macros.mode, macro) == Mode.GET) | (_read(macros.mode, macro) == Mode.GO)
    onto_floor = look_up(kitchen.is_floor(), step_from(before.cook, primitive))
    blocked = travels & onto_floor & (after.cook == before.cook)
    return blocked | _cannot_proceed(kitchen, macros, after, macro)


def _cannot_proceed(kitchen: Kitchen, macros: MacroTable, state: State, macro: Array) -> Array:
    """Return bool [B]: macros that have no work left, by what the cook can know."""
    goals = _aim(kitchen, macros, state, macro)
    nowhere = goals.target == NOWHERE
    get = nowhere | _get_cannot_proceed(kitchen, macros, state, macro, goals)
    go = nowhere | (is_beside(state.cook, goals.target) & ~_has_use(kitchen, state, goals))
    work = (goals.held != NOTHING) | ~jnp.any(_workable(kitchen, macros, state, macro), axis=1)
    return (
        ((goals.mode == Mode.GET) & get)
        | ((goals.mode == Mode.GO) & go)
        | ((goals.mode == Mode.WORK) & work)
    )


def _has_use(kitchen: Kitchen, state: State, goals: _Aim) -> Array:
    """Return bool [B]: the station can take what the cook holds."""
    ready = _is_food(goals.held) & ~_flag(is_raw(kitchen, state), goals.held)
    bowl = (goals.held == Thing.DISH) & ~is_patty(state)
    oven = (goals.goal == Goal.OVEN_1) | (goals.goal == Goal.OVEN_2)
    any_use = goals.held != NOTHING
    return jnp.where(goals.goal == Goal.BLENDER, ready, jnp.where(oven, bowl, any_use))


def _get_cannot_proceed(
    kitchen: Kitchen, macros: MacroTable, state: State, macro: Array, goals: _Aim
) -> Array:
    """Return bool [B]: a GET macro cannot take its thing, by what the cook can know."""
    target, held = goals.target, goals.held
    seen = is_in_view(state.cook, target)
    raw = is_raw(kitchen, state)
    patty = is_patty(state)
    if kitchen.patty:
        plates_it = _is_plate(goals.goal) & (held == Thing.DISH) & patty
        plates_it |= (macro == macros.number("GET_PATTY")) & _is_plate(held)
    else:
        plates_it = _is_plate(goals.goal) & _is_food(held) & ~_flag(raw, held)
        plates_it |= _is_food(goals.goal) & _is_plate(held)
    busy = (held != NOTHING) & ~plates_it

    others = state.cook[None, :] == target[:, None]
    carried = seen & jnp.any(others, axis=1)
    missing = seen & (_at(state.cell, goals.goal) != target)
    place = _at(state.place, goals.goal)
    plated = seen & ~_is_plate(goals.goal) & ((place == Place.PLATE_1) | (place == Place.PLATE_2))
    on_board = (place == Place.BOARD_1) | (place == Place.BOARD_2)
    unchopped = is_beside(state.cook, target) & on_board & _flag(raw, goals.goal)
    over = busy | carried | missing | plated | unchopped
    if kitchen.patty:
        in_oven = (target == kitchen.ovens[0]) | (target == kitchen.ovens[1])
        blended = _is_food(goals.goal) & (in_oven | (target == kitchen.blender))
        not_bowl = (macro == macros.number("GET_BOWL")) & (in_oven | state.last_seen_patty)
        not_patty = (macro == macros.number("GET_PATTY")) & ~state.last_seen_patty
        over = over | blended | not_bowl | not_patty | (seen & (place == Place.DISH))
    return over


def _at(values: Array, index: Array) -> Array:
    """Return [B], values [6] at index [B]; 0 if out of range."""
    chosen = jnp.arange(values.shape[0])[None] == index[:, None]
    return jnp.sum(jnp.where(chosen, values[None], 0), axis=1)


# The reference's controllers contain these cells as constants.
CORNER, BELOW_CORNER, NEAR_DELIVERY = cell_of(1, 1), cell_of(2, 1), cell_of(3, 1)
FIRST_BOARD = cell_of(1, 0)


def _steer_reference(
    kitchen: Kitchen, macros: MacroTable, state: State, macro: Array, polite: bool
) -> _Steering:
    """Return the primitives of this tick under the reference's dynamics."""
    del polite  # the reference has no scripted cook
    goals = _aim(kitchen, macros, state, macro)
    grid = jax.vmap(partial(memory.reference_grid, kitchen))(state.last_seen, state.cook)
    one = partial(_steer_one, kitchen, state)
    primitive, ended = jax.vmap(one)(state.cook, goals, grid)

    onto = jax.vmap(lambda cells, cell: cells[cell])
    move = _read(macros.primitive, macro)
    free = onto(grid, step_from(state.cook, move)) == memory.SPACE
    moves = goals.mode == Mode.MOVE
    primitive = jnp.where(moves, jnp.where(free, move, Primitive.STAY), primitive)

    work = _workable(kitchen, macros, state, macro)
    chops, can = goals.mode == Mode.WORK, jnp.any(work, axis=1)
    primitive = jnp.where(
        chops, jnp.where(can, jnp.argmax(work, axis=1), Primitive.STAY), primitive
    )
    pushes = state.chop_pushes + (chops & can)
    chopped = pushes >= CHOPS
    ended = jnp.where(chops, ~can | chopped, ended | moves)
    return _Steering(primitive=primitive, ended=ended, chop_pushes=jnp.where(chopped, 0, pushes))


def _steer_one(
    kitchen: Kitchen, state: State, cook: Array, goals: _Aim, grid: Array
) -> tuple[Array, Array]:
    """Return the primitive of one cook's GET or GO macro and whether it ends, under the reference's dynamics."""
    target, goal, held = goals.target, goals.goal, goals.held
    food, plate = goal < FOODS, _is_plate(goal)
    board = (goal == Goal.BOARD_1) | (goal == Goal.BOARD_2)
    beside, seen = is_beside(cook, target), is_in_view(cook, target)
    cell = target.clip(0, grid.size - 1)
    crowded = grid == memory.COOK
    path = pathfinding.reference_astar_step(cook, cell, crowded | (grid == memory.SPACE), crowded)

    laden = is_raw(kitchen, state) & (state.cell == target)
    on_board = (target == kitchen.boards[0]) | (target == kitchen.boards[1])
    carries = held < FOODS
    raw_held = carries & is_raw(kitchen, state)[held.clip(0, NOTHING - 1)]
    gone = (food | plate) & (state.cell[goal.clip(0, NOTHING - 1)] != target)
    waits = (
        (plate & raw_held) | (board & (held == NOTHING)) | (food & on_board & jnp.any(laden)) | gone
    )
    plates_it = plate & carries & ~raw_held
    a_plate = state.cell[PLATES[0] : PLATES[1] + 1] == target
    counter = goal == Goal.PASS

    primitive = jnp.where(beside & waits & ~counter, Primitive.STAY, path)
    ended = jnp.where(counter, beside, (path == Primitive.STAY) | (beside & ~plates_it))

    taken = crowded[cell] & seen & ~counter
    primitive, ended = jnp.where(taken, Primitive.STAY, primitive), ended | taken
    queue = crowded[BELOW_CORNER] & ~counter
    yields = queue & (target == FIRST_BOARD) & (cook == NEAR_DELIVERY)
    plated = food & seen & jnp.any(a_plate)
    steps_aside = queue & (goal == Goal.DELIVERY) & (cook == CORNER)
    primitive = jnp.where(yields & ~plated, Primitive.RIGHT, primitive)
    ended = ended & ~yields
    primitive, ended = jnp.where(plated, Primitive.STAY, primitive), ended | plated
    primitive = jnp.where(steps_aside, Primitive.RIGHT, primitive)
    ended = ended & ~steps_aside
    lost = target == NOWHERE
    return jnp.where(lost, Primitive.STAY, primitive), ended | lost


def _has_ended_reference(
    kitchen: Kitchen,
    macros: MacroTable,
    before: State,
    after: State,
    macro: Array,
    primitive: Array,
) -> Array:
    """Return bool [B]: macros that end because of what the tick brought, under the reference's dynamics."""
    del before, primitive
    goals = _aim(kitchen, macros, after, macro)
    beside = is_beside(after.cook, goals.target)
    station = (goals.goal >= Goal.BOARD_1) & (goals.goal <= Goal.DELIVERY)
    idle = station & (goals.held == NOTHING) & beside
    on_board = (goals.target == kitchen.boards[0]) | (goals.target == kitchen.boards[1])
    raw = _flag(is_raw(kitchen, after), goals.goal) & on_board & beside
    stale = (goals.mode == Mode.GET) & (_at(after.cell, goals.goal) != goals.target)
    return idle | raw | stale


class _Controller(NamedTuple):
    """The functions of one dynamics: the primitives of a tick, and the macros that end because of the tick.

    `steer` takes the kitchen, its macro table, the state, the macros [B], and whether the last cook is polite: it then
    walks around the others. `has_ended` takes the kitchen, the table, the states before and after the tick, the macros
    [B] and the primitives [B].
    """

    steer: Callable[[Kitchen, MacroTable, State, Array, bool], _Steering]
    has_ended: Callable[[Kitchen, MacroTable, State, State, Array, Array], Array]


CONTROLLERS = {
    "paper": _Controller(steer=_steer_paper, has_ended=_has_ended_paper),
    "reference": _Controller(steer=_steer_reference, has_ended=_has_ended_reference),
}
