"""A run: all numbers of one training. Runs of several seeds and configurations are stacked into the axis of runs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from mavic.envs import api
from mavic.experiments.config import ExperimentConfig, Task
from mavic.experiments.methods import METHODS, hyperparams_of
from mavic.instruct import reward
from mavic.instruct.schedule import SCHEDULES, make_schedule
from mavic.learn import act
from mavic.learn.returns import CORRECTIONS, Correction
from mavic.learn.update import HyperParams, StaticConfig
from mavic.preset import Preset
from mavic.rollout.rollout import Policy
from mavic.rollout.step import InstructedEnv
from mavic.types import Array, InstructedState, Phrases, Schedule, record, replace


@record
class Run:
    """All numbers of one training, as arrays. Stacked runs are trained under one `vmap`."""

    hyper: HyperParams
    correction: Correction
    train_env: InstructedEnv
    test_env: InstructedEnv
    eval_epsilon: Array  # [] share of random macros in evaluation: 1 for the random policy, else 0
    key: Array


def schedule_of(config: ExperimentConfig, name: str) -> Schedule:
    """Return a schedule with the numbers of the configuration's world."""
    numbers: dict[str, Any] = {**SCHEDULES[name], **api.world(config.world).schedules.get(name, {})}
    if name in ("live", "paper"):
        numbers |= dict(overlap=config.overlap)
        if config.rate is not None:
            numbers["rate"] = config.rate
        if config.hold is not None:
            numbers["hold_min"], numbers["hold_max"] = config.hold
    if name != "off":
        numbers |= dict(one_agent=config.one_agent)
    return make_schedule(**numbers)


def make_run(config: ExperimentConfig, preset: Preset, task: Task, seed: int) -> Run:
    """Return the run of one seed of a configuration."""
    method = METHODS[config.method]
    rules = reward.rules_of(
        task.env,
        task.file,
        rule=config.rule,
        only=config.kinds,
        extras=config.extras,
        penalty=config.penalty,
        bonus=config.bonus,
    )
    phrases = Phrases(table=task.lexicon.table, count=task.lexicon.count)
    if not method.hears:
        # It is evaluated under instructions but does not hear them: every phrase is silence to it.
        phrases = replace(phrases, table=jnp.zeros_like(phrases.table))

    def environment(
        schedule: str, judges_work: bool = True, **training: float | bool
    ) -> InstructedEnv:
        clock = schedule_of(config, schedule)
        numbers = {k: jnp.asarray(v, getattr(clock, k).dtype) for k, v in training.items()}
        clock = replace(clock, **numbers)
        return InstructedEnv(
            env=task.env, rules=rules, schedule=clock, phrases=phrases, judges_work=judges_work
        )

    trained_under = {"none": "off", "interrupt": config.schedule, "per_episode": "from_start"}
    drills = dict(drill_prob=preset.drill_prob)
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
    trained_in = environment(
        trained_under[method.instructions], asks, **training[method.instructions]
    )
    weighted = replace(rules, weight=reward.weights_of(task.file, config.weights))
    return Run(
        hyper=hyperparams_of(preset),
        correction=jax.tree.map(jnp.float32, CORRECTIONS[method.correction]),
        train_env=replace(trained_in, rules=weighted),
        test_env=environment(config.schedule),
        eval_epsilon=jnp.float32(method.random),
        key=jax.random.key(seed),
    )


def stack(runs: list[Run]) -> Run:
    """Return many runs as one record. All leaves get a new first axis."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]), *runs)


def rollout_policy(
    static: StaticConfig,
    actor: Any,
    vectors: Array,
    epsilon: Array,
    greedy: Array | bool = False,
    second: bool = False,
) -> Policy:
    """Return a team as a rollout policy. `epsilon` [CONTEXTS] is by context.

    To a team that hears nothing, nothing is asked. `second` says whether there is room for a second instruction.
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
        context = jnp.where(observed.instructed, asked, 0)
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
