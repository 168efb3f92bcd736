"""Trains and calibrates a head.

The members are trained on all examples. Temperature and threshold come from predictions for sentences that a fit has
not seen: each development author is left out once, several at a time. The head that tells what a sentence does is not
calibrated by itself: `own_head` weighs its answers.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from mavic.language import encoder as encoders
from mavic.language.reader.model import (
    ACTS_FROM,
    BATCH,
    BY_WORD,
    CHANNELS,
    HIDDEN,
    KERNEL,
    MAX_WORDS,
    Dropout,
    Head,
    Sentences,
    Weights,
    mean_probabilities,
)
from mavic.language.reader.phrase_file import ACT_CATEGORIES, END, NONE, Example
from mavic.language.reader.spelling import known_words

MAX_PIECES = 20  # word pieces of a sentence that are trained on; answering has no such limit
LEARNING_RATE = 2.5e-3
WEIGHT_DECAY = 1e-2
UNIT_DROPOUT = 0.3  # share of hidden units and of known words
INPUT_DROPOUT = 0.1  # share of word pieces, of channels and of a vector's entries
NONE_WEIGHT = 0.7  # sampling weight of "none" relative to all kinds together
# The shares of the batches that are sentences about acts, by what they ask for. The rest is balanced as above.
ACT_SHARES = {NONE: 0.17, END: 0.12, "": 0.17}
MAX_THRESHOLD = 0.9
# What the threshold aims at for an unseen author: the share of novel sentences that are kept, and the shares of the
# other categories that are answered with unsure. The targets in `measure` are 0.95, 0.95 and 0.80. Sentences about acts
# have no aim here: people's words are acted on from `read.ACTS_FROM` on, which is higher than this threshold.
AIMS = {"novel": 0.97, "infeasible": 0.95, "near": 0.85}


@dataclass(frozen=True, kw_only=True)
class _Effort:
    """How much to train."""

    members: int
    """Networks of the head."""
    steps: int
    calibration_members: int = 1
    """Networks for each fold of authors that is left out."""
    folds: int = 2
    """Folds of authors."""
    channels: int = CHANNELS
    """Of the convolutions."""


_SHIPPED = _Effort(members=3, steps=2200)
DOES = _Effort(members=3, steps=1600, channels=96)


def fit(
    examples: list[Example],
    names: tuple[str, ...],
    encoder: encoders.Encoder,
    effort: _Effort = _SHIPPED,
    words: dict[str, int] | None = None,
    shares: Mapping[str, float] | None = None,
) -> Head:
    """Train a head, and calibrate it where the examples have authors.

    Args:
        examples: The training set, of which sentences with an author also calibrate.
        names: The kinds. The first is "none", the last "end".
        encoder: Gives the states of the sentences.
        effort: How much to train.
        words: The numbers of the known words; None: those of enough sentences.
        shares: The share of each kind in the batches; None: as `_balance` says.

    Returns:
        The head.
    """
    texts = [example.text for example in examples]
    kinds = np.array([names.index(example.kind) for example in examples])
    words = known_words(texts) if words is None else words
    read = Sentences.read(texts, encoder.states(texts), words, MAX_PIECES)
    temperature, threshold = 1.0, ACTS_FROM
    if any(example.author for example in examples):
        temperature, threshold = _calibrated(examples, read, kinds, len(words), len(names), effort)
    weight = _balance(examples, kinds, len(names))
    if shares is not None:
        weight = _by_frame(examples)
        for kind, share in shares.items():
            chosen = kinds == names.index(kind)
            weight[chosen] *= share / weight[chosen].sum()
    members = [
        _train(100 + m, read, kinds, weight, len(words), len(names), effort)
        for m in range(effort.members)
    ]
    return Head(
        names=names,
        words=words,
        weights={key: np.stack([m[key] for m in members]) for key in members[0]},
        temperature=temperature,
        threshold=threshold,
        encoder_hash=encoder.hash,
    )


def _calibrated(
    examples: list[Example],
    read: Sentences,
    kinds: np.ndarray,
    words: int,
    count: int,
    effort: _Effort,
) -> tuple[float, float]:
    """Return the temperature and the threshold."""
    unseen, tried = _unseen_logits(examples, read, kinds, words, count, effort)
    as_written = np.zeros(len(examples))
    as_written[[not e.copy for e in examples]] = _by_frame([e for e in examples if not e.copy])
    chosen = [examples[i] for i in np.flatnonzero(tried)]
    temperature = _temperature(unseen, _by_frame(examples)[tried], kinds[tried])
    shares = mean_probabilities(unseen, temperature)
    return temperature, _threshold(shares, as_written[tried], kinds[tried], chosen)


def _unseen_logits(
    examples: list[Example],
    read: Sentences,
    kinds: np.ndarray,
    words: int,
    count: int,
    effort: _Effort,
) -> tuple[np.ndarray, np.ndarray]:
    """Return logits [members, tried, C] by fits without the author, and which examples [P] were tried."""
    authors = sorted({example.author for example in examples} - {""})
    numbers = [authors.index(e.author) % effort.folds if e.author else -1 for e in examples]
    fold_of = np.array(numbers)
    folds = effort.folds
    found = np.zeros((effort.calibration_members, len(examples), count), np.float32)
    for number in range(folds):
        seen = fold_of != number
        weight = np.zeros(len(examples))
        chosen = [examples[i] for i in np.flatnonzero(seen)]
        weight[seen] = _balance(chosen, kinds[seen], count)
        rest = read.at(~seen)
        for member in range(effort.calibration_members):
            seed = number + folds * member
            weights = _train(seed, read, kinds, weight, words, count, effort)
            found[member, ~seen] = rest.logits(weights)
    tried = fold_of >= 0
    return found[:, tried], tried


def _temperature(members: np.ndarray, weight: np.ndarray, kinds: np.ndarray) -> float:
    """Return the temperature with the smallest weighted cross-entropy."""

    def loss(temperature: float) -> float:
        right = mean_probabilities(members, temperature)[np.arange(len(kinds)), kinds]
        return float(-weight @ np.log(right.clip(1e-9)))

    return float(min(np.geomspace(0.5, 5.0, 40), key=loss))


def _threshold(
    shares: np.ndarray, weight: np.ndarray, kinds: np.ndarray, examples: Sequence[Example]
) -> float:
    """Return the threshold on the best kind's probability that serves the worst of the three `AIMS` best.

    Distances from an aim are measured in standard errors.
    """
    best = shares[:, 1:].max(1)
    parts = {name: np.array([e.category == name for e in examples]) for name in AIMS}
    tried = np.linspace(0.02, MAX_THRESHOLD, 177)
    worst = np.full(len(tried), np.inf)
    for name, aim in AIMS.items():
        values, share = best[parts[name]], weight[parts[name]] / weight[parts[name]].sum()
        kept = np.array([share[values >= threshold].sum() for threshold in tried])
        reached = kept if name == "novel" else 1 - kept
        error = np.sqrt(aim * (1 - aim) / weight[parts[name]].sum())
        worst = np.minimum(worst, (reached - aim) / error)
    return float(np.median(tried[worst >= worst.max() - 1e-9]))


def _by_frame(examples: Sequence[Example]) -> np.ndarray:
    """Return weights [P] that give every frame of a kind the same total, however often it was filled."""
    fillings = collections.Counter((e.group, e.kind) for e in examples)
    return np.array([1 / fillings[e.group, e.kind] for e in examples])


def _balance(examples: Sequence[Example], kinds: np.ndarray, count: int) -> np.ndarray:
    """Return sampling weights [P]: the same for all kinds, and `NONE_WEIGHT` times their sum for "none".

    Sentences about acts have the shares `ACT_SHARES`, with the same weight for each frame.
    """
    act = np.array([e.category in ACT_CATEGORIES for e in examples])
    asked = np.array([e.kind if e.kind in (NONE, END) else "" for e in examples])
    each = np.bincount(kinds[~act], minlength=count).clip(1)
    some = max(1, np.unique(kinds[~act & (kinds > 0)]).size)
    weight = np.where(kinds == 0, NONE_WEIGHT * some / each[0], 1 / each[kinds]) * ~act
    weight /= weight.sum()
    by_frame = _by_frame(examples)
    parts = {kind: act & (asked == kind) for kind in ACT_SHARES}
    shares = {kind: share for kind, share in ACT_SHARES.items() if parts[kind].any()}
    weight *= 1 - sum(shares.values())
    for kind, share in shares.items():
        weight += share * parts[kind] * by_frame / by_frame[parts[kind]].sum()
    return weight


def _train(
    seed: int,
    read: Sentences,
    kinds: np.ndarray,
    weight: np.ndarray,
    words: int,
    count: int,
    effort: _Effort,
) -> Weights:
    """Return one member, trained on sentences that are drawn by `weight` [P]."""
    init_key, loop_key = jax.random.split(jax.random.key(seed))
    start = _init(init_key, read.states.shape[-1], words, count, effort.channels)
    cumulative = jnp.asarray(np.cumsum(weight), jnp.float32)
    data = (Sentences(*map(jnp.asarray, read)), jnp.asarray(kinds), cumulative)
    trained = {k: np.array(v) for k, v in _descend(start, loop_key, data, effort.steps).items()}
    for name in BY_WORD:
        trained[name] *= 1 - UNIT_DROPOUT  # words are dropped in training without scaling the rest
        trained[name][-1] = 0  # the row of the padding
    return trained


def _init(
    key: jax.Array, width: int, words: int, count: int, channels: int
) -> dict[str, jax.Array]:
    drawn = {
        "project": (width, channels),
        "near": (KERNEL, channels, channels),
        "far": (KERNEL, channels, channels),
        "found": (4 * channels, HIDDEN),
        "vector": (width, HIDDEN),
        "out": (HIDDEN, count),
    }
    zero = {
        "projected": (channels,),
        "nearby": (channels,),
        "farther": (channels,),
        "hidden": (HIDDEN,),
        "words": (words + 1, HIDDEN),
        "direct": (words + 1, count),
        "bias": (count,),
    }
    keys = jax.random.split(key, len(drawn))
    weights = {
        name: jax.random.normal(k, shape) / np.sqrt(np.prod(shape[:-1]))
        for k, (name, shape) in zip(keys, drawn.items(), strict=True)
    }
    return weights | {name: jnp.zeros(shape) for name, shape in zero.items()}


@partial(jax.jit, static_argnums=3)
def _descend(start: Any, key: jax.Array, data: Any, steps: int) -> Any:
    optimiser = optax.adamw(
        optax.cosine_decay_schedule(LEARNING_RATE, steps), weight_decay=WEIGHT_DECAY
    )

    def step(carry: Any, key: jax.Array) -> Any:
        weights, state = carry
        updates, state = optimiser.update(jax.grad(_loss)(weights, key, data), state, weights)
        return (optax.apply_updates(weights, updates), state), None

    return jax.lax.scan(step, (start, optimiser.init(start)), jax.random.split(key, steps))[0][0]


def _loss(weights: Any, key: jax.Array, data: Any) -> jax.Array:
    """Return the cross-entropy of one batch, drawn by the cumulative weights in `data`."""
    read, labels, cumulative = data
    row_key, *keys = jax.random.split(key, 6)
    row = jnp.searchsorted(cumulative, jax.random.uniform(row_key, (BATCH,)))
    row = jnp.minimum(row, len(labels) - 1)
    batch = read.at(row)

    def kept(key: jax.Array, dropped: float, *shape: int) -> jax.Array:
        return jax.random.bernoulli(key, 1 - dropped, (BATCH, *shape))

    dropout = Dropout(
        pieces=kept(keys[0], INPUT_DROPOUT, batch.states.shape[1], 1),
        channels=kept(keys[1], INPUT_DROPOUT, 1, weights["projected"].shape[0])
        / (1 - INPUT_DROPOUT),
        vector=kept(keys[2], INPUT_DROPOUT, batch.vector.shape[1]) / (1 - INPUT_DROPOUT),
        words=kept(keys[3], UNIT_DROPOUT, MAX_WORDS),
        units=kept(keys[4], UNIT_DROPOUT, HIDDEN) / (1 - UNIT_DROPOUT),
    )
    out = batch.forward(jnp, weights, dropout)
    return optax.softmax_cross_entropy_with_integer_labels(out, labels[row]).mean()
