"""What a person's line asks for, in view of what holds: kinds for agents, now or later, an end, or a question back.

`decide` goes from large to small: corrections, what comes after what, whom a piece addresses, what it adds, several
things in one sentence, and only then the sentence itself, which `read` understands. A part that names only a thing
("no wait, the wrench") asks of it what the last instruction asked of another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from mavic.language.conversation import speech
from mavic.language.conversation.cast import NUMBERS, SIDES, Cast
from mavic.language.conversation.speech import Clause
from mavic.language.reader.spelling import cues_of
from mavic.language.text import END, NONE, fold

Agents = tuple[int, ...] | None  # None: all
MOST_STEPS = 5  # instructions in one line


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


class _Context(NamedTuple):
    read: Reader
    cast: Cast
    held: tuple[Asked, ...]
    last: tuple[Asked, ...]  # what was said last


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
    about = _Context(read, cast, tuple(held), tuple(last) or tuple(held[-1:]))
    text = " ".join(re.sub(r"(?<=[a-z])(?=\d)", " ", fold(line)).split())
    if _is_phrase(cast, text):
        return Decision(now=(Asked(read(text).kind, None, text),))
    return _line(about, cast.corrected(text))


def _is_phrase(cast: Cast, text: str) -> bool:
    return any(text == fold(phrase) for phrases in cast.phrases.values() for phrase in phrases)


def _line(about: _Context, text: str) -> Decision:
    if speech.ends(text):
        return Decision(ends=EVERYTHING)
    back = speech.TAKES_BACK.match(text)
    if back and not re.search(r"[,;]|\bfirst\b", back["rest"]):
        things = about.cast.spoken_of(back["rest"])
        if things:
            return _ended(about, things, text)
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


def _is_fine(about: _Context, text: str) -> bool:
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


def _corrected(about: _Context, rest: str, said: tuple[Asked, ...]) -> Decision:
    """Return what the words after a correction ask for; they replace what was said."""
    found = _line(about._replace(last=said or about.last), rest)
    return found._replace(corrects=True, adds=False) if found.now else found


def _sequence(about: _Context, text: str) -> Decision:
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


def _piece(about: _Context, text: str) -> Decision:
    """Return what one piece asks for: for one agent or for several, at the same time."""
    before = next((one.agents for one in reversed(about.last) if one.agents is not None), None)
    found = speech.addressed(text, about.cast, before)
    if found.stranger:
        return Decision(stranger=found.stranger)
    decisions: list[Decision] = []
    for part in found.parts:
        if part.agents is not None and speech.ends(part.text):
            decisions.append(Decision(ends=EVERYTHING))
        else:
            decisions.append(_clause(about, part))
    if wrong := next((one for one in decisions if not one.clear), None):
        return wrong
    if len(decisions) == 1:
        return decisions[0]
    now = tuple(asked for one in decisions for asked in one.now)
    return Decision(now=now, adds=any(one.adds for one in decisions)) if now else decisions[0]


def _clause(about: _Context, clause: Clause) -> Decision:
    """Return what one clause asks for."""
    text, adds = clause.text, False
    same_for = bool(speech.SAME_FOR.search(text))
    while match := speech.ADDS.search(text):
        text, adds = f"{text[: match.start()]} {text[match.end() :]}".strip(" ,"), True
    text = re.sub(rf"\bnot (?:the )?(?=(?:{'|'.join(SIDES)})\b)", "not the ", text)
    if match := speech.NOT_STOPPING.match(text):
        text = f"keep {match['doing']}"
    elif speech.KEEPS_ON.match(text):
        stop = about.read("stop")
        return Decision(ends=() if stop.unsure or stop.kind == END else (stop.kind,))
    for attempt in (_fragment, _several, _joined, _whole):
        found = attempt(about, Clause(text, clause.agents), adds, same_for)
        if found is not None:
            return found._replace(adds=found.adds or adds)
    raise AssertionError("the whole clause always gives an answer")


def _names_thing(about: _Context, text: str) -> bool:
    return bool(about.cast.mentions(text))


def _fragment(about: _Context, clause: Clause, adds: bool, same_for: bool) -> Decision | None:
    """Return what a clause asks for that names a thing and no act; None if it is a sentence."""
    cast, text = about.cast, clause.text
    model = next((one for one in reversed(about.last) if one.kind in cast.about), None)
    things, rest = _named(about, text, model)
    if not things or not speech.FRAGMENT.match(rest.strip(" ,.!")):
        return None
    if model is not None and (adds or same_for or about.last) and not _own_verb(rest):
        agents = model.agents if clause.agents is None else clause.agents
        kinds = _counterparts(cast, model.kind, things)
        if kinds:
            return Decision(
                now=tuple(Asked(kind, agents, cast.phrase(kind)) for kind in kinds),
                corrects=not adds,
            )
    kinds = tuple(
        kind for kind in cast.kinds_about(things) if cast.about[kind].things <= set(things)
    )
    no = bool(re.search(r"\b(?:no|not|nor)\b", rest))
    wanting, forbidding = (
        [k for k in kinds if cast.about[k].wants is wants] for wants in (True, False)
    )
    if (len(kinds) == len(wanting) == 1 and not no) or (
        len(forbidding) == 1 and no and not about.last
    ):
        (kind,) = forbidding if no else wanting
        return Decision(now=(Asked(kind, clause.agents, cast.phrase(kind)),))
    return None


def _own_verb(rest: str) -> bool:
    """Return whether a fragment says by itself what to do with the thing: "use", "take", "not"."""
    return bool(re.search(r"\b(?:use|take|go|get|need)\b", rest))


def _named(about: _Context, text: str, model: Asked | None) -> tuple[tuple[str, ...], str]:
    """Return the things that a fragment names, and its other words. "the other one" is the twin of the last thing.

    Of "not the left one, the right one" only what is not negated counts.
    """
    cast = about.cast
    if match := re.match(r"^not (?P<no>.+?)(?:,| but) (?P<yes>.+)$", text):
        denied = re.search(r"\b(?:no|not|nor)\b", match["yes"])
        if (
            not denied
            and _named(about, match["no"], model)[0]
            and (yes := _named(about, match["yes"], model))[0]
        ):
            return yes
    mentions = cast.mentions(text)
    rest = text
    for mention in reversed(mentions):
        rest = f"{rest[: mention.start]} {rest[mention.end :]}"
    things = tuple(dict.fromkeys(thing for m in mentions for thing in m.things))
    if things or model is None:
        return things, rest
    own = sorted(cast.about[model.kind].things)
    if re.search(r"\bboth\b", text):
        return cast.alike(own[0]), re.sub(r"\bboth(?: of (?:them|those))?\b", " ", text)
    if match := re.search(r"\bother(?: \w+)?\b", text):
        twin = cast.twin(own[0]) if len(own) == 1 else None
        return ((twin,) if twin else ()), text.replace(match[0], " ")
    for side in SIDES:
        if match := re.search(rf"\b{side}(?:[- ]hand)?(?: side)?(?: one)?\b", text):
            found = tuple(thing for thing in cast.alike(own[0]) if thing.startswith(side))
            return found, text.replace(match[0], " ")
    if match := re.search(r"\b(?:number )?(\d+)\b", text):
        found = tuple(t for t in cast.alike(own[0]) if t.endswith(f" {match[1]}"))
        return found, text.replace(match[0], " ")
    return (), text


def _counterparts(cast: Cast, kind: str, things: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds that ask of these things what a kind asks of its own: one for all of them, or one for each."""
    if (one := cast.counterpart(kind, things)) is not None:
        return (one,)
    found = [cast.counterpart(kind, (thing,)) for thing in things]
    return tuple(one for one in found if one) if all(found) else ()


def _several(about: _Context, clause: Clause, adds: bool, same_for: bool) -> Decision | None:
    """Return what a clause asks for that names several things after one verb: "leave plate 1 and the left oven alone".

    It is read once for each thing. None if it names one thing, or contrasts two.
    """
    cast, text = about.cast, clause.text
    mentions = [m for m in cast.mentions(text) if len(m.things) == 1]
    if not 2 <= len(mentions) <= 3 or len({m.things for m in mentions}) < len(mentions):
        return None
    between = [text[a.end : b.start] for a, b in zip(mentions, mentions[1:], strict=False)]
    joined = r"[ ,]*(?:and|or|nor|,)?(?: also| then)?(?: the| from(?: the)?| on(?: the)?| to(?: the)?)? *"
    if not all(re.fullmatch(joined, gap) and re.search(r"and|or|nor|,", gap) for gap in between):
        return None
    if re.search(r"\b(?:instead|rather|before|than)\b|^not [^,]+,", text):
        return None
    first, last = mentions[0].start, mentions[-1].end
    asked = []
    for mention in mentions:
        words = text[:first] + text[mention.start : mention.end] + text[last:]
        found = _whole(about, Clause(words, clause.agents), adds, same_for)
        if found is None or len(found.now) != 1:
            return None
        asked.append(found.now[0])
    kinds = tuple(dict.fromkeys(one.kind for one in asked))
    if len(kinds) != len(mentions):
        return None
    things = [thing for mention in mentions for thing in mention.things]
    if (group := cast.counterpart(kinds[0], things)) is not None:
        return Decision(now=(Asked(group, clause.agents, cast.phrase(group)),))
    return Decision(now=tuple(asked))


def _joined(about: _Context, clause: Clause, adds: bool, same_for: bool) -> Decision | None:
    """Return what two or three clauses ask for that "and" joins; None if they are not requests of their own.

    Two commands for the same agents cannot be done at once, so they come one after the other.
    """
    parts = re.split(r"[,;.]\s*(?:and|but)\s+|\s+(?:and|but|while)\s+|[.;]\s+", clause.text)
    parts = [part.strip(" ,") for part in parts if part.strip(" ,")]
    if not 2 <= len(parts) <= 3:
        return None
    found = [
        _whole(
            about, Clause(re.sub(r"^(?:also|then|you) ", "", part), clause.agents), adds, same_for
        )
        for part in parts
    ]
    asked = [one.now[0] for one in found if one is not None and len(one.now) == 1]
    if len(asked) != len(parts) or len({one.kind for one in asked}) != len(parts):
        return None
    if sum(one.kind in about.cast.commands for one in asked) > 1:
        return Decision(now=(asked[0],), later=tuple((one,) for one in asked[1:]))
    return Decision(now=tuple(asked))


def _whole(about: _Context, clause: Clause, adds: bool, same_for: bool) -> Decision:
    """Return what a clause asks for that is read as one sentence."""
    cast = about.cast
    text = cast.plain(_with_noun(about, clause.text))
    if (match := _USABLE.match(text)) and (things := cast.spoken_of(match["it"])):
        if any(o.kind in cast.about and cast.about[o.kind].things & things for o in about.held):
            return _ended(about, things, text)
    if match := _UNUSABLE.match(text):
        forbidding = [
            k for k in cast.kinds_about(_things(cast, match["it"])) if not cast.about[k].wants
        ]
        if len(forbidding) >= 1 and _things(cast, match["it"]) == cast.about[forbidding[0]].things:
            return Decision(
                now=(Asked(forbidding[0], clause.agents, cast.phrase(forbidding[0])),)
            )
    found = about.read(text)
    if found.unsure and (short := speech.without_courtesy(text)) != text:
        brief = about.read(short)
        found, text = (brief, short) if not brief.unsure else (found, text)
    if found.unsure and not found.note and _agrees(cast, found, text):
        return Decision(now=(Asked(found.kind, clause.agents, cast.phrase(found.kind)),))
    if not found.unsure and (other := _other_way(cast, found.kind, text)):
        return Decision(now=(Asked(other, clause.agents, cast.phrase(other)),))
    if not found.unsure and found.kind == END:
        return _ended(about, cast.spoken_of(text), text)
    if not found.unsure and not found.nothing and _is_named(cast, found.kind, text):
        return Decision(now=(Asked(found.kind, clause.agents, text),), read=found)
    return Decision(unclear=clause.text, read=found, offers=_offers(about, clause, found))


_UNUSABLE = re.compile(
    r"^(?:sorry,? )?(?:the |my )?(?P<it>.+?)(?: is|'s| are| seems| looks)(?: now| currently| already| way| too| totally| completely)* "
    r"(?:broken|out of order|off[ -]limits|closed|taken|occupied|blocked|reserved|mine|dirty|filthy|defective|defect|forbidden"
    r"|prohibited|in use|not working|not available|unavailable|not allowed|dangerous|no good|kaputt?|busted|cracked)(?: now| today| at the moment)?$"
)
_USABLE = re.compile(
    r"^(?:ok,? )?(?:the |my )?(?P<it>.+?)(?: is|'s| are)(?: now| all)* (?:ok|okay|fine|free|available|clean|clear|repaired|fixed|open|working|usable|allowed"
    r"|back|safe|all right|alright|yours)(?: again| now| for you)*$"
)
_USES = re.compile(
    r"^(?:please |just |always |only |better )*(?:use|do (?:all )?(?:your|the) \w+ (?:on|in|at)|(?:work|chop|cut|cook|bake) (?:\w+ )?(?:on|in|at))\b"
)
LEAST_AGREEING = {
    True: 0.2,
    False: 0.5,
}  # the least probability, by whether the kind wants the thing that is named


def _with_noun(about: _Context, text: str) -> str:
    """Return a text in which "the left one" has the noun of what was said last: "the left oven"."""
    model = next((one for one in reversed(about.last) if one.kind in about.cast.about), None)
    match = re.search(rf"\b(?P<side>{'|'.join(SIDES)}) one\b", text)
    if model is None or match is None:
        return text
    own = min(about.cast.about[model.kind].things)
    found = [thing for thing in about.cast.alike(own) if thing.startswith(match["side"])]
    return text.replace(match[0], found[0]) if found else text


def _is_named(cast: Cast, kind: str, text: str) -> bool:
    """Return whether a text that is understood as a kind names its thing, if the thing has a number.

    Of "the red one" the reader may think that it speaks of number one.
    """
    about = cast.about.get(kind)
    if (
        about is None
        or not all(thing[-1:].isdigit() for thing in about.things)
        or cast.mentions(text)
    ):
        return True
    return bool(
        re.search(
            rf"\d|\b(?:{'|'.join(NUMBERS[2:])}|zero|first|second)\b|(?:^|number |no )one\b", text
        )
    ) and not re.search(r"\b(?!number)\w+ one first", text)


def _things(cast: Cast, text: str) -> frozenset[str]:
    """Return the things that a text names if it names nothing else."""
    mentions = cast.mentions(text)
    whole = len(mentions) == 1 and not (text[: mentions[0].start] + text[mentions[0].end :]).strip()
    return frozenset(mentions[0].things) if whole else frozenset()


def _agrees(cast: Cast, found: Read, text: str) -> bool:
    """Return whether the most probable kind is about the very thing that a request names, and nothing else could be.

    A kind that the reader takes for less than certain is then believed.
    """
    about, named = cast.about.get(found.kind), {t for m in cast.mentions(text) for t in m.things}
    if about is None or about.things != named or found.probability < LEAST_AGREEING[about.wants]:
        return False
    cues = {*cues_of(text)} - {"<ask>"}
    if about.wants:
        rivals = [kind for kind in cast.kinds_about(named) if kind != found.kind]
        return not rivals and not cues & _NO_REQUEST
    return bool(cues & {"<not>", "<stop>"}) and not cues & (_NO_REQUEST - {"<not>", "<stop>"})


def _other_way(cast: Cast, kind: str, text: str) -> str | None:
    """Return the kind that forbids the twin, where a sentence plainly says to use the thing that `kind` forbids."""
    about, named = cast.about.get(kind), {t for m in cast.mentions(text) for t in m.things}
    if about is None or about.wants or about.things != named or len(named) != 1:
        return None
    if not _USES.match(text) or {*cues_of(text)} & {"<not>", "<stop>"}:
        return None
    twin = cast.twin(next(iter(named)))
    return cast.counterpart(kind, (twin,)) if twin else None


_NO_REQUEST = frozenset(
    (
        "<not>",
        "<stop>",
        "<past>",
        "<thanks>",
        "<question>",
        "<later>",
        "<report>",
        "<no longer>",
        "<no need>",
        "<take back>",
        "<may>",
        "<open>",
    )
)


def _offers(about: _Context, clause: Clause, found: Read) -> tuple[Asked, ...]:
    """Return the nearest things that can be asked for: about what the words name, and what the reader thinks near."""
    cast = about.cast
    named = {thing for mention in cast.mentions(clause.text) for thing in mention.things}
    kinds: Collection[str] = dict.fromkeys((*cast.kinds_about(named), *found.closest))
    return tuple(Asked(kind, clause.agents, cast.phrase(kind)) for kind in kinds)[:4]


_ALL = re.compile(r"\b(?:everything|anything|all)\b")
_FUNCTION = frozenset(
    "a an the you your we us it they them that this can may could might again now is are be use used go get to on of for and or so "
    "in at with any more longer free fine ok okay allowed no not need don't have do i i'm me my there all please".split()
)


def _ended(about: _Context, things: set[str], text: str) -> Decision:
    """Return which kinds a sentence ends: those about the things it names, or about the act; otherwise all."""
    cast, held = about.cast, [one.kind for one in about.held]
    if things:
        return Decision(
            ends=tuple(k for k in held if k in cast.about and cast.about[k].things & things)
        )
    if not held or _ALL.search(text):
        return Decision(ends=EVERYTHING)
    words = _stems(text)
    share = {
        kind: words & _stems(" ".join((*cast.phrases[kind], kind)))
        for kind in held
        if kind in cast.phrases
    }
    meant = tuple(kind for kind, shared in share.items() if shared)
    if meant and len(meant) < len(held):
        return Decision(ends=meant)
    named = any(words & _stems(kind.replace("-", " ")) for kind in cast.phrases)
    if not meant and named and not any(kind in cast.commands for kind in held):
        return Decision(ends=())
    return Decision(ends=EVERYTHING)


def _stems(text: str) -> set[str]:
    """Return the words that carry the meaning, without their endings."""
    words = re.findall(r"[a-z']+", text.lower())
    kept = (
        re.sub(r"(?:ping|ting|ing|ies|es|ed|y|s|e)$", "", word)
        for word in words
        if word not in _FUNCTION
    )
    return {word for word in kept if len(word) > 2}
