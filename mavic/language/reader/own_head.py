"""The head of an instruction file of one's own: what a sentence does, and which kind it is about.

What a sentence does (ask, forbid, stop, release, or none of these) depends little on the world, so one head for all
worlds tells it; it is shipped. Which kind a sentence is about is told by a softmax regression on the file's phrases,
which takes seconds to fit (`own_file.fit`). The product of both gives the probability of each kind.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from mavic.language.encoder import pool
from mavic.language.reader.model import ACTS_FROM, Head, in_order, softmax
from mavic.language.reader.spelling import words_of
from mavic.language.text import END, NONE, fold
from mavic.storage import files
from mavic.storage.arrays import read_npz

DO, DONT, STOP = "do", "dont", "stop"
DOES = (NONE, DO, DONT, STOP, END)  # what a sentence does
"""A sentence that stops ("stop digging") forbids what a kind forbids, and ends what a kind commands."""
# Chosen on the development sentences of tests/language/files. A request is not given up for every remark that it
# resembles, nor for being asked in the manner of the other sort of kinds.
NOTHING_WEIGHT = 0.6  # of sentences that do nothing, against those that ask
CONTRARY_WEIGHT = 0.1  # of asking for what a kind forbids, and of forbidding what it commands
SHARPNESS = 1.8  # exponent of the probabilities; both parts are careful, and so their product is too careful
VECTOR_SCALE = 3.0  # length of a sentence's vector beside its known words, which have length 1 ...
WORDS_SCALE = 3.0  # ... times this
_DIGITS = {
    word: str(digit)
    for digit, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    )
}
_ORDINALS = {
    word: str(n) for n, word in enumerate(["first", "second", "third", "fourth", "fifth"], 1)
}


@dataclass(frozen=True, kw_only=True)
class Topics:
    """Which kind a sentence is about, whatever it does with it."""

    names: tuple[str, ...]
    """"none", for things of no kind, and the kinds."""
    words: dict[str, int]
    numbered: tuple[str, ...]
    """Nouns that the file numbers, as "bed" in "bed 1"."""
    weights: np.ndarray
    """[D + W + 1, C], for the vector, the known words and 1."""

    def probabilities(self, texts: Sequence[str], states: Sequence[np.ndarray]) -> np.ndarray:
        """Return the probability of each name [P, C].

        Args:
            texts: P sentences.
            states: The encoder's states of each, [S, D].
        """
        inputs = inputs_of([with_digits(t, self.numbered) for t in texts], states, self.words)
        return softmax(inputs @ self.weights)


@dataclass(frozen=True, kw_only=True)
class OwnHead:
    """The head of an instruction file of one's own. It is used like a `Head`."""

    does: Head
    topics: Topics
    manner: np.ndarray
    """[C, 4] how far each kind of `topics` is asked for by sentences that ask, forbid, stop and end."""

    @property
    def names(self) -> tuple[str, ...]:
        """ "none", the kinds and "end"."""
        return (*self.topics.names, END)

    @property
    def words(self) -> dict[str, int]:
        """The words that typing errors are corrected to: the file's own come first."""
        return {
            word: n for n, word in enumerate(dict.fromkeys((*self.topics.words, *self.does.words)))
        }

    @property
    def threshold(self) -> float:
        """Below this probability of the best kind the reader is unsure."""
        return ACTS_FROM

    @property
    def encoder_hash(self) -> str:
        """Of the encoder whose states are read."""
        return self.does.encoder_hash

    def probabilities(self, texts: Sequence[str], states: Sequence[np.ndarray]) -> np.ndarray:
        """Return the probabilities of `names` [P, C + 1].

        Args:
            texts: P sentences.
            states: The encoder's states of each, [S, D].
        """
        does = in_order(self.does.probabilities(texts, states), self.does.names, DOES)
        return combined(does, self.topics.probabilities(texts, states), self.manner)

    def save(self, path: Path) -> None:
        """Write the head, with the one that is shipped."""
        shipped = io.BytesIO()
        self.does.write(shipped)
        data = io.BytesIO()
        np.savez_compressed(
            data,
            does=np.frombuffer(shipped.getvalue(), np.uint8),
            topics=np.array(self.topics.names),
            words=np.array(list(self.topics.words)),
            numbered=np.array(self.topics.numbered, dtype=str),
            topic_weights=self.topics.weights.astype(np.float16),
            manner=self.manner.astype(np.float32),
        )
        files.write_bytes(path, data.getvalue())
        load.cache_clear()


@cache
def load(path: Path) -> Head | OwnHead:
    """Return the head of a file, whichever of the two it is. It is read once in a process."""
    arrays = read_npz(path)
    if "does" not in arrays:
        return Head.load(path)
    topics = Topics(
        names=tuple(map(str, arrays["topics"])),
        words={str(word): n for n, word in enumerate(arrays["words"])},
        numbered=tuple(map(str, arrays["numbered"])),
        weights=arrays["topic_weights"].astype(np.float32),
    )
    does = Head.read(io.BytesIO(arrays["does"].tobytes()))
    return OwnHead(does=does, topics=topics, manner=arrays["manner"])


def combined(does: np.ndarray, topics: np.ndarray, manner: np.ndarray) -> np.ndarray:
    """Return the probabilities of "none", each kind and "end" [P, C + 1].

    Args:
        does: [P, 5] in the order of `DOES`.
        topics: [P, C] of "none" and the kinds.
        manner: [C, 4] as in `OwnHead`.
    """
    none, do, dont, stop, end = does.T[..., None]
    none = none * NOTHING_WEIGHT
    asks, forbids, stops, ends = manner.T
    kind = do * asks + dont * forbids + stop * stops + end * ends  # [P, C]
    over = stop * (1 - stops) + end * (1 - ends)
    nothing = none + CONTRARY_WEIGHT * (do * (1 - asks) + dont * (1 - forbids))
    # A sentence about no kind asks for nothing, and may still end what holds ("never mind").
    kind[:, 0], over[:, 0] = 0, end[:, 0]
    nothing[:, 0] = (none + do + dont + stop)[:, 0]
    of_kind = topics / (kind + over + nothing)
    found = np.concatenate([kind * of_kind, (over * of_kind).sum(1, keepdims=True)], 1)
    found[:, 0] = (nothing * of_kind).sum(1)
    found **= SHARPNESS
    return (found / found.sum(1, keepdims=True)).astype(np.float32)


def inputs_of(
    texts: Sequence[str], states: Sequence[np.ndarray], words: dict[str, int]
) -> np.ndarray:
    """Return what `Topics` reads of sentences [P, D + W + 1].

    Args:
        texts: P sentences.
        states: The encoder's states of each, [S, D].
        words: The numbers of the known words and pairs of words.
    """
    vectors = np.stack([pool(s.astype(np.float32)) for s in states])
    vectors *= VECTOR_SCALE / np.linalg.norm(vectors, axis=1, keepdims=True)
    known = np.zeros((len(texts), len(words)), np.float32)
    for row, text in enumerate(texts):
        singles, pairs = words_of(text)
        known[row, [words[word] for word in {*singles, *pairs} if word in words]] = 1
    known *= WORDS_SCALE / np.sqrt(known.sum(1, keepdims=True).clip(1))
    return np.concatenate([vectors, known, np.ones((len(texts), 1), np.float32)], 1)


def numbered_in(texts: Collection[str]) -> tuple[str, ...]:
    """Return the nouns that stand before a digit in some texts."""
    found = {m[1] for text in texts for m in re.finditer(r"\b([a-z]+) \d+\b", fold(text))}
    return tuple(sorted(found))


def with_digits(text: str, numbered: Sequence[str]) -> str:
    """Return a text in which numbered things have digits: "the second bed" and "bed number two" become "bed 2".

    Args:
        text: The text.
        numbered: The nouns.
    """
    text = fold(text)
    if not numbered:
        return text
    noun, number = "|".join(map(re.escape, numbered)), "|".join(_DIGITS)
    text = re.sub(
        rf"\b({noun}) (?:number |no\.? |# ?)?({number}|\d+)\b",
        lambda m: f"{m[1]} {_DIGITS.get(m[2], m[2])}",
        text,
    )
    return re.sub(
        rf"\b(?:the )?({'|'.join(_ORDINALS)}) ({noun})\b",
        lambda m: f"{m[2]} {_ORDINALS[m[1]]}",
        text,
    )
