"""`mavic train`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from tyro.conf import Positional

from mavic import ranges
from mavic.apps import console
from mavic.apps.commands import config_file
from mavic.apps.commands.command import Command, UserError, needing, options_from
from mavic.apps.commands.options import AxisOptions, Folder, Numbers, WorldName
from mavic.ranges import LARGEST_SEED, Range, Some
from mavic.session import stopping
from mavic.storage import files

if TYPE_CHECKING:
    from mavic.experiment.config import ExperimentConfig
    from mavic.session.loggers import OnPoint
    from mavic.training.groups import Group


CONFIG = "config.toml"  # beside the records: the options and numbers of the last command
MOST_SEEDS = 1_000
ASKING = ("wandb",)  # loggers that ask a network
Names = Annotated[tuple[str, ...], Some()]


@dataclass(frozen=True, kw_only=True)
class Train(Command):
    """Train teams, evaluate them, and write records and policies.

    All combinations of the given methods, backbones, networks and conditions are trained, with all seeds. Those that
    fit one compiled program train at once. Ctrl-C saves the training; the same command resumes it.

    For example:
      mavic train box_pushing
      mavic train box_pushing --method mavic naive vanilla --seeds 3 --episodes 40000
      mavic train box_pushing --network shared protected --condition live/by-kind live/add --seeds 10
      mavic train box_pushing --condition paper/add --kinds dont-push --penalty 50 300 --rate 0.02 0.1
      mavic train box_pushing --n-steps 5 --epsilon-end 0.01 0.05 --print-config > my.toml
      mavic train --config my.toml --seeds 5
    """

    world: Positional[WorldName]
    """The world to train in. `mavic worlds` lists all worlds."""
    condition: Names = ("live/by-kind",)
    """How agents are instructed: schedule/rule[/overlap][/extras]. The schedule is live (instructions come and go) or
    paper (at most one per episode). The rule is by-kind (what the instruction file says) or, for every kind, add (a
    penalty, as in the paper) or replace. With overlap, a new instruction may replace a running one. With extras, the
    extra kinds of the instruction file are given too. What other options say can stand here too, as tables write it:
    live/add/one-agent/kinds=push+stay/penalty=100/bonus=10/rate=0.1/hold=5-20/weights=push@0.1."""
    axes: AxisOptions = field(default_factory=AxisOptions)
    """What is trained. Of options with several values, all combinations are trained side by side."""
    seeds: Annotated[int, Range(1, MOST_SEEDS)] = 3
    """The number of seeds."""
    first_seed: Annotated[int, Range(0, LARGEST_SEED - MOST_SEEDS)] = 0
    """The first seed."""
    out: Folder = Path("runs")
    """The folder for records, policies and checkpoints. Each world has its own folder in it."""
    quick: bool = False
    """Evaluate with a quarter of the episodes."""
    brief: bool = False
    """Evaluate less: no pairs of prohibitions, and not a second time with the shield."""
    words: bool = False
    """Also evaluate with phrases that no team was trained on: held-out ones, novel ones and the paper's own."""
    overwrite: bool = False
    """Replace records and policies that were made with other seeds, numbers or options. File names tell the
    method, preset, backbone, network, hearing and condition."""

    precheck: bool = True
    """Check the instructions of a world of your own first, as `mavic check` does. An error stops the command."""
    initial: Path | None = None
    """Continue from the weights of this policy file or shipped team, such as box_pushing/mavic. All seeds start from
    them; exploration and optimizers begin anew. Networks and hearing must be the same."""
    engine: Literal["local", "ray"] = "local"
    """Where the simulators of a world in plain Python run: in processes of this machine, or as actors of a running Ray
    cluster (extra: mavic[ray])."""
    log: tuple[str, ...] = ()
    """Also log every point of the learning curves: tensorboard, wandb or both (extra: mavic[log]). Logs go to the
    folder logs beside the records."""
    config: Path | None = None
    """A TOML file of options, as --print-config writes it. Options of the command line come before those of the
    file."""
    print_config: bool = False
    """Print all options and numbers as TOML instead of training. Numbers that differ between the given backbones, and
    those that change in proportion to --episodes, are printed only if they were given."""
    numbers: Numbers = field(default_factory=Numbers)
    """Numbers of the preset to change."""

    @classmethod
    def with_file(cls, args: Sequence[str]) -> Train | None:
        """Return the command of the arguments and of the file that `--config` names in them, or None without a file.

        What loads code or asks a network is taken from the arguments alone. A file that names it is refused unless the
        arguments name it too.
        """
        words = [arg.partition("=") for arg in args]
        places = [i for i, (name, _, _) in enumerate(words) if name == "--config"]
        if not places:
            return None
        last = places[-1]
        path = words[last][2] or (args[last + 1] if last + 1 < len(args) else "")
        found = config_file.read_arguments(Path(path), *_config_fields())
        has_world = found[:1] and not found[0].startswith("--")
        file = tyro.cli(cls, args=found if has_world else ["", *found], prog=f"mavic train, {path}")
        typed = {"plugins": set(file.plugins), "log": set(file.log) & set(ASKING)}
        plain = dataclasses.replace(
            file,
            plugins=(),
            log=tuple(name for name in file.log if name not in ASKING),
            allow_download=False,
        )
        command = tyro.cli(cls, args=args, default=plain, prog="mavic train")
        for option, wanted in typed.items():
            if missing := sorted(wanted - set(getattr(command, option))):
                raise UserError(
                    f"{path}: asks for --{option} {' '.join(missing)}; a file loads no code and asks no network: "
                    "if you want that, type it in the command"
                )
        return command

    def check(self) -> None:
        """Raise `mavic.ranges.RangeError` unless all values are in their ranges. The preset checks its numbers."""
        super().check()
        ranges.check(self.axes, "--")

    def run(self) -> None:
        """Carry out the command."""
        from mavic.session import session
        from mavic.training.groups import groups_of

        if not self.world:
            raise UserError("neither the command nor the file names a world")
        folder = self.out.absolute() / self.world  # it stays where it is
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        groups = groups_of(self.configs(), seeds, initial=self.initial, **self.numbers.given())
        resolved = config_file.as_toml(self._as_config(groups))
        if self.print_config:
            print(resolved)
            return
        if self.engine == "ray":
            self._use_ray(groups)
        if self.precheck:
            session.check_first(groups, console.OUT)
        calls = self._loggers(folder)
        with session.holding(folder, groups, overwrite=self.overwrite, say=_warn):
            files.write_text(folder / CONFIG, resolved + "\n")
            for group in groups:
                self._train(group, folder, calls)
        told = self.out / self.world
        console.OUT.print(f"records and policies: {told}; tables: mavic report {told}")

    def configs(self) -> list[ExperimentConfig]:
        """Return the configurations that the command trains."""
        from mavic.session import session

        return list(session.configs_of(self.world, condition=self.condition, **self._axes()))

    def _use_ray(self, groups: Sequence[Group]) -> None:
        """Let the simulators of the world run on a Ray cluster."""
        from mavic.envs import api
        from mavic.simulators import cluster

        if not api.runs_on_host(api.make(self.world, **groups[0].configs[0].options)):
            raise UserError(
                f"{self.world} has no simulators in plain Python; --engine ray is for such worlds"
            )
        with needing("ray", "--engine ray"):
            count = cluster.use()
        console.OUT.print(f"simulators run in {count} actors of Ray ({cluster.where()})")

    def _axes(self) -> dict[str, Any]:
        """Return the axes that the user gave, by name."""
        found = self.axes.given()
        if "options" in found:
            found["options"] = options_from(found["options"])
        if "weights" in found:
            found["weights"] = dict(found["weights"])
        return found

    def _as_config(self, groups: Sequence[Group]) -> dict[str, Any]:
        """Return all options that a file may hold. Those without a value are left out."""
        left_out = ("config", "print_config", "axes", "numbers", "allow_download")
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        typed = {k: v for k, v in values.items() if k not in left_out and v not in (None, ())}
        return {**typed, **self._axes(), "numbers": self._shared_numbers(groups)}

    def _shared_numbers(self, groups: Sequence[Group]) -> dict[str, Any]:
        """Return the numbers of all groups. What differs between them or follows `episodes` is there only if given."""
        from mavic.preset import FOLLOW_EPISODES

        first, *others = (dataclasses.asdict(group.preset) for group in groups)
        typed = self.numbers.given()
        return {
            name: value
            for name, value in first.items()
            if name in typed
            or (name not in FOLLOW_EPISODES and all(other[name] == value for other in others))
        }

    def _loggers(self, folder: Path) -> list[OnPoint]:
        from mavic.hints import look_up
        from mavic.session.loggers import LOGGERS

        with needing("log", "--log"):
            return [look_up(LOGGERS, name, "logger")(folder / "logs") for name in self.log]

    def _train(self, group: Group, folder: Path, calls: list[OnPoint]) -> None:
        """Train and evaluate a group. If the user stops it, say where the training is saved."""
        from mavic.evaluation import collapse
        from mavic.session import session
        from mavic.training import checkpoint

        place = checkpoint.folder_of(folder, group)
        options: dict[str, Any] = dict(
            quick=self.quick, brief=self.brief, words=self.words, on_point=calls
        )
        try:
            for result in session.run(group, folder, console=console.OUT, **options):
                console.OUT.print(_summary(result.config.name(), result.score))
                for kind, share in collapse.collapses(result.score).items():
                    line = f"  {collapse.sentence(kind, share)}"
                    console.OUT.print(line, style="yellow", soft_wrap=True)
                if any(point is not None for point in result.diverged):
                    lost = _losses(group.seeds, result.diverged)
                    console.OUT.print(lost, style="yellow")
        except KeyboardInterrupt as stopped:
            raise stopping.Stopped(
                stopping.Stopped.status_of(stopped) - 128,
                f"stopped; saved in {place} up to the last point. The same command goes on from there."
                if checkpoint.exists(place)
                else "stopped before the first point; nothing is saved yet",
            ) from None


def _warn(text: str) -> None:
    console.ERR.print(text, style="yellow", soft_wrap=True)


def _config_fields() -> tuple[dict[str, Any], list[str]]:
    """Return what a file may hold: options with their defaults, and the names of numbers."""
    default = Train(world="")
    options = vars(default) | vars(default.axes)
    nested = ("axes", "numbers")
    return {name: v for name, v in options.items() if name not in nested}, [*vars(default.numbers)]


def _summary(name: str, score: dict[str, Any]) -> str:
    """Return the line that tells a score. Seeds that diverged do not count."""
    import numpy as np

    base, followed = (
        np.asarray(values, float)
        for values in (score["base"]["discounted"], score["compliance"]["per_instruction"])
    )
    if np.isnan(base).all():
        return f"{name}: no seed has a score"
    return (
        f"{name}: base {np.nanmean(base):.2f} (min {np.nanmin(base):.2f}) · "
        f"{_followed(followed)}{_under(score)}"
    )


def _followed(shares: Any) -> str:
    """Return the part of the line on compliance [seeds]."""
    import numpy as np

    if np.isnan(shares).all():
        return "no instruction was given"
    return f"compliance {np.nanmean(shares):.2%} (min {np.nanmin(shares):.2%})"


def _under(score: dict[str, Any]) -> str:
    """Return the part of the line on the task under a held instruction; empty if its share is unknown."""
    from mavic.evaluation import collapse

    shares = collapse.shares_of_base(score)
    if not shares:
        return ""
    worst = min(shares, key=shares.__getitem__)
    best = score.get("optimum") is not None
    what = "what is possible" if best else "base"
    mean = sum(shares.values()) / len(shares)
    return f" · task under an instruction {mean:.0%} of {what} (worst {worst} {shares[worst]:.0%})"


def _losses(seeds: Sequence[int], points: Sequence[int | None]) -> str:
    """Return the line that names the seeds without a score."""
    lost = [f"seed {s} at point {p}" for s, p in zip(seeds, points, strict=True) if p is not None]
    return f"  {len(lost)} of {len(seeds)} seeds diverged and are left out: {', '.join(lost)}"
