"""An instructed environment tick by tick, for libraries that hold the loop themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mavic.bridges.ids import world_of
from mavic.envs import api
from mavic.experiments.config import ExperimentConfig, task_of
from mavic.experiments.methods import preset_of
from mavic.experiments.runs import make_run
from mavic.rollout import step as steps
from mavic.rollout.step import InstructedEnv
from mavic.types import Array, InstructedState, Timestep


@dataclass(frozen=True, kw_only=True)
class Instructed:
    """A world under a condition: its environment with both clocks, and what agents hear."""

    env: InstructedEnv
    heard: np.ndarray  # [P, D] what an agent hears of each phrase
    texts: tuple[str, ...]  # of the phrases

    @property
    def world(self) -> api.Env:
        """The environment without instructions."""
        return self.env.env


def open_world(
    name: str, *, condition: str = "live/by-kind", hear: str = "kinds", **options: Any
) -> Instructed:
    """Return a world by its name or versioned name. `options` go to the environment."""
    config = ExperimentConfig(world=world_of(name), hear=hear, options=options)
    config = config.with_condition(condition)
    task = task_of(config)
    run = make_run(config, preset_of(config.preset, config.world), task, 0)
    return Instructed(env=run.test_env, heard=np.asarray(task.vectors), texts=task.lexicon.texts)


@jax.jit
def reset(env: InstructedEnv, key: Array) -> InstructedState:
    """Return the first state of an episode."""
    return steps.reset(env, key)


@jax.jit
def advance(
    env: InstructedEnv, state: InstructedState, choice: Array
) -> tuple[InstructedState, Timestep]:
    """Run one tick with the random numbers of the rollout. Idle agents start their `choice` [N], others go on."""
    draws = steps.draws_for(state)[len(env.env.agents) :]
    return steps.step(env, state, jnp.asarray(choice, jnp.int32), draws)


def observations(world: Instructed, state: InstructedState) -> dict[str, np.ndarray]:
    """Return what all agents see, as arrays over agents.

    `observation` [N, O], `instruction` [N, D] (zeros: silence), `idle` [N, 1] and `action_mask` [N, M]. An agent that
    is not idle can only go on with its macro.
    """
    state = jax.device_get(state)
    idle = np.asarray(state.idle)
    running = np.arange(state.available.shape[1]) == np.maximum(state.macro, 0)[:, None]
    return {
        "observation": np.asarray(state.observation, np.float32),
        "instruction": world.heard[np.asarray(state.instruction.phrase)].astype(np.float32),
        "idle": idle[:, None].astype(np.int8),
        "action_mask": np.where(idle[:, None], state.available, running).astype(np.int8),
    }


def informations(
    world: Instructed, state: InstructedState, row: Timestep | None
) -> list[dict[str, Any]]:
    """Return what is known about each agent besides its observation: what is asked, and how the last tick went."""
    found = []
    for agent, macros in enumerate(world.world.macros):
        kind, phrase = (int(x[agent]) for x in (state.instruction.kind, state.instruction.phrase))
        info: dict[str, Any] = {
            "kind": world.env.rules.names[kind],
            "instruction": world.texts[phrase],
            "idle": bool(state.idle[agent]),
        }
        if row is not None:
            info |= {
                "macro": macros(int(row.macro[agent])).name,
                "complied": bool(row.complied[agent]),
                "interrupted": bool(row.switched),
                "task_reward": float(row.task_reward),
            }
        found.append(info)
    return found
