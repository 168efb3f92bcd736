"""Trainings that are killed, disks that are full, and threads that want the same folder."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import fake_training
from fault_counts import Count

from mavic.experiment import records
from mavic.storage import files
from mavic.training import checkpoint

ROOT = Path(__file__).parents[1]
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)
STOPPED = (-signal.SIGKILL, -signal.SIGTERM, 128 + signal.SIGTERM)


@dataclass(frozen=True)
class Victim:
    """A training to be killed: its command, how long after a write a kill may come, and what it leaves."""

    command: Callable[[Path], list[str]]
    at_most: float
    """Seconds between the first write of a process and its kill."""
    end: Callable[[Path], str]
    """The hash of all numbers in the folder of a finished training."""


def digest_of_end(folder: Path) -> str:
    return files.digest(checkpoint._found(folder)[0].with_suffix(".safetensors").read_bytes())


def digest_of_run(folder: Path) -> str:
    """The hash of a finished `mavic train`: weights, curve and scores, without what tells the time."""
    (place,) = folder.iterdir()
    weights = [path.read_bytes() for path in sorted(place.glob("*.safetensors"))]
    found = [records.read(path) for path in sorted(place.glob("*.jsonl"))]
    curves = [[dict(point, steps_per_second=0) for point in one.curve] for one in found]
    numbers = json.dumps([curves, [one.score for one in found]], sort_keys=True)
    return files.digest(b"".join([*weights, numbers.encode()]))


def script(place: Path) -> list[str]:
    return [str(ROOT / "tests" / "fake_training.py"), str(place), "12", "0.02"]


def command(place: Path) -> list[str]:
    line = "-m mavic train box_pushing --options size 4 --method mavic --seeds 2 --episodes 1600"
    return [*line.split(), "--batch", "16", "--hidden", "8", "--quick", "--out", str(place)]


NUMPY = Victim(script, 0.1, digest_of_end)
WHOLE = Victim(command, 1.5, digest_of_run)


def start(victim: Victim, place: Path) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    return subprocess.Popen(
        [sys.executable, *victim.command(place)],
        env={**environment, "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def written(place: Path) -> set[tuple[str, int]]:
    """The files of a folder and when each was written. Locks are not counted."""
    found = set()
    for path in place.rglob("*.*") if place.exists() else ():
        if path.suffix in (".json", ".jsonl", ".safetensors"):
            try:
                found.add((str(path), path.stat().st_mtime_ns))
            except FileNotFoundError:  # renamed or swept meanwhile
                continue
    return found


def not_killed(victim: Victim, folder: Path) -> str:
    """The hash of a training that was left alone. The first to ask trains it; the others wait and read it."""
    known = folder / "expected"
    with (folder / "expected.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if not known.exists():
            process = start(victim, folder / "not-killed")
            said, _ = process.communicate()
            if process.returncode:
                raise RuntimeError(f"a training that nobody killed failed: {said}")
            known.write_text(victim.end(folder / "not-killed"))
    return known.read_text()


def kills(victim: Victim, count: Count, times: int, seed: int, folder: Path) -> None:
    """A training is killed at random moments until it is done. Its end must be that of one left alone."""
    random_ = random.Random(seed)
    expected = not_killed(victim, folder.parent)
    while count.injected < times:
        place, killed = folder / f"killed-{count.injected}", 0
        while True:
            before = written(place)
            process = start(victim, place)
            if count.injected + killed < times:
                while process.poll() is None and written(place) <= before:
                    time.sleep(0.005)  # until it writes: kills before that test nothing
                time.sleep(random_.random() * victim.at_most)
                if process.poll() is None:
                    process.send_signal(random_.choice(SIGNALS))
                    killed += 1
            said, _ = process.communicate()
            if process.returncode not in STOPPED:
                break
        good = process.returncode == 0 and victim.end(place) == expected
        outcome = "survived" if good else "tracebacks" if process.returncode else "silent"
        for _ in range(killed):
            count.add(outcome, said[-300:])
        shutil.rmtree(place)


def full_disk(count: Count, times: int, seed: int, folder: Path) -> None:
    """The disk is full, or a limit is reached, at some write of a training. The files before it must stay whole."""
    random_ = random.Random(seed)
    fake_training.train_group(folder / "alone", points=4)
    expected = digest_of_end(folder / "alone")
    real = os.fsync
    for number in range(times):
        place, left = folder / f"full-{number}", [random_.randrange(8)]
        error = random_.choice(
            [
                OSError(28, "No space left on device"),
                OSError(27, "File too large"),
                OSError(30, "Read-only file system"),
            ]
        )

        def fsync(handle: int, left=left, error=error) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise error
            real(handle)

        with mock.patch.object(os, "fsync", fsync):
            try:
                fake_training.train_group(place, points=4)
                outcome = "survived"
            except files._StorageError as refused:
                outcome = "refused" if "cannot be written" in str(refused) else "tracebacks"
            except Exception:
                outcome = "tracebacks"
        fake_training.train_group(place, points=4)  # there is room again
        drafts = list(place.rglob(f"*{files.DRAFT}"))
        count.add(
            outcome if digest_of_end(place) == expected and not drafts else "silent", str(drafts)
        )
        shutil.rmtree(place)


def races(count: Count, times: int, seed: int, folder: Path) -> None:
    """Several threads want the same folder. One holds it; the others are told who."""
    inside, guard = [0], threading.Lock()

    def want() -> None:
        try:
            with files.locked(folder):
                with guard:
                    inside[0] += 1
                    alone = inside[0] == 1
                time.sleep(0.002)
                with guard:
                    inside[0] -= 1
            outcome = "survived" if alone else "silent"
        except files.LockedError as error:
            outcome = "refused" if "in use by" in str(error) else "tracebacks"
        except Exception:
            outcome = "tracebacks"
        with guard:
            count.add(outcome)

    while count.injected < times:
        threads = [threading.Thread(target=want) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
