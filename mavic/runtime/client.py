"""A client of `mavic serve`, with the standard library alone."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from typing import Any

from mavic.language.reader.endpoint import SCHEMES
from mavic.runtime.events import Answer, Cancel, Command, EventError, Start, listed


class ServerError(ConnectionError):
    """The server cannot be reached, or does not answer as it should."""


class Client:
    """The events of a `RobotTeam`, sent to a server. A wrong event is an `EventError`, as it is there."""

    def __init__(self, url: str, token: str, *, seconds: float = 10.0) -> None:
        """Describe the server.

        Args:
            url: such as "http://127.0.0.1:8643".
            token: what the server printed when it started.
            seconds: how long to wait for an answer.
        """
        if not str(url).startswith(SCHEMES):
            raise ValueError(f"url {url!r} is no address; it begins with http:// or https://")
        self.url, self._token, self._seconds = url.rstrip("/"), token, seconds

    def state(self) -> dict[str, Any]:
        """Return who does what, the names of macros and kinds, and which instructions hold."""
        return self._ask("GET", "/state")

    def say(
        self,
        text: str | None = None,
        *,
        kind: str | None = None,
        to: Sequence[str] | None = None,
        seconds: float | None = None,
        also: bool = False,
    ) -> Answer:
        """Give an instruction in words or by its kind, as `RobotTeam.say` does; it holds for `seconds`."""
        whom = None if to is None else listed(to)
        body = dict(text=text, kind=kind, to=whom, seconds=seconds, also=also)
        found = self._ask("POST", "/say", body)
        return Answer(
            commands=_commands(found),
            kind=found["kind"],
            unsure=found["unsure"],
            note=found["note"],
        )

    def observed(
        self, agent: str, observation: Any, available: Any = None, holds: Any = None
    ) -> tuple[Command, ...]:
        """Say what an agent sees, as `RobotTeam.observed` does."""
        return self._event(agent, "observed", observation, available, holds)

    def ended(
        self,
        agent: str,
        observation: Any = None,
        available: Any = None,
        holds: Any = None,
        *,
        number: int | None = None,
    ) -> tuple[Command, ...]:
        """Say that an agent's macro ended, as `RobotTeam.ended` does."""
        return self._event(agent, "ended", observation, available, holds, number=number)

    def failed(
        self,
        agent: str,
        why: str = "",
        observation: Any = None,
        available: Any = None,
        holds: Any = None,
        *,
        number: int | None = None,
    ) -> tuple[Command, ...]:
        """Say that an agent's macro failed, as `RobotTeam.failed` does."""
        return self._event(agent, "failed", observation, available, holds, number=number, why=why)

    def begin(self) -> tuple[Command, ...]:
        """Begin another job."""
        return _commands(self._ask("POST", "/begin"))

    def commands(self, agent: str, wait: float = 0.0) -> tuple[Command, ...]:
        """Take the commands that wait for an agent.

        Args:
            agent: its name.
            wait: how many seconds to wait if there is none, at most 30.
        """
        path = f"/commands/{urllib.parse.quote(agent, safe='')}?wait={wait}"
        return _commands(self._ask("GET", path, seconds=self._seconds + wait))

    def _event(
        self, agent: str, event: str, observation: Any, available: Any, holds: Any, **more: Any
    ) -> tuple[Command, ...]:
        body = {
            "observation": _plain(observation, float, "observation must be numbers"),
            "available": _plain(available, bool, "available must be booleans"),
            "holds": _predicates(holds),
        }
        path = f"/agents/{urllib.parse.quote(agent, safe='')}/{event}"
        return _commands(self._ask("POST", path, body | more))

    def _ask(self, method: str, path: str, body: Any = None, seconds: float | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        try:
            data = (
                json.dumps(body if body is not None else {}).encode() if method == "POST" else None
            )
        except (TypeError, ValueError) as error:
            raise EventError(f"the event cannot be sent as JSON ({error})") from None
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=seconds or self._seconds) as reply:
                return json.loads(reply.read())
        except urllib.error.HTTPError as error:
            with error:
                raise _refusal(error) from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            why = getattr(error, "reason", None) or error
            raise ServerError(f"{self.url}: the server cannot be reached ({why})") from None


def _refusal(error: urllib.error.HTTPError) -> Exception:
    try:
        detail = json.loads(error.read())["detail"]
    except (ValueError, LookupError, TypeError):
        detail = error.reason
    if isinstance(detail, list):  # a message of the wrong shape
        detail = "; ".join(f"{'.'.join(map(str, d['loc'][1:]))}: {d['msg']}" for d in detail)
    if error.code in (409, 422):
        return EventError(str(detail))
    return ServerError(f"{error.url}: {detail} (HTTP {error.code})")


def _plain(values: Any, kind: type, wanted: str) -> list[Any] | None:
    try:
        return None if values is None else [kind(value) for value in values]
    except (TypeError, ValueError, OverflowError):
        raise EventError(wanted) from None


def _predicates(holds: Any) -> dict[str, list[str]] | None:
    try:
        return None if holds is None else {name: list(macros) for name, macros in holds.items()}
    except (TypeError, AttributeError):
        raise EventError("holds: it must map predicates to macros") from None


def _commands(found: dict[str, Any]) -> tuple[Command, ...]:
    return tuple(
        Start(one["agent"], one["macro"], one["number"])
        if one["do"] == "start"
        else Cancel(one["agent"])
        for one in found["commands"]
    )
