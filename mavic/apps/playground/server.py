"""The playground's door: one page, one WebSocket a page, each page its own world.

Programs run in threads of their own (ticks, words, loading and compiling), so that the door never
waits. What a page may send is small, checked and slowed down; nothing it sends names a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import logging
import secrets
import socket
import tempfile
import threading
import time
import webbrowser
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from fastapi import FastAPI, Request, Response, WebSocket, WebSocketDisconnect
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse

from mavic.apps import replay, stage
from mavic.apps.playground.catalog import Catalog, HouseError
from mavic.apps.playground.session import GUEST, LARGEST_SEED, Visit, VisitError, open_visit
from mavic.apps.stage import Heard, WatchError
from mavic.experiments.policy_file import PolicyError
from mavic.language.encoder import EncoderError
from mavic.language.text import shown

T = TypeVar("T")
LOG = logging.getLogger(__name__)
LONGEST_TEXT = 400  # characters of an instruction
LONGEST_MESSAGE = 1 << 20  # bytes; a longer one ends the connection
MESSAGES_A_SECOND, BURST = 40, 80  # what a page may send; the rest is ignored, and it is told so
PAGES = 100  # open at once
FASTEST, SLOWEST, NORMAL = 10.0, 0.5, 3.0  # ticks a second
EAGER = 0.1  # seconds between two ticks that a person's keys ask for
LINGER = 2.0  # seconds an ended episode stays in sight
PATIENCE = 20.0  # seconds until a page that takes nothing any more is given up
LONGEST_GIF = 120  # ticks
LONGEST_HOLD = 1000  # ticks
COOKIE = "mavic_token"
STATIC = {
    "play.js": "text/javascript",
    "show.js": "text/javascript",
    "paint.js": "text/javascript",
    "play.css": "text/css",
    "show.css": "text/css",
}
HEADERS = {
    "Content-Security-Policy": "; ".join(
        [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "img-src 'self' data:",
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        ]
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
DOORSTEP = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>mavic playground</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><link rel="stylesheet" href="/show.css"></head>
<body><main><h1>mavic playground</h1>
<form action="/" method="get"><p><label for="token">The token that was printed when it started</label></p>
<p><input id="token" name="token" type="password" autocomplete="off" autofocus> <button>Enter</button></p>
</form></main></body></html>
"""


class Complaint(ValueError):
    """A page's message cannot be followed; it is told why."""


@dataclass(kw_only=True)
class Workers:
    """The threads in which programs run."""

    ticks: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "ticks"))
    words: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "words"))
    loading: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, "loading"))
    warming: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "warming"))
    films: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "films"))

    async def run(self, pool: ThreadPoolExecutor, work: Callable[..., T], *given: Any) -> T:
        """Work in a thread, waited for."""
        return await asyncio.get_running_loop().run_in_executor(pool, work, *given)

    def close(self) -> None:
        """Let no more work begin."""
        for pool in (self.ticks, self.words, self.loading, self.warming, self.films):
            pool.shutdown(wait=False, cancel_futures=True)


@dataclass(kw_only=True)
class Bucket:
    """How many messages a page may still send; it fills again with time."""

    left: float = float(BURST)
    at: float = field(default_factory=time.monotonic)
    ignored: int = 0
    told: float = 0.0

    def take(self) -> bool:
        """Whether one more may come."""
        now = time.monotonic()
        self.left = min(float(BURST), self.left + (now - self.at) * MESSAGES_A_SECOND)
        self.at = now
        if self.left < 1:
            self.ignored += 1
            return False
        self.left -= 1
        return True

    def complaint(self) -> str:
        """What to tell, at most once a second."""
        now = time.monotonic()
        if not self.ignored or now - self.told < 1:
            return ""
        text = f"too many messages at once: {self.ignored} were ignored"
        self.ignored, self.told = 0, now
        return text


class Page:
    """One open page: its line, its visit, its clock."""

    def __init__(self, line: WebSocket, catalog: Catalog, workers: Workers) -> None:
        self.line, self.catalog, self.workers = line, catalog, workers
        self.ticket = secrets.token_urlsafe(16)
        self.visit: Visit | None = None
        self.playing, self.again, self.speed = True, True, NORMAL
        self.hurried = False  # a tick is wanted out of turn
        self.filming = False
        self.due = self.last = 0.0
        self.wake = asyncio.Event()
        self.bucket = Bucket()
        self.sending = asyncio.Lock()
        self.turn = asyncio.Lock()  # a visit changes in one place at a time

    async def send(self, message: dict[str, Any] | str) -> None:
        """To the page; one that takes nothing for too long is given up."""
        text = message if isinstance(message, str) else json.dumps(message, allow_nan=False)
        async with self.sending:
            await asyncio.wait_for(self.line.send_text(text), PATIENCE)

    async def live(self, hello: dict[str, Any]) -> None:
        """Until the page goes: hear it, and let its world tick."""
        await self.send({**hello, "ticket": self.ticket})
        tasks = [asyncio.create_task(self._hear()), asyncio.create_task(self._tick())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _hear(self) -> None:
        while True:
            text = await self.line.receive_text()
            if not self.bucket.take():
                if complaint := self.bucket.complaint():
                    await self.send({"type": "error", "text": complaint})
                continue
            try:
                await self._follow(_parsed(text))
            except (Complaint, VisitError, HouseError, WatchError, PolicyError) as error:
                await self.send({"type": "error", "text": str(error)})
            except EncoderError as error:
                why = f"only the phrases in the list are understood here: {error}"
                await self.send({"type": "error", "text": why})
            except (WebSocketDisconnect, TimeoutError):
                raise
            except Exception as error:  # a fault of ours must not cost a visitor the page
                LOG.exception("a page's message failed")
                why = f"that went wrong here ({type(error).__name__}); everything else goes on"
                await self.send({"type": "error", "text": why})

    async def _follow(self, message: dict[str, Any]) -> None:
        match message.get("do"):
            case "open":
                await self._open(message)
            case "say":
                await self._say(message)
            case "end":
                async with self.turn:
                    await self.workers.run(self.workers.ticks, self._visit().end)
                self._hurry()
            case "drive":
                self._visit().drive(_text(message, "macro"))
                self._hurry(EAGER)
            case "play" | "pause" as wanted:
                async with self.turn:  # after a pause no frame comes any more
                    self.playing = wanted == "play"
                self._restart()
                await self._tell_clock()
            case "step":
                async with self.turn:
                    self.playing = False
                self._hurry()
                await self._tell_clock()
            case "speed":
                self.speed = min(max(_number(message, "value"), SLOWEST), FASTEST)
                self._restart()
                await self._tell_clock()
            case "again":
                self.again = bool(message.get("value"))
                await self._tell_clock()
            case "reset":
                await self._reset(_seed(message))
            case other:
                raise Complaint(f"no such message: {shown(str(other), 40)!r}")

    def _visit(self) -> Visit:
        if self.visit is None:
            raise Complaint("open a world first")
        return self.visit

    def _restart(self) -> None:
        self.due = time.monotonic()
        self.wake.set()

    def _hurry(self, gap: float = 0.0) -> None:
        """A tick now, or `gap` seconds after the last."""
        self.hurried = True
        self.due = max(time.monotonic(), self.last + gap)
        self.wake.set()

    async def _tell_clock(self) -> None:
        await self.send(
            {"type": "clock", "playing": self.playing, "speed": self.speed, "again": self.again}
        )

    async def _open(self, message: dict[str, Any]) -> None:
        world, teams, seat = _text(message, "world"), message.get("teams"), message.get("seat")
        if not isinstance(teams, list) or not all(isinstance(name, str) for name in teams):
            raise Complaint("teams must be a list of names")
        if not (
            seat is None or seat == GUEST or (isinstance(seat, int) and not isinstance(seat, bool))
        ):
            raise Complaint("seat must be an agent's number, “guest” or nothing")
        seed, run, loading = _seed(message), self.workers.run, self.workers.loading
        for name in teams[:2]:
            self.catalog.entry(world, name)
        async with self.turn:
            self.visit = None
            cold = [n for n in teams[:2] if not self.catalog.is_warm(world, n, seat == GUEST)]
            if cold:
                await self.send({"type": "status", "text": "compiling…"})
            visit = await run(loading, open_visit, self.catalog, world, teams, seed, seat)
            await self.send(visit.facts())
            await self.send(await run(loading, visit.look))
            for name in cold:
                await run(loading, self.catalog.warm, world, name, seat == GUEST)
            self.visit = visit
        await self.send({"type": "status", "text": ""})
        await self._tell_clock()
        self._restart()

    async def _reset(self, seed: int) -> None:
        visit = self._visit()
        async with self.turn:
            await self.workers.run(self.workers.ticks, visit.reset, seed)
            await self.send(await self.workers.run(self.workers.ticks, visit.look))
        self._restart()

    async def _say(self, message: dict[str, Any]) -> None:
        text, visit = _text(message, "text"), self._visit()
        if len(text) > LONGEST_TEXT:
            raise Complaint(
                f"that is too long for an instruction ({len(text)} characters, at most {LONGEST_TEXT})"
            )
        agents, hold = _agents(message, len(visit.show.setting.env.agents)), _hold(message)
        lexicon = visit.show.lexicon
        heard = await self.workers.run(self.workers.words, stage.hear, lexicon, text)
        refused: list[str] = []
        if not heard.unsure:
            async with self.turn:
                if self.visit is not visit:
                    return
                ticks = self.workers.ticks
                if visit.over:
                    await self.workers.run(ticks, visit.reset, visit.seed + 1)
                refused = await self.workers.run(ticks, visit.say, heard, agents, hold)
        await self.send({"type": "understood", **_told(heard), "refused": refused})
        if not heard.unsure:
            self._hurry()

    async def _tick(self) -> None:
        while True:
            if self.visit is None or not (self.playing or self.hurried):
                self.wake.clear()
                await self.wake.wait()
                continue
            if (early := self.due - time.monotonic()) > 0:
                self.wake.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.wake.wait(), early)
                continue
            await self._tick_once()

    async def _tick_once(self) -> None:
        async with self.turn:
            visit = self.visit
            if visit is None:
                return
            asked, self.hurried = self.hurried, False
            if visit.closed:
                if not (self.again or asked):
                    self.playing = False
                    await self._tell_clock()
                    return
                await self.workers.run(self.workers.ticks, visit.reset, visit.seed + 1)
            text = await self.workers.run(self.workers.ticks, visit.tick)
            await self.send(text)
        self.last = now = time.monotonic()
        if visit.closed:
            self.due = now + LINGER
        else:  # keeps the pace on average; a page that fell behind does not race to catch up
            self.due = max(self.due + 1 / self.speed, now - 1)


def _parsed(text: str) -> dict[str, Any]:
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise Complaint("a message must be JSON") from None
    if not isinstance(message, dict):
        raise Complaint("a message must be a JSON object")
    return message


def _text(message: dict[str, Any], name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str):
        raise Complaint(f"{name} must be a text")
    return value


def _number(message: dict[str, Any], name: str) -> float:
    value = message.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:
        raise Complaint(f"{name} must be a number")
    return float(value)


def _seed(message: dict[str, Any]) -> int:
    seed = message.get("seed", 1)
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed <= LARGEST_SEED:
        raise Complaint(f"seed must be a whole number from 0 to {LARGEST_SEED}")
    return seed


def _agents(message: dict[str, Any], count: int) -> list[int] | None:
    agents = message.get("agents")
    if agents is None:
        return None
    good = isinstance(agents, list) and all(type(a) is int and 0 <= a < count for a in agents)
    if not good or not agents:
        raise Complaint(f"agents must be a list of numbers from 0 to {count - 1}")
    return agents


def _hold(message: dict[str, Any]) -> int | None:
    hold = message.get("hold")
    if hold is None:
        return None
    if type(hold) is not int or not 1 <= hold <= LONGEST_HOLD:
        raise Complaint(f"hold must be a whole number from 1 to {LONGEST_HOLD}")
    return hold


def _told(heard: Heard) -> dict[str, Any]:
    return {
        "text": heard.text,
        "kind": heard.kind,
        "probability": round(heard.probability, 4),
        "unsure": heard.unsure,
        "nearest": [
            {"text": text, "kind": kind, "cosine": round(float(cosine), 3)}
            for text, kind, cosine in heard.nearest
        ],
        "closest": list(heard.closest),
        "note": heard.note,
    }


def is_loopback(host: str) -> bool:
    """Whether only this machine can come in."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def make_app(catalog: Catalog, *, token: str = "", loopback: bool = True) -> FastAPI:
    """The playground as an application. With a `token` everybody is asked for it; on loopback only
    pages that were opened as this machine's are served."""
    workers = Workers()
    pages: dict[str, Page] = {}
    notes = {"words": ""}

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        del app
        warming = asyncio.create_task(_warm(catalog, workers, notes))
        yield
        warming.cancel()
        workers.close()

    app = FastAPI(lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None)
    app.state.pages, app.state.workers = pages, workers
    web = resources.files("mavic.apps") / "web"
    files = {name: (web / name).read_bytes() for name in (*STATIC, "play.html")}

    def is_let_in(request: Request | WebSocket) -> bool:
        given = request.cookies.get(COOKIE, "")
        return not token or secrets.compare_digest(given.encode(), token.encode())

    def is_ours(request: Request | WebSocket) -> bool:
        """Not a stranger's page that talks to this machine behind a visitor's back."""
        host = request.headers.get("host", "")
        name = urlsplit(f"//{host}").hostname or ""
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return False
        return not loopback or is_loopback(name)

    @app.middleware("http")
    async def guard(request: Request, call_next: Callable[..., Any]) -> Response:
        if not is_ours(request):
            response: Response = PlainTextResponse("not for this address", 403)
        else:
            response = await call_next(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    @app.get("/")
    async def index(request: Request) -> Response:
        given = request.query_params.get("token", "")
        if token and given and secrets.compare_digest(given.encode(), token.encode()):
            response: Response = RedirectResponse("/", 303)
            response.set_cookie(COOKIE, token, httponly=True, samesite="strict")
            return response
        if not is_let_in(request):
            return HTMLResponse(DOORSTEP, 401)
        return HTMLResponse(files["play.html"])

    @app.get("/film/{ticket}.{ending}")
    async def film(ticket: str, ending: str, request: Request) -> Response:
        page = pages.get(ticket)
        if not is_let_in(request) or page is None or page.visit is None:
            return PlainTextResponse("there is nothing to save: the page is closed", 404)
        if ending not in ("html", "gif"):
            return PlainTextResponse("a film is saved as html or gif", 404)
        if page.filming:
            return PlainTextResponse("one film at a time: the last is still being made", 429)
        page.filming = True
        try:
            body = await workers.run(workers.films, _film, page.visit, ending)
        except ImportError:
            why = "a GIF needs matplotlib and pillow: pip install 'mavic[report]'"
            return PlainTextResponse(why, 501)
        finally:
            page.filming = False
        if body is None:
            return PlainTextResponse("nothing has been played yet", 404)
        kind = "text/html; charset=utf-8" if ending == "html" else "image/gif"
        named = f'attachment; filename="mavic-{page.visit.world}.{ending}"'
        return Response(body, media_type=kind, headers={"Content-Disposition": named})

    @app.get("/{name}")
    async def static(name: str) -> Response:
        if name not in STATIC:
            return PlainTextResponse("no such page", 404)
        return Response(files[name], media_type=f"{STATIC[name]}; charset=utf-8")

    @app.websocket("/live")
    async def live(line: WebSocket) -> None:
        if not is_ours(line) or not is_let_in(line):
            await line.close(1008)
            return
        await line.accept()
        if len(pages) >= PAGES:
            full = f"{PAGES} pages are open, more do not fit; close one and load this page again"
            await line.send_text(json.dumps({"type": "full", "text": full}))
            await line.close(1013)
            return
        page = Page(line, catalog, workers)
        pages[page.ticket] = page
        try:
            with contextlib.suppress(WebSocketDisconnect, TimeoutError):
                hello = {"type": "hello", "look": replay.look(), "bill": catalog.bill(), **notes}
                await page.live(hello)
        finally:
            del pages[page.ticket]

    return app


async def _warm(catalog: Catalog, workers: Workers, notes: dict[str, str]) -> None:
    """Compile the teams one after another before anybody asks, and wake the encoder."""
    first = next(iter(catalog.teams))
    waking = asyncio.create_task(workers.run(workers.words, catalog.listen, first))
    for world, teams in catalog.teams.items():
        for name in teams:
            if not catalog.is_warm(world, name):
                await workers.run(workers.warming, catalog.warm, world, name)
    notes["words"] = await waking


def _film(visit: Visit, ending: str) -> bytes | None:
    films = visit.films()
    if not films[0].frames:
        return None
    if ending == "html":
        title = " and ".join(film.name for film in films)
        return replay.page(films, f"{title} in {visit.world.replace('_', ' ')}").encode()
    with tempfile.TemporaryDirectory() as folder:
        return replay.gif(films, Path(folder) / "film", longest=LONGEST_GIF).read_bytes()


class PlayError(ValueError):
    """The playground cannot open there; the message says what would do."""


def play(
    catalog: Catalog, host: str, port: int, say: Callable[[str], None], *, browser: bool = False
) -> None:
    """Serve until Ctrl-C; `say` is told where. Beyond this machine a token is asked for."""
    import uvicorn

    token = "" if is_loopback(host) else secrets.token_urlsafe(16)
    settings = uvicorn.Config(
        make_app(catalog, token=token, loopback=not token),
        log_level="warning",
        access_log=False,
        ws_max_size=LONGEST_MESSAGE,
        ws_per_message_deflate=False,  # costs more time than it saves
        timeout_graceful_shutdown=2,
    )
    with listen(host, port) as door:
        address = address_of(host, door.getsockname()[1], token)
        say(f"the playground is open: {address} (Ctrl-C closes it)")
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(uvicorn.Server(settings).serve(sockets=[door]))


def listen(host: str, port: int) -> socket.socket:
    """A socket that pages can already knock at."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=256)
    except OSError as error:
        why = error.strerror or error
        raise PlayError(f"cannot listen on {host} port {port} ({why}); try --port 0") from None


def address_of(host: str, port: int, token: str) -> str:
    """What to type into a browser; an address that means all of this machine's is named by its name."""
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")
