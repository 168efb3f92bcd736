"""`mavic report`."""

from __future__ import annotations

from dataclasses import dataclass

from tyro.conf import Positional

from mavic.apps import console
from mavic.apps.commands.command import Command
from mavic.apps.commands.options import Folder


@dataclass(frozen=True, kw_only=True)
class Report(Command):
    """Make tables and figures from records alone.

    If the folder holds one folder of records for each world, all of them are reported. If the records are of several
    backbones, the table of backbones is made too.

    For example:
      mavic report results/box_pushing
      mavic report results/backbones
    """

    folder: Positional[Folder]
    """The folder of the records (*.jsonl, *.jsonl.gz), or a folder of such folders."""
    out: Folder | None = None
    """Where to write (default: the same folder)."""
    brief: bool = False
    """Print one small table and a sentence on what it shows. All tables are in the files."""

    def run(self) -> None:
        """Carry out the command."""
        from mavic.experiment import records
        from mavic.reporting import backbones, report

        below = [] if records.paths_in(self.folder) else backbones.record_folders(self.folder)
        for folder in below or [self.folder]:
            out = self.out / folder.name if below and self.out else self.out
            made = report.report(folder, out, console=console.OUT, brief=self.brief)
            if self.brief:
                console.OUT.print(f"all tables: {made.markdown}", soft_wrap=True)
        if below:
            path = backbones.write_table(self.folder, self.out or self.folder)
            if path is not None:
                console.OUT.print(f"the table of backbones: {path}", soft_wrap=True)
