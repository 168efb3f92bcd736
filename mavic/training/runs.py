"""A run: all numbers of one training. Runs of several seeds and configurations are stacked into the axis of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from mavic.experiment.config import ExperimentConfig
from mavic.experiment.environments import instructed_env
from mavic.experiment.methods import METHODS, hyperparams_of
from mavic.experiment.task import Task
from mavic.instruct import reward
from mavic.learn import act
from mavic.learn.returns import CORRECTIONS, Correction
from mavic.learn.update import HyperParams, StaticConfig
from mavic.preset import Preset
from mavic.rollout.rollout import Policy
from mavic.rollout.step import InstructedEnv
from mavic.types import Array, InstructedState, record, replace


@record
class Run:
    """All numbers of one training, as arrays. Stacked runs are trained under one `vmap`."""

    hyper: HyperParams
    correction: Correction
    train_env: InstructedEnv
    test_env: InstructedEnv
    eval_epsilon: Array  # [] share of random macros in evaluation: 1 for the random policy, else 0
    key: Array

    @staticmethod
    def stack(runs: Sequence[Run]) -> Run:
        """Return many runs as one record. All leaves get a new first axis."""
        return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]), *runs)


def make_run(
    config: ExperimentConfig, preset: Preset, task: Task, seed: int, member: int = 0
) -> Run:
    """Return the run of one seed of a configuration.

    Args:
        config: what is trained.
        preset: its numbers.
        task: its task.
        seed: its seed.
        member: which member of the seed's population. The first is the run of a training without a population.
    """
    key = jax.random.key(seed)
    method = METHODS[config.method]
    if method.judged:
        raise ValueError(f"{config.method} was judged; it cannot be trained")
    trained_under = {"none": "off", "interrupt": config.schedule, "per_episode": "from_start"}
    drills = dict(
        drill_prob=preset.drill_prob, one_agent=max(config.one_agent, preset.one_agent_prob)
    )
    training = {
        "none": {},
        "per_episode": drills,
        "interrupt": drills
        | dict(
            spurious_interrupt_prob=preset.spurious_interrupt_prob,
            uninstructed_episode_prob=preset.uninstructed_episode_prob,
            hold_to_end_prob=preset.hold_to_end_prob,
            from_start=preset.from_start_prob,
            from_start_adds=True,
            single_instruction=preset.single_instruction,
        ),
    }
    asks = preset.drill_prob > 0 or any(preset.allowed_loss)
    train_env = instructed_env(
        config,
        task,
        trained_under[method.instructions],
        judges_work=asks,
        **training[method.instructions],
    )
    weighted = replace(train_env.rules, weight=reward.weights_of(task.file, config.weights))
    return Run(
        hyper=hyperparams_of(preset),
        correction=jax.tree.map(jnp.float32, CORRECTIONS[method.correction]),
        train_env=replace(train_env, rules=weighted),
        test_env=instructed_env(config, task),
        eval_epsilon=jnp.float32(method.random),
        key=key if member == 0 else jax.random.fold_in(key, member),
    )


def rollout_policy(
    static: StaticConfig,
    actor: Any,
    vectors: Array,
    epsilon: Array,
    greedy: Array | bool = False,
    second: bool = False,
) -> Policy:
    """Return a team as a rollout policy. Teams that hear nothing use context 0.

    Args:
        static: the static part of the training.
        actor: the actors' weights.
        vectors: [P, D] what agents hear of each phrase.
        epsilon: [CONTEXTS] exploration by context.
        greedy: take the most likely macro instead of a sampled one.
        second: keep the memory that a second instruction needs.
    """
    network = static.network
    actors = act.project(network, actor, vectors)

    def policy(memory: Array, state: InstructedState, draws: Array) -> tuple[Array, Array]:
        begins = jax.lax.broadcast_to_rank((state.time == 0)[:, None], memory.ndim)  # [..., W, 1]
        memory = jnp.where(begins, 0.0, memory)
        observed = act.Observed(
            observation=state.observation,
            last_macro=state.macro,
            phrase=state.instruction.phrase,
            earlier_macro=state.last_macro,
            time=state.time,
            also=None if state.also is None else state.also.phrase,
        )
        asked = state.instruction.context
        if state.also is not None:
            asked = jnp.maximum(asked, state.also.context)
        context = jnp.where(observed.instructed[:, None], asked, 0)
        if network.shape.joint:
            context = context.max(-1, keepdims=True)
        return act.decide(
            network,
            actors,
            memory,
            observed,
            state.idle,
            state.available,
            epsilon[context],
            draws,
            greedy,
        )

    return Policy(start=lambda num_envs: act.empty_memory(network, num_envs, second), act=policy)
