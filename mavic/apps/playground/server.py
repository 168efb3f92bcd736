"""The playground's web application: one page, one WebSocket per page, and a session for each page.

What a page may send is small, checked and rate-limited. No message of a page names a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import tempfile
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Request, Response, WebSocket, WebSocketDisconnect
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse

from mavic.apps import replay
from mavic.apps.playground import heaps, limits
from mavic.apps.playground import story as stories
from mavic.apps.playground.catalog import Catalog
from mavic.apps.playground.connection import Connection
from mavic.apps.playground.messages import Notice
from mavic.apps.playground.session import Session
from mavic.apps.playground.workers import Workers
from mavic.runtime.sockets import address_of, http_protocol, is_loopback, open_socket

LOG = logging.getLogger(__name__)
COOKIE = "mavic_token"
TRIM_SECONDS = 60.0
# of the playground alone
SCRIPTS = ("address", "suggest", "past", "talk", "menu", "mic", "pad", "save", "play")
STATIC = {
    **{f"{name}.js": "text/javascript" for name in (*replay.SCRIPTS, *SCRIPTS)},
    "play.css": "text/css",
    "stage.css": "text/css",
}
PAGES = ("play.html", "token.html", "wait.html")
MEDIA = {"html": "text/html; charset=utf-8", "gif": "image/gif"}  # what a recording is saved as
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def _make_app(catalog: Catalog, *, token: str = "", loopback: bool = True) -> FastAPI:
    """Return the web application.

    With a `token`, every visitor must give it. On loopback, only pages that were opened as this machine's are served.
    """
    workers = Workers()
    connections: dict[str, Connection] = {}
    notes = {"words": ""}  # why only the built-in phrases are understood, known after the start
    first = _FirstPage(catalog)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        del app
        tasks = [
            asyncio.create_task(_warm(catalog, workers, notes, first)),
            asyncio.create_task(_keep_trimming()),
        ]
        yield
        for task in tasks:
            task.cancel()
        workers.close()

    app = FastAPI(lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None)
    app.state.connections, app.state.workers = connections, workers
    server = secrets.token_urlsafe(8)  # another one after a restart
    web = resources.files("mavic.apps") / "web"
    files = {name: (web / name).read_bytes() for name in (*STATIC, *PAGES)}

    def has_token(request: Request | WebSocket) -> bool:
        given = request.cookies.get(COOKIE, "")
        return not token or secrets.compare_digest(given.encode(), token.encode())

    @app.middleware("http")
    async def guard(request: Request, call_next: Callable[..., Any]) -> Response:
        if not is_own_page(request, loopback):
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
        if not has_token(request):
            return HTMLResponse(files["token.html"], 401)
        return HTMLResponse(files["play.html"])

    @app.get("/story")
    async def story(request: Request) -> Response:
        """The first minute. Until it is made, a page that asks again; if there is none, the playground."""
        if not has_token(request):
            return HTMLResponse(files["token.html"], 401)
        if first.page:
            policy = first.page.split('Content-Security-Policy" content="')[1].split('"')[0]
            return HTMLResponse(first.page, headers={"Content-Security-Policy": policy})
        if first.wanted:
            wait = replay.fill(files["wait.html"].decode(), {"world": catalog.opening})
            return HTMLResponse(wait, headers={"Refresh": "1"})
        return RedirectResponse(f"/#world={catalog.opening}", 303)

    @app.get("/recording/{ticket}.{ending}")
    async def recording(ticket: str, ending: str, request: Request) -> Response:
        connection = connections.get(ticket)
        if not has_token(request) or connection is None or connection.session is None:
            return PlainTextResponse("there is nothing to save: the page is closed", 404)
        if ending not in MEDIA:
            return PlainTextResponse(f"a recording is saved as {' or '.join(MEDIA)}", 404)
        session = connection.session
        try:
            body = await _recording(connection, session, ending)
        except ImportError:
            why = "a GIF needs matplotlib and pillow: pip install 'mavic[report]'"
            return PlainTextResponse(why, 501)
        if body is None:
            return PlainTextResponse("nothing has been played yet", 404)
        named = f'attachment; filename="mavic-{session.world}.{ending}"'
        return Response(body, media_type=MEDIA[ending], headers={"Content-Disposition": named})

    @app.get("/{name}")
    async def static(name: str) -> Response:
        if name not in STATIC:
            return PlainTextResponse("no such page", 404)
        return Response(files[name], media_type=f"{STATIC[name]}; charset=utf-8")

    @app.websocket("/live")
    async def live(line: WebSocket) -> None:
        if not is_own_page(line, loopback) or not has_token(line):
            await line.close(1008)
            return
        await line.accept()
        if len(connections) >= limits.CONNECTIONS:
            text = (
                f"{limits.CONNECTIONS} pages are open, more do not fit; "
                "close one and load this page again"
            )
            await line.send_text(Notice(type="full", text=text).model_dump_json())
            await line.close(1013)
            return
        hello = {"words": notes["words"], "story": first.wanted, "server": server}
        connection = Connection(line, catalog, workers)
        connections[connection.ticket] = connection
        try:
            with contextlib.suppress(WebSocketDisconnect, TimeoutError):
                await connection.serve(hello)
        finally:
            del connections[connection.ticket]

    return app


def is_own_page(request: Request | WebSocket, loopback: bool) -> bool:
    """Return whether a request comes from a page of this server, and not from another site's page.

    Args:
        request: the request.
        loopback: the server is for this machine alone.
    """
    host = request.headers.get("host", "")
    origin = request.headers.get("origin")
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if origin is not None and urlsplit(origin).netloc != host:
            return False
    except ValueError:  # neither is an address, such as "["
        return False
    return not loopback or is_loopback(name)


class _FirstPage:
    """The first minute as a page, made once for all visitors."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.page = ""
        self.wanted = stories.can_be_told(catalog)

    def make(self) -> None:
        """Play the story and write its page. If the episodes do not show it, there is none."""
        try:
            if self.wanted:
                self.catalog.warm(self.catalog.opening, stories.TEAM)
            made = stories.make(self.catalog) if self.wanted else None
            if made is not None:
                where = f"/#world={made.world}&teams={stories.TEAM}&seed={made.seed}"
                self.page = stories.page(made, ("Your turn", where))
        finally:
            self.wanted = bool(self.page)


async def _warm(
    catalog: Catalog, workers: Workers, notes: dict[str, str], first: _FirstPage | None = None
) -> None:
    """Compile the teams one after another, load the encoder and make the first page, before a page asks for them."""

    async def load_encoder() -> None:
        first = next(iter(catalog.teams))
        notes["words"] = await workers.run("words", catalog.load_encoder, first)

    async def warm_teams() -> None:
        for world, teams in catalog.teams.items():
            for name in teams:
                if catalog.is_warm(world, name):
                    continue
                try:
                    await workers.run("warming", catalog.warm, world, name)
                except Exception:  # whoever opens this team is told; the others are compiled
                    LOG.exception("%s/%s cannot be compiled", world, name)

    async def make_first_page() -> None:
        """Make it before other teams are compiled: visitors wait for it."""
        try:
            if first is not None:
                await workers.run("loading", first.make)
        finally:
            await warm_teams()

    for fault in await asyncio.gather(load_encoder(), make_first_page(), return_exceptions=True):
        if fault is not None:
            LOG.error("the playground is not warm", exc_info=fault)
    heaps.trim()


async def _keep_trimming() -> None:
    """Give memory back to the system from time to time, in a thread."""
    while True:
        await asyncio.sleep(TRIM_SECONDS)
        await asyncio.to_thread(heaps.trim)


async def _recording(connection: Connection, session: Session, ending: str) -> bytes | None:
    """Return the page's recording. A second click while it is being made waits for the same one."""
    if ending not in connection.saving:
        workers = connection.workers
        task = asyncio.create_task(workers.run("recordings", _saved, session, ending))
        connection.saving[ending] = task
        task.add_done_callback(lambda _: connection.saving.pop(ending, None))
    return await asyncio.shield(connection.saving[ending])


def _saved(session: Session, ending: str) -> bytes | None:
    """Return the session's recording as a file's content; None if nothing has been played."""
    recordings = session.recordings()
    if not recordings[0].frames:
        return None
    if ending == "html":
        title = " and ".join(one.name for one in recordings)
        return replay.page(recordings, f"{title} in {session.world.replace('_', ' ')}").encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording"
        return replay.gif(recordings, path, longest=limits.LONGEST_GIF).read_bytes()


def play(
    catalog: Catalog, host: str, port: int, say: Callable[[str], None], *, browser: bool = False
) -> None:
    """Serve until Ctrl-C. On an address that other machines reach, visitors are asked for a token.

    Args:
        catalog: the teams.
        host: the address to listen on.
        port: the port to listen on; 0 takes a free one.
        say: it is told the address of the page.
        browser: open the page in the user's browser.
    """
    import uvicorn

    token = "" if is_loopback(host) else secrets.token_urlsafe(16)
    config = uvicorn.Config(
        _make_app(catalog, token=token, loopback=not token),
        http=http_protocol(),
        log_level="warning",
        access_log=False,
        ws_max_size=limits.LONGEST_MESSAGE,
        ws_per_message_deflate=False,  # it costs more time than it saves
        timeout_graceful_shutdown=2,
    )
    with open_socket(host, port) as listener:
        address = address_of(host, listener.getsockname()[1])
        address += f"?token={token}" if token else ""
        say(f"the playground is open: {address} (Ctrl-C closes it)")
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))
