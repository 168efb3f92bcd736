"""`mavic report`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from mavic.apps import console
from mavic.apps.commands.command import Command


@dataclass(frozen=True, kw_only=True)
class Report(Command):
    """Make tables and figures from records alone.

    Example: mavic report results/box_pushing
    """

    folder: Positional[Path]
    """The folder of the records (*.jsonl)."""
    out: Path | None = None
    """Where to write (default: the same folder)."""
    brief: bool = False
    """Print one small table and a sentence on what it shows. All tables are in the files."""

    def run(self) -> None:
        """Carry out the command."""
        from mavic.reporting import report

        made = report.report(self.folder, self.out, console=console.OUT, brief=self.brief)
        if self.brief:
            console.OUT.print(f"all tables: {made.markdown}", highlight=False, soft_wrap=True)
