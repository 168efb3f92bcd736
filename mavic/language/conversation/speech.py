"""What a typed line is made of, before any sentence is read: whom it addresses, what comes after what, or an end.

A sentence that addresses an agent ("robot 1, go left", "the orange one should wait") is for that agent. "A and then B"
are two instructions, one after the other. "cook 1 chop, cook 2 deliver" are two at the same time. "never mind" ends
what holds. "no wait, B" corrects what was said before, "also B" adds to it, and "after that, B" waits for it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from mavic.language.conversation.cast import NUMBERS, ORDINALS, SIDES, Cast, typing_errors
from mavic.language.text import fold

COURTESY = """please|ok|okay|now|thanks|thank you|hey|so|just|well|alright|all right|team|guys|everybody|everyone|all
|both|you can|you may|let's|then|great|good job|all good|that's all|as usual|as before|again|do"""
ENDS = """never mind|nevermind|carry on|carry on working|back to work|go back to work|get back to work|as you were
|forget it|forget that|forget what i said|forget about it|forget everything|ignore that|ignore what i said|cancel
|cancel that|cancel it|cancel everything|scratch that|resume|resume work|resume your work|go on|go on working
|go on with your work|continue|continue working|continue your work|work on|return to work|return to your work
|do your job|do your work|your job|your work|back to your task|back to your job|back to the task|back to normal
|end it|end that|end the instruction|go back to what you were doing|do what you were doing|what you were doing
|what you want|whatever you want|as you like|back to your normal routine|back to your usual order|i changed my mind
|i've changed my mind"""
SHORTEST_END = 6  # letters of an end with a typing error
STOPPING = "stop|quit|cease|pause|halt|wait|rest|stand still|stand around|sit around|just stand there|stand there"


def _listed(texts: str) -> list[str]:
    return [" ".join(text.split()) for text in texts.split("|")]


_COURTESY, _ENDS = _listed(COURTESY), frozenset(_listed(ENDS))
_WHEN_DONE = (
    r"(?:after (?:that|this|it)|afterwards?|next|once (?:you're |you are |you get |that's |it's |that is )?(?:done"
    r"|finished|ready|there)"
    r"(?: with (?:that|it|this))?|when(?: you're| you are| you get| that's| that is| it's)? (?:done|finished|ready"
    r"|there)(?: with (?:that|it|this))?"
    r"|as soon as (?:you're|that's) (?:done|there))"
)
AFTER = re.compile(
    rf"\s*(?:[,;.]+\s*(?:and\s+)?|\band\s+)(?:then|{_WHEN_DONE})\b[,:]?\s+|\s+then\s+(?!again)|\s+and then\s+"
)
LATER = re.compile(rf"^(?:ok(?:ay)?,? |and |so )*(?:then|{_WHEN_DONE})\b[,:]?\s+(?=\S)")
_REVERSED = re.compile(r"^after (?:you )?(?P<first>\w+ing .+?|you .+?), ?(?P<second>.+)$")
_SAID_LAST = re.compile(  # "…, and push it afterwards"
    r"(?:,\s*(?:and\s+)?|\s+and\s+)(?P<last>[^,]+?)\s+(?:afterwards?|after that|(?<! a )second)$"
)
# What goes before a correction; the words after it are what is meant.
_CORRECTIONS = (
    r"(?:(?:oh|oops|ups|whoops|uh|um|no|nah|wait|sorry|nope|hmm?|ah|well|the other way round),? )*"
    r"(?:no,? wait|wait,? no|no,? no|nope|no(?=[,.!]| the | it's | i | not | wait)|nah|ups|oh wait|wait(?=,| not "
    r"| the )|hold on(?=,)|sorry|oops|actually(?: no)?"
    r"|i (?:meant?|said|wanted)(?: to say)?|scratch that|rather"
    r"|correction|make that|make it|on second thoughts?|forget (?:that|it|what i said)|never ?mind(?: that)?"
    r"|cancel that"
    r"|ignore that|wrong \w+|change of plans?|new plan|different plan|i(?:'ve)? changed my mind"
    r"|the other way round"
    r"|not that(?: one)?)"
)
CORRECTS = re.compile(rf"^(?:{_CORRECTIONS}[,:!. ]+)+(?=\S)")
CORRECTED = re.compile(
    rf"[,;.!:–-]+ ?(?:{_CORRECTIONS}[,:!. ]+)+(?=\S)|(?:\.\.+|…|–| -) ?no,? (?=\S)| (?:no,? wait|wait,? no"
    rf"|oh wait|scratch that|i meant?)\b[,:!. ]+(?=\S)"
)
SORRY = re.compile(r"(?:, *sorry|,? rather|,? i meant?(?: to say)?)$")  # "the right box, sorry"
ADDS = re.compile(
    r"^(?:and |but |plus |oh,? )*(?:also|in addition|additionally|besides|on top of (?:that|it)|moreover|plus"
    r"|as well as that)\b[,:]? "
    r"|[, ]+(?:either|too|as well|also|in addition)$|^(?:oh,? |ok,? |hmm,? )*(?:and|plus|nor) "
    r"|^(?P<same>(?:the )?same|(?:that|this|it)(?: also)? (?:goes|applies|holds)) (?:goes |applies )?(?:also |too )?"
    r"(?:for|with|to) "
    r"| (?:also) |^(?:what|how) about "
)
TAKES_BACK = re.compile(
    r"^(?:ok(?:ay)?,? |please |just )*(?:never ?mind|i take back|i(?:'ve)? changed my mind(?= about)"
    r"|forget|cancel|scratch|drop the order for)(?: about)?(?: the| that)* (?P<rest>.+)$"
)
WHAT_WAS_SAID = re.compile(r"\bi(?:'ve| have)? (?:just |ever )?(?:said|told|asked)\b")
# "don't stop pushing" asks to keep pushing; "don't stop" takes back a stop.
_DONT = r"(?:(?:please )?(?:don't|do not|never|no)(?: you)?(?: (?:dare|ever|even think about|just|need to|have to))*)"
NOT_STOPPING = re.compile(
    rf"^{_DONT} (?:stop(?:ping)?|quit(?:ting)?|ceas(?:e|ing)) (?P<doing>(?:\w+ing)\b.*)$"
)
KEEPS_ON = re.compile(
    rf"^(?:please |just )*(?:{_DONT} (?:to )?(?:{STOPPING}|stopping|pausing|waiting)(?: now| there| around"
    rf"| working| yet| for me| please)*"
    r"|keep (?:going|working|on|it up|at it|on going|on working)(?: please| like that)?)$"
)
FRAGMENT = re.compile(
    r"^(?:(?:er|uh|um|oh|and|or|but|no|not|nor|just|only|please|the|that|to|for|on|at|with|use|take|i|mean|meant|it's|one"
    r"|ones|instead|now"
    r"|side|then|of|you|too|either|also|also|all|rather|now|first|quick|quickly|asap|go|get|need|any"
    r"|more)\b[ ,!.]*)*$"
)
_SUBJECT = (
    r"(?:right|alright|hey|hi|ok|okay|please|and|while|but|now|so|then|well|only|just|also|yo)"
)
OPENING = re.compile(
    rf"^\s*(?:{_SUBJECT}\b[,\s]*)*(?:(?:tell|ask|have|let|make|get|order|i don't want"
    r"|i want|i need|i'd like|i would like"
    rf"|can|could|would|will|should|may)\s+)?"
    rf"(?:{_SUBJECT}\b[,\s]*)*(?:the\s+|you in\s+|you,?\s+)?$"
)
GLUE = re.compile(r"^[\s,;:.–-]+|[\s,;:.–-]+$|^(?:and|while|but)(?:\s+|$)|\s+(?:and|while|but)$")
COLOURS = "blue|orange|purple|green|red|yellow|pink|brown|black|white|grey"
# after the name of an agent: a remark about it or a question, and no words to it
_REMARK = re.compile(
    r"^(?:is|are|was|were|looks?|seems?|has|had|did|one is|'s|isn't|wasn't"
    r"|(?:should|must|has to|needs to) be (?:the|\w+ \d)\b"
    r"|(?:already |just |\w+ly )?(?:got|went|took|made|brought|put|(?!need|feed|speed|proceed)\w{2,}ed))\b"
)
_MAY = re.compile(r"^(?:is|isn't|has)(?: not)?(?: allowed| free| welcome)? to\b")
_MODAL = re.compile(
    r"^(?:(?P<no>should not|shouldn't|must not|mustn't|may not|cannot|can't|can not|does not|doesn't|don't"
    r"|do not|shall not"
    r"|is not (?:allowed )?to|isn't (?:allowed )?to|needn't|to not|not to|has not to)"
    r"|(?P<can>can|may|could|might|is (?:allowed|free|welcome) to)"
    r"|(?P<do>should|must|needs? to|has to|have to|shall|ought to"
    r"|will|is to|to|please))\s+"
)
_THIRD = re.compile(
    r"^(?P<stem>[a-z]+?)(?P<ending>ies|(?<=sh)es|(?<=ch)es|(?<=ss)es|(?<=x)es|(?<=o)es|s)\b(?!')"
)


_THE_REST = re.compile(
    r"^(?:the )?(?:(?:any ?)?other(?:s| two| ones?| tools?)?|rest|everything else"
    r"|remaining \w+|whatever|anything)\b[^,]*$"
)
# "blue, let orange chop" and "blue, orange will chop" speak to the blue one about its partner
_PARTNER = re.compile(
    r"\s*, *(?:(?:let|have) (?:the )?\|.*|(?:the )?\| *(?:will|'ll|is going to)\b.*)"
)
_NOT_THIS = re.compile(r"^not [^,]+, *|^(?:the|only)\b ?|,? (?:and )?not .+$")
_DOES_IT = re.compile(
    r"[ ,.!]*(?:(?:should|must|has to|needs to|can|will|is to)(?: do (?:it|that|this))?|instead)?[ .!]*$"
)
# "wait for 5 ticks"; a second counts as a tick
_LASTS = re.compile(
    r"(?:^|,? )(?:for|(?<=wait )|(?<=pause ))(?: ?\b(?:only|just|about|the next|exactly|at least))*"
    rf" ?\b(?P<count>\d{{1,4}}|{'|'.join(NUMBERS)}|ten|twenty)"
    r" (?:more )?(?:ticks?|steps?|moves?|turns?|rounds?|seconds?|secs?)\b"
)


# What a request is wrapped in. Without it the request is the same.
_POLITE_START = re.compile(
    r"^(?:both (?:of you|cooks|chefs|robots|bots)|you (?:both|two|guys)|all (?:of you|robots|cooks)"
    r"|the two of you|both)\b,? *(?:should |must |need to |have to |please )*"
    r"|^(?:(?:hi|hello|hey|yo|dude|bro|man|boy|pal|um+|uh+|er+|hm+|like|excuse me|sorry to (?:bother"
    r"|disturb) you|please|kindly|ok(?:ay)?|so|well|al+ ?right|right(?=,)"
    r"|now|guys|folks|team|robots?|cooks?"
    r"|everyone|everybody|there|dear|ladies|come on|quick|quickly|hurry|attention|listen)\b[,:!. ]+(?:but )?)+"
    r"|^(?:could|can|would|will) (?:you|somebody|someone|anybody|one of you|you two|you guys|you both"
    r"|we)(?: please| kindly| maybe| perhaps| possibly| just| all| both)* "
    r"(?:be so kind (?:as )?(?:to|and) |be able to |mind (?=\w+ing\b))?"
    r"|^(?:would|could) it be possible to |^is it possible to |^i(?:'d| would) (?:like|love|want|prefer"
    r"|appreciate it|be (?:very |so )?(?:happy|grateful|glad))(?: it)?(?: for)? (?:you (?:all |both )?to"
    r"|if you(?: could| would)?) "
    r"|^(?:someone|somebody|one of you) (?:should |must |has to |needs to )?"
    r"|^i (?:want|need) you (?:all |both |guys )?to |^(?:it would be|would be|it's) (?:\w+ )?(?:nice|great|good"
    r"|best|better|cool|kind|helpful) (?:of you )?(?:if you(?: could| would)?|to) "
    r"|^(?:you (?:should|must|need to|have to|ought to)|make sure (?:to|you|that you)|try to|be sure to"
    r"|i think you should|maybe|perhaps|just|let's|go and|go ahead and|time to|your job is to) "
)
_POLITE_END = re.compile(
    r"[, ]+(?:please|pls|thanks?(?: you)?(?: so much| very much| a lot)?|if (?:you|that|it)(?: can|'s| is"
    r"| don't mind| please| could)*(?: ok(?:ay)?| alright| possible| fine| all right)?"
    r"|for me|for us|now|right now|for now|today|at once|immediately|asap|would you|will you|could you|can you"
    r"|(?:for )?(?:a|one) (?:moment|while|bit|sec|second|minute)"
    r"|(?:un)?till? (?:further notice|(?:i|we|you)(?: say| tell| hear|'ve| have| are told)\b[^,]*))$"
    r"|, *(?:guys|everyone|everybody|folks|mate|buddy|dear|ok(?:ay)?|alright|quick(?:ly)?)$"
)


class Clause(NamedTuple):
    """One instruction of a line."""

    text: str
    agents: tuple[int, ...] | None = None  # the named agents; None without a name


class Addressed(NamedTuple):
    """What a piece of a line asks of whom."""

    parts: tuple[Clause, ...] = ()
    stranger: str = ""  # a name that no agent has


def ends(line: str) -> bool:
    """Return whether a line only ends the current instructions."""
    words = fold(line).replace(",", " ").replace(".", " ").replace("!", " ")
    before = ""
    while before != words:
        before = words
        if " ".join(words.split()) in _ENDS:
            return True
        for word in _COURTESY:
            words = re.sub(rf"^{word}\b\s*|\s*\b{word}$", "", words).strip()
    words = " ".join(words.split())
    return words in _ENDS or any(
        len(words) >= SHORTEST_END
        and abs(len(words) - len(end)) <= 1
        and typing_errors(words, end) <= 1
        for end in _ENDS
    )


def without_courtesy(text: str) -> str:
    """Return a request without what it is politely wrapped in: "would you be so kind to push, please" → "push"."""
    before = None
    while before != text and text:
        before, text = text, _POLITE_END.sub("", _POLITE_START.sub("", text)).strip(" ,")
    return text or str(before)


def lasting(text: str) -> tuple[str, int | None]:
    """Return a request without the time for which it is to hold, and this time in ticks; None if it says none."""
    match = _LASTS.search(text)
    if match is None:
        return text, None
    said = match["count"]
    words = {**{word: number for number, word in enumerate(NUMBERS)}, "ten": 10, "twenty": 20}
    ticks = int(said) if said.isdigit() else words[said]
    rest = f"{text[: match.start()]}{text[match.end() :]}".strip(" ,")
    return (rest, ticks) if rest and ticks else (text, None)


def steps(line: str) -> list[str]:
    """Return the pieces of a line that come one after another. What "then the others" asks for happens anyway."""
    if match := _REVERSED.match(line):
        first = re.sub(r"^you ", "", match["first"])
        return [first, match["second"]]
    line = _SAID_LAST.sub(r", then \g<last>", line.strip())
    pieces = [piece for piece in AFTER.split(line) if piece.strip()]
    if len(pieces) > 1:
        pieces[0] = re.sub(r"^\s*first(?:ly)?(?: of all)?[,:]?\s+", "", pieces[0])
    return [piece for number, piece in enumerate(pieces) if not (number and _THE_REST.match(piece))]


def addressed(piece: str, cast: Cast, before: tuple[int, ...] | None = None) -> Addressed:
    """Return what a piece asks of whom.

    Args:
        piece: The folded text.
        cast: Who can be addressed.
        before: Whom the last words addressed; "the other one" is somebody else.

    Returns:
        The instructions with the agents that each names, or a name that no agent has.
    """
    marks: list[tuple[int, int, int]] = []  # start, end and agent of each name where one addresses
    for match in _references(cast).finditer(piece):
        last = marks[-1] if marks else None
        if last and _PARTNER.fullmatch(f"{piece[last[1] : match.start()]}|{piece[match.end() :]}"):
            head = re.sub(r"the $", "", piece[: match.start()])
            return addressed(f"{head}your partner{piece[match.end() :]}", cast, before)
        if not _addresses(piece, match, last[1] if last else None):
            continue
        if (match["placed"] or match["ordered"] or match["other"]) and not _says_more(
            piece[match.end() :]
        ):
            continue  # "the left one" alone may be a thing
        agent = _agent(match, cast, before)
        if agent is None:
            if match["numbered"] or (match["placed"] and " one" not in f" {match['placed']}"):
                return Addressed(stranger=" ".join(match[0].split()))
            continue
        marks.append((match.start(), match.end(), agent))
    whole = Addressed((Clause(piece.strip()),))
    if not marks:
        return whole
    head = _bare(OPENING.sub("", piece[: marks[0][0]]))
    parts: list[Clause] = []
    agents: list[int] = []
    for (_, stop, agent), following in zip(marks, [*marks[1:], None], strict=True):
        agents.append(agent)
        rest = piece[stop : following[0] if following else len(piece)]
        rest = re.sub(r"\b(?:the|tell|let|have|make|you in)\s*$", "", rest)
        if _REMARK.match(rest.strip()) and not _MAY.match(rest.strip()):
            return whole
        if text := _request(_bare(rest)):
            if not parts and re.search(r"\bi don't want\b", piece[: marks[0][0]]):
                text = f"don't {text}"
            parts.append(Clause(text, tuple(sorted(set(agents)))))
            agents = []
    if agents:  # names at the end: "go left, robot 1"
        return (
            Addressed((Clause(head, tuple(sorted(set(agents)))),)) if head and not parts else whole
        )
    return whole if head and parts else Addressed(tuple(parts))


def named_alone(text: str, cast: Cast) -> tuple[int, ...]:
    """Return the agent that a correction names and nothing else: "not orange, blue", "blue should do that"."""
    match = _references(cast).fullmatch(_DOES_IT.sub("", _bare(_NOT_THIS.sub("", text))))
    if match is None or (
        match[0].endswith(" one") and not match["coloured"]
    ):  # "the left one" may be a thing
        return ()
    agent = _agent(match, cast, None)
    return () if agent is None else (agent,)


def _says_more(rest: str) -> bool:
    """Return whether words follow a name that can ask for something."""
    return bool(re.sub(r"\b(?:please|instead|either|too|now|only|again|then)\b|\W", "", rest))


def _request(rest: str) -> str:
    """Return what an agent is to do as a request: "shouldn't push" → "don't push", "chops" → "chop"."""
    if rest.startswith(("to the ", "below ", "under ", "near ", "anywhere ")):
        return f"go {rest}"
    if match := _MODAL.match(rest):
        after = rest[match.end() :]
        if match["can"]:
            return f"you can {after}"
        return f"don't {after}" if match["no"] else _request(after)
    match = _THIRD.match(rest)
    if match and len(match["stem"]) > 1 and match[0] not in ("press", "pass", "this", "plates"):
        return match["stem"] + ("y" if match["ending"] == "ies" else "") + rest[match.end() :]
    return rest


@lru_cache(16)
def _references(cast: Cast) -> re.Pattern[str]:
    """Return a pattern of all ways to name an agent.

    A name with a number is `numbered`, with any number. A name that may be a verb ("fetch") counts only before a comma.
    """
    names = [name for own in _names(cast) for name in own]
    nouns = sorted({name.rsplit(" ", 1)[0] for name in names if name[-1:].isdigit()} - {""})
    nouns += [
        noun
        for noun in {name.rsplit(" ", 1)[-1] for name in names if " " in name}
        if noun.isalpha() and noun not in nouns
    ]
    noun = "|".join(
        [*map(re.escape, nouns), "one", "guy", "bot", "robot", "cook", "chef", "person", "fellow"]
    )
    thing = "|".join(
        sorted({word for name in cast.things for word in name.split()[-2:]} - {*SIDES})
    )
    number = rf"\d+|{'|'.join(NUMBERS)}"
    bare = sorted((name for name in names if " " not in name), key=len, reverse=True)
    told = [name for name in names if " " in name and not name[-1:].isdigit()]
    ways = [
        rf"(?P<numbered>(?:{'|'.join(map(re.escape, nouns)) or '(?!)'}) ?(?:number |no\.? )?(?:{number}))\b",
        rf"(?P<told>{'|'.join(map(re.escape, sorted(told, key=len, reverse=True))) or '(?!)'})\b",
        rf"(?P<coloured>{COLOURS})(?: (?:{noun}))?\b",
        rf"(?P<placed>(?P<side>left|right)(?:[- ]?hand)?(?:most)? (?:{noun})"
        rf"|(?:{noun}|you(?= \w+ \w+ \w+[,:])) (?:on|at|to) (?:the|your) (?P<where>left|right|top|bottom))\b"
        rf"(?! (?:{thing or '(?!)'})\b)",
        rf"(?P<ordered>{'|'.join(ORDINALS.values())}) (?:{noun})\b",
        rf"(?P<other>other (?:{noun}))\b",
    ]
    if bare:
        ways.append(
            rf"(?P<bare>{'|'.join(map(re.escape, bare))})\b(?=\s*[,:]|\s+(?:to|should|must)\b)"
        )
    else:
        ways.append(r"(?P<bare>(?!))")
    return re.compile(rf"\b(?:{'|'.join(ways)})")


def _names(cast: Cast) -> list[tuple[str, ...]]:
    others = cast.also_called or ((),) * len(cast.agents)
    return [(name, *more) for name, more in zip(cast.agents, others, strict=True)]


def _agent(match: re.Match[str], cast: Cast, before: tuple[int, ...] | None) -> int | None:
    """Return the agent that words name; None if there is none, or if it is not clear which."""
    names = _names(cast)
    said = match["told"] or match["bare"]
    if match["numbered"]:
        said = re.sub(r"(?<=[a-z])(?=\d)| (?:number|no\.?) ", " ", match["numbered"])
        for number, word in enumerate(NUMBERS):
            said = re.sub(rf"\b{word}$", str(number), said)
        said = " ".join(said.split())
    if said:
        found = [agent for agent, own in enumerate(names) if said in own]
    elif match["coloured"]:
        colour = match["coloured"]
        found = [
            agent for agent, own in enumerate(names) if any(colour in name.split() for name in own)
        ]
    elif match["placed"]:
        found = _at_side(match["side"] or match["where"], cast)
    elif match["ordered"]:
        number = next(n for n, words in ORDINALS.items() if match["ordered"] in words.split("|"))
        found = [number - 1] if number <= len(names) else []
    else:
        found = [agent for agent in range(len(names)) if before and agent not in before]
    return found[0] if len(found) == 1 else None


def _at_side(side: str, cast: Cast) -> list[int]:
    """Return the agents that stand farthest to one side."""
    if not cast.places:
        return []
    axis = 0 if side in SIDES else 1
    along = [place[axis] for place in cast.places[: len(cast.agents)]]
    farthest = min(along) if side in ("left", "top") else max(along)
    return [agent for agent, at in enumerate(along) if at == farthest]


def _addresses(piece: str, match: re.Match[str], previous: int | None) -> bool:
    """Return whether a name stands where one addresses: at the start of a clause, or after a comma at the end."""
    before = piece[: match.start()]
    opening = OPENING.fullmatch(before)
    clause = re.search(
        r"(?:[,;.:]|\b(?:it|this|please|there|here)\b)\s*(?:(?:and|while|but|the|let|tell)\s+)*$",
        before,
    )
    if clause and not opening and previous is None and piece[match.end() :].strip(" .!?,"):
        return False  # words about an agent or a thing in the middle of a sentence
    since = piece[previous : match.start()] if previous is not None else "-"
    joined = re.fullmatch(r"\s*(?:,|and|&)\s*(?:and\s+)?(?:the\s+)?", since)
    again = previous is not None and re.search(r"\b(?:and|while|but)\s+(?:the\s+)?$", before)
    return bool(opening or clause or joined or again)


def _bare(text: str) -> str:
    """Return a text without the words and marks that join it to others."""
    before = None
    while before != text:
        before, text = text, GLUE.sub("", text)
    return text
