"""Damaged and malformed files: policies, checkpoints, records and instruction files."""

from __future__ import annotations

import atexit
import contextlib
import copy
import functools
import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fake_training
import sample_records
from fault_counts import Count, repeat
from hypothesis import assume
from hypothesis import strategies as st

from mavic.apps import plugins
from mavic.apps.commands.evaluate import Evaluate
from mavic.envs import api
from mavic.experiment import records
from mavic.experiment.config import ExperimentConfig
from mavic.instruct import reward, spec
from mavic.reporting import rows
from mavic.storage import files
from mavic.teams import file as policy_files
from mavic.teams.facts import PolicyError
from mavic.training import checkpoint

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


# Files that mavic wrote


@dataclass(frozen=True)
class Sample:
    """A file to damage, how it is read, and how it is written anew with a fitting hash."""

    path: Path
    read: Callable[[], Any]
    errors: tuple[type[Exception], ...]
    rewrite: Callable[[Any], None] | None = None
    parsed: Any = None


def plain(value: Any) -> Any:
    """What a file holds, as numbers that can be compared."""
    return {name: leaf.tolist() for name, leaf in checkpoint.flatten(value).items()}


def described(path: Path, notes: Path, read: Callable[[], Any], error: type[Exception]) -> dict:
    """Weights and their description in JSON, which carries its own hash."""

    def rewrite(content: Any) -> None:
        if isinstance(content, dict):
            content = {name: value for name, value in content.items() if name != "sha256"}
            with contextlib.suppress(ValueError):
                content["sha256"] = files.digest_of(content)
        notes.write_text(json.dumps(content))

    return {
        "weights": Sample(path, read, (error,)),
        "description": Sample(notes, read, (error,), rewrite, json.loads(notes.read_text())),
    }


def policy_samples(folder: Path) -> dict[str, Sample]:
    path = folder / "team.safetensors"
    trained = fake_training.train_group(points=1)
    trained.save_team(path, trained.group.configs[0], fake_training.SEEDS[0])

    def load() -> Any:
        plugins.advice(Evaluate(policy=path))  # a command that fails looks into the file
        team = policy_files.load(path)
        team.origin()
        return plain(team.weights), team.facts

    return described(path, path.with_suffix(".json"), load, PolicyError)


def checkpoint_samples(folder: Path) -> dict[str, Sample]:
    place = folder / "checkpoint"
    trained = fake_training.train_group(place, points=1)
    (notes,) = checkpoint._found(place)

    def load() -> Any:
        state, curve, _ = checkpoint.load(place, trained.group, trained.state, fake_training.BATCH)
        return plain(state), curve

    return described(notes.with_suffix(".safetensors"), notes, load, checkpoint._CheckpointError)


def record_sample(folder: Path) -> dict[str, Sample]:
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
    return {"": Sample(path, load, (records.RecordError,), rewrite, lines)}


MAKERS = {"policy": policy_samples, "checkpoint": checkpoint_samples, "record": record_sample}


@functools.cache
def samples_of(sort: str) -> dict[str, Sample]:
    """The files of one sort, made once in a process, in a folder that goes when it ends."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return MAKERS[sort](folder)


@contextlib.contextmanager
def restored(path: Path):
    """The bytes of a file, which it has again afterwards."""
    whole = path.read_bytes()
    try:
        yield whole
    finally:
        path.write_bytes(whole)


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


def same(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def damaged(sort: str, part: str, count: Count, times: int, seed: int, folder: Path) -> None:
    """Bytes of a file are changed. Reading must refuse the file by its name, or find the same in it."""
    sample = samples_of(sort)[part]
    expected = sample.read()
    with restored(sample.path) as whole:

        def act(damage: Callable[[bytes], bytes]) -> None:
            data = damage(whole)
            assume(data != whole)
            sample.path.write_bytes(data)
            judge(
                count,
                sample,
                lambda found: "survived" if same(found, expected) else "silent",
                repr(data[:80]),
            )

        repeat(times, seed, damages(), act)


def reshaped(sort: str, part: str, count: Count, times: int, seed: int, folder: Path) -> None:
    """Valid JSON of another shape, with a fitting hash. Reading must refuse it by its name, or find a legal file."""
    sample = samples_of(sort)[part]
    with restored(sample.path):

        def act(reshape: Callable[[Any], Any]) -> None:
            sample.rewrite(reshape(sample.parsed))
            judge(count, sample, lambda _: "survived", sample.path.read_text()[:300])

        repeat(times, seed, reshapings(), act)


# Instruction files

VALUES = (
    *("nan", "inf", "-1e39", "9" * 400, "true", '""', '"\u200b"', "[]", "{}", "[[" * 3000),
    *("'x", "0", "2000-01-01"),
)


def malformed_instructions(count: Count, times: int, seed: int, folder: Path) -> None:
    """Instruction files with lines changed. Reading and compiling must refuse what is wrong by file and key."""
    world = "box_pushing"
    env, text = api.make(world), api.world(world).instructions.read_text(encoding="utf-8")
    lines, path = text.splitlines(), folder / "own.toml"
    strategy = st.tuples(
        st.integers(0, len(lines) - 1), st.sampled_from(["value", "drop", "twice", "bytes"]),
        st.sampled_from(VALUES), st.binary(max_size=6),
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
            reward.rules_of(env, spec.InstructionFile.read(path))
        except spec.InstructionFileError as error:
            count.add("refused" if path.name in str(error) else "tracebacks", str(error))
        except Exception as error:
            count.add("tracebacks", f"{type(error).__name__}: {error} | {new}")
        else:
            count.add("survived")

    repeat(times, seed, strategy, act)
