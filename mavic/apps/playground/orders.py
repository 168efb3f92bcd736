"""What people have asked for in a session: what holds until they end it, what comes next, and what was said when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mavic.apps.playground.limits import LONGEST_LOG, RequestError
from mavic.envs import api
from mavic.hints import suggest
from mavic.language.conversation import hearing, speech
from mavic.language.conversation.hearing import Heard
from mavic.language.lexicon import Lexicon

QUEUED_HOLD = 20  # ticks for which an instruction holds if another waits for its turn
LONGEST_QUEUE = 5
AT_ONCE = 2  # instructions that can hold at the same time


class Order(NamedTuple):
    """One instruction of a person, or two that hold at the same time."""

    heard: Heard
    agents: tuple[int, ...] | None = None  # None: all that no person drives
    hold: int | None = None  # ticks; None: until the person ends it
    line: str = ""  # the person's words
    beside: Order | None = None  # what holds at the same time

    @property
    def addressed(self) -> tuple[int, ...] | None:
        """The agents that either instruction addresses; None: all."""
        if self.beside is None or self.agents is None or self.beside.agents is None:
            return self.agents
        return tuple(sorted({*self.agents, *self.beside.agents}))

    @property
    def unsure(self) -> bool:
        """Whether the person must be asked what is meant."""
        return self.heard.unsure or (self.beside is not None and self.beside.heard.unsure)


class _Said(NamedTuple):
    """What was said at a tick of an episode. An empty text ends what holds."""

    time: int
    text: str
    agents: tuple[int, ...] | None = None
    hold: int | None = None


class Line(NamedTuple):
    """What a typed line asks for."""

    text: str
    orders: tuple[Order, ...] = ()
    together: bool = False  # more orders are meant at the same time than can hold
    ends: bool = False

    @property
    def unclear(self) -> Order | None:
        """The first order about which the person must be asked."""
        return next((order for order in self.orders if order.unsure), None)

    @property
    def clear(self) -> bool:
        """Whether it can be carried out without asking the person."""
        return self.unclear is None and not self.together


@dataclass(kw_only=True)
class Orders:
    """The orders of a session."""

    standing: Order | None = None  # it holds until the person ends it, in later episodes too
    queue: list[Order] = field(default_factory=list)
    log: list[_Said] = field(default_factory=list)  # of the present episode
    cues: list[tuple[int, Order | None]] = field(default_factory=list)  # to be said at a tick

    def note(self, *said: Any) -> None:
        """Log what was said: the fields of `_Said`."""
        self.log = [*self.log, _Said(*said)][-LONGEST_LOG:]

    def take_cues(self, time: int) -> list[Order | None]:
        """Return what is to be said at this tick and forget it. None ends what holds."""
        due = [order for at, order in self.cues if at == time]
        self.cues = [(at, order) for at, order in self.cues if at > time]
        return due


def names_of(world: str, agents: Sequence[str]) -> tuple[str, ...]:
    """Return what people call agents.

    Args:
        world: their world.
        agents: their names in the environment.
    """
    record = api.known(world)
    return tuple(record.agent_word(agent, number) for number, agent in enumerate(agents))


def read_line(
    lexicon: Lexicon,
    names: Sequence[str],
    text: str,
    agents: Sequence[int] | None = None,
    hold: int | None = None,
) -> Line:
    """Return what a typed line asks for.

    Args:
        lexicon: the phrases of the world.
        names: what people call the agents.
        text: the line.
        agents: the agents that the person has chosen; names in the line go before them.
        hold: ticks for which its instructions hold. None: until the person ends them.
    """
    chosen = None if agents is None else tuple(agents)
    whole = hearing.known(lexicon, text)
    if whole is not None:
        return Line(text, (Order(whole, chosen, hold, text),))
    said = speech.parse(text, names)
    if said.stranger:
        raise RequestError(
            f"no agent is called {said.stranger!r}; {suggest(said.stranger, tuple(names))}"
        )
    if said.ends:
        return Line(text, ends=True)
    if len(said.parts) > LONGEST_QUEUE:
        raise RequestError(f"that is more than {LONGEST_QUEUE} instructions in one line")
    orders = tuple(
        _order(lexicon, part, chosen, hold, text if len(said.parts) == 1 else part.text)
        for part in said.parts
    )
    kept = tuple(order for order in orders if not order.heard.ends)
    if orders and not kept:
        return Line(text, ends=True)
    orders = kept  # "never mind, then chop": the new instruction ends the old one anyway
    if said.together and len(orders) == AT_ONCE:
        first, second = orders
        return Line(text, (first._replace(line=text, beside=second),))
    return Line(text, orders, said.together and len(orders) > AT_ONCE)


def _order(
    lexicon: Lexicon,
    part: speech.Clause,
    chosen: tuple[int, ...] | None,
    hold: int | None,
    line: str,
) -> Order:
    """Return the order of one part of a line: one instruction, or two that ", and" joins."""
    agents = chosen if part.agents is None else part.agents
    heard, *more = (
        clause._replace(text=clause.text if clause.text != part.text else line)
        for clause in hearing.clauses(lexicon, part.text)
    )
    beside = Order(more[0], agents, hold, more[0].text) if more else None
    return Order(heard, agents, hold, line, beside)
