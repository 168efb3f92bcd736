"""What a team hears of a phrase: its vector (the paper's way), or how probably it asks for each kind of instruction.

A team that hears kinds gets a training phrase as its kind, one-hot. It gets any other sentence as the calibrated
reader's probability of each kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from mavic.language.lexicon import Lexicon
from mavic.language.reader import read
from mavic.language.reader.phrase_file import END
from mavic.language.text import fold
from mavic.language.vectors import vectors
from mavic.types import Array

HEARINGS = ("kinds", "vectors")


class KindsAsked(NamedTuple):
    """The kinds that some sentences ask for, as they are understood."""

    shares: np.ndarray  # [S, C - 1] the probability of each kind; "none" has no column
    kind: np.ndarray  # [S] the most probable kind, or 0 where the reader is unsure or hears an end


def phrases_heard(lexicon: Lexicon, hear: str) -> Array:
    """Return what a team hears of each phrase.

    Args:
        lexicon: P phrases.
        hear: One of `HEARINGS`.

    Returns:
        Rows [P, D]. Those of silence and the spare rows are zero.
    """
    if hear == "vectors":
        return lexicon.vectors
    return jax.nn.one_hot(lexicon.kind - 1, len(lexicon.names) - 1)


def texts_heard(lexicon: Lexicon, texts: Sequence[str], hear: str) -> np.ndarray:
    """Return what a team hears of sentences.

    Args:
        lexicon: The team's lexicon.
        texts: S sentences.
        hear: One of `HEARINGS`.

    Returns:
        Rows [S, D].
    """
    if hear == "vectors":
        return vectors(texts, lexicon.encoder)
    return kinds_asked(lexicon, texts).shares


def kinds_asked(lexicon: Lexicon, texts: Sequence[str]) -> KindsAsked:
    """Return which kinds sentences ask for. Training phrases are certain; the reader reads the others.

    Args:
        lexicon: The team's lexicon.
        texts: S sentences.

    Returns:
        The probabilities and the kinds.
    """
    known = lexicon.known_kinds()
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
