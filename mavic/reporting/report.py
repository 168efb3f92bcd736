"""Run records → tables and figures: `report(folder)` makes all of them from the JSON-lines files alone.

The same records always give the same bytes. The steps are `rows.table` (records → rows), `tables.group_tables` (rows →
tables of texts), `writers` (texts of files) and `figures`. Reports need the extra `report`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from mavic.experiments import files
from mavic.experiments.records import RecordError, read_folder
from mavic.reporting import brief as briefs
from mavic.reporting import writers
from mavic.reporting.figures import write_figures
from mavic.reporting.rows import table


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
        tables = (self.json, self.markdown, self.latex, self.csv, self.kinds_csv)
        return (*tables, *self.figures)


def report(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    console: Console | None = None,
    brief: bool = False,
) -> ReportPaths:
    """Make all tables and figures of the records in `folder`, in `out` (default: the folder itself).

    With a console, tables are also printed; with `brief`, only a small one and a sentence on what it shows. Unfinished
    records are named and left out."""
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
    paths = ReportPaths(
        json=out / "table.json",
        markdown=out / "table.md",
        latex=out / "table.tex",
        csv=out / "table.csv",
        kinds_csv=out / "kinds.csv",
        figures=figures,
        unfinished=unfinished,
    )
    relative = [path.relative_to(out) for path in figures]
    texts = {
        paths.json: writers.json_text(rows),
        paths.markdown: writers.markdown_text(rows, relative, unfinished),
        paths.latex: writers.latex_text(rows),
        paths.csv: writers.csv_text(rows),
        paths.kinds_csv: writers.kinds_csv_text(rows),
    }
    for path, text in texts.items():
        files.write_text(path, text)
    if console is not None:
        briefs.show(rows, console) if brief else writers.show(rows, console)
        if unfinished:
            console.print(f"unfinished records, left out: {_names(unfinished)}", style="yellow")
        for record in records:
            if lost := record.diverged():
                seeds = ", ".join(map(str, lost))
                console.print(f"{record.path.name}: diverged, left out: {seeds}", style="yellow")
    return paths


def _names(paths: tuple[Path, ...]) -> str:
    return ", ".join(path.name for path in paths)
