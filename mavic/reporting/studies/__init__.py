"""Records → the pages of studies: `draw(study, …)` makes JSON, Markdown, SVG and PNG from records alone.

The same records always give the same bytes. DRAWINGS has one row for each study of `mavic.studies.studies`:

    page     what all pages share: a training's rows, texts and numbers of a row, tables in Markdown
    table1   the paper's Table 1 beside ours
    maps     over penalty, rate and hold: heatmap, atlas
    lines    over training and under one kind: curves, compliance, single, dual
    unseen   phrases and requests that were not in training: ood, infeasible
    lists    of settings: rare, agents, ablation, shaping
    answers  what each study claims and what it showed, in one line
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mavic.experiment import records
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.records import Record
from mavic.preset import FOLLOW_EPISODES
from mavic.reporting import drawing, rows
from mavic.reporting.studies import lines, lists, maps, table1, unseen
from mavic.reporting.studies.page import Page, TrainingRows
from mavic.storage import files
from mavic.studies.studies import Study
from mavic.studies.trainings import Training

DRAWINGS: dict[str, Callable[[Sequence[TrainingRows]], Page]] = {
    name: draw
    for module in (table1, maps, lines, unseen, lists)
    for name, draw in module.DRAWINGS.items()
}
COPIED = "studies"  # the part of a published folder that holds the records of studies
LENGTHS = ("episodes", *FOLLOW_EPISODES)  # numbers in which a shorter training differs


@dataclass(frozen=True, kw_only=True)
class _Collected:
    """The rows of a study's records, and which records they come from."""

    found: tuple[TrainingRows, ...]
    missing: tuple[tuple[str, str], ...]
    """The trainings and configurations without a record."""
    used: Mapping[Path, Record]
    """The records by where they lie in a published folder."""


@dataclass(frozen=True, kw_only=True)
class _Drawn:
    """The page of a study and its files."""

    text: str
    """The page in Markdown; empty if there are no records."""
    written: tuple[Path, ...]
    missing: tuple[tuple[str, str], ...]
    """The trainings and configurations without a record."""


def draw(
    study: Study,
    profile: str,
    jobs: Path,
    further: Path | None,
    out: Path,
    publish: Path | None = None,
) -> _Drawn:
    """Make a study's page from records.

    Args:
        study: The study.
        profile: Which of its trainings are shown: "full" or "quick".
        jobs: The folder with the records of its jobs.
        further: A published folder, whose records serve where a job has none.
        out: Where the page is written.
        publish: If it is given, the page is written there too, and the records are copied there unless they come from
            there.
    """
    collected = collect(study.trainings[profile], jobs, further)
    if study.trainings[profile] and not collected.found:
        return _Drawn(text="", written=(), missing=collected.missing)
    page = DRAWINGS[study.name](collected.found)
    written = list(_write(study.name, page, out))
    if publish is not None:
        written += _write(study.name, page, publish)
        written += _copied(collected.used, publish)
    return _Drawn(text=page.markdown, written=tuple(written), missing=collected.missing)


def collect(trainings: Iterable[Training], jobs: Path, further: Path | None) -> _Collected:
    """Return the rows of trainings.

    Args:
        trainings: The trainings.
        jobs: The folder with the records of their jobs.
        further: A published folder, whose records serve where a job has none.
    """
    found, missing, used = list[TrainingRows](), list[tuple[str, str]](), dict[Path, Record]()
    for training in trainings:
        records_ = []
        for config in training.configs():
            record = _find(training, config, jobs, further)
            if record is None or record.finite().score is None:
                missing.append((training.name, config.name()))
            else:
                records_.append(record)
        if records_:
            own = tuple(row for row in rows.table(records_) if not row.shield)
            found.append(TrainingRows(training=training, rows=own))
            used |= {_place(training, record): record for record in records_}
    return _Collected(found=tuple(found), missing=tuple(missing), used=used)


def _find(
    training: Training, config: ExperimentConfig, jobs: Path, further: Path | None
) -> Record | None:
    """Return the record of a configuration: of the training's job, or a published one; None if there is none.

    A published record of plain `mavic train` serves if it was made with the same numbers, apart from the length of
    training.
    """
    name = Path(training.world) / f"{config.name()}.jsonl"
    places = [jobs / training.name / name]
    if further is not None:
        places += [further / COPIED / training.name / name, further / name]
    for path in (path for place in places for path in (place, place.with_name(f"{name.name}.gz"))):
        if path.is_file():
            record = records.read(path)
            if record.config() == config and _same_numbers(record, training):
                return record
    return None


def _same_numbers(record: Record, training: Training) -> bool:
    mine, theirs = map(dataclasses.asdict, (record.preset(), training.preset()))
    return all(mine[name] == theirs[name] for name in mine if name not in LENGTHS)


def _write(name: str, page: Page, folder: Path) -> Iterator[Path]:
    """Write a page to a folder: NAME.json, NAME.md and its figures. Yield the paths."""
    files.check_writable(folder)
    pictures = [
        path for stem, make in page.figures.items() for path in drawing.save(folder / stem, make)
    ]
    shown = "".join(f"\n![{name}]({path.name})\n" for path in pictures if path.suffix == ".png")
    texts = {
        "json": json.dumps(records.plain(page.json), indent=1, ensure_ascii=False) + "\n",
        "md": page.markdown.rstrip("\n") + "\n" + shown,
    }
    for ending, text in texts.items():
        path = folder / f"{name}.{ending}"
        files.write_text(path, text)
        yield path
    yield from pictures


def _place(training: Training, record: Record) -> Path:
    """Return where a record lies in a published folder, compressed."""
    name = f"{record.path.name.removesuffix('.gz')}.gz"
    return Path(COPIED) / training.name / training.world / name


def _copied(used: Mapping[Path, Record], folder: Path) -> list[Path]:
    """Copy records into a published folder, unless they lie there already. Return the new files."""
    new = {
        folder / place: record
        for place, record in used.items()
        if not record.path.resolve().is_relative_to(folder.resolve())
    }
    for path, record in new.items():
        files.write_bytes(path, records.compressed(records.content(record.path)))
    return list(new)
