"""Warehouse with dynamics `reference` replays every recorded column to the last bit."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from golden.recordings import Recording, all_of_world, of_world
from mavic.envs.warehouse import State, Warehouse
from mavic.envs.warehouse.macros import FETCH, LOOK, PASS, ROOM
from mavic.envs.warehouse.optimum import OPTIMAL_RETURNS
from mavic.types import Tick

# Plain IEEE arithmetic in the order of the code: no reciprocals for divisions, no fused multiply-add.
EXACT = {"xla_disable_hlo_passes": "algsimp", "xla_backend_optimization_level": 0}


@pytest.fixture(scope="module")
def trace(recording):
    """The recording as [E, T, …], its first row, and which rows exist."""
    flat, steps = recording.arrays, len(recording.arrays["act"])
    rows = {key: recording.by_episode(key) for key, value in flat.items() if len(value) == steps}
    first = {key[:-1]: value for key, value in flat.items() if key.endswith("0")}
    return rows, first, recording.alive


def recorded_env(recording: Recording) -> Warehouse:
    """Return the recorded environment. The shapes of the arrays tell the numbers of people and tools."""
    arrays = recording.arrays
    people, tools = arrays["humans"].shape[1], arrays["turtlebots"].shape[2] - 6
    return Warehouse(dynamics="reference", people=people, tools=tools)


@pytest.fixture(scope="module")
def env(recording) -> Warehouse:
    """The recorded environment."""
    return recorded_env(recording)


@pytest.fixture(scope="module")
def replay(env, trace) -> tuple[Tick, np.ndarray]:
    """The environment's ticks and observations [E, T, …] for the recorded choices."""
    rows, _, _ = trace
    key, no_effect = jax.random.key(0), jnp.zeros(3, jnp.int32)

    def episode(macro, fresh):
        def advance(state, choice):
            tick = env.tick(key, state, choice[0], choice[1], no_effect)
            return tick.state, (tick, env.observe(tick.state))

        return jax.lax.scan(advance, env.reset(key), (macro, fresh))[1]

    with jax.enable_x64(True):
        every = jax.jit(jax.vmap(episode), compiler_options=EXACT)
        made = every(jnp.asarray(rows["cur_mac"], jnp.int32), jnp.asarray(rows["act"] >= 0))
        return jax.tree.map(np.asarray, made)


def last_waypoint(env: Warehouse, state: State) -> np.ndarray:
    return np.where(state.place == env.people + 2, -1, state.place)


def turtlebots(env, rows, tick: Tick) -> np.ndarray:
    state = tick.state
    parts = [last_waypoint(env, state), rows["cur_mac"][..., :2], state.timer, tick.ended[..., :2]]
    return np.concatenate([state.xy, np.stack(parts, -1), state.basket], -1)


def staged_count(state: State) -> np.ndarray:
    return (state.staged >= 0).sum(-1)


def in_pass(rows, state: State) -> np.ndarray:
    own = rows["cur_mac"][..., 2]
    return (own >= PASS) & (own < LOOK) & (state.busy > 0)


def fetch(env, rows, tick: Tick) -> np.ndarray:
    state, count = tick.state, staged_count(tick.state)
    own = rows["cur_mac"][..., 2]
    parts = [own, state.busy, tick.ended[..., 2], in_pass(rows, state), state.doomed]
    parts += [count == 1, count == 2]
    return np.concatenate([np.stack(parts, -1), state.staged, env.copies - state.shelf], -1)


def humans(env, rows, tick: Tick) -> np.ndarray:
    state, last = tick.state, env.tools
    finished = (state.step == last) & (state.left <= 0)
    request = np.minimum(state.step, last - 1)
    parts = [state.step, state.left, request, state.served, finished, state.received.all(-1)]
    return np.stack(parts, -1)


def vec_state(env, rows, tick: Tick) -> np.ndarray:
    state, tools = tick.state, np.arange(env.tools)
    lead = state.busy.shape
    robots = np.concatenate([state.xy, np.broadcast_to([[FETCH]], (*lead, 1, 2))], -2)
    robots = robots / np.array(ROOM)
    counts = (state.staged[..., None] == tools).sum(-2)
    hand = (state.staged[..., :1] == tools) & in_pass(rows, state)[..., None]
    own = rows["cur_mac"][..., 2]
    cost = np.where(own >= LOOK, env.look, np.where(own >= PASS, env.hand_over, 1))
    step = state.step[..., None] == np.arange(env.tools + 1)
    total = np.asarray(env.step_times, float)[state.step]
    progress = np.where(state.left < 0, -1, 1 - state.left / total)
    people = np.concatenate([step, progress[..., None]], -1)
    parts = [robots, state.basket, counts, hand, (state.busy / cost)[..., None], people]
    return np.concatenate([part.reshape(*lead, -1) for part in parts], -1)


def differ(made: np.ndarray, recorded: np.ndarray, exists: np.ndarray) -> list:
    """Return the first few (episode, tick, …) where the two are not equal."""
    assert made.shape == recorded.shape
    exists = exists.reshape(exists.shape + (1,) * (made.ndim - 2))
    return np.argwhere((made != recorded) & exists)[:5].tolist()


@of_world("warehouse")
@pytest.mark.parametrize("column", [turtlebots, fetch, humans, vec_state])
def test_state(env, trace, replay, column):
    rows, _, exists = trace
    assert differ(column(env, rows, replay[0]), rows[column.__name__], exists) == []


@of_world("warehouse")
def test_reward_ends_and_terminal(trace, replay):
    rows, _, exists = trace
    tick, _ = replay
    assert differ(tick.reward, np.repeat(rows["reward"][..., None], 3, -1), exists) == []
    assert differ(tick.ended, rows["mac_done"], exists) == []
    assert differ(tick.terminal, rows["done"], exists) == []


def hold(fresh_rows: np.ndarray, ended: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return what each agent observed when its last macro ended."""
    seen, out = np.broadcast_to(first, fresh_rows[:, 0].shape), np.empty_like(fresh_rows)
    for t in range(fresh_rows.shape[1]):
        gate = ended[:, t].reshape(ended[:, t].shape + (1,) * (seen.ndim - ended[:, t].ndim))
        seen = np.where(gate, fresh_rows[:, t], seen)
        out[:, t] = seen
    return out


def split(observed: np.ndarray, first: dict) -> tuple[np.ndarray, np.ndarray]:
    """Return the Turtlebots' and Fetch's observations […, N, O] without padding."""
    bots, fetch = first["obs_t"].shape[-1], first["obs_f"].shape[-1]
    assert not observed[..., :2, bots:].any() and not observed[..., 2, fetch:].any()
    return observed[..., :2, :bots], observed[..., 2, :fetch]


@of_world("warehouse")
def test_observations(trace, replay):
    rows, first, exists = trace
    _, observed = replay
    ended = rows["mac_done"] == 1
    bots, fetch = split(observed, first)
    carriers = hold(bots, ended[..., :2], first["obs_t"])
    searcher = hold(fetch, ended[..., 2], first["obs_f"])
    assert differ(carriers, rows["obs_t"], exists) == []
    assert differ(searcher, rows["obs_f"], exists) == []


@of_world("warehouse")
def test_first_observations(env, trace):
    _, first, _ = trace
    observed = np.asarray(env.observe(env.reset(jax.random.key(0))))
    bots, fetch = split(observed, first)
    np.testing.assert_array_equal(bots, first["obs_t"])
    np.testing.assert_array_equal(fetch, first["obs_f"])


def test_the_best_recorded_return_is_the_optimum():
    returns = [
        (recording.by_episode("reward") * recording.alive).sum(1).max()
        for recording in all_of_world("warehouse")
        if recorded_env(recording) == Warehouse(dynamics="reference")
    ]
    assert max(returns) == OPTIMAL_RETURNS[None]
