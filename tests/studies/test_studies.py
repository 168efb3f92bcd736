"""The table of studies: every row is a command that `mavic train` takes, and the paper's every figure has a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from mavic.apps import cli
from mavic.experiment.task import instructions_of
from mavic.instruct.spec import InstructionFile
from mavic.reporting.studies import DRAWINGS
from mavic.studies import engines, jobs, studies
from mavic.studies.studies import PROFILES, STUDIES

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
    names = "table1 heatmap curves single compliance dual ood infeasible rare shaping agents atlas ablation"
    assert list(STUDIES) == names.split()
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
    slowest = sorted(table1, key=lambda one: -one.seconds("gpu"))  # as measured (lab 108)
    assert [one.name for one in slowest[:2]] == ["paper-overcooked", "paper-warehouse"]
    assert slowest[0].updates() == 25_000
    several = STUDIES["ablation"].trainings["quick"]
    one_by_one = sum(one.seconds("cpu") for one in several)
    assert studies.seconds_of_all(several, "quick", "cpu") == one_by_one / 2
    assert studies.seconds_of_all(several, "full", "cpu") == one_by_one
    for study_ in STUDIES.values():
        assert studies.seconds_of_all(study_.trainings["quick"], "quick", "cpu") < 600


@pytest.mark.long
def test_the_list_says_what_is_done(tmp_path, capsys):
    (training,) = STUDIES["heatmap"].trainings["quick"]
    job = training.job(tmp_path / "quick")
    job.folder.mkdir(parents=True)
    (job.folder / jobs.DONE).write_text(
        jobs.json.dumps({"arguments": list(job.arguments), "seconds": 1})
    )
    (tmp_path / "heatmap.md").touch()
    cli.main(["reproduce", "--out", str(tmp_path), "--records", str(tmp_path)])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "│ heatmap" in line]
    assert "0/1 · 1/1" in line and "—" in line and "yes" in line


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
    assert studies.TABLE1[0].name != started[0].name == "paper-overcooked"
    assert {job.name for job in started} == {one.name for one in studies.TABLE1}
    started.clear()
    cli.main(["reproduce", "table1", "--quick", "--out", str(tmp_path / "quick")])
    quick = STUDIES["table1"].trainings["quick"]
    assert [job.name for job in started] == [one.name for one in quick]
