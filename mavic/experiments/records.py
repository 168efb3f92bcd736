"""Run records: JSON lines, the only source of tables and figures.

One file per configuration, `<method>-<preset>-<network>-<schedule>-<rule>[-overlap][-extras].jsonl`. Its first line is
of type `run` (configuration, preset numbers, seeds, versions). Lines of type `curve` follow, one for each evaluation
during training, and one line `score` with the final evaluation. A number that differs between seeds is a list with one
entry per seed; seeds are never averaged on disk. `given` and `followed` count instructions by kind. The score has the
sections of `mavic.experiments.metrics` and, under `shield`, those with instructions a second time: the same team while
what the instruction forbids was unavailable. `optima` has the returns of the best plans that obey each kind.
"""

from __future__ import annotations

import dataclasses
import json
import math
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from mavic.experiments.config import ExperimentConfig
from mavic.preset import Preset


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
    """Return the first line of a file."""
    return {
        "type": "run",
        "config": dataclasses.asdict(config),
        "preset": dataclasses.asdict(preset),
        "seeds": list(seeds),
        "versions": versions(),
        **more,
    }


def plain(value: Any) -> Any:
    """Return a value for JSON: arrays as lists, floats with six digits, and None for what is not finite."""
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
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    draft.write_text("".join(json.dumps(plain(line)) + "\n" for line in lines), encoding="utf-8")
    draft.replace(path)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """One file, parsed."""

    path: Path
    run: dict[str, Any]
    curve: list[dict[str, Any]]
    score: dict[str, Any] | None

    def config(self) -> ExperimentConfig:
        """Return the configuration that was trained."""
        return ExperimentConfig.of(self.run["config"])


def read(path: str | Path) -> Record:
    """Return one parsed file."""
    path = Path(path)
    lines = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError as error:
            raise RecordError(f"{path}:{number}: not JSON: {error.msg}") from None
    if not lines or lines[0].get("type") != "run":
        raise RecordError(f"{path}:1: the first line must be of type run")
    scores = [line for line in lines if line["type"] == "score"]
    run = lines[0]
    if "cell" in run:  # the name of version 0.1
        run["config"] = run.pop("cell")
    return Record(
        path=path,
        run=run,
        curve=[line for line in lines if line["type"] == "curve"],
        score=scores[-1] if scores else None,
    )


def read_folder(folder: str | Path) -> list[Record]:
    """Return all records of a folder, in the order of their names."""
    folder = Path(folder)
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise RecordError(f"{folder}: no records (*.jsonl) here")
    return [read(path) for path in paths]
