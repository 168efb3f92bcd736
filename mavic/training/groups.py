"""Groups: the configurations that train in one compiled program.

The configurations of a group differ only in numbers (method, schedule, rule), so all of them and all seeds train at
once.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mavic.experiment import records
from mavic.experiment.axes import AXES
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import preset_of
from mavic.preset import Preset
from mavic.teams import file as policy_files


@dataclass(frozen=True, kw_only=True)
class Group:
    """Configurations of one world, backbone, network, hearing, encoder and preset, with their seeds."""

    configs: tuple[ExperimentConfig, ...]
    seeds: tuple[int, ...]
    preset: Preset
    initial: str = ""  # a policy whose weights every run starts from; empty: random weights
    initial_sha256: str = ""  # the hash of these weights: the file may change

    def __post_init__(self) -> None:
        if len({(c.program(), json.dumps(c.options)) for c in self.configs}) != 1:
            raise ValueError(
                "configurations of one group must share their options and "
                + ", ".join(name for name, one in AXES.items() if one.program)
            )

    def conflicting_records(self, folder: Path) -> Iterator[tuple[Path, str]]:
        """Yield each record in a folder that the group would replace by a different one, and what differs.

        What differs is an axis that the name of a record does not tell, such as "options", or "seeds", "numbers" or
        "initial weights".
        """
        for config in self.configs:
            path = folder / f"{config.name()}.jsonl"
            if not path.is_file():
                continue
            old = records.read(path)
            presets = (dataclasses.asdict(preset) for preset in (old.preset(), self.preset))
            pairs: dict[str, Any] = {
                **{name: (getattr(old.config(), name), getattr(config, name)) for name in AXES},
                "seeds": (old.run["seeds"], self.seeds),
                "numbers": tuple(presets),
                "initial weights": (old.run.get("initial_sha256", ""), self.initial_sha256),
            }
            for what, (before, now) in pairs.items():
                if records.plain(before) != records.plain(now):
                    yield path, what

    @property
    def population(self) -> int:
        """Return how many members of each seed begin."""
        return self.configs[0].population

    @property
    def cells(self) -> int:
        """Return how many trained configurations times seeds there are. Each has a population of its own."""
        return len(self.trained()) * len(self.seeds)

    def trained(self) -> tuple[ExperimentConfig, ...]:
        """Return what is trained. Configurations that differ only in evaluation share a training."""
        return tuple(dict.fromkeys(config.as_trained() for config in self.configs))


def groups_of(
    configs: Iterable[ExperimentConfig],
    seeds: Sequence[int],
    initial: str | Path | None = None,
    **changes: Any,
) -> list[Group]:
    """Return the configurations sorted into groups.

    Args:
        configs: what is trained.
        seeds: the seeds of every configuration.
        initial: a policy file or shipped team from whose weights every run starts.
        changes: preset numbers to override.
    """
    found: dict[tuple, list[ExperimentConfig]] = {}
    for config in configs:
        found.setdefault(config.program(), []).append(config)
    return [
        Group(
            configs=tuple(members),
            seeds=tuple(seeds),
            preset=preset_of(members[0].preset, members[0].world, members[0].backbone, **changes),
            initial=str(initial or ""),
            initial_sha256="" if initial is None else policy_files.weights_digest(initial),
        )
        for members in found.values()
    ]
