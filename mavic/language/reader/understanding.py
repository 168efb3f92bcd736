"""Knowing what was asked, and knowing when not: a calibrated head on the frozen encoder's states.

A world's head is shipped and reads the default encoder's states whatever encoder a policy has; for
an instruction file with kinds of its own one is fitted and kept on disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np

from mavic.language import encoder as encoders
from mavic.language import lexicon as lexicons
from mavic.language.lexicon import Lexicon
from mavic.language.reader import head as heads
from mavic.language.reader.head import Head
from mavic.language.reader.phrases import NONE, training_set
from mavic.language.reader.spelling import WORD, mend
from mavic.language.text import TextError, check

LONG = 400  # characters after which a text is no instruction any more
NEAREST = 3


@dataclass(frozen=True, kw_only=True)
class Understanding:
    """What a sentence was taken for; `kind` is the best guess even when unsure."""

    text: str
    kind: str
    probability: float
    unsure: bool
    nearest: tuple[tuple[str, str, float], ...]  # phrase, its kind, cosine
    probabilities: dict[str, float]  # by kind; "none" is what cannot be asked
    note: str = ""  # why, where the text itself is the reason

    def asked(self, obey_anyway: bool = False) -> str:
        """The kind to act on: "none" when unsure, unless one obeys anyway as the paper's do."""
        return NONE if self.unsure and not obey_anyway else self.kind


def understand(lexicon: Lexicon, text: str) -> Understanding:
    """What kind a sentence asks for, or that one cannot be sure."""
    return understand_all(lexicon, [text])[0]


def understand_all(lexicon: Lexicon, texts: Sequence[str]) -> list[Understanding]:
    """`understand` for many sentences at once."""
    notes = [_note(text) for text in texts]
    good = [i for i, note in enumerate(notes) if not note]
    made: list[Understanding] = [
        _nothing(text, note) for text, note in zip(texts, notes, strict=True)
    ]
    if not good:
        return made
    sentences = [texts[i] for i in good]
    vectors = lexicons.vectors(sentences, lexicon.encoder)
    head = head_of(lexicon)
    same = head.encoder_hash == lexicon.encoder_hash
    mended = [mend(sentence, head.words) for sentence in sentences]
    seen = lexicons.states(mended, lexicon.encoder if same else encoders.DEFAULT)
    shares = _of_lexicon(head, lexicon, head.probabilities(mended, seen))
    known = np.asarray(lexicon.vectors)
    for row, i in enumerate(good):
        best = 1 + int(shares[row, 1:].argmax())
        made[i] = Understanding(
            text=texts[i],
            kind=lexicon.names[best],
            probability=float(shares[row, best]),
            unsure=bool(shares[row, best] < head.threshold),
            nearest=_nearest(lexicon, known, vectors[row]),
            probabilities=dict(zip(lexicon.names, map(float, shares[row]), strict=True)),
        )
    return made


def _note(text: str) -> str:
    try:
        folded = check(text)
    except TextError as error:
        return str(error)
    if not WORD.search(folded):
        return "the text has no English word or number"
    if len(folded) > LONG:
        return f"the text is too long for an instruction ({len(text)} characters, at most {LONG})"
    return ""


def _nothing(text: str, note: str) -> Understanding:
    return Understanding(
        text=text,
        kind=NONE,
        probability=0.0,
        unsure=True,
        nearest=(),
        probabilities={NONE: 1.0},
        note=note,
    )


def _of_lexicon(head: Head, lexicon: Lexicon, shares: np.ndarray) -> np.ndarray:
    """Probabilities in the lexicon's order; a kind it lacks cannot be asked, so it is "none"."""
    made = np.zeros((len(shares), len(lexicon.names)), np.float32)
    for column, name in enumerate(head.names):
        made[:, lexicon.names.index(name) if name in lexicon.names else 0] += shares[:, column]
    return made


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


def head_of(lexicon: Lexicon) -> Head:
    """The shipped head if it covers the lexicon, else one fitted to its phrases (kept on disk)."""
    path = head_path(lexicon.world)
    if path.is_file() and set(lexicon.names) <= set(heads.load(path).names):
        return heads.load(path)
    return _fitted(lexicon.encoder, lexicon.encoder_hash, lexicon.world, _phrases(lexicon))


def _phrases(lexicon: Lexicon) -> tuple[tuple[str, tuple[str, ...]], ...]:
    table, count = np.asarray(lexicon.table), np.asarray(lexicon.count)
    return tuple(
        (name, tuple(lexicon.texts[row] for row in table[kind, : count[kind]]))
        for kind, name in enumerate(lexicon.names)
        if kind
    )


@cache
def _fitted(
    encoder: str, encoder_hash: str, world: str, phrases: tuple[tuple[str, tuple[str, ...]], ...]
) -> Head:
    name = hashlib.sha256(repr((heads.FORMAT, encoder_hash, world, phrases)).encode()).hexdigest()[
        :16
    ]
    path = encoders.cache_folder().parent / "heads" / f"{name}.npz"
    try:
        return heads.load(path)
    except (OSError, ValueError, KeyError):
        pass
    examples = training_set({kind: list(texts) for kind, texts in phrases}, world, None)
    names = (NONE, *(kind for kind, _ in phrases))
    head = heads.fit(examples, names, encoders.open_encoder(encoder), heads.QUICK)
    heads.save(head, path)
    return head


def head_path(world: str) -> Path:
    """Where the shipped head of a world lies."""
    return Path(str(resources.files("mavic"))) / "language" / "data" / f"{world}.head.npz"
