"""What can be told of a training while it runs: callbacks that get every point of the learning curves.

    mavic.train("box_pushing", on_point=[loggers.tensorboard("logs")])

Records remain the only source of tables; these are copies to watch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mavic.experiment.config import ExperimentConfig

LOGGED = ("base", "compliance", "entropy", "value")


@dataclass(frozen=True, kw_only=True)
class Point:
    """One point of the learning curves of a group. Runs are ordered by configuration, then by seed."""

    configs: tuple[ExperimentConfig, ...]
    seeds: tuple[int, ...]
    number: int
    """1 for the first point."""
    total: int
    """How many points there will be."""
    values: dict[str, Any]
    """`episodes` and `steps_per_second`; and, as arrays over runs, `base` (return), `compliance` and more."""

    @property
    def episodes(self) -> int:
        """The training episodes so far."""
        return self.values["episodes"]

    def runs(self) -> Iterator[tuple[str, int, dict[str, float]]]:
        """Yield each run's configuration, seed and numbers. Pairs (uninstructed, instructed) are value/0, value/1."""
        for row, config in enumerate(self.configs):
            for column, seed in enumerate(self.seeds):
                yield config.name(), seed, self._numbers(row * len(self.seeds) + column)

    def _numbers(self, run: int) -> dict[str, float]:
        found: dict[str, float] = {}
        for name in LOGGED:
            if name in self.values:
                own = np.asarray(self.values[name])[run]
                parts = (
                    {name: own} if own.ndim == 0 else {f"{name}/{i}": x for i, x in enumerate(own)}
                )
                found |= {key: float(value) for key, value in parts.items()}
        return found


OnPoint = Callable[[Point], None]


def tensorboard(folder: str | Path) -> OnPoint:
    """Return a callback that writes event files for TensorBoard, one folder for each configuration and seed."""
    from tensorboardX import SummaryWriter

    writers: dict[tuple[str, int], Any] = {}

    def on_point(point: Point) -> None:
        for name, seed, numbers in point.runs():
            place = Path(folder) / name / f"seed-{seed}"
            if (name, seed) not in writers:
                writers[name, seed] = SummaryWriter(str(place), write_to_disk=True)
            writer = writers[name, seed]
            for key, value in numbers.items():
                writer.add_scalar(key, value, point.episodes)
            writer.add_scalar("steps_per_second", point.values["steps_per_second"], point.episodes)
            writer.flush()  # a training may be stopped at any time
            if point.number == point.total:
                writers.pop((name, seed)).close()

    return on_point


def wandb(folder: str | Path, project: str = "mavic", **more: Any) -> OnPoint:
    """Return a callback that logs to one run of Weights & Biases.

    Args:
        folder: where its files go.
        project: the project of the run.
        more: further arguments of `wandb.init`, such as mode="offline".
    """
    import wandb as tracker

    Path(folder).mkdir(parents=True, exist_ok=True)
    run = tracker.init(project=project, dir=str(folder), **more)

    def on_point(point: Point) -> None:
        line = {"episodes": point.episodes, "steps_per_second": point.values["steps_per_second"]}
        for name, seed, numbers in point.runs():
            line |= {f"{name}/seed-{seed}/{key}": value for key, value in numbers.items()}
        run.log(line)

    return on_point


LOGGERS: dict[str, Callable[[Path], OnPoint]] = {"tensorboard": tensorboard, "wandb": wandb}
