"""What different vectors can tell apart: a linear classifier on the training phrases alone, without the reader."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from mavic.instruct.spec import InstructionFile
from mavic.language import bert
from mavic.language import encoder as encoders
from mavic.language import lexicon as lexicons
from mavic.language.reader.phrase_file import (
    Example,
    PhraseFile,
    held_out_examples,
    train_examples,
)
from mavic.language.reader.spelling import words_of

TEST_AUTHOR = "second"  # whose novel development sentences are classified; this classifier never sees them in training
STEPS = 300
LEARNING_RATE = 1e-3  # that of a policy, so that the scale of the vectors matters as it does there

Encode = Callable[[Sequence[str]], np.ndarray]  # P texts → [P, D]


@dataclass(frozen=True, kw_only=True)
class Ablation:
    """How well the classifier of one variant does on one set of sentences."""

    world: str
    variant: str
    phrases: str
    """"held-out" or "novel"."""
    total: int
    trained: float
    """Accuracy on the training phrases."""
    accuracy: float
    left_right: float
    """Accuracy between the two kinds of a mirrored pair; NaN if no kind has a mirror image."""
    left_right_total: int
    per_kind: dict[str, float]


def ablation(
    file: InstructionFile, phrases: PhraseFile, variants: Sequence[str] | None = None
) -> tuple[Ablation, ...]:
    """Return accuracies by variant (encoder, pooling, scaling); missing weights are an `EncoderError`."""
    names = file.names()
    train = train_examples(file)
    tests = {
        "held-out": held_out_examples(file),
        "novel": phrases.sentences("development", "novel", TEST_AUTHOR),
    }
    rows = []
    for variant in variants or tuple(VARIANTS):
        encode = VARIANTS[variant]([example.text for example in train])
        inputs = encode([example.text for example in train])
        labels = np.array([names.index(example.kind) for example in train])
        weights, bias = linear_classifier(inputs, labels, len(names))
        trained = float(((inputs @ weights + bias).argmax(1) == labels).mean())
        for test, examples in tests.items():
            scores = encode([example.text for example in examples]) @ weights + bias
            rows.append(_row(file.world, variant, test, trained, names, examples, scores))
    return tuple(rows)


def mirror(kind: str, names: Sequence[str]) -> str | None:
    """Return the kind that differs only in its side (left, right) or number (0, 1); None if there is none."""
    swaps = {"left": "right", "right": "left", "0": "1", "1": "0"}
    if f"{kind.rsplit('-', 1)[0]}-2" in names and kind[-1:] in "12":
        swaps = {"1": "2", "2": "1"}
    other = "-".join(swaps.get(part, part) for part in kind.split("-"))
    return other if other != kind and other in names else None


def linear_classifier(
    inputs: np.ndarray, labels: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return weights [D, count] and bias [count] of a softmax regression on inputs [P, D] with labels [P]."""
    weights, bias = _descend(jnp.asarray(inputs, jnp.float32), jnp.asarray(labels), count)
    return np.asarray(weights), np.asarray(bias)


@partial(jax.jit, static_argnums=2)
def _descend(inputs: jax.Array, labels: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    optimiser = optax.adam(LEARNING_RATE)

    def loss(params: tuple[jax.Array, jax.Array]) -> jax.Array:
        logits = inputs @ params[0] + params[1][None]
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    def step(carry: Any, _: None) -> Any:
        params, state = carry
        updates, state = optimiser.update(jax.grad(loss)(params), state)
        return (optax.apply_updates(params, updates), state), None

    start = (jnp.zeros((inputs.shape[1], count)), jnp.zeros(count))
    return jax.lax.scan(step, (start, optimiser.init(start)), None, STEPS)[0][0]


def _row(
    world: str,
    variant: str,
    phrases: str,
    trained: float,
    names: tuple[str, ...],
    examples: list[Example],
    scores: np.ndarray,
) -> Ablation:
    meant = np.array([names.index(example.kind) for example in examples])
    right = scores.argmax(1) == meant
    sides = [
        bool(scores[i, meant[i]] > scores[i, names.index(other)])
        for i, example in enumerate(examples)
        if (other := mirror(example.kind, names)) is not None
    ]
    return Ablation(
        world=world,
        variant=variant,
        phrases=phrases,
        total=len(examples),
        trained=trained,
        accuracy=float(right.mean()),
        left_right=float(np.mean(sides)) if sides else float("nan"),
        left_right_total=len(sides),
        per_kind={
            name: float(right[meant == k].mean()) for k, name in enumerate(names) if k in meant
        },
    )


def _frozen(name: str, pooling: str = "mean", scaled: bool = True) -> Callable[..., Encode]:
    def prepare(_: Sequence[str]) -> Encode:
        if pooling == "mean":
            divisor = 1.0 if scaled else math.sqrt(encoders.BUILT_IN[name].dimension)
            return lambda texts: lexicons.vectors(texts, name) / divisor
        opened = encoders.open_encoder(name, pooling)
        return lambda texts: np.stack(
            [encoders.pool(states, pooling, scaled) for states in opened.states(texts)]
        )

    return prepare


def _bag_of_words(train: Sequence[str]) -> Encode:
    """Return an encoder with one entry for each word of the training phrases."""
    known = sorted({word for text in train for word in words_of(text)[0]})

    def encode(texts: Sequence[str]) -> np.ndarray:
        return np.array(
            [[word in set(words_of(text)[0]) for word in known] for text in texts], float
        )

    return encode


def _random_bert(_: Sequence[str]) -> Encode:
    """Return a BERT of the default encoder's shape with untrained weights."""
    config, weights = bert.random(0, vocabulary=30522, width=384, layers=3, heads=12)
    model = bert.assemble(config, weights, "random")
    opened = encoders.Encoder(
        id="random",
        hash="random",
        dimension=384,
        pooling="mean",
        tokenizer=encoders.tokenizer(),
        hidden=lambda tokens, mask: bert.hidden(model, tokens, mask),
    )
    return opened.encode


# Each row makes an encoder of texts from the training texts.
VARIANTS: dict[str, Callable[[Sequence[str]], Encode]] = {
    "minilm-l3 mean scaled": _frozen("minilm-l3"),
    "minilm-l3 mean raw": _frozen("minilm-l3", scaled=False),
    "minilm-l3 first scaled": _frozen("minilm-l3", "first"),
    "minilm-l3 first raw": _frozen("minilm-l3", "first", scaled=False),
    "minilm-l6 mean scaled": _frozen("minilm-l6"),
    "bag of words": _bag_of_words,
    "random bert mean scaled": _random_bert,
}
WITHOUT_WEIGHTS = (  # variants that need no encoder package
    "minilm-l3 mean scaled",
    "minilm-l3 mean raw",
    "minilm-l6 mean scaled",
    "bag of words",
)
