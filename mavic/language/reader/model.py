"""The head: small networks on the frozen encoder's states that give the probability of each kind.

A head averages a few networks, its members. Each member reads three things of a sentence: the states of its word pieces
through two convolutions, which keep the order of words; the sentence's vector; and the words and pairs of words that it
knows. `fit` trains them. The frozen encoder is never trained.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from mavic.language.encoder import MAX_WORD_PIECES, pool
from mavic.language.reader.spelling import words_of
from mavic.storage import files
from mavic.storage.arrays import read_npz

HIDDEN = 64
CHANNELS = 128
KERNEL = 3  # word pieces that a convolution sees; the second one skips every other piece
MAX_WORDS = 40  # known words and pairs that are read of one sentence
BATCH = 128
BY_WORD = ("words", "direct")  # weights with a row for each known word

ACTS_FROM = 0.8  # the least probability at which a team acts without asking back
FORMAT = 4  # version of saved heads, raised when older files can no longer be read

Weights = dict[str, np.ndarray]


class Dropout(NamedTuple):
    """Factors by which training multiplies parts of a network; 1 has no effect."""

    pieces: Any = 1
    channels: Any = 1
    vector: Any = 1
    words: Any = 1
    units: Any = 1


_NO_DROPOUT = Dropout()


class Sentences(NamedTuple):
    """What the networks read of P sentences."""

    states: Any  # [P, S, D], padded with zeros
    length: Any  # [P]: word pieces of each sentence
    vector: Any  # [P, D]
    words: Any  # [P, MAX_WORDS]: numbers of known words; the padding is the number of known words

    @classmethod
    def read(
        cls,
        texts: Sequence[str],
        states: Sequence[np.ndarray],
        words: dict[str, int],
        longest: int = MAX_WORD_PIECES,
    ) -> Sentences:
        """Return what the networks read of some texts.

        Args:
            texts: P sentences.
            states: The encoder's states of each, [S, D].
            words: The numbers of the known words.
            longest: States are cut at this many word pieces.

        Returns:
            Arrays over the P sentences.
        """
        length = np.array([min(len(s), longest) for s in states], np.int32)
        padded = np.zeros((len(states), int(length.max()), states[0].shape[1]), np.float16)
        for row, count in enumerate(length):
            padded[row, :count] = states[row][:count]
        vector = np.stack([pool(s.astype(np.float32)) for s in states])
        return cls(padded, length, vector, _word_numbers(texts, words))

    def at(self, rows: Any) -> Sentences:
        """Return some of the sentences."""
        return Sentences(*(part[rows] for part in self))

    def forward(self, xp: Any, weights: Any, dropout: Dropout = _NO_DROPOUT) -> Any:
        """Return the logits of one member.

        Args:
            xp: numpy or jax.numpy.
            weights: The member's weights by name.
            dropout: The factors of a training step.

        Returns:
            Logits [P, C].
        """
        w = weights
        real = (xp.arange(self.states.shape[1])[None] < self.length[:, None])[..., None]
        known = ((self.words < len(w["direct"]) - 1) * dropout.words)[..., None]
        states = self.states.astype(np.float32) * dropout.pieces
        pieces = xp.maximum(states @ w["project"] + w["projected"][None, None], 0)
        pieces = pieces * real * dropout.channels
        near = xp.maximum(_convolve(xp, pieces, w["near"], 1) + w["nearby"][None, None], 0) * real
        far = xp.maximum(_convolve(xp, near, w["far"], 2) + w["farther"][None, None], 0) * real
        found = xp.concatenate(
            [pieces.max(1), near.max(1), far.max(1), far.sum(1) / self.length[:, None]], axis=1
        )
        units = (
            (self.vector * dropout.vector) @ w["vector"] + found @ w["found"] + w["hidden"][None]
        )
        units = xp.maximum(units + (w["words"][self.words] * known).sum(1), 0) * dropout.units
        return units @ w["out"] + w["bias"][None] + (w["direct"][self.words] * known).sum(1)

    def logits(self, weights: Weights) -> np.ndarray:
        """Return logits [P, C] of one member, in batches and in numpy, which needs no compilation."""
        starts = range(0, len(self.length), BATCH)
        batches = (self.at(slice(start, start + BATCH)) for start in starts)
        return np.concatenate([batch.forward(np, weights) for batch in batches])


@dataclass(frozen=True, kw_only=True)
class Head:
    """The weights of all members, the words they know, and the calibration."""

    names: tuple[str, ...]  # of the kinds; the first is "none", the last "end"
    words: dict[str, int]
    weights: Weights  # each [members, ...]
    temperature: float
    threshold: float  # below this probability of the best kind the reader is unsure
    encoder_hash: str

    def probabilities(self, texts: Sequence[str], states: Sequence[np.ndarray]) -> np.ndarray:
        """Return the probabilities of the kinds.

        Args:
            texts: P sentences.
            states: The encoder's states of each, [S, D].

        Returns:
            [P, C], in the order of `names`.
        """
        read = Sentences.read(texts, states, self.words)
        members = range(len(self.weights["bias"]))
        by_member = [read.logits({k: v[m] for k, v in self.weights.items()}) for m in members]
        return mean_probabilities(by_member, self.temperature)

    def save(self, path: Path) -> None:
        """Write the head into a file."""
        data = io.BytesIO()
        self.write(data)
        files.write_bytes(path, data.getvalue())
        _load.cache_clear()

    def write(self, data: IO[bytes]) -> None:
        """Write the head. The large tables of words take 8 bits a number, other weights 16."""
        arrays: dict[str, Any] = {
            f"weights_{key}": value.astype(np.float16) for key, value in self.weights.items()
        }
        for key in BY_WORD:
            step = _step_of(self.weights[key])
            arrays[f"weights_{key}"] = np.round(self.weights[key] / step).astype(np.int8)
            arrays[f"step_{key}"] = step
        np.savez_compressed(
            data,
            names=np.array(self.names),
            words=np.array(list(self.words)),
            temperature=np.array(self.temperature),
            threshold=np.array(self.threshold),
            encoder_hash=np.array(self.encoder_hash),
            **arrays,
        )

    @staticmethod
    def load(path: Path) -> Head:
        """Return the head of a file. It is read once in a process."""
        return _load(path)

    @staticmethod
    def read(data: io.BytesIO) -> Head:
        """Return the head that `write` wrote."""
        return _head_of(read_npz(data))


@cache
def _load(path: Path) -> Head:
    return _head_of(read_npz(path))


def _head_of(arrays: dict[str, np.ndarray]) -> Head:
    prefix = "weights_"
    weights = {
        key.removeprefix(prefix): value.astype(np.float32)
        for key, value in arrays.items()
        if key.startswith(prefix)
    }
    for key in BY_WORD:
        weights[key] *= arrays[f"step_{key}"]
    return Head(
        names=tuple(map(str, arrays["names"])),
        words={str(word): i for i, word in enumerate(arrays["words"])},
        weights=weights,
        temperature=float(arrays["temperature"]),
        threshold=float(arrays["threshold"]),
        encoder_hash=str(arrays["encoder_hash"]),
    )


def in_order(shares: np.ndarray, own: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """Return probabilities in another order of names.

    Args:
        shares: [P, C], in the order of `own`.
        own: The C names.
        names: The wanted ones; the first is "none". A name that they lack counts as "none".

    Returns:
        [P, len(names)].
    """
    ordered = np.zeros((len(shares), len(names)), np.float32)
    for column, name in enumerate(own):
        ordered[:, list(names).index(name) if name in names else 0] += shares[:, column]
    return ordered


def _step_of(table: np.ndarray) -> np.ndarray:
    """Return the distance [members, 1, C] of neighbouring numbers, so that a column's largest one is 127."""
    return (np.abs(table).max(1, keepdims=True).clip(1e-6) / 127).astype(np.float32)


def _word_numbers(texts: Sequence[str], words: dict[str, int]) -> np.ndarray:
    """Return the numbers of the known words and pairs in each text [P, MAX_WORDS]; the padding is `len(words)`."""
    numbers = np.full((len(texts), MAX_WORDS), len(words), np.int32)
    for row, text in enumerate(texts):
        singles, pairs = words_of(text)
        found = sorted({words[w] for w in singles + pairs if w in words})[:MAX_WORDS]
        numbers[row, : len(found)] = found
    return numbers


def _convolve(xp: Any, x: Any, kernel: Any, dilation: int) -> Any:
    """Return the convolution of states over word pieces, with the same shape [P, S, C]."""
    side, length = dilation * (KERNEL // 2), x.shape[1]
    padded = xp.pad(x, ((0, 0), (side, side), (0, 0)))
    return sum(padded[:, i * dilation : i * dilation + length] @ kernel[i] for i in range(KERNEL))


def mean_probabilities(
    members: Sequence[np.ndarray] | np.ndarray, temperature: float
) -> np.ndarray:
    """Return the mean of the members' probabilities.

    Args:
        members: Logits [P, C] of each member.
        temperature: Divides the logits.

    Returns:
        Probabilities [P, C].
    """
    return np.mean([softmax(member / temperature) for member in members], axis=0)


def softmax(x: np.ndarray) -> np.ndarray:
    """Return the probabilities of logits [P, C]."""
    x = np.exp(x - x.max(1, keepdims=True))
    return x / x.sum(1, keepdims=True)
