"""Records → the pages of studies: `draw(study, …)` makes JSON, Markdown, SVG and PNG from records alone.

The same records always give the same bytes. DRAWINGS has one row for each study of `mavic.experiments.studies`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mavic.experiments import files, records
from mavic.experiments.config import ExperimentConfig
from mavic.experiments.methods import FOLLOW_EPISODES, preset_of
from mavic.experiments.records import Record
from mavic.experiments.studies import Study, Training
from mavic.reporting import figures, rows
from mavic.reporting.studies import lines, lists, maps, table1, words
from mavic.reporting.studies.page import Found, Page

DRAWINGS: dict[str, Callable[[Sequence[Found]], Page]] = {
    "table1": table1.draw,
    "heatmap": maps.heatmap,
    "curves": lines.curves,
    "single": lines.single,
    "compliance": lines.compliance,
    "dual": lines.dual,
    "ood": words.ood,
    "infeasible": words.infeasible,
    "rare": lists.rare,
    "shaping": lists.shaping,
    "agents": lists.agents,
    "atlas": maps.atlas,
    "ablation": lists.ablation,
}
COPIED = "studies"  # the folder of a published folder that holds the records of trainings with numbers of their own
LENGTHS = ("episodes", *FOLLOW_EPISODES)  # numbers in which a shorter training differs


@dataclass(frozen=True, kw_only=True)
class Collected:
    """What the records of a study hold."""

    found: tuple[Found, ...]
    missing: tuple[tuple[str, str], ...]
    """The trainings and configurations without a record."""
    used: Mapping[Path, Record]
    """The records by where they lie in a published folder."""


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """What was made of a study."""

    text: str
    """The page in Markdown; empty if there are no records."""
    written: tuple[Path, ...]
    missing: tuple[tuple[str, str], ...]
    """The trainings and configurations without a record."""


def draw(
    study: Study,
    profile: str,
    cells: Path,
    further: Path | None,
    out: Path,
    publish: Path | None = None,
) -> Drawn:
    """Make a study's page in `out` from the records of its cells, in `cells`, and of the folder `further`.

    With `publish`, the page is written there too, and the records are copied there unless they come from there.
    """
    collected = collect(study.trainings[profile], cells, further)
    if study.trainings[profile] and not collected.found:
        return Drawn(text="", written=(), missing=collected.missing)
    page = DRAWINGS[study.name](collected.found)
    written = list(write(study.name, page, out))
    if publish is not None:
        written += write(study.name, page, publish)
        written += _copied(collected.used, publish)
    return Drawn(text=page.markdown, written=tuple(written), missing=collected.missing)


def collect(trainings: Iterable[Training], cells: Path, further: Path | None) -> Collected:
    """Return the rows of trainings from the records of their cells, in `cells`, and of the folder `further`."""
    found, missing, used = list[Found](), list[tuple[str, str]](), dict[Path, Record]()
    for training in trainings:
        records_ = []
        for config in training.configs():
            record = find(training, config, cells, further)
            if record is None or record.finite().score is None:
                missing.append((training.name, config.name()))
            else:
                records_.append(record)
        if records_:
            own = tuple(row for row in rows.table(records_) if not row.shield)
            found.append(Found(training=training, rows=own))
            used |= {_place(training, record): record for record in records_}
    return Collected(found=tuple(found), missing=tuple(missing), used=used)


def find(
    training: Training, config: ExperimentConfig, cells: Path, further: Path | None
) -> Record | None:
    """Return the record of a configuration: of the training's cell, or a published one; None if there is none.

    A published record of plain `mavic train` serves if it was made with the same numbers, apart from the length of
    training.
    """
    name = Path(training.world) / f"{config.name()}.jsonl"
    places = [cells / training.name / name]
    if further is not None:
        places += [further / COPIED / training.name / name, further / name]
    for path in (
        found for place in places for found in (place, place.with_name(f"{place.name}.gz"))
    ):
        if path.is_file():
            record = records.read(path)
            if record.config() == config and _same_numbers(record, training):
                return record
    return None


def _same_numbers(record: Record, training: Training) -> bool:
    asked = preset_of(training.preset, training.world, training.backbone, **training.numbers)
    mine, theirs = (dataclasses.asdict(preset) for preset in (record.preset(), asked))
    return all(mine[name] == theirs[name] for name in mine if name not in LENGTHS)


def write(name: str, page: Page, folder: Path) -> Iterator[Path]:
    """Write a page to a folder: NAME.json, NAME.md and its figures. Yield the paths."""
    files.check_writable(folder)
    pictures = [
        path for stem, make in page.figures.items() for path in figures.save(folder / stem, make)
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
