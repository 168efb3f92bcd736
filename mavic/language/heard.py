"""What a team hears of a phrase: its vector (the paper's way), or how probably it asks for each kind of instruction.

A team that hears kinds hears what was understood. Of a training phrase that is its kind, as a one-hot vector. Of any
other sentence it is the calibrated reader's probability of every kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from mavic.language import lexicon as lexicons
from mavic.language.lexicon import Lexicon
from mavic.language.reader import read
from mavic.language.reader.phrase_file import END
from mavic.language.text import fold
from mavic.types import Array

HEARINGS = ("kinds", "vectors")


class KindsAsked(NamedTuple):
    """The kinds that some sentences ask for, as they are understood."""

    shares: np.ndarray  # [S, C - 1] the probability of each kind; "none" has no column
    kind: np.ndarray  # [S] the most probable kind, or 0 where the reader is unsure or hears an end


def phrases_heard(lexicon: Lexicon, hear: str) -> Array:
    """Return [P, D] what a team hears of each row of the lexicon. Silence and spare rows are zero."""
    if hear == "vectors":
        return lexicon.vectors
    return jax.nn.one_hot(lexicon.kind - 1, len(lexicon.names) - 1)


def texts_heard(lexicon: Lexicon, texts: Sequence[str], hear: str) -> np.ndarray:
    """Return [S, D] what a team hears of sentences."""
    if hear == "vectors":
        return lexicons.vectors(texts, lexicon.encoder)
    return kinds_asked(lexicon, texts).shares


def kinds_asked(lexicon: Lexicon, texts: Sequence[str]) -> KindsAsked:
    """Return what is understood of sentences: training phrases with certainty, others as the reader reads them."""
    known = _training_phrases(lexicon)
    shares = np.zeros((len(texts), len(lexicon.names)), np.float32)
    kind = np.array([known.get(fold(text), 0) for text in texts], np.int32)
    shares[np.arange(len(texts)), kind] = 1.0
    free = np.flatnonzero(kind == 0)
    for place, found in zip(
        free, read.understand_all(lexicon, [texts[int(i)] for i in free]), strict=True
    ):
        shares[place] = [found.probabilities.get(name, 0.0) for name in lexicon.names]
        asked = found.asked()
        kind[place] = 0 if asked == END else lexicon.names.index(asked)
    return KindsAsked(shares[:, 1:], kind)


def _training_phrases(lexicon: Lexicon) -> dict[str, int]:
    """Return the kind of each training phrase, by the phrase without case and punctuation."""
    table, count = np.asarray(lexicon.table), np.asarray(lexicon.count)
    return {
        fold(lexicon.texts[row]): kind
        for kind in range(1, len(lexicon.names))
        for row in table[kind, : count[kind]]
    }
