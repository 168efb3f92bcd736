"""The head: small networks on the frozen encoder's states that give the probability of each kind.

A head averages a few networks, its members. Each member reads three things of a sentence: the states of its word pieces
through two convolutions, which keep the order of words; the sentence's vector; and the words and pairs of words that it
knows. `fit` trains them. The frozen encoder is never trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mavic.language import encoder as encoders
from mavic.language.reader.spelling import words_of

HIDDEN = 64
CHANNELS = 128
KERNEL = 3  # word pieces that a convolution sees; the second one skips every other piece
MAX_WORDS = 40  # known words and pairs that are read of one sentence
BATCH = 128
BY_WORD = ("words", "direct")  # weights with a row for each known word

FORMAT = 4  # version of saved heads, raised when older files can no longer be read

Weights = dict[str, np.ndarray]


class Sentences(NamedTuple):
    """What the networks read of P sentences."""

    states: Any  # [P, S, D], padded with zeros
    length: Any  # [P]: word pieces of each sentence
    vector: Any  # [P, D]
    words: Any  # [P, MAX_WORDS]: numbers of known words; the padding is the number of known words


class Dropout(NamedTuple):
    """Factors that training multiplies parts of a network with; 1 keeps everything."""

    pieces: Any = 1
    channels: Any = 1
    vector: Any = 1
    words: Any = 1
    units: Any = 1


NO_DROPOUT = Dropout()


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
        """Return probabilities [P, 1 + C] of "none" and the kinds, from P texts and their states [S, D] each."""
        read = sentences(texts, states, self.words)
        members = len(self.weights["bias"])
        shares = [
            softmax(logits({k: v[m] for k, v in self.weights.items()}, read) / self.temperature)
            for m in range(members)
        ]
        return np.mean(shares, axis=0)


def save(head: Head, path: Path) -> None:
    """Write a head. The tables of words, which are most of it, have 8 bits a number, and all else has 16."""
    small = {key: value for key, value in head.weights.items() if key not in BY_WORD}
    steps = {key: _step_of(head.weights[key]) for key in BY_WORD}
    rounded = {
        key: np.round(head.weights[key] / step).astype(np.int8) for key, step in steps.items()
    }
    arrays = (
        {f"weights_{key}": value.astype(np.float16) for key, value in small.items()}
        | {f"weights_{key}": value for key, value in rounded.items()}
        | {f"step_{key}": value for key, value in steps.items()}
    )
    encoders.write_whole(
        path,
        lambda file: np.savez_compressed(
            file,
            names=np.array(head.names),
            words=np.array(list(head.words)),
            temperature=np.array(head.temperature),
            threshold=np.array(head.threshold),
            encoder_hash=np.array(head.encoder_hash),
            **arrays,
        ),
    )


def _step_of(table: np.ndarray) -> np.ndarray:
    """Return the distance [members, 1, C] of neighbouring numbers, so that a column's largest one is 127."""
    return (np.abs(table).max(1, keepdims=True).clip(1e-6) / 127).astype(np.float32)


@cache
def load(path: Path) -> Head:
    """Read a head."""
    with np.load(path, allow_pickle=False) as file:
        weights = {
            key.removeprefix("weights_"): file[key].astype(np.float32)
            for key in file.files
            if key.startswith("weights_")
        }
        for key in BY_WORD:
            weights[key] *= file[f"step_{key}"]
        return Head(
            names=tuple(map(str, file["names"])),
            words={str(word): i for i, word in enumerate(file["words"])},
            weights=weights,
            temperature=float(file["temperature"]),
            threshold=float(file["threshold"]),
            encoder_hash=str(file["encoder_hash"]),
        )


def sentences(
    texts: Sequence[str],
    states: Sequence[np.ndarray],
    words: dict[str, int],
    longest: int = encoders.MAX_WORD_PIECES,
) -> Sentences:
    """Return what the networks read of texts and their states [S, D] each; states are cut at `longest` word pieces."""
    length = np.array([min(len(s), longest) for s in states], np.int32)
    padded = np.zeros((len(states), int(length.max()), states[0].shape[1]), np.float16)
    for row, count in enumerate(length):
        padded[row, :count] = states[row][:count]
    vector = np.stack([encoders.pool(s.astype(np.float32)) for s in states])
    return Sentences(padded, length, vector, _word_numbers(texts, words))


def _word_numbers(texts: Sequence[str], words: dict[str, int]) -> np.ndarray:
    """Return the numbers of the known words and pairs in each text [P, MAX_WORDS]; the padding is `len(words)`."""
    numbers = np.full((len(texts), MAX_WORDS), len(words), np.int32)
    for row, text in enumerate(texts):
        singles, pairs = words_of(text)
        found = sorted({words[w] for w in singles + pairs if w in words})[:MAX_WORDS]
        numbers[row, : len(found)] = found
    return numbers


def logits(weights: Weights, read: Sentences) -> np.ndarray:
    """Return logits [P, C] of one member, one batch at a time. It uses numpy, which needs no compilation."""
    batches = (
        Sentences(*(part[start : start + BATCH] for part in read))
        for start in range(0, len(read.length), BATCH)
    )
    return np.concatenate([forward(np, weights, batch) for batch in batches])


def forward(xp: Any, weights: Any, read: Sentences, dropout: Dropout = NO_DROPOUT) -> Any:
    """Return logits [P, C] of one member; `xp` is numpy or jax.numpy."""
    w = weights
    real = (xp.arange(read.states.shape[1])[None] < read.length[:, None])[..., None]
    known = ((read.words < len(w["direct"]) - 1) * dropout.words)[..., None]
    states = read.states.astype(np.float32) * dropout.pieces
    pieces = xp.maximum(states @ w["project"] + w["projected"][None, None], 0)
    pieces = pieces * real * dropout.channels
    near = xp.maximum(_convolve(xp, pieces, w["near"], 1) + w["nearby"][None, None], 0) * real
    far = xp.maximum(_convolve(xp, near, w["far"], 2) + w["farther"][None, None], 0) * real
    found = xp.concatenate(
        [pieces.max(1), near.max(1), far.max(1), far.sum(1) / read.length[:, None]], axis=1
    )
    units = (read.vector * dropout.vector) @ w["vector"] + found @ w["found"] + w["hidden"][None]
    units = xp.maximum(units + (w["words"][read.words] * known).sum(1), 0) * dropout.units
    return units @ w["out"] + w["bias"][None] + (w["direct"][read.words] * known).sum(1)


def _convolve(xp: Any, x: Any, kernel: Any, dilation: int) -> Any:
    """Return the convolution of states over word pieces, with the same shape [P, S, C]."""
    side, length = dilation * (KERNEL // 2), x.shape[1]
    padded = xp.pad(x, ((0, 0), (side, side), (0, 0)))
    return sum(padded[:, i * dilation : i * dilation + length] @ kernel[i] for i in range(KERNEL))


def softmax(x: np.ndarray) -> np.ndarray:
    """Return probabilities [P, C] from logits [P, C]."""
    x = np.exp(x - x.max(1, keepdims=True))
    return x / x.sum(1, keepdims=True)
