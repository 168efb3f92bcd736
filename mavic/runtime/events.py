"""What goes out of a team: commands to robots, answers to people, and the error of a wrong event.

It needs the standard library alone, as the client does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mavic.language.text import NONE, shown

LONGEST_MESSAGE = 1000


class EventError(ValueError):
    """An event cannot be taken: an unknown agent, a wrong shape, or an event out of order. It is one line."""

    def __init__(self, why: str) -> None:
        """Say why.

        Args:
            why: the message, which may hold what the caller gave, such as an array.
        """
        super().__init__(shown(why, LONGEST_MESSAGE))


@dataclass(frozen=True)
class Start:
    """The robot starts a macro. `number` counts decisions; a robot gives it back with `ended` or `failed`."""

    agent: str
    macro: str
    number: int


@dataclass(frozen=True)
class Cancel:
    """The robot stops what it does and reports `ended`."""

    agent: str


Command = Start | Cancel


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What became of words: the commands, and how they were understood."""

    commands: tuple[Command, ...] = ()
    kind: str = NONE  # the kind that was given, "end", or "none"
    unsure: bool = False  # nothing was changed: ask the person
    note: str = ""  # why, if a reason is known


def listed(to: Sequence[str | int]) -> list[str | int]:
    """Return the agents that `to` lists. A single name is an error, for its letters are no agents.

    Args:
        to: names or numbers of agents.
    """
    if isinstance(to, str) or not hasattr(to, "__iter__"):
        raise EventError(f"to must be a list of agents, such as [{to!r}]")
    return list(to)
