"""From typed words to an instruction: a kind and the phrase of the lexicon that stands for the words, or an end."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from mavic.language.conversation import speech
from mavic.language.lexicon import Lexicon
from mavic.language.reader.phrase_file import END
from mavic.language.reader.read import understand
from mavic.language.text import fold
from mavic.language.vectors import vectors

SUGGESTED_KINDS = 3  # offered when a sentence was not understood


class Heard(NamedTuple):
    """What words were understood as."""

    text: str
    kind: str  # the most probable kind or "end", even when unsure
    row: int  # of the lexicon: the training phrase that stands for a free sentence
    own_row: int  # of the lexicon: a free sentence itself, in a spare row
    probability: float
    unsure: bool
    nearest: tuple[tuple[str, str, float], ...]  # phrase, its kind, cosine
    closest: tuple[str, ...]  # kinds, the most probable first
    note: str  # why the text cannot be read; empty for a sentence
    nothing: bool = False  # the reader is sure that no instruction is given

    @property
    def ends(self) -> bool:
        """Whether the words end the current instructions."""
        return self.kind == END and not self.unsure


def hear(lexicon: Lexicon, words: str) -> Heard:
    """Return what words are understood as.

    A team that hears vectors hears a free sentence as the nearest training phrase of its kind (`row`). A team that
    hears kinds hears the reader's probabilities of the sentence itself (`own_row`).

    Args:
        lexicon: The world's phrases.
        words: A kind's name, a phrase of the lexicon, "never mind" and the like, or a free sentence.

    Returns:
        The kind or "end", and the rows that a team hears.
    """
    if (phrase := known(lexicon, words)) is not None:
        return phrase
    if speech.ends(words):
        return Heard(words, END, 0, 0, 1.0, False, (), (), "")
    return _free(lexicon, words)


def known(lexicon: Lexicon, words: str) -> Heard | None:
    """Return what words of the lexicon are understood as.

    Args:
        lexicon: The world's phrases.
        words: A kind's name, or a phrase in any spelling that `fold` makes equal.

    Returns:
        The kind with certainty; None for other words.
    """
    if words in lexicon.names:
        row = int(lexicon.table[lexicon.names.index(words), 0])
        return _known(lexicon, row, words)
    rows, folded = _rows_by_text(lexicon.texts), fold(words)
    if folded and folded in rows:
        row = rows[folded]
        return _known(lexicon, row, lexicon.names[int(lexicon.kind[row])])
    return None


def _known(lexicon: Lexicon, row: int, kind: str) -> Heard:
    """Return a phrase of the lexicon, understood with certainty."""
    return Heard(lexicon.texts[row], kind, row, row, 1.0, False, (), (), "")


def _free(lexicon: Lexicon, words: str) -> Heard:
    """Return what the sentence reader makes of words that are not in the lexicon."""
    found = understand(lexicon, words)
    shares = {kind: share for kind, share in found.probabilities.items() if kind in lexicon.names}
    ranked = sorted(list(lexicon.names[1:]), key=lambda kind: -shares.get(kind, 0.0))
    unsure = found.obeyed not in (*lexicon.names[1:], END)
    row = own_row = lexicon.spare_row
    if not unsure and found.kind == END:
        row = own_row = 0
    elif not unsure:
        (vector,) = vectors([words], lexicon.encoder)
        row = lexicon.closest(vector, lexicon.names.index(found.kind))
    return Heard(
        text=words,
        kind=found.kind,
        row=row,
        own_row=own_row,
        probability=found.probability,
        unsure=unsure,
        nearest=found.nearest,
        closest=tuple(ranked[:SUGGESTED_KINDS]),
        note=found.note,
        nothing=found.nothing,
    )


@lru_cache(8)
def _rows_by_text(texts: tuple[str, ...]) -> dict[str, int]:
    """Return the first row of each text, by the text without case and punctuation."""
    rows: dict[str, int] = {}
    for row, text in enumerate(texts):
        if text:
            rows.setdefault(fold(text), row)
    return rows
