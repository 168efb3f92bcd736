"""Simulators that crash, die, hang, return what is not finite, or break their promises."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import corridor
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy_simulators as toys

from mavic.instruct import reward
from mavic.instruct.schedule import make_schedule
from mavic.instruct.spec import InstructionFile
from mavic.rollout.rollout import Policy, rollout
from mavic.rollout.step import InstructedEnv
from mavic.simulators.adapters import SimulatorError
from mavic.simulators.controllers import Action, Controller, Status, Wait
from mavic.simulators.processes import Lost
from mavic.simulators.worker import Holder
from mavic.simulators.worlds import python_world

KEY = jax.random.key(1)
FILE = {
    "world": "line",
    "kinds": {"stay": {"rule": "replace", "allow": ["STAY"], "train": ["stay"]}},
}
STAY = Policy(
    start=lambda num_envs: jnp.zeros(num_envs),
    act=lambda memory, state, draws: (jnp.zeros(draws.shape, jnp.int32), memory),
)


def world(workers=0, timeout=60.0, **options):
    make = python_world(
        "line", toys.crashing, horizon=6, actions=toys.ACTIONS, workers=workers, timeout=timeout
    )
    return make(**options)


def played(env, episodes=12):
    """The ticks of episodes in which all agents stay: six ticks each, unless one fails at tick three."""
    place = InstructedEnv(
        env=env,
        rules=reward.rules_of(env, InstructionFile.parse(FILE, "line.toml")),
        schedule=make_schedule(),
        phrases=corridor.PHRASES,
    )
    play = jax.jit(lambda place: rollout(place, STAY, KEY, episodes=episodes, num_envs=4).rows)
    return jax.tree.map(np.asarray, play(place))


@pytest.mark.parametrize(
    "how", ["raise", *(pytest.param(how, marks=pytest.mark.long) for how in ("nan", "blind"))]
)
def test_a_failed_episode_is_named_dropped_and_counted(how):
    env = world(how=how, chance=0.3)
    rows = played(env)
    lines, dropped = env.simulator_reports()
    ended = rows.alive & (rows.terminal | rows.truncated)
    assert 0 < dropped < 12 and ended.sum() == 12 - dropped
    assert rows.alive.sum() == 6 * (12 - dropped)  # no tick of a failed episode is left
    assert np.isfinite(rows.reward).all() and np.isfinite(rows.task_reward).all()
    told = [line for line in lines if "dropped" in line]
    assert len(told) == dropped and env.simulator_reports() == ([], 0)
    what = {
        "raise": "crashed: ZeroDivisionError: the floor is gone (toy_simulators.py:",
        "nan": "not finite: the reward of a",
        "blind": "not finite: the observation of a",
    }
    assert all(line.startswith("line, worker 0, seed ") and ", tick 3: " in line for line in told)
    assert all(what[how] in line for line in told)


@pytest.mark.long
def test_dead_workers_are_replaced_and_only_their_episodes_are_dropped():
    """The simulators of three episodes in ten end their process."""
    env = world(workers=2, how="die", chance=0.3)
    rows = played(env)
    lines, dropped = env.simulator_reports()
    ended = rows.alive & (rows.terminal | rows.truncated)
    assert 0 < dropped < 12 and ended.sum() == 12 - dropped
    assert any("died (exit status 7)" in line for line in lines)
    env.raise_failure()
    env.pool.close()


def test_a_worker_that_is_killed_is_replaced_and_one_that_is_ended_closes_its_simulators(tmp_path):
    told = tmp_path / "told"
    env = world(workers=2, chance=0.0, told=str(told))
    state = jax.vmap(env.reset)(jax.random.split(KEY, 4))
    tick = jax.jit(jax.vmap(env.tick, (None, 0, None, None, None)))
    args = jnp.zeros(2, jnp.int32), jnp.ones(2, bool), jnp.zeros(2, jnp.int32)
    first = tick(KEY, state, *args)
    assert np.isfinite(first.reward).all()
    os.kill(env.pool._workers[1].process.pid, signal.SIGKILL)
    second = tick(KEY, first.state, *args)
    assert np.isnan(second.reward).any(1).tolist() == [False, True, False, True]
    lines, dropped = env.simulator_reports()
    assert dropped == 2 and "worker 1" in lines[0] and "died (exit status -9)" in lines[0]
    again = jax.vmap(env.reset)(jax.random.split(KEY, 4))
    assert np.array_equal(again.row, state.row)
    told.write_text("")  # so far, those with which the world was described and tried
    env.pool.close()
    assert told.read_text().split() == ["closed"] * 6  # four of worker 0, two of the new worker 1


def test_a_simulator_that_fails_is_closed(tmp_path):
    told = tmp_path / "told"
    env = world(how="raise", told=str(told), tick=1)
    holder = Holder(env.description)
    holder.reset([5], [0], False)
    told.write_text("")
    answer = holder.tick([5], np.zeros((1, 2), int), np.ones((1, 2), bool), False)
    assert "the floor is gone" in answer.failed[0] and told.read_text() == "closed "
    assert not holder.held


def test_a_lost_worker_is_named_also_where_speed_is_measured(monkeypatch):
    env = world()
    monkeypatch.setattr(env.pool._workers, "exchange", lambda asked: {0: Lost("hung")})
    with pytest.raises(SimulatorError, match="line, worker 0: hung, with random actions"):
        env.pool.alone(1, 1, macros=False)


def test_what_simulators_of_this_process_take_is_not_counted_as_asking():
    pool = world().pool
    pool.seconds["simulators"] = 3.0
    with pool._call(0):
        pool.seconds["macros"] += 2.0
    assert pool.seconds["asking"] == pytest.approx(-2.0, abs=0.5)  # no time passed here


@pytest.mark.long
def test_on_a_ray_cluster_a_killed_worker_and_a_lost_node_are_replaced():
    pytest.importorskip("ray")
    paths = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("on_ray.py"))],
        env={**os.environ, "PYTHONPATH": paths, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    found = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert found["workers"] == found["nodes"] == 2 and found["same"] == [True, True]
    assert all(held == failed > 0 for held, failed in found["lost"])
    assert all(
        "died (its process, its node or its answer was lost)" in line for line in found["reports"]
    )
    assert found["dropped"] >= sum(held for held, _ in found["lost"])


@pytest.mark.long
def test_a_worker_that_hangs_is_ended():
    env = world(workers=1, timeout=1.0, how="hang", chance=0.3)
    rows = played(env, episodes=6)
    lines, dropped = env.simulator_reports()
    assert dropped > 0 and (rows.alive & rows.truncated).sum() == 6 - dropped
    assert any("hung: no answer within 1 seconds" in line for line in lines)
    env.pool.close()


@pytest.mark.long
def test_training_stops_if_every_episode_fails():
    env = world(how="raise")
    played(env, episodes=40)
    with pytest.raises(
        SimulatorError, match=r"line: 21 episodes in a row failed; the last: line, "
    ):
        env.raise_failure()
    env.raise_failure()  # said once


def test_a_simulator_that_does_not_repeat_itself_is_named():
    env = world(how="random")
    env.reset(KEY)
    (line,), dropped = env.simulator_reports()
    assert dropped == 0 and line.startswith(
        "line is not deterministic: the observation of a at tick 3 differs between two episodes"
    )
    repeats = world(how="cut")
    repeats.reset(KEY)
    assert repeats.simulator_reports() == ([], 0)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("short", "line, a, tick 3: the observation has 1 numbers, before 3"),
        ("alone", "line, b, tick 3: the simulator returned no observation of this agent"),
        ("words", "line, a, tick 3: the observation is list, not an array of numbers"),
        ("rewards", "line, tick 3: 3 rewards for 2 agents"),
        ("unpaid", "line, b, tick 3: the simulator returned no reward of this agent"),
        ("flags", "line, tick 3: terminated must be true or false for all agents, not {'a'"),
        ("triple", "line, tick 3: step must return observations, rewards, terminated, truncated"),
    ],
)
def test_a_broken_promise_is_one_line_with_world_agent_and_tick(how, message):
    env = world(how=how)
    env.reset(KEY)
    with pytest.raises(SimulatorError) as error:
        env.raise_failure()
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


def test_a_failure_on_a_stage_is_an_error():
    """One episode that is played by itself has no others to go on with."""
    env = world(how="raise", tick=1)
    state = env.reset(KEY)
    env.simulator_reports()
    env.tick(KEY, state, jnp.zeros(2, jnp.int32), jnp.ones(2, bool), jnp.zeros(2, jnp.int32))
    with pytest.raises(SimulatorError, match="tick 1: crashed: ZeroDivisionError"):
        env.raise_failure()


class Blocked(Controller):
    """A macro that cannot start."""

    def can_start(self, world, agent):
        return False


class Wild(Controller):
    """A macro with an action that its agent does not have."""

    def act(self, world, agent, memory):
        return 7, memory

    def status(self, world, agent, memory):
        return Status.ENDED


def spaces_of(actions, observations):
    from gymnasium import spaces

    class Env:
        action_space = getattr(spaces, actions[0])(*actions[1:])
        observation_space = getattr(spaces, observations[0])(*observations[1:])

    return Env()


def box_actions():
    from gymnasium import spaces

    return spaces_of(("Tuple", [spaces.Box(0, 1), spaces.Box(0, 1)]), ("Box", 0, 1, (2, 3)))


def one_action():
    return spaces_of(("Discrete", 3), ("Box", 0, 1, (2, 3)))


def one_observation():
    return spaces_of(("MultiDiscrete", [3, 3]), ("Box", 0, 1, (5,)))


class NoStep:
    agents = ("a",)

    def reset(self, seed):
        return [[0.0]]


@pytest.mark.parametrize(
    ("make", "more", "message"),
    [
        (box_actions, {}, r"w, agent_0, tick 0: the action space Box.* is not Discrete"),
        (one_action, {}, r"w: the action space Discrete\(3\) is not a Tuple"),
        (one_observation, {}, r"w, tick 0: the observation space Box.* has no part for each of 2"),
        (toys.broken, {}, r"w: the simulator cannot be made: ValueError: no map \(toy_sim"),
        (
            partial(toys.crashing, how="reset"),
            {"actions": toys.ACTIONS},
            r"w: the first reset failed: KeyError: 'map' \(toy_simulators.py:",
        ),
        (NoStep, {}, "w: NoStep has no method step"),
        (toys.line, {}, "w: Line does not say how many actions an agent has"),
        (toys.line, {"actions": toys.ACTIONS, "horizon": 0}, "w: horizon must be a positive"),
        (
            toys.line,
            {"actions": toys.ACTIONS, "macros": {"x": 3}},
            "the macro x of a is int, not a",
        ),
        (
            toys.line,
            {"actions": toys.ACTIONS, "macros": {"a": {"x": Wait(0)}}},
            r"w: macros are given for \['a'\], but the agents are \['a', 'b'\]",
        ),
    ],
)
def test_what_cannot_be_a_world_is_refused_before_it_runs(make, more, message):
    with pytest.raises(SimulatorError, match=message):
        python_world("w", make, **{"horizon": 5, "workers": 0, **more})()


@pytest.mark.parametrize(
    ("macros", "message"),
    [
        ({"BLOCKED": Blocked()}, "w, a, tick 0: no macro can start; give one that always can"),
        ({"WILD": Wild()}, "w, a, tick 0: a controller chose the action 7 of 0 to 2"),
    ],
)
def test_a_wrong_controller_is_named(macros, message):
    make = python_world("w", toys.line, horizon=5, actions=toys.ACTIONS, macros=macros, workers=0)
    env = make()
    env.reset(KEY)
    with pytest.raises(SimulatorError, match=message):
        env.raise_failure()


def test_a_world_that_cannot_travel_says_what_to_do(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cloudpickle", None)
    env = python_world(
        "w",
        lambda: toys.Line(),
        horizon=5,
        macros={"STAY": Action(0)},
        actions=toys.ACTIONS,
        workers=1,
    )()
    env.reset(KEY)
    with pytest.raises(SimulatorError, match="w: the world cannot be sent to a worker process"):
        env.raise_failure()
