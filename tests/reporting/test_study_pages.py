"""Pages of studies: made from records alone, the same bytes each time."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from sample_records import save

from mavic.reporting import studies as pages
from mavic.reporting.studies import table1
from mavic.studies import studies
from mavic.studies.studies import STUDIES, Study

RESULTS = Path(__file__).parents[2] / "results"


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
@pytest.mark.parametrize("name", STUDIES)
def test_published_pages_are_made_from_the_published_records(name, tmp_path):
    made = pages.draw(STUDIES[name], "full", tmp_path / "no jobs", RESULTS, tmp_path / "out")
    assert not made.missing
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
    training = studies.TABLE1[0]
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


def test_table1_sets_the_papers_figures_beside_its_own_setting(tmp_path):
    own = studies._paper_rows("box_pushing")
    both = dataclasses.replace(own, condition=("paper/add", "live/by-kind"))
    rows = (both, studies._tuned_rows("box_pushing"))
    few = tuple(row.but(method=("mavic", "vanilla")) for row in rows)
    study = Study(name="table1", shows="", trainings={"quick": few})
    fill(tmp_path / "jobs", study)
    text = pages.draw(study, "quick", tmp_path / "jobs", None, tmp_path).text
    papers, live, tuned = text.split("**As the paper sets it**")[1].split("| method |")[1:]
    assert "| MAVIC | 90.50 ± 0.71 | 288.32 ± 4.10 | 90.00 ± 0.00 % | 50.0 ± 0.14 % |" in papers
    assert "288.32" not in live and "288.32" not in tuned
    found = json.loads((tmp_path / "table1.json").read_text())
    assert list(found) == list(studies.WORLDS)
    assert found["box_pushing"]["paper"]["mavic"]["base"] == 288.32
    entry = found["box_pushing"]["paper preset"]["mavic"]
    assert (entry["base"], entry["followed"], entry["seeds"]) == (90.5, 0.9, [0, 1])
    assert {"paper preset, live/by-kind", "tuned"} < set(found["box_pushing"])


def test_table1_stands_beside_its_repetition(tmp_path):
    rows = (studies._paper_rows("box_pushing"), studies._tuned_rows("box_pushing"))
    few = tuple(row.but(method=("mavic", "random")) for row in rows)
    study = Study(name="table1", shows="", trainings={"quick": few})
    for folder, seeds in (("first", 2), ("second", 3)):
        fill(tmp_path / folder, study, seeds=seeds)
    found = (pages.collect(few, tmp_path / name, None).found for name in ("first", "second"))
    papers, tuned = table1.beside(*found).splitlines()[2:]
    assert papers == (
        "| Box Pushing, paper preset | MAVIC | 90.50 ± 0.71 | 91.00 ± 1.00 | 288.32 ± 4.10 | 90.00 ± 0.00 % "
        "| 90.00 ± 0.00 % | 50.0 ± 0.14 % |"
    )
    assert "91.00 ± 1.00 | — |" in tuned and tuned.endswith("| — |")
