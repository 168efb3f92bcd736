"""`mavic reproduce`."""

from __future__ import annotations

import importlib.util
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from tyro.conf import Positional

from mavic.apps import console
from mavic.apps.commands.command import Command, UserError, options_from
from mavic.apps.commands.options import Folder, StudyName
from mavic.hints import look_up, suggest

if TYPE_CHECKING:
    from mavic.studies.jobs import Job
    from mavic.studies.studies import Study
    from mavic.studies.trainings import Training


@dataclass(frozen=True, kw_only=True)
class Reproduce(Command):
    """Make the paper's tables and figures, and ours, one study at a time. Without a name: say what each showed.

    A study is a number of trainings. Each has a folder with its command, its log, its attempts and its records. What is
    finished is not trained again; what was stopped or killed goes on from its last checkpoint with the same command.

    For example:
      mavic reproduce
      mavic reproduce heatmap --quick
      mavic reproduce table1 --only paper_conditions-warehouse
      mavic reproduce table1 --draw --publish results
      mavic reproduce ablation --engine ray --engine-options address auto gpus 1
      mavic reproduce ablation --engine slurm --engine-options slurm_partition gpu gpus_per_node 1 timeout_min 120
    """

    name: Positional[StudyName] = ""
    """The study, such as table1 or heatmap. Without a name, the command lists all studies."""
    quick: bool = False
    """Short trainings: at most ten minutes on two cores. Do not quote their numbers."""
    engine: Literal["local", "ray", "slurm"] = "local"
    """Where trainings run: one after another on this machine, on a Ray cluster (extra: mavic[ray]) or as jobs of a
    Slurm cluster (extra: mavic[slurm])."""
    engine_options: tuple[tuple[str, str], ...] = ()
    """Options of the engine. local: jobs (trainings at once; 1, or 2 with --quick where there is no GPU, because they
    mostly compile). ray: address, cpus, gpus (of each training). slurm: those of submitit."""
    only: tuple[str, ...] = ()
    """Run only these trainings of the study; --commands names them."""
    out: Folder = Path("runs/studies")
    """The folder of all studies. Studies share trainings, so it should stay the same."""
    records: Folder = Path("results")
    """A folder with further records, for tables and figures of trainings that were not run here."""
    draw: bool = False
    """Make the tables and figures from the records that are there, without training."""
    publish: Folder | None = None
    """Write tables and figures to this folder too, and copy the records that they were made from."""
    commands: bool = False
    """Print the command of each training instead of running it."""

    @property
    def profile(self) -> str:
        """The name of the profile that is asked for."""
        return "quick" if self.quick else "full"

    def run(self) -> None:
        """Carry out the command."""
        import jax

        from mavic.studies import studies

        jax.config.update("jax_platforms", "cpu")  # trainings are processes of their own
        if not self.name:
            self._list()
            return
        study = look_up(studies.STUDIES, self.name, "study")
        trainings = self._chosen(study)
        folder = self.out / self.profile
        jobs = [training.job(folder) for training in trainings]
        if self.commands:
            for job in jobs:
                console.OUT.print(job.name, style="bold")
                print(shlex.join(("python", *job.arguments)))
            return
        if not self.quick:  # the longest first: several at once then end together
            costs = {one.name: one.seconds("gpu") for one in trainings}
            jobs.sort(key=lambda job: -costs[job.name])
        failed = [] if self.draw else self._train(jobs)
        self._draw(study, folder)
        if failed:
            logs = ", ".join(str(job.folder / "log.txt") for job in failed)
            raise UserError(f"{len(failed)} of {len(jobs)} trainings failed; see {logs}")

    def _chosen(self, study: Study) -> list[Training]:
        """Return the trainings that are asked for."""
        every = {one.name: one for one in study.trainings[self.profile]}
        for name in self.only:
            if name not in every:
                raise UserError(
                    f"{study.name} has no training {name!r}; {suggest(name, tuple(every))}"
                )
        return [one for name, one in every.items() if not self.only or name in self.only]

    def _train(self, every: Sequence[Job]) -> list[Job]:
        """Run the jobs that are not done yet. Return those that failed."""
        from mavic.studies import engines

        package = engines.EXTRAS.get(self.engine)
        if package and importlib.util.find_spec(package) is None:
            raise UserError(
                f"--engine {self.engine} needs {package}: pip install 'mavic[{self.engine}]'"
            )
        todo = [job for job in every if job.done() is None]
        if len(todo) < len(every):
            console.OUT.print(f"{len(every) - len(todo)} of {len(every)} trainings are done")
        place = engines.Settings(folder=self.out / self.engine, options=self._engine_options())
        failed = []
        with _Shown(len(every), len(every) - len(todo)) as shown:

            def end(job: Job, status: int) -> None:
                shown.end(job, status)
                if status:
                    failed.append(job)

            engines.ENGINES[self.engine](todo, place, end, shown.note)
        return failed

    def _engine_options(self) -> dict[str, Any]:
        """Return the options of the engine. Several quick trainings run at once."""
        from mavic.studies.trainings import QUICK_JOBS

        several = self.engine == "local" and self.quick and not _has_gpu()
        usual = {"jobs": QUICK_JOBS} if several else {}
        return {**usual, **options_from(self.engine_options)}

    def _draw(self, study: Study, folder: Path) -> None:
        """Make tables and figures, and say what is missing."""
        from mavic.reporting import studies as drawn

        further = None if self.quick else self.records
        made = drawn.draw(study, self.profile, folder, further, folder, self.publish)
        for name, count in Counter(name for name, _ in made.missing).items():
            said = f"{name}: {count} configurations have no record yet"
            console.OUT.print(said, style="yellow", soft_wrap=True)
        if made.text:
            console.OUT.print(made.text, markup=False, soft_wrap=True)
        for path in made.written:
            console.OUT.print(f"wrote {path}", soft_wrap=True)

    def _list(self) -> None:
        """Print all studies: what they showed and in which figure, what they cost here, what is done."""
        from mavic.reporting.studies import answers
        from mavic.studies import studies, trainings

        device, machine = ("gpu", "a GPU like the H200") if _has_gpu() else ("cpu", "two cores")
        columns = ("study", "what it showed", "figure", "here", "--quick", "done")
        table = Table(*columns, title="mavic reproduce NAME")
        for study in studies.STUDIES.values():
            costs, ready = [], []
            for profile in trainings.PROFILES:
                every = study.trainings[profile]
                marks = [one.job(self.out / profile).done() for one in every]
                left = [one for one, mark in zip(every, marks, strict=True) if mark is None]
                cost = trainings.seconds_of_all(left, profile, device)
                costs.append(_duration(cost) if left else "—")
                ready.append(f"{sum(mark is not None for mark in marks)}/{len(every)}")
            showed = answers.answer(study.name, self.records) or f"{study.shows} (not published)"
            figure = answers.figure(study.name, self.records)
            table.add_row(study.name, showed, str(figure or "—"), *costs, " · ".join(ready))
        console.OUT.print(table)
        console.OUT.print(
            f"Costs are estimates for {machine} of what is not done yet. Done: full · quick, in {self.out}. "
            f"Figures and pages (NAME.md) are in {self.records}; --draw makes them from its records.",
        )


def _has_gpu() -> bool:
    return Path("/dev/nvidia0").exists()


def _duration(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    return f"~{minutes} min" if minutes < 100 else f"~{seconds / 3600:.0f} h"


class _Shown:
    """Progress over all jobs: a bar on a terminal, and a line per job in a log."""

    def __init__(self, total: int, ready: int) -> None:
        self.total, self.ready, self.notes = total, ready, dict[str, str]()
        self.bar = Progress(
            TextColumn("trainings"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=console.OUT,
            disable=not console.OUT.is_terminal,
        )
        self.task = self.bar.add_task("trainings", total=total, completed=ready, note="")

    def __enter__(self) -> _Shown:
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def note(self, job: Job, line: str) -> None:
        """Show the last line that a job said."""
        if line and self.notes.get(job.name) != line:
            self.notes[job.name] = line
            self.bar.update(self.task, note=f"{job.name}: {line}"[:150])
            if not console.OUT.is_terminal:
                console.OUT.print(f"{job.name}: {line}", markup=False)

    def end(self, job: Job, status: int) -> None:
        """Count a job that ended, and say how."""
        said = "done" if status == 0 else f"failed with status {status}"
        self.ready += status == 0
        self.bar.update(self.task, completed=self.ready)
        console.OUT.print(f"{job.name}: {said} ({self.ready} of {self.total})", soft_wrap=True)
