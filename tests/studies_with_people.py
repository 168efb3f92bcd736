"""A plan, a server and a person's page, for tests of studies with people."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import threading
import time
from pathlib import Path

from websockets.sync.client import connect

from mavic.apps.participants import records, server
from mavic.apps.playground import limits

PLAN = """
title = "A study"
participants = 4
teams = ["mavic", "naive"]
consent = "You may leave."
speed = 10

[[task]]
name = "push"
world = "box_pushing"
title = "Boxes"
text = "Watch."
ticks = 12
seed = 3

[[task.prompt]]
at = 2
text = "Tell them not to push."
kind = "dont-push"

[[question]]
name = "obeyed"
after = "team"
text = "It obeyed."
scale = 5
low = "no"
high = "yes"

[[question]]
name = "remarks"
text = "Anything else?"
lines = 3
optional = true
"""


def write_plan(folder: Path, *changes: tuple[str, str], text: str = PLAN) -> Path:
    """Write the plan with these texts replaced by others."""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "plan.toml"
    path.write_text(text)
    return path


class StudyServer:
    """A server in a thread, as `mavic play --study` runs it."""

    def __init__(self, plan, catalog, folder: Path):
        import uvicorn

        folder.mkdir(exist_ok=True)
        self.folder, self.said = folder, []
        self.app = server.make_app(plan, catalog, folder, self.said.append)
        self.study = self.app.state.study
        self.tokens = list(self.study.people)
        config = uvicorn.Config(
            self.app,
            host="127.0.0.1",
            port=0,
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

    def close(self):
        self.server.should_exit = True
        self.thread.join(20)

    def person(self, number: int) -> Person:
        return Person(self, self.tokens[number])

    def record(self, number: int) -> records.Record:
        return records.read_record(records.path_of(self.folder, number + 1))

    def get(self, path, **headers):
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(line):
            line.request("GET", path, headers=headers)
            answer = line.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()


class Person:
    """A person's side of the line."""

    def __init__(self, at: StudyServer, token: str):
        self.stack = contextlib.ExitStack()
        address = f"ws://127.0.0.1:{at.port}/s/{token}/live"
        self.line = self.stack.enter_context(connect(address, open_timeout=30, max_size=None))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.stack.close()

    def send(self, **message):
        self.line.send(json.dumps(message))

    def read(self, kind: str, seconds: float = 60) -> dict:
        """The next message of that type."""
        until = time.monotonic() + seconds
        while True:
            message = json.loads(self.line.recv(timeout=until - time.monotonic()))
            if message["type"] == kind:
                return message

    def screen(self, name: str) -> dict:
        """The next screen of that name."""
        while True:
            found = self.read("screen")
            if found["name"] == name:
                return found

    def begin(self, intro: dict) -> None:
        self.send(do="ready", step=intro["step"])

    def prompted(self) -> dict:
        """The next prompt that asks for something."""
        while True:
            found = self.read("prompt")
            if found["text"]:
                return found
