"""Scores what is done with sentences whose meaning is known. The format of the files is in
`tests/language/conversation/README.md`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mavic.language.conversation.cast import Cast
from mavic.language.conversation.deciding import decide
from mavic.language.conversation.decision import EVERYTHING, Asked, Decision, Reader
from mavic.language.conversation.settling import Rules, Settled, settle
from mavic.language.text import END, NONE

RIGHT, ASKED, WRONG = "right", "asked", "wrong"
KEYS = ("means", "to", "then", "after", "holds", "hold", "or")


class SentenceFileError(ValueError):
    """A file of sentences is wrong. The message says where."""


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """What is said, and what should be done."""

    text: str
    means: tuple[str, ...]  # kinds, or one of "none", "end" and "end:KIND"
    to: tuple[tuple[str, ...], ...] | None = None
    then: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    holds: tuple[str, ...] | None = None
    hold: int | None = None  # ticks for which it is to hold; None: until it is ended
    others: tuple[str, ...] = ()  # further values of `means` that are right


class Result(NamedTuple):
    """What was done with a sentence."""

    sentence: Sentence
    verdict: str  # right, asked or wrong
    done: str  # in words


def read_sentences(path: Path, kinds: Sequence[str]) -> tuple[Sentence, ...]:
    """Return the sentences of a file. What is wrong in it is a `SentenceFileError`.

    Args:
        path: The file.
        kinds: The kinds of the world.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SentenceFileError(f"{path}: {error}") from None
    if not isinstance(raw.get("sentences"), dict):
        raise SentenceFileError(f"{path}: needs a table [sentences]")
    return tuple(_sentence(path, text, value, kinds) for text, value in raw["sentences"].items())


def _sentence(path: Path, text: str, value: Any, kinds: Sequence[str]) -> Sentence:
    table = value if isinstance(value, dict) else {"means": value}
    if unknown := [key for key in table if key not in KEYS]:
        raise SentenceFileError(
            f"{path}: {text!r}: unknown key {unknown[0]!r}; known: {', '.join(KEYS)}"
        )
    means = _texts(table.get("means", NONE))
    after = _texts(table.get("after", ()))
    if not after and len(means) == 1 and means[0].startswith(f"{END}:"):
        after = (means[0].removeprefix(f"{END}:"),)
    others, then = _texts(table.get("or", ())), _texts(table.get("then", ()))
    for name in (*means, *then, *others):
        if name.removeprefix(f"{END}:") not in (*kinds, END, NONE):
            raise SentenceFileError(
                f"{path}: {text!r}: {name!r} is no kind, {END!r}, {END}:KIND or {NONE!r}"
            )
    to = table.get("to")
    if to is not None:
        to = tuple(map(_texts, to if to and isinstance(to[0], list) else [to]))
    holds = table.get("holds")
    return Sentence(
        text=text,
        means=means,
        to=to,
        then=then,
        after=after,
        others=others,
        holds=None if holds is None else _texts(holds),
        hold=table.get("hold"),
    )


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


class State(NamedTuple):
    """What holds, what waits, and what was said last."""

    held: tuple[Asked, ...] = ()
    queue: tuple[tuple[Asked, ...], ...] = ()
    last: tuple[Asked, ...] = ()


def said(
    read: Reader, cast: Cast, rules: Rules, state: State, line: str
) -> tuple[Decision, Settled, State]:
    """Return what a line does to what holds.

    Args:
        read: Understands one sentence.
        cast: What can be spoken of.
        rules: What can hold together.
        state: Before the line.
        line: What a person says.

    Returns:
        What the line asks for, what becomes of what holds, and the state after it. A line about which the person must
        be asked leaves the state as it is.
    """
    decision = decide(read, cast, line, state.held, state.last)
    settled = settle(rules, state.held, decision)
    if not decision.clear or settled.question:
        return decision, settled, state
    waiting = () if decision.now or decision.ends_all else state.queue
    last = decision.later[-1] if decision.later else decision.now or settled.holds[-1:]
    return decision, settled, State(settled.holds, (*waiting, *decision.later), last)


def score(
    read: Reader,
    cast: Cast,
    rules: Rules,
    sentences: Sequence[Sentence],
    names: Mapping[str, int] | None = None,
) -> list[Result]:
    """Return what is done with each sentence and whether it is right.

    Args:
        read: Understands one sentence.
        cast: What can be spoken of in the world.
        rules: What can hold together in it.
        sentences: The sentences.
        names: Further names of agents that the sentences use, such as those of the environment.
    """
    numbers = {name: number for number, name in enumerate(cast.agents)} | dict(names or {})
    return [_result(read, cast, rules, sentence, numbers) for sentence in sentences]


def _result(
    read: Reader, cast: Cast, rules: Rules, sentence: Sentence, numbers: Mapping[str, int]
) -> Result:
    state = State()
    for line in sentence.after:
        if line in cast.phrases:
            line = cast.phrases[line][0]
        *_, state = said(read, cast, rules, state, line)
    decision, settled, after = said(read, cast, rules, state, sentence.text)
    done_now = decision.clear and not settled.question
    given = decision.now if done_now else ()
    queued = after.queue if given else after.queue[len(state.queue) :]
    over = settled.replaced if done_now else ()
    ended = list(dict.fromkeys(one.kind for one in over if decision.is_over(one)))
    known = ended if decision.ends != EVERYTHING or state.held else None
    done = in_words(decision, cast, settled.question, known)
    if _is_right(sentence, decision, given, queued, ended, after, numbers):
        return Result(sentence, RIGHT, done)
    acted = bool(given or queued or ended) or (decision.ends_all and not state.held)
    return Result(sentence, WRONG if acted else ASKED, done)


def _is_right(
    sentence: Sentence,
    decision: Decision,
    given: Sequence[Asked],
    queued: Sequence[Sequence[Asked]],
    ended: Sequence[str],
    after: State,
    numbers: Mapping[str, int],
) -> bool:
    if not any(
        _is_meant(means, decision, given, ended, after)
        for means in (sentence.means, *((o,) for o in sentence.others))
    ):
        return False
    if any(one.hold != sentence.hold for one in given):
        return False
    if sorted(one.kind for group in queued for one in group) != sorted(sentence.then):
        return not queued and not given and NONE in sentence.others
    if (
        sentence.holds is not None
        and (given or ended)
        and sorted(o.kind for o in after.held) != sorted(sentence.holds)
    ):
        return set(o.kind for o in given) <= set(sentence.others)
    if sentence.to is None or not given:
        return True
    whom = [set(numbers.get(name, -1) for name in names) for names in sentence.to]
    wanted = dict(
        zip(sentence.means, whom if len(whom) > 1 else whom * len(sentence.means), strict=False)
    )
    return all(_set(one) == wanted.get(one.kind, _set(one)) for one in given)


def _set(one: Asked) -> set[int] | None:
    return None if one.agents is None else set(one.agents)


def _is_meant(
    means: Sequence[str],
    decision: Decision,
    given: Sequence[Asked],
    ended: Sequence[str],
    after: State,
) -> bool:
    if means == (NONE,):
        return not given and not ended and not decision.ends_all
    if means == (END,):
        return decision.ends_all or (bool(ended) and not after.held)
    over = {one.removeprefix(f"{END}:") for one in means if one.startswith(f"{END}:")}
    kinds = [one for one in means if not one.startswith(f"{END}:")]
    kept = {one.kind for one in after.held} - {*ended}
    if bool(over) != bool(ended) or not over >= {*ended} or over & kept:
        return False
    return sorted(one.kind for one in given) == sorted(kinds)


def in_words(
    decision: Decision, cast: Cast, question: str = "", ended: Sequence[str] | None = None
) -> str:
    """Return what a decision does, in words: "chop to orange cook; then deliver".

    Args:
        decision: The decision.
        cast: The names of the agents.
        question: What is asked back before anything is done.
        ended: The kinds that it ended; None: it is not known what held.
    """
    if decision.stranger:
        return f"nobody is called {decision.stranger}"
    if question:
        return f"asks back: {question}"
    if decision.unclear:
        return "asks back: " + ", ".join(offer.kind for offer in decision.offers)
    parts = [_with_agents(one, cast) for one in decision.now]
    for group in decision.later:
        parts.append("then " + " and ".join(_with_agents(one, cast) for one in group))
    if decision.ends is not None:
        every = "everything" if decision.ends == EVERYTHING else ", ".join(decision.ends)
        parts.append("ends " + ((every if ended is None else ", ".join(ended)) or "nothing"))
    return "; ".join(parts)


def _with_agents(one: Asked, cast: Cast) -> str:
    whom = "" if one.agents is None else ", ".join(cast.agents[agent] for agent in one.agents)
    return f"{one.kind} to {whom}" if whom else one.kind
