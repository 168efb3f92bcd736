"""The table of backbones comes from records, and its page shows the one of its file."""

from __future__ import annotations

import json

import pytest
from sample_records import config_of, save

from mavic.apps.commands.report import Report
from mavic.reporting import backbones
from tools import backbones as pages
from tools import headline


@pytest.fixture
def folder(tmp_path):
    """Two backbones of one world. The best plan earns 300; curves rise in four points to the final numbers."""
    world = tmp_path / "box_pushing"
    world.mkdir()
    own = config_of(network="residual", hear="kinds")
    save(world, own, [300.0, 288.0, 200.0], [1.0, 0.99, 0.98], [0.0] * 3, optimum=300.0)
    team = config_of(network="residual", hear="kinds", backbone="mac-cac")
    save(world, team, [200.0, 150.0, 300.0], [1.0] * 3, [0.0] * 3, optimum=300.0)
    return tmp_path


def test_other_networks_do_not_replace_the_headline(folder):
    before = backbones._table_of(folder)
    other = config_of(network="shared", hear="vectors")
    save(folder / "box_pushing", other, [1.0, 2.0, 3.0], [0.5] * 3, [0.0] * 3, optimum=300.0)
    assert backbones._table_of(folder) == before


def test_the_file_has_the_headline_numbers_by_world_backbone_and_method(folder):
    Report(folder=folder).run()
    found = json.loads((folder / "table.json").read_text())
    assert list(found["box_pushing"]) == ["mac-iac", "mac-cac"]
    numbers = found["box_pushing"]["mac-iac"]["mavic"]
    assert numbers["base_min"] == 200.0 and numbers["compliance_mean"] == pytest.approx(0.99)
    assert {"under_share_mean", "under_obeyed_mean", "share_of_optimum"} <= set(numbers)
    # two of three seeds come to 285, at the last of four points; each point took 2.5 seconds
    assert numbers["episodes_to_95"] == 96_000 and numbers["seconds"] == 10
    assert found["box_pushing"]["mac-cac"]["mavic"]["episodes_to_95"] is None
    assert (folder / "box_pushing" / "table.md").is_file()


def test_a_page_gets_one_line_for_each_backbone_and_method(folder):
    page = "before\n<!-- backbones -->\nearlier\n<!-- end -->\nafter\n"
    results = folder / "results"
    assert "There are no figures yet." in headline.updated(page, results)
    backbones.write_table(folder, results / "backbones")
    made = headline.updated(page, results)
    assert made.startswith("before\n") and made.endswith("after\n") and "earlier" not in made
    assert (
        "| box_pushing | mac-iac | mavic | 262.67 (200.00) | 87.6 % | 99.00 % (98.00 %) |" in made
    )
    assert "| 96,000 | 10 |" in made and "| — | 10 |" in made
    assert made.count("\n| box_pushing |") == 2 and len(pages.COLUMNS) == 10


def test_one_backbone_makes_no_table(folder, tmp_path):
    for path in (folder / "box_pushing").glob("*mac-cac*"):
        path.unlink()
    assert backbones.write_table(folder, tmp_path / "out") is None
    assert not (tmp_path / "out").exists()
