"""Exhaustive search for the best plans of Warehouse; it confirms `mavic.envs.warehouse.optimum`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs.warehouse import macros
from mavic.envs.warehouse.env import Warehouse
from mavic.envs.warehouse.optimum import Plan
from mavic.envs.warehouse.state import EMPTY, State
from mavic.types import Array


@dataclass(frozen=True, kw_only=True)
class _Replay:
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


def replay(env: Warehouse, plan: Plan, asked: int | None = None) -> _Replay:
    """Play a plan to the end of the episode and return what happened.

    Args:
        env: The environment.
        plan: The macros of each robot.
        asked: The tool of the instruction "fetch that tool first", which holds until the first delivery. All running
            macros then end, as at every end of an instruction. None: no instruction.
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
    return _Replay(
        states=states,
        macros=np.stack(chosen),
        fresh=np.stack(fresh),
        rewards=np.array(rewards),
        events=np.stack(happened),
        held=np.array(holding),
        solved=bool(tick.terminal),
    )


def count_disobedience(env: Warehouse, played: _Replay, asked: int) -> int:
    """Return how often Fetch began to look for another tool while the instruction held."""
    own = played.macros[:, -1]
    other = (own >= macros.LOOK) & (own != macros.LOOK + asked)
    return int((other & played.fresh[:, -1] & played.held).sum())


@dataclass(frozen=True, kw_only=True)
class _Situations:
    """A batch of distinct situations between two ticks, as numpy arrays with a leading axis L."""

    state: State
    macro: np.ndarray  # [L, N] the last macro of each agent
    idle: np.ndarray  # [L, N] that macro has ended
    held: np.ndarray  # [L] the instruction holds
    earned: np.ndarray  # [L] the return so far

    def __getitem__(self, rows: np.ndarray) -> _Situations:
        """Return the situations of these rows."""
        return _Situations(
            state=jax.tree.map(lambda leaf: leaf[rows], self.state),
            macro=self.macro[rows],
            idle=self.idle[rows],
            held=self.held[rows],
            earned=self.earned[rows],
        )


@dataclass(frozen=True, kw_only=True)
class _Found:
    """The result of a search: a plan or None. `exhaustive` is false if a beam dropped situations."""

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
) -> _Found:
    """Return the best plan with a return of at least `floor`, by trying every macro at every decision.

    The search is breadth first, one layer per tick, with the environment's own `tick`. It leaves out three things:
    duplicates of a situation with no higher return so far, situations from which `floor` cannot be reached by
    `_upper_bound`, and looks that cannot find a tool, which are the same as waiting.

    Args:
        env: The environment.
        floor: The least return.
        asked: The tool of the instruction "fetch that tool first", which holds until the first delivery.
        elsewhere: What looking for another tool pays while the instruction holds; −inf forbids it.
        width: How many situations of a layer are kept; None: all. Otherwise the result is not a proof.
        start: The state where the plan begins and its return counts from; by default the first. All agents are idle
            there, as when an instruction arrives.
    """
    if not env.follows_paper or env.noise:
        raise ValueError("search needs dynamics 'paper' and noise 0")
    start = env.reset(jax.random.key(0)) if start is None else start
    first = jax.tree.map(lambda leaf: np.asarray(leaf)[None], start)
    agents = len(env.agents)
    node = _Situations(
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
        keep = np.flatnonzero(~terminal & (_upper_bound(env, node, asked) >= floor))
        if not len(keep):
            break
        keep = keep[_distinct(node[keep])]
        if width is not None and len(keep) > width:
            exhaustive = False
            keep = keep[np.argsort(-_upper_bound(env, node[keep], asked), kind="stable")[:width]]
        node = node[keep]
        layers.append((parent[keep], chosen[keep], fresh[keep]))
    return _Found(plan=plan, total=best, exhaustive=exhaustive, ticks_tried=tried)


def _upper_bound(env: Warehouse, node: _Situations, asked: int | None = None) -> np.ndarray:
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


def _under_way(node: _Situations) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return bool [L] whether Fetch is looking, bool [L] whether it is passing and will succeed, and its ticks left."""
    busy = np.where(node.idle[:, -1], 0, node.state.busy)
    own, staged = node.macro[:, -1], node.state.staged[:, 0] != EMPTY
    looking = (busy > 0) & (own >= macros.LOOK)
    passing = (busy > 0) & (own >= macros.PASS) & (own < macros.LOOK)
    return looking, passing & ~node.state.doomed & staged, busy


def _ticks_needed(env: Warehouse, state: State, node: _Situations) -> np.ndarray:
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


def _unavoidably_late(env: Warehouse, node: _Situations, asked: int | None) -> np.ndarray:
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


def _choices(env: Warehouse, node: _Situations) -> tuple[np.ndarray, np.ndarray]:
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
    env: Warehouse, start: _Situations, macro: np.ndarray, fresh: np.ndarray, asked: int | None
) -> tuple[_Situations, np.ndarray]:
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
    node = _Situations(
        state=tick.state,
        macro=macro,
        idle=tick.ended | resolved[:, None],
        held=start.held & ~resolved,
        earned=start.earned + tick.reward[:, 0],
    )
    return node, tick.terminal


def _distinct(node: _Situations) -> np.ndarray:
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
