"""Cells of a study: run once, resumed after a kill, never twice at a time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from fake_cells import COUNT, counted, fake, starts

from mavic.experiments import cells, engines, files

CALL = """
import sys, pathlib
sys.path[:0] = {paths!r}
from fake_cells import fake
from mavic.experiments import cells
sys.exit(cells.run(fake(pathlib.Path({folder!r}), "one", pause=0.1)))
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
    cell = fake(tmp_path, "one")
    assert cells.done(cell) is None
    assert cells.run(cell) == cells.run(cell) == 0
    assert starts(cell) == [0] and counted(cell) == list(range(COUNT))
    mark = cells.done(cell)
    assert mark["attempts"] == 1 and mark["arguments"] == list(cell.arguments)
    assert json.loads((cell.folder / cells.CELL).read_text())["name"] == "one"
    begun, ended = cells.attempts(cell)
    assert begun["attempt"] == ended["attempt"] == 1 and ended["status"] == 0
    assert cells.last_line(cell) == f"counted {COUNT - 1}"


def test_a_cell_with_another_command_is_run_anew(tmp_path):
    assert cells.run(fake(tmp_path, "one")) == 0
    other = fake(tmp_path, "one", pause=0.001)
    assert cells.done(other) is None and cells.run(other) == 0
    assert starts(other) == [0, COUNT] and cells.done(other)["attempts"] == 2


def test_a_cell_that_fails_has_no_mark_and_says_its_status(tmp_path):
    cell = fake(tmp_path, "one", fails=True)
    assert cells.run(cell) == 3 and cells.done(cell) is None
    assert cells.attempts(cell)[-1]["status"] == 3


def test_a_killed_cell_takes_its_command_with_it_and_goes_on_later(tmp_path):
    cell = fake(tmp_path, "one", pause=0.1)
    runner = start(tmp_path)
    wait_until(lambda: (cell.folder / "counted.txt").exists() and len(counted(cell)) >= 3)
    os.kill(runner.pid, signal.SIGKILL)
    runner.wait()
    time.sleep(0.3)
    before = counted(cell)
    time.sleep(0.4)
    assert counted(cell) == before  # nobody counts on
    assert cells.run(cell) == 0
    assert counted(cell) == list(range(COUNT)) and starts(cell) == [0, len(before)]
    assert cells.done(cell)["attempts"] == 2


def test_who_comes_second_waits_and_finds_the_cell_done(tmp_path):
    cell = fake(tmp_path, "one", pause=0.1)
    runner = start(tmp_path)
    wait_until(lambda: (cell.folder / "counted.txt").exists())
    assert cells.run(cell) == 0
    assert runner.wait() == 0 and starts(cell) == [0]


def test_patience_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "PATIENCE", 0.0)
    cell = fake(tmp_path, "one")
    with files.locked(cell.folder), pytest.raises(files.LockedError, match="in use"):
        cells.run(cell)


def test_the_local_engine_runs_one_after_another_and_tells_how_each_ended(tmp_path):
    todo = [fake(tmp_path, "a"), fake(tmp_path, "b", fails=True), fake(tmp_path, "c")]
    ended, notes = [], []
    engines.local(
        todo,
        engines.Place(folder=tmp_path),
        lambda cell, status: ended.append((cell.name, status)),
        lambda cell, line: notes.append(line),
    )
    assert ended == [("a", 0), ("b", 3), ("c", 0)]
    with pytest.raises(ValueError, match="no option 'address'"):
        options = {"address": "auto"}
        engines.local([], engines.Place(folder=tmp_path, options=options), print, print)


def test_several_cells_run_at_once_on_this_machine(tmp_path):
    """Each waits for the other's file, so that neither ends alone."""
    wait = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch()\n"
    wait += "while not pathlib.Path(sys.argv[2]).exists(): time.sleep(0.01)"
    files = [str(tmp_path / name) for name in "ab"]
    todo = [
        cells.Cell(name=name, folder=tmp_path / f"cell-{name}", arguments=("-c", wait, *order))
        for name, order in (("a", files), ("b", files[::-1]))
    ]
    ended = {}
    place = engines.Place(folder=tmp_path, options={"jobs": "2"})
    engines.local(todo, place, lambda cell, status: ended.update({cell.name: status}), print)
    assert ended == {"a": 0, "b": 0}


@pytest.mark.parametrize(
    ("jobs", "said"), [(1, ["normal", "normal", "normal"]), (2, ["normal", "1", "1"])]
)
def test_of_several_at_once_the_first_has_priority_on_a_gpu(tmp_path, monkeypatch, jobs, said):
    monkeypatch.delenv("CUDA_MPS_CLIENT_PRIORITY", raising=False)
    say = "import os; print('priority', os.environ.get('CUDA_MPS_CLIENT_PRIORITY', 'normal'))"
    todo = [cells.Cell(name=name, folder=tmp_path / name, arguments=("-c", say)) for name in "abc"]
    place = engines.Place(folder=tmp_path, options={"jobs": jobs})
    engines.local(todo, place, lambda *_: None, lambda *_: None)
    assert [cells.last_line(cell) for cell in todo] == [f"priority {one}" for one in said]


def test_a_stopped_engine_stops_what_runs_and_starts_nothing_else(tmp_path):
    todo = [fake(tmp_path, name, pause=pause) for name, pause in (("a", 0), ("b", 9), ("c", 0))]

    def stop(cell, status):
        wait_until(lambda: (todo[1].folder / "counted.txt").exists())
        raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        engines.local(todo, engines.Place(folder=tmp_path), stop, lambda cell, line: None)
    assert time.monotonic() - began < 60  # b alone would take three minutes
    assert cells.done(todo[0]) and not cells.done(todo[1])
    assert cells.attempts(todo[1])[-1].get("ended") is None and not todo[2].folder.exists()
