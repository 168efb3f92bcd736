"""What a typed line is made of, before any sentence is read: whom it addresses, what comes after what, or an end.

A sentence that addresses an agent by name ("robot 1, go left") is for that agent. "A and then B" are two instructions,
one after the other. "cook 1 chop, cook 2 deliver" are two at the same time. "never mind" ends the current instructions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from mavic.language.text import fold

COURTESY = """please|ok|okay|now|thanks|thank you|hey|so|just|well|alright|team|guys|everybody|everyone|all|both
|you can|you may|let's|then"""
ENDS = """never mind|nevermind|carry on|carry on working|back to work|go back to work|get back to work|as you were
|forget it|forget that|forget what i said|forget about it|ignore that|ignore what i said|cancel|cancel that
|cancel it|scratch that|resume|resume work|resume your work|go on|go on working|go on with your work|continue
|continue working|continue your work|work on|return to work|return to your work|do your job|do your work
|back to your task|back to your job|back to the task|back to normal|end it|end that|end the instruction
|go back to what you were doing|do what you were doing|carry on as before|go on as before"""
_COURTESY, _ENDS = ([text.strip() for text in listed.split("|")] for listed in (COURTESY, ENDS))
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
AFTER = re.compile(
    r"\s*(?:[,;.]\s*(?:and\s+)?|\band\s+)(?:then|after that|afterwards|after this|next)\b[,:]?\s+"
    r"|\s+then\s+(?!again)",
    re.IGNORECASE,
)
OPENING = re.compile(
    r"^\s*(?:(?:hey|ok|okay|please|and|while|but|the)\b[,\s]*)*", re.IGNORECASE
)  # words before a name that addresses
GLUE = re.compile(r"^[\s,;:.–-]+|[\s,;:.–-]+$|^(?:and|while|but)(?:\s+|$)|\s+(?:and|while|but)$")


class Clause(NamedTuple):
    """One instruction of a line."""

    text: str
    agents: tuple[int, ...] | None = None  # the named agents; None without a name


class _Speech(NamedTuple):
    """What a line is made of."""

    parts: tuple[Clause, ...] = ()
    together: bool = False  # the parts are meant at the same time, otherwise one after the other
    ends: bool = False  # it ends the current instructions
    stranger: str = ""  # a name that no agent has


def parse(line: str, names: Sequence[str]) -> _Speech:
    """Return what a line is made of.

    Args:
        line: What a person typed.
        names: What people call the agents, in the agents' order.

    Returns:
        The instructions with the agents they address, an end, or a name that no agent has.
    """
    if ends(line):
        return _Speech(ends=True)
    parts: list[Clause] = []
    pieces = [piece for piece in AFTER.split(line.strip()) if piece.strip()]
    if len(pieces) > 1:
        pieces[0] = re.sub(r"^\s*first(ly)?[,:]?\s+", "", pieces[0], flags=re.IGNORECASE)
    together = False
    for piece in pieces:
        stranger, found = _addressed(piece, names)
        if stranger:
            return _Speech(stranger=stranger)
        together = together or len(found) > 1
        parts += found
    if len(parts) == 1 and ends(parts[0].text):
        return _Speech(ends=True)
    return _Speech(tuple(parts) or (Clause(line),), together)


def ends(line: str) -> bool:
    """Return whether a line only ends the current instructions."""
    words = fold(line).replace(",", " ").replace(".", " ")
    before = ""
    while before != words:
        before = words
        for word in _COURTESY:
            words = re.sub(rf"^{word}\b\s*|\s*\b{word}$", "", words).strip()
    return " ".join(words.split()) in _ENDS


def _addressed(piece: str, names: Sequence[str]) -> tuple[str, list[Clause]]:
    """Return a name that no agent has (or ""), and the instructions of a piece with the agents that each names."""
    marks: list[tuple[int, int, int]] = []  # start, end and agent of each name where one addresses
    for match in _name_pattern(names).finditer(piece):
        agent = _agent(match["name"], names)
        last = marks[-1] if marks else None
        if not _addresses(piece, match, last[1] if last else None):
            continue
        if agent is None:
            return " ".join(match["name"].split()), []
        marks.append((match.start("name"), match.end("name"), agent))
    if not marks:
        return "", [Clause(piece.strip())]
    head = _bare(OPENING.sub("", piece[: marks[0][0]]))
    parts: list[Clause] = []
    agents: list[int] = []
    for (_, stop, agent), following in zip(marks, [*marks[1:], None], strict=True):
        agents.append(agent)
        text = _bare(piece[stop : following[0] if following else len(piece)])
        if text:
            parts.append(Clause(text, tuple(sorted(set(agents)))))
            agents = []
    if agents:  # names at the end: "go left, robot 1"
        return "", [Clause(head, tuple(sorted(set(agents))))] if head else [Clause(piece.strip())]
    if head and parts:
        return "", [Clause(piece.strip())]
    return "", parts


def _name_pattern(names: Sequence[str]) -> re.Pattern[str]:
    nouns = sorted({name.rsplit(" ", 1)[0] for name in names if name[-1:].isdigit()})
    bare = sorted(name for name in names if not name[-1:].isdigit())
    numbered = [rf"(?:{'|'.join(map(re.escape, nouns))})\s*(?:\d+|{'|'.join(NUMBERS)})\b"]
    # a name without a number may be a verb ("fetch"), so it addresses only before a comma or colon
    alone = [rf"(?:{'|'.join(map(re.escape, bare))})\b(?=\s*[,:])"] if bare else []
    choices = "|".join([*(numbered if nouns else []), *alone]) or r"(?!)"
    return re.compile(rf"\b(?P<name>{choices})", re.IGNORECASE)


def _agent(said: str, names: Sequence[str]) -> int | None:
    words = " ".join(re.sub(r"(?<=[a-z])(?=\d)", " ", said.lower()).split())
    for number, word in enumerate(NUMBERS):
        words = re.sub(rf"\b{word}$", str(number), words)
    return list(names).index(words) if words in names else None


def _addresses(piece: str, match: re.Match[str], previous: int | None) -> bool:
    """Return whether a name stands where one addresses: at the start of a clause, or after a comma at the end."""
    before = piece[: match.start("name")]
    opening = OPENING.fullmatch(before)
    clause = re.search(r"[,;.:]\s*(?:(?:and|while|but|the)\s+)?$", before)
    since = piece[previous : match.start("name")] if previous is not None else "-"
    joined = re.fullmatch(r"\s*(?:,|and|&)\s*(?:and\s+)?", since, re.I)
    again = previous is not None and re.search(r"\b(?:and|while|but)\s+(?:the\s+)?$", before, re.I)
    return bool(opening or clause or joined or again)


def _bare(text: str) -> str:
    """Return a text without the words and marks that join it to others."""
    before = None
    while before != text:
        before, text = text, GLUE.sub("", text)
    return text
