"""A training of a study: one `mavic train` command with numbers of its own, and what it costs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import preset_of
from mavic.preset import Preset
from mavic.session import session
from mavic.studies.jobs import Job
from mavic.training import population

WORLDS = ("box_pushing", "warehouse", "overcooked")
PROFILES = ("full", "quick")
FIRST_SEED = 200  # seeds from here on were never used to choose numbers
PLAIN = {  # the schedule alone: no uninstructed episodes, no spurious interrupts, no enforced prohibitions
    "uninstructed_episode_prob": 0.0,
    "spurious_interrupt_prob": 0.0,
    "hold_to_end_prob": 0.0,
    "from_start_prob": 0.0,
    "drill_prob": 0.0,
}


@dataclass(frozen=True, kw_only=True)
class Training:
    """One `mavic train` command."""

    name: str
    world: str
    axes: Mapping[str, Any] = field(default_factory=dict)
    """Values by the names of `mavic.experiment.axes.AXES`."""
    condition: tuple[str, ...] = ("live/by-kind",)
    seeds: int = 10
    first_seed: int = FIRST_SEED
    numbers: Mapping[str, Any] = field(default_factory=dict)
    words: bool = False
    """Evaluate in unseen phrases too."""
    quick: bool = False
    """Evaluate with a quarter of the episodes, in brief."""

    def arguments(self, out: Path) -> tuple[str, ...]:
        """Return the arguments of the interpreter. Records go to the world's folder in `out`."""
        named: dict[str, Any] = {
            **self.axes,
            "condition": self.condition,
            "seeds": self.seeds,
            "first_seed": self.first_seed,
            "out": out,
            **self.numbers,
            "quick": self.quick,
            "brief": self.quick,
            "words": self.words,
            "overwrite": True,  # whatever an earlier command left in the job's folder is its own
        }
        words = ["-m", "mavic", "train", self.world]
        for name, value in named.items():
            if isinstance(value, Mapping):  # options of the world
                value = tuple(word for pair in value.items() for word in pair)
            if value is not False:
                words.append(f"--{name.replace('_', '-')}")
            if not isinstance(value, bool):
                words += map(str, value if isinstance(value, tuple) else (value,))
        return tuple(words)

    def job(self, folder: Path) -> Job:
        """Return the job of this training; its folder lies in `folder`."""
        own = folder / self.name
        makes = tuple(f"{self.world}/{config.name()}.jsonl" for config in self.configs())
        return Job(name=self.name, folder=own, arguments=self.arguments(own), makes=makes)

    def configs(self) -> list[ExperimentConfig]:
        """Return the configurations that it trains."""
        return list(self._configs)

    @functools.cached_property
    def _configs(self) -> tuple[ExperimentConfig, ...]:
        return tuple(session.configs_of(self.world, condition=self.condition, **self.axes))

    def runs(self) -> int:
        """Return how many runs it trains."""
        return len({config.as_trained() for config in self.configs()}) * self.seeds

    def episodes(self) -> int:
        """Return the episodes of all its runs together."""
        (members,) = {config.population for config in self.configs()}
        return round(self.runs() * self.preset().episodes * population.cost(members, POINTS))

    def updates(self) -> float:
        """Return the updates of a run. All runs are updated at once."""
        preset = self.preset()
        return preset.episodes / preset.batch

    def preset(self) -> Preset:
        """Return its numbers."""
        config = self.configs()[0]
        return preset_of(config.preset, self.world, config.backbone, **self.numbers)

    def seconds(self, device: str) -> float:
        """Return about how long it takes on a device, "cpu" (two cores) or "gpu" (one H200)."""
        episodes = self.episodes() + self.runs() * EVALUATED
        ticks = episodes * TICKS[self.world]
        trained = max(ticks / STEPS[device][self.world], self.updates() * UPDATE[device])
        cuts = len(population.cuts(self.configs()[0].population, POINTS))
        return trained + COMPILING[device][self.world] + cuts * COMPILING_AGAIN

    def but(self, **axes: Any) -> Training:
        """Return the same training with some axes changed."""
        return dataclasses.replace(self, axes={**self.axes, **axes})


def training(name: str, world: str, **given: Any) -> Training:
    """Return a training. Names that are not fields of `Training` are axes."""
    own = {field.name for field in dataclasses.fields(Training)}
    axes = {key: value for key, value in given.items() if key not in own}
    axes.setdefault("preset", "tuned")  # what the published records were trained with
    fields = {key: value for key, value in given.items() if key in own}
    return Training(name=name, world=world, axes=axes, **fields)


# What the worlds cost, for estimates: the mean length of a training episode in ticks, and training steps per second on
# two cores (bench-cpu.json of each world; for Overcooked a mean of early and trained episodes, lab 151) and on one H200
# that trains dozens of runs at once (bench-gpu.json).
TICKS = {"box_pushing": 20, "warehouse": 120, "overcooked": 130}
STEPS = {
    "cpu": {"box_pushing": 130_000, "warehouse": 159_000, "overcooked": 90_000},
    "gpu": {"box_pushing": 3_000_000, "warehouse": 5_000_000, "overcooked": 5_000_000},
}
COMPILING = {  # seconds
    "cpu": {"box_pushing": 130.0, "warehouse": 130.0, "overcooked": 300.0},
    "gpu": {"box_pushing": 120.0, "warehouse": 120.0, "overcooked": 120.0},
}
COMPILING_AGAIN = 50.0  # seconds, after members of a population were dropped (seen on an H200)
# However small its batch, an update takes this long on a GPU: with the preset `paper` 37 ms alone in Overcooked, and 42
# in Warehouse beside one other training (the records in results/repeat-table1).
UPDATE = {"cpu": 0.0, "gpu": 0.04}  # seconds, at least
EVALUATED = 7_000  # episodes that a run plays for its learning curve and its score
POINTS = 20  # of a learning curve
QUICK_JOBS = 2  # quick trainings at once where there is no GPU: they mostly compile, which keeps one core busy each


def seconds_of_all(trainings: Sequence[Training], profile: str, device: str) -> float:
    """Return about how long trainings take together as `mavic reproduce` runs them on one machine, in seconds.

    Args:
        trainings: the trainings of a study.
        profile: "full" or "quick".
        device: "cpu" or "gpu".
    """
    jobs = QUICK_JOBS if profile == "quick" and device == "cpu" and len(trainings) > 1 else 1
    return sum(one.seconds(device) for one in trainings) / jobs
