"""Small simulators in plain Python, as users would write them: in three styles, and some that go wrong."""

from __future__ import annotations

import os
import random
import time
from typing import Any

import numpy as np

ACTIONS = ("STAY", "RIGHT", "LEFT")


class Clock:
    """The corridor of `corridor.py` as a plain class: it counts ticks, and left can ring, crash or finish."""

    agents = ("left", "right")

    def reset(self, seed):
        del seed
        self.clock, self.last = 0, [0, 0]
        return self._seen()

    def step(self, actions):
        self.clock, self.last = self.clock + 1, list(actions)
        return self._seen(), [1.0, 10.0], actions[0] == 4, False

    def _seen(self):
        return {"left": [self.clock, 0], "right": [self.clock, 1]}


class Line:
    """Two walkers on a line of seven cells meet at a goal, which the seed chooses."""

    agents = ("a", "b")
    breaks_at = None  # a tick

    def reset(self, seed):
        self.time, self.x = 0, [0, 6]
        self.goal = int(np.random.default_rng(seed).integers(2, 5))
        return self._seen()

    def step(self, actions) -> tuple[Any, ...]:
        self.time += 1
        for i, action in enumerate(actions):
            self.x[i] = min(6, max(0, self.x[i] + (action == 1) - (action == 2)))
        met = all(x == self.goal for x in self.x)
        return self._seen(), 10.0 if met else -0.1, met, False

    def _seen(self):
        return [[x / 6, self.goal / 6, (x - self.goal) / 6] for x in self.x]


class Crashing(Line):
    """A walker that goes left at the wall breaks the simulator, now and then."""

    how = "raise"

    def __init__(self, how="raise", tick=3, chance=1.0, told=""):
        self.how, self.tick, self.chance, self.told = how, tick, chance, told

    def close(self):
        if self.told:
            with open(self.told, "a") as file:
                file.write("closed ")

    def reset(self, seed):
        if self.how == "reset":
            raise KeyError("map")
        self.bad = np.random.default_rng(seed).uniform() < self.chance
        return super().reset(seed)

    def step(self, actions):
        seen, reward, ended, cut = super().step(actions)
        if not self.bad or self.time != self.tick:
            return seen, reward, ended, cut
        if self.how == "raise":
            raise ZeroDivisionError("the floor is gone")
        if self.how == "die":
            os._exit(7)
        if self.how == "hang":
            time.sleep(1000)
        if self.how == "nan":
            return seen, float("nan"), ended, cut
        if self.how == "blind":
            return [[float("inf")] * 3] * 2, reward, ended, cut
        if self.how == "random":
            return [[random.random()] * 3] * 2, reward, ended, cut
        if self.how == "short":
            return [[0.0], [0.0]], reward, ended, cut
        if self.how == "alone":
            return {"a": [0.0] * 3}, reward, ended, cut
        if self.how == "words":
            return [["x", "y", "z"]] * 2, reward, ended, cut
        if self.how == "rewards":
            return seen, [1.0, 2.0, 3.0], ended, cut
        if self.how == "unpaid":
            return seen, {"a": 1.0}, ended, cut
        if self.how == "flags":
            return seen, reward, {"a": False, "b": False}, cut
        if self.how == "triple":
            return seen, reward, ended
        return seen, reward, ended, True  # cut


def gymnasium_line():
    """The same as a Gymnasium environment with two agents' actions."""
    import gymnasium
    from gymnasium import spaces

    class GymLine(gymnasium.Env):
        def __init__(self):
            self.line = Line()
            self.action_space = spaces.Tuple([spaces.Discrete(3)] * 2)
            self.observation_space = spaces.Tuple([spaces.Box(-1, 1, (3,), np.float32)] * 2)

        def reset(self, seed=None, options=None):
            super().reset(seed=seed)
            return self._seen(self.line.reset(seed)), {}

        def step(self, actions):
            seen, reward, ended, cut = self.line.step(actions)
            return self._seen(seen), reward, ended, cut, {}

        def _seen(self, seen):
            return tuple(np.array(one, np.float32) for one in seen)

    return GymLine()


def pettingzoo_line():
    """The same as a PettingZoo environment. Its observations are dicts with action masks."""
    from gymnasium import spaces
    from pettingzoo import ParallelEnv

    class ZooLine(ParallelEnv):
        metadata = {"name": "line"}  # noqa: RUF012

        def __init__(self):
            self.line = Line()
            self.possible_agents = ["a", "b"]
            self.render_mode = "rgb_array"

        def observation_space(self, agent):
            place = spaces.Box(-1, 1, (3,), np.float32)
            return spaces.Dict({"place": place, "action_mask": spaces.MultiBinary(3)})

        def action_space(self, agent):
            return spaces.Discrete(3)

        def reset(self, seed=None, options=None):
            self.agents = list(self.possible_agents)
            return self._seen(self.line.reset(seed)), {agent: {} for agent in self.agents}

        def step(self, actions):
            seen, reward, ended, cut = self.line.step([actions[a] for a in self.possible_agents])
            agents = self.agents
            found = (
                self._seen(seen),
                dict.fromkeys(agents, reward),
                dict.fromkeys(agents, ended),
                dict.fromkeys(agents, cut),
                {agent: {} for agent in agents},
            )
            self.agents = [] if ended or cut else agents
            return found

        def render(self):
            pixels = np.full((10, 70, 3), 255, np.uint8)
            for x in self.line.x:
                pixels[:, 10 * x : 10 * x + 10] = 0
            return pixels

        def _seen(self, seen):
            return {
                agent: {
                    "place": np.array(one, np.float32),
                    "action_mask": np.array([1, x < 6, x > 0], np.int8),
                }
                for agent, one, x in zip(self.possible_agents, seen, self.line.x, strict=True)
            }

    return ZooLine()


def line():
    return Line()


def broken():
    raise ValueError("no map")


def crashing(how="raise", tick=3, chance=1.0, told=""):
    return Crashing(how, tick, chance, told)


def clock():
    return Clock()


def is_ringing(world, info):
    del info
    return world.last[0] == 2


def is_crashing(world, info):
    del info
    return world.last[0] == 3


def is_open(world):
    return world.clock >= 2


LINE_FILE = """
world = "line"
[kinds.stay]
rule = "replace"
allow = ["STAY"]
train = ["stay there", "do not move"]
[kinds.not-left]
rule = "add"
forbid = ["LEFT"]
train = ["never go left"]
"""
