"""`mavic check`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.markup import escape
from rich.table import Column, Table
from tyro.conf import Positional

from mavic.apps import console
from mavic.apps.commands.command import Command, UserError, options_from
from mavic.apps.commands.options import WorldName
from mavic.ranges import Range


@dataclass(frozen=True, kw_only=True)
class Check(Command):
    """Check the kinds of instruction of a world before anything is trained.

    Random teams are given every kind, free and with forbidden macros made unavailable. Each mistake is a line that says
    what to change. Errors stop a training. `mavic train` makes a shorter check of your own worlds.

    For example:
      mavic check box_pushing
      mavic check rescue --plugins rescue
    """

    world: Positional[WorldName]
    """The world."""
    instructions: Path | None = None
    """Another instruction file for it."""
    options: tuple[tuple[str, str], ...] = ()
    """Options of the world, such as: --options size 8."""
    episodes: Annotated[int, Range(8, 10_000)] = 48
    """How many are played for each kind, free and enforced each."""

    def run(self) -> None:
        """Carry out the command."""
        from mavic.experiment import check
        from mavic.instruct.spec import InstructionFile

        file = None if self.instructions is None else InstructionFile.read(self.instructions)
        found = check.check(
            self.world, file=file, options=options_from(self.options), episodes=self.episodes
        )
        kind = Column("kind", no_wrap=True)
        table = Table(kind, "given", "followed at random", "followed when enforced")
        for row in found.played:
            shares = ("—" if x is None else f"{x:.0%}" for x in (row.followed, row.enforced))
            table.add_row(row.kind, str(row.given), *shares)
        console.OUT.print(table)
        for one in (*found.errors, *found.warnings):
            colour = "red" if one.level == check.ERROR else "yellow"
            console.OUT.print(f"[{colour}]{one.level}[/] {escape(str(one))}", soft_wrap=True)
        if found.errors:
            count = len(found.errors)
            raise UserError(f"{count} error{'s' * (count > 1)} in the instructions of {self.world}")
        if not found.warnings:
            console.OUT.print("nothing to change")
