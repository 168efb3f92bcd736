"""Jobs of a study: run once, resumed after a kill, never twice at a time."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import pytest
from fake_jobs import COUNT, counted, fake, starts

from mavic.storage import files
from mavic.studies import engines, jobs

CALL = """
import sys, pathlib
sys.path[:0] = {paths!r}
from fake_jobs import fake
from mavic.studies import jobs
sys.exit(fake(pathlib.Path({folder!r}), "one", pause=0.1).run())
"""


def start(folder):
    code = CALL.format(paths=sys.path, folder=str(folder))
    return subprocess.Popen([sys.executable, "-c", code])


def wait_until(condition):
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_finished_cell_has_a_mark_and_is_not_run_again(tmp_path):
    job = fake(tmp_path, "one")
    assert job.done() is None
    assert job.run() == job.run() == 0
    assert starts(job) == [0] and counted(job) == list(range(COUNT))
    mark = job.done()
    assert mark["attempts"] == 1 and mark["arguments"] == list(job.arguments)
    assert json.loads((job.folder / jobs.JOB).read_text())["name"] == "one"
    begun, ended = jobs._attempts(job)
    assert begun["attempt"] == ended["attempt"] == 1 and ended["status"] == 0
    assert job.last_line() == f"counted {COUNT - 1}"


def test_a_cell_with_another_command_is_run_anew(tmp_path):
    assert fake(tmp_path, "one").run() == 0
    other = fake(tmp_path, "one", pause=0.001)
    assert other.done() is None and other.run() == 0
    assert starts(other) == [0, COUNT] and other.done()["attempts"] == 2


def test_a_cell_that_fails_has_no_mark_and_says_its_status(tmp_path):
    job = fake(tmp_path, "one", fails=True)
    assert job.run() == 3 and job.done() is None
    assert jobs._attempts(job)[-1]["status"] == 3


def test_a_killed_cell_takes_its_command_with_it_and_goes_on_later(tmp_path):
    job = fake(tmp_path, "one", pause=0.1)
    runner = start(tmp_path)
    wait_until(lambda: (job.folder / "counted.txt").exists() and len(counted(job)) >= 3)
    os.kill(runner.pid, signal.SIGKILL)
    runner.wait()
    time.sleep(0.3)
    before = counted(job)
    time.sleep(0.4)
    assert counted(job) == before  # nobody counts on
    assert job.run() == 0
    assert counted(job) == list(range(COUNT)) and starts(job) == [0, len(before)]
    assert job.done()["attempts"] == 2


def test_who_comes_second_waits_and_finds_the_cell_done(tmp_path):
    job = fake(tmp_path, "one", pause=0.1)
    runner = start(tmp_path)
    wait_until(lambda: (job.folder / "counted.txt").exists())
    assert job.run() == 0
    assert runner.wait() == 0 and starts(job) == [0]


def test_patience_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "PATIENCE", 0.0)
    job = fake(tmp_path, "one")
    with files.locked(job.folder), pytest.raises(files.LockedError, match="in use"):
        job.run()


def test_the_local_engine_runs_one_after_another_and_tells_how_each_ended(tmp_path):
    todo = [fake(tmp_path, "a"), fake(tmp_path, "b", fails=True), fake(tmp_path, "c")]
    ended, notes = [], []
    engines.ENGINES["local"](
        todo,
        engines.Settings(folder=tmp_path),
        lambda job, status: ended.append((job.name, status)),
        lambda job, line: notes.append(line),
    )
    assert ended == [("a", 0), ("b", 3), ("c", 0)]
    with pytest.raises(ValueError, match="no option 'address'"):
        options = {"address": "auto"}
        engines.ENGINES["local"](
            [], engines.Settings(folder=tmp_path, options=options), print, print
        )


def test_several_cells_run_at_once_on_this_machine(tmp_path):
    """Each waits for the other's file, so that neither ends alone."""
    wait = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch()\n"
    wait += "while not pathlib.Path(sys.argv[2]).exists(): time.sleep(0.01)"
    files = [str(tmp_path / name) for name in "ab"]
    todo = [
        jobs.Job(name=name, folder=tmp_path / f"job-{name}", arguments=("-c", wait, *order))
        for name, order in (("a", files), ("b", files[::-1]))
    ]
    ended = {}
    place = engines.Settings(folder=tmp_path, options={"jobs": 2})
    engines.ENGINES["local"](
        todo, place, lambda job, status: ended.update({job.name: status}), print
    )
    assert ended == {"a": 0, "b": 0}


@pytest.mark.parametrize(
    ("at_once", "said"), [(1, ["normal", "normal", "normal"]), (2, ["normal", "1", "1"])]
)
def test_of_several_at_once_the_first_has_priority_on_a_gpu(tmp_path, monkeypatch, at_once, said):
    monkeypatch.delenv("CUDA_MPS_CLIENT_PRIORITY", raising=False)
    say = "import os; print('priority', os.environ.get('CUDA_MPS_CLIENT_PRIORITY', 'normal'))"
    todo = [jobs.Job(name=name, folder=tmp_path / name, arguments=("-c", say)) for name in "abc"]
    place = engines.Settings(folder=tmp_path, options={"jobs": at_once})
    engines.ENGINES["local"](todo, place, lambda *_: None, lambda *_: None)
    assert [job.last_line() for job in todo] == [f"priority {one}" for one in said]


def test_a_stopped_engine_stops_what_runs_and_starts_nothing_else(tmp_path):
    todo = [fake(tmp_path, name, pause=pause) for name, pause in (("a", 0), ("b", 9), ("c", 0))]

    def stop(job, status):
        wait_until(lambda: (todo[1].folder / "counted.txt").exists())
        raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        engines.ENGINES["local"](
            todo, engines.Settings(folder=tmp_path), stop, lambda job, line: None
        )
    assert time.monotonic() - began < 60  # b alone would take three minutes
    assert todo[0].done() and not todo[1].done()
    assert jobs._attempts(todo[1])[-1].get("ended") is None and not todo[2].folder.exists()


def test_a_cell_whose_record_is_gone_is_not_done(tmp_path):
    job = dataclasses.replace(fake(tmp_path, "one"), makes=("counted.txt",))
    assert job.run() == 0 and job.done() is not None
    (job.folder / "counted.txt").unlink()
    assert job.done() is None
    assert job.run() == 0 and job.done()["attempts"] == 2


@pytest.mark.parametrize(
    "mark", [b'{"arguments": 5}', b'{"arguments": null}', b"\xff\xfe", b"[" * 100_000, b"[]", b""]
)
def test_a_damaged_mark_is_no_mark(tmp_path, mark):
    job = fake(tmp_path, "one")
    job.folder.mkdir()
    (job.folder / jobs.DONE).write_bytes(mark)
    (job.folder / jobs.ATTEMPTS).write_bytes(mark + b"\n")
    assert job.done() is None and job.run() == 0
    assert job.done()["arguments"] == list(job.arguments)


@pytest.mark.parametrize(
    ("engine", "options", "said"),
    [
        ("local", {"jobs": "abc"}, "option jobs of the engine local must be a whole number"),
        ("local", {"jobs": 0}, "from 1"),
        ("local", {"jobs": 1.5}, "whole number"),
        ("local", {"job": 1}, "no option 'job'; did you mean 'jobs'"),
        ("ray", {"cpus": "x"}, "option cpus of the engine ray must be a number"),
        ("ray", {"address": "127.0.0.1:1"}, "no Ray cluster answers at '127.0.0.1:1'"),
        ("ray", {"address": "ray://127.0.0.1:here"}, "no Ray cluster answers"),
        ("slurm", {}, "there is no Slurm here"),
        ("slurm", {"cluster": "local", "nonsense": 1}, "submitit refuses these engine options"),
        ("slurm", {"cluster": "nowhere"}, "submitit refuses these engine options"),
    ],
)
def test_an_engine_says_what_is_wrong_with_its_options(
    tmp_path, monkeypatch, engine, options, said
):
    if engine in engines.EXTRAS:
        pytest.importorskip(engines.EXTRAS[engine])
    monkeypatch.setenv("PATH", str(tmp_path))  # no sbatch
    place = engines.Settings(folder=tmp_path, options=options)
    with pytest.raises(ValueError, match=said):
        engines.ENGINES[engine]([fake(tmp_path, "one")], place, print, print)
    assert not (tmp_path / "one").exists()


def test_a_call_that_hangs_can_be_stopped():
    """Ray's own code ignores signals while it waits for a cluster."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        engines._interruptible(partial(time.sleep, 60))
    with pytest.raises(ConnectionError):
        engines._interruptible(partial(exec, "raise ConnectionError"))
