"""Teams are found by name, wherever the package is installed."""

from __future__ import annotations

import shutil

import pytest

import mavic
from mavic.experiments import policy_file, shipped_teams
from mavic.experiments.policy_file import PolicyError


def test_a_shipped_team_is_found_by_its_name_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert mavic.load_policy("warehouse/mavic").world == "warehouse"
    assert policy_file.read_facts("box_pushing/naive.json")["config"]["method"] == "naive"


def test_a_file_of_the_user_comes_before_a_shipped_team(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "box_pushing").mkdir()
    for ending in shipped_teams.ENDINGS:
        shutil.copy(
            (shipped_teams.folder() / "warehouse" / "mavic").with_suffix(ending),
            (tmp_path / "box_pushing" / "mavic").with_suffix(ending),
        )
    assert mavic.load_policy("box_pushing/mavic").world == "warehouse"


def test_a_wrong_name_is_answered_with_the_nearest_team():
    with pytest.raises(PolicyError, match="did you mean 'box_pushing/mavic'"):
        mavic.load_policy("box_pushin/mavic")


def test_teams_inside_the_package_come_first(monkeypatch, tmp_path):
    monkeypatch.setattr(shipped_teams.resources, "files", lambda name: tmp_path / "mavic")
    assert shipped_teams.folder() == tmp_path / "policies"
    (tmp_path / "mavic" / "policies").mkdir(parents=True)
    assert shipped_teams.folder() == tmp_path / "mavic" / "policies"
