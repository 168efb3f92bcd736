"""What one clause of a line asks for: a thing named alone, one verb for several things, two requests, or a sentence.

`fragment`, `several` and `joined` give None where the clause is of another form; `whole` always gives an answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

from mavic.language.conversation import speech
from mavic.language.conversation.cast import NUMBERS, SIDES, Cast
from mavic.language.conversation.cues import cues_of
from mavic.language.conversation.decision import EVERYTHING, Asked, Context, Decision, Read
from mavic.language.conversation.speech import Clause
from mavic.language.text import END

_INSTEAD = re.compile(r"\b(?:just|only|instead|rather|not)\b")
_ONLY = re.compile(r"\b(?:just|only|exclusively|nothing but)\b")
_SIDE_ONE = re.compile(rf"\b(?P<side>{'|'.join(SIDES)})(?:[- ]hand)? one\b")


def fragment(about: Context, clause: Clause) -> Decision | None:
    """Return what a clause asks for that names a thing and no act; None if it is a sentence."""
    cast, text = about.cast, clause.text
    model = next((one for one in reversed(about.last) if one.kind in cast.about), None)
    things, rest = _named(about, text, model)
    if not things or not speech.FRAGMENT.match(rest.strip(" ,.!")):
        return None
    no = bool(re.search(r"\b(?:no|not|nor)\b", rest))
    if model is not None and not _own_verb(rest):
        agents = model.agents if clause.agents is None else clause.agents
        kinds = _counterparts(cast, model.kind, things)
        own, wants = cast.about[model.kind].things, cast.about[model.kind].wants
        if no and wants and own == {*things}:  # "not the hammer"
            return Decision(ends=(model.kind,))
        if _ONLY.search(text) and not (no or wants or {*things} < own):  # to use, or to avoid?
            return Decision(unclear=text, offers=_offers(about, clause, cast.alike(things[0])))
        if kinds:
            return Decision(
                now=tuple(Asked(kind, agents, cast.phrase(kind)) for kind in kinds),
                corrects=(model,) if _INSTEAD.search(text) else (),
            )
    kinds = tuple(
        kind for kind in cast.kinds_about(things) if cast.about[kind].things <= set(things)
    )
    wanting, forbidding = (
        [k for k in kinds if cast.about[k].wants is wants] for wants in (True, False)
    )
    if (len(kinds) == len(wanting) == 1 and not no) or (
        len(forbidding) == 1 and no and not about.last
    ):
        (kind,) = forbidding if no else wanting
        return Decision(now=(Asked(kind, clause.agents, cast.phrase(kind)),))
    if not (no or wanting or _own_verb(rest)):
        return Decision(unclear=text, offers=_offers(about, clause, things))
    return None


def _own_verb(rest: str) -> bool:
    """Return whether a fragment says by itself what to do with the thing: "use", "take", "not"."""
    return bool(re.search(r"\b(?:use|take|go|get|need)\b", rest))


def _named(about: Context, text: str, model: Asked | None) -> tuple[tuple[str, ...], str]:
    """Return the things that a fragment names, and its other words. "the other one" is the twin of the last thing.

    Of "not the left one, the right one" only what is not negated counts.
    """
    cast = about.cast
    if match := re.match(
        r"^not (?P<no>.+?)(?:,| but| (?=the (?:left|right)\b)) ?(?P<yes>.+)$", text
    ):
        denied = re.search(r"\b(?:no|not|nor)\b", match["yes"])
        if (
            not denied
            and _named(about, match["no"], model)[0]
            and (yes := _named(about, match["yes"], model))[0]
        ):
            return yes
    if match := re.match(
        r"^(?P<yes>.+?),? (?:instead of|rather than|(?:and )?not) (?P<no>.+)$", text
    ):
        denied = re.search(r"\b(?:no|not|nor)\b", match["yes"])
        if (
            not denied
            and (yes := _named(about, match["yes"], model))[0]
            and _named(about, match["no"], model)[0]
        ):
            return yes
    mentions = cast.mentions(text)
    rest = text
    for mention in reversed(mentions):
        rest = f"{rest[: mention.start]} {rest[mention.end :]}"
    things = tuple(dict.fromkeys(thing for m in mentions for thing in m.things))
    if things or model is None:
        if not things and (match := _SIDE_ONE.search(text)):  # of which sort it is not known
            things = tuple(thing for thing in cast.things if match["side"] in thing.split())
            rest = text.replace(match[0], " ")
        return things, rest
    own = sorted(cast.about[model.kind].things)
    if re.search(r"\bboth\b", text):
        return cast.alike(own[0]), re.sub(r"\bboth(?: of (?:them|those))?\b", " ", text)
    if match := re.search(r"\bother(?: \w+)?\b", text):
        twin = cast.twin(own[0]) if len(own) == 1 else None
        return ((twin,) if twin else ()), text.replace(match[0], " ")
    for side in SIDES:
        if match := re.search(
            rf"\b{side}(?:[- ]hand)?(?: side)?(?: one| {own[0].split()[-1]})?\b", text
        ):
            found = tuple(thing for thing in cast.alike(own[0]) if side in thing.split())
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


def several(about: Context, clause: Clause) -> Decision | None:
    """Return what a clause asks for that names several things after one verb: "leave plate 1 and the left oven alone".

    It is read once for each thing. None if it names one thing, or contrasts two.
    """
    cast, text = about.cast, _each_by_name(about.cast, clause.text)
    mentions = [m for m in cast.mentions(text) if len(m.things) == 1]
    if not 2 <= len(mentions) <= 3 or len({m.things for m in mentions}) < len(mentions):
        return None
    between = [text[a.end : b.start] for a, b in pairwise(mentions)]
    joined = r"[ ,]*(?:and|or|nor|,)?(?: also| then)?(?: the| from(?: the)?| on(?: the)?| to(?: the)?)? *"
    turned = re.fullmatch(r" after(?: the)? ", between[0]) and len(between) == 1
    if not turned and not all(
        re.fullmatch(joined, gap) and re.search(r"and|or|nor|,", gap) for gap in between
    ):
        return None
    if re.search(r"\b(?:instead|rather|before|than)\b|^not [^,]+,", text):
        return None
    first, last = mentions[0].start, mentions[-1].end
    asked: tuple[Asked, ...] = ()
    for mention in mentions:
        words = text[:first] + text[mention.start : mention.end] + text[last:]
        found = whole(about, Clause(words, clause.agents))
        if len(found.now) != 1:
            return None
        asked += found.now
    kinds = tuple(dict.fromkeys(one.kind for one in asked))
    if len(kinds) != len(mentions) or (turned and not cast.commands >= {*kinds}):
        return None
    if turned:  # "bring the wrench after the hammer"
        return Decision(now=asked[1:], later=(asked[:1],))
    things = [thing for mention in mentions for thing in mention.things]
    if (group := cast.counterpart(kinds[0], things)) is not None:
        return Decision(now=(Asked(group, clause.agents, cast.phrase(group), asked[0].hold),))
    return Decision(now=asked)


def _each_by_name(cast: Cast, text: str) -> str:
    """Return a text in which "both ovens" are "the left oven and the right oven", where no kind is about both."""
    for mention in reversed(cast.mentions(text)):
        kinds = cast.kinds_about(mention.things)
        if len(mention.things) > 1 and all(len(cast.about[kind].things) == 1 for kind in kinds):
            each = " and ".join(f"the {thing}" for thing in mention.things)
            text = f"{text[: mention.start]}{each}{text[mention.end :]}"
    return text


def joined(about: Context, clause: Clause) -> Decision | None:
    """Return what two or three clauses ask for that "and" joins; None if they are not requests of their own.

    Two commands for the same agents cannot be done at once, so they come one after the other.
    """
    parts = re.split(r"[,;.]\s*(?:and|but)\s+|\s+(?:and|but|while)\s+|[.;]\s+", clause.text)
    loose = len(parts) == 1  # joined by a comma alone, which may also give a reason
    if loose:
        parts = re.split(r",\s+", clause.text)
    parts = [part.strip(" ,") for part in parts if part.strip(" ,")]
    if not 2 <= len(parts) <= 3 or any(
        _things(about.cast, re.sub(r"^(?:the|an?) ", "", part)) for part in parts
    ):
        return None
    bare = [re.sub(r"^(?:also|then|you(?! (?:can|may|are)\b)) ", "", part) for part in parts]
    found: list[Decision] = []
    for part in bare:
        ended = tuple(Asked(kind) for one in found for kind in one.ends or ())
        said = next((one.now for one in reversed(found) if one.now), ended) or about.last
        within, attempt = about._replace(last=said), Clause(part, clause.agents)
        found.append((ended and fragment(within, attempt)) or whole(within, attempt))
    asked = [one.now[0] for one in found if len(one.now) == 1]
    ends = tuple(kind for one in found for kind in one.ends or ())
    beside = [
        part
        for part, one in zip(parts, found, strict=True)
        if not one.now and one.ends in (None, (), EVERYTHING)
    ]
    if loose and len(asked) == len(beside) == 1 and _uses_twin(about.cast, asked[0], beside[0]):
        return Decision(now=(asked[0],))
    if len(asked) + sum(bool(one.ends) for one in found) != len(parts) or not asked:
        return None
    if len({one.kind for one in asked}) != len(asked) or {*EVERYTHING} & {*ends}:
        return None
    commands = sum(one.kind in about.cast.commands for one in asked)
    if ends and not commands:
        return Decision(now=tuple(asked), ends=ends)
    if ends or (loose and commands < len(parts)):
        return None
    if commands > 1:
        return Decision(now=(asked[0],), later=tuple((one,) for one in asked[1:]))
    return Decision(now=tuple(asked))


def _uses_twin(cast: Cast, asked: Asked, beside: str) -> bool:
    """Return whether the part beside an instruction only says what to use instead: "not plate 1, use plate 2"."""
    about = cast.about.get(asked.kind)
    if (
        about is None
        or len(about.things) != 1
        or not re.match(r"(?:rather )?(?:use|take) |.* is (?:fine|ok|okay)$", beside)
    ):
        return False
    twin = cast.twin(next(iter(about.things)))
    return twin is not None and twin in (cast.spoken_of(beside) or cast.alike(twin))


def whole(about: Context, clause: Clause) -> Decision:
    """Return what a clause asks for that is read as one sentence, and for how long."""
    text, hold = speech.lasting(clause.text)
    found = _whole(about, clause._replace(text=text))
    return found._replace(now=tuple(one._replace(hold=hold) for one in found.now))


def _whole(about: Context, clause: Clause) -> Decision:
    cast = about.cast
    text = cast.plain(_with_noun(about, clause.text))
    bare = speech.without_courtesy(text)
    if match := _USABLE.match(bare) or _NO_MATTER.match(bare) or _NOT_WANTED.match(text):
        things = cast.spoken_of(match["it"])
        held = any(o.kind in cast.about and cast.about[o.kind].things & things for o in about.held)
        if held or (cast.mentions(match["it"]) and _USABLE.match(bare)):
            return ended(about, things, text)
    if _ANY_WAY.match(text) and about.held:
        return ended(about, cast.spoken_of(text), text)
    if match := _UNUSABLE.match(bare):
        it = _things(cast, match["it"])
        for kind in cast.kinds_about(it):
            if not cast.about[kind].wants and cast.about[kind].things == it:
                return Decision(now=(Asked(kind, clause.agents, cast.phrase(kind)),))
    if other := _only_its_twin(cast, text):
        return Decision(now=(Asked(other, clause.agents, cast.phrase(other)),))
    if _TELLS.search(text) or _lets_choose(cast, text):
        return _unclear(about, clause, about.read(text))
    found = about.read(text)
    if found.unsure and bare != text:
        brief = about.read(bare)
        if not brief.unsure or _agrees(cast, brief, bare):
            found, text = brief, bare
    if found.unsure and not found.note and _agrees(cast, found, text):
        return Decision(now=(Asked(found.kind, clause.agents, cast.phrase(found.kind)),))
    if not found.unsure and (other := _other_way(cast, found.kind, text)):
        return Decision(now=(Asked(other, clause.agents, cast.phrase(other)),))
    if _PERMITS.match(text) and (meant := _prohibited(about, text)):
        return Decision(ends=meant)
    if not found.unsure and found.kind == END:
        return ended(about, cast.spoken_of(text), text)
    sure = not found.unsure and not found.nothing
    if sure and _is_named(cast, found.kind, text) and not _denies(cast, found.kind, text):
        return Decision(now=(Asked(found.kind, clause.agents, text),), read=found)
    return _unclear(about, clause, found)


def _unclear(about: Context, clause: Clause, found: Read) -> Decision:
    named = [thing for mention in about.cast.mentions(clause.text) for thing in mention.things]
    offers = _offers(about, clause, named, found.closest)
    return Decision(unclear=clause.text, read=found, offers=offers)


_UNUSABLE = re.compile(
    r"^(?:sorry,? )?(?:the |my )?(?P<it>[^,]+?)(?: is|'s| are| seems| looks)(?: now| currently| already| way| too"
    r"| totally| completely)* "
    r"(?:broken|out of order|off[ -]limits|closed|taken|occupied|blocked|reserved|mine|dirty|filthy|defective"
    r"|defect|forbidden"
    r"|prohibited|taboo|in use|not working|not available|unavailable|not allowed|dangerous|no good|kaputt?|busted"
    r"|cracked)(?: now| today| at the moment)?$"
)
_EVER = r"(?: any ?more| any longer| now| at all| for now)*$"
# "the left board does not matter any more": what holds about it is over
_NO_MATTER = re.compile(
    r"^(?:ok(?:ay)?,? |so )*(?:the |my )?(?P<it>[^,]+?)"
    r" (?:(?:doesn't|don't|does not|do not) (?:really )?(?:matter|count|apply)"
    r"|(?:isn't|aren't|is not|are not|is no longer|are no longer) (?:so |that |really |such )?(?:an? )?"
    r"(?:important|urgent|special|needed|necessary|relevant|priority|rush|forbidden|off[ -]limits|taboo|first)"
    r"|(?:(?:doesn't|don't|does not|do not) (?:have|need) to|needn't|need not) (?:be|come|go|arrive) \w+"
    r"|no longer (?:matters?|counts?|appl(?:y|ies))|can wait|(?:is|are) (?:over|lifted))" + _EVER
)
_NOT_WANTED = re.compile(
    r"^(?:ok(?:ay)?,? |so )*"
    r"(?:(?:they|i|we|people|the people)(?: really)? (?:don't|do not|no longer)|nobody|no one)(?: really)?"
    r" (?:needs?|wants?|cares? about|cares? for) (?:the )?(?P<it>[^,]+?)"
    r" (?:any ?more|any longer|now)$"
)
_ANY_WAY = re.compile(
    r"^(?:(?:it|that) )?(?:doesn't|does not) (?:really )?matter (?:which|what|who|where|how)\b"
    r"|^(?:i|we) (?:don't|do not) care (?:which|what|who|where|how)\b"
)
_USABLE = re.compile(
    r"^(?:ok,? )?(?:the |my )?(?P<it>[^,]+?)(?: is|'s| are)(?: now| all)* (?:ok|okay|fine|free|available|clean"
    r"|clear|repaired|fixed|open|working|usable|allowed"
    r"|back|safe|all right|alright|yours)(?: again| now| for you)*$"
)
_USES = re.compile(
    r"^(?:please |just |always |only |better )*(?:use(?: just| only)?|do (?:all )?(?:your|the) \w+ (?:on|in|at)"
    r"|(?:work|chop"
    r"|cut|cook|bake) (?:\w+ )?(?:on|in|at))\b"
)
_GOES = re.compile(
    r"^(?:please )?(?:go|drive|move|head|walk|run|come|to|approach|get|take|fetch|bring|grab)\b"
)
LEAST_AGREEING = {
    True: 0.2,
    False: 0.5,
}  # the least probability, by whether the kind wants the thing that is named


_PERMITS = re.compile(
    r"^(?:ok(?:ay)?,? |now |and |but |so )*(?:you|they|we|everyone|everybody|robots|cooks)(?: two| guys| all| both)*"
    r" (?:can|may|could|might|are allowed to|are free to)\b(?! not\b)"
    r"|^(?:ok(?:ay)?,? |now )*you're(?: all| both)* (?:allowed|free|welcome) to\b"
    r"|^(?:there's|there is) (?:no reason not to|nothing (?:against|wrong with))\b"
    r"|^nothing(?:'s| is) (?:stopping|keeping) you from\b|^feel free to\b"
)


def _prohibited(about: Context, text: str) -> tuple[str, ...]:
    """Return the prohibitions that hold and are about what a sentence permits: its things, or its act."""
    cast = about.cast
    held = [one.kind for one in about.held if one.kind in cast.phrases]
    if things := cast.spoken_of(text):
        forbids = [k for k in held if k in cast.about and not cast.about[k].wants]
        return tuple(k for k in forbids if cast.about[k].things & things)
    return tuple(k for k in held if _stems(text) & _stems(" ".join(_refusals(cast, k))))


def _refusals(cast: Cast, kind: str) -> list[str]:
    """Return the phrases of a kind that say what not to do: of *stay* "don't move"."""
    phrases = [*cast.phrases[kind], kind]
    return [one for one in phrases if kind not in cast.commands or _forbids(one)]


def _forbids(text: str) -> bool:
    return bool({"<not>", "<stop>"} & {*cues_of(text)})


def _with_noun(about: Context, text: str) -> str:
    """Return a text in which "the left one" has the noun of what was said last: "the left oven"."""
    cast = about.cast
    words = {word for thing in cast.things for word in thing.split() if word.isalpha()} - {*SIDES}
    noun = "|".join(["one", *sorted(words)])
    match = re.search(rf"\b(?P<side>{'|'.join(SIDES)}|other)(?: \w+)? (?:{noun})\b", text)
    if match is None or any(m.start <= match.start() < m.end for m in cast.mentions(text)):
        return text
    said = next((one for one in reversed(about.last) if one.kind in cast.about), None)
    before = cast.mentions(text[: match.start()])
    own = before[-1].things if before else sorted(cast.about[said.kind].things) if said else ()
    found = (
        [thing for thing in cast.alike(own[0]) if thing.startswith(match["side"])] if own else []
    )
    if match["side"] == "other" and len(own) == 1:
        found = [twin] if (twin := cast.twin(own[0])) else []
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


def _denies(cast: Cast, kind: str, text: str) -> bool:
    """Return whether a text forbids something, and the kind that it is understood as is asked for without a "not"."""
    if kind not in cast.commands or kind in cast.about or "," in text:
        return False
    return not any(map(_forbids, cast.phrases[kind])) and _forbids(text)


_TELLS = re.compile(  # what somebody never does, what is or was or comes last, or a question
    r"^(?:the )?\w+(?: \d)?(?: should| can)?(?: be| goes?| comes?)?"
    r" (?:second|third|last|later|not so (?:fast|quick\w*)|slow(?:er|ly)?"
    r"|(?:is|are) (?:here|on (?:its|the|their) way))$"
    r"|^(?:you|we|they|he|she|i) (?:should|could|would|might|must) have\b|^(?:i|we) (?:bet|wonder|suppose)\b"
    r"|^there(?:'s| is| are)\b(?!.*\b(?:so|don't|avoid|please|leave|no|nothing|use)\b)"
    r"|^(?:would|will) (?!you\b|it be\b|some|any|one\b|be\b)\w"
    r"|^(?:i(?:'d| would| will| have)?|they|he|she|people) never\b|^do (?:they|we|i)\b"
    r"|^(?:should|shall|must|does|did|is|are|was|were|has|had) (?!you\b|not\b|to\b)\w"
    r"|^(?:so |and |but |oh |wow |ok )*"
    r"(?:you|we|they|he|she|it|that|someone|somebody|the \w+(?: \w+)?|\w+ \d)"
    r"(?: just| already| all| both| really| finally)*(?<! is)(?<! are)(?<! be)"
    r" (?:came|went|got|was|were|had|did|took|brought|made|gave|(?!needed|wanted|required)\w{3,}(?<!e)ed)\b"
    r"(?!.*\b(?:so|but|please|don't|instead|only)\b)"
)


_MANY = re.compile(r"\b(?:two|three|four|five|several|many|more|[2-9]|\d\d+) $")


def _lets_choose(cast: Cast, text: str) -> bool:
    """Return whether a request leaves open which thing to get, or how many: "a tomato or lettuce", "two hammers"."""
    wanted = {thing for about in cast.about.values() if about.wants for thing in about.things}
    mentions = [m for m in cast.mentions(text) if wanted & {*m.things}]
    between = [text[a.end : b.start] for a, b in pairwise(mentions)]
    some = any(re.search(r"\bor\b", gap) for gap in between)
    many = any(_MANY.search(text[: mention.start]) for mention in mentions)
    return (some or many) and not _forbids(text)


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
        return (not rivals or bool(_GOES.match(text))) and not cues & _NO_REQUEST
    return bool(cues & {"<not>", "<stop>"}) and not cues & (_NO_REQUEST - {"<not>", "<stop>"})


def _other_way(cast: Cast, kind: str, text: str) -> str | None:
    """Return the kind that forbids the twin, where a sentence plainly says to use the thing that `kind` forbids."""
    about, named = cast.about.get(kind), {t for m in cast.mentions(text) for t in m.things}
    if about is None or about.wants or about.things != named or len(named) != 1:
        return None
    if not _USES.match(text) or _forbids(text):
        return None
    twin = cast.twin(next(iter(named)))
    return cast.counterpart(kind, (twin,)) if twin else None


def _only_its_twin(cast: Cast, text: str) -> str | None:
    """Return the kind that forbids the twin of the one thing that a text says to use and no other."""
    named = {thing for mention in cast.mentions(text) for thing in mention.things}
    if not _ONLY.search(text) or not _USE.search(text) or len(named) != 1 or "other" in text:
        return None
    kinds = cast.kinds_about(named)
    refused = {*cues_of(text.replace("nothing but", "only"))} & _NO_REQUEST
    if refused or any(cast.about[kind].wants for kind in kinds):
        return None
    twin = cast.twin(next(iter(named)))
    return cast.counterpart(kinds[0], (twin,)) if twin else None


_USE = re.compile(r"\b(?:use|using|take|work|chop|cut|cook|bake|stick)\b")
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


def _offers(
    about: Context, clause: Clause, things: Iterable[str], closest: Sequence[str] = ()
) -> tuple[Asked, ...]:
    """Return the nearest things that can be asked for: about these things, and what the reader thinks near."""
    cast = about.cast
    kinds: Collection[str] = dict.fromkeys((*cast.kinds_about(things), *closest))
    return tuple(Asked(kind, clause.agents, cast.phrase(kind)) for kind in kinds)[:4]


_ALL = re.compile(r"\b(?:everything|anything|all)\b")
_FUNCTION = frozenset(
    [
        "a",
        "an",
        "the",
        "you",
        "your",
        "we",
        "us",
        "it",
        "they",
        "them",
        "that",
        "this",
        "can",
        "may",
        "could",
        "might",
        "again",
        "now",
        "is",
        "are",
        "be",
        "use",
        "used",
        "go",
        "get",
        "to",
        "on",
        "of",
        "for",
        "and",
        "or",
        "so",
        "in",
        "at",
        "with",
        "any",
        "more",
        "longer",
        "free",
        "fine",
        "ok",
        "okay",
        "allowed",
        "no",
        "not",
        "need",
        "don't",
        "have",
        "do",
        "i",
        "i'm",
        "me",
        "my",
        "there",
        "from",
        "nothing",
        "all",
        "please",
    ]
)


def ended(about: Context, things: set[str], text: str) -> Decision:
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
