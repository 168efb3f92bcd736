"""Box Pushing with dynamics `reference` replays every recorded episode exactly."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from golden.recordings import Recording, all_of_world, of_world
from mavic.envs.box_pushing import BoxPushing, State
from mavic.envs.box_pushing.macros import Macro
from mavic.types import Tick


def replay(env: BoxPushing, choices: jax.Array) -> tuple[Tick, jax.Array, jax.Array]:
    """Return the ticks, macro-observations and macros of one episode. A choice of -1 lets the macro run on."""

    def step(carry, choice):
        state, macro, seen = carry
        fresh = choice >= 0
        macro = jnp.where(fresh, choice, macro)
        tick = env.tick(jax.random.key(0), state, macro, fresh, jnp.zeros(2, jnp.int32))
        seen = jnp.where(tick.ended[:, None], env.observe(tick.state), seen)
        return (tick.state, tick.effective_macro, seen), (tick, seen, tick.effective_macro)

    first = env.reset(jax.random.key(0))
    return jax.lax.scan(step, (first, choices[0], env.observe(first)), choices)[1]


def robots(state: State) -> np.ndarray:
    """Return […, 2, 4]: x, y, heading and waypoint in the recorded units."""
    rows = [
        np.stack([robot.x + 0.5, robot.y + 0.5, robot.heading, robot.waypoint], -1)
        for robot in state.robots
    ]
    return np.stack(rows, -2)


def boxes(env: BoxPushing, state: State) -> np.ndarray:
    """Return […, 3, 2], the centres of small box 0, small box 1 and the big box."""
    first, last, left, _ = env.columns
    centres = ((first + 0.5, state.small[0]), (last + 0.5, state.small[1]), (left + 1.0, state.big))
    rows = [np.stack([np.full(np.shape(y), x), np.asarray(y) + 0.5], -1) for x, y in centres]
    return np.stack(rows, -2)


def vector(env: BoxPushing, state: State) -> np.ndarray:
    """Return […, 18], the state vector of the reference."""
    parts = []
    for robot in state.robots:
        parts += [(robot.x + 0.5) / env.size, (robot.y + 0.5) / env.size]
        parts += [robot.heading == way for way in range(4)]
    flat = [np.asarray(part, float) for part in parts]
    places = boxes(env, state) / env.size
    return np.concatenate([np.stack(flat, -1), places.reshape(*places.shape[:-2], 6)], -1)


def recorded_env(recording: Recording) -> BoxPushing:
    """Return the recorded environment. Its array `params` holds the sizes, the rewards and the horizon."""
    width, height, big, small, penalty, horizon = recording.arrays["params"]
    assert width == height and horizon == BoxPushing.horizon
    return BoxPushing(size=int(width), dynamics="reference", big=big, small=small, penalty=penalty)


@of_world("box_pushing")
def test_replays_every_episode(recording):
    trace, by_episode = recording.arrays, recording.by_episode
    # Doubles, because the recorded rewards are doubles and the comparison is exact.
    with jax.enable_x64(True):
        env = recorded_env(recording)
        choices = jnp.asarray(by_episode("act"), jnp.int32)
        tick, seen, macro = jax.jit(jax.vmap(replay, (None, 0)))(env, choices)
        tick, seen, macro = jax.tree.map(np.asarray, (tick, seen, macro))
        first = env.reset(jax.random.key(0))
        first_seen = np.asarray(env.observe(first))
        first = jax.tree.map(np.asarray, first)
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
    alive = recording.alive
    for key, got in wanted.items():
        np.testing.assert_array_equal(got[alive], by_episode(key)[alive], err_msg=key)
    recorded = by_episode("agents")[alive]
    np.testing.assert_array_equal(robots(state)[alive], recorded[..., :4], err_msg="agents")
    pushing = np.broadcast_to(state.pushing[alive][:, None], recorded.shape[:-1])
    np.testing.assert_array_equal(pushing, recorded[..., 4], err_msg="pushing")
    assert (tick.reward[..., 0] == tick.reward[..., 1]).all()

    np.testing.assert_array_equal(first_seen, trace["obs0"])
    np.testing.assert_array_equal(robots(first), trace["agents0"][:, :4])
    np.testing.assert_array_equal(boxes(env, first), trace["boxes0"])
    np.testing.assert_array_equal(vector(env, first), trace["vec_state0"])


def test_some_recordings_push_the_big_box():
    """Otherwise the replay would not test the shared push."""
    pushes = 0
    for recording in all_of_world("box_pushing"):
        together = (recording.arrays["agents"][..., 4] == 1).all(-1)
        assert (recording.arrays["cur_mac"][together] == Macro.PUSH).all()
        pushes += together.sum()
    assert pushes > 0
