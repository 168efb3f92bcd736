"""The web application of a study: a page for each link. It writes no log of who connects."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response, WebSocket, WebSocketDisconnect
from fastapi.responses import HTMLResponse, PlainTextResponse

from mavic.apps import replay
from mavic.apps.participants import balance, conduct, messages, records
from mavic.apps.participants.conduct import Study
from mavic.apps.participants.people import Person
from mavic.apps.participants.plan import Plan, seats_of
from mavic.apps.playground import limits
from mavic.apps.playground.catalog import Catalog
from mavic.apps.playground.connection import TokenBucket
from mavic.apps.playground.limits import RequestError
from mavic.apps.playground.messages import GUEST, Notice
from mavic.apps.playground.server import HEADERS, is_own_page
from mavic.apps.playground.workers import Workers
from mavic.runtime.sockets import address_of, http_protocol, is_loopback, open_socket
from mavic.storage import files
from mavic.teams.stage import StageError

LOG = logging.getLogger(__name__)
STATIC = {
    **{f"{name}.js": "text/javascript" for name in (*replay.SCRIPTS, "mic", "pad", "study")},
    **{f"{name}.css": "text/css" for name in ("stage", "play", "study")},
}
UNKNOWN = 4004  # the code with which a line for an unknown link is closed


def make_app(
    plan: Plan,
    catalog: Catalog,
    folder: Path,
    say: Callable[[str], None],
    *,
    loopback: bool = True,
) -> FastAPI:
    """Return the web application.

    Args:
        plan: the plan.
        catalog: the teams.
        folder: the folder of the records.
        say: is told who begins and who ends.
        loopback: serve only pages that were opened as this machine's.
    """
    workers = Workers()
    study = conduct.open_study(plan, catalog, workers, folder, say)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        del app
        warming = asyncio.create_task(_warm(study))
        yield
        warming.cancel()
        study.close()
        workers.close()

    app = FastAPI(lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None)
    app.state.study = study
    web = resources.files("mavic.apps") / "web"
    content = {name: (web / name).read_bytes() for name in (*STATIC, "study.html")}
    stranger = (web / "study-link.html").read_bytes()

    @app.middleware("http")
    async def guard(request: Request, call_next: Callable[..., Any]) -> Response:
        if not is_own_page(request, loopback):
            response: Response = PlainTextResponse("not for this address", 403)
        else:
            response = await call_next(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    @app.get("/s/{token}")
    async def page(token: str) -> Response:
        if token not in study.people:
            return HTMLResponse(stranger, 404)
        return HTMLResponse(content["study.html"])

    @app.get("/{name}")
    async def static(name: str) -> Response:
        if name not in STATIC:
            return HTMLResponse(stranger, 404)
        return Response(content[name], media_type=f"{STATIC[name]}; charset=utf-8")

    @app.exception_handler(404)
    async def nowhere(request: Request, error: Exception) -> Response:
        del request, error
        return HTMLResponse(stranger, 404)

    @app.websocket("/s/{token}/live")
    async def live(socket: WebSocket, token: str) -> None:
        person = study.people.get(token)
        if not is_own_page(socket, loopback):
            await socket.close(1008)
            return
        await socket.accept()
        if person is None:
            await socket.close(UNKNOWN)
            return
        try:
            await study.arrive(person, socket)
            with contextlib.suppress(WebSocketDisconnect):
                await _serve(study, person, socket)
        finally:
            await study.depart(person, socket)

    return app


async def _serve(study: Study, person: Person, socket: WebSocket) -> None:
    """Answer a page's messages until it closes."""
    bucket = TokenBucket()
    while True:
        text = await socket.receive_text()
        if not bucket.take():
            if complaint := bucket.complaint():
                await person.send(Notice(type="error", text=complaint))
            continue
        try:
            await study.carry_out(person, messages.parse(text))
        except (RequestError, StageError) as error:
            await person.send(Notice(type="error", text=str(error)))
        except Exception as error:  # a fault of the server must not end the page
            LOG.exception("a page's message failed")
            why = f"that went wrong here ({type(error).__name__}); everything else goes on"
            await person.send(Notice(type="error", text=why))


async def _warm(study: Study) -> None:
    """Compile the teams of the study and load the encoder, before a person needs them."""
    plan, run = study.plan, study.workers.run
    try:
        why = await run("words", study.catalog.load_encoder, plan.worlds[0])
        if why:
            study.say(f"only the phrases of the instruction files are understood: {why}")
        for task in plan.task:
            for team in plan.teams:
                guest = GUEST in seats_of(task, study.catalog, team)
                await run("warming", study.catalog.warm, task.world, team, guest)
    except Exception:  # who needs the team is told
        LOG.exception("the teams are not warm")


def run_study(
    plan: Plan,
    catalog: Catalog,
    folder: Path,
    host: str,
    port: int,
    say: Callable[[str], None],
) -> None:
    """Serve a study until Ctrl-C. Started again with the same folder, it goes on where it was.

    Args:
        plan: the plan.
        catalog: the teams.
        folder: the folder of the records.
        host: the address to listen on.
        port: the port to listen on; 0 takes a free one.
        say: is told the links, and who begins and ends.
    """
    import uvicorn

    with files.locked(folder), open_socket(host, port) as listener:
        app = make_app(plan, catalog, folder, say, loopback=is_loopback(host))
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            ws_max_size=limits.LONGEST_MESSAGE,
            ws_per_message_deflate=False,
            http=http_protocol(),
            timeout_graceful_shutdown=2,
        )
        address = address_of(host, listener.getsockname()[1])
        say(balance.sentence(plan))
        for person, token in list(
            zip(app.state.study.people.values(), app.state.study.people, strict=True)
        )[:4]:
            say(f"participant {person.number}: {address}s/{token}")
        say(f"all {plan.participants} links: {folder / records.LINKS} (put {address} before them)")
        say("Ctrl-C stops the study; the same command goes on with it")
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))
