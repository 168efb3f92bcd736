"""Jobs on clusters: Ray with two nodes of which one is killed, Slurm by submitit's local executor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_jobs import COUNT, counted, fake, starts

from mavic.studies import engines

HERE = Path(__file__).parent
pytestmark = pytest.mark.long  # a cluster takes a minute to start


def test_cells_of_a_killed_node_are_finished_elsewhere(tmp_path):
    pytest.importorskip("ray")
    paths = [str(HERE.parents[1]), str(HERE), os.environ.get("PYTHONPATH", "")]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1",
    }
    call = [sys.executable, str(HERE / "fake_jobs.py"), str(tmp_path)]
    found = subprocess.run(call, env=env, capture_output=True, text=True, timeout=240)
    assert found.returncode == 0, found.stderr[-3000:]
    todo = [fake(tmp_path, f"job-{number}", pause=0.3) for number in range(4)]
    assert json.loads(found.stdout.splitlines()[-1]) == {job.name: 0 for job in todo}
    assert all(counted(job) == list(range(COUNT)) for job in todo)
    again = [job for job in todo if len(starts(job)) > 1]
    assert again  # the killed node had some
    assert all(starts(job)[-1] > 0 for job in again)  # and they went on where they were
    assert all(job.done() is not None for job in todo)


@pytest.mark.filterwarnings("ignore")  # of submitit
def test_cells_run_as_jobs_of_submitit(tmp_path, monkeypatch):
    pytest.importorskip("submitit")
    paths = [str(HERE.parents[1]), str(HERE), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    todo = [fake(tmp_path, "a"), fake(tmp_path, "b", fails=True), fake(tmp_path, "c")]
    ended = {}
    place = engines.Settings(
        folder=tmp_path / "jobs", options={"cluster": "local", "timeout_min": 2, "cpus_per_task": 1}
    )
    engines.ENGINES["slurm"](
        todo, place, lambda job, status: ended.update({job.name: status}), print
    )
    assert ended == {"a": 0, "b": 3, "c": 0}
    assert [job.done() is not None for job in todo] == [True, False, True]
