"""Overcooked with dynamics `reference` replays every recorded episode exactly."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from golden.recordings import Recording, of_world
from mavic.envs.overcooked import Overcooked
from mavic.envs.overcooked.grid import SIZE, STRIDE
from mavic.envs.overcooked.macros import Thing
from mavic.envs.overcooked.memory import reference_grid
from mavic.envs.overcooked.state import CHOPS, FOODS, Place, State

CELLS = STRIDE * np.arange(SIZE)[:, None] + np.arange(SIZE)[None]
CODES = np.array([3, 4, 8, 5, 5])  # codes on the reference's grid: tomato, lettuce, onion, plates


def replay(env: Overcooked, choices: jax.Array) -> dict[str, Any]:
    """Return one episode after each tick. A choice of -1 lets the macro run on."""

    def step(carry, choice):
        state, macro, seen = carry
        macro = jnp.where(choice >= 0, choice, macro)
        tick, primitive = env.advance(state, macro, jnp.zeros(env.cooks, jnp.int32))
        state = tick.state
        seen = jnp.where(tick.ended[:, None], env.observe(state), seen)
        rows = {"tick": tick, "prim": primitive, "cur_mac": macro, "obs": seen}
        return (state, macro, seen), rows

    first = env.reset(jax.random.key(0))
    return jax.lax.scan(step, (first, choices[0], env.observe(first)), choices)[1]


def pairs(cells: np.ndarray) -> np.ndarray:
    """Return the rows and columns of cells, on a new last axis."""
    return np.stack([cells // STRIDE, cells % STRIDE], -1)


def recorded_form(env: Overcooked, state: State) -> dict[str, np.ndarray]:
    """Return the state in the form of the recording."""
    kitchen, lead = env.kitchen, state.place.shape[:-1]
    stations = np.broadcast_to([*kitchen.boards, kitchen.delivery], (*lead, 3))
    true = np.concatenate([state.cell[..., : Thing.DISH], stations, state.cook], -1)
    hands = [Place.HAND + k for k in range(env.cooks)]
    return {
        "items": pairs(true),
        "chop": np.concatenate([state.chopped, state.chopped >= CHOPS], -1),
        "hold": holder(state, hands),
        "knife_hold": holder(state, [Place.BOARD_1, Place.BOARD_2]),
        "map": true_grid(env, state),
    }


def holder(state: State, places: list[int]) -> np.ndarray:
    """Return what lies at each place, or -1 for nothing."""
    there = state.place[..., None, :] == np.array(places)[:, None]
    return np.where(there.any(-1), there.argmax(-1), -1)


def true_grid(env: Overcooked, state: State) -> np.ndarray:
    """Return the reference's map: the code of what is found at each cell."""
    kitchen, lead = env.kitchen, state.place.shape[:-1]
    grid = np.ones((*lead, SIZE, SIZE), int)
    grid[..., np.isin(CELLS, kitchen.floor)] = 0
    grid[..., np.isin(CELLS, kitchen.boards)] = 6
    grid[..., kitchen.delivery == CELLS] = 7
    for thing, code in enumerate(CODES):
        found = (state.place == Place.COUNTER)[..., thing, None, None]
        grid[found & (state.cell[..., thing, None, None] == CELLS)] = code
    for cook in range(env.cooks):
        grid[state.cook[..., cook, None, None] == CELLS] = 2
    return grid


def contents(state: State) -> np.ndarray:
    """Return which foods are on which plate. The order in which they came there has no effect."""
    places = np.array([Place.PLATE_1, Place.PLATE_2])[:, None]
    return state.place[..., None, :FOODS] == places


def remembered(env: Overcooked, state: State) -> np.ndarray:
    """Return […, B, K, 2], where each cook remembers things, stations and cooks."""
    lead = state.last_seen.shape[:-1]
    stations = np.broadcast_to([*env.kitchen.boards, env.kitchen.delivery], (*lead, 3))
    things, cooks = state.last_seen[..., : Thing.DISH], state.last_seen[..., len(Thing) :]
    return pairs(np.concatenate([things, stations, cooks], -1))


def positions(vector: np.ndarray) -> np.ndarray:
    """Return the positions in a recorded memory, without the status of foods and the task."""
    kept = [k for k in range(vector.shape[-1] - 7) if k not in (2, 5, 8)]
    scaled = np.rint(vector[..., kept] * SIZE).astype(int)
    return scaled.reshape(*scaled.shape[:-1], -1, 2)


def recorded_env(recording: Recording) -> Overcooked:
    """Return the recorded environment: map from the name (`oc_MAP…`), cooks and task from the arrays."""
    letter = recording.name.split("_")[1]
    env = Overcooked(
        map=letter,
        task=str(recording.arrays["task"]),
        cooks=recording.arrays["act"].shape[1],
        dynamics="reference",
    )
    assert len(recording.arrays["macro_action_names"]) == len(env.macros[0])
    return env


@pytest.fixture
def optimized():
    """These programs run long, so they are compiled with all optimizations."""
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", True)


@pytest.mark.long
@pytest.mark.usefixtures("optimized")
@of_world("overcooked")
def test_replays_every_episode(recording):
    replays(recording, slice(None))


@of_world("overcooked", "oc_A")
def test_replays_some_episodes(recording):
    replays(recording, slice(None, None, max(1, len(recording.arrays["ep_len"]) // 15)))


def replays(recording: Recording, episodes: slice) -> None:
    trace = recording.arrays

    def by_episode(key):
        return recording.by_episode(key)[episodes]

    # Doubles, because the recorded rewards are doubles and the comparison is exact.
    with jax.enable_x64(True):
        env = recorded_env(recording)
        choices = jnp.asarray(by_episode("act"), jnp.int32)
        rows = jax.jit(jax.vmap(replay, (None, 0)))(env, choices)
        rows = jax.tree.map(np.asarray, rows)
        grid = jax.jit(jax.vmap(lambda seen, own: reference_grid(env.kitchen, seen, own)))
        tick, state = rows["tick"], rows["tick"].state
        last_seen = state.last_seen.reshape(-1, state.last_seen.shape[-1])
        believed = np.asarray(grid(last_seen, state.cook.reshape(-1)))
        first = jax.tree.map(np.asarray, env.reset(jax.random.key(0)))
        first_seen = np.asarray(env.observe(first))

    alive = recording.alive[episodes]

    def check(key, got, wanted=None):
        wanted = by_episode(key) if wanted is None else wanted
        np.testing.assert_array_equal(got[alive], wanted[alive], err_msg=key)

    check("reward", tick.reward[..., 0])
    assert (tick.reward == tick.reward[..., :1]).all()
    check("done", tick.terminal)
    check("mac_done", tick.ended)
    check("prim", rows["prim"])
    check("cur_mac", rows["cur_mac"])
    for key, got in recorded_form(env, state).items():
        check(key, got)
    check("macro", np.stack([rows["cur_mac"], tick.ended, state.chop_pushes], -1))
    believed = believed.reshape(*state.cook.shape, -1)[..., CELLS]
    check("pomap", believed)
    check("belief_xy", remembered(env, state), positions(by_episode("belief_xy")))
    plates = by_episode("plate_contains")
    check("plate_contains", contents(state), (plates[..., None] == np.arange(FOODS)).any(-2))
    # The compiler multiplies by 1/7 where the reference divides by 7, so the last bit may differ.
    np.testing.assert_allclose(rows["obs"][alive], by_episode("obs")[alive], rtol=0, atol=3e-16)

    np.testing.assert_allclose(first_seen, trace["obs0"], rtol=0, atol=3e-16)
    for key, got in recorded_form(env, first).items():
        np.testing.assert_array_equal(got, trace[f"{key}0"], err_msg=key)
