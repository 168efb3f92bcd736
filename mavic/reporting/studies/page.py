"""What the pages of all studies share. A page is JSON, Markdown and figures, made from rows alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mavic.evaluation.metrics import METRICS, OVERALL
from mavic.reporting import formats, styles
from mavic.reporting.rows import Row
from mavic.studies.trainings import Training

NAMES = {"base": "base", "followed": "compliance", "live": "live", "leak": "leak"}
"""The metrics that most studies put into JSON, by the names that they get there."""


@dataclass(frozen=True, kw_only=True)
class TrainingRows:
    """A training, and the rows of its records, in the order of tables."""

    training: Training
    rows: tuple[Row, ...]

    @property
    def world(self) -> str:
        """The training's world."""
        return self.training.world

    def of(self, condition: str) -> list[Row]:
        """Return the rows under one condition."""
        return [row for row in self.rows if row.config.condition() == condition]

    def conditions(self) -> list[str]:
        """Return the conditions that have rows, in the order of the training."""
        known = {row.config.condition() for row in self.rows}
        asked = dict.fromkeys(config.condition() for config in self.training.configs())
        return [condition for condition in asked if condition in known]


@dataclass(frozen=True, kw_only=True)
class Page:
    """A study as JSON, Markdown and figures by their names."""

    json: Mapping[str, Any]
    markdown: str
    figures: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    """Functions that draw figures of matplotlib."""


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown, from the cells of its header and of its lines."""
    written = [header, ["---"] * len(header), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in written)


def texts(row: Row, *metrics: str, kind: str = OVERALL) -> list[str]:
    """Return the cells of metrics: the mean of each and, with several seeds, ± its standard deviation.

    Args:
        row: The row.
        *metrics: The metrics.
        kind: The kind of instruction; default: overall.
    """
    return [formats.spread(row.estimate(name, kind), METRICS[name].format) for name in metrics]


def numbers(row: Row, metrics: Mapping[str, str] = NAMES, kind: str = OVERALL) -> dict[str, float]:
    """Return the means and standard deviations of metrics for JSON, as NAME and NAME_std.

    Args:
        row: The row.
        metrics: The metrics by the names that they get.
        kind: The kind of instruction; default: overall.
    """
    found = {name: row.estimate(metric, kind) for name, metric in metrics.items()}
    return {
        key: value
        for name, one in found.items()
        for key, value in ((name, one.mean), (f"{name}_std", one.std))
    }


def facts(row: Row) -> dict[str, Any]:
    """Return which seeds and how many training episodes a row stands for."""
    return {
        "seeds": list(row.seeds),
        "episodes": row.episodes,
        **({"diverged": list(row.diverged)} if row.diverged else {}),
    }


def setting(row: Row) -> str:
    """Return the axes of a row's training in words, without its method."""
    config = row.config
    backbone = "" if config.backbone == "mac-iac" else f", backbone {config.backbone}"
    return (
        f"preset `{config.preset}`, network `{config.network}`, hears {config.hear}, condition "
        f"`{config.condition()}`{backbone}"
    )


def seeds_text(rows: Sequence[Row]) -> str:
    """Return the seeds and training episodes of rows as a sentence."""
    said = dict.fromkeys(
        f"{len(row.seeds)} seeds ({row.seeds[0]}–{row.seeds[-1]}) of {row.episodes:,} episodes"
        if len(row.seeds) > 1
        else f"one seed ({row.seeds[0]}) of {row.episodes:,} episodes"
        for row in rows
        if not row.method.random
    )
    return "; ".join(said) + "."


def label(row: Row) -> str:
    """Return a row's method as tables call it."""
    return "dual (naive)" if styles.is_dual(row.config) else row.full_label
