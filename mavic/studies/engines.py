"""Engines: where the jobs of a study run. Each calls `Job.run` for every job and tells how it ended.

`local` runs the jobs on this machine, one after another unless it is asked for several at once. A training uses all
devices of the machine. `ray` hands the jobs to a Ray cluster, and `slurm` to a Slurm cluster by submitit. There all
machines must see the folder of the study under the same path and have mavic installed. If a machine is lost, its jobs
are finished elsewhere.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

from mavic.hints import suggest
from mavic.ranges import Count, NotNegative, check_value
from mavic.storage import files
from mavic.studies import jobs
from mavic.studies.jobs import Job

RETRIES = 5  # of a job whose machine was lost
LOST = -1  # the status of a job that no machine brought to its end
POLL = 1.0  # seconds
CONNECT = 5.0  # seconds that a cluster may take to answer
OnEnd = Callable[[Job, int], None]
OnNote = Callable[[Job, str], None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What an engine needs to know."""

    folder: Path
    """Where an engine keeps files of its own."""
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Options of the engine; its function says which."""


Engine = Callable[[Sequence[Job], Settings, OnEnd, OnNote], None]


def _local(todo: Sequence[Job], settings: Settings, on_end: OnEnd, on_note: OnNote) -> None:
    """Run jobs on this machine. Option: jobs, how many run at once (default: 1).

    They start in the given order. If several run at once, the first has priority on a GPU that they share through MPS,
    so the longest should be the first.
    """
    options = _options("local", settings, jobs=(1, Count))
    stopped = threading.Event()

    def note(job: Job, line: str) -> None:
        if stopped.is_set():  # raised in the job's thread: it passes the signal on to its command
            raise KeyboardInterrupt
        on_note(job, line)

    at_once = options["jobs"]
    with ThreadPoolExecutor(at_once) as pool:
        running = {
            pool.submit(job.run, partial(note, job), patient=at_once > 1 and number > 0): job
            for number, job in enumerate(todo)
        }
        try:
            for one in as_completed(running):
                on_end(running[one], one.result())
        except BaseException:
            stopped.set()
            pool.shutdown(cancel_futures=True)
            raise


def _ray(todo: Sequence[Job], settings: Settings, on_end: OnEnd, on_note: OnNote) -> None:
    """Run jobs on a Ray cluster. Options: address (default: a running cluster, else this machine), cpus, gpus."""
    import ray

    options = _options(
        "ray",
        settings,
        address=(None, str | None),
        cpus=(2, NotNegative),
        gpus=(None, NotNegative | None),
    )
    ours = not ray.is_initialized()
    if ours:
        # workers find mavic where this process found it
        env = {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, [_root(), *_paths()]))}}
        _check_reachable(options["address"])
        _interruptible(
            partial(ray.init, address=options["address"], runtime_env=env, log_to_driver=False)
        )
    try:
        gpus = options["gpus"]
        if gpus is None:
            gpus = 1 if ray.cluster_resources().get("GPU") else 0
        attempt = ray.remote(num_cpus=options["cpus"], num_gpus=gpus, max_retries=RETRIES)(Job.run)
        running = {attempt.remote(job): job for job in todo}
        while running:
            ended, _ = ray.wait(list(running), timeout=POLL)
            for one in ended:
                job = running.pop(one)
                try:
                    on_end(job, int(ray.get(one)))
                except (ray.exceptions.RayError, files.LockedError) as error:
                    on_note(job, _short(error))
                    on_end(job, LOST)
            for job in running.values():
                on_note(job, job.last_line())
    finally:
        if ours:
            ray.shutdown()


def _options(engine: str, settings: Settings, **known: tuple[Any, Any]) -> dict[str, Any]:
    """Return an engine's options.

    Args:
        engine: its name.
        settings: what the user gave.
        known: the default and the annotation of each option.
    """
    for name, value in settings.options.items():
        if name not in known:
            raise ValueError(
                f"the engine {engine} has no option {name!r}; {suggest(name, tuple(known))}"
            )
        check_value(value, known[name][1], f"the option {name} of the engine {engine}")
    return {name: default for name, (default, _) in known.items()} | dict(settings.options)


def _check_reachable(address: str | None) -> None:
    """Raise a `ValueError` unless somebody listens at a cluster's address, HOST:PORT or ray://HOST:PORT.

    Ray itself would ask again for minutes.
    """
    host, colon, port = (address or "").rpartition("://")[2].rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ValueError(f"no Ray cluster answers at {address!r} ({error})") from None


def _interruptible(call: Callable[[], Any]) -> None:
    """Make a call in a thread and wait for it. A signal stops the waiting; Ray's own code would ignore it."""
    ended: Future[None] = Future()

    def run() -> None:
        try:
            ended.set_result(call())
        except BaseException as error:
            ended.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    while not ended.done():
        time.sleep(0.1)
    ended.result()


def _root() -> str:
    """Return the folder that holds the package."""
    return str(Path(jobs.__file__).parents[2])


def _paths() -> list[str]:
    return os.environ.get("PYTHONPATH", "").split(os.pathsep)


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


class _Attempt:
    """A job as submitit wants it: called on the machine, and sent again when it is preempted or out of time."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __call__(self) -> int:
        """Run the job."""
        return self.job.run()

    def checkpoint(self) -> Any:
        """Return what is submitted again; the job's folder holds what was done."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def _slurm(todo: Sequence[Job], settings: Settings, on_end: OnEnd, on_note: OnNote) -> None:
    """Run jobs on a Slurm cluster. Options are submitit's, such as timeout_min or slurm_partition.

    With cluster=local they run as processes of this machine.
    """
    import submitit

    options = {"timeout_min": 240, "cpus_per_task": 2, **settings.options}
    cluster = options.pop("cluster", None)
    if cluster is None and shutil.which("sbatch") is None:  # submitit would quietly use processes
        raise ValueError(
            "there is no Slurm here (no command sbatch); --engine local runs trainings on this machine, and "
            "--engine-options cluster local as processes of submitit"
        )
    try:
        executor = submitit.AutoExecutor(folder=settings.folder, cluster=cluster)
        executor.update_parameters(name="mavic", **options)
    except (NameError, TypeError, ValueError, AttributeError) as refused:
        raise ValueError(f"submitit refuses these engine options: {_short(refused)}") from None
    with executor.batch():
        submitted = [executor.submit(_Attempt(job)) for job in todo]
    running = dict(zip(submitted, todo, strict=True))
    while running:
        for attempt, job in list(running.items()):
            if not attempt.done():
                on_note(job, job.last_line())
                continue
            del running[attempt]
            error = attempt.exception()
            if error is not None:
                on_note(job, _short(error))
            on_end(job, LOST if error is not None else int(attempt.result()))
        time.sleep(POLL)


ENGINES: dict[str, Engine] = {"local": _local, "ray": _ray, "slurm": _slurm}
EXTRAS = {"ray": "ray", "slurm": "submitit"}  # the package that an engine needs
