"""One open page: its WebSocket, its session and its clock."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import WebSocket, WebSocketDisconnect
from pydantic import BaseModel

from mavic.apps import replay
from mavic.apps.playground import messages
from mavic.apps.playground.answers import Understood
from mavic.apps.playground.catalog import Catalog
from mavic.apps.playground.limits import (
    BURST,
    FASTEST,
    MESSAGES_PER_SECOND,
    NORMAL,
    SLOWEST,
    RequestError,
)
from mavic.apps.playground.messages import GUEST, AnyRequest, Button, Notice
from mavic.apps.playground.orders import Line
from mavic.apps.playground.session import Session, open_session
from mavic.apps.playground.workers import Workers
from mavic.language.encoder import EncoderError
from mavic.teams.facts import PolicyError
from mavic.teams.stage import StageError

LOG = logging.getLogger(__name__)
DRIVING_GAP = 0.1  # seconds between two ticks that a person's keys ask for
END_SHOWN = 2.0  # seconds for which an ended episode stays on the page
SEND_TIMEOUT = 20.0  # seconds; a page that takes longer to receive a message is closed


@dataclass(kw_only=True)
class TokenBucket:
    """How many messages a page may still send. It refills with time."""

    left: float = float(BURST)
    updated: float = field(default_factory=time.monotonic)
    ignored: int = 0
    informed: float = 0.0

    def take(self) -> bool:
        """Return whether one more message is allowed, and count it."""
        now = time.monotonic()
        self.left = min(float(BURST), self.left + (now - self.updated) * MESSAGES_PER_SECOND)
        self.updated = now
        if self.left < 1:
            self.ignored += 1
            return False
        self.left -= 1
        return True

    def complaint(self) -> str:
        """Return what to tell the page about ignored messages: a text at most once a second, else ""."""
        now = time.monotonic()
        if not self.ignored or now - self.informed < 1:
            return ""
        text = f"too many messages at once: {self.ignored} were ignored"
        self.ignored, self.informed = 0, now
        return text


class Connection:
    """One open page."""

    def __init__(self, socket: WebSocket, catalog: Catalog, workers: Workers) -> None:
        self.socket, self.catalog, self.workers = socket, catalog, workers
        self.ticket = secrets.token_urlsafe(16)
        self.session: Session | None = None
        self.playing, self.again, self.speed = True, True, NORMAL
        self.hurried = False  # a tick is wanted at once
        # its recordings that are being made, by ending
        self.saving: dict[str, asyncio.Task[bytes | None]] = {}
        self.due = self.last = 0.0
        self.wake = asyncio.Event()
        self.bucket = TokenBucket()
        self.sending = asyncio.Lock()
        self.turn = asyncio.Lock()  # only its holder changes the session

    async def send(self, message: BaseModel | str) -> None:
        """Send a message, or its JSON, to the page."""
        text = message if isinstance(message, str) else message.model_dump_json()
        async with self.sending:
            await asyncio.wait_for(self.socket.send_text(text), SEND_TIMEOUT)

    async def serve(self, hello: Mapping[str, Any]) -> None:
        """Answer the page's messages and run its ticks until it closes. `hello` are further fields of its `Hello`."""
        await self.send(
            messages.Hello(
                look=replay.look(),
                listing=self.catalog.listing(),
                opens=self.catalog.opening,
                ticket=self.ticket,
                **hello,
            )
        )
        tasks = [asyncio.create_task(self._receive()), asyncio.create_task(self._run_clock())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _receive(self) -> None:
        while True:
            text = await self._received()
            if not self.bucket.take():
                if complaint := self.bucket.complaint():
                    await self._refuse(complaint)
                continue
            try:
                if text is None:
                    raise RequestError("a message must be text, not bytes")
                await self._carry_out(messages.parse(text))
            except (RequestError, StageError, PolicyError) as error:
                await self._refuse(str(error))
            except EncoderError as error:
                await self._refuse(f"only the phrases in the list are understood here: {error}")
            except (WebSocketDisconnect, TimeoutError):
                raise
            except Exception as error:  # a fault of the server must not end the page
                LOG.exception("a page's message failed")
                why = f"that went wrong here ({type(error).__name__}); everything else goes on"
                await self._refuse(why)

    async def _refuse(self, why: str) -> None:
        await self.send(Notice(type="error", text=why))

    async def _received(self) -> str | None:
        """Return the page's next message; None for one of bytes."""
        message = await self.socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1005), message.get("reason"))
        return message.get("text")

    async def _carry_out(self, request: AnyRequest) -> None:
        match request:
            case messages.Open():
                await self._open(request)
            case messages.Say():
                await self._say(request)
            case messages.Choose():
                await self._choose(request.number)
            case messages.End():
                await self._end(request)
            case messages.Drive():
                self._opened().drive(request.macro)
                self._hurry(DRIVING_GAP)
            case Button():
                async with self.turn:  # no frame comes after the answer to a pause
                    self.playing = request.do == "play"
                self._hurry() if request.do == "step" else self._restart()
                await self._send_clock()
            case messages.Speed():
                self.speed = min(max(request.value, SLOWEST), FASTEST)
                self._restart()
                await self._send_clock()
            case messages.Again():
                self.again = request.value
                await self._send_clock()
            case messages.Reset():
                await self._reset(request.seed)

    def _opened(self) -> Session:
        if self.session is None:
            raise RequestError("open a world first")
        return self.session

    async def _tick_thread(self, work: Any, *given: Any) -> Any:
        return await self.workers.run("ticks", work, *given)

    def _restart(self) -> None:
        self.due = time.monotonic()
        self.wake.set()

    def _hurry(self, gap: float = 0.0) -> None:
        """Run a tick now, or `gap` seconds after the last one."""
        self.hurried = True
        self.due = max(time.monotonic(), self.last + gap)
        self.wake.set()

    async def _send_clock(self) -> None:
        await self.send(messages.Clock(playing=self.playing, speed=self.speed, again=self.again))

    async def _open(self, request: messages.Open) -> None:
        world, teams, seat = request.world, request.teams, request.seat
        run = self.workers.run
        for name in teams[:2]:
            self.catalog.entry(world, name)
        async with self.turn:
            cold = [n for n in teams[:2] if not self.catalog.is_warm(world, n, seat == GUEST)]
            if cold:
                await self.send(Notice(type="status", text="compiling…"))
            try:
                session = await run(
                    "loading", open_session, self.catalog, world, teams, request.seed, seat
                )
                self.session = None  # until here, what was open goes on if this cannot be opened
                await self.send(session.opened())
                await self.send(await run("loading", session.look))
                for name in cold:
                    await run("loading", self.catalog.warm, world, name, seat == GUEST)
                session.orders.cues = request.cues()
            finally:
                await self.send(Notice(type="status", text=""))
            if request.paused:
                self.playing = False
            self.session = session
        await self._send_clock()
        self._restart()

    async def _reset(self, seed: int) -> None:
        session = self._opened()
        async with self.turn:
            await self._tick_thread(session.reset, seed)
            await self.send(await self._tick_thread(session.look))
        self._restart()

    async def _say(self, request: messages.Say) -> None:
        session = self._opened()
        line = await self.workers.run(
            "words", session.hear, request.text, request.agents, request.hold
        )
        refused: list[str] = []
        if line.clear:
            async with self.turn:
                if self.session is not session:
                    return
                if session.over:
                    await self._tick_thread(session.reset, session.seed + 1)
                refused = await self._tick_thread(session.obey, line)
        await self._answer(session, line, refused)

    async def _answer(self, session: Session, line: Line, refused: list[str]) -> None:
        await self.send(Understood.of(line, refused, session.learnt))
        if line.clear:
            self._hurry()

    async def _choose(self, number: int) -> None:
        session = self._opened()
        async with self.turn:
            line = await self._tick_thread(session.choose, number)
        await self._answer(session, line, [])

    async def _end(self, request: messages.End) -> None:
        session = self._opened()
        async with self.turn:
            if request.queued is not None:
                await self._tick_thread(session.unqueue, request.queued)
            else:
                kinds = None if request.kind is None else [request.kind]
                await self._tick_thread(session.end, kinds, request.agents)
        self._hurry()

    async def _run_clock(self) -> None:
        while True:
            if self.session is None or not (self.playing or self.hurried):
                self.wake.clear()
                await self.wake.wait()
                continue
            if (early := self.due - time.monotonic()) > 0:
                self.wake.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.wake.wait(), early)
                continue
            await self._tick()

    async def _tick(self) -> None:
        async with self.turn:
            session = self.session
            if session is None:
                return
            asked, self.hurried = self.hurried, False
            if session.closed:
                if not (self.again or asked):
                    self.playing = False
                    await self._send_clock()
                    return
                await self._tick_thread(session.reset, session.seed + 1)
            # the thread also writes the JSON, which takes longer than a message may hold up other pages
            await self.send(await self._tick_thread(lambda: session.tick().model_dump_json()))
        self.last = now = time.monotonic()
        if session.closed:
            self.due = now + END_SHOWN
        else:  # this keeps the pace on average; a page that fell behind does not race to catch up
            self.due = max(self.due + 1 / self.speed, now - 1)
