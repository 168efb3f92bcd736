"""`mavic new`: what it writes trains at once, and the page "Your own simulator" can be followed as it stands."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from pathlib import Path

import pytest

from mavic.apps import cli
from mavic.envs import api
from mavic.envs.conformance import check_env
from mavic.evaluation import evaluate
from mavic.experiment import check
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.task import task_of
from mavic.instruct.spec import KEYS
from mavic.session import session
from mavic.simulators.check import difference

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "simulator.md"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(api, "REGISTERED", {})
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name in ("lamps", "test_lamps"):
            del sys.modules[name]


@pytest.mark.parametrize("sort", ["python", "jax"])
def test_a_skeleton_is_a_world(folder, sort, capsys):
    cli.main(["new", "lamps", f"--{sort}"])
    assert "wrote lamps.toml" in capsys.readouterr().out
    importlib.invalidate_caches()
    __import__("lamps")
    env = api.make("lamps")
    assert [macro.name for macro in env.macros[0]] == ["GO_WEST", "GO_EAST", "WAIT"]
    assert task_of(ExperimentConfig(world="lamps")).file.names() == ("not-west", "wait")
    said = sys.modules["lamps"].__doc__
    assert f"replay runs/lamps/{ExperimentConfig(world='lamps').short_name()} " in said
    (page,) = re.findall(r"docs/\S+\.md", (folder / "lamps.toml").read_text())
    assert all(f"`{key}`" in (ROOT / page).read_text() for key in KEYS)
    compile((folder / "test_lamps.py").read_text(), "test_lamps.py", "exec")
    if sort == "python":
        assert difference(env.description) == ""


@pytest.mark.long
@pytest.mark.parametrize("sort", ["python", "jax"])
def test_nothing_is_found_in_a_skeleton(folder, sort):
    cli.main(["new", "lamps", f"--{sort}"])
    __import__("lamps")
    found = check.check("lamps")
    assert [str(one) for one in found.findings] == []


@pytest.mark.long
def test_the_jax_skeleton_keeps_the_protocol(folder):
    cli.main(["new", "lamps", "--jax"])
    __import__("lamps")
    check_env(api.make("lamps"), ticks=40)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["lamps"], "say which one"),
        (["lamps", "--python", "--jax"], "say which one"),
        (["my-lamps", "--jax"], "cannot be the name of a module"),
        (["class", "--jax"], "cannot be the name of a module"),
        (["box_pushing", "--python"], "exists already; choose another name"),
    ],
)
def test_a_wrong_wish_is_refused_in_one_line(folder, args, message, capsys):
    with pytest.raises(SystemExit):
        cli.main(["new", *args])
    assert message in capsys.readouterr().err and not list(folder.iterdir())


def test_no_file_is_overwritten(folder, capsys):
    (folder / "lamps.toml").write_text("mine")
    with pytest.raises(SystemExit):
        cli.main(["new", "lamps", "--python"])
    assert "lamps.toml exists already" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["lamps.toml"]


def commands(part: int) -> list[list[str]]:
    """The commands of one block of the page, without the word `mavic`."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return [shlex.split(line)[1:] for line in blocks[part].splitlines() if line.startswith("mavic")]


@pytest.mark.long
def test_the_page_can_be_followed(folder, monkeypatch, capsys):
    """Its first block as it stands, with fewer episodes."""
    monkeypatch.setattr(session, "QUICK", 0.002)
    monkeypatch.setattr(evaluate, "PROGRESS_EPISODES", 4)
    done = []
    for args in commands(0):
        if args[0] == "train":
            args = [*args, "--brief", "--hidden", "8"]
            for option, few in (("--episodes", "32"), ("--batch", "16"), ("--seeds", "1")):
                args[args.index(option) + 1] = few
        cli.main(args)
        done.append(args[0])
    assert done == ["new", "train", "replay", "words"]
    out = capsys.readouterr().out
    assert "wrote lamps.html" in out and "wait" in out
    api.make("lamps").pool.close()


def test_the_pages_other_commands_are_those_of_the_example():
    """`tests/examples/test_rware.py` trains it."""
    ((train, world, *options),) = commands(1)
    assert (train, world) == ("train", "rware") and "rware_team" in options
    assert (ROOT / "examples/rware/rware_team.py").is_file()
