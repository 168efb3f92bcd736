"""The command line: `mavic --help`. Nothing is decided here; every command calls one function of the library."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.markup import escape

Positional = tyro.conf.Positional
CONSOLE = Console()


class Problem(Exception):
    """Something the user can mend; shown without a traceback."""


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Preset numbers to change; leave out what the preset should decide."""

    episodes: int | None = None
    """Training episodes."""
    batch: int | None = None
    """Complete episodes an update."""
    actor_rate: float | None = None
    """Adam step size of the actors."""
    critic_rate: float | None = None
    """Adam step size of the critics."""
    gamma: float | None = None
    """Discount a tick."""


@dataclass(frozen=True, kw_only=True)
class Train:
    """Train teams, judge them and write records and policies.

    Lists make a product: all methods, networks and settings that fit one compiled program train at once, with all
    seeds. Ctrl-C saves; the same command resumes.

    Examples:
      mavic train box_pushing
      mavic train box_pushing --methods mavic naive vanilla --seeds 3 --episodes 40000
      mavic train box_pushing --networks shared protected --settings live/by-kind live/add --seeds 10
    """

    world: Positional[str]
    """Which world: see `mavic worlds`."""
    methods: tuple[str, ...] = ("mavic",)
    """vanilla, naive, switch, mavic, mavic-shift; or all."""
    networks: tuple[str, ...] = ("protected",)
    """shared (the paper's), protected (separate parts for instructed and uninstructed)."""
    settings: tuple[str, ...] = ("live/by-kind",)
    """schedule/rule[/overlap]: schedule live (instructions come and go) or paper (at most one an episode); rule by-kind
    (as the instruction file says) or add (a penalty everywhere, paper-literal); overlap: one may replace another."""
    preset: str = "tuned"
    """tuned or paper: the learner's numbers."""
    seeds: int = 3
    """How many seeds, from 0."""
    out: Path = Path("runs")
    """Where records, policies and checkpoints go, in a folder a world."""
    numbers: Annotated[Numbers, tyro.conf.arg(name="")] = field(default_factory=Numbers)
    quick: bool = False
    """Judge with a quarter of the episodes."""
    options: tuple[tuple[str, str], ...] = ()
    """Options of the world, such as: --options size 8."""

    def run(self) -> None:
        """Carry it out."""
        import dataclasses

        from mavic.study import records, session
        from mavic.study.methods import METHODS

        methods = tuple(METHODS) if self.methods == ("all",) else self.methods
        options = {name: _value(text) for name, text in self.options}
        cells = [
            _cell(
                setting,
                world=self.world,
                method=method,
                network=network,
                preset=self.preset,
                options=options,
            )
            for network, setting, method in product(self.networks, self.settings, methods)
        ]
        folder = self.out / self.world
        changes = {k: v for k, v in dataclasses.asdict(self.numbers).items() if v is not None}
        for group in session.groups_of(cells, range(self.seeds), **changes):
            place = folder / "checkpoints" / f"{group.cells[0].network}-{session.name_of(group)}"
            try:
                trained = session.train_group(group, place, console=CONSOLE)
            except KeyboardInterrupt:
                raise Problem(
                    f"stopped; saved in {place}. The same command goes on from there."
                ) from None
            CONSOLE.print("judging…")
            for cell, score in session.judge(trained, scale=0.25 if self.quick else 1.0).items():
                records.write(
                    folder / f"{cell.name()}.jsonl", session.record_lines(trained, cell, score)
                )
                session.save_policy(folder / cell.name(), trained, cell, 0)
                base, told = score["base"]["discounted"], score["compliance"]["per_instruction"]
                CONSOLE.print(
                    f"{cell.name()}: base {base.mean():.2f} (min {base.min():.2f}) · "
                    f"compliance {told.mean():.2%} (min {told.min():.2%})",
                    highlight=False,
                )
        CONSOLE.print(f"records and policies: {folder}; tables: mavic report {folder}")


@dataclass(frozen=True, kw_only=True)
class Report:
    """Remake tables and figures from records alone.

    Example: mavic report results/box_pushing
    """

    folder: Positional[Path]
    """Where the records (*.jsonl) are."""
    out: Path | None = None
    """Where to write (default: the same folder)."""

    def run(self) -> None:
        """Carry it out."""
        from mavic.study import report

        report.report(self.folder, self.out, console=CONSOLE)


@dataclass(frozen=True, kw_only=True)
class Worlds:
    """List the worlds: agents, macros, kinds of instruction."""

    def run(self) -> None:
        """Carry it out."""
        from mavic.envs import api
        from mavic.study.experiment import bench_of

        for name in api.WORLDS:
            bench = bench_of(name)
            CONSOLE.rule(name)
            for agent, macros in zip(bench.env.agents, bench.env.macros, strict=True):
                CONSOLE.print(f"[bold]{agent}[/]: {', '.join(m.name for m in macros)}")
            for kind in bench.file.kinds:
                CONSOLE.print(
                    f"  [green]{kind.name}[/] ({kind.rule}): {kind.meaning} — “{kind.train[0]}”"
                )


def _cell(setting: str, **fields: Any) -> Any:
    from mavic.study.experiment import Cell

    schedule, _, rest = setting.partition("/")
    rule, _, more = rest.partition("/")
    if not rule or more not in ("", "overlap"):
        raise Problem(f"setting {setting!r} is not schedule/rule[/overlap], such as live/by-kind")
    return Cell(schedule=schedule, rule=rule, overlap=more == "overlap", **fields)


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)


COMMANDS = Train | Report | Worlds
Format = Literal["text", "json"]


def main(args: list[str] | None = None) -> None:
    """Entry point."""
    from mavic.instructions import InstructionFileError

    try:
        command = tyro.cli(
            COMMANDS, args=args, prog="mavic", description="Teams that obey and still do their job."
        )  # type: ignore[call-overload]
        command.run()
    except (Problem, ValueError, InstructionFileError, OSError) as error:
        CONSOLE.print("[red]mavic:[/] " + escape(str(error)), highlight=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        CONSOLE.print("stopped")
        sys.exit(130)
