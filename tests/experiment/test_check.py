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
    # Where the last hole is dug on patrol, the episode is over, and so is the patrol. DIG would have done the same.
    "no-patrol": kind(forbid=["PATROL"], penalty=-300),
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
            "no-work": kind("add", forbid=["WALK", "BACK", "DIG", "FLY", "PATROL"], penalty=-300),
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
        {"finish": kind(forbid=["DIG", "PATROL"], resolved_by={"solved": 1}, penalty=-300)},
        check.ERROR,
    ),
    "KNOCK does the work of RING in one tick": (
        {"no-ringing": kind(forbid=["RING"])},
        check.WARNING,
    ),
    "random episodes the best two that disobeyed earned": (
        {"no-digging": kind(forbid=["DIG", "PATROL"], penalty=-10)},
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


def test_the_plans_of_a_world_judge_kinds_of_another_file_that_ask_for_the_same(
    monkeypatch, tmp_path
):
    """A plan knows the kinds of the registered file by their names. Those of another file it may not know."""
    (tmp_path / "yard.toml").write_text(
        'world = "yard"\nkinds.quiet = { rule = "add", forbid = ["RING"], train = ["hush"] }'
    )
    monkeypatch.setattr(api, "REGISTERED", {})
    plans = {None: 10.0, "quiet": 9.6}
    api.register(
        "yard",
        yard.Yard,
        instructions=tmp_path / "yard.toml",
        optimum=lambda env, gamma, kind: plans[kind],
    )
    kinds = {"hush": kind(forbid=["RING"], penalty=-9), "quiet": kind(forbid=["KNOCK"])}
    file = InstructionFile.parse({"world": "yard", "kinds": kinds}, "other.toml")
    best = check._optimum(api.world("yard"), yard.Yard(), 1.0, file)
    assert (best(None), best("hush"), best("quiet")) == (10.0, 9.6, None)


def case_of(kinds, best=None, impossible=(), **rows):
    """What the tests of a check look at, without a play: best returns by kind, and rows of the first kind's trial."""
    file = InstructionFile.parse({"world": "yard", "kinds": kinds}, "yard.toml")
    none = np.zeros((2, 2, 6))
    played = trial.Trial(*[none] * len(trial.Trial._fields))
    return check._Case(
        file=file,
        env=yard.Yard(),
        rules=rules_of(yard.Yard(), file),
        trial=played._replace(**{k: np.stack([v, v]).reshape(2, 2, 6) for k, v in rows.items()}),
        optimum=(best or {}).get,
        impossible=impossible,
    )


def costs(penalty, best, paid, broken):
    """What to change about a kind with a penalty. The first six of twelve random episodes obeyed."""
    obeyed = np.arange(12) < 6
    rows = dict(from_start=obeyed | True, obeyed=obeyed, paid=paid, broken=broken)
    case = case_of({"quiet": kind(forbid=["RING"], penalty=penalty)}, best, **rows)
    return [one.change for one in check._obeying_costs(case.file.kinds[0], case)]


@pytest.mark.parametrize("gain", [0.0031, 0.4, 1.0, 47.3, 2345.0])
def test_the_penalty_that_is_advised_makes_obeying_best(gain):
    """Also where an agent pays it late, and so discounted, and alone, so that half of it counts in the mean."""
    broken = np.where(np.arange(12) < 6, 0.0, np.linspace(0.2, 1, 12))
    task = np.where(np.arange(12) < 6, 0.0, gain)
    for best in ({None: gain, "quiet": 0.0}, {}):
        (change,) = costs(-gain / 10, best, task - broken * gain / 10, broken)
        advised = float(change.split("penalty of ")[1].split()[0])
        assert -12 * gain < advised < -gain
        assert costs(advised, best, task + broken * advised, broken) == []


def test_any_two_kinds_that_may_hold_together_must_leave_a_macro():
    """Of two commands the later ends the earlier. A kind that lists what is allowed may leave the task on too."""
    kinds = {
        "only-walk": kind(allow=["WALK"], agents=["right"]),
        "still": kind("replace", forbid=["WALK", "BACK", "PATROL"]),
        "ring": kind("replace", allow=["RING"]),
        "knock": kind("replace", allow=["KNOCK"]),
    }
    (found,) = check._leave_nothing(case_of(kinds))
    assert str(found).startswith("only-walk and still: together they leave right nothing to do")
    assert [*check._leave_nothing(case_of(kinds, impossible=[{"still", "only-walk"}]))] == []


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


LONG = "finish-the-work-at-the-far-end-of-the-yard"
TOML = f"""
world = "yard"
[kinds.{LONG}]
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
    out, said = capsys.readouterr()
    assert f"│ {LONG} │" in out and "1 error in the instructions of yard" in said
    out = " ".join(out.split())
    assert f"error {LONG}: penalty = 50 pays for disobeying; write penalty = -50" in out
    assert f"warning {LONG}: only 1 training phrase" in out
