"""Reads the sentences of `phrases.toml`, which lies beside a world's `instructions.toml`.

The file is a list of blocks. Each block has a `set` (what it is used for), an `author` and a `category`, and lists
sentences by the kind they ask for. Sentences of the kind "none" give no instruction that the world has, those of "end"
end the current one. The head of each file explains sets and authors. Blocks of templates and the list of acts train the
reader of a built-in world; `tools/reader_data.py` reads them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mavic.hints import suggest
from mavic.instruct.spec import InstructionFile
from mavic.language.text import END, NONE

SETS = ("train", "development", "blind", "published")
SENTENCE_CATEGORIES = ("novel", "instead", "infeasible", "near")
# Sentences that speak of an act without plainly asking for it, by what they do.
ACT_CATEGORIES = (
    *("negation", "permission", "remark", "question"),
    *("postponement", "addressee", "past"),
)


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
    """The writer; empty for phrases of the instruction file and for filled templates."""
    category: str = ""
    """One of `SENTENCE_CATEGORIES` or `ACT_CATEGORIES`, where the sentence stands in a block of sentences."""
    also: tuple[str, ...] = ()
    """Other kinds that it may be heard as, where its author finds both right."""
    copy: bool = False
    """Whether it was made from another sentence by adding an opening, a closing, a reason or a typing error."""


@dataclass(frozen=True, kw_only=True)
class _Block:
    """The sentences of one block."""

    set: str
    author: str
    category: str
    sentences: tuple[Example, ...]


@dataclass(frozen=True, kw_only=True)
class PhraseFile:
    """The blocks of a phrase file, in the file's order."""

    path: Path
    blocks: tuple[_Block, ...]

    @classmethod
    def read(cls, path: Path, kinds: Sequence[str]) -> PhraseFile:
        """Read a phrase file. A mistake in it is a `PhraseFileError`.

        Args:
            path: The file.
            kinds: The kinds of its world.

        Returns:
            Its sentences. Templates are left out.
        """
        try:
            raw = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise PhraseFileError(f"{path}: {error}") from None
        blocks = [
            _block(f"{path}: block {number}", block, kinds)
            for number, block in enumerate(raw.get("phrases", ()), start=1)
        ]
        return cls(path=path, blocks=tuple(block for block in blocks if block is not None))

    def sentences(self, set: str, category: str = "", author: str = "") -> list[Example]:
        """Return the sentences of a set.

        Args:
            set: One of `SETS`.
            category: Only this category; "" for all.
            author: Only this author; "" for all.

        Returns:
            The sentences in the file's order.
        """
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


def held_out_examples(file: InstructionFile) -> list[Example]:
    """Return the held-out phrases of an instruction file."""
    return [
        Example(text=text, kind=kind.name, group=text)
        for kind in file.kinds
        for text in kind.held_out
    ]


def _block(place: str, raw: Mapping[str, Any], kinds: Sequence[str]) -> _Block | None:
    """Return a block of sentences; None for a block of templates."""
    missing = [key for key in ("set", "author", "category") if not raw.get(key)]
    if missing:
        raise PhraseFileError(f"{place}: no {missing[0]}; every block has set, author and category")
    names = {key: raw[key] for key in ("set", "author", "category")}
    place = f"{place} ({', '.join(names.values())})"
    check_name(place, "set", names["set"], SETS)
    if names["set"] == "train" and "templates" in raw:
        return None
    trained = names["set"] == "train"
    allowed = ACT_CATEGORIES if trained else SENTENCE_CATEGORIES + ACT_CATEGORIES
    check_name(place, "category", names["category"], allowed)
    sentences = []
    for asked, texts in raw.get("by_kind", {}).items():
        kind, *also = asked.split(" or ")
        for one in (kind, *also):
            check_name(place, "kind", one, (NONE, END, *kinds))
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
    return _Block(**names, sentences=tuple(sentences))


def check_name(place: str, what: str, name: str, allowed: Sequence[str]) -> None:
    """Refuse an unknown name with a `PhraseFileError`.

    Args:
        place: Where the name stands, for the message.
        what: What it names, for the message.
        name: The name.
        allowed: The known names.
    """
    if name not in allowed:
        raise PhraseFileError(
            f"{place}: {what} {name!r} is unknown; {suggest(name, tuple(allowed))}"
        )
