"""The trained part of understanding: small networks on the frozen encoder's states.

A head is a handful of networks averaged. Each reads the states of a sentence's word pieces by two
convolutions, which keep what stands beside and before what, and beside them the sentence's vector
and its known words and pairs of words. It is trained on a world's training phrases, filled frames
and development sets; temperature and threshold come from predictions for each development author
by a fit that had not seen that author's sets, or without such sets for sentences whose frame it
had not seen. The frozen encoder is never touched.
"""

from __future__ import annotations

import collections
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from mavic.language import encoder as encoders
from mavic.language.reader.phrases import Example
from mavic.language.reader.spelling import known_words, words_of

HIDDEN = 64
CHANNELS = 64
REACH = 3  # word pieces a convolution looks at; the second skips every other one
PIECES = 24  # word pieces of a sentence read in training; reading has no such limit
BATCH = 128
RATE = 2.5e-3
DECAY = 1e-2
DROPPED = 0.3  # share of hidden units and of words left out in a training step
BLURRED = 0.1  # share of word pieces, of channels and of a vector's entries left out
MOST_WORDS = 40  # known words and pairs looked at in one sentence
NONE_WEIGHT = 0.7  # weight of "none" against that of all kinds together
SUREST = 0.9  # no threshold lies above it
KEEP = 0.975  # share of unseen feasible frames the threshold keeps; the target is 0.95
# Shares of another author's sentences kept (novel) or flagged (the others) that the threshold
# aims at; the targets are 0.95, 0.95 and 0.80.
AIMS = {"novel": 0.97, "infeasible": 0.95, "near": 0.85}

FORMAT = 2  # of saved heads; raised when older files cannot be read any more

Weights = dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long to train: networks, networks a fold, steps, and folds where there are no authors."""

    members: int
    unseen: int
    steps: int
    folds: int


SHIPPED = Effort(members=3, unseen=1, steps=1800, folds=5)
QUICK = Effort(members=1, unseen=1, steps=200, folds=2)  # for a file of one's own, while one waits


class Sentences(NamedTuple):
    """What the networks read of sentences: padded states, how many, the vector, known words."""

    states: Any  # [P, S, D]
    length: Any  # [P]
    vector: Any  # [P, D]
    words: Any  # [P, MOST_WORDS], padding is the number of known words


class Kept(NamedTuple):
    """Factors by which training leaves parts out; 1 keeps all."""

    pieces: Any = 1
    channels: Any = 1
    vector: Any = 1
    words: Any = 1
    units: Any = 1


ALL = Kept()


@dataclass(frozen=True, kw_only=True)
class Head:
    """Stacked weights of the members, known words, temperature, threshold."""

    names: tuple[str, ...]  # the first is "none"
    words: dict[str, int]
    weights: Weights  # each [members, ...]
    temperature: float
    threshold: float
    encoder_hash: str

    def probabilities(self, texts: Sequence[str], states: Sequence[np.ndarray]) -> np.ndarray:
        """[P, 1 + C] over "none" and the kinds, from texts and their states [S, D] each."""
        read = sentences(texts, states, self.words)
        members = len(self.weights["bias"])
        shares = [
            _softmax(_logits({k: v[m] for k, v in self.weights.items()}, read) / self.temperature)
            for m in range(members)
        ]
        return np.mean(shares, axis=0)


def save(head: Head, path: Path) -> None:
    """Write a head; half precision is enough for it."""
    encoders.write_whole(
        path,
        lambda file: np.savez_compressed(
            file,
            names=np.array(head.names),
            words=np.array(list(head.words)),
            temperature=np.array(head.temperature),
            threshold=np.array(head.threshold),
            encoder_hash=np.array(head.encoder_hash),
            **{f"weights_{k}": v.astype(np.float16) for k, v in head.weights.items()},  # type: ignore[arg-type]
        ),
    )


@cache
def load(path: Path) -> Head:
    """Read a head."""
    with np.load(path, allow_pickle=False) as file:
        weights = {
            key.removeprefix("weights_"): file[key].astype(np.float32)
            for key in file.files
            if key.startswith("weights_")
        }
        return Head(
            names=tuple(map(str, file["names"])),
            words={str(word): i for i, word in enumerate(file["words"])},
            weights=weights,
            temperature=float(file["temperature"]),
            threshold=float(file["threshold"]),
            encoder_hash=str(file["encoder_hash"]),
        )


def bag(texts: Sequence[str], words: dict[str, int]) -> np.ndarray:
    """Known words and pairs in each text, by number [P, MOST_WORDS]; padding is `len(words)`."""
    made = np.full((len(texts), MOST_WORDS), len(words), np.int32)
    for row, text in enumerate(texts):
        singles, pairs = words_of(text)
        found = sorted({words[w] for w in singles + pairs if w in words})[:MOST_WORDS]
        made[row, : len(found)] = found
    return made


def sentences(
    texts: Sequence[str],
    states: Sequence[np.ndarray],
    words: dict[str, int],
    longest: int = encoders.LONGEST,
) -> Sentences:
    """Texts and their states as the networks read them, in half precision, cut at `longest`."""
    length = np.array([min(len(s), longest) for s in states], np.int32)
    padded = np.zeros((len(states), int(length.max()), states[0].shape[1]), np.float16)
    for row, count in enumerate(length):
        padded[row, :count] = states[row][:count]
    vector = np.stack([encoders.pool(s.astype(np.float32)) for s in states])
    return Sentences(padded, length, vector, bag(texts, words))


def fit(
    examples: list[Example],
    names: tuple[str, ...],
    encoder: encoders.Encoder,
    effort: Effort = SHIPPED,
) -> Head:
    """Train the members on everything; temperature and threshold from what a fit has not seen."""
    texts = [example.text for example in examples]
    kinds = np.array([names.index(example.kind) for example in examples])
    words = known_words(texts)
    read = sentences(texts, encoder.states(texts), words, PIECES)
    logits, tried = _unseen(examples, read, kinds, len(words), len(names), effort)
    weight, meant = _by_frame(examples)[tried], kinds[tried]

    def shares(temperature: float) -> np.ndarray:
        return np.mean([_softmax(member / temperature) for member in logits], axis=0)

    def loss(temperature: float) -> float:
        right = shares(temperature)[np.arange(len(meant)), meant]
        return float(-weight @ np.log(right.clip(1e-9)))

    temperature = float(min(np.geomspace(0.5, 5.0, 40), key=loss))
    members = [
        _train(100 + m, read, kinds, _balance(kinds, len(names)), len(words), len(names), effort)
        for m in range(effort.members)
    ]
    written = _by_frame([e for e in examples if not e.copy])
    as_written = np.zeros(len(texts))
    as_written[[not e.copy for e in examples]] = written
    sets = [examples[i].source.partition("_")[2] for i in np.flatnonzero(tried)]
    return Head(
        names=names,
        words=words,
        weights={key: np.stack([m[key] for m in members]) for key in members[0]},
        temperature=temperature,
        threshold=_threshold(shares(temperature)[:, 1:].max(1), as_written[tried], meant, sets),
        encoder_hash=encoder.hash,
    )


def _unseen(
    examples: list[Example],
    read: Sentences,
    kinds: np.ndarray,
    words: int,
    count: int,
    effort: Effort,
) -> tuple[np.ndarray, np.ndarray]:
    """Logits [members, tried, C] by fits that had not seen the author, or the frame; and which."""
    authors = sorted({example.author for example in examples} - {""})
    if authors:
        fold_of = np.array([authors.index(e.author) if e.author else -1 for e in examples])
    else:
        fold_of = np.array([zlib.crc32(e.group.encode()) % effort.folds for e in examples])
    folds = len(authors) or effort.folds
    logits = np.zeros((effort.unseen, len(examples), count), np.float32)
    for number in range(folds):
        seen = fold_of != number
        weight = np.zeros(len(examples))
        weight[seen] = _balance(kinds[seen], count)
        rest = Sentences(*(part[~seen] for part in read))
        for member in range(effort.unseen):
            seed = number + folds * member
            weights = _train(seed, read, kinds, weight, words, count, effort)
            logits[member, ~seen] = _logits(weights, rest)
    tried = fold_of >= 0
    return logits[:, tried], tried


def _threshold(
    best: np.ndarray, weight: np.ndarray, kinds: np.ndarray, sets: Sequence[str]
) -> float:
    """Where the aim reached worst is reached best, in standard errors; without sets, by `KEEP`."""
    parts = {name: np.array([s == name for s in sets]) for name in AIMS}
    if not all(part.any() for part in parts.values()):
        return min(_quantile(best[kinds > 0], weight[kinds > 0], 1 - KEEP), SUREST)
    tried = np.linspace(0.02, SUREST, 177)
    worst = np.full(len(tried), np.inf)
    for name, aim in AIMS.items():
        values, share = best[parts[name]], weight[parts[name]] / weight[parts[name]].sum()
        kept = np.array([share[values >= threshold].sum() for threshold in tried])
        reached = kept if name == "novel" else 1 - kept
        error = np.sqrt(aim * (1 - aim) / weight[parts[name]].sum())
        worst = np.minimum(worst, (reached - aim) / error)
    return float(np.median(tried[worst >= worst.max() - 1e-9]))


def _by_frame(examples: list[Example]) -> np.ndarray:
    """Weights by which every frame counts alike, however often it was filled."""
    fillings = collections.Counter((e.group, e.kind) for e in examples)
    return np.array([1 / fillings[e.group, e.kind] for e in examples])


def _quantile(values: np.ndarray, weight: np.ndarray, share: float) -> float:
    """The value below which lies that share of the weight."""
    order = np.argsort(values)
    below = np.cumsum(weight[order]) / weight.sum()
    return float(values[order][np.searchsorted(below, share)])


def _balance(kinds: np.ndarray, count: int) -> np.ndarray:
    """Sampling weights: kinds alike, "none" as much as a share of all of them."""
    each = np.bincount(kinds, minlength=count).clip(1)
    weight = np.where(kinds == 0, NONE_WEIGHT * (count - 1) / each[0], 1 / each[kinds])
    return weight / weight.sum()


def _train(
    seed: int,
    read: Sentences,
    kinds: np.ndarray,
    weight: np.ndarray,
    words: int,
    count: int,
    effort: Effort,
) -> Weights:
    """One network, trained on sentences drawn by `weight`."""
    start_key, loop_key = jax.random.split(jax.random.key(seed))
    start = _start(start_key, read.states.shape[-1], words, count)
    drawn_up_to = jnp.asarray(np.cumsum(weight), jnp.float32)
    data = (Sentences(*map(jnp.asarray, read)), jnp.asarray(kinds), drawn_up_to)
    made = {k: np.array(v) for k, v in _descend(start, loop_key, data, effort.steps).items()}
    for name in ("words", "direct"):
        made[name] *= 1 - DROPPED
        made[name][-1] = 0
    return made


def _start(key: jax.Array, width: int, words: int, count: int) -> dict[str, jax.Array]:
    drawn = {
        "project": (width, CHANNELS),
        "near": (REACH, CHANNELS, CHANNELS),
        "far": (REACH, CHANNELS, CHANNELS),
        "found": (4 * CHANNELS, HIDDEN),
        "vector": (width, HIDDEN),
        "out": (HIDDEN, count),
    }
    zero = {
        "projected": (CHANNELS,),
        "nearby": (CHANNELS,),
        "farther": (CHANNELS,),
        "hidden": (HIDDEN,),
        "words": (words + 1, HIDDEN),
        "direct": (words + 1, count),
        "bias": (count,),
    }
    keys = jax.random.split(key, len(drawn))
    made = {
        name: jax.random.normal(k, shape) / np.sqrt(np.prod(shape[:-1]))
        for k, (name, shape) in zip(keys, drawn.items(), strict=True)
    }
    return made | {name: jnp.zeros(shape) for name, shape in zero.items()}


@partial(jax.jit, static_argnums=3)
def _descend(start: Any, key: jax.Array, data: Any, steps: int) -> Any:
    optimiser = optax.adamw(optax.cosine_decay_schedule(RATE, steps), weight_decay=DECAY)

    def step(carry: Any, key: jax.Array) -> Any:
        weights, state = carry
        updates, state = optimiser.update(jax.grad(_loss)(weights, key, data), state, weights)
        return (optax.apply_updates(weights, updates), state), None

    return jax.lax.scan(step, (start, optimiser.init(start)), jax.random.split(key, steps))[0][0]


def _loss(weights: Any, key: jax.Array, data: Any) -> jax.Array:
    read, labels, drawn_up_to = data
    row_key, *keys = jax.random.split(key, 6)
    row = jnp.searchsorted(drawn_up_to, jax.random.uniform(row_key, (BATCH,)))
    row = jnp.minimum(row, len(labels) - 1)
    batch = Sentences(*(part[row] for part in read))

    def kept(key: jax.Array, share: float, *shape: int) -> jax.Array:
        return jax.random.bernoulli(key, 1 - share, (BATCH, *shape))

    keep = Kept(
        pieces=kept(keys[0], BLURRED, batch.states.shape[1], 1),
        channels=kept(keys[1], BLURRED, 1, CHANNELS) / (1 - BLURRED),
        vector=kept(keys[2], BLURRED, batch.vector.shape[1]) / (1 - BLURRED),
        words=kept(keys[3], DROPPED, MOST_WORDS),
        units=kept(keys[4], DROPPED, HIDDEN) / (1 - DROPPED),
    )
    out = _forward(jnp, weights, batch, keep)
    return optax.softmax_cross_entropy_with_integer_labels(out, labels[row]).mean()


def _forward(xp: Any, weights: Any, read: Sentences, keep: Kept = ALL) -> Any:
    """Logits [P, C] by numpy or jax.numpy, as `xp` says."""
    w = weights
    real = (xp.arange(read.states.shape[1])[None] < read.length[:, None])[..., None]
    known = ((read.words < len(w["direct"]) - 1) * keep.words)[..., None]
    states = read.states.astype(np.float32) * keep.pieces
    pieces = xp.maximum(states @ w["project"] + w["projected"], 0) * real * keep.channels
    near = xp.maximum(_convolve(xp, pieces, w["near"], 1) + w["nearby"], 0) * real
    far = xp.maximum(_convolve(xp, near, w["far"], 2) + w["farther"], 0) * real
    found = xp.concatenate(
        [pieces.max(1), near.max(1), far.max(1), far.sum(1) / read.length[:, None]], axis=1
    )
    units = (read.vector * keep.vector) @ w["vector"] + found @ w["found"] + w["hidden"]
    units = xp.maximum(units + (w["words"][read.words] * known).sum(1), 0) * keep.units
    return units @ w["out"] + w["bias"] + (w["direct"][read.words] * known).sum(1)


def _convolve(xp: Any, x: Any, kernel: Any, apart: int) -> Any:
    """[P, S, C]: each piece with those before and after it, `apart` pieces apart."""
    side, length = apart * (REACH // 2), x.shape[1]
    padded = xp.pad(x, ((0, 0), (side, side), (0, 0)))
    return sum(padded[:, i * apart : i * apart + length] @ kernel[i] for i in range(REACH))


def _logits(weights: Weights, read: Sentences) -> np.ndarray:
    """By numpy, which needs no compiling, a batch at a time."""
    batches = (
        Sentences(*(part[start : start + BATCH] for part in read))
        for start in range(0, len(read.length), BATCH)
    )
    return np.concatenate([_forward(np, weights, batch) for batch in batches])


def _softmax(x: np.ndarray) -> np.ndarray:
    x = np.exp(x - x.max(1, keepdims=True))
    return x / x.sum(1, keepdims=True)
