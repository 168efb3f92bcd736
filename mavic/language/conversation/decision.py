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
    hold: int | None = None  # ticks; None: until the person ends it


class Decision(NamedTuple):
    """What a line asks for."""

    now: tuple[Asked, ...] = ()  # at the same time
    later: tuple[tuple[Asked, ...], ...] = ()  # one after another, when what holds is over
    ends: tuple[str, ...] | None = (
        None  # kinds that end; () ends nothing that holds; None: no end is meant
    )
    of: Agents = None  # whose instructions end; None: everybody's
    adds: bool = False  # it is to hold beside what holds already
    corrects: tuple[Asked, ...] = ()  # what it replaces of what was said before
    unclear: str = ""  # the words about which the person must be asked
    read: Read | None = None  # what these words were understood as
    offers: tuple[Asked, ...] = ()  # what they may mean
    stranger: str = ""  # a name that no agent has

    @property
    def clear(self) -> bool:
        """Whether it can be carried out without asking the person."""
        return not self.unclear and not self.stranger

    @property
    def ends_all(self) -> bool:
        """Whether it ends all that holds and all that waits."""
        return self.ends == EVERYTHING and self.of is None

    def is_over(self, one: Asked) -> bool:
        """Return whether it ends an instruction, for some agent."""
        return self.ends is not None and (self.ends == EVERYTHING or one.kind in self.ends)


EVERYTHING = ("*",)  # in `ends`: all that holds


class Context(NamedTuple):
    """What a clause is read in view of."""

    read: Reader
    cast: Cast
    held: tuple[Asked, ...]
    last: tuple[Asked, ...]  # what was said last
