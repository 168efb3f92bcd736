"""Run records → rows: one row per finished record, with every metric estimated over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mavic.envs import api
from mavic.evaluation import collapse, metrics
from mavic.evaluation.metrics import METRICS, OVERALL, SECTIONS, Metric
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import METHODS, Method
from mavic.experiment.records import Record, RecordError
from mavic.reporting import styles
from mavic.reporting.stats import UNKNOWN, Difference, Estimate, difference, estimates

CURVES = tuple(metric.name for metric in metrics.CURVES)
"""The metrics that are measured during training, and their names in curve lines."""


@dataclass(frozen=True, kw_only=True)
class _Curve:
    """Learning: the training episodes of each point, and [points, seeds] of each metric of CURVES."""

    episodes: tuple[int, ...]
    points: Mapping[str, np.ndarray]
    seconds: float = math.nan
    """How long the trainings of its program took together, with compilation; nan if the record does not say."""

    def has(self, metric: str) -> bool:
        """Return whether a metric was measured during training."""
        return not np.isnan(self.points[metric]).all()

    def episodes_to(self, base: float) -> np.ndarray:
        """Return [seeds]: the training episodes after which the base return first was at least `base`; inf if never."""
        reached = self.points[metrics.BASE.name] >= base
        if not reached.size:
            return np.full(reached.shape[1], math.inf)
        first = np.asarray(self.episodes, float)[reached.argmax(axis=0)]
        return np.where(reached.any(axis=0), first, math.inf)


@dataclass(frozen=True, kw_only=True)
class _UnseenPhrases:
    """A set of phrases that were not in training, and the share of instructions in them that was followed."""

    phrases: int
    understood: int
    followed: Estimate
    """Of understood phrases. A team that hears vectors hears the nearest training phrase of the same kind; a team that
    hears kinds hears the reader's probabilities."""
    own_vector: Estimate
    """Of understood phrases, heard as their own vectors; the same as `followed` if the team hears kinds."""
    own_vector_anyway: Estimate
    """Of all phrases, heard as their own vectors or as the reader's probabilities."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A config and its metrics over seeds. Shares, compliance and value bias are fractions."""

    config: ExperimentConfig
    seeds: tuple[int, ...]
    preset: Mapping[str, Any]
    versions: Mapping[str, str]
    episodes: int
    """Training episodes."""
    optimum: float | None
    estimates: Mapping[tuple[str, str], Estimate]
    """By metric and kind of instruction; OVERALL stands for the number that is not split by kind."""
    evaluation_episodes: Mapping[str, int]
    """Episodes that every seed played at least, by section of the score line."""
    given: Mapping[str, tuple[int, ...]]
    """Instructions that each seed was given, by kind."""
    unseen: Mapping[str, _UnseenPhrases]
    """By set of phrases; empty if they were not evaluated."""
    leak_over_baseline: Difference | None
    """None for the baseline itself, or if the baseline has no record."""
    curve: _Curve
    words: Mapping[str, Any]
    """The entry `words` of the score line: unseen phrases as they were recorded."""
    requests: Mapping[str, Any]
    """The entry `requests` of the score line: macros chosen under requests that no team can fulfil."""
    optima: Mapping[str, float | None]
    """The return of the best plan that obeys a kind, by kind; None where it is not known."""
    collapsed: Mapping[str, float]
    """Kinds under which the task collapses, with the share of the base return that is left. Where the best plan
    is known, its share says so and this is empty."""
    diverged: tuple[int, ...] = ()
    """Seeds that are left out because their training diverged."""
    shield: bool = False
    """Whether forbidden macros were unavailable during evaluation."""

    @property
    def name(self) -> str:
        """Its key in `table.json`: the method, or the method and the shield."""
        return f"{self.config.method}+shield" if self.shield else self.config.method

    @property
    def group(self) -> str:
        """The table that the row belongs to: preset/[backbone/]network/condition."""
        return self.config.table_group()

    @property
    def network(self) -> str:
        """Its backbone and network in figures, and what its agents hear if that is not the default."""
        return " ".join(self.config.team_names())

    @property
    def label(self) -> str:
        """Its name in tables."""
        return styles.label(self.config, self.shield)

    @property
    def method(self) -> Method:
        """The method of its config."""
        return METHODS[self.config.method]

    @property
    def full_label(self) -> str:
        """Its label, with a note for methods that hear no instructions."""
        return (
            self.label
            if self.method.hears or self.shield
            else f"{self.label} {styles.HEARS_NOTHING}"
        )

    @property
    def world(self) -> api.World:
        """The facts of its world; only the name if the world is not registered here."""
        return api.known(self.config.world)

    @property
    def paper(self) -> api.PaperFigures | None:
        """The paper's numbers for this method; None if it has none, or used another network or condition."""
        unlike = self.shield or not self.config.is_papers()
        return None if unlike else self.world.paper.get(self.config.method)

    @property
    def given_by_seed(self) -> tuple[int, ...]:
        """Instructions of all kinds that each seed was given."""
        return tuple(map(sum, zip(*self.given.values(), strict=True))) or (0,)

    def estimate(self, metric: str, kind: str = OVERALL) -> Estimate:
        """Return a metric over seeds, overall or of one kind of instruction; all nan if it is unknown."""
        return self.estimates.get((metric, kind), UNKNOWN)

    def over_kinds(self, metric: str) -> tuple[float, float]:
        """Return a metric's mean over kinds and seeds, and its minimum: the worst kind of the worst seed."""
        found = [self.estimate(metric, kind) for kind in self.kinds(metric)]
        if not found:
            return math.nan, math.nan
        return sum(e.mean for e in found) / len(found), min(e.min for e in found)

    def kinds(self, metric: str) -> tuple[str, ...]:
        """Return the kinds of instruction for which a metric is known, in the order of the record."""
        return tuple(k for name, k in self.estimates if name == metric and _is_kind(metric, k))


def _is_kind(metric: str, kind: str) -> bool:
    """Return whether `kind` is a kind and not the number that is not split by kind."""
    return kind != OVERALL or not METRICS[metric].overall


def table(records: Iterable[Record]) -> list[Row]:
    """Return finished records as rows, the headline group first.

    Unfinished records and seeds that diverged are left out.
    A record that was also evaluated with the shield has a second row, if its method is one of `styles.SHIELDED`.
    """
    records = list(records)
    lost = {record.path: tuple(record.diverged()) for record in records}
    done = {r.path: found for r in records if (found := r.finite()).score is not None}
    configs = {path: record.config() for path, record in done.items()}
    _check_comparable(configs)

    def baseline(config: ExperimentConfig) -> Record | None:
        # The baseline is trained without instructions, so it also serves for overlap and extras.
        alike = [
            path
            for path, other in configs.items()
            if other.method == styles.BASELINE and _compared_by(other) == _compared_by(config)
        ]
        exact = [path for path in alike if configs[path].table_group() == config.table_group()]
        return next((done[path] for path in (*exact, *alike)), None)

    rows = [
        replace(_checked(_row, done[path], config, baseline(config)), diverged=lost[path])
        for path, config in configs.items()
    ]
    rows += [
        replace(_checked(_shielded_row, done[path], config), diverged=lost[path])
        for path, config in configs.items()
        if config.method in styles.SHIELDED and "shield" in (done[path].score or {})
    ]
    return sorted(rows, key=lambda row: (styles.rank(row.config), row.shield))


def _checked(make: Callable[..., Row], record: Record, *more: Any) -> Row:
    """Return a row of a record. A missing or misshapen entry of the score line is a `RecordError`."""
    try:
        return make(record, *more)
    except RecordError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise RecordError(
            f"{record.path}: the lines are not as mavic writes them ({type(error).__name__}: {error})"
        ) from None


def _compared_by(config: ExperimentConfig) -> tuple[str, ...]:
    names = ("preset", "backbone", "network", "hear", "encoder", "schedule", "rule")
    return tuple(getattr(config, name) for name in names)


def _check_comparable(configs: Mapping[Any, ExperimentConfig]) -> None:
    """Check that a folder has one world, and a table one row per method with the same options of the world."""
    worlds = dict.fromkeys(config.world for config in configs.values())
    if len(worlds) > 1:
        raise RecordError(
            f"records of several worlds in one folder ({', '.join(worlds)}): "
            "give each world a folder of its own"
        )
    firsts: dict[str, Any] = {}
    rows: dict[tuple[str, str], Any] = {}
    for path, config in configs.items():
        other = rows.setdefault((config.table_group(), config.method), path)
        if other is not path:
            raise RecordError(
                f"{other.name} and {path.name} are both {config.method} of {config.table_group()}"
            )
        first = firsts.setdefault(config.table_group(), path)
        for name in ("options", "encoder"):
            mine, theirs = getattr(config, name), getattr(configs[first], name)
            if mine != theirs:
                raise RecordError(
                    f"{first.name} and {path.name} belong to one table, {config.table_group()}, but "
                    f"differ in {name} ({theirs} and {mine}): give each a folder of its own"
                )


def _row(record: Record, config: ExperimentConfig, baseline: Record | None) -> Row:
    score = record.score
    assert score is not None
    columns = _columns(record, config)
    found = estimates(np.concatenate(list(columns.values()), axis=1))
    against = None
    if baseline is not None and config.method != styles.BASELINE:
        pair = [_values(r, METRICS["leak"])[:, 0] for r in (record, baseline)]
        if min(map(len, pair)) > 1:  # the spread of a single seed is unknown
            against = difference(*pair)
    section, (_, given) = metrics.COMPLIANCE.section, metrics.COMPLIANCE.counts or ("", "")
    return Row(
        config=config,
        seeds=tuple(record.run["seeds"]),
        preset=record.run["preset"],
        versions=record.run["versions"],
        episodes=int(score["episodes"]),
        optimum=score.get("optimum"),
        estimates=dict(zip(columns, found, strict=True)),
        evaluation_episodes={
            name: int(part["episodes"])
            for name, part in score.items()
            if name in metrics.FREE and "episodes" in part
        },
        given={
            kind: tuple(int(x) for x in _numbers(record, (section, given, kind))[:, 0])
            for kind in _kinds(record, config, metrics.COMPLIANCE)
        },
        unseen=_unseen(record),
        leak_over_baseline=against,
        curve=_curve(record, config),
        words=score.get("words", {}),
        requests=score.get("requests", {}),
        optima=score.get("optima", {}),
        collapsed={} if score.get("optimum") else collapse.collapses(score),
    )


def _shielded_row(record: Record, config: ExperimentConfig) -> Row:
    """Return the row of a team that was evaluated again with the shield. Its critic is judged in the other row."""
    score = record.score or {}
    row = _row(replace(record, score={**score, **score["shield"]}), config, None)
    known = {key: found for key, found in row.estimates.items() if key[0] != "leak"}
    return replace(row, shield=True, estimates=known, unseen={})


def _columns(record: Record, config: ExperimentConfig) -> dict[tuple[str, str], np.ndarray]:
    """Return the numbers [seeds, 1] of every metric, by metric and kind."""
    columns = {}
    for metric in METRICS.values():
        if metric.overall:
            columns[metric.name, OVERALL] = _values(record, metric)
        for kind in _kinds(record, config, metric):
            columns[metric.name, kind] = _values_of_kind(record, metric, kind)
    return columns


def _values(record: Record, metric: Metric) -> np.ndarray:
    """Return a metric [seeds, 1] that is not split by kind; nan if an optional metric is not recorded."""
    score = record.score or {}
    if metric.optional and metric.key not in score[metric.section]:
        return np.full((_sample_size(record), 1), math.nan)
    return _numbers(record, metric.path()) / _per(record, metric)


def _values_of_kind(record: Record, metric: Metric, kind: str) -> np.ndarray:
    """Return a metric [seeds, 1] under one kind of instruction."""
    if metric.counts is None:
        return _numbers(record, metric.path(kind)) / _per(record, metric, kind)
    counts = [_numbers(record, (metric.section, name, kind)) for name in metric.counts]
    return metrics.Ratio(*(count[:, 0] for count in counts)).value()[:, None]


def _per(record: Record, metric: Metric, kind: str = OVERALL) -> np.ndarray | float:
    """Return the reference that divides the recorded number: 1, or `metric.per` of the score line; nan if unknown."""
    if not metric.per:
        return 1.0
    path = metric.per.split(".")
    found: Any = record.score
    for name in path:
        found = (found or {}).get(name)
    if isinstance(found, dict):
        found = found.get(kind)
    numbers = _numbers(record, path) if isinstance(found, list) else _floats([found])
    # Shares are undefined for references that are not positive.
    return np.where(numbers > 0, numbers, math.nan)


def _kinds(record: Record, config: ExperimentConfig, metric: Metric) -> list[str]:
    """Return the kinds for which a record holds a metric."""
    score = record.score or {}
    if metric.counts is not None:
        _, given = metric.counts
        kinds = list(score[metric.section][given])
        return [k for k in kinds if _numbers(record, (metric.section, given, k)).any()]
    if not SECTIONS[metric.section].held:
        return []
    # Older records have no section `under`, or not all of it.
    section = score.get(metric.section, {})
    kinds = [kind for kind in section if not metric.optional or metric.key in section[kind]]
    if metric.overall:  # values under an instruction are learnt only by methods that hear it
        return [kind for kind in kinds if kind != OVERALL and METHODS[config.method].hears]
    return [k for k in kinds if np.isfinite(_values_of_kind(record, metric, k)).all()]


def _sample_size(record: Record) -> int:
    """Return the number of independent samples: the seeds, but 1 for random, whose seeds play the same episodes."""
    return 1 if METHODS[record.config().method].random else len(record.run["seeds"])


def _numbers(record: Record, path: Sequence[str]) -> np.ndarray:
    """Return the entries per seed from the score line as [seeds, 1]; nan for what is not a number."""
    found: Any = record.score
    for name in path:
        if not isinstance(found, dict) or name not in found:
            raise RecordError(f"{record.path}: the score line has no {'.'.join(path)}")
        found = found[name]
    seeds = len(record.run["seeds"])
    if not isinstance(found, list) or len(found) != seeds:
        raise RecordError(
            f"{record.path}: {'.'.join(path)} of the score line needs one entry per seed ({seeds})"
        )
    numbers = _floats(found[: _sample_size(record)])
    return np.where(np.isfinite(numbers), numbers, math.nan)[:, None]


def _floats(values: Iterable[float | None]) -> np.ndarray:
    return np.asarray([math.nan if x is None else x for x in values], float)


def _curve(record: Record, config: ExperimentConfig) -> _Curve:
    """Return the learning curve. Metrics of instructed episodes are nan if training had another condition."""
    seeds = len(record.run["seeds"])
    unknown = [None] * seeds
    points = {
        name: np.asarray([_floats(line.get(name, unknown)) for line in record.curve]).reshape(
            -1, seeds
        )
        for name in CURVES
    }
    if config.as_trained().condition() != config.condition():
        for metric in metrics.CURVES:
            if SECTIONS[metric.section].instructed:
                points[metric.name] = np.full_like(points[metric.name], math.nan)
    return _Curve(
        episodes=tuple(line["episodes"] for line in record.curve),
        points=points,
        seconds=sum(line.get("seconds", math.nan) for line in record.curve) or math.nan,
    )


def _unseen(record: Record) -> dict[str, _UnseenPhrases]:
    keys = ("per_instruction", "own_vector", "own_vector_anyway")

    def one_set(name: str, entry: Mapping[str, Any]) -> _UnseenPhrases:
        columns = [_numbers(record, ("words", name, key)) for key in keys]
        followed, own, anyway = estimates(np.concatenate(columns, axis=1))
        return _UnseenPhrases(
            phrases=entry["phrases"],
            understood=entry["understood"],
            followed=followed,
            own_vector=own,
            own_vector_anyway=anyway,
        )

    found = (record.score or {}).get("words", {})
    return {name: one_set(name, entry) for name, entry in found.items()}


def grouped(rows: Sequence[Row], by: Callable[[Row], str]) -> dict[str, list[Row]]:
    """Return rows by a text, in the order of first appearance.

    Args:
        rows: The rows.
        by: Returns the text of a row.
    """
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(by(row), []).append(row)
    return found


def shown_lines(section: str, rows: Sequence[Row]) -> list[Metric]:
    """Return the metrics that a table of `under` or `pairs` shows for these rows.

    A metric that no row has is left out. A share without a number stays, unless another stands in for it.
    """
    lines = metrics.lines_of(section)
    stands_in = {
        m.unless: m.name
        for m in lines
        if m.unless and known_kinds(rows, m.name) and not known_kinds(rows, m.unless)
    }
    return [
        m
        for m in lines
        if m.name not in stands_in
        and (m.name in stands_in.values() if m.unless else m.per or known_kinds(rows, m.name))
    ]


def known_kinds(rows: Iterable[Row], metric: str) -> list[str]:
    """Return the kinds for which any of the rows has a metric."""
    return list(dict.fromkeys(kind for row in rows for kind in row.kinds(metric)))
