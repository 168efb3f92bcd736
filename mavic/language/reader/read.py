"""A sentence to an `Understanding`: the kind of instruction it asks for, an end of what holds, nothing, or unsure.

Each built-in world has a shipped head, which reads the default encoder's states whatever encoder a policy uses. For an
instruction file with kinds of its own a head is fitted once and kept on disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from mavic.language import encoder as encoders
from mavic.language import lexicon as lexicons
from mavic.language import shipped
from mavic.language.lexicon import Lexicon
from mavic.language.reader import model
from mavic.language.reader.data import training_set
from mavic.language.reader.model import Head
from mavic.language.reader.phrase_file import END, NONE
from mavic.language.reader.spelling import WORD, correct
from mavic.language.text import TextError, check, fold

MAX_CHARACTERS = 400  # a longer text is no instruction
NEAREST = 3
ACTS_FROM = 0.8  # the least probability at which a team acts without asking back
NOTHING_FROM = (
    0.8  # the least probability of "none" at which a sentence is known to ask for nothing
)


@dataclass(frozen=True, kw_only=True)
class Understanding:
    """What the reader makes of a sentence."""

    text: str
    kind: str
    """The most probable kind or "end", even when unsure; "none" if the text is no sentence."""
    probability: float
    """Of `kind`."""
    unsure: bool
    """Whether the probability is below the head's threshold."""
    nearest: tuple[tuple[str, str, float], ...]
    """The nearest known phrases, each with its kind and the cosine of the two vectors."""
    probabilities: dict[str, float]
    """By kind; "none" stands for what asks for nothing, "end" for what ends the instruction that holds."""
    note: str = ""
    """Why the text is no sentence, if it is none."""

    @property
    def nothing(self) -> bool:
        """Whether the sentence is known to ask for nothing: a remark, a question, a word to somebody else."""
        return self.unsure and not self.note and self.probabilities[NONE] >= NOTHING_FROM

    @property
    def obeyed(self) -> str:
        """The kind that is acted on without asking back, or "end"; "none" if there is no such kind."""
        return NONE if self.unsure or self.probability < ACTS_FROM else self.kind

    def asked(self, obey_anyway: bool = False) -> str:
        """Return the kind to act on, or "end"; "none" when unsure.

        With `obey_anyway` it is the most probable kind, as in the paper.
        """
        if not obey_anyway:
            return NONE if self.unsure else self.kind
        kinds = {kind: p for kind, p in self.probabilities.items() if kind not in (NONE, END)}
        return max(kinds, key=kinds.__getitem__) if kinds else NONE


def understand(lexicon: Lexicon, text: str) -> Understanding:
    """Return the kind that a sentence asks for, or unsure."""
    return understand_all(lexicon, [text])[0]


def understand_all(lexicon: Lexicon, texts: Sequence[str]) -> list[Understanding]:
    """Return what `understand` returns, for many sentences at once."""
    notes = [_why_no_sentence(text) for text in texts]
    readable = [i for i, note in enumerate(notes) if not note]
    answers = [_no_sentence(text, note) for text, note in zip(texts, notes, strict=True)]
    if not readable:
        return answers
    sentences = [texts[i] for i in readable]
    vectors = lexicons.vectors(sentences, lexicon.encoder)
    head = head_of(lexicon)
    same_encoder = head.encoder_hash == lexicon.encoder_hash
    corrected = [correct(sentence, head.words) for sentence in sentences]
    states = lexicons.states(corrected, lexicon.encoder if same_encoder else encoders.DEFAULT)
    shares = _in_order_of(lexicon, head, head.probabilities(corrected, states))
    shares = _with_known_phrases(lexicon, sentences, shares)
    known, names = np.asarray(lexicon.vectors), (*lexicon.names, END)
    for row, i in enumerate(readable):
        best = 1 + int(shares[row, 1:].argmax())
        answers[i] = Understanding(
            text=texts[i],
            kind=names[best],
            probability=float(shares[row, best]),
            unsure=bool(shares[row, best] < head.threshold),
            nearest=_nearest(lexicon, known, vectors[row]),
            probabilities=dict(zip(names, map(float, shares[row]), strict=True)),
        )
    return answers


def _with_known_phrases(
    lexicon: Lexicon, sentences: Sequence[str], shares: np.ndarray
) -> np.ndarray:
    """Return probabilities [sentences, names] in which a training phrase asks for its kind, whatever the head says."""
    trained = (i for i, text in enumerate(lexicon.texts) if text and not lexicon.held_out[i])
    kinds = {fold(lexicon.texts[i]): int(lexicon.kind[i]) for i in trained}
    sure = np.eye(shares.shape[1], dtype=shares.dtype)
    given = [kinds.get(fold(sentence)) for sentence in sentences]
    return np.stack(
        [row if kind is None else sure[kind] for row, kind in zip(shares, given, strict=True)]
    )


def head_of(lexicon: Lexicon) -> Head:
    """Return the shipped head of the lexicon's world if it knows all kinds, else one fitted to the phrases."""
    path = shipped.head_path(lexicon.world)
    if path.is_file() and set(lexicon.names) <= set(model.load(path).names):
        return model.load(path)
    return _fitted(lexicon.encoder, lexicon.encoder_hash, lexicon.world, _train_phrases(lexicon))


def _why_no_sentence(text: str) -> str:
    """Return why a text cannot be an instruction; empty if it can be one."""
    try:
        folded = check(text)
    except TextError as error:
        return str(error)
    if not WORD.search(folded):
        return "the text has no English word or number"
    if len(folded) > MAX_CHARACTERS:
        return (
            f"the text is too long for an instruction "
            f"({len(text)} characters, at most {MAX_CHARACTERS})"
        )
    return ""


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


def _in_order_of(lexicon: Lexicon, head: Head, shares: np.ndarray) -> np.ndarray:
    """Return probabilities in the lexicon's order of kinds, then of "end". A kind it lacks counts as "none"."""
    names = (*lexicon.names, END)
    ordered = np.zeros((len(shares), len(names)), np.float32)
    for column, name in enumerate(head.names):
        ordered[:, names.index(name) if name in names else 0] += shares[:, column]
    return ordered


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


def _train_phrases(lexicon: Lexicon) -> tuple[tuple[str, tuple[str, ...]], ...]:
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
    """Return a quickly fitted head, from the disk if it was fitted before."""
    from mavic.language.reader import fit

    facts = repr((model.FORMAT, fit.FLAGGED_SHARE, encoder_hash, world, phrases))
    name = hashlib.sha256(facts.encode()).hexdigest()[:16]
    path = encoders.cache_folder().parent / "heads" / f"{name}.npz"
    try:
        return model.load(path)
    except (OSError, ValueError, KeyError):
        pass
    names = (NONE, *(kind for kind, _ in phrases), END)
    examples = training_set(dict(phrases), seed=world)
    head = fit.fit(examples, names, encoders.open_encoder(encoder), fit.QUICK)
    model.save(head, path)
    return head
