"""The best plan of a small deterministic world, with and without an instruction, by search over macros.

The search goes tick by tick. It keeps every different situation (state, running macros, who decides) once, with the
most that was earned up to it. So it is exact as long as no situation has to be dropped. `most`, a bound on what can
still be earned, ends it early. `searched` makes the field `optimum` of a `World` from it.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs import api
from mavic.envs.api import Env
from mavic.hints import suggest
from mavic.instruct import reward, schedule
from mavic.instruct.pairs import JOINED
from mavic.instruct.reward import rules_of
from mavic.types import Array, Rules, replace

Most = float | Callable[[Any, float], Array]
WIDTH = 50_000
QUICK_WIDTH = 500
CHUNK = 4096  # situations that one compiled call moves on
SLACK = 1e-6  # a bound that is not larger by this cannot beat the best plan
TRIED = 64  # ticks of random play that look for randomness


class Plan(NamedTuple):
    """The best plan that a search found."""

    value: float
    """Its discounted return of the task: the mean over agents."""
    exact: bool
    """Whether no plan is better."""
    bound: float
    """No plan earns more; inf if the search cannot tell."""
    macros: tuple[tuple[str, ...], ...]
    """The macros that run in each tick, one for each agent."""


class _Nodes(NamedTuple):
    """Situations between two ticks, [B, …] each."""

    state: Any
    macro: np.ndarray  # [B, N] running macros
    idle: np.ndarray  # [B, N] bool: the agent decides now
    held: np.ndarray  # [B, K] bool: the instruction still holds
    value: np.ndarray  # [B] what was earned so far

    def at(self, rows: Any) -> _Nodes:
        return _Nodes(*(jax.tree.map(lambda leaf: leaf[rows], part) for part in self))


class _Asked(NamedTuple):
    """The instructions that a plan obeys."""

    rules: Rules
    kinds: np.ndarray  # [K]


class _Layer(NamedTuple):
    """All moves of one tick."""

    source: np.ndarray  # the situation that each move starts from
    macro: np.ndarray  # [·, N]
    left: np.ndarray  # the moves that lead to the situations of the next tick


class _Move(NamedTuple):
    """One tick of many situations, [B, …] each."""

    state: Any
    reward: Any  # mean over agents
    idle: Any  # [B, N]
    held: Any  # [B, K]
    broken: Any  # [B] bool: an instruction was disobeyed
    over: Any  # [B] bool: the task is done


def plan(
    env: Env,
    kind: str | None = None,
    *,
    gamma: float,
    most: Most | None = None,
    width: int = WIDTH,
    rules: Rules | None = None,
) -> Plan | None:
    """Return the best plan of a small world, or the best one that obeys a kind from the start.

    Args:
        env: The environment. Its first state and its ticks must not be random.
        kind: The kind that the plan obeys; None: no instruction; "KIND+KIND": both.
        gamma: The discount.
        most: The most that can still be earned, as a mean over agents: a number for any state, or a function of a state
            and gamma, discounted from that state on. Situations that cannot beat the best plan found are then dropped,
            and the search ends early.
        width: How many situations are kept in a tick. If there are more, those that earned least are dropped, and the
            plan may not be the best.
        rules: What each kind asks for. None: by the instruction file of the world.

    Returns:
        The plan. None for a kind that replaces the task, and if no plan obeys the kind.

    Raises:
        ValueError: the world is random, or the kind is unknown.
    """
    asked = None if kind is None else _asked(env, kind, rules)
    if asked is not None and np.asarray(asked.rules.replaces)[asked.kinds].any():
        return None
    _check_deterministic(env)
    bound = most if callable(most) else _constant(math.inf if most is None else most)
    quick = None
    if most is not None and width > QUICK_WIDTH:  # a plan to beat makes the long search shorter
        quick = _search(env, asked, gamma, bound, QUICK_WIDTH)
        if quick is not None and quick.exact:
            return quick
    return _search(env, asked, gamma, bound, width, quick)


def _constant(most: float) -> Callable[[Any, float], Array]:
    return lambda state, gamma: jnp.float32(most)


def searched(
    *, most: Most | None = None, width: int = WIDTH
) -> Callable[[Env, float, str | None], float | None]:
    """Return a function for the field `optimum` of a world: the return of the best plan, or None if it is not exact.

    Args:
        most: See `plan`.
        width: See `plan`.
    """

    known: dict[tuple[str, str, float, str | None], float | None] = {}

    def optimum(env: Env, gamma: float, kind: str | None = None) -> float | None:
        options = repr(sorted(api.options_of(env).items()))
        key = (options, _content(api.world(env.name).instructions), gamma, kind)
        if key not in known:
            found = plan(env, kind, gamma=gamma, most=most, width=width)
            known[key] = round(found.value, 4) if found is not None and found.exact else None
        return known[key]

    return optimum


def _content(path: Path | None) -> str:
    """Return the hash of an instruction file; empty without one."""
    return "" if path is None else hashlib.sha256(path.read_bytes()).hexdigest()


def _asked(env: Env, kind: str, rules: Rules | None) -> _Asked:
    rules = rules if rules is not None else _rules_of(env, kind)
    for name in kind.split(JOINED):
        if name not in rules.names[1:]:
            raise ValueError(f"kind {name!r} is unknown; {suggest(name, rules.names[1:])}")
    kinds = [rules.names.index(name) for name in kind.split(JOINED)]
    return _Asked(rules=rules, kinds=np.array(kinds, np.int32))


def _rules_of(env: Env, kind: str) -> Rules:
    path = api.world(env.name).instructions if env.name in api.names() else None
    if path is None:
        raise ValueError(
            f"world {env.name!r} has no instruction file, so no plan can obey {kind!r}"
        )
    return rules_of(env, path, extras=True)


def _search(
    env: Env,
    asked: _Asked | None,
    gamma: float,
    most: Callable[[Any, float], Array],
    width: int,
    known: Plan | None = None,
) -> Plan | None:
    """Return the best plan, or `known` if none is better."""
    move = jax.jit(jax.vmap(functools.partial(_move, env, asked)))
    ahead = jax.jit(jax.vmap(lambda state: most(state, gamma)))
    available = jax.jit(jax.vmap(env.available))
    first = jax.tree.map(lambda leaf: np.asarray(leaf)[None], env.reset(jax.random.key(0)))
    agents = len(env.agents)
    nodes = _Nodes(
        state=first,
        macro=np.zeros((1, agents), np.int32),
        idle=np.ones((1, agents), bool),
        held=_given(env, asked)[None],
        value=np.zeros(1),
    )
    best = -math.inf if known is None else known.value
    end: tuple[int, int] | None = None
    dropped = -math.inf
    history: list[_Layer] = []
    for time in range(env.horizon):
        offered = _in_chunks(lambda part: available(part.state), nodes)
        rows, macro = _choices(np.asarray(offered), nodes)
        before = nodes.at(rows)._replace(macro=macro)
        moved = _in_chunks(lambda part: move(*part[:4]), before)
        value = before.value + gamma**time * np.asarray(moved.reward, float)
        kept = np.flatnonzero(~moved.broken)
        last = moved.over | (time + 1 >= env.horizon)
        ended = kept[last[kept]]
        if len(ended) and value[ended].max() > best + SLACK:
            best = float(value[ended].max())
            end = (time, int(ended[value[ended].argmax()]))
        going = kept[~last[kept]]
        nodes, left = _distinct(moved, macro, value, going)
        if len(left):
            future = _in_chunks(lambda part: ahead(part.state), nodes)
            hope = nodes.value + gamma ** (time + 1) * np.asarray(future, float)
            order = np.lexsort((-nodes.value, -hope))  # of equal hopes, what earned most first
            order = order[hope[order] > best + SLACK]
            dropped = max([dropped, *hope[order[width : width + 1]].tolist()])
            nodes, left = nodes.at(order[:width]), left[order[:width]]
        history.append(_Layer(source=rows, macro=macro, left=left))
        if not len(left):
            break
    bound = max(best, dropped)
    exact = bound <= best + SLACK
    if end is not None:
        return Plan(value=best, exact=exact, bound=bound, macros=_retrace(history, end, env))
    return None if known is None else known._replace(exact=exact, bound=bound)


def _move(
    env: Env, asked: _Asked | None, state: Any, macro: Array, fresh: Array, held: Array
) -> _Move:
    """Return one tick of a situation, judged by the instructions that hold in it."""
    zeros = jnp.zeros_like(macro)
    if asked is None:
        tick = env.tick(jax.random.key(0), state, macro, fresh, zeros)
        return _Move(
            tick.state, tick.reward.mean(), tick.ended, held, jnp.asarray(False), tick.terminal
        )
    rules, none = asked.rules, schedule.no_instruction(len(env.agents))
    instructions = [
        replace(none, kind=jnp.where(held[i] & rules.addressed[kind], kind, 0))
        for i, kind in enumerate(asked.kinds)
    ]
    effects = (rules.effect[one.kind] for one in instructions)
    effect = functools.reduce(jnp.maximum, effects, zeros)
    tick = env.tick(jax.random.key(0), state, macro, fresh, effect)
    holds = reward.predicates_in(env, state, rules)
    broken, resolved = jnp.asarray(False), []
    for i, (kind, one) in enumerate(zip(asked.kinds, instructions, strict=True)):
        complied = reward.comply(one, macro, tick.effective_macro, rules, holds)
        sign = jnp.where(held[i], reward.verdict(jnp.asarray(kind), tick.events, rules), 0)
        broken |= (fresh & ~complied).any() | (sign < 0)
        resolved.append(sign != 0)
    ends = jnp.stack(resolved)
    return _Move(
        state=tick.state,
        reward=tick.reward.mean(),
        idle=tick.ended | ends.any(),  # the end of an instruction ends every macro
        held=held & ~ends,
        broken=broken,
        over=tick.terminal,
    )


def _given(env: Env, asked: _Asked | None) -> np.ndarray:
    """Return bool [K], which of the kinds may be given in the first state."""
    if asked is None:
        return np.zeros(0, bool)
    facts = env.check(env.reset(jax.random.key(0)))
    return np.asarray(schedule.possible_kinds(facts, asked.rules, scheduled=False))[asked.kinds]


def _choices(offered: np.ndarray, nodes: _Nodes) -> tuple[np.ndarray, np.ndarray]:
    """Return the joint choices of all situations: the row of each, and its macros [·, N]."""
    running = np.eye(offered.shape[-1], dtype=bool)[nodes.macro]
    open_to = np.where(nodes.idle[..., None], offered, running)
    rows = np.arange(len(open_to))
    macro = np.zeros((len(open_to), 0), np.int32)
    for agent in range(open_to.shape[1]):
        found, own = np.nonzero(open_to[rows, agent])
        rows = rows[found]
        macro = np.concatenate([macro[found], own[:, None].astype(np.int32)], axis=1)
    return rows, macro


def _in_chunks(call: Callable[[_Nodes], Any], nodes: _Nodes) -> Any:
    """Return a batched call over all situations, in parts of a few sizes, so that it is compiled seldom."""
    total, parts = len(nodes.value), []
    for start in range(0, total, CHUNK):
        part = nodes.at(slice(start, start + CHUNK))
        count = len(part.value)
        size = min(CHUNK, max(64, 1 << (count - 1).bit_length()))
        padded = part.at(np.minimum(np.arange(size), count - 1))
        parts.append(jax.tree.map(lambda leaf, n=count: np.asarray(leaf)[:n], call(padded)))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def _distinct(
    moved: _Move, macro: np.ndarray, value: np.ndarray, going: np.ndarray
) -> tuple[_Nodes, np.ndarray]:
    """Return every situation once, with the most that was earned up to it, and the row of `moved` it comes from."""
    order = going[np.argsort(-value[going], kind="stable")]
    running = np.where(moved.idle, -1, macro)
    leaves = [*jax.tree.leaves(moved.state), running, moved.idle, moved.held]
    if not len(order):
        return _nodes(moved, macro, value, order), order
    flat = [leaf[order].reshape(len(order), -1) for leaf in leaves if leaf[:1].size]
    data = [np.ascontiguousarray(leaf).view(np.uint8) for leaf in flat]
    keys = np.ascontiguousarray(np.concatenate(data, axis=1))
    seen = keys.view(np.dtype((np.void, keys.shape[1]))).ravel()
    rows = order[np.sort(np.unique(seen, return_index=True)[1])]
    return _nodes(moved, macro, value, rows), rows


def _nodes(moved: _Move, macro: np.ndarray, value: np.ndarray, rows: np.ndarray) -> _Nodes:
    return _Nodes(
        state=jax.tree.map(lambda leaf: leaf[rows], moved.state),
        macro=macro[rows],
        idle=moved.idle[rows],
        held=moved.held[rows],
        value=value[rows],
    )


def _retrace(
    history: Sequence[_Layer], end: tuple[int, int], env: Env
) -> tuple[tuple[str, ...], ...]:
    """Return the names of the macros that run in each tick of the plan that ends at `end`."""
    time, row = end
    found = []
    while True:
        layer = history[time]
        chosen = zip(env.macros, layer.macro[row], strict=True)
        found.append(tuple(enum(int(number)).name for enum, number in chosen))
        if time == 0:
            return tuple(reversed(found))
        time -= 1
        row = int(history[time].left[layer.source[row]])


def _check_deterministic(env: Env) -> None:
    """Refuse a world whose first state or ticks depend on the key."""
    one, two = (env.reset(jax.random.key(seed)) for seed in (0, 1))
    if not _same(one, two):
        raise ValueError(
            f"the first state of {env.name} is random, so no single plan is best; plan a world without chance"
        )
    tick = jax.jit(env.tick)
    state, agents = one, len(env.agents)
    rng = np.random.default_rng(0)
    idle, macro = np.ones(agents, bool), np.zeros(agents, np.int32)
    zeros = jnp.zeros(agents, jnp.int32)
    for _ in range(TRIED):
        offered = np.asarray(env.available(state))
        drawn = [rng.choice(np.flatnonzero(row)) for row in offered]
        macro = np.where(idle, drawn, macro).astype(np.int32)
        first, second = (tick(jax.random.key(seed), state, macro, idle, zeros) for seed in (0, 1))
        if not _same(first, second):
            raise ValueError(f"a tick of {env.name} is random; plan a world without chance")
        over = bool(first.terminal)
        state, idle = (
            (one, np.ones(agents, bool)) if over else (first.state, np.asarray(first.ended))
        )


def _same(one: Any, two: Any) -> bool:
    return all(
        np.array_equal(np.asarray(a), np.asarray(b))
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    )
