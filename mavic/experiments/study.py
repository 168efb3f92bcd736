"""What one `mavic train` or `mavic.train` does, from a few names: training, evaluation, records and policies.

The studies of `mavic reproduce` are rows of `mavic.experiments.studies`; each needs several such trainings.
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console

from mavic.experiments import (
    checkpoint,
    divergence,
    evaluate,
    files,
    infeasible,
    records,
    runner,
    unseen_phrases,
)
from mavic.experiments.config import DEFAULT_BACKBONE, ExperimentConfig, task_of
from mavic.experiments.groups import Group, conflicting_records, groups_of
from mavic.experiments.loggers import OnPoint
from mavic.experiments.methods import METHODS
from mavic.experiments.policy_file import TeamPolicy
from mavic.experiments.trained import (
    Trained,
    median_seed,
    record_lines,
    save_policy,
    team_of,
    trained_of,
)
from mavic.language.encoder import DEFAULT as DEFAULT_ENCODER

QUICK = 0.25  # share of the test episodes in a quick evaluation
Names = str | Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Result:
    """What came of one configuration, with all its seeds."""

    config: ExperimentConfig
    score: dict[str, Any]
    """The score line of the record: numbers by section, with one entry per seed."""
    trained: Trained
    record: Path | None
    """The record's file, if anything was written."""
    policy: Path | None
    """The policy file of the median seed, if anything was written."""

    @property
    def base(self) -> Any:
        """Base return [seeds]: discounted, without instructions."""
        return self.score["base"]["discounted"]

    @property
    def compliance(self) -> Any:
        """Instructions followed divided by instructions given [seeds]."""
        return self.score["compliance"]["per_instruction"]

    @property
    def diverged(self) -> list[int | None]:
        """The point of the learning curve at which each seed's numbers stopped being finite; None: never."""
        return list(self.trained.diverged(self.config))

    def team(self, seed: int | None = None) -> TeamPolicy:
        """Return the trained team of a seed (default: the median one, which the policy file holds)."""
        seed = median_seed(self.trained.group.seeds, self.score) if seed is None else seed
        return team_of(self.trained, self.config, seed)


def configs_of(
    world: str,
    *,
    methods: Names = "mavic",
    backbones: Names = DEFAULT_BACKBONE,
    networks: Names = "",
    conditions: Names = "live/by-kind",
    preset: str = "tuned",
    hear: str = "",
    encoder: str = DEFAULT_ENCODER,
    options: Mapping[str, Any] | None = None,
    every: Mapping[str, Any] | None = None,
    grid: Mapping[str, Sequence[Any] | None] | None = None,
) -> Iterator[ExperimentConfig]:
    """Yield all combinations of backbones, networks, conditions and methods. "all" stands for every method.

    `every` are fields of all configurations, such as kinds=("push",). `grid` are fields with several values each, such
    as penalty=(50, 100): all combinations of these values follow.
    """
    chosen = tuple(METHODS) if _names(methods) == ("all",) else _names(methods)
    axes = _names(backbones), _names(networks), _names(conditions)
    values = {name: found for name, found in (grid or {}).items() if found}
    for backbone, network, condition, *point, method in product(*axes, *values.values(), chosen):
        config = ExperimentConfig(
            world=world,
            method=method,
            network=network,
            backbone=backbone,
            hear=hear,
            encoder=encoder,
            preset=preset,
            options=dict(options or {}),
        ).with_condition(condition)
        yield dataclasses.replace(config, **(every or {}), **dict(zip(values, point, strict=True)))


def _names(given: Names) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given) or ("",)


def run(
    group: Group,
    folder: Path | None = None,
    *,
    quick: bool = False,
    brief: bool = False,
    words: bool = False,
    on_point: Sequence[OnPoint] = (),
    console: Console | None = None,
) -> Iterator[Result]:
    """Train a group and evaluate it. With a folder, write checkpoints, records and policies. Yield each result.

    A `brief` evaluation leaves out the shield and pairs of prohibitions. With `words`, teams are also evaluated with
    phrases that they were not trained on. If `folder` holds a checkpoint of the same group, training goes on from
    there.
    """
    if words:  # a missing encoder is reported now and not after the training
        config = group.configs[0]
        task = task_of(config)
        unseen_phrases.sets_of(task)
        infeasible.kinds_asked(task)
    place = None if folder is None else checkpoint_folder(folder, group)
    trained = runner.train_group(group, place, on_point=on_point, console=console)
    if console is not None:
        console.print("evaluating…")
    scale = QUICK if quick else 1.0
    by_phrase = unseen_phrases.evaluate(trained, scale=scale) if words else {}
    by_request = infeasible.evaluate(trained, scale=scale) if words else {}
    more = not brief
    for config, score in evaluate.evaluate(trained, scale=scale, shield=more, pairs=more).items():
        for name, found in (("words", by_phrase), ("requests", by_request)):
            score[name] = divergence.blank_score(found.get(config, {}), trained.diverged(config))
        yield _result(trained, config, score, folder)


def _result(
    trained: Trained, config: ExperimentConfig, score: dict[str, Any], folder: Path | None
) -> Result:
    record = policy = None
    if folder is not None:
        record = folder / f"{config.name()}.jsonl"
        records.write(record, record_lines(trained, config, score))
        if trained.finite_seeds(config) and not METHODS[config.method].random:
            seed = median_seed(trained.group.seeds, score)
            policy = save_policy(folder / config.name(), trained, config, seed)
    return Result(config=config, score=score, trained=trained, record=record, policy=policy)


def checkpoint_folder(folder: Path, group: Group) -> Path:
    """Return where the checkpoints of a group are."""
    return folder / "checkpoints" / checkpoint.name_of(group)


def check_records(groups: Sequence[Group], folder: Path) -> None:
    """Raise a `ValueError` if a record in `folder` would be replaced by a different one."""
    for path, what in conflicting_records(groups, folder):
        raise ValueError(
            f"{path} has other {what}; choose another --out, or say --overwrite to replace it"
        )


@contextlib.contextmanager
def holding(
    folder: Path | None,
    groups: Sequence[Group],
    *,
    overwrite: bool = False,
    say: Callable[[str], Any] = warnings.warn,
) -> Iterator[None]:
    """Hold the folder in which these groups will be trained. Without a folder there is nothing to hold.

    Raise an error if it cannot be written, if another process trains there, or if a record would be replaced by a
    different one without `overwrite`.
    """
    if folder is None:
        yield
        return
    with files.locked(folder, say):
        if not overwrite:
            check_records(groups, folder)
        yield


def train(
    world: str,
    *,
    seeds: int | Sequence[int] = 3,
    out: str | Path | None = None,
    quick: bool = False,
    brief: bool = False,
    words: bool = False,
    overwrite: bool = False,
    initial: str | Path | None = None,
    on_point: OnPoint | Sequence[OnPoint] = (),
    console: Console | None = None,
    numbers: Mapping[str, Any] | None = None,
    **choices: Any,
) -> list[Result]:
    """Train and evaluate; `mavic.train` describes the arguments. `choices` go to `configs_of`."""
    seeds = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    groups = groups_of(configs_of(world, **choices), seeds, initial=initial, **dict(numbers or {}))
    folder = None if out is None else Path(out) / world
    calls = (on_point,) if callable(on_point) else tuple(on_point)
    console = console or Console(quiet=True)
    options: dict[str, Any] = dict(
        quick=quick, brief=brief, words=words, on_point=calls, console=console
    )
    with holding(folder, groups, overwrite=overwrite):
        return [result for group in groups for result in run(group, folder, **options)]


def evaluate_policy(
    policy: str | Path,
    *,
    condition: str | None = None,
    quick: bool = False,
    words: bool = False,
    shield: bool = False,
) -> dict[str, Any]:
    """Return the score of a policy file or a shipped team; `mavic.evaluate` describes the arguments."""
    scale = QUICK if quick else 1.0
    trained = trained_of(policy, condition)
    (config,) = trained.group.configs
    score = evaluate.evaluate(trained, scale=scale, shield=shield)[config]
    if shield:
        score |= score.pop("shield")
    if words:
        score["words"] = unseen_phrases.evaluate(trained, scale=scale).get(config, {})
    return score
