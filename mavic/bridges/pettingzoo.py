"""PettingZoo: a world with its instructions as a `ParallelEnv`. One step is one tick.

    env = parallel_env("mavic/BoxPushing-v1")
    observations, infos = env.reset(seed=0)

An agent decides only when it is idle. The action of a busy agent is ignored; its `action_mask` has only its running
macro. When the instruction changes, every macro ends and every agent is idle. Rewards are those that training pays.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from mavic.bridges import episode
from mavic.bridges.episode import Instructed
from mavic.bridges.ids import id_of


def parallel_env(name: str, *, render_mode: str | None = None, **how: Any) -> InstructedParallelEnv:
    """Return a world as a `ParallelEnv`. `how` may hold `condition`, `hear` and options of the world."""
    return InstructedParallelEnv(episode.open_world(name, **how), render_mode)


class InstructedParallelEnv(ParallelEnv):
    """A world whose agents are interrupted by instructions."""

    def __init__(self, world: Instructed, render_mode: str | None = None) -> None:
        env = world.world
        self.world = world
        self.render_mode = render_mode
        self.metadata = {"name": id_of(env.name), "render_modes": ["ansi"]}
        self.possible_agents = list(env.agents)
        self.agents: list[str] = []
        seen = jax.eval_shape(lambda key: env.observe(env.reset(key)), jax.random.key(0)).shape[-1]
        self._spaces = {
            name: _space(seen, world.heard.shape[1], len(macros))
            for name, macros in zip(env.agents, env.macros, strict=True)
        }
        self._actions = {
            name: spaces.Discrete(len(macros))
            for name, macros in zip(env.agents, env.macros, strict=True)
        }
        self._seeds = np.random.default_rng()

    def observation_space(self, agent: str) -> spaces.Dict:
        """Return the agent's space: observation, instruction, idle and action_mask."""
        return self._spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """Return the agent's macros."""
        return self._actions[agent]

    def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        """Begin an episode. The same seed gives the same episode."""
        if seed is not None:
            self._seeds = np.random.default_rng(seed)
        key = jax.random.key(int(self._seeds.integers(2**31)))
        self.agents = list(self.possible_agents)
        self._state = episode.reset(self.world.env, key)
        return self._seen(), self._infos(None)

    def step(self, actions: dict[str, int]) -> tuple[dict, dict, dict, dict, dict]:
        """Run one tick."""
        if not self.agents:
            return {}, {}, {}, {}, {}
        choice = np.array([int(actions[name]) for name in self.possible_agents], np.int32)
        self._check(choice)
        self._state, row = episode.advance(self.world.env, self._state, choice)
        row = jax.device_get(row)
        ended = bool(row.terminal)  # reaching the horizon is a true end in worlds that say so
        cut = bool(row.truncated) and not ended
        result = (
            self._seen(),
            self._each(row.reward.tolist()),
            self._each([ended] * len(self.agents)),
            self._each([cut] * len(self.agents)),
            self._infos(row),
        )
        if ended or cut:
            self.agents = []
        return result

    def render(self) -> str | None:
        """Return the state as text (render mode ansi)."""
        from mavic.envs import painting

        if self.render_mode != "ansi":
            return None
        macro = np.maximum(np.asarray(self._state.macro), 0)
        return painting.text(self.world.world.scene(self._state.state, macro))

    def _check(self, choice: np.ndarray) -> None:
        state = self._state
        rows = np.arange(len(choice))
        wrong = np.asarray(state.idle) & ~np.asarray(state.available)[rows, choice]
        for agent in np.flatnonzero(wrong):
            macro = self.world.world.macros[agent](int(choice[agent])).name
            raise ValueError(
                f"{self.possible_agents[agent]} cannot choose {macro} now: see action_mask"
            )

    def _each(self, values: list) -> dict[str, Any]:
        return dict(zip(self.possible_agents, values, strict=True))

    def _seen(self) -> dict[str, dict[str, np.ndarray]]:
        seen = episode.observations(self.world, self._state)
        found = {}
        for number, name in enumerate(self.possible_agents):
            own = {part: array[number] for part, array in seen.items()}
            own["action_mask"] = own["action_mask"][: self._actions[name].n]
            found[name] = own
        return found

    def _infos(self, row: Any) -> dict[str, dict[str, Any]]:
        state = jax.device_get(self._state)
        return self._each(episode.informations(self.world, state, row))


def _space(observation: int, heard: int, macros: int) -> spaces.Dict:
    return spaces.Dict(
        {
            "observation": spaces.Box(-np.inf, np.inf, (observation,), np.float32),
            "instruction": spaces.Box(-np.inf, np.inf, (heard,), np.float32),
            "idle": spaces.MultiBinary(1),
            "action_mask": spaces.MultiBinary(macros),
        }
    )
