"""The jobs of a study: each is one command that may be given again and again, with a folder of its own.

A job's folder holds `job.json` (its command), `attempts.jsonl` (a line when an attempt begins and one when it ends),
`log.txt` (what the command said), what the command wrote (`mavic train`: its options and numbers in `config.toml`, then
records and policies), and `done.json` once it has ended well. A job that was killed is simply run again; `mavic train`
goes on from its last checkpoint. A finished job is not run again, unless its command has changed.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mavic.storage import files, json_shape

DONE, JOB, ATTEMPTS, LOG = "done.json", "job.json", "attempts.jsonl", "log.txt"
POLL = 0.5  # seconds
ENVIRONMENT = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # several jobs may share a GPU
PATIENT = {"CUDA_MPS_CLIENT_PRIORITY": "1"}  # on a GPU that is shared through MPS: below normal
PATIENCE = 60.0  # seconds to wait for a folder that a dying attempt still holds
# Run first in the new process: on Linux it dies when its parent is killed (prctl 1 is PR_SET_PDEATHSIG). Then it
# becomes the command.
LAUNCH = """
import ctypes, os, sys
if sys.platform.startswith("linux"):
    ctypes.CDLL(None).prctl(1, 9)
    if os.getppid() != int(sys.argv[1]):
        os._exit(1)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
OnWait = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One command of Python: the arguments of the interpreter, such as -m mavic train …"""

    name: str
    folder: Path
    arguments: tuple[str, ...]
    makes: tuple[str, ...] = ()
    """The files, as paths in its folder, without which it is not finished."""

    def done(self) -> dict[str, Any] | None:
        """Return the mark of a finished job.

        None if it is not finished, if another command made it, or if a file that it made is gone.
        """
        mark = _read(self.folder / DONE)
        if mark is None or mark.get("arguments") != list(self.arguments):
            return None
        return mark if all((self.folder / name).is_file() for name in self.makes) else None

    def run(self, on_wait: OnWait | None = None, patient: bool = False) -> int:
        """Run the job unless it is done, and return its exit status.

        A signal that stops this process is passed on, so that the command can save its state. If this process is
        killed, so is the command.

        Args:
            on_wait: told the last line of its log now and then.
            patient: let others go first on a GPU that they share through MPS.
        """
        if self.done() is not None:
            return 0
        files.check_writable(self.folder)
        with _alone(self.folder):
            if self.done() is not None:  # by the process that held the folder
                return 0
            number = 1 + sum("started" in line for line in _attempts(self))
            about = {"name": self.name, "arguments": list(self.arguments)}
            files.write_text(self.folder / JOB, json.dumps(about, indent=1) + "\n")
            began = time.time()
            who = {"attempt": number, "host": socket.gethostname(), "pid": os.getpid()}
            _note(self, {**who, "started": _clock()})
            status = _attempt(self, on_wait, patient)
            _note(self, {"attempt": number, "ended": _clock(), "status": status})
            if status == 0:
                mark = {
                    "arguments": list(self.arguments),
                    "attempts": number,
                    "seconds": round(time.time() - began, 1),
                    "host": who["host"],
                    "ended": _clock(),
                }
                files.write_text(self.folder / DONE, json.dumps(mark, indent=1) + "\n")
            return status

    def last_line(self) -> str:
        """Return the last line of a job's log that is not empty."""
        try:
            with open(self.folder / LOG, "rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - 4096))
                lines = log.read().decode("utf-8", "replace").splitlines()
        except OSError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _attempts(job: Job) -> list[dict[str, Any]]:
    """Return the lines on a job's attempts, in their order. A line that a kill cut short is left out."""
    try:
        lines = (job.folder / ATTEMPTS).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [found for line in lines if (found := _parsed(line)) is not None]


def _attempt(job: Job, on_wait: OnWait | None, patient: bool) -> int:
    """Run the command to its end. Its output goes to the log."""
    with open(job.folder / LOG, "ab") as log:
        # A group of its own: Ctrl-C reaches only this process, which passes it on once.
        child = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(os.getpid()), *job.arguments],
            # lines of the log stay whole
            env={
                **ENVIRONMENT,
                **(PATIENT if patient else {}),
                **os.environ,
                **_paths(),
                "COLUMNS": "200",
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            while True:
                try:
                    return child.wait(POLL)
                except subprocess.TimeoutExpired:
                    if on_wait is not None:
                        on_wait(job.last_line())
        except BaseException:
            # A command that a script started in the background ignores SIGINT.
            child.terminate()
            child.wait()
            raise


def _paths() -> dict[str, str]:
    """Return the environment in which Python finds mavic and does not search the current folder for modules."""
    package = Path(__file__).parents[2]
    checkout = [] if package.name.endswith("-packages") else [str(package)]
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return {
        "PYTHONSAFEPATH": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, [*checkout, *given])),
    }


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock a folder once it is free, or raise `files.LockedError` after a while."""
    until = time.monotonic() + PATIENCE
    with contextlib.ExitStack() as held:
        while True:
            try:
                held.enter_context(files.locked(folder))
                break
            except files.LockedError:
                if time.monotonic() > until:
                    raise
            time.sleep(POLL)
        yield


def _note(job: Job, line: dict[str, Any]) -> None:
    with open(job.folder / ATTEMPTS, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _clock() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return _parsed(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        found = json_shape.parse(text)
    except json_shape.ShapeError:
        return None
    return found if isinstance(found, dict) else None
