"""Exact planning for Box Pushing: the best return of the task, and whether obeying an instruction pays.

Without interruptions a macro runs to its end. The joint decision problem then has one node per state in which some
robot is idle, and one edge per joint choice of the idle robots. Edges are computed with the environment's own `tick`.
One planner that sees the full state controls both robots, so its value is an upper bound for any learner.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs.box_pushing.env import BoxPushing
from mavic.envs.box_pushing.macros import Macro
from mavic.envs.box_pushing.state import CELL, NOWHERE, Robot, State

BATCH = 1 << 16  # ticks computed at once, so that one compiled program serves any number of edges
END = -1  # the target of an edge that ends the episode
STATUSES = int(Macro.PUSH) + 2  # idle, or running one of the macros that take more than one tick
ACCURACY = 1e-4  # of the values that value iteration returns


class _Graph(NamedTuple):
    """The decision problem. Edges are sorted by the node they leave."""

    first: np.ndarray  # [nodes] index of the node's first edge; node 0 is the start
    target: np.ndarray  # [edges] a node, or END
    ticks: np.ndarray  # [edges] ticks until some robot is idle again
    macro: np.ndarray  # [edges, 2] the macros that run
    chosen: np.ndarray  # [edges, 2] whether the robot chose its macro at the node
    fines: np.ndarray  # [edges] robots fined in the last tick (a fine ends the macro)
    small: np.ndarray  # [edges] small boxes in the goal row at the end
    big: np.ndarray  # [edges] whether the big box is in the goal row at the end


def optimal_return(env: BoxPushing, gamma: float = 0.995) -> float:
    """Return the largest discounted return of any joint policy from the first state, by value iteration."""
    everything = np.ones((2, len(Macro)), bool)
    return float(_values(env, everything, everything, "add", 0.0, 0.0, gamma)[0])


def obedience_values(
    env: BoxPushing,
    allowed: np.ndarray,
    rule: str,
    penalty: float = -50.0,
    pay: float = 1.0,
    gamma: float = 0.995,
    start: State | None = None,
    weights: tuple[float, float] = (0.5, 0.5),
) -> tuple[float, float]:
    """Return the values of the best obeying joint policy and of the best unrestricted one.

    If the task ends while every robot with a weight is paid by "replace", the instruction goes on from the state before
    the end, as in `mavic/learn/update.py`.

    Args:
        env: The environment.
        allowed: [N, M] the macros that the instruction allows. A robot that is allowed all macros is not addressed.
        rule: How an addressed robot is paid: "add" pays the task's reward plus `penalty` for each forbidden choice,
            "replace" pays ±`pay` per tick. Other robots are paid by the task.
        penalty: See `rule`.
        pay: See `rule`.
        gamma: The discount.
        start: The state from which the instruction holds forever, with both robots idle; by default the first state.
        weights: A value is the sum of the robots' returns with these weights. With (1, 0) it is the best for robot 0
            if robot 1 cooperates.
    """
    allowed = np.asarray(allowed, bool)
    if rule not in ("add", "replace"):
        raise ValueError(f"rule {rule!r} is unknown; allowed: add, replace")
    if not allowed.any(1).all():
        raise ValueError("a robot is allowed no macro; allow each robot at least one")
    free = np.ones_like(allowed)
    obeying, unbound = (
        _values(env, allowed, limit, rule, penalty, pay, gamma, start, weights)[0]
        for limit in (allowed, free)
    )
    return float(obeying), float(unbound)


def share_where_disobeying_pays(
    env: BoxPushing, allowed: np.ndarray, rule: str, penalty: float = -50.0, gamma: float = 0.995
) -> float:
    """Return the share of states in which the best unrestricted policy earns more than the best obeying one.

    It counts the states in which an instruction can arrive. Its arrival ends all macros, so both robots are idle.
    """
    allowed = np.asarray(allowed, bool)
    obeying, free = (
        _values(env, allowed, limit, rule, penalty, 1.0, gamma)
        for limit in (allowed, np.ones_like(allowed))
    )
    graph = _graph(env.size, _code(env, env.reset(jax.random.key(0))))
    idle = graph.chosen[graph.first].all(1)
    return float((free > obeying + 1e-3)[idle].mean())


def largest_gain(env: BoxPushing, allowed: np.ndarray, gamma: float = 0.995) -> float:
    """Return how much more of the task the best unrestricted policy earns than the best obeying one, in any state.

    These are all states in which some robot decides. Disobeying never gains more, so with the rule "add" and a larger
    penalty obeying is best in all of them.
    """
    everything = np.ones_like(np.asarray(allowed, bool))
    obeying, free = (
        _values(env, everything, limit, "add", 0.0, 0.0, gamma) for limit in (allowed, everything)
    )
    return float((free - obeying).max())


def _values(
    env: BoxPushing,
    allowed: np.ndarray,
    limit: np.ndarray,
    rule: str,
    penalty: float,
    pay: float,
    gamma: float,
    start: State | None = None,
    weights: tuple[float, float] = (0.5, 0.5),
) -> np.ndarray:
    """Return the value of every node if only macros in `limit` [N, M] are chosen, by value iteration."""
    if env.dynamics != "paper":
        raise ValueError(
            f"dynamics {env.dynamics!r} cannot be planned; allowed: paper, whose states hold positions only"
        )
    first = env.reset(jax.random.key(0)) if start is None else start
    graph = _graph(env.size, _code(env, first))
    agents = np.arange(2)
    good = allowed[agents, graph.macro]
    addressed = ~allowed.all(1)
    power = gamma ** graph.ticks.astype(float)
    before_last = gamma ** (graph.ticks - 1.0)
    length = (1 - power) / (1 - gamma)
    last = env.penalty * graph.fines + env.small * graph.small + env.big * graph.big
    task = float(env.step) * length + before_last * np.asarray(last, float)
    if rule == "add":
        broken = graph.chosen & ~good & addressed
        reward = task * sum(weights) + penalty * (broken @ weights)
        idle = float(env.step) * sum(weights)
    else:
        paid = np.where(addressed, np.where(good, pay, -pay) * length[:, None], task[:, None])
        reward = paid @ weights
        idle = float(np.where(addressed, pay, float(env.step)) @ weights)
    follows = (limit[agents, graph.macro] | ~graph.chosen).all(1)
    reward = np.where(follows, reward, -np.inf)
    over, target = graph.target == END, graph.target
    if rule == "replace" and all(addressed | (np.asarray(weights) == 0)):
        # The task ends but the instruction does not: it goes on from the node where the edge began.
        edges = np.diff(np.append(graph.first, len(target)))
        target = np.where(over, np.repeat(np.arange(len(graph.first)), edges), target)
    else:
        power = np.where(over, 0.0, power)
    # Any first guess converges. The value of going on forever without a fine is a good one.
    values = np.full(len(graph.first), idle / (1 - gamma))
    while True:
        better = np.maximum.reduceat(reward + power * values[target], graph.first)
        change = np.abs(better - values).max()
        values = better
        if change * gamma < ACCURACY * (1 - gamma):
            return values


def _code(env: BoxPushing, state: State) -> int:
    """Return the code of a state in which both robots are idle."""
    return int(_encode(env, _stack(state), np.zeros((1, 2), int))[0])


@functools.lru_cache(maxsize=4)
def _graph(size: int, start: int) -> _Graph:
    """Return all nodes that can be reached from the node with code `start`, and their edges."""
    env = BoxPushing(size=size)
    order, parts, frontier = [], [], np.array([start])
    known = np.zeros(_codes(env), bool)
    known[start] = True
    while len(frontier):
        order.append(frontier)
        part = _expand(env, frontier)
        parts.append(part)
        alive = part.target[part.target != END]
        frontier = np.unique(alive[~known[alive]])
        known[frontier] = True
    codes = np.concatenate(order)
    number = np.full(len(known), END, np.int32)
    number[codes] = np.arange(len(codes))
    joined = [np.concatenate([part[i] for part in parts]) for i in range(len(_Graph._fields))]
    edges = _Graph(*joined)
    counts = edges.first
    target = np.where(edges.target == END, END, number[edges.target])
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return edges._replace(first=first, target=target.astype(np.int32))


def _expand(env: BoxPushing, nodes: np.ndarray) -> _Graph:
    """Return the edges that leave the nodes with these codes.

    In this part of a graph, `first` holds the number of edges of each node and `target` holds codes.
    """
    state, status = _decode(env, nodes)
    idle = status == 0
    counts = np.prod(np.where(idle, len(Macro), 1), 1)
    source = np.repeat(np.arange(len(nodes)), counts)
    nth = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
    both = idle[source].all(1)
    choice = np.stack([np.where(both, nth // len(Macro), nth), nth % len(Macro)], 1)
    chosen = idle[source]
    macro = np.where(chosen, choice, status[source] - 1)
    state = jax.tree.map(lambda leaf: leaf[source], state)
    ticks = np.zeros(len(source), np.int16)
    over, ended = np.zeros(len(source), bool), np.zeros((len(source), 2), bool)
    happened = np.zeros((len(source), len(env.events)), np.int8)
    left = np.arange(len(source))
    while len(left):
        after, done, terminal, events = _tick(
            env, jax.tree.map(lambda leaf, at=left: leaf[at], state), macro[left],
            chosen[left] & (ticks[left] == 0)[:, None],
        )  # fmt: skip
        for whole, part in zip(jax.tree.leaves(state), jax.tree.leaves(after), strict=True):
            whole[left] = part
        ticks[left] += 1
        ended[left], over[left], happened[left] = done, terminal, events
        left = left[~(done.any(1) | terminal)]
    target = np.where(over, END, _encode(env, state, np.where(ended, 0, macro + 1)))
    return _Graph(
        first=counts, target=target, ticks=ticks, macro=macro.astype(np.int8), chosen=chosen,
        big=happened[:, 0], small=happened[:, 1], fines=happened[:, 2],
    )  # fmt: skip


def _tick(
    env: BoxPushing, state: State, macro: np.ndarray, fresh: np.ndarray
) -> tuple[State, np.ndarray, np.ndarray, np.ndarray]:
    """Run one tick of any number of states. Return states, ended [·, 2], terminal [·] and events [·, V]."""
    count, parts = len(macro), []
    for begin in range(0, count, BATCH):
        rows = slice(begin, min(begin + BATCH, count))
        batch = jax.tree.map(lambda leaf, at=rows: _pad(leaf[at]), (state, macro, fresh))
        out = jax.tree.map(np.asarray, _tick_batch(env, *batch))
        parts.append(jax.tree.map(lambda leaf, n=rows.stop - begin: leaf[:n], out))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def _pad(rows: np.ndarray) -> np.ndarray:
    return np.concatenate([rows, np.zeros((BATCH - len(rows), *rows.shape[1:]), rows.dtype)])


@jax.jit
def _tick_batch(env: BoxPushing, state: State, macro: jax.Array, fresh: jax.Array) -> tuple:
    def one(state: State, macro: jax.Array, fresh: jax.Array) -> tuple:
        out = env.tick(jax.random.key(0), state, macro, fresh, jnp.zeros(2, jnp.int32))
        return out.state, out.ended, out.terminal, out.events

    return jax.vmap(one)(state, macro, fresh)


def _stack(state: State) -> State:
    """Return a batch of one state, as numpy arrays."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)


def _shape(env: BoxPushing) -> tuple[int, ...]:
    """Return the number of values of each digit of a code: two poses, three rows of boxes, two statuses."""
    rows = env.goal - env.box_row
    return (*(env.size, env.size, 4) * 2, rows, rows, rows, STATUSES, STATUSES)


def _codes(env: BoxPushing) -> int:
    return int(np.prod(_shape(env)))


def _encode(env: BoxPushing, state: State, status: np.ndarray) -> np.ndarray:
    """Return the codes of nodes. States after the end of an episode have no valid code."""
    digits: list[Any] = [digit for r in state.robots for digit in (r.x, r.y, r.heading)]
    digits += [row - env.box_row for row in (*state.small, state.big)]
    digits += [status[:, 0], status[:, 1]]
    return np.ravel_multi_index([np.asarray(d, np.int64) for d in digits], _shape(env), mode="clip")


def _decode(env: BoxPushing, codes: np.ndarray) -> tuple[State, np.ndarray]:
    """Return the states of codes, and each robot's status: 0 if idle, else 1 + the macro it runs."""
    digits: list[Any] = [digit.astype(CELL) for digit in np.unravel_index(codes, _shape(env))]
    nowhere: Any = np.full(len(codes), NOWHERE, CELL)
    robots = tuple(
        Robot(x=digits[i], y=digits[i + 1], heading=digits[i + 2], waypoint=nowhere.copy())
        for i in (0, 3)
    )
    state = State(
        robots=(robots[0], robots[1]),
        small=(digits[6] + env.box_row, digits[7] + env.box_row),
        big=digits[8] + env.box_row,
        pushing=nowhere == 0,
    )
    return state, np.stack([digits[9], digits[10]], 1).astype(int)
