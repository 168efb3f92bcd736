"""The `reference` rules replay the recorded Warehouse-A to the last bit, every column of it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mavic.envs.warehouse import State, Warehouse
from mavic.envs.warehouse.macros import FETCH, LOOK, PASS, ROOM
from mavic.types import Tick

# Plain IEEE arithmetic in the order written: no reciprocals for divisions, no fused multiply-add.
EXACT = {"xla_disable_hlo_passes": "algsimp", "xla_backend_optimization_level": 0}
ENV = Warehouse(dynamics="reference")
COPIES = ENV.copies


@pytest.fixture(scope="module")
def trace(load_trace, by_episode):
    """The recording as [E, T, …], and which of those rows exist."""
    flat = load_trace("wtd_a")
    steps = len(flat["act"])
    rows = {key: by_episode(flat, key) for key, value in flat.items() if len(value) == steps}
    first = {key[:-1]: value for key, value in flat.items() if key.endswith("0")}
    exists = np.arange(flat["ep_len"].max()) < flat["ep_len"][:, None]
    return rows, first, exists


@pytest.fixture(scope="module")
def replay(trace) -> tuple[Tick, np.ndarray]:
    """What our world makes of the recorded choices: ticks and observations [E, T, …]."""
    rows, _, _ = trace
    key, no_effect = jax.random.key(0), np.zeros(3, np.int32)

    def episode(macro, fresh):
        def advance(state, choice):
            tick = ENV.tick(key, state, choice[0], choice[1], no_effect)
            return tick.state, (tick, ENV.observe(tick.state))

        return jax.lax.scan(advance, ENV.reset(key), (macro, fresh))[1]

    with jax.enable_x64(True):
        every = jax.jit(jax.vmap(episode), compiler_options=EXACT)
        made = every(jnp.asarray(rows["cur_mac"], jnp.int32), jnp.asarray(rows["act"] >= 0))
        return jax.tree.map(np.asarray, made)


def last_waypoint(state: State) -> np.ndarray:
    return np.where(state.place == ENV.people + 2, -1, state.place)


def turtlebots(rows, tick: Tick) -> np.ndarray:
    state = tick.state
    parts = [last_waypoint(state), rows["cur_mac"][..., :2], state.timer, tick.ended[..., :2]]
    return np.concatenate([state.xy, np.stack(parts, -1), state.basket], -1)


def staged_count(state: State) -> np.ndarray:
    return (state.staged >= 0).sum(-1)


def in_pass(rows, state: State) -> np.ndarray:
    own = rows["cur_mac"][..., 2]
    return (own >= PASS) & (own < LOOK) & (state.busy > 0)


def fetch(rows, tick: Tick) -> np.ndarray:
    state, count = tick.state, staged_count(tick.state)
    own = rows["cur_mac"][..., 2]
    parts = [own, state.busy, tick.ended[..., 2], in_pass(rows, state), state.doomed]
    parts += [count == 1, count == 2]
    return np.concatenate([np.stack(parts, -1), state.staged, COPIES - state.shelf], -1)


def humans(rows, tick: Tick) -> np.ndarray:
    state, last = tick.state, ENV.tools
    finished = (state.step == last) & (state.left <= 0)
    request = np.minimum(state.step, last - 1)
    parts = [state.step, state.left, request, state.served, finished, state.received.all(-1)]
    return np.stack(parts, -1)


def vec_state(rows, tick: Tick) -> np.ndarray:
    state, tools = tick.state, np.arange(ENV.tools)
    lead = state.busy.shape
    robots = np.concatenate([state.xy, np.broadcast_to([[FETCH]], (*lead, 1, 2))], -2)
    robots = robots / np.array(ROOM)
    counts = (state.staged[..., None] == tools).sum(-2)
    hand = (state.staged[..., :1] == tools) & in_pass(rows, state)[..., None]
    own = rows["cur_mac"][..., 2]
    cost = np.where(own >= LOOK, ENV.look, np.where(own >= PASS, ENV.hand_over, 1))
    step = state.step[..., None] == np.arange(ENV.tools + 1)
    total = np.asarray(ENV.step_times, float)[state.step]
    progress = np.where(state.left < 0, -1, 1 - state.left / total)
    people = np.concatenate([step, progress[..., None]], -1)
    parts = [robots, state.basket, counts, hand, (state.busy / cost)[..., None], people]
    return np.concatenate([part.reshape(*lead, -1) for part in parts], -1)


def differ(made: np.ndarray, recorded: np.ndarray, exists: np.ndarray) -> list:
    """The first few (episode, tick, …) where the two are not equal."""
    assert made.shape == recorded.shape
    exists = exists.reshape(exists.shape + (1,) * (made.ndim - 2))
    return np.argwhere((made != recorded) & exists)[:5].tolist()


@pytest.mark.parametrize("column", [turtlebots, fetch, humans, vec_state])
def test_state(trace, replay, column):
    rows, _, exists = trace
    assert differ(column(rows, replay[0]), rows[column.__name__], exists) == []


def test_reward_ends_and_terminal(trace, replay):
    rows, _, exists = trace
    tick, _ = replay
    assert differ(tick.reward, np.repeat(rows["reward"][..., None], 3, -1), exists) == []
    assert differ(tick.ended, rows["mac_done"], exists) == []
    assert differ(tick.terminal, rows["done"], exists) == []


def hold(fresh_rows: np.ndarray, ended: np.ndarray, first: np.ndarray) -> np.ndarray:
    """An agent keeps what it saw when its last macro ended."""
    seen, out = np.broadcast_to(first, fresh_rows[:, 0].shape), np.empty_like(fresh_rows)
    for t in range(fresh_rows.shape[1]):
        gate = ended[:, t].reshape(ended[:, t].shape + (1,) * (seen.ndim - ended[:, t].ndim))
        seen = np.where(gate, fresh_rows[:, t], seen)
        out[:, t] = seen
    return out


def test_observations(trace, replay):
    rows, first, exists = trace
    _, observed = replay
    ended = rows["mac_done"] == 1
    carriers = hold(observed[:, :, :2], ended[..., :2], first["obs_t"])
    searcher = hold(observed[:, :, 2, :5], ended[..., 2], first["obs_f"])
    assert differ(carriers, rows["obs_t"], exists) == []
    assert differ(searcher, rows["obs_f"], exists) == []


def test_first_observations(trace):
    _, first, _ = trace
    observed = np.asarray(ENV.observe(ENV.reset(jax.random.key(0))))
    np.testing.assert_array_equal(observed[:2], first["obs_t"])
    np.testing.assert_array_equal(observed[2, :5], first["obs_f"])


def test_best_recorded_return(trace):
    rows, _, exists = trace
    assert (rows["reward"] * exists).sum(1).max() == 533
