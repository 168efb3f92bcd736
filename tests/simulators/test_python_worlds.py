"""Worlds in plain Python: the same rollout as compiled worlds, whatever the style of the simulator."""

from __future__ import annotations

import copy
from functools import partial

import corridor
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy_simulators as toys

from mavic.envs import api
from mavic.envs.unreliable import unreliable
from mavic.instruct import reward
from mavic.instruct.spec import InstructionFile
from mavic.rollout.rollout import Policy, rollout
from mavic.run_axis import RUNS
from mavic.simulators.adapters import SimulatorError
from mavic.simulators.controllers import Action, Wait
from mavic.simulators.episodes import Episodes
from mavic.simulators.processes import Workers
from mavic.simulators.worlds import python_world
from mavic.types import record, replace

KEY = jax.random.key(3)


@record
class Ticking(corridor.Corridor):
    """The corridor, whose agents see the clock and who they are."""

    def observe(self, state):
        who = jnp.arange(2, dtype=jnp.float32)
        return jnp.stack([jnp.full(2, state.clock).astype(jnp.float32), who], 1)


def clock_world(**more):
    walk = {"WAIT": Action(0), "WALK": Wait(1, 3)}
    left = {**walk, "RING": Action(2), "CRASH": Action(3), "FINISH": Action(4)}
    make = python_world(
        "corridor",
        toys.clock,
        horizon=12,
        actions=tuple("abcde"),
        macros={"left": left, "right": walk},
        events={"bell": toys.is_ringing, "crash": toys.is_crashing},
        preconditions={"open": toys.is_open},
        **more,
    )
    return make()


def rules_of(env):
    file = copy.deepcopy(corridor.FILE)
    del file["kinds"]["ring"]["effect"]
    return reward.rules_of(env, InstructionFile.parse(file, "corridor.toml"))


def played(env, runs=None, num_envs=3, **more):
    place = replace(corridor.instructed(env, rules=rules_of(env)), schedule=corridor.LIVE)

    def play(place, key):
        return rollout(place, corridor.RAMBLING, key, episodes=7, num_envs=num_envs, **more).rows

    if runs is None:
        return jax.tree.map(np.asarray, jax.jit(play)(place, KEY))
    keys = jax.random.split(KEY, runs)
    together = jax.jit(jax.vmap(partial(play, place), axis_name=RUNS))
    return jax.tree.map(np.asarray, together(keys))


def same(one, two):
    """Every field agrees where it is alive. A Python world counts failed macros in one more event."""
    two = replace(two, events=two.events[..., :-1])
    alive = one.alive
    assert np.array_equal(alive, two.alive) and alive.any()
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_allclose(a[alive], b[alive], rtol=1e-6)


@pytest.fixture(scope="module")
def compiled():
    return Ticking(horizon=12)


@pytest.mark.long
def test_the_host_plays_the_episodes_that_a_compiled_world_plays(compiled):
    env = clock_world(workers=0)
    steps = []
    holder = env.pool._workers[0].holder
    tick = holder.tick
    holder.tick = lambda numbers, *args: steps.append(len(numbers)) or tick(numbers, *args)
    rows = played(env)
    same(played(compiled), rows)
    assert sum(steps) == rows.alive.sum()  # an environment whose episodes are done takes no ticks


@pytest.mark.long
def test_unreliable_macros_are_the_same_in_both(compiled):
    numbers = dict(fails=0.2, slips=0.3, stopping=2)
    one, two = (
        played(unreliable(env, ("WAIT",), **numbers)) for env in (compiled, clock_world(workers=0))
    )
    same(one, two)
    assert two.events[..., -1].sum() > 0  # macros failed


@pytest.mark.long
def test_a_world_may_limit_how_many_simulators_play_at_once(compiled):
    env = clock_world(workers=0, side_by_side=2)
    rows = played(env)
    assert rows.alive.shape[1] == 2 and len(env.pool._kept.over) == 2
    assert rows.alive.sum() == played(compiled).alive.sum()


@pytest.mark.long
def test_worker_processes_play_the_same(compiled):
    env = clock_world(workers=2)
    same(played(compiled), played(env))
    env.pool.close()


@pytest.mark.long
def test_runs_side_by_side_do_not_touch_each_other(compiled):
    same(played(compiled, runs=2), played(clock_world(workers=0), runs=2))


@pytest.mark.long
def test_first_to_finish_plays_the_same_too(compiled):
    env = clock_world(workers=0)
    same(played(compiled, first_to_finish=True), played(env, first_to_finish=True))


def test_a_state_can_be_returned_to_after_the_simulator_moved_on():
    """As with compiled worlds: a simulator that has moved on is replayed, also for several states at once."""
    env = python_world("line", toys.line, horizon=9, actions=toys.ACTIONS, workers=0)()
    more = jnp.ones(2, bool), jnp.zeros(2, jnp.int32)

    def step(state, *macro):
        return env.tick(KEY, state, jnp.array(macro), *more).state

    first = env.reset(KEY)
    right = step(first, 1, 0)
    there = step(right, 1, 2)
    assert np.array_equal(step(right, 1, 2).row, there.row)  # asked twice: answered from memory
    other = step(first, 0, 2)  # a branch
    assert np.array_equal(step(right, 1, 2).row, there.row)
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), right, right, other)
    macro = jnp.array([[1, 2], [0, 0], [1, 0]])
    ticks = jax.vmap(env.tick, (None, 0, 0, None, None))(KEY, states, macro, *more)
    assert np.array_equal(ticks.state.row[0], there.row)
    assert np.array_equal(ticks.state.row[1], step(right, 0, 0).row)
    assert np.array_equal(env.observe(step(other, 1, 0))[:, 0] * 6, [1, 5])
    for _ in range(300):  # episodes that are begun and left, as on a stage
        _, row = env.pool.reset(np.asarray(jax.random.key_data(KEY)).view(np.int32))
    assert len(env.pool._kept.over) <= 64 and np.array_equal(step(right, 1, 2).row, there.row)
    assert np.array_equal(row, first.row)


def test_a_state_can_be_left_in_more_ways_than_simulators_are_kept():
    """None of the simulators of a call is given up for another of the same call."""
    env = python_world("line", toys.line, horizon=9, actions=toys.ACTIONS, workers=0)()
    more = jnp.ones(2, bool), jnp.zeros(2, jnp.int32)
    state = env.tick(KEY, env.reset(KEY), jnp.array([1, 0]), *more).state
    macro = jnp.array([[i % 3, i // 3 % 3] for i in range(100)])
    rows = jax.vmap(env.tick, (None, None, 0, None, None))(KEY, state, macro, *more).state.row
    for i in range(9):
        expected = np.asarray(rows[i])
        assert all(np.array_equal(row, expected) for row in np.asarray(rows[i::9]))
    assert len(np.unique(np.asarray(rows), axis=0)) == 6  # the walls stop some


def test_episodes_that_are_given_up_keep_only_what_was_played():
    env = python_world("line", toys.line, horizon=500, actions=toys.ACTIONS, workers=0)()
    key = np.asarray(jax.random.key_data(KEY)).view(np.int32)
    for _ in range(100):
        env.pool.reset(key)
    past = env.pool._kept.past.values()
    assert past and all(len(played) == 0 for _, played in past)


def random_play(env, ticks=12):
    state, key, rows = env.reset(KEY), KEY, []
    for _ in range(ticks):
        key, own = jax.random.split(key)
        odds = jnp.where(env.available(state), 0.0, -jnp.inf)
        macro = jax.random.categorical(own, odds).astype(jnp.int32)
        tick = env.tick(own, state, macro, jnp.ones(2, bool), jnp.zeros(2, jnp.int32))
        rows.append((env.observe(state), env.available(state), tick.reward, tick.terminal))
        state = tick.state
        if tick.terminal:
            break
    return rows, state


def test_three_styles_of_one_simulator_play_alike():
    plain, gym, zoo = (
        python_world("line", make, horizon=30, actions=toys.ACTIONS, workers=0)()
        for make in (toys.line, toys.gymnasium_line, toys.pettingzoo_line)
    )
    assert plain.agents == zoo.agents == ("a", "b") and gym.agents == ("agent_0", "agent_1")
    assert [m.name for m in zoo.macros[0]] == list(toys.ACTIONS)
    for one, two in zip(random_play(plain)[0], random_play(gym)[0], strict=True):
        assert all(np.allclose(a, b) for a, b in zip(one, two, strict=True))
    rows, state = random_play(zoo)
    assert not rows[0][1][0, 2] and not rows[0][1][1, 1]  # walls: masked
    assert zoo.scene(state, [0, 0]).image.startswith("data:image/png;base64,")


def test_a_simulator_may_cut_its_episode():
    env = python_world("line", toys.crashing, horizon=30, actions=toys.ACTIONS, workers=0)(
        how="cut"
    )
    place = corridor.InstructedEnv(
        env=env,
        rules=reward.rules_of(env, InstructionFile.parse(FILE, "line.toml")),
        schedule=corridor.schedule.make_schedule(),
        phrases=corridor.PHRASES,
    )
    rows = jax.jit(lambda: rollout(place, STAY, KEY, episodes=2, num_envs=2).rows)()
    assert rows.truncated[2].all() and not rows.terminal.any() and rows.alive.sum() == 6


FILE = {
    "world": "line",
    "kinds": {"stay": {"rule": "replace", "allow": ["STAY"], "train": ["stay"]}},
}
STAY = Policy(
    start=lambda num_envs: jnp.zeros(num_envs),
    act=lambda memory, state, draws: (jnp.zeros(draws.shape, jnp.int32), memory),
)


def test_options_reach_the_simulator_and_wrong_ones_are_named():
    make = python_world("line", toys.crashing, horizon=9, actions=toys.ACTIONS, workers=0)
    assert make(tick=5).description is make(tick=5).description
    assert make(tick=5).description is not make(tick=6).description
    with pytest.raises(SimulatorError, match=r"line does not take the options .*speed"):
        make(speed=2)


def test_the_module_of_a_world_is_that_which_made_it(monkeypatch):
    monkeypatch.setattr(api, "REGISTERED", {})
    api.register("line", python_world("line", toys.line, horizon=9, actions=toys.ACTIONS))
    assert api.module_of("line") == __name__


def test_each_device_has_simulators_of_its_own_in_workers_of_its_own():
    env = python_world("line", toys.line, horizon=9, actions=toys.ACTIONS, workers=0)()
    workers = Workers([None] * 4)
    assert [workers.of_lane(lane, 3) for lane in range(3)] == [[0, 3], [1], [2]]
    assert [workers.of_lane(lane, 6) for lane in range(6)] == [[0], [1], [2], [3], [0], [1]]
    episodes, nothing = Episodes(env.description, workers), np.full((6, 3), -1, np.int32)
    episodes.beside = {0: 2, 1: 2}
    one, two = (episodes.acquire(nothing, lane) for lane in (0, 1))
    assert set(episodes.home[one]) == {0, 2} and set(episodes.home[two]) == {1, 3}
    assert not set(one) & set(two)
    episodes.over[one] = True  # free, but not for the other device
    assert not set(episodes.acquire(nothing, 1)) & set(one)
    assert set(episodes.acquire(nothing, 0)) == set(one)
