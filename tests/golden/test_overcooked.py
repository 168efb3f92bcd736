"""Overcooked under `reference` replays every recorded episode exactly."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mavic.envs.overcooked import Overcooked
from mavic.envs.overcooked.belief import reference_grid
from mavic.envs.overcooked.kitchen import SIZE, STRIDE
from mavic.envs.overcooked.macros import Thing
from mavic.envs.overcooked.state import CHOPS, FOODS, Place, State

RECORDED = {
    "oc_A": ("A", 2),
    "oc_B": ("B", 2),
    "oc_C": ("C", 2),
    "oc_A_3agents": ("A", 3),
    "oc_B_3agents": ("B", 3),
    "oc_A_task3": ("A", 2),
}
CELLS = STRIDE * np.arange(SIZE)[:, None] + np.arange(SIZE)[None]
CODES = np.array([3, 4, 8, 5, 5])  # the reference's grid: tomato, lettuce, onion, plates


def replay(env: Overcooked, choices: jax.Array) -> dict[str, Any]:
    """What one episode looks like after each tick; a choice of -1 lets the macro run on."""

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
    """Rows and columns of cells, on a new last axis."""
    return np.stack([cells // STRIDE, cells % STRIDE], -1)


def recorded_form(env: Overcooked, state: State) -> dict[str, np.ndarray]:
    """The state as the recording shows it."""
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
    """What lies at each place, -1 for nothing."""
    there = state.place[..., None, :] == np.array(places)[:, None]
    return np.where(there.any(-1), there.argmax(-1), -1)


def true_grid(env: Overcooked, state: State) -> np.ndarray:
    """The reference's map: what is found at each cell."""
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
    """Which foods are on which plate; in what order they came there changes nothing."""
    places = np.array([Place.PLATE_1, Place.PLATE_2])[:, None]
    return state.place[..., None, :FOODS] == places


def remembered(env: Overcooked, state: State) -> np.ndarray:
    """[..., B, K, 2] where each cook remembers things, stations and cooks."""
    lead = state.last_seen.shape[:-1]
    stations = np.broadcast_to([*env.kitchen.boards, env.kitchen.delivery], (*lead, 3))
    things, cooks = state.last_seen[..., : Thing.DISH], state.last_seen[..., len(Thing) :]
    return pairs(np.concatenate([things, stations, cooks], -1))


def positions(vector: np.ndarray) -> np.ndarray:
    """The positions in a recorded memory, without the foods' statuses and the task."""
    kept = [k for k in range(vector.shape[-1] - 7) if k not in (2, 5, 8)]
    scaled = np.rint(vector[..., kept] * SIZE).astype(int)
    return scaled.reshape(*scaled.shape[:-1], -1, 2)


@pytest.mark.parametrize("name", RECORDED)
def test_replays_every_episode(name, load_trace, by_episode):
    trace = load_trace(name)
    letter, cooks = RECORDED[name]
    # Doubles, because the recorded rewards are doubles and the comparison is exact.
    with jax.enable_x64(True):
        env = Overcooked(map=letter, task=str(trace["task"]), cooks=cooks, dynamics="reference")
        choices = jnp.asarray(by_episode(trace, "act"), jnp.int32)
        rows = jax.jit(jax.vmap(replay, (None, 0)))(env, choices)
        rows = jax.tree.map(np.asarray, rows)
        grid = jax.jit(jax.vmap(lambda seen, own: reference_grid(env.kitchen, seen, own)))
        tick, state = rows["tick"], rows["tick"].state
        last_seen = state.last_seen.reshape(-1, state.last_seen.shape[-1])
        believed = np.asarray(grid(last_seen, state.cook.reshape(-1)))
        first = jax.tree.map(np.asarray, env.reset(jax.random.key(0)))
        first_seen = np.asarray(env.observe(first))

    alive = np.arange(choices.shape[1])[None] < trace["ep_len"][:, None]
    assert alive.sum() == len(trace["act"])

    def check(key, got, wanted=None):
        wanted = by_episode(trace, key) if wanted is None else wanted
        np.testing.assert_array_equal(got[alive], wanted[alive], err_msg=key)

    check("reward", tick.reward[..., 0])
    assert (tick.reward == tick.reward[..., :1]).all()
    check("done", tick.terminal)
    check("mac_done", tick.ended)
    check("prim", rows["prim"])
    check("cur_mac", rows["cur_mac"])
    for key, got in recorded_form(env, state).items():
        check(key, got)
    check("macro", np.stack([rows["cur_mac"], tick.ended, state.pushes], -1))
    believed = believed.reshape(*state.cook.shape, -1)[..., CELLS]
    check("pomap", believed)
    check("belief_xy", remembered(env, state), positions(by_episode(trace, "belief_xy")))
    plates = by_episode(trace, "plate_contains")
    check("plate_contains", contents(state), (plates[..., None] == np.arange(FOODS)).any(-2))
    # The compiler multiplies by 1/7 where the reference divides by 7: the last bit may differ.
    np.testing.assert_allclose(
        rows["obs"][alive], by_episode(trace, "obs")[alive], rtol=0, atol=3e-16
    )

    np.testing.assert_allclose(first_seen, trace["obs0"], rtol=0, atol=3e-16)
    for key, got in recorded_form(env, first).items():
        np.testing.assert_array_equal(got, trace[f"{key}0"], err_msg=key)
