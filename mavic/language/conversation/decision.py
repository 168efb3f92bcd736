"""What a line asks for, as data: instructions for agents, now or later, an end, or a question back."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from mavic.language.conversation.cast import Cast

Agents = tuple[int, ...] | None  # None: all


class Read(Protocol):
    """What a sentence is understood as."""

    @property
    def kind(self) -> str:
        """The most probable kind or "end"."""

    @property
    def unsure(self) -> bool:
        """Whether the person must be asked."""

    @property
    def nothing(self) -> bool:
        """Whether nothing is asked for."""

    @property
    def probability(self) -> float:
        """Of this kind."""

    @property
    def note(self) -> str:
        """Why the text cannot be read; empty for a sentence."""

    @property
    def closest(self) -> tuple[str, ...]:
        """The nearest kinds, the best first."""


Reader = Callable[[str], Read]


class Asked(NamedTuple):
    """One instruction: a kind for some agents, and the words that asked for it."""

    kind: str
    agents: Agents = None
    text: str = ""  # words that `read` understands as this kind


class Decision(NamedTuple):
    """What a line asks for."""

    now: tuple[Asked, ...] = ()  # at the same time
    later: tuple[tuple[Asked, ...], ...] = ()  # one after another, when what holds is over
    ends: tuple[str, ...] | None = (
        None  # kinds that end; () ends nothing that holds; None: no end is meant
    )
    adds: bool = False  # it is to hold beside what holds already
    corrects: bool = False  # it replaces what was said last
    unclear: str = ""  # the words about which the person must be asked
    read: Read | None = None  # what these words were understood as
    offers: tuple[Asked, ...] = ()  # what they may mean
    stranger: str = ""  # a name that no agent has

    @property
    def clear(self) -> bool:
        """Whether it can be carried out without asking the person."""
        return not self.unclear and not self.stranger


EVERYTHING = ("*",)  # in `ends`: all that holds


class Context(NamedTuple):
    """What a clause is read in view of."""

    read: Reader
    cast: Cast
    held: tuple[Asked, ...]
    last: tuple[Asked, ...]  # what was said last
