"""PettingZoo: a world with its instructions as a `ParallelEnv`. One step is one tick.

    env = parallel_env("mavic/BoxPushing-v1")
    observations, infos = env.reset(seed=0)

An agent decides only when it is idle. The action of a busy agent is ignored; its `action_mask` has only its running
macro. When the instruction changes, every macro ends and every agent is idle. Rewards are those that training pays.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from mavic import ranges
from mavic.bridges.ids import id_of, world_of
from mavic.envs import api, painting
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import preset_of
from mavic.experiment.task import task_of
from mavic.ranges import Range, check_value
from mavic.rollout import step as steps
from mavic.rollout.step import InstructedEnv
from mavic.training.runs import make_run
from mavic.types import Array, InstructedState


def parallel_env(
    name: str,
    *,
    condition: str = "live/by-kind",
    hear: str = "kinds",
    render_mode: str | None = None,
    **options: Any,
) -> InstructedParallelEnv:
    """Return a world as a `ParallelEnv`.

    Args:
        name: the name of a world, with its version or without it.
        condition: how agents are instructed, as in `mavic train --condition`.
        hear: what agents hear: "kinds" or "vectors".
        render_mode: "ansi" renders states as text.
        options: options of the world.
    """
    config = ExperimentConfig(world=world_of(name), hear=hear, options=options)
    config = config.with_condition(condition)
    task = task_of(config)
    env = make_run(config, preset_of(config.preset, config.world), task, 0).test_env
    return InstructedParallelEnv(env, np.asarray(task.vectors), task.lexicon.texts, render_mode)


class InstructedParallelEnv(ParallelEnv):
    """A world whose agents are interrupted by instructions."""

    def __init__(
        self,
        instructed_env: InstructedEnv,
        heard: np.ndarray,
        texts: tuple[str, ...],
        render_mode: str | None = None,
    ) -> None:
        """Wrap an environment; `parallel_env` makes one by its name.

        Args:
            instructed_env: the environment with its instructions.
            heard: what agents hear of each phrase, [P, D].
            texts: the phrases.
            render_mode: "ansi" renders states as text.
        """
        self.instructed_env, self.render_mode = instructed_env, render_mode
        self._heard, self._texts = heard, texts
        env = self.world
        self.metadata = {"name": id_of(env.name), "render_modes": ["ansi"]}
        self.possible_agents = list(env.agents)
        self.agents: list[str] = []
        seen = jax.eval_shape(lambda key: env.observe(env.reset(key)), jax.random.key(0)).shape[-1]
        counts = dict(zip(env.agents, map(len, env.macros), strict=True))
        self._spaces = {name: _space(seen, heard.shape[1], n) for name, n in counts.items()}
        self._actions: dict[str, Any] = {name: spaces.Discrete(n) for name, n in counts.items()}
        self._seeds = np.random.default_rng()

    @property
    def world(self) -> api.Env:
        """The environment without instructions."""
        return self.instructed_env.env

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
        self._state = _reset(self.instructed_env, key)
        self._now = SimpleNamespace(**jax.device_get(_needed(self._state)))
        return self._seen(), self._infos(None)

    def step(self, actions: dict[str, int]) -> tuple[dict, dict, dict, dict, dict]:
        """Run one tick."""
        if not self.agents:
            return {}, {}, {}, {}, {}
        choice = np.array([self._chosen(actions, name) for name in self.possible_agents], np.int32)
        self._check(choice)
        self._state, shown = _advance(self.instructed_env, self._state, choice)
        self._now, row = (SimpleNamespace(**part) for part in jax.device_get(shown))
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
        if self.render_mode != "ansi":
            return None
        macro = np.maximum(np.asarray(self._state.macro), 0)
        return painting.text(self.world.scene(self._state.state, macro))

    def _chosen(self, actions: dict[str, int], name: str) -> int:
        """Return the number of the macro that was chosen for an agent."""
        chosen, many = ranges.plain(actions.get(name)), self._actions[name].n
        check_value(chosen, Annotated[int, Range(0, int(many) - 1)], f"the action of {name}")
        return chosen

    def _check(self, choice: np.ndarray) -> None:
        now = self._now
        wrong = now.idle & ~now.available[np.arange(len(choice)), choice]
        for agent in np.flatnonzero(wrong):
            macro = self.world.macros[agent](int(choice[agent])).name
            raise ValueError(
                f"{self.possible_agents[agent]} cannot choose {macro} now: see action_mask"
            )

    def _each(self, values: list) -> dict[str, Any]:
        return dict(zip(self.possible_agents, values, strict=True))

    def _seen(self) -> dict[str, dict[str, np.ndarray]]:
        """Return what each agent sees. An instruction of zeros is silence; a busy agent can only go on."""
        now, idle = self._now, self._now.idle
        running = np.arange(now.available.shape[1]) == np.maximum(now.macro, 0)[:, None]
        mask = np.where(idle[:, None], now.available, running).astype(np.int8)
        return {
            name: {
                "observation": np.asarray(now.observation[number], np.float32),
                "instruction": self._heard[now.phrase[number]].astype(np.float32),
                "idle": idle[number, None].astype(np.int8),
                "action_mask": mask[number, : self._actions[name].n],
            }
            for number, name in enumerate(self.possible_agents)
        }

    def _infos(self, row: SimpleNamespace | None) -> dict[str, dict[str, Any]]:
        """Return what each agent is asked for, and how the last tick went, if there was one."""
        now, found = self._now, []
        for agent, macros in enumerate(self.world.macros):
            info: dict[str, Any] = {
                "kind": self.instructed_env.rules.names[int(now.kind[agent])],
                "instruction": self._texts[int(now.phrase[agent])],
                "idle": bool(now.idle[agent]),
            }
            if row is not None:
                info |= {
                    "macro": macros(int(row.macro[agent])).name,
                    "complied": bool(row.complied[agent]),
                    "interrupted": bool(row.switched),
                    "task_reward": float(row.task_reward),
                }
            found.append(info)
        return self._each(found)


def _space(observation: int, heard: int, macros: int) -> spaces.Dict:
    return spaces.Dict(
        {
            "observation": spaces.Box(-np.inf, np.inf, (observation,), np.float32),
            "instruction": spaces.Box(-np.inf, np.inf, (heard,), np.float32),
            "idle": spaces.MultiBinary(1),
            "action_mask": spaces.MultiBinary(macros),
        }
    )


@jax.jit
def _reset(env: InstructedEnv, key: Array) -> InstructedState:
    return steps.reset(env, key)


# What agents are told. Fetching all fields of a state would take most of a tick's time.
_SHOWN = ("macro", "idle", "observation", "available")
_ROW = ("macro", "reward", "complied", "switched", "task_reward", "terminal", "truncated")


def _needed(state: InstructedState) -> dict[str, Array]:
    """Return the fields of a state in _SHOWN, and what each agent is asked for."""
    asked = {"kind": state.instruction.kind, "phrase": state.instruction.phrase}
    return {name: getattr(state, name) for name in _SHOWN} | asked


@jax.jit
def _advance(
    env: InstructedEnv, state: InstructedState, choice: Array
) -> tuple[InstructedState, tuple[dict[str, Array], dict[str, Array]]]:
    """Run one tick with the random numbers of the rollout. Idle agents start their `choice` [N], others go on.

    Return the state, and the parts of it and of the tick that agents are told.
    """
    draws = steps.draws_for(state)[len(env.env.agents) :]
    after, row = steps.step(env, state, jnp.asarray(choice, jnp.int32), draws)
    return after, (_needed(after), {name: getattr(row, name) for name in _ROW})
