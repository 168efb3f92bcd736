"""Exact plans for Box Pushing: the optimum of the task, and whether obeying pays under a kind.

Without interruptions a macro runs to its end, so the joint decision problem has one node per state
in which somebody is idle, and one edge per choice of those who are; edges are found by ticking the
world itself. Both robots are planned as one mind that sees everything: an upper bound for any
learner.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs.box_pushing.env import CELL, NOWHERE, BoxPushing, Robot, State
from mavic.envs.box_pushing.macros import Macro

Joint = tuple[Macro, Macro]

# Each robot to its near side, then together; `optimum` proves it best at the default rewards.
BEST: tuple[Joint, ...] = (
    (Macro.GO_BIG_SPOT_0, Macro.GO_BIG_SPOT_1),
    (Macro.PUSH, Macro.PUSH),
)

LANES = 1 << 16  # ticks computed at once: one compiled program, whatever the number of edges
END = -1  # the target of an edge after which the episode is over
STATUSES = int(Macro.PUSH) + 2  # idle, or running one of the macros that last
ACCURACY = 1e-4  # of the values


class Graph(NamedTuple):
    """The decision problem; edges are sorted by the node they leave."""

    first: np.ndarray  # [nodes] the node's first edge; node 0 is the start
    target: np.ndarray  # [edges] node, or END
    ticks: np.ndarray  # [edges] until somebody is idle again
    macro: np.ndarray  # [edges, 2] what runs
    chosen: np.ndarray  # [edges, 2] who chose it just now
    fines: np.ndarray  # [edges] robots fined in the last tick: a fine ends its macro
    small: np.ndarray  # [edges] small boxes home at the end
    big: np.ndarray  # [edges] big box home at the end


def best_plan(env: BoxPushing | None = None, gamma: float = 0.995) -> tuple[list[Joint], float]:
    """The best known plan, one joint choice after another, and the discounted return it gets."""
    env = BoxPushing() if env is None else env
    tick, state, value, time = jax.jit(env.tick), env.reset(jax.random.key(0)), 0.0, 0
    for joint in BEST:
        ended = np.ones(2, bool)
        while True:
            out = tick(
                jax.random.key(0), state, jnp.array(joint), jnp.asarray(ended), jnp.zeros(2, int)
            )
            state, ended = out.state, np.asarray(out.ended)
            value += gamma**time * float(out.reward[0])
            time += 1
            if ended.all() or bool(out.terminal):
                break
    return list(BEST), value


def optimum(env: BoxPushing, gamma: float = 0.995) -> float:
    """The largest discounted return any joint policy can have from the start."""
    everything = np.ones((2, len(Macro)), bool)
    return float(_values(env, everything, everything, "add", 0.0, 0.0, gamma)[0])


def best_return(env: BoxPushing, gamma: float, kind: str | None = None) -> float | None:
    """Best return of the uninstructed task, planned for any size; None for an instruction."""
    return None if kind else round(best_plan(env, gamma)[1], 4)


def obedience_gap(
    env: BoxPushing,
    allowed: np.ndarray,
    rule: str,
    penalty: float = -50.0,
    pay: float = 1.0,
    gamma: float = 0.995,
    start: State | None = None,
    weights: tuple[float, float] = (0.5, 0.5),
) -> tuple[float, float]:
    """Values of the best obeying and of the best free joint policy.

    The kind holds for ever from `start`, both robots idle (default: the first state). `allowed` is
    [N, M]; a robot that may do everything is not addressed. Addressed ones are paid by `rule`
    ("add": the task and `penalty` for each forbidden choice; "replace": ±`pay` a tick), the others
    by the task. Where the task ends while everybody who counts is paid by `replace`, what is asked
    goes on from the state before, as in `learn.learner.values`. A value is the sum of the robots'
    own returns by `weights`: their mean, or with (1, 0) what is best for robot 0 if the other plays along.
    """
    allowed = np.asarray(allowed, bool)
    if rule not in ("add", "replace"):
        raise ValueError(f"rule {rule!r} is unknown; allowed: add, replace")
    if not allowed.any(1).all():
        raise ValueError("a robot is allowed nothing")
    free = np.ones_like(allowed)
    obeying, unbound = (
        _values(env, allowed, limit, rule, penalty, pay, gamma, start, weights)[0]
        for limit in (allowed, free)
    )
    return float(obeying), float(unbound)


def states_where_disobeying_pays(
    env: BoxPushing, allowed: np.ndarray, rule: str, penalty: float = -50.0, gamma: float = 0.995
) -> float:
    """Share of the states an instruction can arrive in (it ends all macros, so both robots are idle)
    in which the best free policy earns more than the best obeying one."""
    allowed = np.asarray(allowed, bool)
    obeying, free = (
        _values(env, allowed, limit, rule, penalty, 1.0, gamma)
        for limit in (allowed, np.ones_like(allowed))
    )
    graph = _graph(env.size, _code(env, env.reset(jax.random.key(0))))
    idle = graph.chosen[graph.first].all(1)
    return float((free > obeying + 1e-3)[idle].mean())


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
    """Value of every node when only macros in `limit` are chosen, by value iteration."""
    if env.rules != "paper":
        raise ValueError("only the rules 'paper' are planned: there a state is where things stand")
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
        # the task ends, what is asked does not: it goes on from where the edge began
        edges = np.diff(np.append(graph.first, len(target)))
        target = np.where(over, np.repeat(np.arange(len(graph.first)), edges), target)
    else:
        power = np.where(over, 0.0, power)
    # Any start converges; the value of going on for ever without a fine is soon right.
    values = np.full(len(graph.first), idle / (1 - gamma))
    while True:
        better = np.maximum.reduceat(reward + power * values[target], graph.first)
        change = np.abs(better - values).max()
        values = better
        if change * gamma < ACCURACY * (1 - gamma):
            return values


def _code(env: BoxPushing, state: State) -> int:
    """A state with both robots idle, as a number."""
    return int(_encode(env, _stack(state), np.zeros((1, 2), int))[0])


@functools.lru_cache(maxsize=4)
def _graph(size: int, start: int) -> Graph:
    """All nodes reachable from a code, and their edges."""
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
    joined = [np.concatenate([part[i] for part in parts]) for i in range(len(Graph._fields))]
    edges = Graph(*joined)
    counts = edges.first
    target = np.where(edges.target == END, END, number[edges.target])
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return edges._replace(first=first, target=target.astype(np.int32))


def _expand(env: BoxPushing, nodes: np.ndarray) -> Graph:
    """The edges that leave these nodes (codes); `first` holds how many each has, `target` codes."""
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
    return Graph(
        first=counts, target=target, ticks=ticks, macro=macro.astype(np.int8), chosen=chosen,
        big=happened[:, 0], small=happened[:, 1], fines=happened[:, 2],
    )  # fmt: skip


def _tick(
    env: BoxPushing, state: State, macro: np.ndarray, fresh: np.ndarray
) -> tuple[State, np.ndarray, np.ndarray, np.ndarray]:
    """One tick of any number of lanes: state, who ended, whether it is over, events."""
    count, parts = len(macro), []
    for begin in range(0, count, LANES):
        rows = slice(begin, min(begin + LANES, count))
        lanes = jax.tree.map(lambda leaf, at=rows: _pad(leaf[at]), (state, macro, fresh))
        out = jax.tree.map(np.asarray, _tick_lanes(env, *lanes))
        parts.append(jax.tree.map(lambda leaf, n=rows.stop - begin: leaf[:n], out))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def _pad(rows: np.ndarray) -> np.ndarray:
    return np.concatenate([rows, np.zeros((LANES - len(rows), *rows.shape[1:]), rows.dtype)])


@jax.jit
def _tick_lanes(env: BoxPushing, state: State, macro: jax.Array, fresh: jax.Array) -> tuple:
    def one(state: State, macro: jax.Array, fresh: jax.Array) -> tuple:
        out = env.tick(jax.random.key(0), state, macro, fresh, jnp.zeros(2, jnp.int32))
        return out.state, out.ended, out.terminal, out.events

    return jax.vmap(one)(state, macro, fresh)


def _stack(state: State) -> State:
    """One lane, as numpy."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)


def _shape(env: BoxPushing) -> tuple[int, ...]:
    """The digits of a node's code: two poses, three rows of boxes, two statuses."""
    rows = env.goal - env.box_row
    return (*(env.size, env.size, 4) * 2, rows, rows, rows, STATUSES, STATUSES)


def _codes(env: BoxPushing) -> int:
    return int(np.prod(_shape(env)))


def _encode(env: BoxPushing, state: State, status: np.ndarray) -> np.ndarray:
    """Nodes as numbers; garbage for states after the end."""
    digits: list[Any] = [digit for r in state.robots for digit in (r.x, r.y, r.heading)]
    digits += [row - env.box_row for row in (*state.small, state.big)]
    digits += [status[:, 0], status[:, 1]]
    return np.ravel_multi_index([np.asarray(d, np.int64) for d in digits], _shape(env), mode="clip")


def _decode(env: BoxPushing, codes: np.ndarray) -> tuple[State, np.ndarray]:
    """The states of nodes, and each robot's status: 0 idle, else 1 + the macro it runs."""
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
