"""The log of a team on robots, drawn by the ordinary replay."""

from pathlib import Path

import numpy as np
import pytest

from mavic.apps import robot_log
from mavic.apps.cli import main
from mavic.runtime.team import open_team

TEAM = Path(__file__).parents[1] / "runtime" / "data" / "overcooked"


@pytest.fixture
def log(tmp_path):
    """Two cooks; one is told to stay and does, then falls silent."""
    time = [0.0]
    path = tmp_path / "robots.jsonl"
    team = open_team(TEAM, clock=lambda: time[0], log=path, silent_after=20.0)
    seen = np.zeros(63)
    for agent in team.agents:
        team.observed(agent, seen)
    time[0] = 2.0
    team.say(kind="stay", to=["cook_0"], until=9.0)
    for agent in team.agents:
        team.ended(agent, seen)
    time[0] = 9.5
    team.observed("cook_1", seen)
    time[0] = 26.0
    team.tick()
    team.close()
    return path


def test_a_frame_for_each_moment_in_which_something_happened(log):
    made = robot_log.recording_of(log)
    assert [frame["time"] for frame in made.frames] == [0, 2, 10, 26]
    first, told, over, silent = made.frames
    assert first["instruction"] is None and all(agent["decided"] for agent in first["agents"])
    assert told["instruction"]["kind"] == "stay" and told["instruction"]["agents"] == [0]
    assert told["agents"][0]["macro"] == "STAY" and told["agents"][0]["complies"] is True
    assert told["agents"][1]["complies"] is None
    assert over["verdicts"] == [{"number": 1, "kind": "stay", "followed": True}]
    assert (over["judged"], over["followed"]) == (1, 1)
    assert silent["agents"][0]["doing"] == "silent"
    assert [sprite["colour"] == "grey" for sprite in silent["scene"]["sprites"]] == [True, False]


def test_the_ordinary_command_draws_it(log, tmp_path, capsys):
    out = tmp_path / "robots.html"
    main(["replay", str(log), "--out", str(out)])
    page = out.read_text(encoding="utf-8")
    assert "cook_1" in page and '"stay"' in page and "wrote" in capsys.readouterr().out


def test_a_log_with_an_endless_time_is_one_line(log, tmp_path, capsys):
    text = log.read_text(encoding="utf-8")
    log.write_text(text.replace('"until":9.0', '"until":Infinity'), encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["replay", str(log), "--out", str(tmp_path / "page.html")])
    assert "until must be a finite number or null, not inf" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong, said",
    [
        (["--shield"], "a log is shown as it is"),
        ([], "nothing was decided or said"),
    ],
)
def test_bad_requests_are_one_line(wrong, said, tmp_path, capsys):
    empty = tmp_path / "empty.jsonl"
    team = open_team(TEAM, log=empty)
    team.close()
    with pytest.raises(SystemExit):
        main(["replay", str(empty), *wrong, "--out", str(tmp_path / "page.html")])
    assert said in capsys.readouterr().err
