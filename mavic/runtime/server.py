"""A team behind HTTP and WebSocket, for robots in other languages: `mavic serve`, or `python -m mavic.runtime`.

Events are POSTed as JSON. Their commands go to the robots, which take them from the WebSocket `/commands` or by asking
`/commands/AGENT`. `/openapi.json` describes every message. Every request carries the token. It needs the extra `web`,
and no JAX.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import Depends, FastAPI, Header, HTTPException, Query, WebSocket, WebSocketDisconnect
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from mavic.runtime.folder import ExportError
from mavic.runtime.sockets import address_of, http_protocol, open_socket
from mavic.runtime.team import Answer, Command, EventError, RobotTeam, Start

TICK_SECONDS = 0.25
LONGEST_WAIT = 30.0
KEPT = 256  # commands that wait for a robot; older ones are dropped
LONGEST_TEXT = 400
Sees = Annotated[list[float] | None, Field(max_length=100_000)]
Offers = Annotated[list[bool] | None, Field(max_length=10_000)]
Holds = Annotated[dict[str, list[str]] | None, Field(max_length=1000)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Say(_Message):
    """An instruction in words or by its kind ("end" ends what holds)."""

    text: Annotated[str | None, Field(max_length=LONGEST_TEXT)] = None
    kind: str | None = None
    to: list[str] | None = None
    seconds: Annotated[float | None, Field(gt=0, le=1e9)] = None
    """For how long it holds; null: until it is ended or replaced."""
    also: bool = False


class Observed(_Message):
    """What an agent sees, which macros it can start (null: all), and of which macros each predicate holds."""

    observation: list[float]
    available: Offers = None
    holds: Holds = None


class Ended(_Message):
    """An agent's macro ended; `number` is that of its start."""

    observation: Sees = None
    available: Offers = None
    holds: Holds = None
    number: int | None = None


class Failed(Ended):
    """An agent's macro failed."""

    why: Annotated[str, Field(max_length=1000)] = ""


class Order(BaseModel):
    """What a robot is to do."""

    do: Literal["start", "cancel"]
    agent: str
    macro: str | None = None
    number: int | None = None


class Orders(BaseModel):
    """Commands, in their order."""

    commands: list[Order]


class Said(Orders):
    """What became of an instruction."""

    kind: str
    unsure: bool
    note: str


class State(BaseModel):
    """The team now."""

    agents: dict[str, str]
    """What each agent does: idle, running, cancelling or silent."""
    macros: dict[str, list[str]]
    kinds: list[str]
    predicates: list[str]
    """Those on which kinds depend; `holds` reports them."""
    instructions: list[str]
    observation: int
    """How many numbers an agent sees."""


class _Post:
    """Brings commands to robots: to those that listen, and into boxes for those that ask."""

    def __init__(self, agents: tuple[str, ...]) -> None:
        self.boxes: dict[str, deque[Order]] = {name: deque(maxlen=KEPT) for name in agents}
        self.listeners: set[asyncio.Queue[Order]] = set()
        self.news = asyncio.Condition()

    async def send(self, commands: tuple[Command, ...]) -> list[Order]:
        orders = [_order(command) for command in commands]
        for order in orders:
            self.boxes[order.agent].append(order)
            for queue in self.listeners:
                with contextlib.suppress(
                    asyncio.QueueFull
                ):  # it does not read: its robot will be silent
                    queue.put_nowait(order)
        if orders:
            async with self.news:
                self.news.notify_all()
        return orders

    async def take(self, agent: str, wait: float) -> list[Order]:
        box = self.boxes[agent]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait), self.news:
                await self.news.wait_for(lambda: bool(box))
        found = list(box)
        box.clear()
        return found


def _order(command: Command) -> Order:
    if isinstance(command, Start):
        return Order(do="start", agent=command.agent, macro=command.macro, number=command.number)
    return Order(do="cancel", agent=command.agent)


def make_app(team: RobotTeam, token: str) -> FastAPI:
    """Return the web application of a team.

    Args:
        team: the team.
        token: what every request must carry, as `Authorization: Bearer TOKEN`.
    """
    post = _Post(team.agents)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        del app
        ticking = asyncio.create_task(_tick(team, post))
        yield
        ticking.cancel()
        team.close()

    async def check(authorization: Annotated[str, Header()] = "") -> None:
        if not _same(authorization.removeprefix("Bearer "), token):
            raise HTTPException(401, "give the token: Authorization: Bearer TOKEN")

    app = FastAPI(
        title="A team of robots", version="1", lifespan=lifespan, docs_url=None, redoc_url=None
    )
    guarded = [Depends(check)]

    @app.exception_handler(EventError)
    @app.exception_handler(ExportError)
    async def refuse(request: Any, error: Exception) -> JSONResponse:
        del request
        return JSONResponse({"detail": str(error)}, 409)

    @app.exception_handler(RequestValidationError)
    async def misshapen(request: Any, error: RequestValidationError) -> Response:
        """Say what is wrong without the wrong value, which JSON may be unable to hold (inf, half a character)."""
        del request
        detail = [{name: one[name] for name in ("loc", "msg", "type")} for one in error.errors()]
        return Response(json.dumps({"detail": detail}), 422, media_type="application/json")

    @app.get("/state", dependencies=guarded)
    async def state() -> State:
        """Return who does what, and which instructions hold."""
        contract = team.contract
        return State(
            agents={name: team.status(name) for name in team.agents},
            macros=dict(zip(team.agents, map(list, contract.macros), strict=True)),
            kinds=list(contract.kinds[1:]),
            predicates=list(contract.predicates),
            instructions=list(team.instructions),
            observation=team.observation_size,
        )

    @app.post("/say", dependencies=guarded)
    async def say(message: Say) -> Said:
        """Give an instruction. If it is not understood, nothing changes and `unsure` is true."""
        reading = None
        if message.text is not None and message.kind is None:
            reading = await asyncio.to_thread(team.read, message.text)  # robots go on meanwhile
        until = None if message.seconds is None else team.now() + message.seconds
        answer: Answer = team.say(
            message.text,
            kind=message.kind,
            to=message.to,
            until=until,
            also=message.also,
            reading=reading,
        )
        orders = await post.send(answer.commands)
        return Said(commands=orders, kind=answer.kind, unsure=answer.unsure, note=answer.note)

    @app.post("/agents/{agent}/observed", dependencies=guarded)
    async def observed(agent: str, message: Observed) -> Orders:
        """Take what an agent sees. If it is idle, it decides."""
        found = team.observed(agent, message.observation, _flags(message.available), message.holds)
        return Orders(commands=await post.send(found))

    @app.post("/agents/{agent}/ended", dependencies=guarded)
    async def ended(agent: str, message: Ended) -> Orders:
        """Take that an agent's macro ended, by itself or because it was cancelled."""
        seen = message.observation, _flags(message.available), message.holds
        found = team.ended(agent, *seen, number=message.number)
        return Orders(commands=await post.send(found))

    @app.post("/agents/{agent}/failed", dependencies=guarded)
    async def failed(agent: str, message: Failed) -> Orders:
        """Take that an agent's macro failed."""
        seen = message.observation, _flags(message.available), message.holds
        found = team.failed(agent, message.why, *seen, number=message.number)
        return Orders(commands=await post.send(found))

    @app.post("/begin", dependencies=guarded)
    async def begin() -> Orders:
        """Begin another job with empty memories."""
        return Orders(commands=await post.send(team.begin()))

    @app.get("/commands/{agent}", dependencies=guarded)
    async def take(
        agent: str, wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT)] = 0.0
    ) -> Orders:
        """Take the commands that wait for an agent; wait for one if there is none."""
        team.status(agent)  # an unknown agent is an error
        return Orders(commands=await post.take(agent, wait))

    @app.websocket("/commands")
    async def listen(line: WebSocket) -> None:
        given = line.headers.get("authorization", "").removeprefix("Bearer ")
        if not _same(given or line.query_params.get("token", ""), token):
            await line.close(1008)
            return
        await line.accept()
        queue: asyncio.Queue[Order] = asyncio.Queue(KEPT)
        post.listeners.add(queue)
        reading = asyncio.create_task(line.receive())  # it ends when the robot is gone
        try:
            with contextlib.suppress(WebSocketDisconnect, RuntimeError):
                while not reading.done():
                    next_one = asyncio.create_task(queue.get())
                    await asyncio.wait({reading, next_one}, return_when=asyncio.FIRST_COMPLETED)
                    if next_one.done():
                        await line.send_text(next_one.result().model_dump_json())
                    else:
                        next_one.cancel()
        finally:
            reading.cancel()
            post.listeners.discard(queue)

    return app


async def _tick(team: RobotTeam, post: _Post) -> None:
    """Let time pass: deadlines, and robots that are silent."""
    while True:
        await asyncio.sleep(TICK_SECONDS)
        await post.send(team.tick())


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(), token.encode())


def _flags(available: list[bool] | None) -> np.ndarray | None:
    return None if available is None else np.array(available, bool)


def serve(
    team: RobotTeam, host: str, port: int, say: Callable[[str], Any], *, token: str = ""
) -> None:
    """Serve a team until Ctrl-C.

    Args:
        team: the team.
        host: the address to listen on.
        port: the port to listen on; 0 takes a free one.
        say: it is told the address and the token.
        token: what requests must carry; empty: a new one.
    """
    import uvicorn

    token = token or secrets.token_urlsafe(16)
    config = uvicorn.Config(
        make_app(team, token),
        http=http_protocol(),
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=2,
    )
    with open_socket(host, port) as listener:
        address = address_of(host, listener.getsockname()[1])
        say(f"the team listens: {address} token {token} (Ctrl-C closes it)")
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))
