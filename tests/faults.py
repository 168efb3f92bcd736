"""Faults on purpose: kills, damaged and malformed files, command lines, a full disk, races, an hour of pages.

    python tests/faults.py --kills 100 --files 10000 --pages 0

Each sort of fault is injected many times, and each outcome is counted. `survived`: the result is as if nothing had
happened. `refused`: an error that names the file or the value, on one line. `tracebacks`: any other error. `silent`:
something was damaged or out of range, and nobody said so. The last two must be 0. `tests/test_faults.py` is the short
form.
"""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import fake_training
import sample_records
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mavic.apps import cli
from mavic.envs import api
from mavic.experiments import checkpoint, files, policy_file, records, runner
from mavic.experiments.config import ExperimentConfig, task_of
from mavic.instruct import reward, spec
from mavic.reporting import rows

ROOT = Path(__file__).parents[1]
SEEDS_ALLOWED, GAMMA_ALLOWED = range(1, 1001), (0.0, 1.0)


@dataclass
class Count:
    """How many faults were injected, and how each ended."""

    name: str
    injected: int = 0
    survived: int = 0
    refused: int = 0
    tracebacks: int = 0
    silent: int = 0
    examples: list[str] = field(default_factory=list)
    """Of the last two sorts."""

    def add(self, outcome: str, example: str = "") -> None:
        self.injected += 1
        setattr(self, outcome, getattr(self, outcome) + 1)
        if outcome in ("tracebacks", "silent") and len(self.examples) < 5:
            self.examples.append(f"{outcome}: {example[:300]}")

    def __str__(self) -> str:
        numbers = (self.injected, self.survived, self.refused, self.tracebacks, self.silent)
        return f"{self.name:34}" + "".join(f"{number:>11,}" for number in numbers)


HEADER = f"{'':34}" + "".join(
    f"{name:>11}" for name in ("injected", "survived", "refused", "tracebacks", "silent")
)


def repeat(times: int, strategy: st.SearchStrategy, act: Callable[[Any], None]) -> None:
    """Call `act` with so many examples of a strategy."""
    if times < 1:
        return

    @settings(
        max_examples=times,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(strategy)
    def go(example: Any) -> None:
        act(example)

    go()


# What damage looks like

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.just(10**400),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@st.composite
def damages(draw: Any) -> Callable[[bytes], bytes]:
    """A flipped bit, a cut, bytes put in, taken out or written over."""
    sort = draw(st.sampled_from(["flip", "cut", "put", "take", "over", "empty"]))
    where, bit = draw(st.floats(0, 0.999999)), draw(st.integers(0, 7))
    some = draw(st.binary(min_size=1, max_size=9))

    def damage(data: bytes) -> bytes:
        place = int(where * len(data))
        if sort == "flip":
            return data[:place] + bytes([data[place] ^ (1 << bit)]) + data[place + 1 :]
        if sort == "cut":
            return data[:place]
        if sort == "put":
            return data[:place] + some + data[place:]
        if sort == "take":
            return data[:place] + data[place + len(some) :]
        return b"" if sort == "empty" else data[:place] + some + data[place + len(some) :]

    return damage


def places(value: Any, path: tuple = ()) -> list[tuple]:
    """The paths of all entries of parsed JSON."""
    found = [path] if path else []
    if isinstance(value, dict):
        return found + [p for name, one in value.items() for p in places(one, (*path, name))]
    if isinstance(value, list):
        return found + [p for i, one in enumerate(value[:4]) for p in places(one, (*path, i))]
    return found


@st.composite
def reshapings(draw: Any) -> Callable[[Any], Any]:
    """Valid JSON of another shape: an entry is replaced or removed."""
    where, removes, new = draw(st.floats(0, 0.999999)), draw(st.booleans()), draw(JSON)

    def reshape(value: Any) -> Any:
        value = copy.deepcopy(value)
        paths = places(value)
        path = paths[int(where * len(paths))]
        holder = value
        for name in path[:-1]:
            holder = holder[name]
        if removes:
            del holder[path[-1]]
        else:
            holder[path[-1]] = new
        return value

    return reshape


# Files


@dataclass(frozen=True)
class Sample:
    """A file to damage, how it is read, what it then holds, and how it is written anew with a fitting hash."""

    path: Path
    read: Callable[[], Any]
    errors: tuple[type[Exception], ...]
    rewrite: Callable[[Any], None] | None = None
    parsed: Any = None


def plain(value: Any) -> Any:
    """What a file holds, as numbers that can be compared."""
    return {name: leaf.tolist() for name, leaf in checkpoint.flatten(value).items()}


def rewrite(notes: Path, content: Any) -> None:
    """Write a description with the hash that fits its content, so that only its values are wrong."""
    if isinstance(content, dict):
        content = {name: value for name, value in content.items() if name != "sha256"}
        with contextlib.suppress(ValueError):
            content["sha256"] = files.digest_of(content)
    notes.write_text(json.dumps(content))


def policy_samples(folder: Path) -> list[Sample]:
    path = folder / "team.safetensors"
    trained = fake_training.train_group(points=1)
    runner.save_policy(path, trained, trained.group.configs[0], fake_training.SEEDS[0])
    notes = path.with_suffix(".json")

    def load() -> Any:
        team = policy_file.load(path)
        policy_file.origin(team)
        return plain(team.weights), team.facts

    errors = (policy_file.PolicyError,)
    return [
        Sample(path, load, errors),
        Sample(notes, load, errors, partial(rewrite, notes), json.loads(notes.read_text())),
    ]


def checkpoint_samples(folder: Path) -> list[Sample]:
    place = folder / "checkpoint"
    trained = fake_training.train_group(place, points=1)
    (notes,) = checkpoint.found(place)

    def load() -> Any:
        state, curve = checkpoint.load(place, trained.group, trained.state, fake_training.BATCH)
        return plain(state), curve

    errors = (checkpoint.CheckpointError,)
    return [
        Sample(notes.with_suffix(".safetensors"), load, errors),
        Sample(notes, load, errors, partial(rewrite, notes), json.loads(notes.read_text())),
    ]


def record_sample(folder: Path) -> Sample:
    path = sample_records.save(folder, ExperimentConfig(), [1.0, 2.0], [0.5, 0.6], [0.1, 0.2])

    def load() -> Any:
        found = records.read(path)
        rows.table([found])
        return found.run, found.curve, found.score

    def rewrite(content: Any) -> None:
        with contextlib.suppress(ValueError, AttributeError, KeyError, IndexError, TypeError):
            content[0]["sha256"] = records._digest(content)
        path.write_text("".join(json.dumps(line) + "\n" for line in content))

    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return Sample(path, load, (records.RecordError,), rewrite, lines)


def damaged(times: int, folder: Path) -> Iterator[Count]:
    """Bytes of files that mavic wrote are changed. Reading must refuse the file by its name, or find the same in it."""
    samples = [*policy_samples(folder), *checkpoint_samples(folder), record_sample(folder)]
    for sample in samples:
        count = Count(f"damaged {sample.path.name[:24]}")
        whole, expected = sample.path.read_bytes(), sample.read()

        def act(
            damage: Callable[[bytes], bytes],
            sample=sample,
            count=count,
            whole=whole,
            expected=expected,
        ) -> None:
            data = damage(whole)
            if data == whole:
                return
            sample.path.write_bytes(data)
            judge(
                count,
                sample,
                lambda found: "survived" if same(found, expected) else "silent",
                repr(data[:80]),
            )

        repeat(times // len(samples), damages(), act)
        sample.path.write_bytes(whole)
        yield count


def same(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def reshaped(times: int, folder: Path) -> Iterator[Count]:
    """Valid JSON of another shape, with a fitting hash. Reading must refuse it by its name, or find a legal file."""
    samples = [policy_samples(folder)[1], checkpoint_samples(folder)[1], record_sample(folder)]
    for sample in samples:
        count = Count(f"other shapes of {sample.path.name[:18]}")
        whole = sample.path.read_bytes()

        def act(reshape: Callable[[Any], Any], sample=sample, count=count) -> None:
            content = reshape(sample.parsed)
            sample.rewrite(content)
            judge(count, sample, lambda _: "survived", sample.path.read_text()[:300])

        repeat(times // len(samples), reshapings(), act)
        sample.path.write_bytes(whole)
        yield count


def judge(count: Count, sample: Sample, accepted: Callable[[Any], str], example: str) -> None:
    """Read a file and count how that ends."""
    try:
        found = sample.read()
    except sample.errors as error:
        named = sample.path.stem in str(error)
        count.add("refused" if named else "tracebacks", f"not named: {error}")
    except Exception as error:
        count.add("tracebacks", f"{type(error).__name__}: {error} | {example}")
    else:
        count.add(accepted(found), example)


def malformed_instructions(times: int, folder: Path) -> Count:
    """Instruction files with lines changed. Reading and compiling must refuse what is wrong by file and key."""
    count = Count("instruction files")
    world = "box_pushing"
    env, text = api.make(world), api.world(world).instructions.read_text(encoding="utf-8")
    lines, path = text.splitlines(), folder / "own.toml"
    values = [
        "nan",
        "inf",
        "-1e39",
        "9" * 400,
        "true",
        '""',
        '"\u200b"',
        "[]",
        "{}",
        "[[" * 3000,
        "'x",
        "0",
        "2000-01-01",
    ]
    strategy = st.tuples(
        st.integers(0, len(lines) - 1), st.sampled_from(["value", "drop", "twice", "bytes"]),
        st.sampled_from(values), st.binary(max_size=6),
    )  # fmt: skip

    def act(change: tuple[int, str, str, bytes]) -> None:
        number, sort, value, some = change
        line = lines[number]
        new = {
            "value": [line.partition("=")[0] + "= " + value],
            "drop": [],
            "twice": [line, line],
            "bytes": [line[: len(line) // 2] + some.decode("latin1") + line[len(line) // 2 :]],
        }[sort]
        path.write_text("\n".join([*lines[:number], *new, *lines[number + 1 :]]), encoding="utf-8")
        try:
            reward.rules_of(env, spec.read(path))
        except spec.InstructionFileError as error:
            count.add("refused" if path.name in str(error) else "tracebacks", str(error))
        except Exception as error:
            count.add("tracebacks", f"{type(error).__name__}: {error} | {new}")
        else:
            count.add("survived")

    repeat(times, strategy, act)
    return count


# Command lines

NUMBERS = st.sampled_from(
    [
        *("0", "-1", "1", "3", "nan", "inf", "-inf", "1e400", "9" * 400, "9" * 5000),
        *("1e-400", "x", "", "1.5", "0x10", "１", "--"),
    ]
)
TEXTS = st.sampled_from(
    [
        *("mavic", "naive", "all", "", "nobody", "live/by-kind", "off/by-kind", "live", "/"),
        *("a/b/c/d", "\udc80", "protected", "x" * 5000),
    ]
)
NUMERIC = ("seeds", "first-seed", "episodes", "batch", "actor-lr", "critic-lr", "gamma")
LISTS = ("methods", "networks", "conditions")
OPTIONS = st.tuples(
    st.sampled_from(
        ["size", "name", "world", "map", "dynamics", "third_cook", "big", "seed", "", "hear"]
    ),
    TEXTS | NUMBERS,
)
TRAIN = st.tuples(
    st.sampled_from(["box_pushing", "overcooked", "warehouse", "", "../x"]),
    st.lists(st.tuples(st.sampled_from(NUMERIC), NUMBERS), max_size=2),
    st.lists(st.tuples(st.sampled_from(LISTS), st.lists(TEXTS, max_size=3)), max_size=1),
    st.lists(OPTIONS, max_size=2),
)
OTHERS = st.one_of(
    st.tuples(
        st.just("replay"), st.just("nobody"), st.sampled_from(["--seed", "--ticks"]), NUMBERS
    ),
    st.tuples(st.just("replay"), st.just("nobody"), st.just("--say"), NUMBERS, TEXTS, NUMBERS),
    st.tuples(st.just("play"), st.just("--port"), NUMBERS),
    st.tuples(st.just("bench"), st.sampled_from(["--seeds", "--repeats"]), NUMBERS),
    st.tuples(st.sampled_from(["evaluate", "report"]), TEXTS),
    st.tuples(st.just("evaluate"), TEXTS, st.just("--condition"), TEXTS),
    st.tuples(st.just("worlds"), st.just("--plugins"), TEXTS),
    st.lists(TEXTS | NUMBERS, max_size=3).map(tuple),
)


def command_lines(times: int, folder: Path) -> Count:
    """Command lines with wrong values. Nothing trains: a line that is accepted stops before the first point."""
    count = Count("command lines")

    def line_of(parts: tuple) -> list[str]:
        if len(parts) == 4 and isinstance(parts[1], list):
            world, numbers, lists, options = parts
            line = ["train", world, "--out", str(folder / "runs")]
            for name, value in numbers:
                line += [f"--{name}", value]
            for name, values in lists:
                line += [f"--{name}", *values]
            return line + (["--options", *(x for pair in options for x in pair)] if options else [])
        return list(parts)

    def out_of_range(line: list[str]) -> bool:
        """Whether a number is outside what its option allows, as this test knows it."""
        for option, value in itertools.pairwise(line):
            with contextlib.suppress(ValueError):
                if option == "--seeds" and int(value) not in SEEDS_ALLOWED:
                    return True
                if option in ("--episodes", "--batch") and int(value) < 1:
                    return True
                if option == "--gamma" and not GAMMA_ALLOWED[0] <= float(value) <= GAMMA_ALLOWED[1]:
                    return True
                if option in ("--actor-lr", "--critic-lr") and not 0 < float(value) < 1e9:
                    return True
        return False

    def stop(*given: Any, **_: Any) -> None:
        for group in given[:1]:
            if isinstance(group, runner.Group):
                task_of(group.configs[0])
        raise KeyboardInterrupt

    def act(parts: tuple) -> None:
        line = line_of(parts)
        out, err = io.StringIO(), io.StringIO()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                cli.main(line)
            status = 0
        except SystemExit as ended:
            status = ended.code
        except BaseException as error:
            count.add("tracebacks", f"{type(error).__name__}: {error} | {line}")
            return
        told = err.getvalue()
        if "Traceback" in told or (status == 1 and not told.startswith("mavic: ")):
            count.add("tracebacks", f"{line}: {told}")
        elif status in (1, 2):
            count.add("refused")
        else:
            count.add("silent" if out_of_range(line) else "survived", str(line))

    with (
        mock.patch.object(runner, "train_group", stop),
        mock.patch("mavic.experiments.benchmark.measure", stop),
        mock.patch("mavic.apps.playground.server.play", stop),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(b""))),
    ):
        repeat(times, TRAIN | OTHERS, act)
    return count


# Kills, a full disk, races


def digest_of_end(folder: Path) -> str:
    return files.digest(checkpoint.found(folder)[0].with_suffix(".safetensors").read_bytes())


def kills(times: int, folder: Path, points: int = 12) -> Count:
    """A training is killed at random moments until it is done. Its end must be that of one left alone."""
    count, random_ = Count("kills"), random.Random(17)
    fake_training.train_group(folder / "not-killed", points=points)
    expected = digest_of_end(folder / "not-killed")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "JAX_PLATFORMS": "cpu"}
    done = 0
    while done < times:
        place, killed = folder / f"killed-{done}", 0
        while True:
            script = [
                sys.executable,
                str(ROOT / "tests" / "fake_training.py"),
                str(place),
                str(points),
                "0.02",
            ]
            process = subprocess.Popen(script, env=environment, stdout=subprocess.PIPE, text=True)
            if done + killed < times:
                before = len(list(place.glob("*"))) if place.exists() else 0
                while process.poll() is None and (
                    not place.exists() or len(list(place.glob("*"))) == before
                ):
                    time.sleep(0.005)  # until it writes: kills before that test nothing
                time.sleep(random_.random() * 0.1)
            else:
                process.wait()
            if process.poll() is not None:
                break
            process.send_signal(random_.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
            process.wait()
            process.stdout.close()
            killed += 1
        said = process.stdout.read()
        process.stdout.close()
        good = process.returncode == 0 and digest_of_end(place) == expected
        for _ in range(killed):
            count.add(
                "survived" if good else "silent" if process.returncode == 0 else "tracebacks", said
            )
        done += max(killed, 1)
        shutil.rmtree(place)
    return count


def full_disk(times: int, folder: Path) -> Count:
    """The disk is full, or a limit is reached, at some write of a training. The files before it must stay whole."""
    count, random_ = Count("full disk and file limits"), random.Random(3)
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
            except files.StorageError as refused:
                outcome = "refused" if "cannot be written" in str(refused) else "tracebacks"
            except Exception:
                outcome = "tracebacks"
        fake_training.train_group(place, points=4)  # there is room again
        drafts = list(place.rglob(f"*{files.DRAFT}"))
        count.add(
            outcome if digest_of_end(place) == expected and not drafts else "silent", str(drafts)
        )
        shutil.rmtree(place)
    return count


def races(times: int, folder: Path) -> Count:
    """Several threads want the same folder. One holds it; the others are told who."""
    count, inside, guard = Count("races for a folder"), [0], threading.Lock()

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
    return count


def all_counts(*, kill: int, file: int, disk: int, race: int) -> Iterator[Count]:
    """Inject every sort of fault and yield its count. A tenth of `file` are instruction files, a fifth lines."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "files").mkdir()
        yield from damaged(file * 4 // 10, folder / "files")
        yield from reshaped(file * 3 // 10, folder / "files")
        yield malformed_instructions(file // 10, folder / "files")
        yield command_lines(file * 2 // 10, folder)
        yield full_disk(disk, folder)
        yield races(race, folder / "race")
        if kill:
            yield kills(kill, folder)


def main() -> None:
    import argparse

    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (
        ("kills", 100),
        ("files", 10_000),
        ("disk", 40),
        ("races", 400),
        ("pages", 0),
        ("minutes", 60),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    print(HEADER)
    found = []
    for count in all_counts(kill=asked.kills, file=asked.files, disk=asked.disk, race=asked.races):
        print(count, *count.examples, sep="\n  ", flush=True)
        found.append(count)
    total = Count("all")
    for count in found:
        for name in ("injected", "survived", "refused", "tracebacks", "silent"):
            setattr(total, name, getattr(total, name) + getattr(count, name))
    print(total)
    if asked.pages:
        environment = {**os.environ, "MAVIC_CROWD": f"{asked.pages} {60 * asked.minutes}"}
        test = "tests/apps/test_playground_load.py::test_an_hour_of_pages"
        subprocess.run(
            [sys.executable, "-m", "pytest", "-m", "slow", "-s", test],
            cwd=ROOT,
            env=environment,
            check=True,
        )
    sys.exit(bool(total.tracebacks or total.silent))


if __name__ == "__main__":
    main()
