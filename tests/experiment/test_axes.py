"""One table drives options, Python callers, names, grouping and comparison: a new axis touches two files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mavic
from mavic.experiment.axes import AXES
from mavic.session import session
from mavic.studies.trainings import Training

PACKAGE = Path(mavic.__file__).parent
FIELD = '''    patience: Share | None = _axis(None, several=True, part=_NUMBER)
    """A new axis of this test."""
    engine: str = _axis("plain", program=True, suffix=lambda c: "" if c.engine == "plain" else c.engine)
    """Another one."""
    rate: Share | None'''
USE = """        numbers |= dict(overlap=config.overlap, drill_prob=config.patience or 0.0)"""
SCRIPT = """
import contextlib, io
from pathlib import Path
from mavic.apps import cli
from mavic.experiment.environments import instructed_env
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.task import task_of
from mavic.session import session
from mavic.studies.trainings import Training
from mavic.training.groups import groups_of

def said(*args):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        cli.main(args)
    return out.getvalue()

help_text = said("train", "--help")
assert "--patience NUMBER [NUMBER ...]" in help_text and "A new axis of this test." in help_text
assert 'patience = [0.1, 0.5]' in said("train", "box_pushing", "--patience", "0.1", "0.5", "--print-config")
found = list(session.configs_of("box_pushing", patience=[0.1, 0.5], engine="fast"))
assert [c.name() for c in found] == [
    f"mavic-default-residual+fast-live-by-kind-patience={x}" for x in (0.1, 0.5)
]
assert found[0].with_condition(found[1].condition()) == found[1]
both = [*found, ExperimentConfig()]
assert [len(group.configs) for group in groups_of(both, [0])] == [2, 1]
row = Training(name="row", world="box_pushing", axes={"patience": 0.1})
assert "--patience 0.1" in " ".join(row.arguments(Path("out")))
env = instructed_env(found[1], task_of(found[1]))
assert float(env.schedule.drill_prob) == 0.5
"""


def test_a_new_axis_touches_two_files(tmp_path):
    copy = tmp_path / "mavic"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "web"))
    for name, before, after in (
        ("axes.py", "    rate: Share | None", FIELD),
        ("environments.py", "        numbers |= dict(overlap=config.overlap)", USE),
    ):
        path = copy / "experiment" / name
        text = path.read_text()
        assert text.count(before) == 1
        path.write_text(text.replace(before, after))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1", "COLUMNS": "100"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_python_and_the_command_line_spell_every_axis_alike():
    given = {"method": ("naive",), "penalty": (50.0,), "kinds": ("push",), "one_agent": True}
    line = Training(name="row", world="box_pushing", axes=given).arguments(Path("out"))
    for name in given:
        assert AXES[name].option and f"--{name.replace('_', '-')}" in line
        assert list(session.configs_of("box_pushing", **{name: given[name]}))
    with pytest.raises(ValueError, match="did you mean 'method'"):
        list(session.configs_of("box_pushing", methods="mavic"))
