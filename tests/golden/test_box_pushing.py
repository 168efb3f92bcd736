"""Box Pushing under `reference` replays every recorded episode exactly."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mavic.envs.box_pushing import BoxPushing, State
from mavic.envs.box_pushing.macros import Macro
from mavic.types import Tick


def replay(env: BoxPushing, choices: jax.Array) -> tuple[Tick, jax.Array, jax.Array]:
    """Ticks, macro-observations and macros of one episode; a choice of -1 lets the macro run on."""

    def step(carry, choice):
        state, macro, seen = carry
        fresh = choice >= 0
        macro = jnp.where(fresh, choice, macro)
        tick = env.tick(jax.random.key(0), state, macro, fresh, jnp.zeros(2, jnp.int32))
        seen = jnp.where(tick.ended[:, None], env.observe(tick.state), seen)
        return (tick.state, tick.judged, seen), (tick, seen, tick.judged)

    first = env.reset(jax.random.key(0))
    return jax.lax.scan(step, (first, choices[0], env.observe(first)), choices)[1]


def robots(state: State) -> np.ndarray:
    """[…, 2, 4]: x, y, heading, waypoint, as recorded."""
    rows = [
        np.stack([robot.x + 0.5, robot.y + 0.5, robot.heading, robot.waypoint], -1)
        for robot in state.robots
    ]
    return np.stack(rows, -2)


def boxes(env: BoxPushing, state: State) -> np.ndarray:
    """[…, 3, 2]: centres of small box 0, small box 1, big box."""
    first, last, left, _ = env.columns
    centres = ((first + 0.5, state.small[0]), (last + 0.5, state.small[1]), (left + 1.0, state.big))
    rows = [np.stack([np.full(np.shape(y), x), np.asarray(y) + 0.5], -1) for x, y in centres]
    return np.stack(rows, -2)


def vector(env: BoxPushing, state: State) -> np.ndarray:
    """The reference's 18 numbers."""
    parts = []
    for robot in state.robots:
        parts += [(robot.x + 0.5) / env.size, (robot.y + 0.5) / env.size]
        parts += [robot.heading == way for way in range(4)]
    flat = [np.asarray(part, float) for part in parts]
    places = boxes(env, state) / env.size
    return np.concatenate([np.stack(flat, -1), places.reshape(*places.shape[:-2], 6)], -1)


@pytest.mark.parametrize("name", ["bp4", "bp6", "bp8", "bp6_paper_rewards"])
def test_replays_every_episode(name, load_trace, by_episode):
    trace = load_trace(name)
    size, _, big, small, penalty, _ = trace["params"]
    # Doubles, because the recorded rewards are doubles and the comparison is exact.
    with jax.enable_x64(True):
        env = BoxPushing(
            size=int(size), dynamics="reference", big=big, small=small, penalty=penalty
        )
        choices = jnp.asarray(by_episode(trace, "act"), jnp.int32)
        tick, seen, macro = jax.jit(jax.vmap(replay, (None, 0)))(env, choices)
        tick, seen, macro = jax.tree.map(np.asarray, (tick, seen, macro))
        first = jax.tree.map(np.asarray, env.reset(jax.random.key(0)))
        first_seen = np.asarray(env.observe(first))
    state = tick.state
    wanted = {
        "reward": tick.reward[..., 0],
        "done": tick.terminal,
        "mac_done": tick.ended,
        "cur_mac": macro,
        "obs": seen,
        "boxes": boxes(env, state),
        "vec_state": vector(env, state),
    }
    alive = np.arange(choices.shape[1])[None, :] < trace["ep_len"][:, None]
    assert alive.sum() == len(trace["act"])
    for key, got in wanted.items():
        np.testing.assert_array_equal(got[alive], by_episode(trace, key)[alive], err_msg=key)
    recorded = by_episode(trace, "agents")[alive]
    np.testing.assert_array_equal(robots(state)[alive], recorded[..., :4], err_msg="agents")
    pushing = np.broadcast_to(state.pushing[alive][:, None], recorded.shape[:-1])
    np.testing.assert_array_equal(pushing, recorded[..., 4], err_msg="pushing")
    assert (tick.reward[..., 0] == tick.reward[..., 1]).all()

    np.testing.assert_array_equal(first_seen, trace["obs0"])
    np.testing.assert_array_equal(robots(first), trace["agents0"][:, :4])
    np.testing.assert_array_equal(boxes(env, first), trace["boxes0"])
    np.testing.assert_array_equal(vector(env, first), trace["vec_state0"])


def test_recordings_push_the_big_box(load_trace):
    """Otherwise the replay would say nothing about the shared push."""
    trace = load_trace("bp6")
    together = (trace["agents"][..., 4] == 1).all(-1)
    assert together.any() and (trace["cur_mac"][together] == Macro.PUSH).all()
