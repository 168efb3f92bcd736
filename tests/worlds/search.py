"""Exact planning for the small worlds of this folder, through their own `tick`.

A node is a state and what each agent runs. An edge is a joint choice of the idle agents; others continue. All nodes
that can be reached are found first, also those after an interruption, which makes every agent idle. Then values are
computed backwards from the horizon, for every node and every number of ticks left. Nothing is cut off: one planner that
sees the whole state and controls all agents earns this, and no team earns more.

Two things make this possible. A world's state is a record of small integers, and its field `left` [N] holds the ticks
that each running macro still needs; a fresh macro overwrites it. A world with chance has `move(luck, …)`, a tick with
known luck, and `lucks()`, all lucks and their probabilities.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs.api import Env, macro_count
from mavic.types import replace

BATCH = 1 << 12  # ticks computed at once
END = -1  # the target of an edge that ends the episode
SAME = 1e-9  # two values that differ by less are equal


class Graph(NamedTuple):
    """The decision problem. Edges are sorted by the node they leave; node 0 is the start."""

    first: np.ndarray  # [nodes] index of the node's first edge
    target: np.ndarray  # [edges, lucks] a node, or END
    reward: np.ndarray  # [edges] expected, discounted over the edge's ticks
    macro: np.ndarray  # [edges, N] the macros that run
    chosen: np.ndarray  # [edges, N] whether the agent chose its macro at the node
    chance: np.ndarray  # [lucks] the probability of each luck
    states: Any  # [nodes] of the environment
    gamma: float
    horizon: int  # the horizon in edges
    stride: int  # ticks of an edge


def explore(env: Env, gamma: float, stride: int = 1) -> Graph:
    """Return all nodes that can be reached from the first state, and their edges.

    Args:
        env: The environment.
        gamma: The discount of a tick.
        stride: The ticks of an edge. Every macro of the world must take a multiple of it, and so must the horizon.
    """
    assert env.horizon % stride == 0 and (stride == 1 or not hasattr(env, "move"))
    first = env.reset(jax.random.key(0))
    idle = np.zeros_like(first.left)
    start, shape = _row(first, idle)
    blank = jax.tree.map(jnp.zeros_like, first)
    kept = 1 - _row(replace(blank, left=idle + 1), idle + 1)[0]  # 0 where an interruption clears
    mixer = np.random.default_rng(0).integers(1, 2**62, len(start), np.int64) | 1
    number = {int(start @ mixer): 0}
    rows, frontier, parts = [start[None]], start[None], []
    while len(frontier):
        part = _expand(env, shape, frontier, gamma, stride)
        found = part["target"][~part["over"]]
        found = np.concatenate([found, found * kept])
        codes, at = np.unique(found @ mixer, return_index=True)
        new = [n for n, code in enumerate(codes.tolist()) if code not in number]
        for n in new:
            number[int(codes[n])] = len(number)
        frontier = found[at[new]]
        rows.append(frontier)
        part["target"] = np.where(part["over"], END, _numbers(part["target"] @ mixer, number))
        parts.append(part)
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    nodes = np.concatenate(rows)
    assert len(np.unique(nodes, axis=0)) == len(nodes) == len(number)  # no two share a code
    counts = joined["counts"]
    return Graph(
        first=np.cumsum(counts) - counts,
        target=joined["target"].astype(np.int32),
        reward=joined["reward"],
        macro=joined["macro"].astype(np.int8),
        chosen=joined["chosen"],
        chance=np.asarray(_lucks(env)[1], float),
        states=_state(shape, nodes),
        gamma=gamma,
        horizon=env.horizon // stride,
        stride=stride,
    )


def values(graph: Graph, edges: np.ndarray | None = None) -> list[np.ndarray]:
    """Return the best value of every node for 0, 1, … edges left, until it no longer changes.

    Args:
        graph: The decision problem.
        edges: [edges] those that may be taken; None: all.
    """
    found = [np.zeros(len(graph.first))]
    while len(found) < 2 or np.abs(found[-1] - found[-2]).max() > SAME:
        found.append(np.maximum.reduceat(_worth(graph, edges, found[-1]), graph.first))
    return found


def obeying(graph: Graph, allowed: np.ndarray) -> np.ndarray:
    """Return [edges], whether every macro that is chosen is in `allowed` [N, M]."""
    agents = np.arange(graph.macro.shape[1])
    return (allowed[agents, graph.macro] | ~graph.chosen).all(1)


def choosing(graph: Graph, macro: np.ndarray) -> np.ndarray:
    """Return [edges], whether the macros that are chosen are those that `macro` [nodes, N] names."""
    counts = np.diff(np.append(graph.first, len(graph.reward)))
    return ((graph.macro == np.repeat(macro, counts, 0)) | ~graph.chosen).all(1)


def best_return(graph: Graph, found: list[np.ndarray]) -> float:
    """Return the value of the first node over the environment's horizon, from all `values`."""
    return float(_at(found, graph.horizon)[0])


def largest_gain(unbound: list[np.ndarray], bound: list[np.ndarray]) -> float:
    """Return how much more of the task the best unbound plan earns than the best obeying one, at most in any node.

    The horizon only cuts episodes, so learners value states as if it were far away, and so does this. Under the rule
    "add", an agent that is fined more than this for a forbidden choice never gains by it, whatever its teammates do:
    after the choice the team earns at most the unbound value, and the fine is more than the difference.

    Args:
        unbound: The `values` by all edges.
        bound: The `values` by the edges that obey.
    """
    return float((unbound[-1] - bound[-1]).max())


def best_plan(
    graph: Graph, found: list[np.ndarray], edges: np.ndarray | None = None
) -> tuple[tuple[int, ...], ...]:
    """Return the macros that each agent chooses, in order, in a best plan of a world without chance.

    Args:
        graph: The decision problem.
        found: The `values` by these edges.
        edges: [edges] those that may be taken; None: all.
    """
    assert len(graph.chance) == 1
    plan: tuple[list[int], ...] = tuple([] for _ in range(graph.macro.shape[1]))
    node, ends = 0, np.append(graph.first[1:], len(graph.reward))
    for left in range(graph.horizon - 1, -1, -1):
        begin, end = graph.first[node], ends[node]
        worth = _worth(graph, edges, _at(found, left), slice(begin, end))
        edge = begin + int(np.argmax(worth > worth.max() - SAME))
        for agent in np.flatnonzero(graph.chosen[edge]):
            plan[agent].append(int(graph.macro[edge, agent]))
        node = int(graph.target[edge, 0])
        if node == END:
            break
    return tuple(map(tuple, plan))


Choose = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


def at_random(key: jax.Array, observation: jax.Array, available: jax.Array) -> jax.Array:
    """Return one of the `available` macros [N, M] for each agent."""
    del observation
    return jax.random.categorical(key, jnp.where(available, 0.0, -jnp.inf)).astype(jnp.int32)


@functools.partial(jax.jit, static_argnames=("gamma", "choose"))
def play(
    env: Env, key: jax.Array, plans: jax.Array, gamma: float, choose: Choose = at_random
) -> dict[str, jax.Array]:
    """Play one episode for each plan in the environment itself.

    Args:
        env: The environment.
        key: A random key.
        plans: [E, D, N] the macros that each agent chooses in order; -1: what `choose` says. After its last macro an
            agent waits (macro 0).
        gamma: The discount of a tick.
        choose: Returns macros [N] for a key, observations [N, O] and the available macros [N, M].

    Returns:
        By name, [E] each: the discounted "value", whether the task was "solved", and the episode's "ticks".
    """
    agents = jnp.arange(len(env.agents))
    padded = jnp.pad(plans, ((0, 0), (0, 1), (0, 0)))

    def episode(key: jax.Array, plan: jax.Array) -> dict[str, jax.Array]:
        def step(carry: Any, key: jax.Array) -> Any:
            state, macro, idle, made, weight = carry
            key_macro, key_world = jax.random.split(key)
            drawn = choose(key_macro, env.observe(state), env.available(state))
            planned = plan[jnp.minimum(made, len(plan) - 1), agents]
            macro = jnp.where(idle, jnp.where(planned < 0, drawn, planned), macro)
            tick = env.tick(key_world, state, macro, idle, jnp.zeros_like(macro))
            after = weight * gamma * ~tick.terminal
            out = (weight * tick.reward.mean(), (weight > 0) & (tick.events[0] > 0), weight > 0)
            return (tick.state, macro, tick.ended, made + idle, after), out

        key_reset, key_ticks = jax.random.split(key)
        first = (env.reset(key_reset), agents * 0, agents >= 0, agents * 0, jnp.float32(1))
        keys = jax.random.split(key_ticks, env.horizon)
        rewards, solved, alive = jax.lax.scan(step, first, keys)[1]
        return {"value": rewards.sum(), "solved": solved.any(), "ticks": alive.sum()}

    return jax.vmap(episode)(jax.random.split(key, len(plans)), padded)


def _at(found: list[np.ndarray], left: int) -> np.ndarray:
    """Return the values for `left` edges. The last ones hold for any larger number."""
    return found[min(left, len(found) - 1)]


def _worth(
    graph: Graph, edges: np.ndarray | None, after: np.ndarray, part: slice = slice(None)
) -> np.ndarray:
    """Return the value of a part of the edges if `after` [nodes] are the values of the nodes that they lead to."""
    worth, discount = graph.reward[part].copy(), graph.gamma**graph.stride
    for luck, chance in enumerate(graph.chance):
        target = graph.target[part, luck]
        worth += chance * discount * np.where(target == END, 0.0, after[target])
    return worth if edges is None else np.where(edges[part], worth, -np.inf)


def _lucks(env: Env) -> tuple[np.ndarray, np.ndarray]:
    """Return the lucks of a tick and their probabilities. A world without chance has one."""
    return env.lucks() if hasattr(env, "lucks") else (np.zeros(1, int), np.ones(1))


def _row(state: Any, running: np.ndarray) -> tuple[np.ndarray, Any]:
    """Return a node as one row of integers, and what `_state` needs. `running` is 0 if idle, else 1 + the macro."""
    leaves, shape = jax.tree.flatten(state)
    row = np.concatenate([np.ravel(leaf) for leaf in (*leaves, running)]).astype(np.int64)
    return row, (shape, tuple(leaf.shape for leaf in leaves))


def _state(shape: Any, rows: Any) -> Any:
    """Return the states [·] of rows [·, columns]."""
    tree, sizes = shape
    leaves, begin = [], 0
    for size in sizes:
        end = begin + int(np.prod(size))
        leaves.append(rows[:, begin:end].reshape(-1, *size).astype(jnp.int32))
        begin = end
    return jax.tree.unflatten(tree, leaves)


def _rows(state: Any, running: jax.Array) -> jax.Array:
    """Return rows for a batch of states. Idle agents need no ticks."""
    state = replace(state, left=jnp.where(running == 0, 0, state.left))
    parts = [*jax.tree.leaves(state), running]
    return jnp.concatenate([leaf.reshape(len(running), -1) for leaf in parts], 1)


def _numbers(codes: np.ndarray, number: dict[int, int]) -> np.ndarray:
    unique, back = np.unique(codes, return_inverse=True)
    found = np.array([number.get(code, END) for code in unique.tolist()])
    return found[back].reshape(codes.shape)


def _expand(env: Env, shape: Any, rows: np.ndarray, gamma: float, stride: int) -> dict[str, Any]:
    """Return the edges that leave these nodes. `counts` is by node, and `target` holds rows [edges, lucks, columns]."""
    agents, macros = len(env.agents), macro_count(env)
    running = rows[:, -agents:]
    found = [np.asarray(_offered(env, *part, shape=shape))[:size] for size, part in _batches(rows)]
    offered = np.concatenate(found)
    offered = np.where(
        running[:, :, None] == 0, offered, np.arange(macros) == running[:, :, None] - 1
    )
    sizes = offered.sum(2)
    listed = np.argsort(~offered, axis=2, kind="stable")  # those on offer come first
    counts = sizes.prod(1)
    source = np.repeat(np.arange(len(rows)), counts)
    nth = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
    macro = np.zeros((len(source), agents), np.int32)
    for agent in range(agents):
        macro[:, agent] = listed[source, agent, nth % sizes[source, agent]]
        nth = nth // sizes[source, agent]
    chosen = running[source] == 0
    lucks, chance = _lucks(env)
    target, reward, over = [], [], []
    for size, inputs in _batches(rows[source], macro, chosen):
        out = _run(env, lucks, *inputs, shape=shape, gamma=gamma, stride=stride)
        after, paid, terminal, early = (np.asarray(one)[:size] for one in out)
        assert not early.any(), "a macro took no multiple of the stride"
        target.append(after), reward.append(paid.astype(float) @ chance), over.append(terminal)
    return {
        "counts": counts, "macro": macro, "chosen": chosen, "over": np.concatenate(over),
        "target": np.concatenate(target).astype(np.int64), "reward": np.concatenate(reward),
    }  # fmt: skip


def _batches(*rows: np.ndarray) -> Iterator[tuple[int, list[np.ndarray]]]:
    """Yield the arrays in parts of BATCH rows, the last one padded, and how many rows of a part count."""
    for begin in range(0, len(rows[0]), BATCH):
        parts = [one[begin : begin + BATCH] for one in rows]
        size = len(parts[0])
        yield size, [np.pad(one, ((0, BATCH - size), (0, 0)), mode="edge") for one in parts]


@functools.partial(jax.jit, static_argnames="shape")
def _offered(env: Env, rows: jax.Array, *, shape: Any) -> jax.Array:
    """Return [·, N, M], the macros that the environment offers."""
    return jax.vmap(env.available)(_state(shape, rows))


@functools.partial(jax.jit, static_argnames=("shape", "gamma", "stride"))
def _run(
    env: Env, lucks: jax.Array, rows: jax.Array, macro: jax.Array, fresh: jax.Array, *,
    shape: Any, gamma: float, stride: int,
) -> tuple:  # fmt: skip
    """Return rows [·, lucks, columns], rewards, terminal, and whether a macro ended before the last tick [·, lucks]."""

    def tick(luck: jax.Array, state: Any, macro: jax.Array, fresh: jax.Array) -> Any:
        if hasattr(env, "move"):
            return env.move(luck, state, macro, fresh)
        return env.tick(jax.random.key(0), state, macro, fresh, jnp.zeros_like(macro))

    def one(luck: jax.Array, state: Any, macro: jax.Array, fresh: jax.Array) -> tuple:
        paid, early = jnp.float32(0), jnp.asarray(False)
        for n in range(stride):
            out = tick(luck, state, macro, fresh & (n == 0))
            state, paid = out.state, paid + gamma**n * out.reward.mean()
            early |= out.ended.any() & (n < stride - 1)
        return state, jnp.where(out.ended, 0, macro + 1), paid, out.terminal, early

    many = jax.vmap(jax.vmap(one, (0, None, None, None)), (None, 0, 0, 0))
    state, running, paid, terminal, early = many(lucks, _state(shape, rows), macro, fresh)
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (state, running))
    return _rows(*flat).reshape(*running.shape[:2], -1), paid, terminal, early
