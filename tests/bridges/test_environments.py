"""Other libraries' own tests of our environments, and that the clocks come through."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("pettingzoo")

import gymnasium
from pettingzoo.test import parallel_api_test

from mavic.bridges import ids
from mavic.bridges.gymnasium import TeamEnv
from mavic.bridges.pettingzoo import parallel_env
from mavic.envs.box_pushing.macros import Macro

CYCLES = 60


@pytest.fixture(scope="module")
def boxes():
    return parallel_env("mavic/BoxPushing-v1", size=4, render_mode="ansi")


def test_box_pushing_passes_pettingzoos_test(boxes):
    parallel_api_test(boxes, num_cycles=CYCLES)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mavic/Warehouse-v1", "mavic/Overcooked-v1"])
def test_a_world_passes_pettingzoos_test(name):
    parallel_api_test(parallel_env(name), num_cycles=CYCLES)


def play(env, seed, ticks=40):
    """Observations, infos and rewards of an episode in which every idle agent chooses its first macro."""
    seen, infos = env.reset(seed=seed)
    rows = [(seen, infos, {})]
    while env.agents and len(rows) < ticks:
        choice = {name: int(np.flatnonzero(seen[name]["action_mask"])[0]) for name in env.agents}
        seen, reward, _, _, infos = env.step(choice)
        rows.append((seen, infos, reward))
    return rows


def test_an_instruction_is_seen_and_interrupts_everybody(boxes):
    rows = play(boxes, seed=1)
    kinds = [infos["robot_0"]["kind"] for _, infos, _ in rows]
    assert {"none"} < set(kinds)
    for before, (seen, infos, _) in itertools.pairwise(rows):
        for name in boxes.possible_agents:
            heard = seen[name]["instruction"]
            assert heard.sum() == (infos[name]["kind"] != "none")  # one-hot, or silence
            assert bool(infos[name]["instruction"]) == (infos[name]["kind"] != "none")
        if infos["robot_0"]["kind"] != before[1]["robot_0"]["kind"] and boxes.agents:
            assert all(seen[name]["idle"][0] for name in boxes.possible_agents)


def test_a_seed_is_an_episode(boxes):
    one, same, other = (
        [infos["robot_0"]["kind"] for _, infos, _ in play(boxes, seed)] for seed in (1, 1, 2)
    )
    assert one == same != other


def test_a_busy_agent_goes_on(boxes):
    seen, _ = boxes.reset(seed=4)
    choice = dict.fromkeys(boxes.possible_agents, int(Macro.GO_SMALL_BOX_0))
    seen, _, _, _, infos = boxes.step(choice)
    busy = [name for name in boxes.agents if not infos[name]["idle"]]
    assert busy
    for name in busy:
        assert np.flatnonzero(seen[name]["action_mask"]).tolist() == [Macro.GO_SMALL_BOX_0]
    _, _, _, _, infos = boxes.step(dict.fromkeys(boxes.possible_agents, int(Macro.TURN_LEFT)))
    assert infos[busy[0]]["macro"] == "GO_SMALL_BOX_0"
    assert "blue robot" in boxes.render()


def test_gymnasium_makes_a_team_by_its_versioned_name():
    ids.register_plugin()
    env = gymnasium.make("mavic/BoxPushing-v1", size=4, disable_env_checker=True)
    seen, _ = env.reset(seed=0)
    assert env.observation_space.contains(seen)
    seen, reward, ended, cut, infos = env.step(np.array([0, 1]))
    assert env.observation_space.contains(seen) and isinstance(reward, float)
    assert infos["robot_1"]["macro"] == list(Macro)[1].name and not (ended or cut)


def test_one_agent_learns_beside_a_trained_team():
    env = TeamEnv("box_pushing", agent="robot_1", teammates="box_pushing/mavic", size=4)
    seen, _ = env.reset(seed=3)
    for _ in range(3):
        assert env.observation_space.contains(seen)
        seen, _, _, _, info = env.step(int(np.flatnonzero(seen["action_mask"])[-1]))
    assert info["macro"] in Macro.__members__
    with pytest.raises(ValueError, match="did you mean 'robot_1'"):
        TeamEnv("box_pushing", agent="robot_3")


def test_a_wrong_name_is_answered():
    with pytest.raises(ValueError, match="did you mean 'mavic/BoxPushing-v1'"):
        parallel_env("mavic/BoxPushing-v2")
