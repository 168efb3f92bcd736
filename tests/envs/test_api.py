"""The registry of worlds and the records of the built-in ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mavic.envs import api
from mavic.envs.api import make, register
from mavic.envs.box_pushing import BoxPushing

FOLDER = Path(api.__file__).parent
MODULES = {"__init__.py", "env.py", "macros.py", "render.py", "optimum.py", "presets.py"}
TABLES = {"instructions.toml", "paper.toml", "phrases.toml"}


@pytest.fixture
def registry(monkeypatch):
    """An empty registry of users' worlds."""
    monkeypatch.setattr(api, "REGISTERED", {})


def test_an_environment_is_made_by_the_name_of_its_world():
    assert make("box_pushing", size=8) == BoxPushing(size=8)


def test_an_unknown_world_names_the_known_ones():
    with pytest.raises(ValueError, match=r"did you mean 'box_pushing'.*warehouse.*overcooked"):
        make("box_pushin")


def test_an_unknown_option_names_the_known_ones():
    with pytest.raises(ValueError, match=r"no option 'sise'; did you mean 'size'"):
        make("box_pushing", sise=8)


def test_users_register_their_worlds(registry):
    register("mine", "mavic.envs.warehouse.env:Warehouse", title="My Warehouse")
    assert api.names() == (*api.BUILT_IN, "mine")
    assert api.world("mine").title == "My Warehouse"
    with pytest.raises(ValueError, match="registered as 'mine' calls itself 'warehouse'"):
        make("mine")


def test_a_registered_factory_may_be_named_by_its_place(registry, monkeypatch):
    monkeypatch.setattr(api, "BUILT_IN", ())
    register("warehouse", "mavic.envs.warehouse.env:Warehouse")
    assert make("warehouse", people=1).people == 1
    with pytest.raises(ValueError, match="no option 'peple'; did you mean 'people'"):
        make("warehouse", peple=1)


def test_a_name_belongs_to_one_environment(registry):
    with pytest.raises(ValueError, match="a world called 'box_pushing' is already registered"):
        register("box_pushing", "another:World")
    register("mine", BoxPushing)
    with pytest.raises(ValueError, match="a world called 'mine' is already registered"):
        register("mine", "another:World")


def test_a_known_world_can_get_another_instruction_file(registry):
    built_in = api.world("box_pushing")
    register("box_pushing", built_in.make, instructions="mine.toml")
    assert api.names() == api.BUILT_IN
    assert api.world("box_pushing") == replace(built_in, instructions=Path("mine.toml"))
    register("box_pushing", built_in.make, title="Mine")
    assert api.world("box_pushing").instructions == Path("mine.toml")


def test_every_folder_is_a_built_in_world():
    folders = {path.parent.name for path in FOLDER.glob("*/__init__.py")}
    assert folders == set(api.BUILT_IN)


@pytest.mark.parametrize("name", api.BUILT_IN)
def test_every_folder_has_the_same_files(name):
    files = {path.name for path in (FOLDER / name).iterdir() if path.is_file()}
    assert files >= MODULES
    assert {file for file in files if file.endswith(".toml")} == TABLES


@pytest.mark.parametrize("name", api.BUILT_IN)
def test_a_built_in_record_is_complete(name):
    world = api.world(name)
    assert world.name == name == make(name).name
    assert world.title and world.instructions.is_file() and world.phrases.is_file()
    assert set(world.presets) >= {"paper", "tuned"}
    assert set(world.paper) == {"mavic", "naive", "switch", "vanilla"}
    assert world.paper["vanilla"].compliance is None
    assert all(steps > 0 for steps in world.reference_speed)


@pytest.mark.parametrize("name", api.BUILT_IN)
def test_the_optimum_is_known_for_the_tuned_preset_and_default_options(name):
    world = api.world(name)
    best = world.optimum(make(name), world.presets["tuned"].gamma, None)
    assert best > max(figures.base for figures in world.paper.values())


def test_the_optimum_of_other_options_is_unknown_where_it_was_not_planned():
    assert api.world("warehouse").optimum(make("warehouse", people=1), 1.0, None) is None
    assert api.world("warehouse").optimum(make("warehouse"), 0.9, None) is None
    assert api.world("warehouse").optimum(make("warehouse"), 1.0, "fetch-tool-1-first") == 513
    assert api.world("overcooked").optimum(make("overcooked", map="A"), 0.992, None) is None
    assert api.world("box_pushing").optimum(make("box_pushing"), 0.995, "stay") is None


def test_the_options_of_an_environment_can_be_listed():
    options = api.options_of(make("box_pushing", size=8))
    assert options["size"] == 8 and options["dynamics"] == "paper" and options["big"] == 300.0
