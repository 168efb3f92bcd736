"""`mavic check`: planted mistakes are found, each with a line that says what to change, and none in our files."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import toy_simulators as toys
import yard

from mavic.apps import cli
from mavic.envs import api
from mavic.experiment import check
from mavic.instruct.reward import rules_of
from mavic.instruct.spec import InstructionFile
from mavic.rollout import trial
from mavic.session import session
from mavic.simulators.worlds import python_world


def kind(rule="add", train=None, **keys):
    """A kind with phrases that no other has."""
    count = kind.made = getattr(kind, "made", 0) + 1
    words = ("gravel", "pebble", "granite")
    return {"rule": rule, "train": train or [f"{word} {count}" for word in words], **keys}


SOUND = {
    "stay": kind("replace", allow=["STAY"]),
    "forward": kind(forbid=["BACK"]),
    "quiet": kind(forbid=["RING", "KNOCK"], penalty=-60),
    "ring": kind("replace", allow=["RING", "KNOCK"], resolved_by={"bell": 1}),
}
# By what the line says: the kinds with the mistake, and how grave it is.
PLANTED = {
    "penalty = 50 pays for disobeying; write penalty = -50": (
        {"paid-to-disobey": kind(forbid=["KNOCK", "BACK"], penalty=50)},
        check.ERROR,
    ),
    "credit = 5 is never paid": ({"no-event": kind(forbid=["WALK"], credit=5)}, check.ERROR),
    "no event fulfils it": (
        {"only-broken": kind(forbid=["STAY"], resolved_by={"bell": -1})},
        check.ERROR,
    ),
    "it forbids the same macros, so neither can be used instead": (
        {
            "twin": kind(forbid=["WALK", "BACK"], twin="other"),
            "other": kind("replace", forbid=["WALK", "BACK"]),
        },
        check.ERROR,
    ),
    "'look busy please' and 'please, look busy now' are nearly the same": (
        {
            "busy": kind("replace", allow=["WALK"], train=["look busy please", "b", "c"]),
            "busier": kind(
                "replace", allow=["WALK", "BACK"], train=["d", "e", "please, look busy now"]
            ),
        },
        check.ERROR,
    ),
    "both ask for the same; merge": (
        {
            "one-way": kind("replace", forbid=["BACK", "STAY"]),
            "same-way": kind("replace", forbid=["BACK", "STAY"]),
        },
        check.WARNING,
    ),
    "together they leave left nothing to do": (
        {
            "no-noise": kind(forbid=["RING", "KNOCK", "STAY", "FLY"], penalty=-300),
            "no-work": kind("add", forbid=["WALK", "BACK", "DIG", "FLY"], penalty=-300),
        },
        check.WARNING,
    ),
    "given_if = 'it-rains' held at no tick": (
        {"in-the-rain": kind("replace", allow=["BACK"], given_if="it-rains")},
        check.ERROR,
    ),
    "no allowed macro is available in": (
        {"dig": kind("replace", allow=["DIG"])},
        check.ERROR,
    ),
    "nothing that it forbids was available": (
        {"dont-fly": kind(forbid=["FLY"])},
        check.WARNING,
    ),
    "even when enforced; allow the macros that lead there": (
        {"finish": kind(forbid=["DIG"], resolved_by={"solved": 1}, penalty=-300)},
        check.ERROR,
    ),
    "KNOCK does the work of RING in one tick": (
        {"no-ringing": kind(forbid=["RING"])},
        check.WARNING,
    ),
    "random episodes the best two that disobeyed earned": (
        {"no-digging": kind(forbid=["DIG"], penalty=-10)},
        check.WARNING,
    ),
    "only 1 training phrase; write at least 3": (
        {"terse": kind("replace", allow=["WALK", "RING"], train=["hup"])},
        check.WARNING,
    ),
}


@pytest.fixture(scope="module")
def found():
    """All mistakes in one file: one program plays them all."""
    kinds = dict(SOUND)
    for planted, _ in PLANTED.values():
        kinds |= planted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "REGISTERED", {})
        api.register("yard", yard.Yard)
        file = InstructionFile.parse({"world": "yard", "kinds": kinds}, "planted.toml")
        return check.check("yard", file=file, episodes=24)


@pytest.mark.parametrize("says", PLANTED)
def test_a_planted_mistake_is_found(found, says):
    planted, level = PLANTED[says]
    lines = [one for one in found.findings if says in str(one)]
    assert lines, [str(one) for one in found.findings]
    assert {name for one in lines for name in one.kind.split(" and ")} == set(planted) or (
        len(lines) == 1 and lines[0].kind in planted
    )
    assert all(one.level == level and one.change for one in lines)


def test_sound_kinds_have_no_finding(found):
    named = {name for one in found.findings for name in one.kind.split(" and ")}
    assert not named & set(SOUND)
    rows = {row.kind: row for row in found.played}
    assert rows["stay"].enforced == 1.0 and rows["stay"].followed < 0.2


@pytest.mark.long
def test_a_world_in_plain_python_is_played_too(monkeypatch):
    monkeypatch.setattr(api, "REGISTERED", {})
    api.register(
        "line", python_world("line", toys.line, horizon=8, actions=toys.ACTIONS, workers=0)
    )
    kinds = {
        "stay": kind("replace", allow=["STAY"]),
        "not-right": kind(forbid=["RIGHT"]),
        "not-left": kind(forbid=["LEFT"], penalty=50),
        "rooted": kind("replace", forbid=["RIGHT", "LEFT"]),
    }
    file = InstructionFile.parse({"world": "line", "kinds": kinds}, "planted.toml")
    found = check.check("line", file=file)
    assert [one.kind for one in found.errors] == ["not-left"]
    rows = {row.kind: row for row in found.played}
    assert all(row.given for row in rows.values())
    assert rows["stay"].enforced == 1.0 and rows["stay"].followed < 0.2


WORLDS = [pytest.param(w, marks=[pytest.mark.long] * (w != "box_pushing")) for w in api.BUILT_IN]


@pytest.mark.parametrize("world", WORLDS)
def test_our_own_files_have_no_mistake(world):
    found = check.check(world, episodes=12)
    assert [str(one) for one in found.findings] == []
    assert all(row.given and row.enforced > 0.8 for row in found.played)


def test_a_world_of_the_package_is_not_checked_at_every_training(monkeypatch):
    monkeypatch.setattr(check, "check", lambda *args, **more: pytest.fail("checked"))
    assert check.before_training("box_pushing", {}).findings == ()


def test_a_short_check_is_made_once_for_options_of_any_type(mistaken, monkeypatch):
    made = []
    nothing = check.Checked(played=(), findings=())
    monkeypatch.setattr(check, "check", lambda *_, options, **more: made.append(options) or nothing)
    for options in ({"places": [1, 2]}, {"places": [1, 2]}, {"places": [1, 3]}):
        check.before_training("yard", options)
    assert made == [{"places": [1, 2]}, {"places": [1, 3]}]


def test_episodes_whose_simulator_failed_do_not_count():
    make = python_world("line", toys.crashing, horizon=6, actions=toys.ACTIONS, workers=0)
    file = {
        "world": "line",
        "kinds": {"stay": {"rule": "replace", "allow": ["STAY"], "train": ["s"]}},
    }
    env = make(how="raise", chance=0.5)
    rules = rules_of(env, InstructionFile.parse(file, "line.toml"))
    found = trial.play_kinds(env, rules, gamma=0.9, episodes=8, key=jax.random.key(0))
    assert np.isfinite(found.paid).all()
    whole = found.paid[1] != 0
    assert 0 < whole.sum() < whole.size
    assert not found.decisions[1][~whole].any() and not found.obeyed[1][~whole].any()


TOML = """
world = "yard"
[kinds.finish]
rule = "add"
forbid = ["DIG"]
penalty = 50
train = ["finish"]
"""


@pytest.fixture
def mistaken(tmp_path, monkeypatch):
    """The yard with a file that has an error and a warning."""
    (tmp_path / "yard.toml").write_text(TOML)
    monkeypatch.setattr(api, "REGISTERED", {})
    api.register("yard", yard.Yard, instructions=tmp_path / "yard.toml")
    return tmp_path


def test_an_error_stops_the_training_and_the_command_says_every_line(mistaken, capsys):
    with pytest.raises(ValueError, match="penalty = 50 pays for disobeying"):
        session.train("yard", seeds=1, episodes=64)
    with pytest.raises(SystemExit):
        cli.main(["check", "yard", "--episodes", "16"])
    said = " ".join(capsys.readouterr().out.split())
    assert "error finish: penalty = 50 pays for disobeying; write penalty = -50" in said
    assert "warning finish: only 1 training phrase" in said
