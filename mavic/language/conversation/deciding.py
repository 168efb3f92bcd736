"""What a person's line asks for, in view of what holds: kinds for agents, now or later, an end, or a question back.

`decide` goes from large to small: corrections, what comes after what, whom a piece addresses, what it adds, several
things in one sentence, and only then the sentence itself, which `read` understands. A part that names only a thing
("no wait, the wrench") asks of it what the last instruction asked of another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from mavic.language.conversation import speech
from mavic.language.conversation.cast import SIDES, Cast
from mavic.language.conversation.clauses import ended, fragment, joined, several, whole
from mavic.language.conversation.decision import EVERYTHING, Asked, Context, Decision, Reader
from mavic.language.conversation.speech import Clause
from mavic.language.text import END, NONE, fold

MOST_STEPS = 5  # instructions in one line


def decide(
    read: Reader, cast: Cast, line: str, held: Sequence[Asked] = (), last: Sequence[Asked] = ()
) -> Decision:
    """Return what a line asks for.

    Args:
        read: Understands one sentence.
        cast: What can be spoken of.
        line: What a person said.
        held: What holds now.
        last: What was said last; a correction replaces it. Empty: the last of `held`.

    Returns:
        The decision.
    """
    about = Context(read, cast, tuple(held), tuple(last) or tuple(held[-1:]))
    text = re.sub(r"(?<=[a-z])(?=\d)", " ", fold(line)).replace("=", " is ")
    text = " ".join(text.split())
    if _is_phrase(cast, text):
        return Decision(now=(Asked(read(text).kind, None, text),))
    return _line(about, cast.corrected(text))


def _is_phrase(cast: Cast, text: str) -> bool:
    return any(text == fold(phrase) for phrases in cast.phrases.values() for phrase in phrases)


def _line(about: Context, text: str) -> Decision:
    if speech.ends(text):
        return Decision(ends=EVERYTHING)
    back = speech.TAKES_BACK.match(text)
    if back and not re.search(r"[,;]|\b(?:first|and)\b", back["rest"]):
        things = about.cast.spoken_of(back["rest"])
        if things or " about " in text:
            return ended(about, things, back["rest"])
        if speech.WHAT_WAS_SAID.search(back["rest"]):
            return Decision(ends=EVERYTHING)
    if (match := speech.CORRECTS.match(text)) and not _is_fine(about, text):
        found = _corrected(about, text[match.end() :], about.last)
        if found.clear or about.last:
            return found
    if (match := speech.SORRY.search(text)) and about.last:
        return _corrected(about, text[: match.start()], about.last)
    if match := _last_match(speech.CORRECTED, text):
        before = _line(about, text[: match.start()].strip(" ,.;"))
        said = before.now or tuple(asked for asked in before.offers[:1])
        if before.now or _names_thing(about, text[: match.start()]):
            return _corrected(about, text[match.end() :], said)
    if match := speech.LATER.match(text):
        rest = _line(about, text[match.end() :])
        if rest.now and about.held:
            return rest._replace(now=(), later=(rest.now, *rest.later))
        return rest
    return _sequence(about, text)


def _is_fine(about: Context, text: str) -> bool:
    """Return whether a text that begins like a correction is a request of its own: "no pushing", "wait there"."""
    found = about.read(about.cast.plain(text))
    return (
        not found.unsure
        and found.kind not in (END, NONE)
        and not about.held
        and not re.search(r"^\W*(?:no|wait)\W* ?(?:wait|no)\b|,", text)
    )


def _last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = list(pattern.finditer(text))
    return found[-1] if found and found[-1].start() else None


def _corrected(about: Context, rest: str, said: tuple[Asked, ...]) -> Decision:
    """Return what the words after a correction ask for; they replace what was said."""
    if said and (agents := speech.named_alone(rest, about.cast)):
        found = Decision(now=tuple(one._replace(agents=agents) for one in said))
    else:
        found = _line(about._replace(last=said or about.last), rest)
    if not found.now:
        return found
    wrong = _meant_otherwise(about.cast, said or about.last, found.now)
    kept = tuple(one for one in said if one not in (*wrong, *about.last))
    return found._replace(now=(*kept, *found.now), corrects=wrong, adds=False)


def _meant_otherwise(
    cast: Cast, said: tuple[Asked, ...], now: tuple[Asked, ...]
) -> tuple[Asked, ...]:
    """Return what a correction replaces of what was said: what is most alike, or else all."""

    def same_sort(one: Asked, other: Asked) -> bool:
        return bool(cast.sorts(one.kind) & cast.sorts(other.kind))

    def same_use(one: Asked, other: Asked) -> bool:
        return (one.kind in cast.commands) == (other.kind in cast.commands)

    def same_agents(one: Asked, other: Asked) -> bool:
        return one.agents == other.agents and same_use(one, other)

    for alike in (same_sort, same_agents, same_use):
        if found := tuple(one for one in said if any(alike(one, other) for other in now)):
            return found
    return said


def _sequence(about: Context, text: str) -> Decision:
    pieces = speech.steps(text)
    if len(pieces) > MOST_STEPS:
        return Decision(unclear=text, read=about.read(text))
    found = [_piece(about, pieces[0])] if pieces else [_piece(about, text)]
    for piece in pieces[1:]:
        said = next((one.now for one in reversed(found) if one.now), about.last)
        found.append(_piece(about._replace(last=said, held=()), piece))
    if wrong := next((one for one in found if not one.clear), None):
        return wrong
    first, *rest = found
    groups = [one.now for one in rest if one.now]
    if first.ends is not None and groups:  # "never mind, then chop"
        return Decision(now=groups[0], later=tuple(groups[1:]))
    groups = [*first.later, *groups]
    return first._replace(later=tuple(groups))


def _piece(about: Context, text: str) -> Decision:
    """Return what one piece asks for: for one agent or for several, at the same time."""
    before = next((one.agents for one in reversed(about.last) if one.agents is not None), None)
    found = speech.addressed(text, about.cast, before)
    if found.stranger:
        return Decision(stranger=found.stranger)
    decisions: list[Decision] = []
    for part in found.parts:
        if part.agents is not None and speech.ends(part.text):
            decisions.append(Decision(ends=EVERYTHING, of=part.agents))
        else:
            decisions.append(_clause(about, part)._replace(of=part.agents))
            about = about._replace(last=decisions[-1].now or about.last)
    if wrong := next((one for one in decisions if not one.clear), None):
        return wrong
    ending = [one for one in decisions if one.ends is not None]
    if len(ending) > 1:  # for each of them something else
        return Decision(unclear=text)
    now = tuple(asked for one in decisions for asked in one.now)
    adds = any(one.adds for one in decisions)
    return (ending or decisions)[0]._replace(now=now, adds=adds)


def _clause(about: Context, clause: Clause) -> Decision:
    """Return what one clause asks for."""
    text, adds = re.sub(r"^(?:and |so |ok(?:ay)?,? )*now,? (?=\S)", "", clause.text), False
    attempts: tuple[Callable[[Context, Clause], Decision | None], ...]
    attempts = (fragment, several, joined, whole)
    while match := speech.ADDS.search(text):
        text, adds = f"{text[: match.start()]} {text[match.end() :]}".strip(" ,"), True
        if match["same"]:  # an act alone says nothing of what is to become of it
            attempts = (fragment,)
    text = re.sub(rf"\bnot (?:the )?(?=(?:{'|'.join(SIDES)})\b)", "not the ", text)
    if match := speech.NOT_STOPPING.match(text):
        text = f"keep {match['doing']}"
    elif speech.KEEPS_ON.match(text):
        stop = about.read("stop")
        return Decision(ends=() if stop.unsure or stop.kind == END else (stop.kind,))
    for attempt in attempts:
        found = attempt(about, Clause(text, clause.agents))
        if found is not None:
            return found._replace(adds=True, corrects=()) if adds else found
    return Decision(unclear=clause.text)


def _names_thing(about: Context, text: str) -> bool:
    return bool(about.cast.mentions(text))
