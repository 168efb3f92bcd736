"""The headline tables of pages are those that the records make."""

from pathlib import Path

import pytest

from mavic.learn.backbones import BACKBONES
from mavic.studies.studies import STUDIES
from tools import cited, guide, headline

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"


@pytest.mark.parametrize(
    ("page", "tables"),
    [
        *(("README.md", 0), ("docs/record/reliability.md", 0)),
        *(("docs/record/results.md", 21), ("docs/results.md", 3)),
    ],
)
def test_pages_hold_the_headline_tables(page, tables):
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = [block for _, block, _ in headline.BLOCK.findall(text)]
    assert sum(block.startswith("headline: ") for block in blocks) == tables
    assert headline.updated(text, RESULTS) == text


def test_the_page_of_studies_holds_what_was_published():
    text = (ROOT / "docs" / "record" / "studies.md").read_text(encoding="utf-8")
    named = [block.removeprefix("study: ") for _, block, _ in headline.BLOCK.findall(text)]
    assert named == list(STUDIES)
    assert headline.updated(text, RESULTS) == text
    missing = [name for name in named if not (RESULTS / f"{name}.md").is_file()]
    assert text.count("Not run yet.") == len(missing)


def test_other_blocks_are_speed_and_the_errors_of_critics():
    table = headline.speed.markdown(RESULTS).splitlines()
    assert len(table) == 5 and "| 49,000 | 1,400 | 10,600,000 | 130,000 |" in table[2]
    assert "5,900,000 (90 at once)" in table[4]
    by_backbone = headline.speed.markdown(RESULTS, "backbones").splitlines()
    assert [line.split()[1] for line in by_backbone[2:]] == [f"`{name}`" for name in BACKBONES]
    assert headline.speed.MISSING not in "".join(by_backbone[2:])
    page = (ROOT / "docs" / "record" / "backbones.md").read_text(encoding="utf-8")
    assert headline.updated(page, RESULTS) == page and by_backbone[-1] in page
    metrics = (ROOT / "docs" / "record" / "definitions.md").read_text(encoding="utf-8")
    assert headline.updated(metrics, RESULTS) == metrics and "<!-- definitions -->" in metrics
    errors = headline.BLOCKS["bias"](RESULTS, "box_pushing")
    assert "| `tuned/protected/live/by-kind` | −0.1 % |" in errors


@pytest.mark.parametrize("page", ["README.md", "docs/record/results.md"])
def test_every_number_of_a_page_has_a_record(page):
    assert not list(cited.uncited(ROOT / page))


def test_a_number_without_a_record_is_found(tmp_path):
    (tmp_path / "results" / "box_pushing").mkdir(parents=True)
    (tmp_path / "results" / "box_pushing" / "table.json").write_text('{"a": [0.98765, 12.344]}')
    page = tmp_path / "page.md"
    page.write_text(
        "# Box Pushing\n98.77 % and 12.34, not 12.35 <!-- headline: x -->\n7.77\n<!-- end -->\n"
        "8.5 is said <!-- not from a record: 8.5 (a book) -->\n# Warehouse\n12.34 and −0.77\n"
    )
    assert list(cited.uncited(page)) == [
        ("Box Pushing", "12.35"),
        ("Warehouse", "12.34"),
        ("Warehouse", "−0.77"),
    ]


def test_a_paragraph_may_cite_only_the_files_that_it_names(tmp_path):
    (tmp_path / "results").mkdir()
    for name, number in (("a", 1.25), ("b", 3.5e6)):
        (tmp_path / "results" / f"{name}.json").write_text(f'{{"x": {number}}}')
    page = tmp_path / "page.md"
    page.write_text(
        "1.25 and 7.77.\n\n1.25, then\n<!-- from: b.json -->\n\n"
        "3.5 (here) and 3.5 million, 1.25.\n<!-- from: b.json a.json -->\n\n1.25\n\n"
        "3.5, of which forty characters and more come before the word million\n<!-- from: b.json -->\n"
    )
    assert [number for _, number in cited.uncited(page)] == ["7.77", "1.25", "3.5"]


def test_a_headline_shows_its_group_first_and_other_rows_beside_it():
    lines = headline.markdown(RESULTS, "warehouse protected").splitlines()
    assert lines[0].startswith("| method | network | base return |")
    assert "task under an instruction" not in lines[0]  # these records do not have it
    assert lines[2].startswith("| MAVIC | protected | **532.46** [532.16, 532.70] |")
    assert lines[3].startswith("| MAVIC | shared |") and "438.90" not in lines[3]
    names = [line.split(" | ")[0] for line in lines[2:]]
    assert names[-1] == "| vanilla (hears nothing)" and "| dual (naive)" in names
    assert "paper" not in headline.markdown(RESULTS, "overcooked extras")
    few = headline.markdown(RESULTS, "overcooked guide").splitlines()[0]
    assert few.startswith("| method | base return | instructions followed | worst seed |")


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
    named = {"group": "tuned/residual/live/by-kind"}
    (tmp_path / "headline.json").write_text(headline.json.dumps({"box_pushing": named}))
    header, _, first, second = headline.markdown(tmp_path, "box_pushing").splitlines()
    assert header.endswith("| task under an instruction | worst kind, worst seed |")
    assert first.endswith("| **75.00 %** [70.00, 80.00] | 60.00 % | 95.0 % | 50.0 % |")
    assert second.startswith("| MAVIC + shield | residual | **1.00** [0.50, 1.50] |")


def block(base: float, share: float) -> dict:
    entry = {"base_mean": base, "base_std": 1.0, "compliance_mean": share, "compliance_std": 0.0}
    entry["paper"] = {"base": 1.5, "base_std": 0.5, "compliance": 0.9, "compliance_std": 0.0}
    return {world: {m: dict(entry) for m in guide.ROWS} for world in guide.WORLDS}


def test_table1_in_brief_fills_itself_when_its_records_arrive(tmp_path):
    blocks = {"paper_conditions": {}, "paper_literal": block(3.25, 0.5), "ours": {}}
    page = tmp_path / "table1.json"
    page.write_text(headline.json.dumps(blocks))
    before = guide.table1(tmp_path, "paper_conditions")
    assert (
        before.startswith("Not trained yet") and "| 3.2" not in before and "**3.2** ± 1.0" in before
    )
    blocks["paper_conditions"] = block(7.75, 0.25)
    blocks["paper_conditions"]["overcooked"]["naive"]["base_mean"] = 2.0
    page.write_text(headline.json.dumps(blocks))
    written = guide.table1(tmp_path, "paper_conditions").replace("\N{NO-BREAK SPACE}", " ")
    header, _, mavic, naive, *_ = written.splitlines()
    assert header == "| base return · followed | Overcooked | Box Pushing | Warehouse |"
    assert "**7.8** ± 1.0 · **25.0 %**<br>paper 1.5 ± 0.5 · 90 %" in mavic
    assert naive.startswith("| naive | 2.0 ± 1.0")
    del blocks["paper_conditions"]["overcooked"], blocks["paper_conditions"]["warehouse"]
    page.write_text(headline.json.dumps(blocks))
    one = guide.table1(tmp_path, "paper_conditions").splitlines()
    assert one[0] == "| base return · followed | Box Pushing |"
    assert one[-1] == "Not trained yet: Overcooked and Warehouse."


def test_our_line_takes_the_block_when_all_worlds_have_it(tmp_path):
    blocks = {"ours": block(10.0, 0.5)}
    (tmp_path / "table1.json").write_text(headline.json.dumps(blocks))
    line = guide.table1(tmp_path, "ours")
    assert "Overcooked 10.0 of 156.6, 50.00 %" in line and "preset `default`" in line
    chosen = block(11.0, 0.75)["overcooked"]["mavic"]
    blocks["ours"]["overcooked"] = {"mavic-population": chosen}
    (tmp_path / "table1.json").write_text(headline.json.dumps(blocks))
    assert "Overcooked 11.0 of 156.6, 75.00 %" in guide.table1(tmp_path, "ours")


def test_bold_is_the_best_of_a_column():
    lines = headline.markdown(RESULTS, "overcooked guide").splitlines()[2:]
    bold = [line.split(" | ")[0] for line in lines if line.split(" | ")[1].startswith("**")]
    assert bold == ["| vanilla (hears nothing)", "| vanilla + shield"]


def test_a_figure_that_is_not_drawn_yet_leaves_its_place_empty(tmp_path):
    assert guide.figure(tmp_path, "table1") == ""
    (tmp_path / "table1.png").touch()
    assert guide.figure(tmp_path, "table1").endswith("vanilla](../results/table1.png)\n")
