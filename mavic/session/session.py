"""What one `mavic train` or `mavic.train` does, from a few names: training, evaluation, records and policies.

The studies of `mavic reproduce` are rows of `mavic.studies.studies`; each needs several such trainings.
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console

from mavic import ranges
from mavic.envs import api
from mavic.evaluation import collapse, evaluate, infeasible, unseen_phrases
from mavic.experiment import check, records
from mavic.experiment.axes import AXES
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import METHODS
from mavic.experiment.task import task_of
from mavic.hints import look_up
from mavic.preset import Preset
from mavic.session import runner
from mavic.session.loggers import OnPoint
from mavic.storage import files
from mavic.teams.team import TeamPolicy
from mavic.training import checkpoint, divergence
from mavic.training.groups import Group, groups_of
from mavic.training.trained import Trained, trained_of

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
        seed = self.trained.median_seed(self.score) if seed is None else seed
        return self.trained.team(self.config, seed)


def configs_of(
    world: str, *, condition: Names = "live/by-kind", **axes: Any
) -> Iterator[ExperimentConfig]:
    """Yield one configuration for each combination of conditions and of the axes that have several values.

    Args:
        world: the world of all configurations.
        condition: how teams are instructed, as text. Axes that are given too replace what it says.
        axes: values by the names of `AXES`. One that may have several values takes one or a sequence. Empty ones
            keep their default. "all" as the method stands for every method.

    Raises:
        ValueError: an axis or a value is unknown.
    """
    for name in axes:
        if not look_up(AXES, name, "axis").option:
            raise ValueError(
                f"{name} is not an option of its own; condition tells it, such as paper/add"
            )
    given = {name: AXES[name].values(value) for name, value in axes.items() if _is_given(value)}
    methods = given.pop("method", ["mavic"])
    methods = list(METHODS) if methods == ["all"] else methods
    texts = (condition,) if isinstance(condition, str) else condition
    ranges.check_value(
        tuple(texts) if isinstance(texts, list) else texts,
        Annotated[tuple[str, ...], ranges.Some()],
        "condition (one, or a list)",
    )
    in_text = [name for name in given if AXES[name].in_condition]
    others = [name for name in given if not AXES[name].in_condition]
    order = [*others, "condition", *in_text, "method"]
    values = {**given, "condition": texts, "method": methods}
    for point in product(*(values[name] for name in order)):
        chosen = dict(zip(order, point, strict=True))
        text, told = chosen.pop("condition"), {name: chosen.pop(name) for name in in_text}
        config = ExperimentConfig(world=world, **chosen).with_condition(text)
        yield dataclasses.replace(config, **told)


def _is_given(value: Any) -> bool:
    return value is not None and value is not False and value not in ("", (), [], {})


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
    """Train a group, evaluate it and yield the result of each configuration.

    Args:
        group: what is trained.
        folder: where checkpoints, records and policies go. A checkpoint of the same group there is resumed.
        quick: evaluate with a quarter of the episodes.
        brief: evaluate without the shield and without pairs of prohibitions.
        words: also evaluate with phrases that teams were not trained on.
        on_point: called with every point of the learning curves.
        console: where progress is shown.
    """
    if words:  # a missing encoder is reported now and not after the training
        config = group.configs[0]
        task = task_of(config)
        unseen_phrases.sets_of(task)
        infeasible.kinds_asked(task)
    place = None if folder is None else checkpoint.folder_of(folder, group)
    trained = runner.train_group(group, place, on_point=on_point, console=console)
    if console is not None:
        console.print("evaluating…")
    scale = QUICK if quick else 1.0
    by_phrase = unseen_phrases.evaluate(trained, scale=scale) if words else {}
    by_request = infeasible.evaluate(trained, scale=scale) if words else {}
    more = not brief
    scores = evaluate.evaluate(trained, scale=scale, shield=more, pairs=more)
    api.raise_failure(trained.task.env)
    if console is not None:
        for line in api.simulator_reports(trained.task.env)[0]:
            console.print(line, style="yellow", highlight=False, soft_wrap=True)
    for config, score in scores.items():
        for name, found in (("words", by_phrase), ("requests", by_request)):
            score[name] = divergence.blank_score(found.get(config, {}), trained.diverged(config))
        yield _result(trained, config, score, folder)


def _result(
    trained: Trained, config: ExperimentConfig, score: dict[str, Any], folder: Path | None
) -> Result:
    record = policy = None
    if folder is not None:
        record = folder / f"{config.name()}.jsonl"
        records.write(record, trained.record_lines(config, score))
        if trained.finite_seeds(config) and not METHODS[config.method].random:
            seed = trained.median_seed(score)
            found = collapse.collapses(score, trained.group.seeds.index(seed))
            more = {"collapsed": found} if found else {}
            policy = trained.save_team(folder / config.short_name(), config, seed, **more)
    return Result(config=config, score=score, trained=trained, record=record, policy=policy)


def check_first(groups: Sequence[Group], console: Console | None = None) -> None:
    """Check the instructions of the worlds that are trained, as `mavic check` does, in a short form.

    Args:
        groups: what will be trained.
        console: where warnings are shown.

    Raises:
        ValueError: a kind cannot be learned. The message has a line for each error.
    """
    configs = {repr((g.configs[0].world, g.configs[0].options)): g.configs[0] for g in groups}
    for config in configs.values():
        found = check.before_training(config.world, config.options)
        for one in found.warnings:
            (console or Console(quiet=True)).print(
                f"warning {one}", style="yellow", markup=False, soft_wrap=True
            )
        if found.errors:
            lines = " · ".join(map(str, found.errors))
            raise ValueError(f"{lines} (--no-precheck trains anyway)")


def _check_records(groups: Sequence[Group], folder: Path) -> None:
    """Raise a `ValueError` if a record in `folder` would be replaced by a different one."""
    for group in groups:
        for path, what in group.conflicting_records(folder):
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
    """Lock the folder in which these groups will be trained. Without a folder, do not lock.

    Args:
        folder: the folder.
        groups: what will be trained there.
        overwrite: allow records to be replaced by different ones.
        say: told if the file system cannot lock.

    Raises:
        ValueError: another process trains there, or a record would be replaced by a different one.
        OSError: the folder cannot be written.
    """
    if folder is None:
        yield
        return
    with files.locked(folder, say):
        if not overwrite:
            _check_records(groups, folder)
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
    precheck: bool = True,
    initial: str | Path | None = None,
    on_point: OnPoint | Sequence[OnPoint] = (),
    console: Console | None = None,
    condition: Names = "live/by-kind",
    **choices: Any,
) -> list[Result]:
    """Train and evaluate; `mavic.train` describes the arguments. `choices` are axes and numbers of the preset."""
    axes, numbers = _sorted_choices({name: ranges.plain(value) for name, value in choices.items()})
    flags = dict(quick=quick, brief=brief, words=words, overwrite=overwrite, precheck=precheck)
    for name, flag in flags.items():
        ranges.check_value(flag, bool, name)
    seeds = _seeds_of(ranges.plain(seeds))
    groups = groups_of(
        configs_of(world, condition=condition, **axes), seeds, initial=initial, **numbers
    )
    folder = None if out is None else Path(out).absolute() / world  # it stays where it is
    calls = (on_point,) if callable(on_point) else tuple(on_point)
    console = console or Console(quiet=True)
    options: dict[str, Any] = dict(
        quick=quick, brief=brief, words=words, on_point=calls, console=console
    )
    if precheck:
        check_first(groups, console)
    with holding(folder, groups, overwrite=overwrite):
        return [result for group in groups for result in run(group, folder, **options)]


def _seeds_of(given: Any) -> tuple[int, ...]:
    """Return the seeds that a number of seeds or a list of them means."""
    if isinstance(given, int) and not isinstance(given, bool):
        ranges.check_value(given, ranges.Count, "seeds")
        return tuple(range(given))
    seeds = tuple(given) if isinstance(given, list | tuple | range) else given
    wanted = Annotated[tuple[ranges.Seed, ...], ranges.Some()]
    ranges.check_value(seeds, wanted, "seeds (a number of them, or a list)")
    return seeds


def _sorted_choices(choices: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the axes and the numbers of the preset among these choices. Another name is a `ValueError`."""
    numbers = {field.name for field in dataclasses.fields(Preset)}
    for name, value in choices.items():
        look_up({**AXES, **dict.fromkeys(numbers)}, name, "choice")
        if isinstance(value, list | tuple) and not value:
            raise ValueError(f"{name} is empty; leave it out for its default")
    axes = {name: value for name, value in choices.items() if name in AXES}
    return axes, {name: value for name, value in choices.items() if name not in AXES}


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
    api.raise_failure(trained.task.env)
    if shield:
        score |= score.pop("shield")
    if words:
        score["words"] = unseen_phrases.evaluate(trained, scale=scale).get(config, {})
    return score
