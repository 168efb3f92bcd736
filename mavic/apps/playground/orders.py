"""What people have asked for in a session: what holds until they end it, what comes next, and what was said when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from mavic.apps.playground.limits import LONGEST_LOG, RequestError
from mavic.hints import suggest
from mavic.language.conversation import hearing
from mavic.language.conversation.cast import Cast
from mavic.language.conversation.deciding import decide
from mavic.language.conversation.decision import Asked, Decision
from mavic.language.conversation.hearing import Heard
from mavic.language.conversation.settling import Rules, Settled, settle
from mavic.language.lexicon import Lexicon
from mavic.language.text import END, fold

QUEUED_HOLD = 20  # ticks for which an instruction holds if another waits for its turn
ENDS = f"{END}:"  # begins a line of the log that ends one kind: "end:stay"


class Order(NamedTuple):
    """One instruction of a person."""

    heard: Heard
    agents: tuple[int, ...] | None = None  # None: all that no person drives
    hold: int | None = None  # ticks; None: until the person ends it
    text: str = ""  # words that ask for it whatever was said before

    @property
    def asked(self) -> Asked:
        """The order as a conversation speaks of it."""
        return Asked(self.heard.kind, self.agents, self.text or self.heard.text, self.hold)


class Said(NamedTuple):
    """What was said at a tick of an episode. An empty text ends what holds, and "end:KIND" ends one kind."""

    time: int
    text: str
    agents: tuple[int, ...] | None = None
    hold: int | None = None


class Line(NamedTuple):
    """What a typed line asks for, in view of what holds."""

    text: str
    decision: Decision
    settled: Settled = Settled()
    hold: int | None = None
    chosen: tuple[int, ...] | None = None  # the agents that the person has chosen beside the words

    @property
    def clear(self) -> bool:
        """Whether it can be carried out without asking the person."""
        return self.decision.clear and not self.settled.question


@dataclass(kw_only=True)
class Orders:
    """The orders of a session."""

    holding: list[Order] = field(default_factory=list)  # the oldest first
    queue: list[tuple[Order, ...]] = field(default_factory=list)  # each group is given at once
    last: tuple[Asked, ...] = ()  # what was said last; a correction replaces it
    offers: tuple[tuple[Asked, ...], ...] = ()  # the answers to the last question
    log: list[Said] = field(default_factory=list)  # of the present episode
    cues: list[Said] = field(default_factory=list)  # to be said at a tick

    @property
    def asked(self) -> tuple[Asked, ...]:
        """What holds, as a conversation speaks of it."""
        return tuple(order.asked for order in self.holding)

    @property
    def standing(self) -> list[Order]:
        """What holds until the person ends it, in later episodes too."""
        return [order for order in self.holding if order.hold is None]

    def note(self, *said: Any) -> None:
        """Log what was said: the fields of `Said`."""
        self.log = [*self.log, Said(*said)][-LONGEST_LOG:]

    def take_cues(self, time: int) -> list[Said]:
        """Return what is to be said at this tick and forget it."""
        due = [cue for cue in self.cues if cue.time == time]
        self.cues = [cue for cue in self.cues if cue.time > time]
        return due

    def drop_over(self, holding: Sequence[Asked]) -> None:
        """Forget the orders that no team follows any more: their time is over, or they were fulfilled."""
        kinds = {asked.kind for asked in holding}
        self.holding = [order for order in self.holding if order.heard.kind in kinds]


def read_line(
    lexicon: Lexicon,
    cast: Cast,
    rules: Rules,
    text: str,
    agents: Sequence[int] | None = None,
    hold: int | None = None,
    orders: Orders | None = None,
) -> Line:
    """Return what a typed line asks for.

    Args:
        lexicon: The phrases of the world.
        cast: What can be spoken of.
        rules: What can hold together.
        text: The line.
        agents: The agents that the person has chosen; names in the line go before them.
        hold: Ticks for which its instructions hold. None: until the person ends them.
        orders: What was ordered before. None: nothing.
    """
    orders = orders or Orders()
    chosen = None if agents is None else tuple(agents)
    held, last = orders.asked, orders.last
    if text.startswith(ENDS) and (kind := text.removeprefix(ENDS)) in lexicon.names:
        decision = Decision(ends=(kind,))
    elif text in lexicon.names[1:]:
        decision = Decision(now=(Asked(text, None, text),))
    else:
        decision = decide(partial(hearing.hear, lexicon), cast, text, held, last)
    if decision.stranger:
        why = f"no agent is called {decision.stranger!r}; {suggest(decision.stranger, cast.agents)}"
        raise RequestError(why)
    if chosen is not None:
        decision = decision._replace(
            now=_to(decision.now, chosen),
            later=tuple(_to(group, chosen) for group in decision.later),
            offers=_to(decision.offers, chosen),
            of=chosen if decision.of is None else decision.of,
        )
    return Line(text, decision, settle(rules, held, decision), hold, chosen)


def order_of(lexicon: Lexicon, asked: Asked, hold: int | None = None, line: str = "") -> Order:
    """Return an instruction as an order.

    A team hears the person's own sentence where that is all that was read. Where the conversation read it in view of
    other words ("no wait, the right one"), the team hears a training phrase; the page shows the person's words.

    Args:
        lexicon: The phrases of the world.
        asked: The instruction.
        hold: Ticks for which it holds unless its words say so; None: until the person ends it.
        line: The person's words, if they asked for nothing else.
    """
    heard = hearing.hear(lexicon, asked.text or asked.kind)
    if heard.kind != asked.kind or heard.unsure:
        heard = hearing.hear(lexicon, asked.kind)
    text = heard.text
    if line and fold(line) != fold(heard.text):
        heard = heard._replace(text=line, own_row=heard.row)
    return Order(heard, asked.agents, hold if asked.hold is None else asked.hold, text)


def _to(group: Sequence[Asked], agents: tuple[int, ...]) -> tuple[Asked, ...]:
    return tuple(one if one.agents is not None else one._replace(agents=agents) for one in group)
