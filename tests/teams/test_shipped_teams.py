"""Teams are found by name, wherever the package is installed."""

from __future__ import annotations

import re
import shutil

import jax
import numpy as np
import pytest

import mavic
from mavic.teams import file as policy_files
from mavic.teams import shipped as shipped_teams
from mavic.teams.facts import PolicyError, read_facts


def test_a_shipped_team_is_found_by_its_name_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert mavic.load_policy("warehouse/mavic").world == "warehouse"
    assert read_facts("box_pushing/naive.json")["config"]["method"] == "naive"


def test_a_file_of_the_user_comes_before_a_shipped_team(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "box_pushing").mkdir()
    for ending in shipped_teams.ENDINGS:
        shutil.copy(
            (shipped_teams.folder() / "warehouse" / "mavic").with_suffix(ending),
            (tmp_path / "box_pushing" / "mavic").with_suffix(ending),
        )
    assert mavic.load_policy("box_pushing/mavic").world == "warehouse"


def test_a_dot_belongs_to_the_name(tmp_path):
    for world, name in (("warehouse", "mavic-0.5"), ("box_pushing", "mavic-0.9")):
        shipped = mavic.load_policy(f"{world}/mavic")
        saved = policy_files.save(tmp_path / name, shipped.weights, shipped.facts)
        assert saved.name == f"{name}.safetensors"
    for ending in ("", *shipped_teams.ENDINGS):
        assert mavic.load_policy(tmp_path / f"mavic-0.5{ending}").world == "warehouse"
        assert mavic.load_policy(tmp_path / f"mavic-0.9{ending}").world == "box_pushing"
    with pytest.raises(PolicyError, match=r"mavic-0\.7\.safetensors: no such file"):
        mavic.load_policy(tmp_path / "mavic-0.7")


def test_what_an_agent_sees_must_be_finite():
    """The most likely of unknown numbers would be the first macro."""
    team = mavic.load_policy("box_pushing/mavic")
    seen = np.zeros((2, team.shape.observation))
    seen[1, 3] = np.nan
    with pytest.raises(
        PolicyError, match="the observation of agent 1 has numbers that are not finite"
    ):
        team.act(jax.random.key(0), team.start(), seen)


def test_a_folder_is_not_a_policy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PolicyError, match=r"^\. is a folder; a policy is a \.safetensors file"):
        mavic.load_policy(".")


def test_an_edited_description_and_one_without_a_hash_are_refused(tmp_path):
    shipped = mavic.load_policy("box_pushing/mavic")
    notes = shipped_teams.notes_of(
        policy_files.save(tmp_path / "team", shipped.weights, shipped.facts)
    )
    text = notes.read_text().replace('"seed": ', '"seed": 1')
    notes.write_text(text)
    with pytest.raises(PolicyError, match=r"\(its hash differs\); take it from a backup"):
        mavic.load_policy(notes)
    for instead in ('"sha256": null', '"sha2u6": "0"'):
        notes.write_text(re.sub(r'"sha256": "\w+"', instead, text))
        with pytest.raises(PolicyError, match=r"\(it has no hash\); take it from a backup"):
            mavic.load_policy(notes)


def test_a_wrong_name_is_answered_with_the_nearest_team():
    with pytest.raises(PolicyError, match="did you mean 'box_pushing/mavic'"):
        mavic.load_policy("box_pushin/mavic")


def test_teams_inside_the_package_come_first(monkeypatch, tmp_path):
    monkeypatch.setattr(shipped_teams.resources, "files", lambda name: tmp_path / "mavic")
    assert shipped_teams.folder() == tmp_path / "policies"
    (tmp_path / "mavic" / "policies").mkdir(parents=True)
    assert shipped_teams.folder() == tmp_path / "mavic" / "policies"
