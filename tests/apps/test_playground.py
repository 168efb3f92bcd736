"""The playground without a browser: the catalog of teams, sessions, and a server that survives any message."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import http.client
import json
import shutil
import threading
import time
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from teams import untrained
from test_story import IDLE, TOLD
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from mavic.apps import replay
from mavic.apps.playground import catalog as catalogs
from mavic.apps.playground import export, limits, messages, orders, server
from mavic.apps.playground.answers import Understood
from mavic.apps.playground.catalog import open_catalog
from mavic.apps.playground.limits import LONGEST_RECORDING, RequestError
from mavic.apps.playground.messages import GUEST
from mavic.apps.playground.session import open_session
from mavic.apps.playground.workers import Workers
from mavic.envs import api
from mavic.language.conversation import hearing
from mavic.language.conversation.decision import Asked
from mavic.language.reader import read as reader
from mavic.runtime import sockets
from mavic.teams.facts import PolicyError
from mavic.teams.stage import StageError

ROOT = Path(__file__).parents[2]
ENDINGS = ("json", "safetensors")
EVIL = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """The shipped Box Pushing teams, and untrained ones elsewhere."""
    made = tmp_path_factory.mktemp("teams")
    shutil.copytree(ROOT / "policies" / "box_pushing", made / "box_pushing")
    untrained(made, "overcooked")
    untrained(made, "warehouse")
    return made


@pytest.fixture(scope="module")
def catalog(folder):
    return open_catalog(folder)


# The catalog


def test_the_shipped_teams_are_found():
    catalog = open_catalog()
    assert list(catalog.teams["box_pushing"])[:2] == ["mavic", "naive"]


def test_a_team_that_collapses_under_a_kind_says_so(tmp_path):
    collapsed = {"avoid-small-box-0": 0.12, "dont-push": 0.0}
    path = untrained(tmp_path, "box_pushing", collapsed=collapsed)
    said = open_catalog(tmp_path).about("box_pushing", path.stem)
    assert said.endswith(
        "It gives up its job when it is told: Keep away from the left small box; Do not push anything."
    )


def test_teams_of_different_settings_say_so():
    shipped = open_catalog()
    assert shipped.apart("overcooked", ["mavic"]) == ""
    assert shipped.apart("overcooked", ["mavic-paper", "naive-paper"]) == ""
    apart = shipped.apart("overcooked", ["mavic", "naive-paper"])
    assert "different settings" in apart
    done = dataclasses.replace(TOLD, name="other")
    assert export.Episode("stay", [IDLE, done], apart).caption.endswith(f"finishes. {apart}")
    assert export.Episode("stay", [IDLE, IDLE], apart).caption.endswith("do alike here.")


def test_a_wheel_carries_every_shipped_team():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert build["targets"]["wheel"]["force-include"] == {"policies": "mavic/policies"}
    for world in api.BUILT_IN:
        found = {path.name for path in (ROOT / "policies" / world).iterdir()}
        assert {f"{name}.{end}" for name in ("mavic", "naive") for end in ENDINGS} <= found
        # each has both files, and pages have plain words for it
        assert found == {f"{Path(one).stem}.{end}" for one in found for end in ENDINGS}
        assert {Path(one).stem for one in found} <= set(catalogs.WORDS)


def test_own_teams_come_before_the_shipped_ones(folder):
    own = folder / "box_pushing" / "naive"
    catalog = open_catalog(folder, own, folder / "box_pushing" / "mavic.json")
    assert next(iter(catalog.teams)) == "box_pushing"
    assert list(catalog.teams["box_pushing"]) == ["naive", "mavic"]
    twice = open_catalog(folder, own, own.with_suffix(".safetensors"))
    assert list(twice.teams["box_pushing"]) == ["naive", "naive (2)", "mavic"]


@pytest.mark.parametrize(
    "policy, against, message",
    [
        ("box_pushing/nobody", None, "no such file"),
        (None, "box_pushing/naive", "needs --policy"),
        ("box_pushing/naive", "overcooked/mavic", "need one world"),
    ],
)
def test_a_policy_that_cannot_play_is_refused(folder, policy, against, message):
    with pytest.raises((RequestError, PolicyError), match=message):
        open_catalog(folder, policy and folder / policy, against and folder / against)


def test_an_empty_folder_is_explained(tmp_path):
    with pytest.raises(RequestError, match="mavic train"):
        open_catalog(tmp_path)


def test_a_broken_description_is_refused(tmp_path):
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(PolicyError, match="not a policy's description"):
        open_catalog(tmp_path, tmp_path / "bad")


# A session


def frame_of(message: messages.Frames, side: int = 0) -> dict:
    return message.frames[side]


def say(session, words, agents=None, hold=None):
    return session.say(hearing.hear(session.stage.lexicon, words), agents, hold)


def tell(session, line, agents=None, hold=None):
    """Carry out a typed line, as a page's message does."""
    heard = session.hear(line, agents, hold)
    assert heard.clear
    return session.obey(heard)


def answer(session, line):
    """What a page is told about a line that is not carried out."""
    return Understood.of(session.hear(line), [])


def asked(session) -> str | None:
    """The kind that holds in the next frame."""
    active = frame_of(session.tick())["instruction"]
    return active and active["kind"]


@pytest.mark.long
def test_two_teams_meet_the_same_random_numbers_and_instructions(catalog):
    session = open_session(catalog, "box_pushing", ["mavic", "mavic"], 5, None)
    say(session, "go to the small boxes", None, 3)
    for _ in range(8):
        one, two = session.tick().frames
        assert one == two
    assert [recording.name for recording in session.recordings()] == [
        "with the correction",
        "with the correction (again)",
    ]


@pytest.mark.long
def test_two_clauses_hold_together_until_something_else_is_said(catalog):
    session = open_session(catalog, "box_pushing", ["mavic"], 1, None)
    line = session.hear("don't push, and stay where you are", None, 5)
    message = Understood.of(line, [])
    assert (message.kind, message.also, message.unsure) == ("dont-push", "stay", False)
    assert session.obey(line) == []
    message = session.tick()
    frame = frame_of(message)
    assert (frame["instruction"]["kind"], frame["also"]["kind"]) == ("dont-push", "stay")
    assert (frame["instruction"]["number"], frame["also"]["number"]) == (1, 2)
    assert message.totals[0].given == 2
    with pytest.raises(StageError, match="two instructions hold already"):
        session.say(hearing.hear(session.stage.lexicon, "dont-push"), None, None, True)
    tell(session, "go to the small boxes")
    frame = frame_of(session.tick())
    assert frame["instruction"]["kind"] == "go-small-boxes" and "also" not in frame
    assert len(frame["verdicts"]) == 2


def held(session) -> list[str]:
    """The kinds that hold in the next frame, in the order of the chips."""
    message = session.tick()
    frame = frame_of(message)
    kinds = {one["kind"] for one in (frame["instruction"], frame.get("also")) if one}
    assert kinds == {chip.kind for chip in message.holding}
    return [chip.kind for chip in message.holding]


def test_instructions_add_up_and_each_can_be_ended(catalog):
    session = open_session(catalog, "box_pushing", ["mavic", "naive"], 1, None)
    tell(session, "keep away from the left small box")
    tell(session, "and don't push either")
    assert held(session) == ["avoid-small-box-0", "dont-push"]
    told = answer(session, "also don't go to the right small box")
    assert told.question.startswith("Two instructions can hold at once")
    assert [[one.kind for one in offer.all] for offer in told.offers] == [
        ["dont-push", "avoid-small-box-1"],
        ["avoid-small-box-0", "avoid-small-box-1"],
        ["avoid-small-box-0", "dont-push"],
    ]
    line = session.choose(1)
    assert [one.kind for one in line.settled.replaced] == ["dont-push"]
    assert held(session) == ["avoid-small-box-0", "avoid-small-box-1"]
    with pytest.raises(RequestError, match="no longer open"):
        session.choose(1)
    tell(session, "you may go to the left small box again")  # that one and no other
    assert held(session) == ["avoid-small-box-1"]
    session.end(["avoid-small-box-1"])
    assert held(session) == [] and not session.orders.holding
    tell(session, "keep away from the left small box")
    tell(session, "push")
    assert held(session) == ["push"]  # a command replaces what held


def test_what_was_added_holds_in_the_next_episode_and_in_a_shared_address(catalog):
    session = open_session(catalog, "box_pushing", ["mavic"], 1, None)
    tell(session, "keep away from the left small box")
    tell(session, "not the right one either")
    session.reset(2)
    assert held(session) == ["avoid-small-box-0", "avoid-small-box-1"]
    session.end(["avoid-small-box-0"])
    again = open_session(catalog, "box_pushing", ["mavic"], 2, None)
    again.orders.cues = list(session.orders.log)
    assert held(again) == ["avoid-small-box-0", "avoid-small-box-1"]
    assert held(again) == held(session) == ["avoid-small-box-1"]


def test_a_correction_replaces_what_was_said_last_and_a_later_one_waits(catalog):
    session = open_session(catalog, "box_pushing", ["mavic"], 1, None)
    tell(session, "go to the left small box")
    tell(session, "no wait, the right one")
    assert held(session) == ["go-small-box-1"]
    tell(session, "after that, push it")
    assert held(session) == ["go-small-box-1"] and session.orders.queue
    session.end()
    assert held(session) == ["push"]
    tell(session, "then stay")
    session.unqueue(0)
    with pytest.raises(RequestError, match="does not wait"):
        session.unqueue(0)
    tell(session, "don't you dare stop")  # is no "stay" and ends no "push"
    assert held(session) == ["push"]


def test_an_instruction_is_obeyed_in_the_next_frame(catalog):
    session = open_session(catalog, "box_pushing", ["mavic"], 1, None)
    session.tick()
    assert say(session, "go to the small boxes") == []
    frame = frame_of(session.tick())
    assert frame["instruction"]["kind"] == "go-small-boxes"
    assert [a["macro"] for a in frame["agents"]] == ["GO_SMALL_BOX_0", "GO_SMALL_BOX_1"]
    assert all(a["decided"] and a["complies"] for a in frame["agents"])
    session.end()
    frame = frame_of(session.tick())
    assert frame["instruction"] is None
    assert frame["verdicts"] == [{"number": 1, "kind": "go-small-boxes", "followed": True}]


def test_an_instruction_to_one_agent_reaches_only_that_agent(catalog):
    session = open_session(catalog, "box_pushing", ["mavic"], 1, None)
    say(session, "stay", [1], 4)
    frame = frame_of(session.tick())
    assert frame["instruction"]["agents"] == [1] and frame["instruction"]["left"] == 4
    assert [a["complies"] is None for a in frame["agents"]] == [True, False]


def test_an_agent_that_the_kind_does_not_address_cannot_be_instructed(catalog):
    session = open_session(catalog, "warehouse", ["mavic"], 1, None)
    with pytest.raises(RequestError, match=r"only for fetch"):
        say(session, "fetch-tool-0-first", [0])


def test_until_i_end_it_means_that(catalog):
    """An instruction without a time holds in the next episode too, until the person ends it."""
    session = open_session(catalog, "box_pushing", ["mavic", "naive"], 1, None)
    tell(session, "stay")
    assert asked(session) == "stay" and session.orders.standing
    session.reset(2)
    message = session.tick()
    assert [frame["instruction"]["kind"] for frame in message.frames] == ["stay", "stay"]
    assert message.standing and message.log[0]["text"] == "stay"
    session.end()
    assert asked(session) is None
    session.reset(3)
    assert asked(session) is None
    tell(session, "stay", hold=3)
    session.reset(4)
    assert asked(session) is None


@pytest.mark.parametrize(
    "world",
    [
        "box_pushing",
        *(pytest.param(w, marks=pytest.mark.long) for w in ("warehouse", "overcooked")),
    ],
)
@pytest.mark.parametrize(
    "line", ["never mind", "carry on", "Back to work!", "ok, forget it please"]
)
def test_words_end_what_holds_in_all_worlds(catalog, world, line):
    session = open_session(catalog, world, ["mavic"], 1, None)
    kind = session.stage.lexicon.names[1]
    tell(session, kind)
    assert asked(session) == kind
    tell(session, line)
    assert asked(session) is None


def test_a_permission_ends_a_prohibition_and_a_remark_changes_nothing(catalog):
    session = open_session(catalog, "box_pushing", ["mavic"], 1, None)
    tell(session, "dont-push")
    told = answer(session, "thanks for pushing")
    assert told.nothing and told.unsure and not told.ends and asked(session) == "dont-push"
    assert told.offers  # the nearest things that can be done
    told = answer(session, "robot 0, you can push again")
    assert told.ended == ["dont-push"] and told.agents == [0] and not told.left
    tell(session, "robot 0, you can push again")  # robot 1 may not
    assert frame_of(session.tick())["instruction"]["agents"] == [1]
    tell(session, "robot 1, never mind")
    assert asked(session) is None
    told = answer(session, "you may push again")
    assert told.ends and not told.ended


def test_one_instruction_follows_another(catalog):
    session = open_session(catalog, "box_pushing", ["mavic"], 1, None)
    tell(session, "stay and then don't push", hold=2)
    assert asked(session) == "stay" and session.tick().queued == ["don't push"]
    assert asked(session) == "dont-push"
    tell(session, "stay and then don't push")
    frame = frame_of(session.tick())
    assert frame["instruction"]["left"] == orders.QUEUED_HOLD  # so that the second has its turn
    session.end()
    assert asked(session) == "dont-push"
    tell(session, "stay and then don't push")
    tell(session, "never mind")
    assert asked(session) is None and asked(session) is None


def test_a_name_in_the_sentence_addresses(catalog):
    session = open_session(catalog, "box_pushing", ["mavic"], 1, None)
    tell(session, "robot 1, stay", agents=[0])
    frame = frame_of(session.tick())
    assert frame["instruction"]["agents"] == [1] and frame["instruction"]["text"] == "robot 1, stay"
    tell(session, "both of you wait for 3 ticks")
    assert frame_of(session.tick())["instruction"]["left"] == 3
    with pytest.raises(RequestError, match="no agent is called 'robot 7'"):
        tell(session, "robot 7, stay")


def test_two_agents_get_an_instruction_each(catalog):
    session = open_session(catalog, "box_pushing", ["mavic"], 1, None)
    tell(session, "robot 0 stay, robot 1 push")
    frame = frame_of(session.tick())
    held = [frame["instruction"], frame["also"]]
    assert [(one["kind"], one["agents"]) for one in held] == [("stay", [0]), ("push", [1])]
    told = answer(session, "robot 0 push, robot 1 stay")
    assert (told.kind, told.agents, told.also, told.also_agents) == ("push", [0], "stay", [1])
    tell(session, "never mind")
    frame = frame_of(session.tick())
    assert frame["instruction"] is None and "also" not in frame


def test_more_than_two_at_once_are_asked_back(catalog):
    session = open_session(catalog, "box_pushing", ["mavic"], 1, None)
    message = answer(session, "robot 0 stay, robot 1 push, robot 0 don't push")
    assert message.unsure and "Two instructions" in message.question
    assert [offer.all[0].agents for offer in message.offers] == [[0], [1], [0]]


def test_nothing_is_obeyed_below_eight_tenths(catalog, monkeypatch):
    session = open_session(catalog, "box_pushing", ["mavic"], 1, None)
    read = hearing.hear(session.stage.lexicon, "please do not push anything at all")
    assert not read.unsure and read.probability >= reader.ACTS_FROM == 0.8
    monkeypatch.setattr(reader, "ACTS_FROM", read.probability + 1e-6)
    told = answer(session, "please do not push anything at all")
    assert told.unsure and told.offers[0].all[0].kind == "dont-push"


def test_a_shared_address_says_the_same_at_the_same_tick(catalog):
    first = open_session(catalog, "box_pushing", ["mavic"], 7, None)
    first.tick()
    tell(first, "stay", [1], 2)
    frames = [frame_of(first.tick()) for _ in range(4)]
    log = first.tick().log
    assert log == [{"time": 1, "text": "stay", "agents": (1,), "hold": 2}]
    again = open_session(catalog, "box_pushing", ["mavic"], 7, None)
    again.orders.cues = [orders.Said(**log[0])]
    again.tick()
    assert [frame_of(again.tick()) for _ in range(4)] == frames


@pytest.mark.long
def test_an_order_that_cannot_be_given_in_its_turn_is_dropped_and_said(catalog):
    session = open_session(catalog, "warehouse", ["mavic"], 1, None)
    lexicon = session.stage.lexicon
    session.orders.queue = [(orders.order_of(lexicon, Asked("fetch-tool-0-first", (0,)), 3),)]
    frame = frame_of(session.tick())
    assert frame["refused"] == ["fetch tool 0 first"] and frame["instruction"] is None
    assert not session.orders.queue and not session.orders.log
    assert not frame_of(session.tick())["refused"]


@pytest.mark.long
def test_what_an_instruction_is_about_is_named(catalog):
    """The names are those of things in the scene, so that a page can mark them."""
    for world, kind, forbids, wants in [
        ("overcooked", "avoid-left-board", ["left board"], []),
        ("box_pushing", "go-small-boxes", [], ["left small box", "right small box"]),
        ("warehouse", "fetch-tool-2-first", ["tool 0", "tool 1"], ["tool 2"]),
    ]:
        session = open_session(catalog, world, ["mavic"], 1, None)
        tell(session, kind)
        frame = frame_of(session.tick())
        active = frame["instruction"]
        assert (active["forbids"], active["wants"]) == (forbids, wants)
        assert {*forbids, *wants} <= {sprite["name"] for sprite in frame["scene"]["sprites"]}
        assert frame["scene"]["steps"] and all(agent["doing"] for agent in frame["agents"])


def test_things_and_kinds_are_called_what_the_picture_calls_them(catalog):
    for world in catalog.teams:
        opened = open_session(catalog, world, ["mavic"], 1, None).opened()
        named = {word for ask in opened.asks for thing in ask.things for word in thing.split()}
        for ask in opened.asks:
            assert {word for word in ask.phrase.split() if word.isdigit()} <= named
        (team,) = opened.recordings
        meanings = {ask.kind: ask.meaning for ask in opened.asks}
        assert [meanings.get(kind, "none") for kind in team.kinds] == team.kind_words
    kitchen = open_session(catalog, "overcooked", ["mavic"], 1, None)
    offered = {ask.kind: ask.phrase for ask in kitchen.opened().asks}
    assert "left board" in offered["avoid-left-board"]
    read = {kitchen.hear(example).decision.now[0].kind for example in kitchen.opened().examples}
    assert read <= {*kitchen.learnt}  # no example asks for what teams do not learn by default


@pytest.mark.parametrize("shield", [True, False])
def test_a_static_build_has_the_shield_of_its_catalog(folder, tmp_path, monkeypatch, shield):
    seen = []

    def of_episode(stage, *_):
        seen.append(bool(stage.instructed_env.schedule.shield))
        return IDLE

    monkeypatch.setattr(export.Recording, "of_episode", of_episode)
    export.export(open_catalog(folder, shield=shield), tmp_path, lambda _: None)
    assert set(seen) == {shield}


def test_a_team_that_cannot_be_compiled_does_not_stop_the_others(caplog):
    def warm(world, name):
        if name == "bad":
            raise ValueError("damaged")
        warmed.append((name, dict(notes)))

    warmed, notes = [], {"words": ""}
    catalog = SimpleNamespace(
        teams={"yard": ["bad", "good"]},
        is_warm=lambda world, name: False,
        warm=warm,
        load_encoder=lambda world: "no encoder",
    )
    asyncio.run(server._warm(catalog, Workers(), notes))
    assert [name for name, _ in warmed] == ["good"] and notes["words"] == "no encoder"
    assert "yard/bad cannot be compiled" in caplog.text and "damaged" in caplog.text


@pytest.mark.long
def test_recorded_episodes_become_a_static_site(folder, tmp_path):
    only = open_catalog(folder)
    only.teams = {"box_pushing": only.teams["box_pushing"]}
    said: list[str] = []
    first = export.export(only, tmp_path / "site", said.append)
    written = first.read_text()
    pages = [path for path in first.parent.iterdir() if path != first]
    assert len(pages) == len(said) >= 3 and "Two robots push the big box" in written
    assert "mavic play" in written
    for page in pages:
        assert f'href="{page.name}"' in written
        text = page.read_text()
        assert '"number":1' in text and "http://" not in text.replace("http://www.w3.org", "")


def test_the_end_of_an_episode_is_shown_and_another_begins(catalog):
    session = open_session(catalog, "box_pushing", ["mavic", "naive"], 1, None)
    say(session, "stay", None, 2)
    ticks = 0
    while not session.closed:
        message = session.tick()
        ticks += 1
        assert ticks < 120
    assert message.over and all(frame["over"] for frame in message.frames)
    session.reset(session.seed + 1)
    say(session, "stay", None, 1)
    again = session.tick()
    assert (again.seed, again.frames[0]["time"]) == (2, 0)
    assert again.totals[0].given == 2
    assert again.frames[0]["instruction"]["number"] == 2  # numbered through the whole session
    recordings = session.recordings()
    assert len(recordings[0].frames) == len(recordings[1].frames) == ticks + 1


def test_the_recording_of_a_session_is_bounded(catalog):
    session = open_session(catalog, "box_pushing", ["mavic"], 1, None)
    side = session.sides[0]
    for _ in range(LONGEST_RECORDING + 20):
        side.frames.append(b"")
    assert len(side.frames) == LONGEST_RECORDING


def test_a_session_becomes_a_page(catalog):
    session = open_session(catalog, "box_pushing", ["mavic", "naive"], 3, None)
    say(session, "Please don't push any of the boxes!", None, 3)
    for _ in range(6):
        session.tick()
    page = replay.page(session.recordings(), "what was played")
    assert "Please don't push any of the boxes!" in page
    values = session.recordings()[0].frames[0]["values"]
    assert tuple(values) == session.stage.kinds


def test_a_person_drives_an_agent(catalog):
    session = open_session(catalog, "box_pushing", ["mavic"], 1, 0)
    macros = []
    for wish in (None, "GO_SMALL_BOX_0", None, "TURN_LEFT", None):
        if wish:
            session.drive(wish)
        macros.append(frame_of(session.tick())["agents"][0]["macro"])
    # rests, goes, goes on though nothing more is asked, breaks it off for another, rests
    assert macros == ["STAY", "GO_SMALL_BOX_0", "GO_SMALL_BOX_0", "TURN_LEFT", "STAY"]


def test_a_person_is_not_addressed_with_the_team(catalog):
    session = open_session(catalog, "box_pushing", ["mavic"], 1, 0)
    say(session, "stay")
    assert frame_of(session.tick())["instruction"]["agents"] == [1]


def robots(frame: dict) -> list[tuple[float, float]]:
    return [(s["x"], s["y"]) for s in frame["scene"]["sprites"] if s["shape"] == "robot"]


@pytest.mark.long
def test_a_third_cook_joins_and_walks(catalog):
    session = open_session(catalog, "overcooked", ["mavic"], 1, GUEST)
    assert session.seat == 2
    x, y = robots(frame_of(session.look()))[2]
    places = []
    for move in ("UP", "RIGHT", "RIGHT", None, "DOWN", None):
        if move:
            session.drive(move)
        places.append(robots(frame_of(session.tick()))[2])
    # each frame shows where the move before it led; with nothing asked one stands
    assert places == [
        (x, y),
        (x, y - 1),
        (x + 1, y - 1),
        (x + 2, y - 1),
        (x + 2, y - 1),
        (x + 2, y),
    ]
    frame = frame_of(session.tick())
    assert [a["name"] for a in frame["agents"]] == ["cook_0", "cook_1", "cook_2"]
    say(session, "stay")
    assert frame_of(session.tick())["instruction"]["agents"] == [0, 1]


@pytest.mark.long
def test_a_third_cooks_macro_carries_something(catalog):
    session = open_session(catalog, "overcooked", ["mavic"], 1, GUEST)
    session.drive("GET_PLATE_2")
    held = [frame_of(session.tick())["agents"][2] for _ in range(12)]
    assert held[0]["macro"] == "GET_PLATE_2" and held[0]["decided"] and not held[1]["decided"]
    assert "plate 2" in [doing["holds"] for doing in held]


def test_wrong_seats_and_macros_are_refused(catalog):
    with pytest.raises(StageError, match="a person cannot join"):
        open_session(catalog, "box_pushing", ["mavic"], 1, GUEST)
    with pytest.raises(RequestError, match="choose a seat"):
        open_session(catalog, "box_pushing", ["mavic"], 1, None).drive("STAY")
    with pytest.raises(RequestError, match="none of this agent's macros"):
        open_session(catalog, "box_pushing", ["mavic"], 1, 0).drive("FLY")
    with pytest.raises(StageError, match="seat 7"):
        open_session(catalog, "box_pushing", ["mavic"], 1, 7)
    with pytest.raises(RequestError, match="one team plays, or two"):
        open_session(catalog, "box_pushing", ["mavic"] * 3, 1, None)


# The server


class Server:
    """A server in a thread, as `mavic play` runs it."""

    def __init__(self, catalog, token="", loopback=True, port=0):
        import uvicorn

        self.app = server._make_app(catalog, token=token, loopback=loopback)
        config = uvicorn.Config(
            self.app,
            host="127.0.0.1",
            port=port,
            log_level="warning",
            ws_max_size=limits.LONGEST_MESSAGE,
            timeout_graceful_shutdown=1,
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self.thread.start()
        while not self.server.started:
            time.sleep(0.02)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]

    async def _serve(self):
        self.loop = asyncio.get_running_loop()
        await self.server.serve()

    def hang_up(self):
        """Close every page's line from this side."""
        for page in list(self.app.state.connections.values()):
            asyncio.run_coroutine_threadsafe(page.socket.close(1012), self.loop).result(10)

    def close(self):
        self.server.should_exit = True
        self.thread.join(20)

    def get(self, path, **headers):
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(line):
            line.request("GET", path, headers=headers)
            answer = line.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()

    def page(self, **options):
        return Client(f"ws://127.0.0.1:{self.port}/live", **options)


class Client:
    """A page's side of the line."""

    def __init__(self, address, **options):
        self.stack = contextlib.ExitStack()
        line = connect(address, open_timeout=30, max_size=None, **options)
        self.line = self.stack.enter_context(line)
        self.hello = self.read("hello")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def send(self, **message):
        self.line.send(json.dumps(message))

    def read(self, kind, seconds=60):
        """The next message of that type."""
        until = time.monotonic() + seconds
        while True:
            message = json.loads(self.line.recv(timeout=until - time.monotonic()))
            if message["type"] == kind:
                return message

    def open(self, world="box_pushing", teams=("mavic",), seed=1, seat=None):
        self.send(do="open", world=world, teams=list(teams), seed=seed, seat=seat)
        facts = self.read("opened")
        self.read("clock", 120)
        return facts


@pytest.fixture(scope="module")
def running(catalog):
    made = Server(catalog)
    yield made
    made.close()


def test_the_page_is_served_with_a_strict_policy(running):
    status, headers, body = running.get("/")
    assert status == 200 and b"mavic playground" in body
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert b"<script>" not in body and b"<style>" not in body and b"onclick" not in body
    for name in server.STATIC:
        status, headers, _ = running.get(f"/{name}")
        assert status == 200 and "content-security-policy" in headers


@pytest.mark.parametrize(
    "path",
    [
        *("/play.html", "/replay.html", "/../pyproject.toml", "/..%2f..%2fpyproject.toml"),
        *(
            "/%2e%2e/%2e%2e/etc/passwd",
            "/recording/x.html",
            "/recording/../server.py",
            "/docs",
            "/openapi.json",
        ),
    ],
)
def test_no_path_reaches_a_file(running, path):
    assert running.get(path)[0] == 404


def test_pages_of_other_sites_are_refused(running):
    for host in ("evil.example", "[", "[::1", "]"):
        assert running.get("/", Host=host)[0] == 403
    assert running.get("/", Origin="http://[")[0] == 403
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}):
        with pytest.raises(InvalidStatus):
            running.page(additional_headers=headers)
    with running.page(origin=f"http://127.0.0.1:{running.port}") as page:
        assert page.hello["listing"]


def test_a_page_learns_what_it_needs_and_gets_frames(running):
    with running.page() as page:
        assert [entry["world"] for entry in page.hello["listing"]] == [
            "box_pushing",
            "warehouse",
            "overcooked",
        ]
        assert page.hello["opens"] == "overcooked"
        facts = page.open()
        assert facts["job"] and facts["examples"] and facts["recordings"][0]["about"]
        assert facts["recordings"][0]["kinds"][0] == "none" and len(facts["asks"]) == 11
        numbers = [page.read("frame")["number"] for _ in range(3)]
        assert numbers == list(range(numbers[0], numbers[0] + 3))
        page.send(do="say", text="please do not push anything at all", agents=None, hold=5)
        heard = page.read("understood")
        assert (heard["kind"], heard["unsure"], heard["refused"]) == ("dont-push", False, [])
        assert heard["nearest"] and 0.5 < heard["probability"] <= 1
        frame = page.read("frame")["frames"][0]
        assert frame["instruction"]["kind"] == "dont-push"
        page.send(do="end")
        while page.read("frame")["frames"][0]["instruction"]:
            pass
        page.send(do="say", text="make me a coffee", agents=None, hold=None)
        heard = page.read("understood")
        assert heard["unsure"] and len(heard["offers"]) >= 3
        page.send(do="say", text="stay")
        page.read("understood")
        page.send(do="say", text="never mind")
        assert page.read("understood")["ends"]
        page.send(do="say", text="robot 1, stay")
        assert page.read("understood")["agents"] == [1]
        page.send(do="say", text="robot 9, stay")
        assert "no agent is called" in page.read("error")["text"]


def test_a_page_is_informed_while_programs_compile(running, monkeypatch):
    monkeypatch.setattr(catalogs.Catalog, "is_warm", lambda *_: False)
    with running.page() as page:
        page.send(do="open", world="box_pushing", teams=["mavic"], seed=1, seat=None)
        assert page.read("status")["text"] == "compiling…"
        assert page.read("frame")["still"]  # there is a picture before anything can move
        assert page.read("status")["text"] == ""
        assert not page.read("frame")["still"]


BAD = [
    ("not json", "must be JSON"),
    ("[1, 2]", "JSON object"),
    ("[" * 50_000, "must be JSON"),
    ('{"do": "fly"}', "no such message: 'fly'; allowed: open, say, choose, end, play"),
    ('{"do": ["say"]}', "no such message"),
    ('{"say": 1}', "no such message"),
    ('{"do": "say", "text": 5}', "must be a text"),
    ('{"do": "say", "text": "stay", "agents": [9]}', "agents must be"),
    ('{"do": "say", "text": "stay", "agents": "all"}', "agents must be"),
    ('{"do": "say", "text": "stay", "agents": []}', "agents must be"),
    ('{"do": "say", "text": "stay", "hold": 0}', "hold must be"),
    ('{"do": "say", "text": "stay", "hold": 1e9}', "hold must be"),
    ('{"do": "speed", "value": NaN}', "must be a number"),
    ('{"do": "speed", "value": "fast"}', "must be a number"),
    (f'{{"do": "speed", "value": {"9" * 400}}}', "must be a number"),
    (b'{"do": "play"}', "must be text, not bytes"),
    (b"\xff\x00", "must be text, not bytes"),
    ('{"do": "reset", "seed": -1}', "seed must be"),
    ('{"do": "reset", "seed": 1e99}', "seed must be"),
    ('{"do": "reset", "seed": true}', "seed must be"),
    ('{"do": "drive", "macro": "STAY"}', "choose a seat"),
    ('{"do": "open", "world": "../..", "teams": ["mavic"]}', "no team for a world"),
    ('{"do": "open", "world": "box_pushing", "teams": ["../../etc/passwd"]}', "no team is called"),
    ('{"do": "open", "world": "box_pushing", "teams": "mavic"}', "teams must be"),
    ('{"do": "open", "world": "box_pushing", "teams": []}', "one team plays"),
    ('{"do": "open", "world": "box_pushing", "teams": ["mavic"], "seat": "x"}', "seat must be"),
    ('{"do": "open", "world": "box_pushing", "teams": ["mavic"], "seat": -1}', "seat -1"),
    ('{"do": "open", "world": "box_pushing", "teams": ["mavic"], "script": 5}', "script must be"),
    (
        '{"do": "open", "world": "box_pushing", "teams": ["mavic"], "script": [{"time": -1, "text": ""}]}',
        "script must be",
    ),
]


def test_a_wrong_message_is_answered_and_the_page_goes_on(running):
    with running.page() as page:
        page.send(do="end")
        assert "open a world first" in page.read("error")["text"]
        page.open()
        for text, message in BAD:
            page.line.send(text)
            assert message in page.read("error")["text"], text
            time.sleep(0.03)
        page.open()
        assert page.read("frame")["frames"][0]["agents"]


def test_a_fault_of_the_server_does_not_end_the_page(running, monkeypatch, caplog):
    def fails(lexicon, words):
        raise KeyError("broken")

    with running.page() as page:
        page.open()
        with monkeypatch.context() as patch:
            patch.setattr(hearing, "known", fails)
            page.send(do="say", text="stay")
            assert "went wrong here (KeyError)" in page.read("error")["text"]
        assert "a page's message failed" in caplog.text
        page.send(do="say", text="stay")
        assert page.read("understood")["kind"] == "stay"


@pytest.mark.parametrize(
    "text", ["", "   ", "\x00\x07", "🤖🤖", "?!", "ü" * 300, EVIL, "push " * 79]
)
def test_any_typed_text_is_answered(running, text):
    with running.page() as page:
        page.open()
        page.send(do="say", text=text)
        assert page.read("understood")["text"] == text
        page.read("frame")


def test_a_long_text_is_answered_and_a_huge_message_ends_the_connection(running):
    with running.page() as page:
        page.open()
        page.send(do="say", text="push " * 20_000)
        assert "too long for an instruction" in page.read("error")["text"]
        with pytest.raises(ConnectionClosed) as closed:
            page.send(do="say", text="x" * (limits.LONGEST_MESSAGE + 1))
            page.read("understood")
        assert closed.value.rcvd.code == 1009
    assert running.get("/")[0] == 200


def test_a_flood_of_messages_is_limited_and_the_page_is_informed(running):
    with running.page() as page:
        page.open()
        for _ in range(3000):
            page.line.send('{"do": "speed", "value": 3}')
        assert "ignored" in page.read("error")["text"]
        time.sleep(2.2)
        page.send(do="say", text="stay")
        assert page.read("understood")["kind"] == "stay"


def test_each_page_has_its_own_session(running):
    with running.page() as one, running.page() as two:
        one.open(seed=1)
        two.open(seed=1)
        one.send(do="say", text="stay", agents=None, hold=None)
        one.read("understood")
        assert one.read("frame")["frames"][0]["instruction"]["kind"] == "stay"
        assert two.read("frame")["frames"][0]["instruction"] is None
        two.send(do="reset", seed=9)
        seeds = {one.read("frame")["seed"] for _ in range(2)}
        assert seeds == {1}


def test_the_clock_can_be_paused_stepped_and_sped_up(running):
    with running.page() as page:
        page.open()
        page.send(do="pause")
        assert page.read("clock")["playing"] is False
        with pytest.raises(TimeoutError):
            page.read("frame", 1.0)
        page.send(do="step")
        first = page.read("frame")["number"]
        page.send(do="step")
        assert page.read("frame")["number"] == first + 1
        page.send(do="speed", value=1000)
        assert page.read("clock")["speed"] == limits.FASTEST
        page.send(do="say", text="stay")
        page.read("understood")
        page.send(do="play")
        numbers, began = [], time.monotonic()
        while time.monotonic() - began < 2:
            numbers.append(page.read("frame")["number"])
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert 14 <= len(numbers) <= 24  # ten a second, on a busy machine


def test_the_end_of_an_episode_waits_when_asked_to(running):
    with running.page() as page:
        page.open()
        page.send(do="again", value=False)
        page.send(do="speed", value=10)
        while not (message := page.read("frame"))["over"]:
            pass
        while (clock := page.read("clock"))["playing"]:
            pass
        assert clock["again"] is False and message["seed"] == 1
        page.send(do="step")
        assert page.read("frame")["seed"] == 2


def test_a_driven_agent_runs_the_macro_that_was_asked_for(running):
    with running.page() as page:
        page.open(seat=1)
        page.send(do="drive", macro="TURN_RIGHT")
        for _ in range(4):
            if page.read("frame")["frames"][0]["agents"][1]["macro"] == "TURN_RIGHT":
                break
        else:
            pytest.fail("nobody turned")


def test_a_film_can_be_fetched_while_the_page_is_open(running):
    with running.page() as page:
        ticket = page.hello["ticket"]
        assert running.get(f"/recording/{ticket}.html")[0] == 404
        page.open(teams=("mavic", "naive"))
        page.send(do="say", text="don't push", hold=4)
        for _ in range(5):
            page.read("frame")
        status, headers, body = running.get(f"/recording/{ticket}.html")
        assert status == 200 and headers["content-disposition"].startswith("attachment")
        assert b"don't push" in body and b"{{" not in body
        status, headers, body = running.get(f"/recording/{ticket}.gif")
        assert status == 200 and body[:6] == b"GIF89a"
        assert running.get(f"/recording/{ticket}.exe")[0] == 404
    until = time.monotonic() + 10
    while running.app.state.connections and time.monotonic() < until:
        time.sleep(0.05)
    assert running.get(f"/recording/{ticket}.html")[0] == 404


def test_a_second_click_waits_for_the_recording_of_the_first(running, monkeypatch):
    made = []

    def slowly(session, ending):
        made.append(ending)
        time.sleep(0.5)
        return b"GIF89a"

    monkeypatch.setattr(server, "_saved", slowly)
    with running.page() as page:
        page.open()
        ticket = page.hello["ticket"]
        answers = []

        def click():
            answers.append(running.get(f"/recording/{ticket}.gif"))

        clicks = [threading.Thread(target=click) for _ in range(3)]
        for one in clicks:
            one.start()
        for one in clicks:
            one.join()
    assert [(status, body) for status, _, body in answers] == [(200, b"GIF89a")] * 3
    assert made == ["gif"]


def test_what_is_open_goes_on_when_nothing_else_can_be_opened(running):
    with running.page() as page:
        page.open(seed=5)
        page.send(do="open", world="box_pushing", teams=["mavic"], seed=1, seat=7)
        assert "seat 7" in page.read("error")["text"]
        assert page.read("frame")["seed"] == 5
        page.send(do="say", text="stay")
        assert page.read("understood")["kind"] == "stay"


def test_the_largest_seed_is_played_as_asked(running):
    with running.page() as page:
        page.open()
        page.send(do="pause")
        page.send(do="reset", seed=limits.LARGEST_SEED)
        while (frame := page.read("frame"))["seed"] == 1:
            pass
        assert frame["seed"] == limits.LARGEST_SEED


def test_a_dropped_connection_leaves_nothing_behind(running):
    pages = [running.page() for _ in range(5)]
    for page in pages:
        page.send(do="open", world="box_pushing", teams=["mavic"], seed=1, seat=None)
    for page in pages:
        page.line.socket.close()
    until = time.monotonic() + 20
    while running.app.state.connections and time.monotonic() < until:
        time.sleep(0.05)
    assert running.app.state.connections == {}
    with running.page() as page:
        page.open()
        page.read("frame")


def test_too_many_pages_are_refused(running, monkeypatch):
    until = time.monotonic() + 30
    while running.app.state.connections and time.monotonic() < until:
        time.sleep(0.02)  # pages of earlier tests are still closing
    monkeypatch.setattr(limits, "CONNECTIONS", 1)
    with running.page(), connect(f"ws://127.0.0.1:{running.port}/live") as second:
        assert "more do not fit" in json.loads(second.recv(timeout=10))["text"]
        with pytest.raises(ConnectionClosed) as closed:
            second.recv(timeout=10)
        assert closed.value.rcvd.code == 1013


def test_other_machines_need_a_token(catalog):
    running = Server(catalog, token="s3cret", loopback=False)
    try:
        status, _, body = running.get("/")
        assert status == 401 and b"token" in body and b"play.js" not in body
        assert running.get("/?token=wrong")[0] == 401
        with pytest.raises(InvalidStatus):
            running.page()
        status, headers, _ = running.get("/?token=s3cret")
        assert status == 303 and headers["location"] == "/"
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie
        pass_ = cookie.split(";")[0]
        assert running.get("/", Cookie=pass_)[0] == 200
        with running.page(additional_headers={"Cookie": pass_}) as page:
            assert running.get(f"/recording/{page.hello['ticket']}.html")[0] == 404
            page.open()
            page.read("frame")
    finally:
        running.close()


@pytest.mark.parametrize(
    "host, alone",
    [
        *(("127.0.0.1", True), ("localhost", True), ("::1", True)),
        *(("0.0.0.0", False), ("10.0.0.5", False), ("x.example", False), ("", False)),
    ],
)
def test_loopback_addresses_are_recognised(host, alone):
    assert sockets.is_loopback(host) is alone


@pytest.mark.parametrize("host, alone", [("127.0.0.1", True), ("0.0.0.0", False)])
def test_only_loopback_goes_without_a_token(host, alone, catalog, monkeypatch):
    import uvicorn

    made, said = {}, []

    class Deaf:
        def __init__(self, config):
            made["config"] = config

        async def serve(self, sockets):
            made["port"] = sockets[0].getsockname()[1]

    monkeypatch.setattr(server, "_make_app", lambda catalog, **rest: made.update(rest))
    monkeypatch.setattr(uvicorn, "Server", Deaf)
    server.play(catalog, host, 0, said.append)
    assert bool(made["token"]) is not alone and made["loopback"] is alone
    assert len(made["token"]) in (0, 22)
    assert f":{made['port']}/" in said[0] and (f"?token={made['token']}" in said[0]) is not alone


def test_a_port_that_is_taken_is_explained():
    with (
        sockets.open_socket("127.0.0.1", 0) as one,
        pytest.raises(ValueError, match="--port 0"),
    ):
        sockets.open_socket("127.0.0.1", one.getsockname()[1])


def test_the_printed_address_can_be_typed():
    assert sockets.address_of("127.0.0.1", 8642) == "http://127.0.0.1:8642/"
    assert sockets.address_of("::1", 80) == "http://[::1]:80/"
    assert "0.0.0.0" not in sockets.address_of("0.0.0.0", 80)
