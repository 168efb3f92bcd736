"""The reader's training set: training phrases, everyday requests, ends, and the sentences that a caller adds.

Most sentences also appear as people type them: with an opening, a closing, a reason or a typing error. All choices are
drawn with a fixed seed, so the training set is always the same. `tools/reader_data.py` adds the sentences of a
built-in world.
"""

from __future__ import annotations

import dataclasses
import random
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from mavic.language.reader.acts import ACTS
from mavic.language.reader.phrase_file import ACT_CATEGORIES, END, NONE, Example, PhraseFileError
from mavic.language.reader.spelling import correct, known_words
from mavic.language.text import fold
from mavic.language.vectors import FOLDER

EVERYDAY_REQUESTS = 700  # pairs of an everyday verb and object
CASUAL_COPIES = 3  # of a phrase that is no filled template: with an opening, a closing or both
REASON_SHARE = 0.15  # of the sentences are also trained on with a reason
TYPO_SHARE = 0.4  # of the sentences are also trained on with a typing error
JOINED_SHARE = 0.15  # of the typing errors lose a space; as many lose their punctuation
WORDS = re.compile(r"[a-z0-9']+")
FRAMES = tomllib.loads((FOLDER / "frames.toml").read_text(encoding="utf-8"))

_Draw = Callable[[random.Random], Iterable[Example]]  # makes sentences by random choices


def training_set(
    train: Mapping[str, Sequence[str]],
    *,
    seed: str,
    requests: _Draw = lambda rng: (),
    acts: _Draw = lambda rng: (),
    about: bool = True,
    written: Sequence[Example] = (),
    reserved: Collection[str] = (),
    published: Collection[str] = (),
    everyday: int = EVERYDAY_REQUESTS,
    copies: int = CASUAL_COPIES,
    typos: float = TYPO_SHARE,
) -> list[Example]:
    """Return distinct examples, each with a corrected text.

    Args:
        train: The training phrases by kind.
        seed: Of all random choices.
        requests: Makes further requests.
        acts: Makes further sentences about acts.
        about: Whether there are sentences about acts at all.
        written: Further sentences.
        reserved: Sentences that must not be trained on.
        published: Phrases that must not be part of any sentence.
        everyday: How many everyday requests there are.
        copies: How often a sentence that is no filled template is also trained on with an opening or a closing.
        typos: The share of the sentences that are also trained on with a typing error.

    Returns:
        The examples in a fixed order.
    """
    rng, own = random.Random(seed), random.Random(f"{seed} acts")
    asked = [Example(text=text, kind=kind, group=text) for kind in train for text in train[kind]]
    asked += [*requests(rng), *_everyday(rng, everyday)]
    ends = ACTS["ends"]["texts"]
    spoken = [Example(text=text, kind=END, group=text, category="permission") for text in ends]
    spoken += acts(own)
    asked += [e for e in written if e.category not in ACT_CATEGORIES]
    spoken += [e for e in written if e.category in ACT_CATEGORIES]
    left_out, unseen = set(map(fold, reserved)), [fold(phrase) for phrase in published]
    examples = [
        e
        for e in _distinct(asked + (spoken if about else []), left_out)
        if not _contains(e.text, unseen)
    ]
    around = {part: FRAMES[part]["texts"] for part in ("openings", "closings")}
    plain = [e for e in examples if e.category not in ACT_CATEGORIES]
    spoken = [e for e in examples if e.category in ACT_CATEGORIES]
    typed = _as_typed(plain, around, rng, copies, typos)
    typed += _as_typed(spoken, ACTS["asides"], own, copies, typos)
    known = known_words([example.text for example in examples])
    left_out |= {correct(text, known) for text in left_out}
    by_text: dict[str, Example] = {}
    for example in examples + typed:
        text = correct(example.text, known)
        if text not in left_out:  # of equal sentences the first is kept
            by_text.setdefault(text, dataclasses.replace(example, text=text))
    return list(by_text.values())


def _everyday(rng: random.Random, count: int) -> Iterator[Example]:
    """Return everyday requests, which no world has."""
    everyday = FRAMES["everyday"]
    for text in everyday["sayings"]:
        yield Example(text=text, kind=NONE, group=text)
    for _ in range(count):
        verb, thing = rng.choice(everyday["verbs"]), rng.choice(everyday["objects"])
        opening, closing = (rng.choice(FRAMES[k]["texts"]) for k in ("openings", "closings"))
        yield Example(text=f"{opening}{verb} {thing}{closing}", kind=NONE, group=verb)


def _contains(text: str, phrases: Collection[str]) -> bool:
    """Return whether a text has one of the phrases in it, word for word."""
    words = f" {' '.join(WORDS.findall(fold(text)))} "
    return any(f" {phrase} " in words for phrase in phrases)


def _as_typed(
    examples: list[Example],
    around: Mapping[str, Sequence[str]],
    rng: random.Random,
    many: int,
    typos: float,
) -> list[Example]:
    """Return copies of sentences as people type and explain them; `around` has openings and closings."""
    openings, closings = (
        [text for text in around[part] if text] for part in ("openings", "closings")
    )
    copies = []
    for example in examples:
        for _ in range(many if example.group == example.text else 0):
            where = rng.random()
            opening = rng.choice(openings) if where < 0.7 else ""
            closing = rng.choice(closings) if where > 0.4 else ""
            copies.append(_copy(example, opening + example.text + closing))
    for example in examples:
        if rng.random() < REASON_SHARE:
            reason, join = (rng.choice(FRAMES["reasons"][part]) for part in ("texts", "joins"))
            text = join.replace("{reason}", reason).replace("{x}", example.text)
            copies.append(_copy(example, text))
    mistyped = [example for example in examples + copies if rng.random() < typos]
    return copies + [_copy(example, _add_typo(example.text, rng)) for example in mistyped]


def _copy(example: Example, text: str) -> Example:
    return dataclasses.replace(example, text=text, copy=True)


def _distinct(examples: Iterable[Example], reserved: Collection[str]) -> list[Example]:
    """Return each sentence once and none that is reserved. Kinds go before "end", and "end" goes before "none"."""
    by_text: dict[str, Example] = {}
    for example in sorted(examples, key=lambda e: (e.kind == NONE) - (e.kind not in (NONE, END))):
        text = fold(example.text)
        if text and text not in reserved:
            first = by_text.setdefault(text, example)
            if example.kind not in (NONE, END, first.kind):
                raise PhraseFileError(f"{text!r} stands for {first.kind} and for {example.kind}")
    return list(by_text.values())


def _add_typo(text: str, rng: random.Random) -> str:
    """Return the text with one typing error: a letter swapped, dropped or doubled, a space or the punctuation lost."""
    chance = rng.random()
    spaces = [i for i, c in enumerate(text) if c == " "]
    if chance < JOINED_SHARE and spaces:
        at = rng.choice(spaces)
        return text[:at] + text[at + 1 :]
    if chance < 2 * JOINED_SHARE and set(text) & set("',.?!-"):
        return re.sub(r"[',.?!]|(?<=\w)-(?=\w)", "", text)
    words = [m for m in re.finditer(r"[A-Za-z]{3,}", text)]
    if not words:
        return text
    match = rng.choice(words)
    at = rng.randrange(match.start(), match.end() - 1)
    change = rng.choice(("swap", "drop", "double"))
    if change == "swap":
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    return text[:at] + text[at + 1 :] if change == "drop" else text[:at] + text[at] + text[at:]
