"""Run records: JSON lines, the only source of tables and figures.

One file per configuration, `<method>-<preset>-[<backbone>-]<network>-<condition>.jsonl`. Its first line has the type
`run` (configuration, preset numbers, seeds, versions). Lines of the type `curve` follow, one for each evaluation during
training, and one line `score` with the final evaluation. A number that differs between seeds is a list with one entry
per seed; seeds are never averaged on disk. `given` and `followed` count instructions by kind. The score has the
sections of `mavic.evaluation.metrics` and, under `shield`, those with instructions a second time: the same team while
what the instruction forbids was unavailable. `optima` has the returns of the best plans that obey each kind.

A record may be compressed, as `.jsonl.gz`. All records in `results/` are.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import math
import platform
import zlib
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mavic.experiment.config import ExperimentConfig
from mavic.preset import Preset
from mavic.storage import files, json_shape

RUN = {  # the shapes of lines
    "config": dict,
    "preset": dict,
    "seeds": [int],
    "versions": json_shape.Map(str),
}
NUMBER = (float, type(None))
CURVE = {"episodes": int, "base": [NUMBER], "compliance": [NUMBER]}
SCORE = {"episodes": int}
SHARES = ("compliance", "per_instruction", "per_decision", "per_step", "solved", "obeyed")


class RecordError(ValueError):
    """A record cannot be read. The message names the file and the line."""


def versions() -> dict[str, str]:
    """Return the versions and the device that the numbers were made with."""
    from importlib.metadata import version

    found = {name: version(name) for name in ("jax", "optax", "numpy")}
    return {
        "mavic": __import__("mavic").__version__,
        "python": platform.python_version(),
        **found,
        "device": jax.devices()[0].device_kind,
    }


def run_line(
    config: ExperimentConfig, preset: Preset, seeds: Iterable[int], **more: Any
) -> dict[str, Any]:
    """Return the first line of a file.

    Args:
        config: what was trained.
        preset: its numbers.
        seeds: its seeds.
        more: further entries, such as steps_per_second.
    """
    return {
        "type": "run",
        "config": dataclasses.asdict(config),
        "preset": dataclasses.asdict(preset),
        "seeds": list(seeds),
        "versions": versions(),
        **more,
    }


def plain(value: Any) -> Any:
    """Return a value for JSON: arrays as lists, floats with six digits, and None for numbers that are not finite."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return plain(np.asarray(value).tolist())
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def write(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Write a record whole or not at all, with its hash in the first line.

    Args:
        path: the file.
        lines: its lines, the run first.
    """
    made = [plain(line) for line in lines]
    made[0]["sha256"] = _digest(made)
    files.write_text(path, "".join(json.dumps(line) + "\n" for line in made))


def _digest(lines: list[dict[str, Any]]) -> str:
    """Return the hash of a record's lines. The hash in the first line does not count."""
    run = {name: value for name, value in lines[0].items() if name != "sha256"}
    return files.digest_of([run, *lines[1:]])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """One file, parsed."""

    path: Path
    run: dict[str, Any]
    curve: list[dict[str, Any]]
    score: dict[str, Any] | None

    def config(self) -> ExperimentConfig:
        """Return the configuration that was trained."""
        return self._config

    @cached_property
    def _config(self) -> ExperimentConfig:
        try:
            return ExperimentConfig.of(self.run["config"])
        except (ValueError, TypeError, AttributeError) as error:
            raise RecordError(f"{self.path}:1: config: {error}") from None

    def preset(self) -> Preset:
        """Return the numbers that it was trained with."""
        try:
            return Preset.of(self.run["preset"])
        except (ValueError, TypeError, AttributeError) as error:
            raise RecordError(f"{self.path}:1: preset: {error}") from None

    def diverged(self) -> list[int]:
        """Return the seeds that have no score because their training diverged."""
        points = (self.score or {}).get("diverged") or []
        return [s for s, point in zip(self.run["seeds"], points, strict=False) if point is not None]

    def finite(self) -> Record:
        """Return the record without the seeds that diverged. If all did, it has no score."""
        lost = self.diverged()
        if not lost:
            return self
        seeds = self.run["seeds"]
        kept = [place for place, seed in enumerate(seeds) if seed not in lost]
        return dataclasses.replace(
            self,
            run={**self.run, "seeds": [seeds[place] for place in kept]},
            curve=[_only(line, kept, len(seeds)) for line in self.curve],
            score=_only(self.score, kept, len(seeds)) if kept else None,
        )


def _only(value: Any, places: list[int], seeds: int) -> Any:
    """Return a line with the entries of some seeds only. Every list of that length is by seed."""
    if isinstance(value, dict):
        return {name: _only(one, places, seeds) for name, one in value.items()}
    if isinstance(value, list) and len(value) == seeds:
        return [value[place] for place in places]
    return value


def read(path: str | Path) -> Record:
    """Return one parsed file. A damaged file or one of another shape is a `RecordError` that names the line."""
    path = Path(path)
    lines = []
    for number, text in enumerate(_text(path).splitlines(), start=1):
        try:
            line = json_shape.parse(text)
            json_shape.check(line, {"type": str}, "the line")
        except json_shape.ShapeError as error:
            raise RecordError(f"{path}:{number}: {error}") from None
        lines.append(line)
    if not lines or lines[0]["type"] != "run":
        raise RecordError(f"{path}:1: the first line must be of type run")
    run = lines[0]
    if run.get("sha256") != _digest(lines):
        how = "its hash differs" if run.get("sha256") else "it has no hash"
        raise RecordError(
            f"{path}: damaged or edited ({how}); take it from a backup, or train again"
        )
    for number, line in enumerate(lines, start=1):
        try:
            _check_line(line, run)
        except json_shape.ShapeError as error:
            raise RecordError(f"{path}:{number}: {error}") from None
    scores = [line for line in lines if line["type"] == "score"]
    for name, count in (
        ("run", sum(line["type"] == "run" for line in lines)),
        ("score", len(scores)),
    ):
        if count > 1:
            raise RecordError(f"{path}: it has {count} lines of type {name}; one is allowed")
    curve = [line for line in lines if line["type"] == "curve"]
    episodes = [line["episodes"] for line in curve]
    if episodes != sorted(set(episodes)):
        raise RecordError(f"{path}: the points of its curve are not in order")
    return Record(path=path, run=run, curve=curve, score=scores[-1] if scores else None)


def compressed(record: bytes) -> bytes:
    """Return a record's bytes as those of a `.jsonl.gz` file. Equal records give equal files."""
    return gzip.compress(record, mtime=0)


def content(path: Path) -> bytes:
    """Return the bytes of a record, which may be compressed. An unreadable file is a `RecordError`."""
    try:
        return files.read_bytes(path)
    except files.TooLargeError as error:
        raise RecordError(str(error)) from None
    except (EOFError, zlib.error) as error:
        raise RecordError(f"{path}: damaged ({error})") from None
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror or error})") from None


def _text(path: Path) -> str:
    try:
        return content(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordError(
            f"{path}: not UTF-8 text ({error.reason} at byte {error.start})"
        ) from None


def _check_line(line: dict[str, Any], run: dict[str, Any]) -> None:
    """Raise `ShapeError` unless a line has the shape of its type."""
    if line["type"] == "run":
        json_shape.check(line, RUN)
        if not line["seeds"]:
            raise json_shape.ShapeError("seeds is empty")
        if len(set(line["seeds"])) < len(line["seeds"]):
            raise json_shape.ShapeError("seeds holds a seed twice")
    elif line["type"] == "curve":
        json_shape.check(line, CURVE)
        _check_seeds({name: line[name] for name in ("base", "compliance")}, len(run["seeds"]))
    elif line["type"] == "score":
        json_shape.check(line, SCORE)
        _check_seeds(line, len(run["seeds"]))


def _check_seeds(value: Any, seeds: int, where: str = "") -> None:
    """Raise `ShapeError` unless every list has one number or null per seed, and every number is finite."""
    if isinstance(value, dict):
        for name, one in value.items():
            _check_seeds(one, seeds, f"{where}.{name}" if where else name)
    elif isinstance(value, list):
        json_shape.check(value, [NUMBER], where)
        if len(value) != seeds:
            raise json_shape.ShapeError(
                f"{where} needs one entry per seed ({seeds}), not {len(value)}"
            )
        if where.rpartition(".")[2] in SHARES:
            for share in value:
                if share is not None and not 0 <= share <= 1:
                    raise json_shape.ShapeError(f"{where} must be a share from 0 to 1, not {share}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        json_shape.check(value, float, where)


def paths_in(folder: Path, below: str = "") -> list[Path]:
    """Return the paths of all records of a folder, in the order of their names.

    Args:
        folder: the folder.
        below: "*/" searches the folders in it instead.
    """
    found = (folder.glob(f"{below}*{ending}") for ending in (".jsonl", ".jsonl.gz"))
    return sorted(path for paths in found for path in paths)


def read_folder(folder: str | Path) -> list[Record]:
    """Return all records of a folder, in the order of their names."""
    folder = Path(folder)
    paths = paths_in(folder)
    if not paths:
        raise RecordError(f"{folder}: no records (*.jsonl) here")
    return [read(path) for path in paths]
