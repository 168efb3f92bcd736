"""The headline tables of pages are those that the records make."""

from pathlib import Path

import pytest

from mavic.reporting import headline

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"


@pytest.mark.parametrize(("page", "tables"), [("README.md", 1), ("docs/results.md", 10)])
def test_pages_hold_the_headline_tables(page, tables):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert len(headline.BLOCK.findall(text)) == tables
    assert headline.updated(text, RESULTS) == text


def test_a_headline_shows_its_group_first_and_other_rows_beside_it():
    lines = headline.markdown(RESULTS, "warehouse protected").splitlines()
    assert lines[0].startswith("| method | network | base return |")
    assert "task under an instruction" not in lines[0]  # these records do not have it
    assert lines[2].startswith("| **MAVIC** | protected | **532.46** [532.16, 532.70] |")
    assert lines[3].startswith("| MAVIC | shared |") and "438.90" not in lines[3]
    names = [line.split(" | ")[0] for line in lines[2:]]
    assert names[-1] == "| vanilla (hears nothing)" and "| dual (naive)" in names
    assert "paper" not in headline.markdown(RESULTS, "overcooked extras")
    few = headline.markdown(RESULTS, "overcooked brief").splitlines()[0]
    assert few.startswith("| method | network | base return | instructions followed | worst seed |")


def test_rows_with_the_shield_and_the_task_under_an_instruction(tmp_path):
    entry = {
        "base_mean": 1.0, "base_ci": [0.5, 1.5], "base_min": 0.5, "share_of_optimum": 0.9, "compliance_mean": 0.75,
        "compliance_ci": [0.7, 0.8], "compliance_min": 0.6, "under_share_mean": 0.95, "under_share_min": 0.5,
    }  # fmt: skip
    (tmp_path / "box_pushing").mkdir()
    (tmp_path / "box_pushing" / "table.json").write_text(
        headline.json.dumps(
            {"tuned/residual/live/by-kind": {"mavic": entry, "mavic+shield": entry}}
        )
    )
    named = {"group": "tuned/residual/live/by-kind", "method": "mavic"}
    (tmp_path / "headline.json").write_text(headline.json.dumps({"box_pushing": named}))
    header, _, first, second = headline.markdown(tmp_path, "box_pushing").splitlines()
    assert header.endswith("| task under an instruction | worst kind, worst seed |")
    assert first.endswith("| **75.00 %** [70.00, 80.00] | 60.00 % | 95.0 % | 50.0 % |")
    assert second.startswith("| MAVIC + shield | residual | 1.00 [0.50, 1.50] |")
