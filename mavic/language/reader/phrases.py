"""Phrase files beside a world's instructions: sets for testing, and frames to train the head on.

A test file lists sentences by kind ("none": nothing that can be asked). A development file looks
the same, but was looked at: its sentences calibrate the head, each author's by a fit that has not
seen them, and then teach it. A training file has blocks
to say, whose slots are filled and whose frames are shared by all worlds; filling is drawn with a
fixed seed, so a world's training set is always the same.
"""

from __future__ import annotations

import dataclasses
import random
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from mavic.instruct import spec as instructions
from mavic.language.reader.spelling import known_words, mend, slip
from mavic.language.text import fold

SETS = ("novel", "instead", "infeasible", "near")
# Authors of the development files; the second's and third's were for testing once, then looked at.
AUTHORS = ("dev", "test", "final")
JUDGED = "blind"  # the author whose files are for testing
TESTS = tuple(f"{JUDGED}_{name}" for name in SETS)
DEVELOPMENT = tuple(f"{author}_{name}" for author in AUTHORS for name in SETS)
TRAINING = ("contrasts", "spoken", "negatives", "impossible")
NONE = "none"
DRAWS = {True: 3, False: 8}  # fillings of one sentence: of a kind (each key), of no kind
EVERYDAY = 700  # drawn pairs of an everyday verb and object
CASUAL = 3  # copies of a phrase said as it stands, with an opening or a closing
REASONED = 0.15  # share of sentences also trained on with a reason for them
SLIPS = 0.4  # share of sentences also trained on with a slip of the keyboard
SLOT = re.compile(r"\{(\w+)\}")


class PhraseFileError(ValueError):
    """A phrase file is wrong; the message names file and key."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """A sentence with the kind it asks for; sentences of one group are told apart by slots only."""

    text: str
    kind: str
    group: str
    source: str = ""  # the development file it stands in
    copy: bool = False  # made from another sentence, by an opening, a closing or a slip

    @property
    def author(self) -> str:
        """Whose development file it stands in; "" for what is always trained on."""
        return self.source.partition("_")[0]


def has(folder: Path, name: str) -> bool:
    """Whether a world's folder has a phrase file."""
    return (folder / "phrases" / f"{name}.toml").is_file()


def read_tests(folder: Path, name: str, kinds: tuple[str, ...]) -> list[Example]:
    """The sentences of a test or development file."""
    path = folder / "phrases" / f"{name}.toml"
    made = []
    for kind, texts in _read(path).get("phrases", {}).items():
        _check_kind(path, kind, kinds)
        source = name if name in DEVELOPMENT else ""
        made += [Example(text=text, kind=kind, group=text, source=source) for text in texts]
    return made


def training_set(phrases: dict[str, list[str]], world: str, folder: Path | None) -> list[Example]:
    """Training phrases by kind, everyday negatives, filled frames and development sets of a folder,
    and copies of them as people type: with openings, closings and slips, mended as far as it goes.
    """
    kinds, drawn = tuple(phrases), random.Random(world)
    frames = _read(Path(str(resources.files("mavic"))) / "language" / "data" / "frames.toml")
    made = [
        Example(text=text, kind=kind, group=text)
        for kind, texts in phrases.items()
        for text in texts
    ]
    if folder is not None:
        for name in filter(partial(has, folder), TRAINING):
            made += _fill(folder / "phrases" / f"{name}.toml", frames, kinds, drawn)
    made += _everyday(frames, drawn)
    if folder is not None:
        for name in DEVELOPMENT:
            if has(folder, name):
                made += read_tests(folder, name, kinds)
    reserved = _reserved(folder, kinds)
    made = _distinct(made, reserved)
    known = known_words([example.text for example in made])
    reserved |= {mend(text, known) for text in reserved}
    by_text: dict[str, Example] = {}
    for example in made + _typed(made, frames, drawn):
        text = mend(example.text, known)
        if text not in reserved:  # a copy may say what another sentence says: the first has it
            by_text.setdefault(text, dataclasses.replace(example, text=text))
    return list(by_text.values())


def _typed(examples: list[Example], frames: dict[str, Any], drawn: random.Random) -> list[Example]:
    """Copies of sentences, of kinds and of no kind alike, as people type and explain them."""
    openings, closings = (
        [text for text in frames[part]["texts"] if text] for part in ("openings", "closings")
    )
    made = []
    for example in examples:
        for _ in range(CASUAL if example.group == example.text else 0):
            where = drawn.random()
            opening = drawn.choice(openings) if where < 0.7 else ""
            closing = drawn.choice(closings) if where > 0.4 else ""
            text = opening + example.text + closing
            made.append(dataclasses.replace(example, text=text, copy=True))
    for example in examples:
        if drawn.random() < REASONED:
            reason, join = (drawn.choice(frames["reasons"][part]) for part in ("texts", "joins"))
            text = join.replace("{reason}", reason).replace("{x}", example.text)
            made.append(dataclasses.replace(example, text=text, copy=True))
    slipped = [example for example in examples + made if drawn.random() < SLIPS]
    return made + [dataclasses.replace(e, text=slip(e.text, drawn), copy=True) for e in slipped]


def _reserved(folder: Path | None, kinds: tuple[str, ...]) -> set[str]:
    """What must never be trained on: the held-out phrases and the test files."""
    texts: set[str] = set()
    if folder is not None and (folder / "instructions.toml").is_file():
        file = instructions.read(folder / "instructions.toml")
        texts |= {fold(text) for kind in file.kinds for text in kind.held_out}
    for name in TESTS:
        if folder is not None and has(folder, name):
            texts |= {fold(example.text) for example in read_tests(folder, name, kinds)}
    return texts


def _distinct(examples: list[Example], reserved: set[str]) -> list[Example]:
    """Each sentence once; where a kind and no kind claim it, the kind has it."""
    by_text: dict[str, Example] = {}
    for example in sorted(examples, key=lambda e: e.kind == NONE):
        text = fold(example.text)
        if text and text not in reserved:
            first = by_text.setdefault(text, example)
            if example.kind not in (NONE, first.kind):
                raise PhraseFileError(f"{text!r} is said for {first.kind} and for {example.kind}")
    return list(by_text.values())


def _fill(
    path: Path, frames: dict[str, Any], kinds: tuple[str, ...], drawn: random.Random
) -> Iterator[Example]:
    raw = _read(path)
    slots = raw.get("slots", {})
    openings, closings = frames["openings"]["texts"], frames["closings"]["texts"]
    for block in raw.get("say", []):
        for key in block.get("keys", [""]):
            kind = block["kind"].format(key=key)
            _check_kind(path, kind, kinds)
            for sentence, choices in _sentences(block, frames):
                for draw in range(block.get("draws", DRAWS[kind != NONE])):
                    text = sentence.replace("{x}", drawn.choice(choices))
                    text = _slots(text, slots, key, drawn, path)
                    if draw:
                        text = drawn.choice(openings) + text + drawn.choice(closings)
                    yield Example(text=text, kind=kind, group=sentence)


def _sentences(block: dict[str, Any], frames: dict[str, Any]) -> list[tuple[str, list[str]]]:
    if "frame" in block:
        return [(sentence, block["texts"]) for sentence in frames["frames"][block["frame"]]]
    return [(text, [""]) for text in block["texts"]]


def _slots(text: str, slots: dict[str, Any], key: str, drawn: random.Random, path: Path) -> str:
    def word(match: re.Match[str]) -> str:
        if match[1] not in slots:
            raise PhraseFileError(f"{path}: no slot {match[1]!r} for {text!r}")
        choices = slots[match[1]]
        return drawn.choice(choices[key] if isinstance(choices, dict) else choices)

    while SLOT.search(text):  # a slot's words may have slots of their own
        text = SLOT.sub(word, text)
    return text


def _everyday(frames: dict[str, Any], drawn: random.Random) -> Iterator[Example]:
    everyday = frames["everyday"]
    for text in everyday["sayings"]:
        yield Example(text=text, kind=NONE, group=text)
    for _ in range(EVERYDAY):
        verb, thing = drawn.choice(everyday["verbs"]), drawn.choice(everyday["objects"])
        opening, closing = (drawn.choice(frames[k]["texts"]) for k in ("openings", "closings"))
        yield Example(text=f"{opening}{verb} {thing}{closing}", kind=NONE, group=verb)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PhraseFileError(f"{path}: {error}") from None


def _check_kind(path: Path, kind: str, kinds: tuple[str, ...]) -> None:
    if kind not in (NONE, *kinds):
        raise PhraseFileError(
            f"{path}: {kind}: unknown kind; {instructions.suggest(kind, (NONE, *kinds))}"
        )
