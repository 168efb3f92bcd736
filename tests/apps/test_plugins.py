"""Modules of the user: `--plugins` loads them, and errors say which one a file names."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mavic.apps import cli, plugins
from mavic.apps.commands.command import UserError
from mavic.apps.commands.evaluate import Evaluate
from mavic.envs import api
from mavic.experiment.methods import METHODS

MODULE = """
from mavic.envs import api
from mavic.envs.box_pushing import BoxPushing
from mavic.experiment.methods import METHODS, Method


class Own(BoxPushing):
    name = "{world}"


api.register("{world}", Own, instructions="{world}.toml")
METHODS["{method}"] = Method(instructions="per_episode", correction="cut")
"""


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    """A folder for modules; what they add is gone afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api, "REGISTERED", dict(api.REGISTERED))
    monkeypatch.setattr("sys.path", list(sys.path))
    before, modules = dict(METHODS), set(sys.modules)
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


def complaint(capsys, *arguments: str) -> str:
    """What a command that fails says on one line."""
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 1
    return " ".join(capsys.readouterr().err.split())


def test_a_module_that_is_named_adds_a_world_and_a_method(workshop, capsys):
    write(workshop, "mine", "yard", "careful")
    line = ("train", "yard", "--method", "careful", "--print-config")
    said = complaint(capsys, *line)
    assert "method 'careful' is unknown" in said and "name it: --plugins MODULE" in said
    assert "mine" not in sys.modules
    cli.main([*line, "--plugins", "mine"])
    assert 'world = "yard"' in capsys.readouterr().out
    assert api.module_of("yard") == "mine" and api.module_of("box_pushing") == ""


def test_an_unknown_world_is_one_line_that_says_what_to_type(workshop, capsys):
    write(workshop, "mine", "yard", "careful")
    said = complaint(capsys, "train", "yard", "--print-config")
    assert "world 'yard' is unknown; allowed: box_pushing" in said
    assert "if a module of yours adds it, name it: --plugins MODULE" in said
    assert "neither a world nor a file" in complaint(capsys, "words", "yard", "stay")


def test_a_policy_names_the_module_of_its_world(workshop, capsys):
    write(workshop, "mine", "field", "slow")
    facts = {"world": "field", "module": "mine"}
    (workshop / "team.json").write_text(json.dumps(facts))
    said = plugins.advice(Evaluate(policy=Path("team")))
    assert said == "team.json says that module 'mine' adds its world: --plugins mine imports it"
    assert said in complaint(capsys, "evaluate", "team") and "mine" not in sys.modules
    plugins.load(["mine"])
    assert plugins.advice(Evaluate(policy=Path("team"))) == ""


@pytest.mark.parametrize(
    "text",
    [
        *(b'{"world": null}', b'{"world": "field", "module": 4}', b'"\xff"', b"["),
        *(b'{"world": "field", "module": ""}', b'{"world": "field", "module": "a; rm -r b"}'),
        b'{"world": "box_pushing", "module": "mine"}',
    ],
)
def test_other_descriptions_give_no_advice(workshop, text):
    (workshop / "team.json").write_bytes(text)
    assert plugins.advice(Evaluate(policy=Path("team"))) == ""
    assert plugins.advice(Evaluate(policy=Path("nowhere"))) == ""


def test_an_instruction_file_lies_beside_its_module(workshop, monkeypatch):
    home = workshop / "worlds"
    home.mkdir()
    write(home, "beside", "lawn", "tidy")
    monkeypatch.syspath_prepend(str(home))
    plugins.load(["beside"])
    assert api.world("lawn").instructions == home / "lawn.toml"


def test_a_plugin_that_cannot_be_loaded_is_named(workshop):
    with pytest.raises(UserError, match="plugin nothing: No module named"):
        plugins.load(["nothing"])
    (workshop / "colorsys.py").write_text("raise SystemExit")
    with pytest.raises(UserError, match="an installed module has the same name; rename colorsys"):
        plugins.load(["colorsys"])
    assert sys.path[-1] == str(workshop) and "colorsys" in sys.modules


@pytest.mark.parametrize(
    ("text", "typed", "said"),
    [
        ('plugins = ["mine"]', "", "asks for --plugins mine; a file loads no code"),
        ('method = ["mavic", "--plugins", "mine"]', "", "looks like an option"),
        ('[options]\n"--plugins" = "mine"', "", "looks like an option"),
        ('world = "--plugins=mine"', "", "looks like an option"),
        ('log = ["wandb"]', "", "asks for --log wandb"),
        ('plugins = ["mine"]', "--plugins mine", ""),
    ],
)
def test_a_configuration_loads_nothing(workshop, capsys, text, typed, said):
    write(workshop, "mine", "yard", "careful")
    (workshop / "my.toml").write_text(text)
    line = ["train", "box_pushing", "--config", "my.toml", "--print-config", *typed.split()]
    if said:
        assert said in complaint(capsys, *line) and "mine" not in sys.modules
    else:
        cli.main(line)
        assert 'plugins = ["mine"]' in capsys.readouterr().out and "mine" in sys.modules


def test_a_plugin_may_hold_tables_and_compute_at_module_level(workshop):
    write(workshop, "tables", "tabled", "tabled-method")
    with (workshop / "tables.py").open("a") as module:
        module.write("import numpy as np\nROOMS = np.arange(6).reshape(2, 3)\n")
        module.write("DOORS = {room: room + 1 for room in ROOMS.ravel()}\nDOORS.update(a=1)\n")
    plugins.load(["tables"])
    assert "tabled" in api.names() and sys.modules["tables"].DOORS["a"] == 1
