"""How well different vectors separate kinds: a linear classifier on the training phrases alone, without the reader."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from mavic.instruct.spec import InstructionFile
from mavic.language import encoder as encoders
from mavic.language.reader.phrase_file import Example, PhraseFile, held_out_examples
from mavic.language.reader.spelling import words_of
from mavic.language.vectors import FOLDER, vectors

TEST_AUTHOR = "second"  # the author of the novel sentences that are classified
STEPS = 300
LEARNING_RATE = 1e-3  # as for policies, so that the scale of the vectors matters as much

_Encode = Callable[[Sequence[str]], np.ndarray]  # P texts → [P, D]


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
    """Return how well a classifier does on each variant of vectors. Missing weights are an `EncoderError`.

    Args:
        file: The world's instruction file.
        phrases: The world's phrase file.
        variants: Names in `VARIANTS`; None for all.

    Returns:
        Two rows for each variant: held-out phrases and novel sentences.
    """
    names = file.names()
    train = [text for kind in file.kinds for text in kind.train]
    labels = np.array([number for number, kind in enumerate(file.kinds) for _ in kind.train])
    tests = {
        "held-out": held_out_examples(file),
        "novel": phrases.sentences("development", "novel", TEST_AUTHOR),
    }
    rows = []
    for variant in variants or tuple(VARIANTS):
        encode = VARIANTS[variant](train)
        inputs = encode(train)
        weights, bias = map(np.asarray, _classifier(inputs, labels, len(names)))
        trained = float(((inputs @ weights + bias).argmax(1) == labels).mean())
        for test, examples in tests.items():
            scores = encode([example.text for example in examples]) @ weights + bias
            rows.append(_row(file.world, variant, test, trained, names, examples, scores))
    return tuple(rows)


def _mirror(kind: str, names: Sequence[str]) -> str | None:
    """Return the kind that differs only in its side (left, right) or number (0, 1); None if there is none."""
    swaps = {"left": "right", "right": "left", "0": "1", "1": "0"}
    if f"{kind.rsplit('-', 1)[0]}-2" in names and kind[-1:] in "12":
        swaps = {"1": "2", "2": "1"}
    other = "-".join(swaps.get(part, part) for part in kind.split("-"))
    return other if other != kind and other in names else None


@partial(jax.jit, static_argnums=2)
def _classifier(inputs: Any, labels: Any, count: int) -> tuple[jax.Array, jax.Array]:
    """Return weights [D, count] and bias [count] of a softmax regression on inputs [P, D] with labels [P]."""
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
        if (other := _mirror(example.kind, names)) is not None
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


def _frozen(name: str, pooling: str = "mean", scaled: bool = True) -> Callable[..., _Encode]:
    def prepare(_: Sequence[str]) -> _Encode:
        if pooling == "mean":
            divisor = 1.0 if scaled else math.sqrt(encoders.BUILT_IN[name].dimension)
            return lambda texts: vectors(texts, name) / divisor
        opened = encoders.open_encoder(name, pooling)
        return lambda texts: np.stack(
            [encoders.pool(states, pooling, scaled) for states in opened.states(texts)]
        )

    return prepare


def _bag_of_words(train: Sequence[str]) -> _Encode:
    """Return an encoder with one entry for each word of the training phrases."""
    known = sorted({word for text in train for word in words_of(text)[0]})

    def encode(texts: Sequence[str]) -> np.ndarray:
        return np.array([[w in set(words_of(text)[0]) for w in known] for text in texts], float)

    return encode


def _random_bert(_: Sequence[str]) -> _Encode:
    """Return a BERT of the default encoder's shape with untrained weights."""
    try:
        import torch
        from transformers import BertConfig, BertModel
        from transformers.utils import logging
    except ImportError:
        raise encoders.EncoderError(encoders.NO_SENTENCE_TRANSFORMERS) from None
    shape: dict[str, Any] = {
        "hidden_size": 384,
        "intermediate_size": 1536,
        "max_position_embeddings": 128,
    }
    config = BertConfig(num_hidden_layers=3, num_attention_heads=12, **shape)
    model, draw = BertModel(config), np.random.default_rng(0)
    logging.disable_progress_bar()
    with torch.no_grad(), TemporaryDirectory() as folder:
        for weights in (w for w in model.parameters() if w.ndim == 2):
            weights.copy_(torch.tensor(draw.normal(0.0, 0.02, weights.shape)))
        model.save_pretrained(folder)
        shutil.copy(FOLDER / "vocab.txt", folder)
        return encoders.open_encoder(f"path:{folder}").encode


# Each row makes an encoder of texts from the training texts.
VARIANTS: dict[str, Callable[[Sequence[str]], _Encode]] = {
    "minilm-l3 mean scaled": _frozen("minilm-l3"),
    "minilm-l3 mean raw": _frozen("minilm-l3", scaled=False),
    "minilm-l3 first scaled": _frozen("minilm-l3", "first"),
    "minilm-l3 first raw": _frozen("minilm-l3", "first", scaled=False),
    "minilm-l6 mean scaled": _frozen("minilm-l6"),
    "bag of words": _bag_of_words,
    "random bert mean scaled": _random_bert,
}
