"""The table of studies: every row is a command that `mavic train` takes, and the paper's every figure has a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from mavic.apps import cli
from mavic.experiment.task import instructions_of
from mavic.instruct.spec import InstructionFile
from mavic.reporting.studies import DRAWINGS
from mavic.studies import engines, jobs, studies, trainings
from mavic.studies.studies import STUDIES
from mavic.studies.trainings import PROFILES

EVERY = {
    (profile, training.name): training
    for row in STUDIES.values()
    for profile in PROFILES
    for training in row.trainings[profile]
}


def test_a_training_is_not_done_without_each_of_its_records(tmp_path):
    job = EVERY["quick", "heatmap"].job(tmp_path)
    configs = EVERY["quick", "heatmap"].configs()
    assert set(job.makes) == {f"box_pushing/{one.name()}.jsonl" for one in configs}


def test_every_study_of_the_plan_is_there_and_can_be_drawn():
    paper = "table1 heatmap curves single compliance dual ood infeasible rare"
    assert list(STUDIES) == [*paper.split(), "shaping", "agents", "unreliable", "atlas", "ablation"]
    assert set(STUDIES) == set(DRAWINGS)


def test_a_name_stands_for_one_training():
    for row in STUDIES.values():
        for profile in PROFILES:
            for training in row.trainings[profile]:
                assert EVERY[profile, training.name] == training


@pytest.mark.parametrize("profile", [pytest.param("full", marks=pytest.mark.long), "quick"])
def test_commands_train_what_the_rows_say(profile):
    for (own, name), training in EVERY.items():
        if own != profile:
            continue
        job = training.job(Path("here"))
        command = cli._parse(job.arguments[2:])
        assert command.configs() == training.configs()
        assert (command.seeds, command.first_seed) == (training.seeds, training.first_seed)
        assert command.out == Path("here") / name == job.folder
        assert command.overwrite and command.quick is command.brief is training.quick
        named = {k: v for k, v in vars(command.numbers).items() if v != "preset"}
        assert named == dict(training.numbers)
        configs = training.configs()
        assert len({config.name() for config in configs}) == len(configs)
        known = InstructionFile.read(instructions_of(training.world)).names()
        assert {kind for config in configs for kind in config.kinds or ()} <= set(known)


def test_an_estimate_grows_with_the_training():
    quick, full = (STUDIES["heatmap"].trainings[profile][0] for profile in ("quick", "full"))
    for device in ("cpu", "gpu"):
        assert quick.seconds(device) < full.seconds(device)
    assert quick.episodes() == 18 * 16_000  # two methods, three penalties, three rates
    table1 = STUDIES["table1"].trainings["full"]
    costs = {one.name: one.seconds("gpu") for one in table1}
    slowest = sorted(costs, key=lambda name: -costs[name])
    assert slowest[0] == "paper_literal-overcooked"
    literal = {one.name: one for one in table1}["paper_literal-overcooked"]
    assert literal.updates() == 25_000
    several = STUDIES["ablation"].trainings["quick"]
    one_by_one = sum(one.seconds("cpu") for one in several)
    assert trainings.seconds_of_all(several, "quick", "cpu") == one_by_one / 2
    assert trainings.seconds_of_all(several, "full", "cpu") == one_by_one
    for study_ in STUDIES.values():
        assert trainings.seconds_of_all(study_.trainings["quick"], "quick", "cpu") < 600


@pytest.mark.long
def test_the_list_says_what_is_done(tmp_path, capsys):
    (training,) = STUDIES["heatmap"].trainings["quick"]
    job = training.job(tmp_path / "quick")
    job.folder.mkdir(parents=True)
    (job.folder / jobs.DONE).write_text(
        jobs.json.dumps({"arguments": list(job.arguments), "seconds": 1})
    )
    for made in job.makes:  # a training whose record is gone is not done
        (job.folder / made).parent.mkdir(exist_ok=True)
        (job.folder / made).touch()
    points = [{"base": 100.0, "followed": 1.0}, {"base": 94.0, "followed": 1.0}]
    (tmp_path / "heatmap.json").write_text(jobs.json.dumps({"mavic": points, "naive": points[1:]}))
    (tmp_path / "heatmap.png").touch()
    cli.main(["reproduce", "--out", str(tmp_path), "--records", str(tmp_path)])
    said = capsys.readouterr().out
    (line,) = [line for line in said.splitlines() if "│ heatmap" in line]
    assert "0/1 · 1/1" in line and "—" in line
    row = " ".join(said.partition("│ heatmap")[2].partition("│ curves")[0].split())
    assert "MAVIC in" in row and "not published" not in row


def test_table1_trains_every_method_of_the_paper_in_three_blocks():
    for block, seed in {"paper_conditions": 1_000, "paper_literal": 200, "ours": 1_000}.items():
        for world in trainings.WORLDS:
            first, dual, *chosen = studies.table1_rows(block, world)
            assert {c.method for c in first.configs()} == {
                "vanilla", "naive", "switch", "mavic", "mavic-shift",
            }  # fmt: skip
            (naive,) = dual.configs()
            assert (naive.method, naive.network) == ("naive", "protected")
            assert (first.seeds, first.first_seed) == (dual.seeds, dual.first_seed) == (10, seed)
            papers = block != "ours"
            assert all(config.is_papers() is papers for config in first.configs())
            assert {config.population for config in first.configs()} == {1}
            populations = [
                (c.method, c.network, c.population) for one in chosen for c in one.configs()
            ]
            assert populations == ([] if papers else [("mavic", first.configs()[0].network, 8)])


def test_a_population_costs_what_its_members_cost():
    one = trainings.training(name="a", world="warehouse", preset="tuned", seeds=2)
    eight = one.but(population=8)
    assert eight.episodes() == round(4.45 * one.episodes())


def test_an_unknown_study_or_training_is_named(capsys):
    with pytest.raises(SystemExit):
        cli.main(["reproduce", "heatmaps"])
    assert "heatmap" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["reproduce", "heatmap", "--only", "heat"])
    assert "heatmap has no training 'heat'" in capsys.readouterr().err


def test_the_longest_training_starts_first(tmp_path, monkeypatch):
    """Its estimate is not the first in the table, and a quick study keeps the table's order."""
    started = []
    monkeypatch.setitem(engines.ENGINES, "local", lambda todo, *_: started.extend(todo))
    cli.main(["reproduce", "table1", "--out", str(tmp_path / "full"), "--records", str(tmp_path)])
    assert studies.TABLE1_FULL[0].name != started[0].name == "paper_literal-overcooked"
    assert {job.name for job in started} == {one.name for one in studies.TABLE1_FULL}
    started.clear()
    cli.main(["reproduce", "table1", "--quick", "--out", str(tmp_path / "quick")])
    quick = STUDIES["table1"].trainings["quick"]
    assert [job.name for job in started] == [one.name for one in quick]
