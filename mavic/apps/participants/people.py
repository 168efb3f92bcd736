"""Who takes part: each person with a record and perhaps an open page, and the groups that share a kitchen."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from typing import Any

from fastapi import WebSocket
from pydantic import BaseModel

from mavic.apps.participants.kitchen import Kitchen
from mavic.apps.participants.messages import Other
from mavic.apps.participants.records import LEFT, Record

SEND_TIMEOUT = 5.0  # seconds; a page that takes longer to receive a message is closed


@dataclass(kw_only=True)
class Person:
    """A participant."""

    number: int  # from 1
    place: int  # in the kitchen: 0 or 1
    record: Record
    kitchen: Group
    socket: WebSocket | None = None  # of the page that is open
    since: float = 0.0  # when it was opened
    before: float = 0.0  # seconds that earlier pages were open
    ready: int = -1  # the step that the person wants to begin

    @property
    def seconds(self) -> float:
        """How long the page has been open so far."""
        return self.before + (time.monotonic() - self.since if self.socket is not None else 0.0)

    def note(self, what: str, **more: Any) -> None:
        """Write a line of the record."""
        self.record.write(at=round(self.seconds, 2), what=what, **more)

    async def send(self, *told: BaseModel) -> None:
        """Send messages to the person's page, if one is open."""
        socket = self.socket
        for message in told:
            if socket is None:
                return
            try:
                await asyncio.wait_for(socket.send_text(message.model_dump_json()), SEND_TIMEOUT)
            except TimeoutError:
                with contextlib.suppress(Exception):
                    await asyncio.wait_for(socket.close(), SEND_TIMEOUT)
                return
            except Exception:  # the page is gone; its own task notices and says so
                return

    @property
    def there(self) -> bool:
        """Whether a page is open and the person has not gone."""
        return self.socket is not None and not self.record.gone


@dataclass(kw_only=True)
class Group:
    """The people who share a kitchen, and the task that they do."""

    number: int
    people: list[Person] = field(default_factory=list)
    task: Kitchen | None = None
    clock: asyncio.Task[None] | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)  # only its holder changes the group
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    hurried: bool = False  # a tick is wanted at once

    @property
    def row(self) -> int | None:
        """The order of worlds and teams; None before somebody has begun."""
        begun = [person.record.begun for person in self.people]
        return next((int(one["order"]) for one in begun if one is not None), None)

    @property
    def left(self) -> bool:
        """Whether a person has left, so that the order is free for others."""
        return any(person.record.gone in LEFT for person in self.people)

    def staying(self) -> list[Person]:
        """Return the people who have not gone and who do not go on alone."""
        return [p for p in self.people if not p.record.gone and not p.record.alone]

    def complete(self) -> bool:
        """Whether everybody who is needed has the page open."""
        return len(self.staying()) == len(self.people) and all(p.there for p in self.people)

    def note(self, what: str, **more: Any) -> None:
        """Write a line into the record of each person."""
        for person in self.people:
            person.note(what, **more)

    async def send(self, *told: BaseModel) -> None:
        """Send messages to each person's page."""
        for person in self.people:
            await person.send(*told)

    async def tell_others(self) -> None:
        """Tell each person whether the other one is there."""
        if len(self.people) < 2:
            return
        for person, other in zip(self.people, reversed(self.people), strict=True):
            gone = other.record.gone or other.record.alone
            state = "gone" if gone else "there" if other.there else "away"
            await person.send(Other.model_validate({"state": state}))

    def stop(self) -> None:
        """Stop the task and its clock."""
        self.task = None
        if self.clock is not None:
            self.clock.cancel()
            self.clock = None
