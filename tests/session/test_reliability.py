"""Nothing lost, nothing silent: divergence, damage, killed writes, signals and locks, without compiling anything."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from dataclasses import dataclass, make_dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import fake_training
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fake_training import group_of, train_group
from jax import monitoring
from rich.console import Console

from mavic.experiment import records
from mavic.session import runner, stopping
from mavic.storage import files, json_shape
from mavic.teams import file as policy_files
from mavic.teams.facts import PolicyError
from mavic.training import checkpoint, divergence, memory
from mavic.training.checkpoint import _CheckpointError
from mavic.training.divergence import DivergenceError
from mavic.training.groups import groups_of

ROOT = Path(__file__).parents[2]
SimpleState = jax.tree_util.register_dataclass(
    make_dataclass("SimpleState", ["episodes"], frozen=True), ["episodes"], []
)


def assert_same(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


class Said:
    """A console that keeps what it prints."""

    def __init__(self):
        self.lines: list[str] = []
        self.console = Console(quiet=True)
        self.console.print = lambda text="", **_: self.lines.append(str(text))

    def __str__(self):
        return "\n".join(self.lines)


@pytest.fixture(scope="module")
def straight():
    """A training that nobody disturbed."""
    return train_group()


# Divergence


def diverging(*, at: dict[int, int]):
    """Programs in which run r has a weight that is nan from point `at[r]` on."""

    def updates(static, num_envs, number, vectors, runs, state):
        state, metrics = fake_training.train_updates(static, num_envs, number, vectors, runs, state)
        point = int(state.episodes[0]) // fake_training.BATCH
        for run, first in at.items():
            if point == first:
                leaves, structure = jax.tree.flatten(state.critic)
                leaves[0] = leaves[0].at[run].set(np.nan)
                object.__setattr__(state, "critic", jax.tree.unflatten(structure, leaves))
        return state, metrics

    return updates


def test_a_run_that_diverges_is_named_and_the_others_go_on(tmp_path, straight):
    said = Said()
    trained = train_group(tmp_path, updates=diverging(at={1: 2}), console=said.console)
    assert "seed 4 of mavic diverged at point 2 of 4" in str(said)
    assert str(said).count("diverged") == 1  # said once, though it has no numbers any more
    config = trained.group.configs[0]
    assert trained.diverged(config) == [None, 2] and trained.finite_seeds(config) == [3]
    bases = np.array([point["base"] for point in trained.curve])
    assert np.isfinite(bases[:, 0]).all() and np.isnan(bases[:, 1]).tolist() == [
        False,
        True,
        True,
        True,
    ]
    assert divergence.finite_runs(trained.state).all()
    assert_same(*(jax.tree.map(lambda x: x[0], one.state) for one in (trained, straight)))
    again = train_group(tmp_path)  # resumed: it is still known
    assert again.diverged(config) == [None, 2]


def test_when_every_run_has_diverged_the_training_ends(tmp_path):
    with pytest.raises(
        DivergenceError, match=r"every run has diverged .*point 3 of 4; .*--critic-lr"
    ):
        train_group(tmp_path, updates=diverging(at={0: 1, 1: 3}))
    assert [path.name for path in checkpoint._found(tmp_path)] == ["state-2.json", "state-1.json"]


def test_a_world_whose_numbers_are_not_finite_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(runner.api.REGISTERED, "box_pushing", runner.api.world("box_pushing"))
    place = "world box_pushing: the reward of robot_1 is not finite at tick 2"
    monkeypatch.setattr(runner.trial, "first_not_finite", lambda env, key: place)
    with pytest.raises(DivergenceError, match=f"point 3 of 4; training ends. {place}: the world"):
        train_group(tmp_path, updates=diverging(at={0: 1, 1: 3}))


def test_a_seed_that_diverged_has_no_score():
    score = {
        "type": "score",
        "episodes": 8,
        "base": {"episodes": 5, "discounted": np.array([1.0, 2.0])},
        "leak": {"none": [0.5, 0.5], "stay": [None, None]},
        "words": {},
    }
    assert divergence.marked(score, [None, None]) is score
    line = records.plain(divergence.marked(score, [None, 7]))
    assert line["base"] == {"episodes": 5, "discounted": [1.0, None]}
    assert line["leak"] == {"none": [0.5, None], "stay": [None, None]}
    assert line["diverged"] == [None, 7] and line["episodes"] == 8


def test_weights_that_are_not_finite_are_not_written(tmp_path, straight):
    bad = jax.tree.map(lambda x: x * np.nan if x.dtype == np.float32 else x, straight.state)
    with pytest.raises(ValueError, match="not finite"):
        checkpoint.save(tmp_path, straight.group, bad, straight.curve)
    assert list(tmp_path.iterdir()) == []


# Checkpoints


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """The folder of a training that was stopped after three points."""
    made = tmp_path_factory.mktemp("stopped")
    with pytest.raises(KeyboardInterrupt):
        train_group(made, stop_after=3)
    return made


@pytest.fixture
def folder(stopped, tmp_path):
    return shutil.copytree(stopped, tmp_path / "copy")


def load(folder, straight, said=lambda _: None):
    state, curve, _ = checkpoint.load(
        folder, group_of(4), straight.state, fake_training.BATCH, said
    )
    return state, curve


def test_two_checkpoints_are_kept(folder):
    names = {f"state-{n}.{ending}" for n in (2, 3) for ending in ("json", "safetensors")}
    assert {path.name for path in folder.iterdir()} == names


def edit_curve(path):
    content = json.loads(path.read_text())
    content["curve"][0]["base"][0] = 99.0
    path.write_text(json.dumps(content))


def drop_a_point(path):
    content = json.loads(path.read_text())
    del content["curve"][1]
    path.write_text(json.dumps(content))


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


DAMAGES = {
    "edited curve": ("state-3.json", edit_curve),
    "missing point": ("state-3.json", drop_a_point),
    "not JSON": ("state-3.json", lambda path: path.write_text("{")),
    "another shape": ("state-3.json", lambda path: path.write_text('{"group": 3}')),
    "a flipped bit of the curve": ("state-3.json", flip_a_bit),
    "a flipped bit of the weights": ("state-3.safetensors", flip_a_bit),
    "cut off": ("state-3.safetensors", lambda path: path.write_bytes(path.read_bytes()[:-9])),
    "gone": ("state-3.safetensors", lambda path: path.unlink()),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_older_checkpoint_is_used_when_the_newer_is_damaged(folder, straight, damage):
    name, spoil = DAMAGES[damage]
    spoil(folder / name)
    said: list[str] = []
    state, curve = load(folder, straight, said.append)
    assert said[0].startswith(f"{folder / name} is damaged")
    assert said[0].endswith("the checkpoint before it is used (2 points)")
    (folder / "state-3.json").unlink()
    assert_same(state, load(folder, straight)[0])
    assert curve == json.loads((folder / "state-2.json").read_text())["curve"]


def test_a_training_goes_on_from_the_older_checkpoint(folder, straight):
    flip_a_bit(folder / "state-3.safetensors")
    said = Said()
    resumed = train_group(folder, console=said.console)
    assert "is damaged" in str(said) and "after 2 of 4 points" in str(said)
    assert_same(resumed.state, straight.state)


def test_when_both_are_damaged_both_are_named(folder, straight):
    for path in checkpoint._found(folder):
        flip_a_bit(path.with_suffix(".safetensors"))
    with pytest.raises(_CheckpointError) as refused:
        load(folder, straight)
    for number in (2, 3):
        assert f"state-{number}.safetensors is damaged (its hash differs)" in str(refused.value)
    assert f"remove {folder} to begin anew" in str(refused.value)


def test_a_checkpoint_of_another_group_or_spacing_is_refused(folder, straight):
    with pytest.raises(_CheckpointError, match="of other configurations, seeds, numbers"):
        checkpoint.load(folder, group_of(4, gamma=0.5), straight.state, fake_training.BATCH)
    with pytest.raises(_CheckpointError, match="with another number of points"):
        checkpoint.load(folder, group_of(4), straight.state, 2 * fake_training.BATCH)


def test_other_initial_weights_are_another_training(tmp_path):
    def group():
        return groups_of([fake_training.CONFIG], [0], initial=tmp_path / "team")[0]

    weights = tmp_path / "team.safetensors"
    weights.write_bytes(b"one")
    before = checkpoint._identity(group())
    assert before == checkpoint._identity(group())
    weights.write_bytes(b"two")
    assert checkpoint._identity(group()) != before
    weights.unlink()
    with pytest.raises(PolicyError, match="no such file"):
        group()


# Files


def test_a_damaged_name_of_the_hash_does_not_switch_the_check_off(tmp_path, straight):
    config = straight.group.configs[0]
    policy = straight.save_team(tmp_path / "team", config, straight.group.seeds[0])
    record = tmp_path / "run.jsonl"
    records.write(record, straight.record_lines(config, None))
    for path, read, error in (
        (policy.with_suffix(".json"), policy_files.load, PolicyError),
        (record, records.read, records.RecordError),
    ):
        read(path)
        path.write_text(path.read_text().replace('"sha256"', '"sha2u6"'))
        with pytest.raises(error, match="it has no hash"):
            read(path)


def test_a_failed_write_keeps_the_file_and_leaves_no_draft(tmp_path, monkeypatch):
    path = tmp_path / "file"
    files.write_bytes(path, b"old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"file: cannot be written \(No space left on device\)"):
        files.write_bytes(path, b"new")
    assert path.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["file"]


def test_files_get_the_permissions_of_the_folder(tmp_path, straight):
    before = os.umask(0o002)
    try:
        checkpoint.save(tmp_path, straight.group, straight.state, straight.curve)
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {0o664}


def test_a_folder_is_held_by_one_process_and_swept(tmp_path):
    (tmp_path / "deep").mkdir()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left, own = (tmp_path / "deep" / f"state-1.json.1.{n}.part" for n in (gone.pid, os.getpid()))
    left.write_text("half")
    own.write_text("being written")
    with files.locked(tmp_path):
        assert own.exists() and not left.exists()
        with (
            pytest.raises(files.LockedError, match=rf"in use by process {os.getpid()} on .* since"),
            files.locked(tmp_path),
        ):
            pass
    with files.locked(tmp_path):  # free again
        pass


def test_a_folder_that_cannot_be_locked_is_used_without_a_lock(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(files.fcntl, "flock", no_locks)
    said: list[str] = []
    with files.locked(tmp_path, said.append):
        (tmp_path / "file").write_text("")
    assert said[0].startswith(f"{tmp_path} cannot be locked (No locks available)")


def test_a_file_where_a_folder_should_be_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(files._StorageError, match="files cannot be written here"):
        files.check_writable(tmp_path / "file" / "below")


# Signals


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_waits_for_the_point_and_its_checkpoint(tmp_path, number, status, straight):
    def updates(*args):
        made = fake_training.train_updates(*args)
        if int(made[0].episodes[0]) == 2 * fake_training.BATCH:
            signal.raise_signal(number)
        return made

    with pytest.raises(stopping.Stopped) as stopped, stopping.on_signals():
        train_group(tmp_path, updates=updates)
    assert stopping.Stopped.status_of(stopped.value) == status
    assert checkpoint._found(tmp_path)[0].name == "state-2.json"
    if number == signal.SIGTERM:
        assert_same(train_group(tmp_path).state, straight.state)


def test_a_second_signal_does_not_wait():
    with pytest.raises(stopping.Stopped), stopping.on_signals(), stopping.after_this():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        pytest.fail("it waited")


def test_signals_are_left_alone_outside_the_main_thread():
    before = signal.getsignal(signal.SIGTERM)

    def work():
        with stopping.on_signals():
            seen.append(signal.getsignal(signal.SIGTERM))

    seen = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


# Memory


@dataclass(frozen=True)
class Program:
    """A compiled program that says it needs so many bytes."""

    own: int | None

    def memory_analysis(self):
        if self.own is None:
            return None
        names = ("argument", "output", "temp", "alias")
        sizes = zip(names, (self.own, 700, 300, 1000), strict=True)
        return SimpleNamespace(**{f"{name}_size_in_bytes": size for name, size in sizes})


def test_memory_is_what_the_compiler_says_on_every_device_with_a_run(monkeypatch):
    compiled = jax.jit(lambda x: jnp.sort(jnp.cumsum(x))).lower(jnp.zeros(1000)).compile()
    assert 8_000 <= memory._needed_bytes(compiled, 1) <= 20_000
    monkeypatch.setattr(jax, "local_device_count", lambda: 4)
    assert memory._needed_bytes(Program(own=5000), runs=1) == 5000
    assert memory._needed_bytes(Program(own=5000), runs=9) == 4 * 5000
    assert memory._needed_bytes(Program(own=None), runs=9) is None


@pytest.mark.parametrize(
    ("needed", "free", "runs", "said"),
    [
        (2e9, 8e9, 4, "needs about 2.00 GB of memory of 8.0 GB that are free"),
        (2e9, None, 4, "needs about 2.00 GB of memory"),
        (8e9, 4.1e9, 4, "about 2 of its 4 runs fit at once: give fewer seeds"),
        (8e9, 1e9, 4, "not even one run fits: give a smaller --batch"),
    ],
)
def test_what_does_not_fit_says_what_would(needed, free, runs, said):
    if free is None or needed <= free:
        assert memory._line(int(needed), free and int(free), runs).endswith(said)
    else:
        with pytest.raises(memory._NotEnoughMemoryError, match=said):
            memory._line(int(needed), int(free), runs)


def test_the_program_whose_memory_was_checked_is_the_one_that_trains(monkeypatch):
    @partial(jax.jit, static_argnums=0, donate_argnums=2)
    def updates(number, runs, state):
        return SimpleState(state.episodes * number + runs.episodes)

    compiled = []
    monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: compiled.append(event) if "backend_compile" in event else None
    )
    program, state = partial(updates, 2), SimpleState(jnp.zeros(3))
    runs = SimpleState(jnp.ones(3))
    compiled.clear()
    assert "this training needs about 0.00 GB" in runner._memory_line(program, runs, state)
    assert len(compiled) == 1
    after = program(runs, state)
    assert state.episodes.is_deleted() and after.episodes.tolist() == [1.0, 1.0, 1.0]
    assert len(compiled) == 1
    monkeypatch.setattr(memory, "_free_bytes", lambda: 20)  # of 24
    with pytest.raises(memory._NotEnoughMemoryError, match="about 2 of its 3 runs fit at once"):
        runner._memory_line(program, runs, after)
    monkeypatch.setattr(memory, "_needed_bytes", lambda *_: None)
    assert runner._memory_line(program, runs, after) == ""


def test_a_device_without_memory_says_what_to_change(tmp_path):
    def updates(*_):
        raise jax.errors.JaxRuntimeError(f"{status}: while allocating 9 bytes")

    status = "RESOURCE_EXHAUSTED"
    with pytest.raises(ValueError, match=r"memory with 2 runs at once; half .* give fewer seeds"):
        train_group(tmp_path, updates=updates)
    alone = "memory with 1 run at once; give a smaller --batch"
    with pytest.raises(ValueError, match=alone), memory.explained(runs=1):
        updates()
    status = "INTERNAL"
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"):
        train_group(tmp_path, updates=updates)


def test_cached_files_do_not_take_memory_from_a_training(tmp_path):
    texts = {"max": "1000\n", "current": "900\n"}
    texts["stat"] = "anon 200\nfile 700\ninactive_file 400\nactive_file 300\n"
    for name, text in texts.items():
        (tmp_path / f"memory.{name}").write_text(text)
    assert memory._left_by_container(tmp_path) == 800
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._left_by_container(tmp_path) is None


def test_the_memory_of_this_machine_is_known():
    assert memory._free_bytes() is None or memory._free_bytes() > 1e6


# JSON


@pytest.mark.parametrize(
    ("value", "shape", "complaint"),
    [
        ([], dict, "the file must be an object, not a list"),
        ({"a": 1}, {"b": int}, "b is missing"),
        ({"a": True}, {"a": int}, "a must be a whole number, not true or false"),
        (
            {"a": {"b": [1, "x"]}},
            {"a": {"b": [int]}},
            r"a\.b\[1\] must be a whole number, not a text",
        ),
        ({"a": float("nan")}, {"a": float}, "a must be a finite number, not nan"),
        ({"a": 10**400}, {"a": float}, "a must be a finite number, not 1000"),
        ({"a": {"x": 1}}, {"a": json_shape.Map(str)}, r"a\.x must be a text, not 1"),
        (3, (str, list), "must be a text or a list, not 3"),
    ],
)
def test_another_shape_is_named_by_its_place(value, shape, complaint):
    with pytest.raises(json_shape.ShapeError, match=complaint):
        json_shape.check(value, shape)


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, "\xff".encode("latin1"), "nope"])
def test_what_is_no_json_is_one_sort_of_error(text):
    with pytest.raises(json_shape.ShapeError, match="not"):
        json_shape.parse(text)
