"""Run records → tables and figures: `report(folder)` makes all of them from the JSON-lines files alone.

The same records always give the same bytes. The steps are `rows.table` (records → rows), `tables.group_tables` (rows →
tables of texts), `writers` (texts of files), `figures` and `terminal`. Reports need the extra `report`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from mavic.experiment.records import RecordError, read_folder
from mavic.reporting import terminal
from mavic.reporting.figures import write_figures
from mavic.reporting.rows import table
from mavic.reporting.writers import FILES, Contents
from mavic.storage import files


@dataclass(frozen=True, kw_only=True)
class ReportPaths:
    """The files that a report wrote, and the unfinished records that it left out."""

    json: Path
    markdown: Path
    latex: Path
    csv: Path
    kinds_csv: Path
    figures: tuple[Path, ...]
    unfinished: tuple[Path, ...]

    def written(self) -> tuple[Path, ...]:
        """Return all files that were written."""
        return (*(getattr(self, name) for name in FILES), *self.figures)


def report(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    console: Console | None = None,
    brief: bool = False,
) -> ReportPaths:
    """Make all tables and figures of the records in a folder. Unfinished records are named and left out.

    Args:
        folder: The folder of the records.
        out: Where the files go. Default: the folder of the records.
        console: Where tables are also printed, if it is given.
        brief: Print only a small table and a sentence on what it shows.
    """
    folder = Path(folder)
    records = read_folder(folder)
    unfinished = tuple(record.path for record in records if record.finite().score is None)
    if len(unfinished) == len(records):
        raise RecordError(
            f"{folder}: every record is unfinished (no score line yet): {_names(unfinished)}"
        )
    rows = table(records)
    out = Path(out) if out is not None else folder
    files.check_writable(out)
    figures = write_figures(rows, out / "figures")
    relative = [path.relative_to(out) for path in figures]
    shown = Contents(rows=rows, figures=relative, unfinished=unfinished)
    texts = {out / name: write(shown) for name, write in FILES.values()}
    for path, text in texts.items():  # all texts are made before the first file is written
        files.write_text(path, text)
    if console is not None:
        terminal.show(rows, console, brief=brief)
        if unfinished:
            console.print(f"unfinished records, left out: {_names(unfinished)}", style="yellow")
        for record in records:
            if lost := record.diverged():
                seeds = ", ".join(map(str, lost))
                console.print(f"{record.path.name}: diverged, left out: {seeds}", style="yellow")
    named = {field: out / name for field, (name, _) in FILES.items()}
    return ReportPaths(**named, figures=figures, unfinished=unfinished)


def _names(paths: tuple[Path, ...]) -> str:
    return ", ".join(path.name for path in paths)
