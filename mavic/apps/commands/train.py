"""`mavic train`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro
from tyro.conf import Positional

from mavic.apps import console
from mavic.apps.commands import config_file
from mavic.apps.commands.command import Command, UserError, options_from
from mavic.apps.commands.numbers import Numbers, changes_of
from mavic.experiments import files, stopping
from mavic.experiments.conditions import PARTS
from mavic.ranges import LARGEST_SEED, NotNegative, Range, Share, Some

if TYPE_CHECKING:
    from mavic.experiments.groups import Group
    from mavic.experiments.loggers import OnPoint


CONFIG = "config.toml"  # beside the records: the options and numbers of the last command
MOST_SEEDS = 1_000
Names = Annotated[tuple[str, ...], Some()]


@dataclass(frozen=True, kw_only=True)
class Train(Command):
    """Train teams, evaluate them, and write records and policies.

    All combinations of the given methods, backbones, networks and conditions are trained, with all seeds. Those that
    fit one compiled program train at once. Ctrl-C saves the training; the same command resumes it.

    For example:
      mavic train box_pushing
      mavic train box_pushing --methods mavic naive vanilla --seeds 3 --episodes 40000
      mavic train box_pushing --networks shared protected --conditions live/by-kind live/add --seeds 10
      mavic train box_pushing --conditions paper/add --kinds dont-push --penalty 50 300 --rate 0.02 0.1
      mavic train box_pushing --n-steps 5 --epsilon-end 0.01 0.05 --print-config > my.toml
      mavic train --config my.toml --seeds 5
    """

    world: Positional[str]
    """The world to train in. `mavic worlds` lists all worlds."""
    methods: Names = ("mavic",)
    """vanilla, naive, switch, mavic, mavic-shift, random, or all. The paper's dual method is naive on protected."""
    networks: Names | None = None
    """shared is the paper's network. protected has separate parts for instructed and uninstructed decisions. residual
    is protected, and its instructed actor adds to the logits of the uninstructed one. The default is residual, and
    protected with the presets paper and reference. --plugins may add networks of your own."""
    backbone: Names = ("mac-iac",)
    """Who has which actor and critic: mac-iac (the paper's), mac-cac, mac-naive-iacc, mac-iaicc or acac.
    docs/backbones.md says which one when."""
    hear: str | None = None
    """What agents hear: kinds (the probability of each kind, as the reader understands a sentence) or vectors (the
    sentence's vector, as in the paper). The default is kinds, and vectors with the presets paper and
    reference."""
    encoder: str = "minilm-l3"
    """The frozen encoder that makes the vectors (only with --hear vectors): minilm-l3, minilm-l6, path:DIR (the folder
    of a saved BERT), hf:NAME (from the Hugging Face hub), or one of your own that --plugins adds."""
    conditions: Names = ("live/by-kind",)
    """How agents are instructed: schedule/rule[/overlap][/extras]. The schedule is live (instructions come and go) or
    paper (at most one per episode). The rule is by-kind (what the instruction file says) or add (a penalty for every
    kind, as in the paper). With overlap, a new instruction may replace a running one. With extras, the extra kinds of
    the instruction file are given too. What the next options say can stand here too, as tables write it:
    live/add/one-agent/kinds=push+stay/penalty=100/bonus=10/rate=0.1/hold=5-20/weights=push@0.1."""
    kinds: Names | None = None
    """Give only these kinds of instruction. `mavic worlds` lists them."""
    one_agent: bool = False
    """An instruction addresses one random agent instead of all that it is meant for."""
    penalty: Annotated[tuple[NotNegative, ...], Some()] | None = None
    """What a forbidden macro costs under the rule add. Several values are trained side by side, each with each value of
    the next three options."""
    bonus: Annotated[tuple[NotNegative, ...], Some()] | None = None
    """What an allowed macro earns under the rule add."""
    rate: Annotated[tuple[Share, ...], Some()] | None = None
    """The chance per tick that an instruction starts while none is active."""
    hold: Names | None = None
    """For how many ticks an instruction holds, from least to most, such as 5-20. Instructions that an event resolves
    hold until then."""
    weights: tuple[tuple[str, NotNegative], ...] = ()
    """How often kinds are given in training, compared with the others, whose weight is 1, such as: --weights push 0.1
    stay 0.01. Evaluation gives all kinds alike."""
    preset: str = "tuned"
    """The numbers of the learner: tuned, paper (the paper's table) or reference (commands of the reference code)."""
    seeds: Annotated[int, Range(1, MOST_SEEDS)] = 3
    """The number of seeds."""
    first_seed: Annotated[int, Range(0, LARGEST_SEED - MOST_SEEDS)] = 0
    """The first seed."""
    out: Path = Path("runs")
    """The folder for records, policies and checkpoints. Each world has its own folder in it."""
    quick: bool = False
    """Evaluate with a quarter of the episodes."""
    brief: bool = False
    """Evaluate less: no pairs of prohibitions, and not a second time with the shield."""
    words: bool = False
    """Also evaluate with phrases that no team was trained on: held-out ones, novel ones and the paper's own."""
    options: tuple[tuple[str, str], ...] = ()
    """Options of the world, such as: --options people 3 tools 4. `mavic worlds` lists them."""
    overwrite: bool = False
    """Replace records and policies that were made with other seeds, numbers or options. File names tell only the
    method, the preset, the network and the condition."""

    initial: Path | None = None
    """Continue from the weights of this policy file or shipped team, such as box_pushing/mavic. All seeds start from
    them; exploration and optimizers begin anew. Networks and hearing must be the same."""
    log: tuple[str, ...] = ()
    """Also log every point of the learning curves: tensorboard, wandb or both (extra: mavic[log]). Logs go to the
    folder logs beside the records."""
    config: Path | None = None
    """A TOML file of options, as --print-config writes it. Options of the command line come before those of the
    file."""
    print_config: bool = False
    """Print all options and numbers as TOML, and train nothing. Numbers that differ between the given backbones, and
    those that change in proportion to --episodes, are printed only if they were given."""
    numbers: Numbers = field(default_factory=Numbers)
    """Numbers of the preset to change."""

    def run(self) -> None:
        """Carry out the command."""
        from mavic.experiments import study
        from mavic.experiments.groups import groups_of

        if not self.world:
            raise UserError("neither the command nor the file names a world")
        configs = list(study.configs_of(self.world, **self._choices()))
        folder = self.out / self.world
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        groups = groups_of(configs, seeds, initial=self.initial, **changes_of(self.numbers))
        resolved = config_file.text_of(self._as_config(groups))
        if self.print_config:
            print(resolved)
            return
        calls = self._loggers(folder)
        with study.holding(folder, groups, overwrite=self.overwrite, say=_warn):
            files.write_text(folder / CONFIG, resolved + "\n")
            for group in groups:
                self._train(group, folder, calls)
        console.OUT.print(f"records and policies: {folder}; tables: mavic report {folder}")

    def _choices(self) -> dict[str, Any]:
        """Return what is trained in every combination."""
        return {
            "methods": self.methods,
            "backbones": self.backbone,
            "networks": self.networks or "",
            "conditions": self.conditions,
            "preset": self.preset,
            "hear": self.hear or "",
            "encoder": self.encoder,
            "options": options_from(self.options),
            "every": self._every(),
            "grid": {
                "penalty": self.penalty,
                "bonus": self.bonus,
                "rate": self.rate,
                "hold": [PARTS["hold"].read(text) for text in self.hold or ()],
            },
        }

    def _every(self) -> dict[str, Any]:
        """Return the fields that all configurations get. Those of a condition stay where no option is given."""
        given = {"kinds": self.kinds, "one_agent": self.one_agent, "weights": dict(self.weights)}
        return {name: value for name, value in given.items() if value}

    def _as_config(self, groups: Sequence[Group]) -> dict[str, Any]:
        """Return all options that a file may hold. Those without a value are left out."""
        left_out = ("config", "print_config", "numbers", "options", "weights")
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        given = {k: v for k, v in values.items() if k not in left_out and v not in (None, ())}
        tables = {
            "options": options_from(self.options),
            "weights": dict(self.weights),
            "numbers": self._shared_numbers(groups),
        }
        return {**given, **tables}

    def _shared_numbers(self, groups: Sequence[Group]) -> dict[str, Any]:
        """Return the numbers of all groups. What differs between them or follows `episodes` is there only if given."""
        from mavic.experiments.methods import FOLLOW_EPISODES

        first, *others = (dataclasses.asdict(group.preset) for group in groups)
        given = changes_of(self.numbers)
        return {
            name: value
            for name, value in first.items()
            if name in given
            or (name not in FOLLOW_EPISODES and all(other[name] == value for other in others))
        }

    def _loggers(self, folder: Path) -> list[OnPoint]:
        from mavic.experiments.loggers import LOGGERS
        from mavic.hints import look_up

        try:
            return [look_up(LOGGERS, name, "logger")(folder / "logs") for name in self.log]
        except ImportError as error:
            raise UserError(f"--log needs {error.name}: pip install 'mavic[log]'") from None

    def _train(self, group: Group, folder: Path, calls: list[OnPoint]) -> None:
        """Train and evaluate a group. If the user stops it, say where the training is saved."""
        from mavic.experiments import checkpoint, study

        place = study.checkpoint_folder(folder, group)
        options: dict[str, Any] = dict(
            quick=self.quick, brief=self.brief, words=self.words, on_point=calls
        )
        try:
            for result in study.run(group, folder, console=console.OUT, **options):
                console.OUT.print(_summary(result.config.name(), result.score), highlight=False)
                if any(point is not None for point in result.diverged):
                    lost = _losses(group.seeds, result.diverged)
                    console.OUT.print(lost, style="yellow", highlight=False)
        except KeyboardInterrupt as stopped:
            raise stopping.Stopped(
                stopping.status_of(stopped) - 128,
                f"stopped; saved in {place} up to the last point. The same command goes on from there."
                if checkpoint.exists(place)
                else "stopped before the first point; nothing is saved yet",
            ) from None


def _warn(text: str) -> None:
    console.ERR.print(text, style="yellow", highlight=False, soft_wrap=True)


def from_file(args: Sequence[str]) -> Train | None:
    """Return the options of the file that `--config` names in the arguments of `mavic train`, or None without one."""
    names = [arg.partition("=") for arg in args]
    places = [i for i, (name, _, _) in enumerate(names) if name == "--config"]
    if not places:
        return None
    last = places[-1]
    given = names[last][2] or (args[last + 1] if last + 1 < len(args) else "")
    default = Train(world="")
    options = {f.name: getattr(default, f.name) for f in dataclasses.fields(Train)}
    numbers = tuple(f.name for f in dataclasses.fields(Numbers))
    found = config_file.read(Path(given), options, numbers)
    has_world = found[:1] and not found[0].startswith("--")
    return tyro.cli(Train, args=found if has_world else ["", *found], prog=f"mavic train, {given}")


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
