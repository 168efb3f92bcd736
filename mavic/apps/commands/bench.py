"""`mavic bench`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional

from mavic.apps import console
from mavic.apps.commands.command import Command, UserError
from mavic.apps.commands.options import WorldName
from mavic.ranges import Range, Some


@dataclass(frozen=True, kw_only=True)
class Bench(Command):
    """Measure speed: the environment alone, training, what each part of a training costs, compilation, memory.

    Takes about three minutes for a built-in world on two cores. Every figure is printed, and written to --json, as soon
    as it is known.

    For example:
      mavic bench box_pushing --json bench.json
      mavic bench box_pushing --network shared residual --backbone mac-iac mac-cac
      mavic bench box_pushing --against bench.json
    """

    world: Positional[WorldName] = "box_pushing"
    """The world to measure in."""
    network: Annotated[tuple[str, ...], Some()] = ("residual",)
    """The networks to train."""
    backbone: Annotated[tuple[str, ...], Some()] = ("mac-iac",)
    """The backbones to train, each with every network."""
    seeds: Annotated[int, Range(1, 1_000)] = 4
    """The number of seeds that train at once. A multiple of the number of cores leaves none idle."""
    population: Annotated[int, Range(1, 1_000)] = 1
    """The number of members of each seed."""
    repeats: Annotated[int, Range(1, 1_000)] = 3
    """The number of interleaved repeats; medians are shown."""
    json: Path | None = None
    """Also write the figures to this file."""
    against: Path | None = None
    """Also compare the figures with those of an earlier file."""

    def run(self) -> None:
        """Carry out the command."""
        import json

        from mavic.storage import files
        from mavic.studies import benchmark

        earlier = _earlier(self.against, self.world) if self.against else None
        if self.json:
            files.check_writable(self.json.parent)

        def keep(found: Mapping[str, Any]) -> None:
            if self.json:
                files.write_text(self.json, json.dumps(found, indent=1) + "\n")

        found = benchmark.measure(
            self.world,
            networks=self.network,
            backbones=self.backbone,
            seeds=self.seeds,
            population=self.population,
            repeats=self.repeats,
            say=_say,
            keep=keep,
        )
        if earlier is not None:
            for name, ratio in benchmark.ratios(found, earlier).items():
                _say(f"{name}: {ratio:.2f} × {self.against}")


def _earlier(path: Path, world: str) -> dict[str, Any]:
    """Return an earlier measurement of a world."""
    from mavic.storage import files, json_shape

    try:
        found = json_shape.parse(files.read_bytes(path))
        json_shape.check(found, {"world": str})
    except (OSError, ValueError) as error:
        raise UserError(f"--against {path}: no measurement of mavic bench: {error}") from None
    if found["world"] != world:
        raise UserError(f"--against {path}: it is of {found['world']}, not of {world}")
    return found


def _say(line: str) -> None:
    console.OUT.print(line, highlight=False, soft_wrap=True)
