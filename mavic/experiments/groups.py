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

from mavic.experiments import policy_file, records
from mavic.experiments.config import ExperimentConfig
from mavic.experiments.methods import preset_of
from mavic.preset import Preset


@dataclass(frozen=True, kw_only=True)
class Group:
    """Configurations of one world, backbone, network, hearing, encoder and preset, with their seeds."""

    configs: tuple[ExperimentConfig, ...]
    seeds: tuple[int, ...]
    preset: Preset
    initial: str = ""  # a policy whose weights every run starts from; empty: random weights
    initial_sha256: str = ""  # the hash of these weights: the file may change

    def __post_init__(self) -> None:
        if len({(_program(c), json.dumps(c.options)) for c in self.configs}) != 1:
            raise ValueError(
                "configurations of one group must share world, backbone, network, hearing, encoder, "
                "preset and options"
            )

    def trained(self) -> tuple[ExperimentConfig, ...]:
        """Return what is trained. Configurations that differ only in evaluation share a training."""
        return tuple(dict.fromkeys(config.as_trained() for config in self.configs))


def groups_of(
    configs: Iterable[ExperimentConfig],
    seeds: Sequence[int],
    initial: str | Path | None = None,
    **changes: Any,
) -> list[Group]:
    """Return the configurations sorted into groups. `changes` are preset numbers to override.

    With `initial`, a policy file or a shipped team, every run starts from its weights.
    """
    found: dict[tuple, list[ExperimentConfig]] = {}
    for config in configs:
        found.setdefault(_program(config), []).append(config)
    return [
        Group(
            configs=tuple(members),
            seeds=tuple(seeds),
            preset=preset_of(members[0].preset, members[0].world, members[0].backbone, **changes),
            initial=str(initial or ""),
            initial_sha256="" if initial is None else policy_file.weights_digest(initial),
        )
        for members in found.values()
    ]


def _program(config: ExperimentConfig) -> tuple[str, ...]:
    """Return what configurations must share to train in one compiled program."""
    return (
        config.world,
        config.backbone,
        config.network,
        config.hear,
        config.encoder,
        config.preset,
    )


def conflicting_records(groups: Iterable[Group], folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield each record in `folder` that these groups would replace by a different one, and what differs.

    What differs is "options", "encoder", "seeds", "numbers" or "initial weights". The name of a record tells only its
    method, preset, network and condition.
    """
    for group in groups:
        for config in group.configs:
            path = folder / f"{config.name()}.jsonl"
            if not path.is_file():
                continue
            old = records.read(path)
            pairs = {
                "options": (old.config().options, config.options),
                "encoder": (old.config().encoder, config.encoder),
                "seeds": (old.run["seeds"], group.seeds),
                "numbers": (
                    dataclasses.asdict(old.preset()),
                    dataclasses.asdict(group.preset),
                ),
                "initial weights": _initial_weights(old, group),
            }
            for what, (before, now) in pairs.items():
                if records.plain(before) != records.plain(now):
                    yield path, what


def _initial_weights(old: records.Record, group: Group) -> tuple[str, str]:
    """Return what a record and a group start from: hashes, or names of files where the record has no hash."""
    if "initial" in old.run and "initial_sha256" not in old.run:
        return old.run["initial"], group.initial
    return old.run.get("initial_sha256", ""), group.initial_sha256
