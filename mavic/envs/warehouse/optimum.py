"""The best plans for Warehouse, a proof that they are best, and the search that finds and confirms them.

`BEST_PLANS[None]` solves the uninstructed task with a return of 533. No plan does better: Fetch needs 6 × (look 6 +
pass 4) = 60 ticks before its last tool leaves the table, and a Turtlebot needs 7 more ticks from the table to a
person, so the return is at most 600 − 67.

`BEST_PLANS[k]` is for "fetch tool k first", given at the start. The first delivery resolves the instruction, and all
agents then decide anew. Returns are those of the task, without Fetch's credit. A team that disobeys can still earn
533. A team in which Fetch looks for no other tool while the instruction holds can earn

    k = 0: 533, by the same bound;
    k = 1, 2: 513, because one delivery is late.

The proof for k = 1, 2 is by contradiction. If no delivery were late, both people would have a tool by tick 27. The
first delivery happens at tick 17 or later, and a tool other than k arrives at least 17 ticks after it. So both first
tools would be k. They would be handed over in the same tick, because after the first delivery nobody asks for k
first. The earliest such tick is 27, when both passes and both drives are done. Fetch can look for the two next tools
only from then on. They arrive at ticks 44 and 54, but a delivery is late from tick 48 on.

With the credits of D13 Fetch gets 533 + 50 = 583 or 513 + 50 = 563 by obeying, and at most 533 + 50 − 25 = 558 by
disobeying. So obeying is best. `search` confirms all of this exhaustively.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs.warehouse import macros
from mavic.envs.warehouse.env import EMPTY, State, Warehouse
from mavic.types import Array

Plan = tuple[tuple[str, ...], ...]  # per agent one macro name per decision; the last is repeated


def _plan(*by_agent: str) -> Plan:
    return tuple(tuple(line.split()) for line in by_agent)


_TO_0_AT_20 = "GET_TOOL GO_TOOL_ROOM GO_TOOL_ROOM GO_TOOL_ROOM GO_TOOL_ROOM GO_WORK_AREA_0"

BEST_PLANS: dict[int | None, Plan] = {
    None: _plan(
        "GET_TOOL GO_WORK_AREA_0 GET_TOOL GO_WORK_AREA_0 GET_TOOL GO_WORK_AREA_0",
        "GET_TOOL GET_TOOL GO_WORK_AREA_1 GET_TOOL GO_WORK_AREA_1 GET_TOOL GO_WORK_AREA_1",
        "LOOK_FOR_0 PASS_TO_0 LOOK_FOR_0 PASS_TO_1 LOOK_FOR_1 PASS_TO_0 LOOK_FOR_1 PASS_TO_1 "
        "LOOK_FOR_2 PASS_TO_0 LOOK_FOR_2 PASS_TO_1 WAIT",
    ),
    # The first delivery ends all macros, so the plan delays it to tick 20, when a pass has just ended.
    0: _plan(
        f"{_TO_0_AT_20} GET_TOOL GO_WORK_AREA_0 GET_TOOL GO_WORK_AREA_0",
        "GET_TOOL GET_TOOL GO_WORK_AREA_1 GET_TOOL GO_WORK_AREA_1 GET_TOOL GO_WORK_AREA_1",
        "LOOK_FOR_0 PASS_TO_0 LOOK_FOR_0 PASS_TO_1 LOOK_FOR_1 LOOK_FOR_1 PASS_TO_0 PASS_TO_1 "
        "LOOK_FOR_2 LOOK_FOR_2 PASS_TO_0 PASS_TO_1 WAIT",
    ),
    1: _plan(
        f"{_TO_0_AT_20} GET_TOOL GET_TOOL GO_WORK_AREA_0 GET_TOOL GO_WORK_AREA_0",
        "GET_TOOL GET_TOOL GET_TOOL GO_WORK_AREA_1 GO_WORK_AREA_1 GET_TOOL GO_WORK_AREA_1",
        "LOOK_FOR_1 PASS_TO_0 LOOK_FOR_1 PASS_TO_1 LOOK_FOR_0 PASS_TO_1 LOOK_FOR_0 PASS_TO_0 "
        "LOOK_FOR_2 PASS_TO_1 LOOK_FOR_2 PASS_TO_0 WAIT",
    ),
    2: _plan(
        f"{_TO_0_AT_20} GET_TOOL GET_TOOL GO_WORK_AREA_0 GET_TOOL GO_WORK_AREA_0",
        "GET_TOOL GET_TOOL GET_TOOL GO_WORK_AREA_1 GET_TOOL GO_WORK_AREA_1",
        "LOOK_FOR_2 PASS_TO_0 LOOK_FOR_2 PASS_TO_1 LOOK_FOR_0 PASS_TO_1 LOOK_FOR_0 PASS_TO_0 "
        "LOOK_FOR_1 PASS_TO_1 LOOK_FOR_1 PASS_TO_0 WAIT",
    ),
}
GAMMA = 1.0  # the return is not discounted
OPTIMAL_RETURNS: dict[int | None, float] = {None: 533.0, 0: 533.0, 1: 513.0, 2: 513.0}


def best_return(env: Warehouse, gamma: float, kind: str | None = None) -> float | None:
    """Return the best return with default options and a kind that holds from the start, or None for other options."""
    if env != Warehouse() or gamma != GAMMA:
        return None
    return OPTIMAL_RETURNS[None if kind is None else int(kind.split("-")[2])]


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The outcome of a plan, tick by tick. States and macros have the form that `Warehouse.scene` takes."""

    states: tuple[State, ...]
    macros: np.ndarray  # [T, N]
    fresh: np.ndarray  # [T, N] the macro was chosen in this tick
    rewards: np.ndarray  # [T]
    events: np.ndarray  # [T, V]
    held: np.ndarray  # [T] the instruction held in this tick
    solved: bool

    @property
    def total(self) -> float:
        """The undiscounted return of the task."""
        return float(self.rewards.sum())


_tick = jax.jit(Warehouse.tick)


def replay(env: Warehouse, plan: Plan, asked: int | None = None) -> Replay:
    """Play a plan to the end of the episode and return what happened.

    With `asked`, the instruction "fetch that tool first" holds until the first delivery. As at every end of an
    instruction, all running macros then end.
    """
    key = jax.random.key(0)
    state, rows = env.reset(key), []
    idle = np.ones(len(plan), bool)
    held = asked is not None
    taken = np.zeros(len(plan), int)
    macro = np.zeros(len(plan), np.int32)
    for _ in range(env.horizon):
        for agent in np.flatnonzero(idle):
            name = plan[agent][min(taken[agent], len(plan[agent]) - 1)]
            macro[agent] = env.macros[agent][name]
        taken += idle
        effect = np.array([0] * macros.TURTLEBOTS + [1 + asked if held else 0], np.int32)  # type: ignore[operator]
        tick = _tick(env, key, state, jnp.asarray(macro), jnp.asarray(idle), jnp.asarray(effect))
        state, events = tick.state, np.asarray(tick.events)
        rows.append((state, macro.copy(), idle, float(tick.reward[0]), events, held))
        resolved = held and events[1 : 1 + env.tools].any()
        idle = np.asarray(tick.ended) | resolved
        held = held and not resolved
        if bool(tick.terminal):
            break
    states, chosen, fresh, rewards, happened, holding = zip(*rows, strict=True)
    return Replay(
        states=states,
        macros=np.stack(chosen),
        fresh=np.stack(fresh),
        rewards=np.array(rewards),
        events=np.stack(happened),
        held=np.array(holding),
        solved=bool(tick.terminal),
    )


def count_disobedience(env: Warehouse, played: Replay, asked: int) -> int:
    """Return how often Fetch began to look for another tool while the instruction held."""
    own = played.macros[:, -1]
    other = (own >= macros.LOOK) & (own != macros.LOOK + asked)
    return int((other & played.fresh[:, -1] & played.held).sum())


@dataclass(frozen=True, kw_only=True)
class Situations:
    """A batch of distinct situations between two ticks, as numpy arrays with a leading axis L."""

    state: State
    macro: np.ndarray  # [L, N] the last macro of each agent
    idle: np.ndarray  # [L, N] that macro has ended
    held: np.ndarray  # [L] the instruction holds
    earned: np.ndarray  # [L] the return so far

    def __getitem__(self, rows: np.ndarray) -> Situations:
        """Return the situations of these rows."""
        return Situations(
            state=jax.tree.map(lambda leaf: leaf[rows], self.state),
            macro=self.macro[rows],
            idle=self.idle[rows],
            held=self.held[rows],
            earned=self.earned[rows],
        )


@dataclass(frozen=True, kw_only=True)
class Found:
    """The outcome of a search: a plan or None. `exhaustive` is false if a beam dropped situations."""

    plan: Plan | None
    total: (
        float  # return of the plan, with the cost of looking for other tools; −inf if there is none
    )
    exhaustive: bool
    ticks_tried: int


def search(
    env: Warehouse,
    floor: float,
    asked: int | None = None,
    elsewhere: float = 0.0,
    width: int | None = None,
    start: State | None = None,
) -> Found:
    """Return the best plan with a return of at least `floor`, by trying every macro at every decision.

    The search is breadth first, one layer per tick, with the environment's own `tick`. It leaves out three things:
    duplicates of a situation with no higher return so far, situations from which `floor` cannot be reached by
    `upper_bound`, and looks that find nothing, which are the same as waiting. Looking for another tool while the
    instruction `asked` holds pays `elsewhere`; −inf forbids it. With `width`, only that many situations of a layer
    are kept, and the result proves nothing. The plan begins in the state `start` (default: the first), where all agents
    are idle, as when an instruction arrives; its return counts from there.
    """
    if not env.follows_paper or env.noise:
        raise ValueError("search needs dynamics 'paper' and noise 0")
    start = env.reset(jax.random.key(0)) if start is None else start
    first = jax.tree.map(lambda leaf: np.asarray(leaf)[None], start)
    agents = len(env.agents)
    node = Situations(
        state=first,
        macro=np.zeros((1, agents), np.int32),
        idle=np.ones((1, agents), bool),
        held=np.array([asked is not None]),
        earned=np.zeros(1),
    )
    layers: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # parent, macro, fresh
    plan, best, exhaustive, tried = None, -np.inf, True, 0
    for _ in range(env.horizon):
        parent, choice = _choices(env, node)
        own = choice[:, -1]
        aside = (own >= macros.LOOK) & node.held[parent]
        aside &= own != macros.LOOK + (0 if asked is None else asked)
        if np.isinf(elsewhere):
            parent, choice, aside = parent[~aside], choice[~aside], aside[~aside]
        fresh = choice >= 0
        chosen = np.where(fresh, choice, node.macro[parent])
        node, terminal = _advance(env, node[parent], chosen, fresh, asked)
        if aside.any():
            node.earned[aside] += elsewhere
        tried += len(parent)
        done = np.flatnonzero(terminal)
        if len(done) and node.earned[done].max() >= floor:
            winner = done[node.earned[done].argmax()]
            best = float(node.earned[winner])
            floor = np.nextafter(best, np.inf)
            row = (
                parent[winner : winner + 1],
                chosen[winner : winner + 1],
                fresh[winner : winner + 1],
            )
            plan = _trace(env, [*layers, row])
        keep = np.flatnonzero(~terminal & (upper_bound(env, node, asked) >= floor))
        if not len(keep):
            break
        keep = keep[_distinct(node[keep])]
        if width is not None and len(keep) > width:
            exhaustive = False
            keep = keep[np.argsort(-upper_bound(env, node[keep], asked), kind="stable")[:width]]
        node = node[keep]
        layers.append((parent[keep], chosen[keep], fresh[keep]))
    return Found(plan=plan, total=best, exhaustive=exhaustive, ticks_tried=tried)


def upper_bound(env: Warehouse, node: Situations, asked: int | None = None) -> np.ndarray:
    """Return [L], an upper bound of each situation's total return.

    It assumes that every missing tool is delivered as soon as possible, and late only where that is unavoidable.
    """
    missing = (~node.state.received).sum((1, 2))
    promised = env.delivery * missing + env.delay * _unavoidably_late(env, node, asked)
    return node.earned + promised + env.tick_cost * _ticks_needed(env, node.state, node)


def _drive_ticks(env: Warehouse, xy: np.ndarray | Array) -> np.ndarray:
    """Return […, P], a lower bound of the ticks from a point to each person. 0.05 covers rounding."""
    people = np.array(macros.WORK_AREAS[: env.people])
    distance = np.linalg.norm(np.asarray(xy)[..., None, :] - people, axis=-1)
    return np.maximum(np.ceil(distance / env.speed - 0.05), 1)


def _hauls(env: Warehouse) -> float:
    """Return a lower bound of the ticks from the table to a person."""
    return float(_drive_ticks(env, np.array(macros.TABLE)).min())


def _under_way(node: Situations) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return bool [L] whether Fetch is looking, bool [L] whether it is passing and will succeed, and its ticks left."""
    busy = np.where(node.idle[:, -1], 0, node.state.busy)
    own, staged = node.macro[:, -1], node.state.staged[:, 0] != EMPTY
    looking = (busy > 0) & (own >= macros.LOOK)
    passing = (busy > 0) & (own >= macros.PASS) & (own < macros.LOOK)
    return looking, passing & ~node.state.doomed & staged, busy


def _ticks_needed(env: Warehouse, state: State, node: Situations) -> np.ndarray:
    """Return [L], a lower bound of the ticks until all tools are delivered.

    It is the maximum of three bounds: Fetch's remaining work, each person's remaining steps, and the drives of tools
    in baskets.
    """
    looking, passing, busy = _under_way(node)
    staged = (state.staged != EMPTY).sum(1)
    work = state.shelf.sum(1) * (env.look + env.hand_over) + staged * env.hand_over
    work = work - np.where(looking, env.look - busy, 0) - np.where(passing, env.hand_over - busy, 0)
    needed = np.where(work > 0, work + _hauls(env), 0)

    lacked = ~state.received
    count = lacked.sum(2)
    later = np.asarray(env.step_times)[..., 1 : env.tools + 1].min()
    in_hand = np.maximum(state.left, 0) + later * (count - 1) + 1
    none_yet = np.where(count == 1, 1, np.maximum(state.left, 1) + later * (count - 2) + 1)
    chain = np.where(count == 0, 0, np.where(state.served, in_hand, none_yet))
    needed = np.maximum(needed, chain.max(1))

    drive = _drive_ticks(env, state.xy)  # [L, B, P]
    nearest = np.where(lacked[:, None], drive[..., None], np.inf).min(2)  # [L, B, K]
    carried = np.where((state.basket > 0) & np.isfinite(nearest), nearest, 0)
    return np.maximum(needed, carried.max((1, 2)))


def _unavoidably_late(env: Warehouse, node: Situations, asked: int | None) -> np.ndarray:
    """Return [L], the number of people who cannot get a tool they accept before their step's time is over."""
    state = node.state
    looking, passing, busy = _under_way(node)
    tools = np.arange(env.tools)
    hand_over = np.where(passing, busy, env.hand_over)[:, None]
    sought = looking[:, None] & (node.macro[:, -1:] == macros.LOOK + tools)
    found = np.where(state.shelf > 0, env.look, np.inf)
    found = np.where(sought, busy[:, None], found) + env.hand_over
    staged = (state.staged[:, :, None] == tools).any(1)
    soonest = np.minimum(found, np.where(staged, hand_over, np.inf)) + _hauls(env)  # [L, K]
    drive = _drive_ticks(env, state.xy)
    carried = np.where((state.basket > 0)[:, :, None], drive[..., None], np.inf).min(1)  # [L, P, K]
    lacked = ~state.received
    taken = lacked & (lacked.cumsum(2) == 1)
    if asked is not None:
        taken = taken | (lacked & node.held[:, None, None] & (tools == asked))
    arrival = np.where(taken, np.minimum(soonest[:, None], carried), np.inf).min(2)
    return (lacked.any(2) & ~state.served & (arrival > state.left)).sum(1)


def _choices(env: Warehouse, node: Situations) -> tuple[np.ndarray, np.ndarray]:
    """Return every joint choice of the idle agents: the situation [R] and the macros [R, N]. −1 lets a macro run on."""
    parents, choices = [], []
    for pattern in itertools.product((False, True), repeat=len(env.agents)):
        matching = np.flatnonzero((node.idle == pattern).all(1))
        menus = [
            range(len(m)) if idle else (-1,) for m, idle in zip(env.macros, pattern, strict=True)
        ]
        menu = np.array(list(itertools.product(*menus)), np.int32)
        parents.append(np.repeat(matching, len(menu)))
        choices.append(np.tile(menu, (len(matching), 1)))
    parent, choice = np.concatenate(parents), np.concatenate(choices)
    tool = np.maximum(choice[:, -1] - macros.LOOK, 0)
    full = node.state.staged[parent, -1] != EMPTY
    idle_look = (choice[:, -1] >= macros.LOOK) & (full | (node.state.shelf[parent, tool] == 0))
    return parent[~idle_look], choice[~idle_look]


_CHUNK = 1 << 14  # ticks computed at once
_ticks = jax.jit(jax.vmap(Warehouse.tick, (None, None, 0, 0, 0, 0)))


def _chunks(size: int) -> Iterator[np.ndarray]:
    """Yield row numbers in chunks of one length, the last one padded by repetition, for one compiled program."""
    for start in range(0, size, _CHUNK):
        yield np.minimum(np.arange(start, start + _CHUNK), size - 1)


def _advance(
    env: Warehouse, start: Situations, macro: np.ndarray, fresh: np.ndarray, asked: int | None
) -> tuple[Situations, np.ndarray]:
    """Run one tick of every situation. Return the situations after it and whether the task is done [L]."""
    size, key = len(macro), jax.random.key(0)
    effect = np.zeros_like(macro)
    effect[:, -1] = np.where(start.held, 0 if asked is None else 1 + asked, 0)
    pieces = []
    for rows in _chunks(size):
        inputs = jax.tree.map(lambda leaf, i=rows: leaf[i], (start.state, macro, fresh, effect))
        pieces.append(jax.tree.map(np.asarray, _ticks(env, key, *inputs)))
    tick = jax.tree.map(lambda *parts: np.concatenate(parts)[:size], *pieces)
    resolved = start.held & tick.events[:, 1 : 1 + env.tools].any(1)
    node = Situations(
        state=tick.state,
        macro=macro,
        idle=tick.ended | resolved[:, None],
        held=start.held & ~resolved,
        earned=start.earned + tick.reward[:, 0],
    )
    return node, tick.terminal


def _distinct(node: Situations) -> np.ndarray:
    """Return the rows of distinct situations. Of equal ones it keeps the one with the highest return so far.

    The comparison leaves out what Turtlebots remember of their last visits, which does not change the dynamics.
    """
    state = node.state
    fine: list[Any] = [np.round(1000 * state.xy), np.round(1000 * state.timer)]
    whole: list[Any] = [
        state.place,
        state.basket,
        state.busy,
        state.doomed,
        state.staged,
        state.shelf,
    ]
    whole += [state.step, state.left, state.served, state.received]
    whole += [np.where(node.idle, -1, node.macro), node.held]
    size = len(node.held)
    parts = [np.asarray(part).reshape(size, -1).astype(np.int16) for part in fine + whole]
    rows = np.ascontiguousarray(np.concatenate(parts, 1))
    order = np.argsort(-node.earned, kind="stable")
    whole_row = rows[order].view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()
    return order[np.unique(whole_row, return_index=True)[1]]


def _trace(env: Warehouse, layers: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Plan:
    """Return the plan that led to the only situation of the last layer."""
    row, rows = 0, []
    for parent, macro, fresh in reversed(layers):
        rows.append((macro[row], fresh[row]))
        row = parent[row]
    rows.reverse()
    return tuple(
        tuple(names(int(macro[agent])).name for macro, fresh in rows if fresh[agent])
        for agent, names in enumerate(env.macros)
    )
