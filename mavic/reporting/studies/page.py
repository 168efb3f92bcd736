"""What the pages of all studies share: a page is JSON, Markdown and figures, made from rows alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mavic.experiments.metrics import METRICS
from mavic.experiments.studies import Training
from mavic.reporting import formats, styles
from mavic.reporting.rows import Row
from mavic.reporting.stats import Estimate
from mavic.reporting.styles import MISSING


@dataclass(frozen=True, kw_only=True)
class Found:
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


Figure = Callable[[], Any]  # draws a figure of matplotlib


@dataclass(frozen=True, kw_only=True)
class Page:
    """A study as JSON, Markdown and figures by name."""

    json: Mapping[str, Any]
    markdown: str
    figures: Mapping[str, Figure] = field(default_factory=dict)


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    written = [header, ["---"] * len(header), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in written)


def shown(row: Row, metric: str, kind: str = "") -> str:
    """Return a metric of a row as text: its mean and, with several seeds, ± its standard deviation."""
    return text_of(estimate_of(row, metric, kind), metric)


def text_of(found: Estimate, metric: str) -> str:
    """Return an estimate as a metric is written."""
    format = METRICS[metric].format
    mean = formats.mean(found, format)
    if mean == MISSING or not math.isfinite(found.std):
        return mean
    write = formats.hundredths if format.percent else formats.number
    std = write(found.std, format.digits)
    return f"{mean.removesuffix(' %')} ± {std}{' %' * format.percent}"


def estimate_of(row: Row, metric: str, kind: str = "") -> Estimate:
    """Return a metric over seeds, of one kind or overall."""
    return row.estimate(metric, kind) if kind else row.estimate(metric)


def numbers(row: Row, metrics: Mapping[str, str], kind: str = "") -> dict[str, float]:
    """Return the mean and standard deviation of metrics, by the names that they get: NAME and NAME_std."""
    found = {name: estimate_of(row, metric, kind) for name, metric in metrics.items()}
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
    """Return in words what a row was trained as, without its method."""
    config = row.config
    backbone = "" if config.backbone == "mac-iac" else f", backbone {config.backbone}"
    return (
        f"preset `{config.preset}`, network `{row.network}`, hears {config.hear}, condition "
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
