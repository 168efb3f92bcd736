"""`mavic bench`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from mavic.apps import console
from mavic.apps.commands.command import Command
from mavic.apps.commands.options import WorldName
from mavic.ranges import Range, Some


@dataclass(frozen=True, kw_only=True)
class Bench(Command):
    """Measure speed: the environment alone, training with learning, compile time, peak memory.

    Example: mavic bench box_pushing --json bench.json
    """

    world: Positional[WorldName] = "box_pushing"
    """The world to measure in."""
    seeds: Annotated[int, Range(1, 1_000)] = 5
    """The number of trainings at once."""
    repeats: Annotated[int, Range(1, 1_000)] = 3
    """The number of interleaved repeats; medians are shown."""
    backbone: Annotated[tuple[str, ...], Some()] | None = None
    """The backbones to train; all of them if none is named."""
    json: Path | None = None
    """Also write the figures to this file."""

    def run(self) -> None:
        """Carry out the command."""
        import json

        from mavic.learn.backbones import BACKBONES
        from mavic.storage import files
        from mavic.studies import benchmark

        if self.json:
            files.check_writable(self.json.parent)
        found = benchmark.measure(
            self.world,
            seeds=self.seeds,
            repeats=self.repeats,
            backbones=self.backbone or tuple(BACKBONES),
            console=console.OUT,
        )
        if self.json:
            files.write_text(self.json, json.dumps(found, indent=1) + "\n")
