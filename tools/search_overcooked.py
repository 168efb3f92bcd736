"""Search for the best plan of Overcooked's map D under the paper's dynamics, and the proof that it is optimal.

Under these dynamics every macro is a sequence of the five one-tick macros. A search over joint one-tick moves
therefore covers everything that two cooks can do. It is a beam search, tick by tick. It tries 25 joint moves for each
state and merges equal states; what cooks remember does not matter for one-tick moves. Each state has an upper bound:
the return so far, plus the return that would follow if every ingredient were carried the shortest way with no cook in
the way, if the cooks shared the work perfectly, and if a plate reached the oven as early as possible. The beam keeps
the states with the highest bound, and of equal bounds those with less work left.

With a beam of 100,000 states (about ten minutes on two cores) no state with a bound above 154.562 is dropped. So
no plan earns more than the 156.612 of `mavic.envs.overcooked.optimum.BEST_PLAN`, which takes 56 ticks.

The same search finds the best plans that obey a prohibition: moves that do what is forbidden are left out, and the
bound counts only what may be used. `OBEDIENT_PLANS` says what was found.

    python -m tools.search_overcooked --width 100000
    python -m tools.search_overcooked --width 20000 --kind avoid-right-board
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs.overcooked.env import Overcooked
from mavic.envs.overcooked.grid import STRIDE, neighbours, row_column
from mavic.envs.overcooked.kitchen import Kitchen
from mavic.envs.overcooked.macros import PattyMacro, Thing
from mavic.envs.overcooked.optimum import FORBIDDEN, GAMMA
from mavic.envs.overcooked.state import (
    BLENDS,
    CHOPS,
    COOKS,
    FOODS,
    PLATES,
    Event,
    Place,
    State,
    in_hand,
    is_patty,
)
from mavic.types import Array

WORK_COST = 0.1  # how much a tick of remaining work lowers a state's rank in the beam
LETTERS = {
    "S": PattyMacro.STAY,
    "R": PattyMacro.RIGHT,
    "D": PattyMacro.DOWN,
    "L": PattyMacro.LEFT,
    "U": PattyMacro.UP,
}
BOARD_USES = (PattyMacro.GO_BOARD_1, PattyMacro.GO_BOARD_2)
OVEN_USES = (PattyMacro.GO_OVEN_1, PattyMacro.GO_OVEN_2)
PLATE_USES = (PattyMacro.GET_PLATE_1, PattyMacro.GET_PLATE_2)
JOINT_MOVES = np.array([[a, b] for a in LETTERS.values() for b in LETTERS.values()], np.int32)
Forbidden = tuple[PattyMacro, ...]


def gain_bound(env: Overcooked, gamma: float = GAMMA) -> float:
    """Return an upper bound of what a cook can gain by disobeying, in any state and under any kind that adds.

    It is the most that can still be earned, minus the return of waiting for ever, which obeys every prohibition. The
    most is the reward for cooking in the first tick and the delivery as soon as the dish can be at the counter: it must
    be plated, carried and handed over. Before it is blended or chopped, more milestones are unpaid, but the delivery is
    so much later that less can be earned.
    """
    kitchen = env.kitchen
    boards, ovens = (
        [stand(kitchen, c) for c in cells] for cells in (kitchen.boards, kitchen.ovens)
    )
    blender, star = (stand(kitchen, cell) for cell in (kitchen.blender, kitchen.delivery))

    def apart(cells: list[int], other: int) -> int:
        return int(min(_distance(jnp.asarray(cells), jnp.asarray(other))))

    milestone, delivery = float(env.milestone), float(env.delivery)
    cooked = milestone + delivery * gamma ** (1 + apart(ovens, star) + 1)
    blended = milestone + cooked * gamma ** (1 + apart(ovens, blender) + 1 + COOKS)
    chopped = 2 * milestone + blended * gamma ** (1 + apart(boards, blender) + 1 + BLENDS)
    waiting = float(env.step) / (1 - gamma)
    return max(delivery, cooked, blended, chopped) - waiting


def moves(plan: tuple[str, str]) -> np.ndarray:
    """Return [T, 2], the macros of a plan given as one text of letters per cook."""
    return np.array([[LETTERS[one], LETTERS[two]] for one, two in zip(*plan, strict=True)])


class _Played(NamedTuple):
    """A plan that was played, tick by tick."""

    reward: np.ndarray  # [T]
    over: np.ndarray  # [T] bool: the task ended
    work: np.ndarray  # [T, 2] the macro whose work each cook did
    states: State  # [T, …] after each tick


@jax.jit
def _play(env: Overcooked, macros: Array) -> _Played:
    def step(state: State, macro: Array) -> tuple[State, _Played]:
        tick = env.advance(state, macro, jnp.zeros_like(macro))[0]
        done: Any = (tick.reward[0], tick.terminal, tick.effective_macro, tick.state)
        return tick.state, _Played(*done)

    return jax.lax.scan(step, env.reset(jax.random.key(0)), macros)[1]


def play(env: Overcooked, macros: np.ndarray) -> _Played:
    """Return what happens when the cooks make these moves [T, 2]."""
    done = _play(env, jnp.asarray(macros))
    return done._replace(
        **{name: np.asarray(getattr(done, name)) for name in ("reward", "over", "work")}
    )


def discounted(reward: np.ndarray, gamma: float = GAMMA) -> float:
    """Return the discounted sum of a sequence of rewards."""
    return float(np.sum(reward * gamma ** np.arange(len(reward))))


def _stands(
    kitchen: Kitchen, cells: tuple[int, ...], forbidden: Forbidden, *uses: PattyMacro
) -> Array:
    """Return the floor cells in front of those border cells whose use is not forbidden."""
    free = [c for c, use in zip(cells, uses, strict=True) if use not in forbidden]
    return jnp.asarray([stand(kitchen, cell) for cell in free], jnp.int32)


def stand(kitchen: Kitchen, cell: int) -> int:
    """Return the only cell from which a border cell can be reached."""
    (there,) = (n for n in neighbours(cell) if n in kitchen.floor)
    return there


def _distance(one: Array, other: Array) -> Array:
    """Return the Manhattan distance of cells."""
    (row, column), (other_row, other_column) = row_column(one), row_column(other)
    return jnp.abs(row - other_row) + jnp.abs(column - other_column)


def _stand_at(cell: Array) -> Array:
    """Return the floor cell beside a border cell. A floor cell is returned unchanged."""
    row, column = (jnp.clip(place, 1, 5) for place in row_column(cell))
    return STRIDE * row + column


def ticks_left(
    kitchen: Kitchen, state: State, forbidden: Forbidden = ()
) -> tuple[Array, Array, Array, Array]:
    """Return lower bounds of the ticks until the blend, until the patty is cooked, and until it is delivered.

    The fourth number tells states of the same bound apart: the ticks of all remaining work done one after the other.

    Args:
        kitchen: The kitchen.
        state: The state.
        forbidden: Macros whose boards, ovens and plates are never used.
    """
    cooks, place = state.cook, state.place
    held = in_hand(state)
    boards = _stands(kitchen, kitchen.boards, forbidden, *BOARD_USES)
    blender = jnp.int32(stand(kitchen, kitchen.blender))
    ovens = _stands(kitchen, kitchen.ovens, forbidden, *OVEN_USES)
    star = jnp.int32(stand(kitchen, kitchen.delivery))
    free = held == len(Thing)

    def come(cell: Array) -> Array:
        """Return the ticks until a cook with empty hands can stand there. Full hands cost one more tick."""
        return jnp.min(_distance(cooks, cell) + ~free)

    chains, labour = [], []
    for food in range(FOODS):
        cell, where = _stand_at(state.cell[food]), place[food]
        carried = _is_in_hand(where)
        on_board = (where == Place.BOARD_1) | (where == Place.BOARD_2)
        straight = _distance(cell, blender) + 1
        via = jnp.min(_distance(cell, boards) + _distance(boards, blender)) + 1 + CHOPS + 1 + 1
        chop_left = CHOPS - state.chopped[food]
        chopping = food != Thing.THIRD
        raw = (state.chopped[food] < CHOPS) & chopping
        here = chop_left * chopping + 1 + straight
        work = jnp.where(on_board, here, jnp.where(raw, via, straight))
        work = jnp.where(carried | on_board, work, work + 1)
        first = jnp.where(carried, 0, come(cell))
        inside = (where == Place.BLENDER) | (where == Place.DISH)
        chains.append(jnp.where(inside, 0, work + first))
        labour.append(jnp.where(inside, 0, work))
    gathered = jnp.maximum(jnp.max(jnp.stack(chains)), (sum(labour) + 1) // 2)

    dish, patty = place[Thing.DISH], is_patty(state)
    no_dish = dish == Place.NOWHERE
    walk_in = jnp.where(jnp.all(place[:FOODS] == Place.BLENDER), come(blender), 0)
    blend = jnp.where(no_dish, gathered + walk_in + BLENDS - state.blended, 0)
    cell = _stand_at(state.cell[Thing.DISH])
    in_cook_hand = _is_in_hand(dish)
    to_oven = jnp.min(_distance(jnp.where(no_dish, blender, cell), ovens)) + 1
    fetch = jnp.where(no_dish, 1, jnp.where(in_cook_hand, 0, 1 + come(cell)))
    in_oven = (dish == Place.OVEN_1) | (dish == Place.OVEN_2)
    cooking = COOKS - state.cooked + jnp.where(in_oven, come(cell), 0)
    cooked = jnp.where(patty, 0, blend + jnp.where(in_oven, 0, fetch + to_oven) + cooking)

    home = jnp.min(_distance(ovens, star))
    # From the oven: swap places with the cook who brings the plate, fill the plate, walk, deliver.
    quickest = cooked + jnp.where(patty, 1, 2) + home + 1
    # Or by hand: take the patty, put it onto a plate, take the plate, walk, deliver.
    by_hand = cooked + 3 + home + 1
    plates = [thing for thing, use in zip(PLATES, PLATE_USES, strict=True) if use not in forbidden]
    plate = jnp.min(jnp.stack([_plate_ticks(state, thing, ovens) for thing in plates]))
    from_oven = jnp.maximum(quickest, jnp.minimum(plate + 1 + home + 1, by_hand))
    to_star = _distance(cell, star) + 1
    unplated = to_star + 1 + in_cook_hand
    on_plate = (dish == Place.PLATE_1) | (dish == Place.PLATE_2)
    under = place[jnp.where(dish == Place.PLATE_1, Thing.PLATE_1, Thing.PLATE_2)]
    plated = to_star + jnp.where(_is_in_hand(under), 0, 1 + come(cell))
    outside = jnp.where(on_plate, plated, unplated)
    delivered = jnp.where(on_plate | (patty & ~in_oven), outside, from_oven)
    return blend, cooked, delivered, sum(chains) + delivered + plate


def _plate_ticks(state: State, plate: Thing, ovens: Array) -> Array:
    """Return a lower bound of the ticks until a cook with this plate stands in front of an oven."""
    cell = _stand_at(state.cell[plate])
    come = jnp.min(_distance(state.cook, cell)) + 1
    first = jnp.where(_is_in_hand(state.place[plate]), 0, come)
    return first + jnp.min(_distance(cell, ovens))


def _is_in_hand(place: Array) -> Array:
    """Return whether a place is a cook's hand."""
    return (place >= Place.HAND) & (place < Place.PLATE_1)


def bound(
    kitchen: Kitchen,
    gamma: float,
    state: State,
    time: Array,
    earned: Array,
    forbidden: Forbidden = (),
) -> tuple[Array, Array]:
    """Return an upper bound of the return, and the rank in the beam.

    Args:
        kitchen: The kitchen.
        gamma: The discount.
        state: The state.
        time: Ticks so far.
        earned: The return so far.
        forbidden: Macros that no cook uses.
    """
    blend, cooked, delivered, all_in_turn = ticks_left(kitchen, state, forbidden)
    paid = state.paid

    def worth(amount: float, ticks: Array) -> Array:
        return amount * gamma ** (time + jnp.maximum(ticks, 1) - 1.0)

    chops = jnp.zeros(())
    for food, event in ((0, Event.TOMATO_CHOPPED), (1, Event.LETTUCE_CHOPPED)):
        soon = CHOPS - state.chopped[food]
        chops = chops + jnp.where(paid[event], 0.0, worth(10.0, soon))
    steps = -0.1 * gamma**time * (1 - gamma ** delivered.astype(float)) / (1 - gamma)
    total = (
        earned
        + chops
        + jnp.where(paid[Event.BLENDED], 0.0, worth(10.0, blend))
        + jnp.where(paid[Event.COOKED], 0.0, worth(10.0, cooked))
        + worth(200.0, delivered)
        + steps
    )
    return total, total - WORK_COST * all_in_turn


@dataclass(frozen=True, kw_only=True)
class _Found:
    """The result of a search. `dropped` is the highest bound of a state that the beam dropped."""

    value: float
    macros: np.ndarray
    dropped: float


@jax.jit
def _follow(
    env: Overcooked,
    states: State,
    earned: Array,
    time: Array,
    parent: Array,
    macro: Array,
    gamma: float,
) -> tuple[State, Array]:
    """Return the states after the moves that the beam keeps, and their returns so far."""

    def one(state: State, got: Array, macro: Array) -> tuple[State, Array]:
        tick = env.advance(state, macro, jnp.zeros_like(macro))[0]
        return tick.state, got + tick.reward[0] * gamma**time

    chosen = jax.tree.map(lambda leaf: leaf[parent], states)
    return jax.vmap(one)(chosen, earned[parent], macro)


@partial(jax.jit, static_argnames="forbidden")
def _expand(
    env: Overcooked,
    states: State,
    earned: Array,
    time: Array,
    joint: Array,
    gamma: float,
    forbidden: Forbidden,
) -> tuple[Array, Array, Array, Array]:
    """Return bound, rank, terminal and hash of every state after every joint move, each [W, 25].

    A move that does what is forbidden has the bound −∞.
    """

    def one(state: State, got: Array, macro: Array) -> tuple[Array, Array, Array, Array]:
        tick = env.advance(state, macro, jnp.zeros_like(macro))[0]
        total = got + tick.reward[0] * gamma**time
        score, rank = bound(env.kitchen, gamma, tick.state, time + 1.0, total, forbidden)
        score = jnp.where(tick.terminal, total, score)
        for use in forbidden:
            score = jnp.where(jnp.any(tick.effective_macro == use), -jnp.inf, score)
        return score, rank, tick.terminal, _hash(tick.state)

    by_move = jax.vmap(one, (None, None, 0))
    return jax.vmap(by_move, (0, 0, None))(states, earned, joint)


def search(
    env: Overcooked,
    width: int,
    horizon: int,
    gamma: float = GAMMA,
    forbidden: Forbidden = (),
) -> _Found:
    """Search for the best plan over joint one-tick moves.

    Args:
        env: The environment.
        width: How many states the beam keeps.
        horizon: The longest plan, in ticks.
        gamma: The discount.
        forbidden: Macros whose work no move may do.
    """
    joint = jnp.asarray(JOINT_MOVES)
    states = jax.tree.map(lambda leaf: leaf[None], env.reset(jax.random.key(0)))
    earned = jnp.zeros(1)
    best, dropped, history, ending = -np.inf, -np.inf, [], None
    for time in range(horizon):
        now = jnp.float32(time)
        tables = _expand(env, states, earned, now, joint, gamma, forbidden)
        scores, ranks, over = (np.asarray(table).reshape(-1) for table in tables[:3])
        keys = np.ascontiguousarray(tables[3]).view(np.uint64).reshape(-1)
        if over.any() and scores[over].max() > best:
            at = int(np.flatnonzero(over)[scores[over].argmax()])
            best, ending = float(scores[at]), (time, at)
        order = np.flatnonzero(~over & (scores > best + 1e-4))
        order = order[np.argsort(-scores[order], kind="stable")]
        _, first = np.unique(
            keys[order], return_index=True
        )  # of equal states, the one with the highest return
        order = order[first]
        order = order[np.argsort(-ranks[order], kind="stable")]
        if len(order) > width:
            dropped = max(dropped, float(scores[order[width:]].max()))
        found, order = len(order), order[:width]
        top = scores[order].max() if len(order) else -np.inf
        print(f"tick {time + 1}: {found} states, bound {top:.3f}, best {best:.3f}", flush=True)
        history.append((order // len(JOINT_MOVES), order % len(JOINT_MOVES)))
        if not len(order):
            break
        room = 8 ** int(
            np.ceil(np.log(len(order)) / np.log(8))
        )  # few sizes, so few compiled programs
        room = min(room, max(width, len(order)))
        padded = np.concatenate([order, np.full(room - len(order), order[0])])
        parent, move = padded // len(JOINT_MOVES), padded % len(JOINT_MOVES)
        states, earned = _follow(env, states, earned, now, parent, joint[move], gamma)
    if ending is None:
        raise RuntimeError("no plan found; use a larger --width or --horizon")
    return _Found(value=best, macros=_trace(history, ending), dropped=dropped)


def _trace(history: list[tuple[np.ndarray, np.ndarray]], ending: tuple[int, int]) -> np.ndarray:
    """Return [T, 2], the moves that led to the end of the best plan."""
    time, at = ending
    parent, move = at // len(JOINT_MOVES), at % len(JOINT_MOVES)
    found = [JOINT_MOVES[move]]
    for parents, chosen in reversed(history[:time]):
        found.append(JOINT_MOVES[chosen[parent]])
        parent = parents[parent]
    return np.array(found[::-1])


def _hash(state: State) -> Array:
    """Return [2], a hash of a state without what cooks remember."""
    milestones = state.paid[Event.TOMATO_CHOPPED : Event.COOKED + 1]
    numbers = [*state.cook, *state.cell, *state.place, *state.chopped]
    numbers += [state.blended, state.cooked, *milestones]
    mixed = jnp.asarray([2166136261, 40503], jnp.uint32)
    for number in numbers:
        mixed = (mixed ^ number.astype(jnp.uint32)) * jnp.asarray(
            [16777619, 2654435761], jnp.uint32
        )
        mixed = mixed ^ (mixed >> 15)
    return mixed


def main() -> None:
    """Run the search from the command line and print the plan."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=20_000)
    parser.add_argument("--horizon", type=int, default=70)
    parser.add_argument("--kind", choices=FORBIDDEN, help="obey this kind from start to end")
    chosen = parser.parse_args()
    forbidden = FORBIDDEN.get(chosen.kind, ())
    found = search(Overcooked(), chosen.width, chosen.horizon, forbidden=forbidden)
    letters = {int(macro): letter for letter, macro in LETTERS.items()}
    for cook in (0, 1):
        print("".join(letters[int(m)] for m in found.macros[:, cook]))
    print(
        f"{len(found.macros)} ticks, {found.value:.4f}; highest dropped bound {found.dropped:.4f}"
    )


if __name__ == "__main__":
    main()
