"""The cells of a study: each is one command that may be given again and again, with a folder of its own.

A cell's folder holds `cell.json` (its command), `attempts.jsonl` (a line when an attempt begins and one when it ends),
`log.txt` (what the command said), what the command wrote (`mavic train`: its options and numbers in `config.toml`, then
records and policies), and `done.json` once it has ended well. A cell that was killed is simply run again; `mavic train`
goes on from its last checkpoint. A finished cell is not run again, unless its command has changed.
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

from mavic.experiments import files

DONE, CELL, ATTEMPTS, LOG = "done.json", "cell.json", "attempts.jsonl", "log.txt"
POLL = 0.5  # seconds
ENVIRONMENT = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # several cells may share a GPU
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
class Cell:
    """One command of Python: the arguments of the interpreter, such as -m mavic train …"""

    name: str
    folder: Path
    arguments: tuple[str, ...]


def done(cell: Cell) -> dict[str, Any] | None:
    """Return the mark of a finished cell; None if it is not finished, or if another command made it."""
    mark = _read(cell.folder / DONE)
    if mark is None or tuple(mark.get("arguments", ())) != cell.arguments:
        return None
    return mark


def attempts(cell: Cell) -> list[dict[str, Any]]:
    """Return the lines on a cell's attempts, in their order. A line that a kill cut short is left out."""
    try:
        lines = (cell.folder / ATTEMPTS).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [found for line in lines if (found := _parsed(line)) is not None]


def run(cell: Cell, on_wait: OnWait | None = None, patient: bool = False) -> int:
    """Run a cell unless it is done, and return its exit status. `on_wait` gets the last line of its log now and then.

    A `patient` cell lets others go first on a GPU that it shares with them. A signal that stops this process is passed
    on, so that the command can save what it has. If this process is killed, so is the command.
    """
    if done(cell) is not None:
        return 0
    files.check_writable(cell.folder)
    with _alone(cell.folder):
        if done(cell) is not None:  # by whoever held the folder
            return 0
        number = 1 + sum("started" in line for line in attempts(cell))
        about = {"name": cell.name, "arguments": list(cell.arguments)}
        files.write_text(cell.folder / CELL, json.dumps(about, indent=1) + "\n")
        began = time.time()
        who = {"attempt": number, "host": socket.gethostname(), "pid": os.getpid()}
        _note(cell, {**who, "started": _clock()})
        status = _attempt(cell, on_wait, patient)
        _note(cell, {"attempt": number, "ended": _clock(), "status": status})
        if status == 0:
            mark = {
                "arguments": list(cell.arguments),
                "attempts": number,
                "seconds": round(time.time() - began, 1),
                "host": who["host"],
                "ended": _clock(),
            }
            files.write_text(cell.folder / DONE, json.dumps(mark, indent=1) + "\n")
        return status


def _attempt(cell: Cell, on_wait: OnWait | None, patient: bool) -> int:
    """Run the command to its end. Its output goes to the log."""
    with open(cell.folder / LOG, "ab") as log:
        # A group of its own: Ctrl-C reaches only this process, which passes it on once.
        child = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(os.getpid()), *cell.arguments],
            # lines of the log stay whole
            env={**ENVIRONMENT, **(PATIENT if patient else {}), **os.environ, "COLUMNS": "200"},
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
                        on_wait(last_line(cell))
        except BaseException:
            # A command that a script started in the background ignores SIGINT.
            child.terminate()
            child.wait()
            raise


def last_line(cell: Cell) -> str:
    """Return the last line of a cell's log that is not empty."""
    try:
        with open(cell.folder / LOG, "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - 4096))
            lines = log.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a folder once nobody else does, or raise `files.LockedError` after a while."""
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


def _note(cell: Cell, line: dict[str, Any]) -> None:
    with open(cell.folder / ATTEMPTS, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _clock() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return _parsed(path.read_text(encoding="utf-8"))
    except OSError:
        return None


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
