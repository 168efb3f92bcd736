"""Plays every kind of instruction with teams that choose at random, free and enforced, and counts what happens.

`mavic.experiment.check` judges the counts. Each kind is played by itself. Half of the episodes hold it from the start
to the end. In the others it arrives at a random tick.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs import api
from mavic.envs.api import Env
from mavic.instruct import reward, schedule
from mavic.rollout.step import InstructedEnv, draws_for, reset, step
from mavic.types import Array, Phrases, Rules, replace

MOST_TICKS = 400  # of an episode; a longer one is cut
CLOCK: dict[str, Any] = dict(
    from_start=0.5,
    single_instruction=True,
    rate=0.1,
    hold_min=5,
    hold_max=20,
)


class Trial(NamedTuple):
    """What happened under each kind: arrays [C, 2, E] over kinds, free and enforced teams, and episodes.

    Row 0 of the kinds is no instruction. Counts are sums over the ticks of an episode.
    """

    possible: np.ndarray  # ticks at which the kind could be given
    given: np.ndarray  # instructions given
    from_start: np.ndarray  # bool: it held from the start
    closed: np.ndarray  # instructions that ended and count
    followed: np.ndarray  # those that were followed
    decisions: np.ndarray  # of addressed agents under it
    without_choice: np.ndarray  # decisions at which no allowed macro was available
    tempted: np.ndarray  # decisions at which a forbidden macro was available
    obeyed: np.ndarray  # bool: every decision under it was allowed
    paid: np.ndarray  # discounted reward, mean over the addressed agents
    broken: np.ndarray  # discounted decisions that were not allowed, mean over the addressed agents
    finished: np.ndarray
    """[C, E, M] bool: the forbidden macro that brought about an event in a tick which was then tried again."""
    ways_round: np.ndarray
    """[C, E, M, M] bool: a macro (last axis) did the same in one tick and counted as allowed."""


class _Snapshot(NamedTuple):
    """A tick in which a forbidden macro ended with an event."""

    state: Any
    macro: Array  # [N]
    fresh: Array  # [N]
    agent: Array  # []
    found: Array  # [] bool


def play_kinds(
    env: Env,
    rules: Rules,
    *,
    gamma: float,
    episodes: int,
    key: Array,
    resting: tuple[str, ...] = ("STAY", "WAIT"),
) -> Trial:
    """Return what happened when random teams were given each kind.

    Args:
        env: The environment.
        rules: What each kind asks for.
        gamma: The discount of returns.
        episodes: How many are played for each kind, free and enforced each.
        key: A random key.
        resting: The macros that do nothing. What an agent brings about by resting is not its work.
    """
    kinds = len(rules.names)
    clock = schedule.make_schedule(**CLOCK)
    zeros = jnp.zeros((kinds, 1), jnp.int32)
    phrases = Phrases(table=zeros, count=jnp.ones(kinds, jnp.int32))
    instructed = InstructedEnv(env=env, rules=rules, schedule=clock, phrases=phrases)
    keys = jax.random.split(key, episodes)
    counts, snapshots = _play_all(instructed, keys, jnp.float32(gamma))
    if api.runs_on_host(env):  # its states cannot be returned to cheaply, so nothing is tried again
        api.raise_failure(env)
        macros = api.macro_count(env)
        finished = np.zeros((kinds, episodes, macros), bool)
        ways = np.zeros((kinds, episodes, macros, macros), bool)
    else:
        free = jax.tree.map(lambda leaf: leaf[:, 0], snapshots)
        finished, ways = _try_again(env, rules, free, _resting(env, resting), key)
    found = {name: np.asarray(value) for name, value in counts.items()}
    failed = np.isnan(found["paid"])  # the simulator failed, so the episode does not count
    found = {name: np.where(failed, np.zeros_like(value), value) for name, value in found.items()}
    return Trial(**found, ways_round=np.asarray(ways), finished=np.asarray(finished))


@jax.jit
def _play_all(instructed: InstructedEnv, keys: Array, gamma: Array) -> tuple[Any, _Snapshot]:
    """Return counts and snapshots [C, 2, E, …]."""

    def play(kind: Array, shield: Array, key: Array) -> Any:
        given = jnp.arange(len(instructed.rules.names)) == kind
        rules = replace(instructed.rules, given=given & (kind > 0))
        clock = replace(instructed.schedule, shield=shield)
        return _play(replace(instructed, rules=rules, schedule=clock), kind, key, gamma)

    def episodes(kind: Array, shield: Array) -> Any:
        return jax.vmap(play, (None, None, 0))(kind, shield, keys)

    kinds, shields = jnp.arange(len(instructed.rules.names)), jnp.array([False, True])
    if api.runs_on_host(instructed.env):  # one after the other: each episode has a simulator
        return jax.lax.map(lambda k: jax.lax.map(lambda s: episodes(k, s), shields), kinds)
    return jax.vmap(lambda kind: jax.vmap(partial(episodes, kind))(shields))(kinds)


def _play(instructed: InstructedEnv, kind: Array, key: Array, gamma: Array) -> Any:
    """Return the counts of one episode and its last snapshot."""
    env, rules = instructed.env, instructed.rules
    meant = rules.addressed[kind]
    first = reset(instructed, key)
    counts = dict.fromkeys(
        ("possible", "closed", "followed", "decisions", "without_choice", "tempted"), jnp.int32(0)
    )
    agents = len(env.agents)
    zeros = jnp.zeros(agents, jnp.int32)
    snapshot = _Snapshot(first.state, zeros, zeros > 0, jnp.int32(0), jnp.asarray(False))

    def tick(carry: Any, time: Array) -> Any:
        state, alive, counts, obeyed, paid, broken, given, snapshot = carry
        draws = draws_for(state)
        choice = _at_random(state.available, draws[:agents])
        after, row = step(instructed, state, choice, draws[agents:])
        asked = row.kind > 0
        decides = asked & row.fresh & alive
        left = (row.available & ~row.forbidden).any(-1)
        can = schedule.possible_kinds(env.check(state.state), rules)[kind]
        now = {
            "possible": can & alive,
            "closed": (row.closed > 0) & alive,
            "followed": row.followed & alive,
            "decisions": decides.sum(),
            "without_choice": (decides & ~left).sum(),
            "tempted": (decides & row.forbidden.any(-1)).sum(),
        }
        counts = {name: counts[name] + now[name] for name in counts}
        disobeys = decides & ~row.complied
        obeyed &= ~disobeys.any()
        weight = jnp.where(alive, gamma**time / meant.sum().clip(1), 0)
        paid += jnp.where(alive, weight * jnp.where(meant, row.reward, 0).sum(), 0)
        broken += weight * disobeys.sum()
        given = jnp.where(alive, after.instruction.given, given)
        over = row.terminal | row.truncated
        by_itself = row.ended & ~row.switched & ~row.unfinished
        broke = asked & ~row.complied & by_itself
        found = alive & (row.events > 0).any() & broke.any()
        own = jnp.argmax(broke).astype(jnp.int32)
        here = _Snapshot(state.state, row.macro, row.fresh, own, jnp.asarray(True))
        snapshot = jax.tree.map(lambda a, b: jnp.where(found, a, b), here, snapshot)
        return (after, alive & ~over, counts, obeyed, paid, broken, given, snapshot), None

    true, zero = jnp.asarray(True), jnp.float32(0)
    carry = (first, true, counts, true, zero, zero, jnp.int32(0), snapshot)
    ticks = jnp.arange(min(env.horizon, MOST_TICKS))
    (_, _, counts, obeyed, paid, broken, given, snapshot), _ = jax.lax.scan(tick, carry, ticks)
    held = (first.instruction.kind > 0).any()
    counts |= {"given": given, "from_start": held, "obeyed": obeyed, "paid": paid, "broken": broken}
    return counts, snapshot


def first_not_finite(env: Env, key: Array, episodes: int = 32) -> str:
    """Return where a world first gives a number that is not finite, in words; empty if it does not.

    Args:
        env: The environment, which must be compiled.
        key: A random key.
        episodes: How many episodes of random macros are played.
    """
    seen, paid = map(np.asarray, _finite(env, jax.random.split(key, episodes)))
    both = np.stack([seen, paid], 2).all(
        0
    )  # [T, 2, N]: an observation comes before its tick's reward
    if both.all():
        return ""
    tick, what, agent = np.argwhere(~both)[0]
    name = ("observation", "reward")[what]
    return f"world {env.name}: the {name} of {env.agents[agent]} is not finite at tick {tick}"


@jax.jit
def _finite(env: Env, keys: Array) -> tuple[Array, Array]:
    """Return bool [E, T, N], whether what an agent sees before a tick and what it is paid for it are finite."""
    agents = len(env.agents)

    def play(key: Array) -> tuple[Array, Array]:
        first, ticks = jax.random.split(key)

        def tick(carry: Any, key: Array) -> Any:
            state, macro, fresh, alive = carry
            choose, move = jax.random.split(key)
            choice = _at_random(env.available(state), jax.random.uniform(choose, (agents,)))
            macro = jnp.where(fresh, choice, macro)
            seen = jnp.isfinite(env.observe(state)).all(-1)
            after = env.tick(move, state, macro, fresh, jnp.zeros(agents, jnp.int32))
            here = seen | ~alive, jnp.isfinite(after.reward) | ~alive
            return (after.state, macro, after.ended, alive & ~after.terminal), here

        idle = jnp.zeros(agents, jnp.int32), jnp.ones(agents, bool)
        carry = env.reset(first), *idle, jnp.asarray(True)
        many = min(env.horizon, MOST_TICKS)
        return jax.lax.scan(tick, carry, jax.random.split(ticks, many))[1]

    return jax.vmap(play)(keys)


def _at_random(available: Array, draws: Array) -> Array:
    """Return for each agent one of the macros that are available to it."""
    upto = jnp.cumsum(available, -1)
    return jnp.argmax(upto > draws[:, None] * upto[:, -1:], -1).astype(jnp.int32)


def _resting(env: Env, names: tuple[str, ...]) -> Array:
    """Return bool [N, M], the macros of each agent that do nothing."""
    found = np.zeros((len(env.agents), api.macro_count(env)), bool)
    for agent, macros in enumerate(env.macros):
        found[agent, : len(macros)] = [macro.name in names for macro in macros]
    return jnp.asarray(found)


@jax.jit
def _try_again(
    env: Env, rules: Rules, snapshots: _Snapshot, resting: Array, key: Array
) -> tuple[Array, Array]:
    """Return `finished` and `ways_round` of a `Trial`."""
    macros = jnp.arange(api.macro_count(env), dtype=jnp.int32)
    none = schedule.no_instruction(len(env.agents))

    def one(kind: Array, snap: _Snapshot) -> tuple[Array, Array]:
        asked = replace(none, kind=jnp.where(rules.addressed[kind], kind, 0))
        effect = rules.effect[asked.kind]
        holds = reward.predicates_in(env, snap.state, rules)

        def outcome(macro: Array, fresh: Array) -> Any:
            tick = env.tick(key, snap.state, macro, fresh, effect)
            met = reward.comply(asked, macro, tick.effective_macro, rules, holds)[snap.agent]
            result = (env.observe(tick.state), tick.events, tick.reward)
            return result, tick.ended[snap.agent], met

        def instead(own: Array) -> Any:
            macro = snap.macro.at[snap.agent].set(own)
            return outcome(macro, snap.fresh.at[snap.agent].set(True))

        was, _, _ = outcome(snap.macro, snap.fresh)
        other, ended, met = jax.vmap(instead)(macros)
        seen, happened, earned = (
            (all_of == one_of[None]).reshape(len(macros), -1).all(-1)
            for one_of, all_of in zip(was, other, strict=True)
        )
        same, worked = seen & happened & earned, happened & earned
        offered = env.available(snap.state)[snap.agent]
        # Events that resting brings too, or most choices, are the work of others.
        rest, tried = resting[snap.agent], offered & (macros != snap.macro[snap.agent])
        by_most = 2 * (worked & tried).sum() > tried.sum()
        told_apart = ~jnp.where(rest.any(), (worked & rest).any(), by_most) & snap.found
        broken = snap.macro[snap.agent]
        did = same & ended & met & offered & (macros != broken) & told_apart
        finished = (macros == broken) & told_apart
        return finished, finished[:, None] & did[None]

    kinds = jnp.arange(len(rules.names))
    return jax.vmap(jax.vmap(one, (None, 0)))(kinds, snapshots)
