"""Tasks by the name of a world, for tests of several folders."""

from __future__ import annotations

from typing import Any

from mavic.experiment.config import ExperimentConfig
from mavic.experiment.task import Task, task_of


def make_task(world: str, *, hear: str = "vectors", **options: Any) -> Task:
    """The task of a world whose agents hear vectors; `options` go to the environment."""
    return task_of(ExperimentConfig(world=world, hear=hear), **options)
