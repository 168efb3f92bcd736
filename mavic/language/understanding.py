"""Knowing what was asked, and knowing when not: a small calibrated head on the frozen vectors.

The head is a handful of small networks averaged. Each sees a sentence's frozen vector and which
known words and pairs of words it has, slips of the keyboard mended. It is trained on a world's
training phrases, filled frames, negatives and development sets; its temperature and its threshold
come from predictions for each development author by a fit that had not seen that author's sets, or
without such sets for sentences whose frame it had not seen. The frozen encoder is never touched.
The built-in worlds' heads read the default encoder's vectors whatever encoder a policy has.
"""

from __future__ import annotations

import collections
import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from mavic.language import encoder as encoders
from mavic.language import lexicon as lexicons
from mavic.language.lexicon import Lexicon
from mavic.language.phrases import NONE, Example, training_set
from mavic.language.spelling import WORD, known_words, mend, words_of
from mavic.language.text import TextError, check

FOLDS = 5
MEMBERS = 4
HIDDEN = 64
STEPS = 1200
BATCH = 256
RATE = 3e-3
DROPPED = 0.3  # share of hidden units and of words left out in a training step
MOST_WORDS = 40  # known words and pairs looked at in one sentence
NONE_WEIGHT = 0.7  # weight of "none" against that of all kinds together
KEEP = 0.975  # share of unseen feasible frames the threshold keeps; the target is 0.95
# Shares of another author's sentences kept (novel) or flagged (the others) that the threshold
# aims at; the targets are 0.95, 0.95 and 0.80.
AIMS = {"novel": 0.97, "infeasible": 0.95, "near": 0.85}
LONG = 400  # characters after which a text is no instruction any more
NEAREST = 3

Weights = dict[str, np.ndarray]


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


@dataclass(frozen=True, kw_only=True)
class Head:
    """The trained part: stacked weights of the members, known words, temperature, threshold."""

    names: tuple[str, ...]  # the first is "none"
    words: dict[str, int]
    weights: Weights  # each [members, ...]
    temperature: float
    threshold: float
    encoder_hash: str

    def probabilities(self, texts: Sequence[str], vectors: np.ndarray) -> np.ndarray:
        """[P, 1 + C] over "none" and the kinds."""
        return _average(self.weights, vectors, bag(texts, self.words), self.temperature)


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
    seen = lexicons.vectors(mended, lexicon.encoder if same else encoders.DEFAULT)
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
    if path.is_file() and set(lexicon.names) <= set(load(path).names):
        return load(path)
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
    name = hashlib.sha256(repr((encoder_hash, world, phrases)).encode()).hexdigest()[:16]
    path = encoders.cache_folder().parent / "heads" / f"{name}.npz"
    try:
        return load(path)
    except (OSError, ValueError, KeyError):
        pass
    examples = training_set({kind: list(texts) for kind, texts in phrases}, world, None)
    names = (NONE, *(kind for kind, _ in phrases))
    head = fit(examples, names, encoders.open_encoder(encoder))
    save(head, path)
    return head


def head_path(world: str) -> Path:
    """Where the shipped head of a world lies."""
    return Path(str(resources.files("mavic"))) / "language" / "data" / f"{world}.head.npz"


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


def fit(examples: list[Example], names: tuple[str, ...], encoder: encoders.Encoder) -> Head:
    """Train the members on everything; temperature and threshold from what a fit has not seen."""
    texts = [example.text for example in examples]
    vectors = encoder.encode(texts)
    kinds = np.array([names.index(example.kind) for example in examples])
    logits, tried = _unseen(examples, texts, vectors, kinds, len(names))
    weight, meant = _by_frame(examples)[tried], kinds[tried]

    def shares(temperature: float) -> np.ndarray:
        return np.mean([_softmax(member / temperature) for member in logits], axis=0)

    def loss(temperature: float) -> float:
        right = shares(temperature)[np.arange(len(meant)), meant]
        return float(-weight @ np.log(right.clip(1e-9)))

    temperature = float(min(np.geomspace(0.5, 5.0, 40), key=loss))
    words, everything = known_words(texts), np.ones(len(texts), bool)
    members = [
        _train(100 + m, texts, vectors, kinds, everything, words, len(names))
        for m in range(MEMBERS)
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
    texts: list[str],
    vectors: np.ndarray,
    kinds: np.ndarray,
    count: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Logits [members, tried, C] by fits that had not seen the author, or the frame; and which."""
    authors = sorted({example.author for example in examples} - {""})
    if authors:
        fold_of = np.array([authors.index(e.author) if e.author else -1 for e in examples])
    else:
        fold_of = np.array([zlib.crc32(e.group.encode()) % FOLDS for e in examples])
    folds = len(authors) or FOLDS
    members = max(1, MEMBERS // folds)
    logits = np.zeros((members, len(texts), count), np.float32)
    for number in range(folds):
        seen = fold_of != number
        unseen_texts = [t for t, s in zip(texts, seen, strict=True) if not s]
        words = known_words([t for t, s in zip(texts, seen, strict=True) if s])
        for member in range(members):
            seed = number + folds * member
            weights = _train(seed, texts, vectors, kinds, seen, words, count)
            logits[member, ~seen] = _logits(weights, vectors[~seen], bag(unseen_texts, words))
    tried = fold_of >= 0
    return logits[:, tried], tried


def _threshold(
    best: np.ndarray, weight: np.ndarray, kinds: np.ndarray, sets: Sequence[str]
) -> float:
    """Where the aim reached worst is reached best, in standard errors; without sets, by `KEEP`."""
    parts = {name: np.array([s == name for s in sets]) for name in AIMS}
    if not all(part.any() for part in parts.values()):
        return _quantile(best[kinds > 0], weight[kinds > 0], 1 - KEEP)
    tried = np.linspace(0.02, 0.9, 177)
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
    texts: Sequence[str],
    vectors: np.ndarray,
    kinds: np.ndarray,
    seen: np.ndarray,
    words: dict[str, int],
    count: int,
) -> Weights:
    """One member: a hidden layer over vector and words, and the words again beside it."""
    data = (  # an argument of the compiled loop, not a constant in it: that compiles faster
        jnp.asarray(vectors[seen]),
        jnp.asarray(bag([t for t, s in zip(texts, seen, strict=True) if s], words)),
        jnp.asarray(kinds[seen]),
        jnp.asarray(np.cumsum(_balance(kinds[seen], count)), jnp.float32),
    )
    width, key = vectors.shape[1], jax.random.key(seed)
    init_key, out_key, loop_key = jax.random.split(key, 3)
    start = {
        "vector": jax.random.normal(init_key, (width, HIDDEN)) / np.sqrt(width),
        "hidden": jnp.zeros(HIDDEN),
        "words": jnp.zeros((len(words) + 1, HIDDEN)),
        "out": 0.1 * jax.random.normal(out_key, (HIDDEN, count)),
        "direct": jnp.zeros((len(words) + 1, count)),
        "bias": jnp.zeros(count),
    }
    optimiser = optax.adamw(optax.cosine_decay_schedule(RATE, STEPS), weight_decay=1e-2)

    def loss(w: Any, key: jax.Array, data: Any) -> jax.Array:
        inputs, bags, labels, drawn_up_to = data
        row_key, input_key, word_key, unit_key = jax.random.split(key, 4)
        row = jnp.searchsorted(drawn_up_to, jax.random.uniform(row_key, (BATCH,)))
        row = jnp.minimum(row, len(labels) - 1)
        x = inputs[row] * jax.random.bernoulli(input_key, 0.9, (BATCH, width)) / 0.9
        known = bags[row] < len(words)
        known = (known & jax.random.bernoulli(word_key, 1 - DROPPED, known.shape))[..., None]
        units = x @ w["vector"] + w["hidden"] + (w["words"][bags[row]] * known).sum(1)
        keep = jax.random.bernoulli(unit_key, 1 - DROPPED, units.shape) / (1 - DROPPED)
        out = jax.nn.relu(units) * keep @ w["out"] + w["bias"]
        out = out + (w["direct"][bags[row]] * known).sum(1)
        return optax.softmax_cross_entropy_with_integer_labels(out, labels[row]).mean()

    @jax.jit
    def run(weights: Any, key: jax.Array, data: Any) -> Any:
        def step(carry: Any, key: jax.Array) -> Any:
            weights, state = carry
            updates, state = optimiser.update(jax.grad(loss)(weights, key, data), state, weights)
            return (optax.apply_updates(weights, updates), state), None

        carry = (weights, optimiser.init(weights))
        return jax.lax.scan(step, carry, jax.random.split(key, STEPS))[0][0]

    made = {name: np.array(value) for name, value in run(start, loop_key, data).items()}
    for name in ("words", "direct"):
        made[name] *= 1 - DROPPED
        made[name][-1] = 0
    return made


def _logits(weights: Weights, vectors: np.ndarray, bags: np.ndarray) -> np.ndarray:
    units = vectors @ weights["vector"] + weights["hidden"] + weights["words"][bags].sum(1)
    return np.maximum(units, 0) @ weights["out"] + weights["bias"] + weights["direct"][bags].sum(1)


def _average(
    weights: Weights, vectors: np.ndarray, bags: np.ndarray, temperature: float
) -> np.ndarray:
    members = len(weights["bias"])
    shares = [
        _softmax(_logits({k: v[m] for k, v in weights.items()}, vectors, bags) / temperature)
        for m in range(members)
    ]
    return np.mean(shares, axis=0)


def _softmax(x: np.ndarray) -> np.ndarray:
    x = np.exp(x - x.max(1, keepdims=True))
    return x / x.sum(1, keepdims=True)
