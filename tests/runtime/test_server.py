"""A team behind HTTP and WebSocket. These tests need the extra `web`, and no JAX."""

from __future__ import annotations

import asyncio
import importlib
import json
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from mavic.runtime import log as logs
from mavic.runtime import sockets
from mavic.runtime.client import Client, ServerError
from mavic.runtime.team import Cancel, EventError, Start

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
websockets = pytest.importorskip("websockets")

ROOT = Path(__file__).parents[2]
TEAM = Path(__file__).parent / "data" / "overcooked"
CODE = "import sys; sys.modules['jax'] = None; from mavic.runtime.__main__ import main; main()"
SEES = [0.0] * 63


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server in a process where JAX cannot be imported: its address, token and log."""
    log = tmp_path_factory.mktemp("serve") / "robots.jsonl"
    command = [sys.executable, "-c", CODE, str(TEAM), "--port", "0"]
    process = subprocess.Popen(
        [*command, "--log", str(log)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    words = process.stdout.readline().split()
    yield words[words.index("listens:") + 1], words[words.index("token") + 1], log
    process.terminate()
    process.wait()
    process.stdout.close()


@pytest.fixture
def client(server):
    url, token, _ = server
    made = Client(url, token)
    made.begin()
    for agent in ("cook_0", "cook_1"):
        if made.state()["agents"][agent] == "cancelling":
            made.ended(agent)
        made.commands(agent)
    return made


def test_the_events_of_a_team_over_http(client, server):
    (start,) = client.observed("cook_0", SEES)
    assert isinstance(start, Start) and start.agent == "cook_0"
    assert client.state()["agents"] == {"cook_0": "running", "cook_1": "idle"}
    answer = client.say(kind="stay", seconds=60)
    assert answer.commands == (Cancel("cook_0"),) and answer.kind == "stay"
    assert client.state()["instructions"] == ["stay"]
    (again,) = client.ended("cook_0", SEES, number=start.number)
    assert again.macro == "STAY"
    (other,) = client.failed("cook_0", "stuck", SEES)
    assert other.macro != "STAY"  # what failed is not offered again at once
    assert client.say("don't use the left cutting board").kind == "avoid-left-board"
    events = [line["event"] for line in logs.read(server[2])]
    assert events[0] == "open" and events.count("say") >= 2


def test_each_robot_takes_its_own_commands(client):
    (start,) = client.observed("cook_1", SEES)
    assert client.commands("cook_1") == (start,) and client.commands("cook_1") == ()
    taken: list = []
    waiting = threading.Thread(target=lambda: taken.extend(client.commands("cook_1", wait=5)))
    waiting.start()
    client.say(kind="stay")
    waiting.join()
    assert taken == [Cancel("cook_1")]


def test_commands_arrive_on_the_websocket(client, server):
    url, token, _ = server

    async def listen() -> list[dict]:
        headers = {"Authorization": f"Bearer {token}"}
        address = url.replace("http", "ws") + "commands"
        async with websockets.connect(address, additional_headers=headers) as line:
            await asyncio.to_thread(client.observed, "cook_0", SEES)
            await asyncio.to_thread(client.say, kind="stay")
            return [json.loads(await asyncio.wait_for(line.recv(), 5)) for _ in range(2)]

    first, second = asyncio.run(listen())
    assert (first["do"], second["do"]) == ("start", "cancel")
    assert first["macro"] and first["number"] and second["agent"] == "cook_0"


@pytest.mark.parametrize(
    "ask, said",
    [
        (lambda one: one.observed("cook_9", SEES), "agent 'cook_9' is unknown"),
        (lambda one: one.observed("cook_0", [0.0]), "observation has shape (1,)"),
        (lambda one: one.observed("cook_0", [float("inf")] * 63), "not finite"),
        (lambda one: one.ended("cook_0"), "runs nothing"),
        (lambda one: one.say(kind="sing"), "kind 'sing' is unknown"),
        (lambda one: one.say("x" * 500), "at most 400 characters"),
        (lambda one: one.say("an unknown sentence"), "without its reader"),
        (lambda one: one.commands("nobody"), "agent 'nobody' is unknown"),
        (lambda one: one.say(kind="stay", seconds=-1), "greater than 0"),
        (
            lambda one: one.say(kind="stay", seconds=float("inf")),
            "less than or equal to 1000000000",
        ),
        (lambda one: one.say("stay \ud800"), "text: Input should be a valid string"),
        (lambda one: one.say(kind="stay", to="cook_0"), "to must be a list of agents"),
        (lambda one: one.say(kind=object()), "cannot be sent as JSON"),
        (lambda one: one.observed("cook_0", "north"), "observation must be numbers"),
        (lambda one: one.observed("cook_0", [SEES]), "observation must be numbers"),
        (lambda one: one.observed("cook_0", SEES, [[True]], 3), "holds: it must map predicates"),
        (lambda one: one.observed("cook_0", SEES, None, ["LEFT"]), "holds: it must map predicates"),
    ],
)
def test_a_wrong_event_is_one_clear_line_and_the_server_goes_on(client, ask, said):
    with pytest.raises(EventError) as error:
        ask(client)
    assert said in str(error.value) and "\n" not in str(error.value)
    assert len(client.observed("cook_1", SEES)) == 1


def test_without_the_token_nothing_is_answered(server):
    url, _, _ = server
    with pytest.raises(ServerError, match="give the token"):
        Client(url, "wrong").state()

    async def listen() -> None:
        async with websockets.connect(url.replace("http", "ws") + "commands"):
            pass

    with pytest.raises(websockets.exceptions.InvalidStatus):
        asyncio.run(listen())


@pytest.mark.parametrize("path, body", [
    ("say", b'{"kind": "stay", "seconds": Infinity}'),
    ("say", b'{"text": "\\ud800"}'),
    ("say", b'{"\\ud800": NaN}'),
    ("say", b"[" * 100_000),
    ("agents/cook_0/observed", b'{"observation": [[0.0]]}'),
    ("agents/cook_0/observed", b'{"observation": [0.0], "holds": ["LEFT"]}'),
])  # fmt: skip
def test_a_message_of_the_wrong_shape_is_the_senders_error(server, path, body):
    url, token, _ = server
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(urllib.request.Request(url + path, body, headers), timeout=10)
    with error.value:
        assert error.value.code in (400, 422) and json.loads(error.value.read())["detail"]


def test_the_client_needs_the_standard_library_alone_and_an_address():
    code = "import sys; sys.modules |= dict.fromkeys(['numpy', 'onnxruntime']); import mavic.runtime.client"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    with pytest.raises(
        ValueError, match=r"url '127\.0\.0\.1:8643' is no address; it begins with http"
    ):
        Client("127.0.0.1:8643", "t")


def test_without_the_web_packages_the_command_says_what_to_install():
    code = CODE.replace("['jax']", "['fastapi']")
    ran = subprocess.run(
        [sys.executable, "-c", code, str(TEAM)], cwd=ROOT, capture_output=True, text=True
    )
    assert ran.returncode == 1 and "pip install" in ran.stderr and ran.stderr.count("\n") == 1
    assert "fastapi is missing" in ran.stderr and "fastapi uvicorn websockets" in ran.stderr


def test_a_server_that_is_down_is_one_line():
    with pytest.raises(ServerError, match="the server cannot be reached"):
        Client("http://127.0.0.1:9", "t").state()


def test_the_schema_describes_every_message(server):
    url, _, _ = server
    with urllib.request.urlopen(url + "openapi.json", timeout=10) as reply:
        schema = json.loads(reply.read())
    assert {
        "/state", "/say", "/begin", "/commands/{agent}", "/agents/{agent}/observed",
        "/agents/{agent}/ended", "/agents/{agent}/failed",
    } <= set(schema["paths"])  # fmt: skip
    assert {"Say", "Observed", "Ended", "Failed", "Order", "Said"} <= set(
        schema["components"]["schemas"]
    )


def test_predicates_travel_with_the_observation(tmp_path):
    """A team with kinds by predicate behind the server: what the robot reports, and a wrong report."""
    command = [sys.executable, "-c", CODE, str(TEAM.with_name("rescue")), "--port", "0", "--shield"]
    log = tmp_path / "log.jsonl"
    with subprocess.Popen(
        [*command, "--log", str(log)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        words = process.stdout.readline().split()
        client = Client(words[words.index("listens:") + 1], words[words.index("token") + 1])
        assert client.state()["predicates"] == ["outwards", "to-the-hall", "to-the-charger"]
        client.say(kind="left-is-one-way")
        seen, offered = [0.0] * client.state()["observation"], [True, True, *[False] * 6]
        macros = set()
        for number in range(12):
            event = client.ended if number else client.observed
            (start,) = event("robot_0", seen, offered, {"outwards": ["LEFT"]})
            macros.add(start.macro)
        with pytest.raises(EventError, match="holds: predicate 'inwards' is unknown"):
            client.observed("robot_0", seen, offered, {"inwards": ["LEFT"]})
        process.terminate()
    assert macros == {"WAIT"}
    assert [line["holds"] for line in logs.read(log) if line["event"] == "observed"] == [
        {"outwards": ["LEFT"]}
    ] * 12


def test_a_request_that_does_not_arrive_is_not_waited_for():
    """Without a first byte, within headers or body, after an answered request, or with a body before a WebSocket."""
    uvicorn = importlib.import_module("uvicorn")

    async def answer(scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    begins = b"GET / HTTP/1.1\r\nHost: here\r\n"
    body, upgrade = b"Content-Length: 9\r\n", b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
    sent = (b"", begins, begins + body + b"\r\n12", begins + b"\r\n" + begins)
    sent += (
        begins + body + upgrade + b"\r\n",
        begins + b"x" * 9000 + b": x\r\n" + upgrade + b"\r\n",
    )
    config = uvicorn.Config(
        answer, http=sockets.http_protocol(0.1), lifespan="off", log_level="error"
    )
    with sockets.open_socket("127.0.0.1", 0) as listener:
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        lines = [socket.create_connection(listener.getsockname(), timeout=20) for _ in sent]
        for line, text in zip(lines, sent, strict=True):
            line.sendall(text)
        for line in lines:
            while line.recv(1000):  # an answer may come first; then the end
                pass
            line.close()
        server.should_exit = True
        thread.join(20)
