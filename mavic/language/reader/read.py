"""A sentence to an `Understanding`: a kind of instruction, the end of the current one, no instruction, or unsure.

Each built-in world has a shipped head. It reads the default encoder's states whatever encoder a policy uses. For an
instruction file with other kinds, the head that tells what a sentence does is shipped, and the part that tells kinds
apart is fitted once and kept in the cache on disk.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from mavic.language import encoder as encoders
from mavic.language import vectors
from mavic.language.lexicon import Lexicon
from mavic.language.reader import own_head
from mavic.language.reader.model import ACTS_FROM, FORMAT, Head, in_order
from mavic.language.reader.own_head import OwnHead
from mavic.language.reader.phrase_file import END, NONE
from mavic.language.reader.spelling import correct, why_no_sentence
from mavic.language.text import fold

NEAREST = 3
LISTENERS: list[Callable[[str], None]] = []  # are told that a head is fitted, and how far it is
NOTHING_FROM = 0.8  # the least probability of "none" at which `nothing` is true


def say(text: str) -> None:
    """Tell the listeners how far a fit is. The command line is one."""
    for listener in LISTENERS:
        listener(text)


@dataclass(frozen=True, kw_only=True)
class Understanding:
    """What the reader makes of a sentence."""

    text: str
    kind: str
    """The most probable kind or "end", even when unsure; "none" for a text that cannot be read."""
    probability: float
    """Of `kind`."""
    unsure: bool
    """Whether the probability is below the head's threshold."""
    nearest: tuple[tuple[str, str, float], ...]
    """The nearest known phrases, each with its kind and the cosine of the two vectors."""
    probabilities: dict[str, float]
    """By kind. "none" stands for no instruction, "end" for the end of the current one."""
    note: str = ""
    """Why the text cannot be read; empty for a sentence."""

    @property
    def nothing(self) -> bool:
        """Whether the reader is sure that no instruction is given: a remark, a question, words to another person."""
        return self.unsure and not self.note and self.probabilities[NONE] >= NOTHING_FROM

    @property
    def obeyed(self) -> str:
        """The kind or "end" that a team acts on without asking back; "none" if it would ask."""
        return NONE if self.unsure or self.probability < ACTS_FROM else self.kind

    def asked(self, obey_anyway: bool = False) -> str:
        """Return the kind to act on, or "end"; "none" when unsure.

        Args:
            obey_anyway: Return the most probable kind even when unsure, as in the paper.
        """
        if not obey_anyway:
            return NONE if self.unsure else self.kind
        kinds = {kind: p for kind, p in self.probabilities.items() if kind not in (NONE, END)}
        return max(kinds, key=kinds.__getitem__) if kinds else NONE


def understand(lexicon: Lexicon, text: str) -> Understanding:
    """Return what the reader makes of one sentence.

    Args:
        lexicon: The phrases and kinds of a world.
        text: The sentence.

    Returns:
        The kind and its probability, or that the reader is unsure.
    """
    return understand_all(lexicon, [text])[0]


def understand_all(lexicon: Lexicon, texts: Sequence[str]) -> list[Understanding]:
    """Return what the reader makes of many sentences. It is faster than one call for each.

    Args:
        lexicon: The phrases and kinds of a world.
        texts: The sentences.

    Returns:
        One answer for each sentence.
    """
    notes = [why_no_sentence(text) for text in texts]
    readable = [i for i, note in enumerate(notes) if not note]
    answers = [_no_sentence(text, note) for text, note in zip(texts, notes, strict=True)]
    if not readable:
        return answers
    sentences = [texts[i] for i in readable]
    rows = vectors.vectors(sentences, lexicon.encoder)
    head = head_of(lexicon)
    same_encoder = head.encoder_hash == lexicon.encoder_hash
    corrected = [correct(sentence, head.words) for sentence in sentences]
    states = vectors.states(corrected, lexicon.encoder if same_encoder else encoders.DEFAULT)
    shares = head.probabilities(corrected, states)
    shares = in_order(shares, head.names, (*lexicon.names, END))
    shares = _with_known_phrases(lexicon, sentences, shares)
    known, names = np.asarray(lexicon.vectors), (*lexicon.names, END)
    for row, i in enumerate(readable):
        best = 1 + int(shares[row, 1:].argmax())
        answers[i] = Understanding(
            text=texts[i],
            kind=names[best],
            probability=float(shares[row, best]),
            unsure=bool(shares[row, best] < head.threshold),
            nearest=_nearest(lexicon, known, rows[row]),
            probabilities=dict(zip(names, map(float, shares[row]), strict=True)),
        )
    return answers


def _with_known_phrases(
    lexicon: Lexicon, sentences: Sequence[str], shares: np.ndarray
) -> np.ndarray:
    """Return probabilities [sentences, names] with certainty for training phrases, whatever the head says."""
    kinds = lexicon.known_kinds()
    sure = np.eye(shares.shape[1], dtype=shares.dtype)
    given = [kinds.get(fold(sentence)) for sentence in sentences]
    return np.stack(
        [row if kind is None else sure[kind] for row, kind in zip(shares, given, strict=True)]
    )


def _has_shipped_head(lexicon: Lexicon) -> bool:
    """Return whether a head that knows all kinds of the lexicon is shipped with its world."""
    path = vectors.shipped_path(lexicon.world, "head")
    return path.is_file() and set(lexicon.names) <= set(Head.load(path).names)


def head_of(lexicon: Lexicon) -> Head | OwnHead:
    """Return the shipped head of the lexicon's world if it knows all kinds, else one fitted to the phrases."""
    if _has_shipped_head(lexicon):
        return Head.load(vectors.shipped_path(lexicon.world, "head"))
    phrases = tuple(lexicon.training_phrases().items())
    return _fitted(lexicon.world, phrases)


def _no_sentence(text: str, note: str) -> Understanding:
    return Understanding(
        text=text,
        kind=NONE,
        probability=0.0,
        unsure=True,
        nearest=(),
        probabilities={NONE: 1.0},
        note=note,
    )


def _nearest(
    lexicon: Lexicon, known: np.ndarray, vector: np.ndarray
) -> tuple[tuple[str, str, float], ...]:
    rows = [i for i, text in enumerate(lexicon.texts) if text]
    cosine = known[rows] @ vector / known.shape[1]
    best = np.argsort(-cosine)[:NEAREST]
    return tuple(
        (lexicon.texts[rows[i]], lexicon.names[int(lexicon.kind[rows[i]])], float(cosine[i]))
        for i in best
    )


@cache
def _fitted(world: str, phrases: tuple[tuple[str, tuple[str, ...]], ...]) -> OwnHead:
    """Return a head that is fitted to phrases, from the disk if it was fitted before."""
    from mavic.language.reader import own_file  # slow to import, and rarely needed

    shipped = vectors.shipped_path("any", "does")
    facts = repr(
        (FORMAT, own_file.VERSION, hashlib.sha256(shipped.read_bytes()).hexdigest(), world, phrases)
    )
    name = hashlib.sha256(facts.encode()).hexdigest()[:16]
    path = vectors.cache_folder() / "heads" / f"{name}.npz"
    with contextlib.suppress(OSError, ValueError, KeyError):
        if isinstance(found := own_head.load(path), OwnHead):
            return found
    say(f"fitting a reader to the phrases of {world}, once: some seconds …")
    head = own_file.fit(dict(phrases), world, Head.load(shipped), vectors.states, say)
    with contextlib.suppress(OSError):  # a cache that cannot be written
        head.save(path)
    return head
