"""The playground without a browser: who plays, what a visit does, and a door that stays shut to nonsense."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import shutil
import threading
import time
import tomllib
from pathlib import Path

import jax
import numpy as np
import pytest
from teams import untrained
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from mavic.apps import replay, stage
from mavic.apps.playground import catalog as houses
from mavic.apps.playground import server
from mavic.apps.playground.catalog import HouseError, open_catalog
from mavic.apps.playground.session import GUEST, LONGEST_FILM, VisitError, open_visit
from mavic.apps.stage import WatchError
from mavic.experiments import policy_file as policies

ROOT = Path(__file__).parents[2]
EVIL = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """The shipped Box Pushing teams, and untrained ones elsewhere."""
    made = tmp_path_factory.mktemp("teams")
    shutil.copytree(
        ROOT / "results" / "box_pushing",
        made / "box_pushing",
        ignore=lambda _, names: [n for n in names if n.split(".")[0] not in ("mavic", "naive")],
    )
    untrained(made, "overcooked")
    untrained(made, "warehouse")
    return made


@pytest.fixture(scope="module")
def catalog(folder):
    return open_catalog(folder)


# Who plays


def test_the_shipped_teams_are_found():
    catalog = open_catalog()
    assert list(catalog.teams["box_pushing"])[:2] == ["mavic", "naive"]


def test_a_wheel_carries_every_shipped_team():
    """An installed package has no results folder: pyproject.toml must name the files one by one."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    carried = build["targets"]["wheel"]["force-include"]
    shipped = {
        str(path.relative_to(ROOT)): f"mavic/policies/{path.parent.name}/{path.name}"
        for name in houses.ORDER
        for path in ROOT.glob(f"results/*/{name}.*")
        if path.suffix in (".json", ".safetensors")
    }
    assert carried == shipped


def test_teams_inside_the_package_come_first(monkeypatch, tmp_path):
    monkeypatch.setattr(houses.resources, "files", lambda name: tmp_path / "mavic")
    assert houses.shipped() == tmp_path / "results"
    (tmp_path / "mavic" / "policies").mkdir(parents=True)
    assert houses.shipped() == tmp_path / "mavic" / "policies"


def test_ones_own_teams_come_before_the_shipped(folder):
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
def test_what_cannot_play_is_refused(folder, policy, against, message):
    with pytest.raises(HouseError, match=message):
        open_catalog(folder, policy and folder / policy, against and folder / against)


def test_an_empty_folder_is_explained(tmp_path):
    with pytest.raises(HouseError, match="mavic train"):
        open_catalog(tmp_path)


def test_a_broken_description_is_refused(tmp_path):
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(HouseError, match="not a policy's description"):
        open_catalog(tmp_path, tmp_path / "bad")


# A fast team is the same team


def test_a_crew_decides_and_expects_as_its_policy_does(folder):
    policy = policies.load(folder / "box_pushing" / "mavic")
    crew = stage.Crew(policy.weights, policy.facts)
    mine, its = crew.start(), policy.start()
    random = np.random.default_rng(3)
    shape = policy.shape
    texts = ["don't push", None, "go to the small boxes", "stay where you are"]
    for step in range(8):
        key = jax.random.key(step)
        seen = random.normal(size=(shape.agents, shape.observation)).astype(np.float32)
        idle = random.random(shape.agents) < 0.7
        available = np.ones((shape.agents, shape.macros), bool)
        said = [texts[step % 4], texts[(step // 2) % 4]]
        for kind, value in policy.values(its, seen).items():
            np.testing.assert_allclose(crew.values(mine, seen)[kind], value, rtol=1e-4, atol=1e-3)
        first, mine = crew.act(key, mine, seen, said, idle, available=available)
        second, its = policy.act(key, its, seen, said, idle, available=available)
        assert first.tolist() == second.tolist()
        np.testing.assert_allclose(mine.critic, its.critic, atol=1e-5)


# A visit


def frame_of(message: str, lane: int = 0) -> dict:
    return json.loads(message)["frames"][lane]


def say(visit, words, agents=None, hold=None):
    return visit.say(stage.hear(visit.show.lexicon, words), agents, hold)


def test_two_teams_meet_the_same_luck_and_the_same_words(catalog):
    visit = open_visit(catalog, "box_pushing", ["mavic", "mavic"], 5, None)
    say(visit, "go to the small boxes", None, 3)
    for _ in range(8):
        one, two = json.loads(visit.tick())["frames"]
        assert one == two
    assert [film.name for film in visit.films()] == ["mavic", "mavic (again)"]


def test_words_are_obeyed_in_the_very_next_frame(catalog):
    visit = open_visit(catalog, "box_pushing", ["mavic"], 1, None)
    visit.tick()
    assert say(visit, "go to the small boxes") == []
    frame = frame_of(visit.tick())
    assert frame["instruction"]["kind"] == "go-small-boxes"
    assert [a["macro"] for a in frame["agents"]] == ["GO_SMALL_BOX_0", "GO_SMALL_BOX_1"]
    assert all(a["decided"] and a["complies"] for a in frame["agents"])
    visit.end()
    frame = frame_of(visit.tick())
    assert frame["instruction"] is None
    assert frame["verdicts"] == [{"number": 1, "kind": "go-small-boxes", "followed": True}]


def test_words_to_one_agent_reach_it_alone(catalog):
    visit = open_visit(catalog, "box_pushing", ["mavic"], 1, None)
    say(visit, "stay", [1], 4)
    frame = frame_of(visit.tick())
    assert frame["instruction"]["agents"] == [1] and frame["instruction"]["left"] == 4
    assert [a["complies"] is None for a in frame["agents"]] == [True, False]


def test_who_is_not_meant_is_not_told(catalog):
    visit = open_visit(catalog, "warehouse", ["mavic"], 1, None)
    with pytest.raises(VisitError, match=r"only for fetch"):
        say(visit, "fetch-tool-0-first", [0])


def test_an_episode_ends_is_shown_and_another_begins(catalog):
    visit = open_visit(catalog, "box_pushing", ["mavic", "naive"], 1, None)
    say(visit, "stay", None, 2)
    ticks = 0
    while not visit.closed:
        message = json.loads(visit.tick())
        ticks += 1
        assert ticks < 120
    assert message["over"] and all(frame["over"] for frame in message["frames"])
    visit.reset(visit.seed + 1)
    say(visit, "stay", None, 1)
    again = json.loads(visit.tick())
    assert (again["seed"], again["frames"][0]["time"]) == (2, 0)
    assert again["totals"][0]["given"] == 2
    assert again["frames"][0]["instruction"]["number"] == 2  # numbered through the whole film
    films = visit.films()
    assert len(films[0].frames) == len(films[1].frames) == ticks + 1


def test_what_is_kept_is_bounded(catalog):
    visit = open_visit(catalog, "box_pushing", ["mavic"], 1, None)
    lane = visit.lanes[0]
    for _ in range(LONGEST_FILM + 20):
        lane.frames.append(b"")
    assert len(lane.frames) == LONGEST_FILM


def test_what_was_played_becomes_a_page(catalog):
    visit = open_visit(catalog, "box_pushing", ["mavic", "naive"], 3, None)
    say(visit, "Please don't push any of the boxes!", None, 3)
    for _ in range(6):
        visit.tick()
    page = replay.page(visit.films(), "what was played")
    assert "Please don't push any of the boxes!" in page
    values = visit.films()[0].frames[0]["values"]
    assert tuple(values) == visit.show.setting.rules.names


def test_a_person_replaces_a_learner(catalog):
    visit = open_visit(catalog, "box_pushing", ["mavic"], 1, 0)
    macros = []
    for wish in (None, "GO_SMALL_BOX_0", None, "TURN_LEFT", None):
        if wish:
            visit.drive(wish)
        macros.append(frame_of(visit.tick())["agents"][0]["macro"])
    # rests, goes, goes on though nothing more is asked, breaks it off for another, rests
    assert macros == ["STAY", "GO_SMALL_BOX_0", "GO_SMALL_BOX_0", "TURN_LEFT", "STAY"]


def test_a_person_is_not_told_what_the_team_is(catalog):
    visit = open_visit(catalog, "box_pushing", ["mavic"], 1, 0)
    say(visit, "stay")
    assert frame_of(visit.tick())["instruction"]["agents"] == [1]


def robots(frame: dict) -> list[tuple[float, float]]:
    return [(s["x"], s["y"]) for s in frame["scene"]["sprites"] if s["shape"] == "robot"]


def test_a_third_cook_joins_and_walks(catalog):
    visit = open_visit(catalog, "overcooked", ["mavic"], 1, GUEST)
    assert visit.seat == 2
    x, y = robots(frame_of(visit.look()))[2]
    places = []
    for move in ("UP", "RIGHT", "RIGHT", None, "DOWN", None):
        if move:
            visit.drive(move)
        places.append(robots(frame_of(visit.tick()))[2])
    # each frame shows where the move before it led; with nothing asked one stands
    assert places == [
        (x, y),
        (x, y - 1),
        (x + 1, y - 1),
        (x + 2, y - 1),
        (x + 2, y - 1),
        (x + 2, y),
    ]
    frame = frame_of(visit.tick())
    assert [a["name"] for a in frame["agents"]] == ["cook_0", "cook_1", "cook_2"]
    say(visit, "stay")
    assert frame_of(visit.tick())["instruction"]["agents"] == [0, 1]


def test_a_third_cooks_macro_carries_something(catalog):
    visit = open_visit(catalog, "overcooked", ["mavic"], 1, GUEST)
    visit.drive("GET_PLATE_2")
    held = [frame_of(visit.tick())["agents"][2] for _ in range(12)]
    assert held[0]["macro"] == "GET_PLATE_2" and held[0]["decided"] and not held[1]["decided"]
    assert "pl2" in [doing["holds"] for doing in held]


def test_no_guest_where_there_is_no_room(catalog):
    with pytest.raises(WatchError, match="nobody can join"):
        open_visit(catalog, "box_pushing", ["mavic"], 1, GUEST)
    with pytest.raises(VisitError, match="choose a seat"):
        open_visit(catalog, "box_pushing", ["mavic"], 1, None).drive("STAY")
    with pytest.raises(VisitError, match="none of this agent's macros"):
        open_visit(catalog, "box_pushing", ["mavic"], 1, 0).drive("FLY")
    with pytest.raises(WatchError, match="seat 7"):
        open_visit(catalog, "box_pushing", ["mavic"], 1, 7)
    with pytest.raises(VisitError, match="one team plays, or two"):
        open_visit(catalog, "box_pushing", ["mavic"] * 3, 1, None)


# The door


class Door:
    """A server in a thread, as `mavic play` runs it."""

    def __init__(self, catalog, token="", loopback=True):
        import uvicorn

        self.app = server.make_app(catalog, token=token, loopback=loopback)
        settings = uvicorn.Config(
            self.app,
            host="127.0.0.1",
            port=0,
            log_level="warning",
            ws_max_size=server.LONGEST_MESSAGE,
            timeout_graceful_shutdown=1,
        )
        self.server = uvicorn.Server(settings)
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
        for page in list(self.app.state.pages.values()):
            asyncio.run_coroutine_threadsafe(page.line.close(1012), self.loop).result(10)

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
def door(catalog):
    made = Door(catalog)
    yield made
    made.close()


def test_the_page_is_served_with_a_strict_policy(door):
    status, headers, body = door.get("/")
    assert status == 200 and b"mavic playground" in body
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert b"<script>" not in body and b"<style>" not in body and b"onclick" not in body
    for name in server.STATIC:
        status, headers, _ = door.get(f"/{name}")
        assert status == 200 and "content-security-policy" in headers


@pytest.mark.parametrize(
    "path",
    [
        *("/play.html", "/replay.html", "/../pyproject.toml", "/..%2f..%2fpyproject.toml"),
        *(
            "/%2e%2e/%2e%2e/etc/passwd",
            "/film/x.html",
            "/film/../server.py",
            "/docs",
            "/openapi.json",
        ),
    ],
)
def test_no_path_reaches_a_file(door, path):
    assert door.get(path)[0] == 404


def test_strangers_pages_are_kept_out(door):
    assert door.get("/", Host="evil.example")[0] == 403
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}):
        with pytest.raises(InvalidStatus):
            door.page(additional_headers=headers)
    with door.page(origin=f"http://127.0.0.1:{door.port}") as page:
        assert page.hello["bill"]


def test_a_page_is_told_what_it_needs_and_sees_the_world_move(door):
    with door.page() as page:
        assert [entry["world"] for entry in page.hello["bill"]] == [
            "box_pushing",
            "warehouse",
            "overcooked",
        ]
        facts = page.open()
        assert facts["films"][0]["kinds"][0] == "none" and len(facts["asks"]) == 11
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
        assert heard["unsure"] and len(heard["closest"]) == 3


def test_a_page_is_told_while_it_has_to_wait(door, monkeypatch):
    monkeypatch.setattr(houses.Catalog, "is_warm", lambda *_: False)
    with door.page() as page:
        page.send(do="open", world="box_pushing", teams=["mavic"], seed=1, seat=None)
        assert page.read("status")["text"] == "compiling…"
        assert page.read("frame")["still"]  # there is a picture before anything can move
        assert page.read("status")["text"] == ""
        assert not page.read("frame")["still"]


BAD = [
    ("not json", "must be JSON"),
    ("[1, 2]", "JSON object"),
    ("[" * 50_000, "must be JSON"),
    ('{"do": "fly"}', "no such message"),
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
]


def test_nonsense_is_answered_and_the_page_goes_on(door):
    with door.page() as page:
        page.send(do="end")
        assert "open a world first" in page.read("error")["text"]
        page.open()
        for text, message in BAD:
            page.line.send(text)
            assert message in page.read("error")["text"], text
            time.sleep(0.03)
        page.open()
        assert page.read("frame")["frames"][0]["agents"]


def test_a_fault_of_ours_does_not_cost_the_page(door, monkeypatch, caplog):
    def fails(lexicon, words):
        raise KeyError("broken")

    with door.page() as page:
        page.open()
        with monkeypatch.context() as patch:
            patch.setattr(stage, "hear", fails)
            page.send(do="say", text="stay")
            assert "went wrong here (KeyError)" in page.read("error")["text"]
        assert "a page's message failed" in caplog.text
        page.send(do="say", text="stay")
        assert page.read("understood")["kind"] == "stay"


@pytest.mark.parametrize(
    "text", ["", "   ", "\x00\x07", "🤖🤖", "?!", "ü" * 300, EVIL, "push " * 79]
)
def test_whatever_is_typed_is_answered(door, text):
    with door.page() as page:
        page.open()
        page.send(do="say", text=text)
        assert page.read("understood")["text"] == text
        page.read("frame")


def test_a_huge_text_is_answered_and_a_monstrous_one_ends_the_line(door):
    with door.page() as page:
        page.open()
        page.send(do="say", text="push " * 20_000)
        assert "too long for an instruction" in page.read("error")["text"]
        with pytest.raises(ConnectionClosed) as closed:
            page.send(do="say", text="x" * (server.LONGEST_MESSAGE + 1))
            page.read("understood")
        assert closed.value.rcvd.code == 1009
    assert door.get("/")[0] == 200


def test_a_flood_is_slowed_down_and_told_so(door):
    with door.page() as page:
        page.open()
        for _ in range(3000):
            page.line.send('{"do": "speed", "value": 3}')
        assert "ignored" in page.read("error")["text"]
        time.sleep(2.2)
        page.send(do="say", text="stay")
        assert page.read("understood")["kind"] == "stay"


def test_each_page_has_its_own_world(door):
    with door.page() as one, door.page() as two:
        one.open(seed=1)
        two.open(seed=1)
        one.send(do="say", text="stay", agents=None, hold=None)
        one.read("understood")
        assert one.read("frame")["frames"][0]["instruction"]["kind"] == "stay"
        assert two.read("frame")["frames"][0]["instruction"] is None
        two.send(do="reset", seed=9)
        seeds = {one.read("frame")["seed"] for _ in range(2)}
        assert seeds == {1}


def test_the_clock_obeys(door):
    with door.page() as page:
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
        assert page.read("clock")["speed"] == server.FASTEST
        page.send(do="say", text="stay")
        page.read("understood")
        page.send(do="play")
        numbers, began = [], time.monotonic()
        while time.monotonic() - began < 2:
            numbers.append(page.read("frame")["number"])
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert 14 <= len(numbers) <= 24  # ten a second, on a busy machine


def test_the_end_of_an_episode_waits_when_asked_to(door):
    with door.page() as page:
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


def test_a_driver_is_heard(door):
    with door.page() as page:
        page.open(seat=1)
        page.send(do="drive", macro="TURN_RIGHT")
        for _ in range(4):
            if page.read("frame")["frames"][0]["agents"][1]["macro"] == "TURN_RIGHT":
                break
        else:
            pytest.fail("nobody turned")


def test_a_film_can_be_fetched_while_the_page_is_open(door):
    with door.page() as page:
        ticket = page.hello["ticket"]
        assert door.get(f"/film/{ticket}.html")[0] == 404
        page.open(teams=("mavic", "naive"))
        page.send(do="say", text="don't push", hold=4)
        for _ in range(5):
            page.read("frame")
        status, headers, body = door.get(f"/film/{ticket}.html")
        assert status == 200 and headers["content-disposition"].startswith("attachment")
        assert b"don't push" in body and b"{{" not in body
        status, headers, body = door.get(f"/film/{ticket}.gif")
        assert status == 200 and body[:6] == b"GIF89a"
        assert door.get(f"/film/{ticket}.exe")[0] == 404
        (mine,) = [one for one in door.app.state.pages.values() if one.ticket == ticket]
        mine.filming = True
        assert door.get(f"/film/{ticket}.html")[0] == 429
    until = time.monotonic() + 10
    while door.app.state.pages and time.monotonic() < until:
        time.sleep(0.05)
    assert door.get(f"/film/{ticket}.html")[0] == 404


def test_a_dropped_line_leaves_nothing_behind(door):
    pages = [door.page() for _ in range(5)]
    for page in pages:
        page.send(do="open", world="box_pushing", teams=["mavic"], seed=1, seat=None)
    for page in pages:
        page.line.socket.close()
    until = time.monotonic() + 20
    while door.app.state.pages and time.monotonic() < until:
        time.sleep(0.05)
    assert door.app.state.pages == {}
    with door.page() as page:
        page.open()
        page.read("frame")


def test_too_many_pages_are_told_so(door, monkeypatch):
    monkeypatch.setattr(server, "PAGES", 1)
    with door.page(), connect(f"ws://127.0.0.1:{door.port}/live") as second:
        assert "more do not fit" in json.loads(second.recv(timeout=10))["text"]
        with pytest.raises(ConnectionClosed) as closed:
            second.recv(timeout=10)
        assert closed.value.rcvd.code == 1013


def test_beyond_this_machine_a_token_is_asked_for(catalog):
    door = Door(catalog, token="s3cret", loopback=False)
    try:
        status, _, body = door.get("/")
        assert status == 401 and b"token" in body and b"play.js" not in body
        assert door.get("/?token=wrong")[0] == 401
        with pytest.raises(InvalidStatus):
            door.page()
        status, headers, _ = door.get("/?token=s3cret")
        assert status == 303 and headers["location"] == "/"
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie
        pass_ = cookie.split(";")[0]
        assert door.get("/", Cookie=pass_)[0] == 200
        with door.page(additional_headers={"Cookie": pass_}) as page:
            assert door.get(f"/film/{page.hello['ticket']}.html")[0] == 404
            page.open()
            page.read("frame")
    finally:
        door.close()


@pytest.mark.parametrize(
    "host, alone",
    [
        *(("127.0.0.1", True), ("localhost", True), ("::1", True)),
        *(("0.0.0.0", False), ("10.0.0.5", False), ("x.example", False), ("", False)),
    ],
)
def test_loopback_is_known(host, alone):
    assert server.is_loopback(host) is alone


@pytest.mark.parametrize("host, alone", [("127.0.0.1", True), ("0.0.0.0", False)])
def test_only_loopback_goes_without_a_token(host, alone, monkeypatch):
    import uvicorn

    made, said = {}, []

    class Deaf:
        def __init__(self, config):
            made["config"] = config

        async def serve(self, sockets):
            made["port"] = sockets[0].getsockname()[1]

    monkeypatch.setattr(server, "make_app", lambda catalog, **rest: made.update(rest))
    monkeypatch.setattr(uvicorn, "Server", Deaf)
    server.play(None, host, 0, said.append)
    assert bool(made["token"]) is not alone and made["loopback"] is alone
    assert len(made["token"]) in (0, 22)
    assert f":{made['port']}/" in said[0] and (f"?token={made['token']}" in said[0]) is not alone


def test_a_taken_port_is_explained():
    with (
        server.listen("127.0.0.1", 0) as one,
        pytest.raises(server.PlayError, match="--port 0"),
    ):
        server.listen("127.0.0.1", one.getsockname()[1])


def test_the_address_can_be_typed():
    assert server.address_of("127.0.0.1", 8642, "") == "http://127.0.0.1:8642/"
    assert server.address_of("::1", 80, "t") == "http://[::1]:80/?token=t"
    assert "0.0.0.0" not in server.address_of("0.0.0.0", 80, "t")
