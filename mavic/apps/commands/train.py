"""`mavic train`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro
from tyro.conf import Positional

from mavic.apps import console
from mavic.apps.commands.command import Command, Problem, options_from
from mavic.experiments import stopping
from mavic.ranges import LARGEST_SEED, Range, Some

if TYPE_CHECKING:
    from mavic.experiments.config import ExperimentConfig
    from mavic.experiments.runner import Group, Trained


MOST_SEEDS = 1_000
Names = Annotated[tuple[str, ...], Some()]


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Numbers of the preset to change. The preset decides those that are left out."""

    episodes: int | None = None
    """Training episodes."""
    batch: int | None = None
    """Complete episodes per update."""
    actor_lr: float | None = None
    """Adam step size of the actors."""
    critic_lr: float | None = None
    """Adam step size of the critics."""
    gamma: float | None = None
    """Discount per tick."""


@dataclass(frozen=True, kw_only=True)
class Train(Command):
    """Train teams, evaluate them, and write records and policies.

    All combinations of the given methods, backbones, networks and conditions are trained, with all seeds. Those that
    fit one compiled program train at once. Ctrl-C saves the training; the same command resumes it.

    For example:
      mavic train box_pushing
      mavic train box_pushing --methods mavic naive vanilla --seeds 3 --episodes 40000
      mavic train box_pushing --networks shared protected --conditions live/by-kind live/add --seeds 10
    """

    world: Positional[str]
    """The world to train in. `mavic worlds` lists all worlds."""
    methods: Names = ("mavic",)
    """vanilla, naive, switch, mavic, mavic-shift, random, or all. The paper's dual method is naive on protected."""
    networks: Names | None = None
    """shared is the paper's network. protected has separate parts for instructed and uninstructed decisions. residual
    is protected, and its instructed actor adds to the logits of the uninstructed one. The default is residual, and
    protected with the preset paper."""
    backbone: Names = ("mac-iac",)
    """Who has which actor and critic: mac-iac (the paper's), mac-cac, mac-naive-iacc, mac-iaicc or acac.
    docs/backbones.md says which one when."""
    hear: str | None = None
    """What agents hear: kinds (the probability of each kind, as the reader understands a sentence) or vectors (the
    sentence's vector, as in the paper). The default is kinds, and vectors with the preset paper."""
    conditions: Names = ("live/by-kind",)
    """How agents are instructed: schedule/rule[/overlap][/extras]. The schedule is live (instructions come and go) or
    paper (at most one per episode). The rule is by-kind (what the instruction file says) or add (a penalty for every
    kind, as in the paper). With overlap, a new instruction may replace a running one. With extras, the extra kinds of
    the instruction file are given too."""
    preset: str = "tuned"
    """The numbers of the learner: tuned or paper."""
    seeds: Annotated[int, Range(1, MOST_SEEDS)] = 3
    """The number of seeds."""
    first_seed: Annotated[int, Range(0, LARGEST_SEED - MOST_SEEDS)] = 0
    """The first seed."""
    out: Path = Path("runs")
    """The folder for records, policies and checkpoints. Each world has its own folder in it."""
    numbers: Annotated[Numbers, tyro.conf.arg(name="")] = field(default_factory=Numbers)
    quick: bool = False
    """Evaluate with a quarter of the episodes."""
    words: bool = False
    """Also evaluate with phrases that no team was trained on: held-out ones, novel ones and the paper's own."""
    options: tuple[tuple[str, str], ...] = ()
    """Options of the world, such as: --options people 3 tools 4. `mavic worlds` lists them."""
    overwrite: bool = False
    """Replace records and policies that were made with other seeds, numbers or options. File names tell only the
    method, the preset, the network and the condition."""

    def run(self) -> None:
        """Carry out the command."""
        from mavic.experiments import files, runner, unseen_phrases
        from mavic.experiments.config import make_task

        configs = list(self._configs())
        folder = self.out / self.world
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        changes = {k: v for k, v in dataclasses.asdict(self.numbers).items() if v is not None}
        if self.words:  # a missing encoder is reported now and not after the training
            unseen_phrases.sets_of(make_task(self.world, **options_from(self.options)))
        groups = runner.groups_of(configs, seeds, **changes)
        if not self.overwrite:
            for path, what in runner.conflicting_records(groups, folder):
                raise Problem(
                    f"{path} has other {what}; choose another --out, or say --overwrite to replace it"
                )
        with files.locked(folder):
            for group in groups:
                self._evaluate(_train(group, folder), folder)
        console.OUT.print(f"records and policies: {folder}; tables: mavic report {folder}")

    def _configs(self) -> Iterator[ExperimentConfig]:
        """Yield all combinations of backbones, networks, conditions and methods."""
        from mavic.experiments.config import ExperimentConfig
        from mavic.experiments.methods import METHODS

        methods = tuple(METHODS) if self.methods == ("all",) else self.methods
        axes = self.backbone, self.networks or ("",), self.conditions, methods
        for backbone, network, condition, method in product(*axes):
            yield ExperimentConfig(
                world=self.world,
                method=method,
                network=network,
                backbone=backbone,
                hear=self.hear or "",
                preset=self.preset,
                options=options_from(self.options),
            ).with_condition(condition)

    def _evaluate(self, trained: Trained, folder: Path) -> None:
        """Evaluate the configs of a trained group and write their records and policies."""
        from mavic.experiments import divergence, evaluate, records, runner, unseen_phrases
        from mavic.experiments.methods import METHODS

        console.OUT.print("evaluating…")
        scale = 0.25 if self.quick else 1.0
        by_phrase = unseen_phrases.evaluate(trained, scale=scale) if self.words else {}
        for config, score in evaluate.evaluate(trained, scale=scale).items():
            lost = trained.diverged(config)
            score["words"] = divergence.blank_score(by_phrase.get(config, {}), lost)
            records.write(
                folder / f"{config.name()}.jsonl", runner.record_lines(trained, config, score)
            )
            finite = trained.finite_seeds(config)
            if finite and not METHODS[config.method].random:
                seed = runner.median_seed(trained.group.seeds, score)
                runner.save_policy(folder / config.name(), trained, config, seed)
            console.OUT.print(_summary(config.name(), score), highlight=False)
            if len(finite) < len(lost):
                console.OUT.print(
                    _losses(trained.group.seeds, lost), style="yellow", highlight=False
                )


def _train(group: Group, folder: Path) -> Trained:
    """Train a group. If the user stops it, say where the training is saved."""
    from mavic.experiments import checkpoint, runner

    place = folder / "checkpoints" / checkpoint.name_of(group)
    try:
        return runner.train_group(group, place, console=console.OUT)
    except KeyboardInterrupt as stopped:
        raise stopping.Stopped(
            stopping.status_of(stopped) - 128,
            f"stopped; saved in {place} up to the last point. The same command goes on from there."
            if checkpoint.exists(place)
            else "stopped before the first point; nothing is saved yet",
        ) from None


def _summary(name: str, score: dict[str, Any]) -> str:
    """Return the line that tells a score. Seeds that diverged do not count."""
    base, followed = (
        np.asarray(values, float)
        for values in (score["base"]["discounted"], score["compliance"]["per_instruction"])
    )
    if np.isnan(base).all():
        return f"{name}: no seed has a score"
    return (
        f"{name}: base {np.nanmean(base):.2f} (min {np.nanmin(base):.2f}) · "
        f"compliance {np.nanmean(followed):.2%} (min {np.nanmin(followed):.2%})"
    )


def _losses(seeds: Sequence[int], points: Sequence[int | None]) -> str:
    """Return the line that names the seeds without a score."""
    lost = [f"seed {s} at point {p}" for s, p in zip(seeds, points, strict=True) if p is not None]
    return f"  {len(lost)} of {len(seeds)} seeds diverged and are left out: {', '.join(lost)}"
