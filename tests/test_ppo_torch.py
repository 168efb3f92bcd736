"""PPO in torch with the correction: a few updates of the example."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "ppo_torch.py"
FEW = ["--updates", "2", "--episodes", "4", "--envs", "4", "--test-episodes", "4"]


def test_the_example_is_one_short_file():
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 350


CODE = """
import json, sys
sys.path.insert(0, "examples")
import ppo_torch
few = sys.argv[1:]
made = {c: ppo_torch.train(ppo_torch.arguments(["--correction", c, *few])) for c in ppo_torch.CORRECTIONS}
print(json.dumps(made))
"""


@pytest.mark.long
def test_a_few_updates_of_each_correction():
    ran = subprocess.run(
        [sys.executable, "-c", CODE, *FEW], cwd=ROOT, check=True, capture_output=True, text=True
    )
    runs = json.loads(ran.stdout.splitlines()[-1])
    assert set(runs) == {"none", "cut", "shift"}
    for run in runs.values():
        assert math.isfinite(run["base"]) and len(run["curve"]) == 2
    first = {json.dumps(run["curve"][0]) for run in runs.values()}
    assert len(first) == 1  # one seed, one first batch


def test_the_recorded_runs_show_what_the_page_says():
    """The naive learner loses the task; with the correction it keeps it."""
    runs = [json.loads(path.read_text()) for path in (ROOT / "results/ppo_torch").glob("*-*.json")]
    base = {name: [] for name in ("none", "cut", "shift")}
    for run in runs:
        base[run["arguments"]["correction"]].append(run["base"])
    assert min(base["cut"]) > 150 > 30 > max(base["none"])
