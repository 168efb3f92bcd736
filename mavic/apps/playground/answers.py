"""What a page is told about a sentence: how it was understood, what became of what held, and what may be chosen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

from pydantic import BaseModel

from mavic.apps.playground.orders import Line
from mavic.language.conversation.decision import Asked


def listed(agents: tuple[int, ...] | None) -> list[int] | None:
    """Return agents as a list; None for all."""
    return None if agents is None else list(agents)


class _Near(BaseModel):
    """A phrase of the lexicon that is close to what was said."""

    text: str
    kind: str
    cosine: float


class _Offer(BaseModel):
    """An answer that the person may choose: instructions that would hold then."""

    class One(BaseModel):
        """One of them."""

        text: str
        kind: str
        agents: list[int] | None

    all: list[One]

    @classmethod
    def of(cls, group: Sequence[Asked]) -> _Offer:
        """Return the offer of these instructions."""
        return cls(
            all=[
                cls.One(text=o.text or o.kind, kind=o.kind, agents=listed(o.agents)) for o in group
            ]
        )


class Understood(BaseModel):
    """What a sentence was understood as, and the teams to which it could not be given."""

    type: Literal["understood"] = "understood"
    text: str
    kind: str = "none"
    probability: float = 1.0
    unsure: bool = False
    nearest: list[_Near] = []
    note: str = ""
    refused: list[str] = []
    agents: list[int] | None = None  # whom the first instruction addresses; None: all
    ends: bool = False  # it ends something
    ended: list[str] = []  # the kinds that were ended
    left: list[str] = []  # the kinds that go on
    nothing: bool = False  # it is a remark or a question
    queued: list[str] = []  # what is said after it
    question: str = ""  # what the person must decide first
    offers: list[
        _Offer
    ] = []  # what the person may choose: the answers, or the nearest things that can be done
    also: str = ""  # the kind of a second instruction in the same sentence
    also_agents: list[int] | None = None  # whom that one addresses
    joins: list[str] = []  # the kinds that held before and go on
    replaced: list[str] = []  # the kinds that held before and are over
    unlearnt: bool = False  # the first team was not trained with it

    @classmethod
    def of(cls, line: Line, refused: list[str], given: Collection[str] = ()) -> Understood:
        """Return the message about a line.

        Args:
            line: what the line was understood as.
            refused: the names of the teams to which it could not be given.
            given: the kinds that the first team was trained with; none: it is not known.
        """
        decision, settled, text = line.decision, line.settled, line.text
        kinds = [one.kind for one in settled.holds]
        if decision.ends is not None and not decision.now:
            ended = list(dict.fromkeys(one.kind for one in settled.replaced))
            left = [kind for kind in kinds if kind not in ended]
            return cls(text=text, ends=True, ended=ended, left=left, agents=listed(decision.of))
        offers = [
            _Offer.of(group) for group in settled.offers or [(one,) for one in decision.offers]
        ]
        read = _as_read(decision.read)
        if decision.unclear:
            return cls(text=text, offers=offers, **{**read, "unsure": True})
        if settled.question:
            return cls(text=text, unsure=True, question=settled.question, offers=offers)
        queued = [" and ".join(one.text for one in group) for group in decision.later]
        if not decision.now:
            return cls(text=text, queued=queued)
        first, *more = decision.now
        now = {one.kind for one in decision.now}
        return cls(
            **{**read, "text": text, "kind": first.kind, "nothing": False, "note": ""},
            agents=listed(first.agents),
            also=more[0].kind if more else "",
            also_agents=listed(more[0].agents) if more else None,
            refused=refused,
            queued=queued,
            joins=[kind for kind in kinds if kind not in now],
            replaced=[one.kind for one in settled.replaced],
            unlearnt=bool(given) and not now <= {*given},
        )


def _as_read(read: Any) -> dict[str, Any]:
    """Return what is told of a sentence that was read."""
    if read is None:
        return {}
    return {
        "kind": read.kind,
        "probability": round(read.probability, 4),
        "nothing": read.nothing,
        "note": read.note,
        "nearest": [
            _Near(text=text, kind=kind, cosine=round(float(cosine), 3))
            for text, kind, cosine in read.nearest
        ],
    }
