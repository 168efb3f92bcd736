"""The best that can be done: plans, the bound they meet, and the search that finds and proves them.

`BEST[None]` is the uninstructed task: 533. No plan does better, since Fetch needs 6 × (look 6 +
pass 4) ticks before its last tool is on the way and a Turtlebot needs 7 more from table to person:
600 − 67. `BEST[k]` is for "fetch tool k first" holding from the start until the first delivery
resolves it, at which everybody decides anew. The return counted is the task's, without Fetch's
credits. Whoever disobeys can still earn 533. Whoever never looks elsewhere while it holds earns

    k = 0: 533, by the same bound;
    k = 1, 2: 513, one late delivery. Were none late, both people would have a tool by tick 27. The
    first delivery comes at 17 or later, another tool than k then 17 ticks after that; so both tools
    would be k, handed over in the same tick, as after the first nobody asks for k: tick 27, when
    both passes are done and driven. The two next tools, sought from then on, arrive at 44 and 54,
    and the second of these is late at 48.

With D13's credits Fetch gets 533 + 50 = 583 or 513 + 50 = 563; disobeying gets at most
533 + 50 − 25 = 558. So obeying is best. `search` confirms all of it by exhaustion.
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

Plan = tuple[tuple[str, ...], ...]  # macro names by agent, one a decision; the last is repeated


def _plan(*by_agent: str) -> Plan:
    return tuple(tuple(line.split()) for line in by_agent)


_TO_0_AT_20 = "GET_TOOL GO_TOOL_ROOM GO_TOOL_ROOM GO_TOOL_ROOM GO_TOOL_ROOM GO_WORK_AREA_0"

BEST: dict[int | None, Plan] = {
    None: _plan(
        "GET_TOOL GO_WORK_AREA_0 GET_TOOL GO_WORK_AREA_0 GET_TOOL GO_WORK_AREA_0",
        "GET_TOOL GET_TOOL GO_WORK_AREA_1 GET_TOOL GO_WORK_AREA_1 GET_TOOL GO_WORK_AREA_1",
        "LOOK_FOR_0 PASS_TO_0 LOOK_FOR_0 PASS_TO_1 LOOK_FOR_1 PASS_TO_0 LOOK_FOR_1 PASS_TO_1 "
        "LOOK_FOR_2 PASS_TO_0 LOOK_FOR_2 PASS_TO_1 WAIT",
    ),
    # The first delivery interrupts everybody, so it waits for tick 20, when a pass has just ended.
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
GAMMA = 1.0  # nothing is discounted
OPTIMUM: dict[int | None, float] = {None: 533.0, 0: 533.0, 1: 513.0, 2: 513.0}


def best_return(env: Warehouse, gamma: float, kind: str | None = None) -> float | None:
    """Best return of the environment as it comes, by the kind held from the start; None for other options."""
    if env != Warehouse() or gamma != GAMMA:
        return None
    return OPTIMUM[None if kind is None else int(kind.split("-")[2])]


@dataclass(frozen=True, kw_only=True)
class Replay:
    """What came of a plan, tick by tick; states and macros as `Warehouse.scene` takes them."""

    states: tuple[State, ...]
    macros: np.ndarray  # [T, N]
    fresh: np.ndarray  # [T, N]
    rewards: np.ndarray  # [T]
    events: np.ndarray  # [T, V]
    held: np.ndarray  # [T] the instruction governed this tick
    solved: bool

    @property
    def total(self) -> float:
        """The task's undiscounted return."""
        return float(self.rewards.sum())


_tick = jax.jit(Warehouse.tick)


def replay(env: Warehouse, plan: Plan, asked: int | None = None) -> Replay:
    """Play a plan to the end of the episode.

    With `asked` the world hears "fetch that tool first" until the first delivery; then, as at every
    boundary of an instruction, all running macros end.
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


def disobeyed(env: Warehouse, played: Replay, asked: int) -> int:
    """How often Fetch began to look for another tool than the one asked for while it was asked."""
    own = played.macros[:, -1]
    other = (own >= macros.LOOK) & (own != macros.LOOK + asked)
    return int((other & played.fresh[:, -1] & played.held).sum())


@dataclass(frozen=True, kw_only=True)
class Node:
    """Many situations between two ticks, each of them different: numpy arrays, lane first."""

    state: State
    macro: np.ndarray  # [L, N] running
    idle: np.ndarray  # [L, N] its macro has ended
    held: np.ndarray  # [L] the instruction holds
    earned: np.ndarray  # [L]

    def __getitem__(self, lanes: np.ndarray) -> Node:
        return Node(
            state=jax.tree.map(lambda leaf: leaf[lanes], self.state),
            macro=self.macro[lanes],
            idle=self.idle[lanes],
            held=self.held[lanes],
            earned=self.earned[lanes],
        )


@dataclass(frozen=True, kw_only=True)
class Found:
    """The outcome of a search: a plan, or none; `exhaustive` if nothing was left out."""

    plan: Plan | None
    total: float  # of the plan, with what looking elsewhere cost; −inf without one
    exhaustive: bool
    ticks_tried: int


def search(
    env: Warehouse,
    floor: float,
    asked: int | None = None,
    elsewhere: float = 0.0,
    width: int | None = None,
) -> Found:
    """The best plan of at least `floor`, by trying every macro at every decision.

    Breadth first, a tick a layer, through the world's own `tick`. Left out are only: copies of a
    situation with no better return so far; situations from which `ceiling` says `floor` cannot be
    reached; looks that find nothing, which are waits. Looking for another tool while `asked` holds
    pays `elsewhere` (−inf: it is forbidden). With `width`, only that many situations of a layer are
    kept and the result proves nothing.
    """
    if not env.paper or env.noise:
        raise ValueError("search knows the paper's rules without noise alone")
    first = jax.tree.map(lambda leaf: np.asarray(leaf)[None], env.reset(jax.random.key(0)))
    agents = len(env.agents)
    node = Node(
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
        start = node[parent]
        node, terminal = _advance(env, start, chosen, fresh, asked)
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
        keep = np.flatnonzero(~terminal & (ceiling(env, node, asked) >= floor))
        if not len(keep):
            break
        keep = keep[_distinct(node[keep])]
        if width is not None and len(keep) > width:
            exhaustive = False
            keep = keep[np.argsort(-ceiling(env, node[keep], asked), kind="stable")[:width]]
        node = node[keep]
        layers.append((parent[keep], chosen[keep], fresh[keep]))
    return Found(plan=plan, total=best, exhaustive=exhaustive, ticks_tried=tried)


def ceiling(env: Warehouse, node: Node, asked: int | None = None) -> np.ndarray:
    """[L] no continuation earns more in all: what is missing comes, late only if it must, soon."""
    missing = (~node.state.received).sum((1, 2))
    promised = env.delivery * missing + env.delay * _unavoidably_late(env, node, asked)
    return node.earned + promised + env.tick_cost * _ticks_needed(env, node.state, node)


def _drive_ticks(env: Warehouse, xy: np.ndarray | Array) -> np.ndarray:
    """[…, P] at least so many ticks from a point to each person; the slack covers the rounding."""
    people = np.array(macros.WORK_AREAS[: env.people])
    distance = np.linalg.norm(np.asarray(xy)[..., None, :] - people, axis=-1)
    return np.maximum(np.ceil(distance / env.speed - 0.05), 1)


def _hauls(env: Warehouse) -> float:
    """At least so many ticks from the table to a person."""
    return float(_drive_ticks(env, np.array(macros.TABLE)).min())


def _under_way(node: Node) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bool [L]: Fetch is looking, is passing with success in view; and the ticks it still needs."""
    busy = np.where(node.idle[:, -1], 0, node.state.busy)
    own, staged = node.macro[:, -1], node.state.staged[:, 0] != EMPTY
    looking = (busy > 0) & (own >= macros.LOOK)
    passing = (busy > 0) & (own >= macros.PASS) & (own < macros.LOOK)
    return looking, passing & ~node.state.doomed & staged, busy


def _ticks_needed(env: Warehouse, state: State, node: Node) -> np.ndarray:
    """[L] ticks until all is delivered, at least: by Fetch, by each person, by each basket."""
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


def _unavoidably_late(env: Warehouse, node: Node, asked: int | None) -> np.ndarray:
    """[L] how many people cannot get a tool they would take before their step's time is over."""
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


def _choices(env: Warehouse, node: Node) -> tuple[np.ndarray, np.ndarray]:
    """Every joint choice of the idle agents in every lane: lane [R], macro [R, N] (−1: runs on)."""
    lanes, rows = [], []
    for pattern in itertools.product((False, True), repeat=len(env.agents)):
        lane = np.flatnonzero((node.idle == pattern).all(1))
        menus = [
            range(len(m)) if idle else (-1,) for m, idle in zip(env.macros, pattern, strict=True)
        ]
        menu = np.array(list(itertools.product(*menus)), np.int32)
        lanes.append(np.repeat(lane, len(menu)))
        rows.append(np.tile(menu, (len(lane), 1)))
    parent, choice = np.concatenate(lanes), np.concatenate(rows)
    tool = np.maximum(choice[:, -1] - macros.LOOK, 0)
    full = node.state.staged[parent, -1] != EMPTY
    idle_look = (choice[:, -1] >= macros.LOOK) & (full | (node.state.shelf[parent, tool] == 0))
    return parent[~idle_look], choice[~idle_look]


_CHUNK = 1 << 14
_ticks = jax.jit(jax.vmap(Warehouse.tick, (None, None, 0, 0, 0, 0)))


def _chunks(size: int) -> Iterator[np.ndarray]:
    """Lanes in pieces of one length, the last filled up by repeating: one compiled program."""
    for start in range(0, size, _CHUNK):
        yield np.minimum(np.arange(start, start + _CHUNK), size - 1)


def _advance(
    env: Warehouse, start: Node, macro: np.ndarray, fresh: np.ndarray, asked: int | None
) -> tuple[Node, np.ndarray]:
    """One tick of every lane: where it leads, and whether the task is done."""
    size, key = len(macro), jax.random.key(0)
    effect = np.zeros_like(macro)
    effect[:, -1] = np.where(start.held, 0 if asked is None else 1 + asked, 0)
    pieces = []
    for lanes in _chunks(size):
        inputs = jax.tree.map(lambda leaf, i=lanes: leaf[i], (start.state, macro, fresh, effect))
        pieces.append(jax.tree.map(np.asarray, _ticks(env, key, *inputs)))
    tick = jax.tree.map(lambda *parts: np.concatenate(parts)[:size], *pieces)
    resolved = start.held & tick.events[:, 1 : 1 + env.tools].any(1)
    node = Node(
        state=tick.state,
        macro=macro,
        idle=tick.ended | resolved[:, None],
        held=start.held & ~resolved,
        earned=start.earned + tick.reward[:, 0],
    )
    return node, tick.terminal


def _distinct(node: Node) -> np.ndarray:
    """Lanes without copies; of equal situations the one that has earned most.

    What a Turtlebot remembers of its last visit is left out of the comparison: it moves nothing.
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
    """The choices that led to the only lane of the last layer."""
    lane, rows = 0, []
    for parent, macro, fresh in reversed(layers):
        rows.append((macro[lane], fresh[lane]))
        lane = parent[lane]
    rows.reverse()
    return tuple(
        tuple(names(int(macro[agent])).name for macro, fresh in rows if fresh[agent])
        for agent, names in enumerate(env.macros)
    )
