"""The environment of a configuration: the world with its instructions and their schedule."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from mavic.envs import api
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import METHODS
from mavic.experiment.task import Task
from mavic.instruct import reward
from mavic.instruct.schedule import METHOD_SCHEDULES, SCHEDULES, make_schedule
from mavic.rollout.step import InstructedEnv
from mavic.types import Phrases, Schedule, replace


def instructed_env(
    config: ExperimentConfig,
    task: Task,
    schedule: str | None = None,
    *,
    judges_work: bool = True,
    **numbers: float | bool,
) -> InstructedEnv:
    """Return the environment in which the teams of a configuration are tested, or one with another schedule.

    Args:
        config: the configuration.
        task: its task.
        schedule: the name of the schedule; None is that of the configuration.
        judges_work: see `InstructedEnv`.
        **numbers: fields of the schedule that differ.

    Returns:
        The environment. Methods that do not hear are instructed too, but every phrase is silence to them.
    """
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
    if not METHODS[config.method].hears:
        phrases = replace(phrases, table=jnp.zeros_like(phrases.table))
    clock = _schedule_of(config, schedule or config.schedule)
    changed = {name: jnp.asarray(x, getattr(clock, name).dtype) for name, x in numbers.items()}
    return InstructedEnv(
        env=task.env,
        rules=rules,
        schedule=replace(clock, **changed),
        phrases=phrases,
        judges_work=judges_work,
    )


def _schedule_of(config: ExperimentConfig, name: str) -> Schedule:
    """Return a schedule with the numbers of the configuration's world."""
    row = (SCHEDULES | METHOD_SCHEDULES)[name]
    numbers: dict[str, Any] = {**row, **api.world(config.world).schedules.get(name, {})}
    if name in SCHEDULES:
        numbers |= dict(overlap=config.overlap)
        if config.rate is not None:
            numbers["rate"] = config.rate
        if config.hold is not None:
            numbers["hold_min"], numbers["hold_max"] = config.hold
    if name != "off":
        numbers |= dict(one_agent=float(config.one_agent))
    return make_schedule(**numbers)
