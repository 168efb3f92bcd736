"""Modules of the user are found where they are needed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mavic.apps import plugins
from mavic.apps.commands.command import UserError
from mavic.apps.commands.evaluate import Evaluate
from mavic.apps.commands.report import Report
from mavic.apps.commands.train import Train
from mavic.envs import api
from mavic.experiments.methods import METHODS

MODULE = """
from mavic.envs import api
from mavic.envs.box_pushing import BoxPushing
from mavic.experiments.methods import METHODS, Method


class Own(BoxPushing):
    name = "{world}"


api.register("{world}", Own, instructions="{world}.toml")
METHODS["{method}"] = Method(instructions="per_episode", correction="cut")
"""


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    """A folder with a module; what it adds is gone afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api, "REGISTERED", dict(api.REGISTERED))
    monkeypatch.setattr("sys.path", list(sys.path))
    before, modules = dict(METHODS), set(sys.modules)
    (tmp_path / "other.py").write_text("x = 1\n")
    yield tmp_path
    METHODS.clear()
    METHODS.update(before)
    for name in set(sys.modules) - modules:
        if not name.startswith("mavic"):
            del sys.modules[name]


def write(folder: Path, module: str, world: str, method: str) -> None:
    (folder / f"{module}.py").write_text(MODULE.format(world=world, method=method))
    text = api.world("box_pushing").instructions.read_text()
    (folder / f"{world}.toml").write_text(text.replace("box_pushing", world))


def test_a_world_is_found_in_the_current_folder(workshop):
    write(workshop, "mine", "yard", "careful")
    (said,) = plugins.guess(Train(world="yard", methods=("mavic", "careful")))
    assert said == "using --plugins mine: it adds the world 'yard'"
    assert api.make("yard").name == "yard" and "careful" in METHODS
    assert api.module_of("yard") == "mine" and api.module_of("box_pushing") == ""
    assert not list(plugins.guess(Train(world="yard", methods=("careful",))))


def test_a_world_nobody_adds_is_left_to_the_command(workshop):
    assert not list(plugins.guess(Train(world="nowhere")))
    assert not list(plugins.guess(Train(world="box_pushing", methods=("all",))))
    with pytest.raises(UserError, match="plugin nothing"):
        plugins.load(["nothing"])


def test_a_policy_and_a_record_say_what_they_need(workshop):
    for module in ("first", "second"):
        write(workshop, module, "field", f"slow-{module}")
    facts = {"config": {"world": "field", "method": "mavic"}, "module": "second"}
    (workshop / "team.json").write_text(json.dumps(facts))
    assert list(plugins.guess(Evaluate(policy=Path("team")))) == [
        "using --plugins second: it adds the world 'field'"
    ]
    (workshop / "run.jsonl").write_text(
        json.dumps({"config": {"world": "field", "method": "slow-first"}})
    )
    (workshop / "broken.jsonl").write_text("{")
    api.REGISTERED.clear()
    said = list(plugins.guess(Report(folder=workshop)))
    assert said[0].startswith("using --plugins first")


def test_an_instruction_file_lies_beside_its_module(workshop, monkeypatch):
    home = workshop / "worlds"
    home.mkdir()
    write(home, "beside", "lawn", "tidy")
    monkeypatch.syspath_prepend(str(home))
    plugins.load(["beside"])
    assert api.world("lawn").instructions == home / "lawn.toml"


@pytest.mark.parametrize(
    ("line", "alone"),
    [
        ('if __name__ == "__main__":\n    mavic.train("yard")', True),
        ("def start():\n    mavic.train('yard')", True),
        ("LATER = lambda: mavic.train('yard')", True),
        ("for name in ('a', 'b'):\n    api.register(name, Own)", True),
        ("mavic.train('yard')", False),
        ("found = mavic.train('yard')", False),
        ("for _ in range(3):\n    mavic.train('yard')", False),
        ("while True:\n    pass", False),
        ("class Two(made()):\n    pass", False),
        ("print(1", False),
    ],
)
def test_a_module_is_guessed_only_if_it_does_nothing_else(workshop, line, alone):
    write(workshop, "mine", "yard", "careful")
    with open(workshop / "mine.py", "a") as module:
        module.write(f"import mavic\n{line}\n")
    assert plugins.only_defines((workshop / "mine.py").read_text()) is alone
    if not alone:
        (said,) = plugins.guess(Train(world="yard"))
        assert (
            said.startswith("mine.py adds the world 'yard' but also") and "mine" not in sys.modules
        )
        assert said.endswith("say --plugins mine")


def test_a_policy_names_an_installed_module(workshop, monkeypatch):
    home = workshop / "installed"
    home.mkdir()
    write(home, "worlds_of_mine", "meadow", "slow")
    monkeypatch.syspath_prepend(str(home))
    facts = {"config": {"world": "meadow", "method": "mavic"}, "module": "worlds_of_mine"}
    (workshop / "team.json").write_text(json.dumps(facts))
    (said,) = plugins.guess(Evaluate(policy=Path("team")))
    assert said == "using --plugins worlds_of_mine: it adds the world 'meadow'"


@pytest.mark.parametrize(
    "text",
    [b'{"config": null}', b'{"config": {"world": [], "method": 3}, "module": 4}', b'"\xff"', b"["],
)
def test_a_description_of_another_shape_is_left_to_its_reader(workshop, text):
    (workshop / "team.json").write_bytes(text)
    (workshop / "run.jsonl").write_bytes(text)
    assert not list(plugins.guess(Evaluate(policy=Path("team"))))
    assert not list(plugins.guess(Report(folder=workshop)))
