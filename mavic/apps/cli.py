"""The command line: `mavic --help`. Nothing is decided here; every command calls one function of the library."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape
from tyro.conf import Positional

CONSOLE = Console()
COMPLAINTS = Console(stderr=True)


class Problem(Exception):
    """Something the user can mend; shown without a traceback."""


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Preset numbers to change; leave out what the preset should decide."""

    episodes: int | None = None
    """Training episodes."""
    batch: int | None = None
    """Complete episodes an update."""
    actor_lr: float | None = None
    """Adam step size of the actors."""
    critic_lr: float | None = None
    """Adam step size of the critics."""
    gamma: float | None = None
    """Discount a tick."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """What every command takes."""

    plugins: tuple[str, ...] = ()
    """Modules to import first, from the current folder too: those that register worlds or add methods of your own
    (docs/extend.md)."""

    def run(self) -> None:
        """Carry it out."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Train(Command):
    """Train teams, judge them and write records and policies.

    Lists make a product: all methods, networks and settings that fit one compiled program train at once, with all
    seeds. Ctrl-C saves; the same command resumes.

    For example:
      mavic train box_pushing
      mavic train box_pushing --methods mavic naive vanilla --seeds 3 --episodes 40000
      mavic train box_pushing --networks shared protected --settings live/by-kind live/add --seeds 10
    """

    world: Positional[str]
    """Which world: see `mavic worlds`."""
    methods: tuple[str, ...] = ("mavic",)
    """vanilla, naive, switch, mavic, mavic-shift, random; or all. The paper's dual is naive on protected."""
    networks: tuple[str, ...] = ("protected",)
    """shared (the paper's), protected (separate parts for instructed and uninstructed), residual (protected, and
    what is asked changes what would be done anyway)."""
    settings: tuple[str, ...] = ("live/by-kind",)
    """schedule/rule[/overlap][/extras]: schedule live (instructions come and go) or paper (at most one an episode);
    rule by-kind (as the instruction file says) or add (a penalty everywhere, paper-literal); overlap: one may replace
    another; extras: the file's extra kinds are given too."""
    preset: str = "tuned"
    """tuned or paper: the learner's numbers."""
    seeds: int = 3
    """How many seeds."""
    first_seed: int = 0
    """The first of them."""
    out: Path = Path("runs")
    """Where records, policies and checkpoints go, in a folder a world."""
    numbers: Annotated[Numbers, tyro.conf.arg(name="")] = field(default_factory=Numbers)
    quick: bool = False
    """Judge with a quarter of the episodes."""
    words: bool = False
    """Judge also in words nobody was trained on: held-out, novel, the paper's own."""
    options: tuple[tuple[str, str], ...] = ()
    """Options of the world (`mavic worlds` lists them), such as: --options people 3 tools 4."""
    overwrite: bool = False
    """Let records and policies of other seeds, numbers or options be replaced: their names tell method, preset,
    network and setting alone."""

    def run(self) -> None:
        """Carry it out."""
        import dataclasses

        from mavic.experiments import evaluate, records, runner, unseen_phrases
        from mavic.experiments.config import ExperimentConfig, make_task
        from mavic.experiments.methods import METHODS

        methods = tuple(METHODS) if self.methods == ("all",) else self.methods
        options = {name: _value(text) for name, text in self.options}
        cells = [
            ExperimentConfig(
                world=self.world,
                method=method,
                network=network,
                preset=self.preset,
                options=options,
            ).under(setting)
            for network, setting, method in product(self.networks, self.settings, methods)
        ]
        folder = self.out / self.world
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        changes = {k: v for k, v in dataclasses.asdict(self.numbers).items() if v is not None}
        if self.words:  # what it needs is missed now, not after the training
            unseen_phrases.sets_of(make_task(self.world, **options))
        groups = runner.groups_of(cells, seeds, **changes)
        if not self.overwrite:
            for path, what in runner.in_the_way(groups, folder):
                raise Problem(
                    f"{path} has other {what}; choose another --out, or say --overwrite to replace it"
                )
        for group in groups:
            place = folder / "checkpoints" / f"{group.cells[0].network}-{runner.name_of(group)}"
            try:
                trained = runner.train_group(group, place, console=CONSOLE)
            except KeyboardInterrupt:
                kept = (place / "state.json").is_file()
                raise Problem(
                    f"stopped; saved in {place} up to the last point. The same command goes on from there."
                    if kept
                    else "stopped before the first point; nothing is saved yet"
                ) from None
            CONSOLE.print("judging…")
            scale = 0.25 if self.quick else 1.0
            said = unseen_phrases.evaluate(trained, scale=scale) if self.words else {}
            for cell, score in evaluate.evaluate(trained, scale=scale).items():
                score["words"] = said.get(cell, {})
                records.write(
                    folder / f"{cell.name()}.jsonl", runner.record_lines(trained, cell, score)
                )
                if not METHODS[cell.method].random:
                    runner.save_policy(folder / cell.name(), trained, cell, seeds[0])
                base, told = score["base"]["discounted"], score["compliance"]["per_instruction"]
                CONSOLE.print(
                    f"{cell.name()}: base {base.mean():.2f} (min {base.min():.2f}) · "
                    f"compliance {told.mean():.2%} (min {told.min():.2%})",
                    highlight=False,
                )
        CONSOLE.print(f"records and policies: {folder}; tables: mavic report {folder}")


@dataclass(frozen=True, kw_only=True)
class Report(Command):
    """Remake tables and figures from records alone; or show how far the words are understood.

    For example:
      mavic report results/box_pushing
      mavic report words
    """

    folder: Positional[Path]
    """Where the records (*.jsonl) are; or `words`: the targets of understanding on every world's test phrases."""
    out: Path | None = None
    """Where to write (default: the same folder)."""

    def run(self) -> None:
        """Carry it out."""
        if self.folder == Path("words"):
            if self.out is not None:
                raise Problem("the table of words is only printed; leave out --out")
            from mavic.apps import words

            for table in words.report_tables():
                CONSOLE.print(table, highlight=False)
            return
        from mavic.reporting import report

        report.report(self.folder, self.out, console=CONSOLE)


@dataclass(frozen=True, kw_only=True)
class Evaluate(Command):
    """Judge a policy file: base return, compliance, values, with instructions of your choice.

    Example: mavic evaluate results/box_pushing/mavic --setting live/by-kind
    """

    policy: Positional[Path]
    """The policy's file (with or without its ending)."""
    setting: str | None = None
    """schedule/rule[/overlap][/extras] to judge under (default: as it was trained)."""
    quick: bool = False
    """Judge with a quarter of the episodes."""
    words: bool = False
    """Judge also in words it was not trained on: held-out, novel, the paper's own."""
    json: bool = False
    """Print the whole score as one JSON object."""

    def run(self) -> None:
        """Carry it out."""
        import json

        from mavic.experiments import evaluate, records, runner, unseen_phrases

        scale = 0.25 if self.quick else 1.0
        trained = runner.trained_of(self.policy, self.setting)
        (cell,) = trained.group.cells
        score = evaluate.evaluate(trained, scale=scale)[cell]
        if self.words:
            score["words"] = unseen_phrases.evaluate(trained, scale=scale).get(cell, {})
        if self.json:
            print(json.dumps(records.plain(score)))
            return
        base, told = score["base"], score["compliance"]
        share = (
            f" ({base['discounted'][0] / score['optimum']:.2%} of the optimum)"
            if score["optimum"]
            else ""
        )
        CONSOLE.print(
            f"base return {base['discounted'][0]:.2f}{share}, solved {base['solved'][0]:.1%}, "
            f"{base['length'][0]:.1f} ticks ({base['episodes']} episodes)"
        )
        CONSOLE.print(
            f"compliance {told['per_instruction'][0]:.2%} of instructions, {told['per_decision'][0]:.2%} of "
            f"decisions, {told['per_step'][0]:.2%} of steps; greedy "
            f"{score['compliance_greedy']['per_instruction'][0]:.2%}; the task was done all the same in "
            f"{told['solved'][0]:.1%} of these episodes"
        )
        for kind, given in told["given"].items():
            if given[0]:
                CONSOLE.print(
                    f"  {kind}: {told['followed'][kind][0]:.0f} of {given[0]:.0f}", highlight=False
                )
        CONSOLE.print(f"leak {score['leak']['none'][0]:+.2%}")
        for name, words in score.get("words", {}).items():
            CONSOLE.print(
                f"{name} words: {words['understood']} of {words['phrases']} phrases understood, "
                f"{words['per_instruction'][0]:.2%} of instructions in them followed "
                f"(heard as their own vectors: {words['own_vector'][0]:.2%}; "
                f"unsure ones too: {words['own_vector_anyway'][0]:.2%})"
            )


@dataclass(frozen=True, kw_only=True)
class Replay(Command):
    """Film an episode: one HTML page that needs no server, or a GIF.

    For example:
      mavic replay results/box_pushing/mavic --out replay.html
      mavic replay results/box_pushing/mavic --against results/box_pushing/naive --say 3 "don't push" 12 --out r.html
    """

    policy: Positional[Path]
    """The team's file."""
    against: Path | None = None
    """Another team, side by side: the same seed, the same instructions."""
    say: tyro.conf.UseAppendAction[tuple[tuple[int, str, int], ...]] = ()
    """Tick, words and for how many ticks; give it again for more. Without: instructions come by chance."""
    seed: int = 1
    """Which episode."""
    ticks: int | None = None
    """Stop after so many."""
    options: tuple[tuple[str, str], ...] = ()
    """Options of the world that differ from those it was trained with, such as: --options third_cook true."""
    out: Path = Path("replay.html")
    """Ends in .html or .gif."""

    def run(self) -> None:
        """Carry it out."""
        from mavic.apps import replay, stage

        if self.out.suffix not in (".html", ".gif"):
            raise Problem(f"{self.out}: must end in .html or .gif")
        paths = [self.policy] + ([self.against] if self.against else [])
        options = {name: _value(text) for name, text in self.options}
        films = [stage.film(path, self.seed, self.say, self.ticks, options) for path in paths]
        if self.out.suffix == ".gif":
            replay.gif(films, self.out)
        else:
            replay.html(films, self.out, " and ".join(film.name for film in films))
        CONSOLE.print(f"wrote {self.out}", highlight=False)


@dataclass(frozen=True, kw_only=True)
class Play(Command):
    """Open the playground: talk to the teams in a browser and watch them, or play along.

    For example:
      mavic play
      mavic play --policy runs/box_pushing/mavic-tuned-protected-live-by-kind --against results/box_pushing/naive
      mavic play --host 0.0.0.0 --port 8000
    """

    policy: Path | None = None
    """A team of your own, before the shipped ones."""
    against: Path | None = None
    """Another, to stand beside it."""
    policies: Path | None = None
    """Where teams are, a folder a world (default: those that came along)."""
    host: str = "127.0.0.1"
    """Where to listen. Other machines can come in only if you name an address they reach; then a token is asked for."""
    port: int = 8642
    """Which port; 0 takes a free one."""
    browser: bool = True
    """Open the page in your browser."""

    def run(self) -> None:
        """Carry it out."""
        try:
            from mavic.apps.playground import server
        except ImportError as error:
            if error.name is None or error.name.startswith("mavic"):
                raise
            raise Problem(f"the playground needs {error.name}: pip install 'mavic[web]'") from None
        from mavic.apps.playground import catalog

        catalog.prepare()
        teams = catalog.open_catalog(self.policies, self.policy, self.against)
        server.play(teams, self.host, self.port, self._say, browser=self.browser)

    def _say(self, text: str) -> None:
        CONSOLE.print(text, highlight=False, soft_wrap=True, markup=False)


@dataclass(frozen=True, kw_only=True)
class Bench(Command):
    """Measure speed: environment alone, training with learning, compile time, peak memory.

    Example: mavic bench box_pushing --json bench.json
    """

    world: Positional[str] = "box_pushing"
    """Which world."""
    seeds: int = 5
    """Trainings at once."""
    repeats: int = 3
    """Interleaved repeats; medians are shown."""
    json: Path | None = None
    """Write the figures here as well."""

    def run(self) -> None:
        """Carry it out."""
        import json

        from mavic.experiments import benchmark

        found = benchmark.measure(
            self.world, seeds=self.seeds, repeats=self.repeats, console=CONSOLE
        )
        if self.json:
            self.json.write_text(json.dumps(found, indent=1) + "\n")


@dataclass(frozen=True, kw_only=True)
class Words(Command):
    """What a sentence is understood as: kind, probability, nearest phrases, or unsure.

    For example:
      mavic words box_pushing "please do not push anything"
      cat requests.txt | mavic words overcooked --json
      mavic words box_pushing --ablation
    """

    world: Positional[str]
    """Whose kinds: a world, or an instruction file of your own."""
    texts: Positional[tuple[str, ...]] = ()
    """Sentences; without any they are read from standard input, one a line."""
    obey_anyway: bool = False
    """Take the likeliest kind even when unsure, as the paper's agents do."""
    json: bool = False
    """One object a line: text, kind, probability, unsure, nearest, note."""
    ablation: bool = False
    """Instead: what encoders, poolings and scalings tell apart, left from right and by kind."""

    def run(self) -> None:
        """Carry it out."""
        self._ablate() if self.ablation else self._understand()

    def _ablate(self) -> None:
        from mavic.apps import words
        from mavic.language.reader.ablation import Ablation

        if self.texts or self.json:
            raise Problem("--ablation takes a world alone")
        found = list(words.ablation(self.world))
        for table in words.ablation_tables(
            self.world, [row for row in found if isinstance(row, Ablation)]
        ):
            CONSOLE.print(table, highlight=False)
        for line in found:
            if isinstance(line, str):
                CONSOLE.print(f"left out: {escape(line)}", highlight=False, soft_wrap=True)

    def _understand(self) -> None:
        import json

        from mavic.apps.words import instruction_path
        from mavic.language import lexicon, text
        from mavic.language.reader import read

        lex = lexicon.load(instruction_path(self.world))
        words = [text.given(t) for t in self.texts]
        if not words and sys.stdin is not None:
            words = text.lines(sys.stdin.buffer.read())
        if not words:
            raise Problem("nothing to understand: give sentences, or one a line on standard input")
        for found in read.understand_all(lex, words):
            nearest = [
                (round(float(cosine), 3), kind, near) for near, kind, cosine in found.nearest
            ]
            if self.json:
                line = {
                    "text": found.text,
                    "kind": found.asked(self.obey_anyway),
                    "probability": round(float(found.probability), 4),
                    "unsure": found.unsure,
                    "nearest": [{"text": t, "kind": k, "cosine": c} for c, k, t in nearest],
                    "note": found.note,
                }
                print(json.dumps(line, ensure_ascii=False))
                continue
            verdict = "unsure" if found.unsure and not self.obey_anyway else found.kind
            why = found.note or f"{found.probability:.0%}"
            CONSOLE.print(
                f"{escape(text.shown(found.text))} → [bold]{verdict}[/] ({escape(why)})",
                highlight=False,
                soft_wrap=True,
            )
            for cosine, kind, near in nearest:
                CONSOLE.print(f"    {cosine:.2f} {kind}: {escape(near)}", highlight=False)


@dataclass(frozen=True, kw_only=True)
class Worlds(Command):
    """List the worlds: options and what they are when left out, agents, macros, kinds of instruction.

    Example: mavic worlds
    """

    def run(self) -> None:
        """Carry it out."""
        from mavic.envs import api
        from mavic.experiments.config import make_task

        for name in api.names():
            bench = make_task(name)
            CONSOLE.rule(name)
            options = api.options_of(bench.env)
            if options:
                CONSOLE.print(
                    f"options: {', '.join(f'{k} {v}' for k, v in options.items())}", highlight=False
                )
            for agent, macros in zip(bench.env.agents, bench.env.macros, strict=True):
                CONSOLE.print(f"[bold]{agent}[/]: {', '.join(m.name for m in macros)}")
            for kind in bench.file.kinds:
                rule = kind.rule + (", extra" if kind.extra else "")
                CONSOLE.print(
                    f"  [green]{kind.name}[/] ({rule}): {kind.meaning} — “{kind.train[0]}”"
                )


def _import(module: str) -> None:
    import importlib
    import sys

    sys.path.insert(0, str(Path.cwd()))
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise Problem(f"plugin {module}: {error}") from None


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)


def _carry_out(command: Command) -> None:
    from mavic.language.encoder import EncoderError

    if isinstance(command, Train | Bench):
        from mavic.experiments import devices

        devices.use_cores()  # before a plugin computes anything
    for module in command.plugins:
        _import(module)
    try:
        command.run()
    except EncoderError as error:
        raise Problem(str(error)) from None


COMMANDS = Train | Evaluate | Report | Replay | Play | Worlds | Words | Bench


def main(args: list[str] | None = None) -> None:
    """Entry point."""
    try:
        command = tyro.cli(
            COMMANDS, args=args, prog="mavic", description="Teams that obey and still do their job."
        )
        _carry_out(command)
    except (Problem, ValueError, ImportError, OSError) as error:
        COMPLAINTS.print("[red]mavic:[/] " + escape(str(error)), highlight=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        COMPLAINTS.print("stopped")
        sys.exit(130)
