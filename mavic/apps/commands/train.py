"""`mavic train`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from tyro.conf import Positional

from mavic.apps import console
from mavic.apps.commands.command import Command, Problem, options_from

if TYPE_CHECKING:
    from mavic.experiments.config import ExperimentConfig
    from mavic.experiments.runner import Group, Trained


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

    All combinations of the given methods, networks and conditions are trained, with all seeds. Those that fit one
    compiled program train at once. Ctrl-C saves the training; the same command resumes it.

    For example:
      mavic train box_pushing
      mavic train box_pushing --methods mavic naive vanilla --seeds 3 --episodes 40000
      mavic train box_pushing --networks shared protected --conditions live/by-kind live/add --seeds 10
    """

    world: Positional[str]
    """The world to train in. `mavic worlds` lists all worlds."""
    methods: tuple[str, ...] = ("mavic",)
    """vanilla, naive, switch, mavic, mavic-shift, random, or all. The paper's dual method is naive on protected."""
    networks: tuple[str, ...] = ()
    """shared is the paper's network. protected has separate parts for instructed and uninstructed decisions. residual
    is protected, and its instructed actor adds to the logits of the uninstructed one. The default is residual, and
    protected with the preset paper."""
    hear: str | None = None
    """What agents hear: kinds (the probability of each kind, as the reader understands a sentence) or vectors (the
    sentence's vector, as in the paper). The default is kinds, and vectors with the preset paper."""
    conditions: tuple[str, ...] = ("live/by-kind",)
    """How agents are instructed: schedule/rule[/overlap][/extras]. The schedule is live (instructions come and go) or
    paper (at most one per episode). The rule is by-kind (what the instruction file says) or add (a penalty for every
    kind, as in the paper). With overlap, a new instruction may replace a running one. With extras, the extra kinds of
    the instruction file are given too."""
    preset: str = "tuned"
    """The numbers of the learner: tuned or paper."""
    seeds: int = 3
    """The number of seeds."""
    first_seed: int = 0
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
        from mavic.experiments import runner, unseen_phrases
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
        for group in groups:
            self._evaluate(_train(group, folder), folder)
        console.OUT.print(f"records and policies: {folder}; tables: mavic report {folder}")

    def _configs(self) -> Iterator[ExperimentConfig]:
        """Yield all combinations of networks, conditions and methods."""
        from mavic.experiments.config import ExperimentConfig
        from mavic.experiments.methods import METHODS

        methods = tuple(METHODS) if self.methods == ("all",) else self.methods
        for network, condition, method in product(self.networks or ("",), self.conditions, methods):
            yield ExperimentConfig(
                world=self.world,
                method=method,
                network=network,
                hear=self.hear or "",
                preset=self.preset,
                options=options_from(self.options),
            ).with_condition(condition)

    def _evaluate(self, trained: Trained, folder: Path) -> None:
        """Evaluate the configs of a trained group and write their records and policies."""
        from mavic.experiments import evaluate, records, runner, unseen_phrases
        from mavic.experiments.methods import METHODS

        console.OUT.print("evaluating…")
        scale = 0.25 if self.quick else 1.0
        by_phrase = unseen_phrases.evaluate(trained, scale=scale) if self.words else {}
        for config, score in evaluate.evaluate(trained, scale=scale).items():
            score["words"] = by_phrase.get(config, {})
            records.write(
                folder / f"{config.name()}.jsonl", runner.record_lines(trained, config, score)
            )
            if not METHODS[config.method].random:
                runner.save_policy(folder / config.name(), trained, config, self.first_seed)
            console.OUT.print(_summary(config.name(), score), highlight=False)


def _train(group: Group, folder: Path) -> Trained:
    """Train a group. If the user stops it, say where the training is saved."""
    from mavic.experiments import checkpoint, runner

    place = folder / "checkpoints" / checkpoint.name_of(group)
    try:
        return runner.train_group(group, place, console=console.OUT)
    except KeyboardInterrupt:
        raise Problem(
            f"stopped; saved in {place} up to the last point. The same command goes on from there."
            if checkpoint.exists(place)
            else "stopped before the first point; nothing is saved yet"
        ) from None


def _summary(name: str, score: dict[str, Any]) -> str:
    base, followed = score["base"]["discounted"], score["compliance"]["per_instruction"]
    return (
        f"{name}: base {base.mean():.2f} (min {base.min():.2f}) · "
        f"compliance {followed.mean():.2%} (min {followed.min():.2%})"
    )
