"""Reads `phrases.toml`, the file of sentences for the reader that lies beside a world's `instructions.toml`.

The file is a list of blocks. Each block has a `set` (what it is used for), an `author` and a `category`. A block of the
set `train` holds templates, which `data` fills in, or sentences. All other blocks list sentences by the kind they ask
for; the kind "none" is for sentences that ask for nothing the team can be asked, "end" for those that end what holds.
The file also lists the acts of its world, which fill the frames in `mavic/language/data/acts.toml`. The head of each
file explains sets and authors.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mavic.hints import suggest
from mavic.instruct.spec import InstructionFile

NONE = "none"  # the kind of sentences that ask for nothing the team can be asked
END = "end"  # the kind of sentences that end what holds
SETS = ("train", "development", "blind", "published")
TEMPLATE_CATEGORIES = ("contrasts", "spoken", "negatives", "impossible")
SENTENCE_CATEGORIES = ("novel", "instead", "infeasible", "near")
# Sentences that speak of an act without plainly asking for it, by what they do.
ACT_CATEGORIES = (
    *("negation", "permission", "remark", "question"),
    *("postponement", "addressee", "past"),
)


FORMS = 4  # of a verb: do, doing, did, done


class PhraseFileError(ValueError):
    """A phrase file is wrong; the message names the file and what is allowed."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """A sentence with the kind it asks for."""

    text: str
    kind: str
    group: str
    """Sentences of one group come from the same frame and differ only in what fills it."""
    author: str = ""
    """Who wrote it; empty for phrases of the instruction file and for filled templates."""
    category: str = ""
    """One of `SENTENCE_CATEGORIES` or `ACT_CATEGORIES`, where the sentence stands in a block of sentences."""
    also: tuple[str, ...] = ()
    """Other kinds that it may be heard as, where its author finds both right."""
    copy: bool = False
    """Whether it was made from another sentence by adding an opening, a closing, a reason or a typing error."""


@dataclass(frozen=True, kw_only=True)
class Act:
    """Something that can be done in a world, and the kinds that command and forbid it."""

    forms: tuple[tuple[str, str, str, str], ...]
    """Verbs for it, each as: do, doing, did, done."""
    names: tuple[str, ...] = ()
    """Names of the thing that it is done with."""
    command: str = ""
    prohibition: str = ""
    """A kind, or "end" where forbidding it is to end it."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block of a phrase file: sentences, or templates with the words for their slots."""

    place: str
    """The file, the block's number and names, for error messages."""
    set: str
    author: str
    category: str
    sentences: tuple[Example, ...] = ()
    templates: tuple[Mapping[str, Any], ...] = ()
    slots: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PhraseFile:
    """The blocks of a phrase file, in the file's order."""

    path: Path
    blocks: tuple[Block, ...]
    acts: tuple[Act, ...] = ()

    def sentences(self, set: str, category: str = "", author: str = "") -> list[Example]:
        """Return the sentences of a set in the file's order, of one category and one author if these are given."""
        return [
            example
            for block in self.blocks
            if block.set == set
            and category in ("", block.category)
            and author in ("", block.author)
            for example in block.sentences
        ]

    def authors(self, set: str) -> tuple[str, ...]:
        """Return the authors of a set's sentences, in the file's order."""
        return tuple(dict.fromkeys(block.author for block in self.blocks if block.set == set))


def read(path: Path, kinds: Sequence[str]) -> PhraseFile:
    """Read a phrase file for a world with these kinds; anything wrong is a `PhraseFileError`."""
    raw = read_toml(path)
    blocks = tuple(
        _block(f"{path}: block {number}", block, kinds)
        for number, block in enumerate(raw.get("phrases", ()), start=1)
    )
    acts = tuple(
        _act(f"{path}: act {number}", act, kinds)
        for number, act in enumerate(raw.get("acts", ()), 1)
    )
    return PhraseFile(path=path, blocks=blocks, acts=acts)


def read_toml(path: Path) -> dict[str, Any]:
    """Return a TOML file as a dictionary; a file that cannot be read is a `PhraseFileError`."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PhraseFileError(f"{path}: {error}") from None


def train_examples(file: InstructionFile) -> list[Example]:
    """Return the training phrases of an instruction file."""
    return [
        Example(text=text, kind=kind.name, group=text) for kind in file.kinds for text in kind.train
    ]


def held_out_examples(file: InstructionFile) -> list[Example]:
    """Return the held-out phrases of an instruction file."""
    return [
        Example(text=text, kind=kind.name, group=text)
        for kind in file.kinds
        for text in kind.held_out
    ]


def _block(place: str, raw: Mapping[str, Any], kinds: Sequence[str]) -> Block:
    missing = [key for key in ("set", "author", "category") if not raw.get(key)]
    if missing:
        raise PhraseFileError(f"{place}: no {missing[0]}; every block has set, author and category")
    names = {key: raw[key] for key in ("set", "author", "category")}
    place = f"{place} ({', '.join(names.values())})"
    _check(place, "set", names["set"], SETS)
    if names["set"] == "train" and "templates" in raw:
        _check(place, "category", names["category"], TEMPLATE_CATEGORIES)
        templates = tuple(raw.get("templates", ()))
        for template in templates:
            for key in template.get("keys", [""]):
                _check(place, "kind", template["kind"].format(key=key), (NONE, *kinds))
        return Block(place=place, **names, templates=templates, slots=raw.get("slots", {}))
    trained = names["set"] == "train"
    allowed = ACT_CATEGORIES if trained else SENTENCE_CATEGORIES + ACT_CATEGORIES
    _check(place, "category", names["category"], allowed)
    sentences = []
    for asked, texts in raw.get("by_kind", {}).items():
        kind, *also = asked.split(" or ")
        for one in (kind, *also):
            _check(place, "kind", one, (NONE, END, *kinds))
        sentences += [
            Example(
                text=text,
                kind=kind,
                group=text,
                author="" if trained else names["author"],
                category=names["category"],
                also=tuple(also),
            )
            for text in texts
        ]
    return Block(place=place, **names, sentences=tuple(sentences))


def _act(place: str, raw: Mapping[str, Any], kinds: Sequence[str]) -> Act:
    forms = tuple(map(tuple, raw.get("forms", ())))
    if not forms or any(len(form) != FORMS for form in forms):
        raise PhraseFileError(
            f"{place}: forms must be lists of {FORMS} texts: do, doing, did, done"
        )
    for key in ("command", "prohibition"):
        if key in raw:
            _check(place, key, raw[key], (END, *kinds))
    return Act(
        forms=forms,
        names=tuple(raw.get("names", ())),
        command=raw.get("command", ""),
        prohibition=raw.get("prohibition", ""),
    )


def _check(place: str, what: str, name: str, allowed: Sequence[str]) -> None:
    if name not in allowed:
        raise PhraseFileError(
            f"{place}: {what} {name!r} is unknown; {suggest(name, tuple(allowed))}"
        )
