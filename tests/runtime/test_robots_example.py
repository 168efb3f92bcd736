"""Three robot processes, one of them killed in mid-task and brought back. JAX is not needed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mavic.runtime import log as logs
from mavic.runtime.again import again

ROOT = Path(__file__).parents[2]
TEAM = Path(__file__).parent / "data" / "warehouse"


@pytest.mark.long
def test_a_killed_robot_comes_back_and_the_others_go_on(tmp_path):
    log = tmp_path / "robots.jsonl"
    code = "import sys, runpy; sys.modules['jax'] = None; sys.argv = sys.argv[1:]; "
    code += "runpy.run_path(sys.argv[0], run_name='__main__')"
    command = ["examples/robots_asyncio.py", str(TEAM), "--seconds", "8", "--log", str(log)]
    ran = subprocess.run(
        [sys.executable, "-c", code, *command],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert "turtlebot_1: killed in mid-task" in ran.stdout
    assert "turtlebot_1: silent; it is started again" in ran.stdout
    assert "turtlebot_1: running again" in ran.stdout
    counts = dict(line.split(" ", 1) for line in ran.stdout.splitlines()[-3:])
    assert set(counts) == {"turtlebot_0", "turtlebot_1", "fetch"}
    for text in counts.values():
        found = json.loads(text)
        assert found["start"] >= 5 and found["cancel"] >= 2 and found["ended"] >= 3
    lines = list(logs.read(log))
    own = [(n, line["event"]) for n, line in enumerate(lines) if line.get("agent") == "turtlebot_1"]
    gone = next(n for n, event in own if event == "silent")
    back = next(n for n, event in own if event == "back" and n > gone)
    between = {line["agent"] for line in lines[gone:back] if line["event"] == "start"}
    assert between == {"turtlebot_0", "fetch"}
    assert again(TEAM, log).differences == ()
