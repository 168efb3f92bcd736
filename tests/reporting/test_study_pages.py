"""Pages of studies: made from records alone, the same bytes each time."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from sample_records import save

from mavic.reporting import studies as pages
from mavic.reporting.studies import answers
from mavic.studies import studies
from mavic.studies.studies import STUDIES, Study

RESULTS = Path(__file__).parents[2] / "results"
NOT_TRAINED = r"(paper_conditions|ours)-\w+(-dual)?|paper_literal-\w+-dual"  # of Table 1
PUBLISHED = [name for name in STUDIES if (RESULTS / f"{name}.json").is_file()]


def fill(folder, study: Study, profile: str = "quick", seeds: int = 2) -> None:
    """Write a record for every configuration of a study: MAVIC has more of everything."""
    for training in study.trainings[profile]:
        preset = training.preset()
        for config in training.configs():
            more = {"mavic": 90.0, "naive": 10.0}.get(config.method, 50.0)
            place = folder / training.name / training.world
            kinds = config.kinds or ("stay", "avoid-small-box-0", "push")
            save(
                place,
                config,
                [more + seed for seed in range(seeds)],
                [more / 100] * seeds,
                [-more / 1000] * seeds,
                preset=dataclasses.asdict(preset),
                kinds=kinds,
            )


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jobs")
    for name in ("heatmap", "atlas", "compliance"):
        fill(folder, STUDIES[name], seeds=1)
    return folder


def drawn(name, folder, out, **more):
    return pages.draw(STUDIES[name], "quick", folder, None, out, **more)


@pytest.mark.long
@pytest.mark.parametrize("name", ["heatmap", "atlas", "compliance"])
def test_a_page_is_made_from_records_alone_with_the_same_bytes(name, filled, tmp_path):
    first, second = (drawn(name, filled, tmp_path / part) for part in ("a", "b"))
    assert not first.missing and len(first.written) == 4
    assert {path.suffix for path in first.written} == {".json", ".md", ".svg", ".png"}
    for one, other in zip(first.written, second.written, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name
    json.loads(first.written[0].read_text())
    assert f"]({name}.png)" in first.written[1].read_text()


@pytest.mark.long
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_pages_are_made_from_the_published_records(name, tmp_path):
    made = pages.draw(STUDIES[name], "full", tmp_path / "no jobs", RESULTS, tmp_path / "out")
    blocks = {training for training, _ in made.missing}  # of Table 1, which are not trained yet
    assert all(re.fullmatch(NOT_TRAINED, block) for block in blocks)
    assert not blocks or name == "table1"
    for path in made.written[:2]:  # bytes of figures depend on the version of matplotlib
        assert path.read_bytes() == (RESULTS / path.name).read_bytes(), path.name


def test_the_heatmap_tells_where_each_method_has_most_of_both(filled, tmp_path):
    text = drawn("heatmap", filled, tmp_path).text
    assert "| MAVIC | 20 | 0.02 | 90.00 | 90.00 % |" in text
    found = json.loads((tmp_path / "heatmap.json").read_text())
    assert len(found["mavic"]) == len(found["naive"]) == 9
    assert {entry["penalty"] for entry in found["naive"]} == {20, 150, 600}


def test_records_that_are_missing_are_named_and_a_study_without_any_draws_nothing(filled, tmp_path):
    made = drawn("rare", filled, tmp_path)
    (training,) = STUDIES["rare"].trainings["quick"]
    assert made.text == "" and made.written == ()
    assert len(made.missing) == len(training.configs())
    assert made.missing[0] == ("rare", training.configs()[0].name())


def test_a_published_record_serves_if_its_numbers_are_the_same(tmp_path):
    training = studies.TABLE1_FULL[0]
    config = training.configs()[0]
    preset = training.preset()
    for numbers, serves in (
        (preset, True),
        (dataclasses.replace(preset, episodes=1_000), True),
        (dataclasses.replace(preset, n_steps=7), False),
    ):
        facts = dataclasses.asdict(numbers)
        save(tmp_path / training.world, config, [1, 2], [1, 1], [0, 0], preset=facts)
        collected = pages.collect([training], tmp_path / "jobs", tmp_path)
        assert ((training.name, config.name()) not in collected.missing) is serves


def test_publishing_copies_the_records_and_draws_the_same_from_them(filled, tmp_path):
    made = drawn("compliance", filled, tmp_path / "a", publish=tmp_path / "results")
    copies = [path for path in made.written if path.name.endswith(".jsonl.gz")]
    assert len(copies) == 6
    again = pages.draw(
        STUDIES["compliance"], "quick", tmp_path / "nothing", tmp_path / "results", tmp_path / "b"
    )
    assert again.text == made.text and not again.missing


def test_table1_has_three_blocks_and_the_papers_figures_beside_its_own_setting(tmp_path):
    blocks = {name: studies.table1_rows(name, "box_pushing") for name in studies.TABLE1}
    few = tuple(
        one
        for first, *more in blocks.values()
        for one in (first.but(method=("mavic", "vanilla")), *more)
    )
    study = Study(name="table1", shows="", trainings={"quick": few})
    fill(tmp_path / "jobs", study)
    text = pages.draw(study, "quick", tmp_path / "jobs", None, tmp_path).text
    conditions, literal, ours = text.split("\n## ")[1:]
    best = "| MAVIC | **90.50 ± 0.71** | 288.32 ± 4.10 | **90.00 ± 0.00 %** | 50.0 ± 0.14 % |"
    assert best in conditions and best in literal
    assert "| dual (naive) | 10.50 ± 0.71 | — | 10.00 ± 0.00 % | — |" in conditions
    assert "288.32" not in ours and "| MAVIC | **90.50 ± 0.71** | **90.00 ± 0.00 %** |" in ours
    assert "| MAVIC | 99.00 ± 0.00 % | 97.50 ± 0.00 % |" in conditions  # by decisions, by ticks
    assert text.count("(value bias (leak) beside)") == 1
    assert max(line.count("|") for line in text.splitlines()) <= 6 + 1
    found = json.loads((tmp_path / "table1.json").read_text())
    assert list(found) == ["paper_conditions", "paper_literal", "ours"]
    assert set(found["ours"]["box_pushing"]) == {"mavic", "vanilla", "dual", "mavic-population"}
    assert "| MAVIC, 8 members | " in ours
    entry = found["paper_conditions"]["box_pushing"]["mavic"]
    assert list(entry)[:4] == ["base_mean", "base_std", "compliance_mean", "compliance_std"]
    assert (entry["base_mean"], entry["compliance_mean"], entry["seeds"]) == (90.5, 0.9, [0, 1])
    assert entry["paper"]["base"] == 288.32 and "paper" not in found["ours"]["box_pushing"]["mavic"]
    assert (tmp_path / "table1.png").is_file()


def test_a_block_of_table1_without_records_says_so(tmp_path):
    first, *_ = studies.table1_rows("paper_literal", "warehouse")
    study = Study(name="table1", shows="", trainings={"quick": (first.but(method="mavic"),)})
    fill(tmp_path / "jobs", study)
    made = pages.draw(study, "quick", tmp_path / "jobs", None, tmp_path)
    assert made.text.count("Not trained yet.") == 2
    assert {path.suffix for path in made.written} == {".json", ".md"}  # no curves to draw


def test_every_study_answers_in_one_line_from_its_own_numbers(tmp_path):
    assert list(answers.ANSWERS) == list(STUDIES)
    published = {name: answers.answer(name, RESULTS) for name in PUBLISHED}
    assert all(line.endswith(".") and "\n" not in line for line in published.values())
    assert len(set(published.values())) == len(PUBLISHED)
    assert answers.answer("heatmap", tmp_path) == "" and answers.figure("heatmap", tmp_path) is None
    assert answers.figure("heatmap", RESULTS) == RESULTS / "heatmap.png"
    points = [{"base": 100.0, "followed": 1.0}, {"base": 94.0, "followed": 1.0}]
    made = {"mavic": points, "naive": points[1:]}
    (tmp_path / "heatmap.json").write_text(json.dumps(made))
    assert "MAVIC in 1 of 2 settings, naive in 0." in answers.answer("heatmap", tmp_path)


@pytest.mark.parametrize("name", PUBLISHED)
def test_an_answer_changes_with_the_numbers(name, tmp_path):
    """No answer is a fixed text: other numbers give another line."""

    def moved(found):
        if isinstance(found, dict):
            return {key: moved(value) for key, value in found.items()}
        if isinstance(found, list):
            return [moved(value) for value in found]
        return 1 / (1 + abs(found)) if isinstance(found, int | float) else found

    (tmp_path / f"{name}.json").write_text(
        json.dumps(moved(json.loads((RESULTS / f"{name}.json").read_text())))
    )
    assert answers.answer(name, tmp_path) != answers.answer(name, RESULTS)
