"""The forward pass of a BERT encoder (Devlin et al. 2019) in numpy, so that no deep-learning framework is needed.

A model is read from the folder in which Hugging Face saved it: `config.json` and `model.safetensors`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Weights = dict[str, np.ndarray]
ACTIVATIONS = ("gelu", "gelu_new", "relu")


class BertError(ValueError):
    """The folder holds no BERT that can be run; the message says what is missing."""


@dataclass(frozen=True, kw_only=True)
class Bert:
    """Weights by name, without prefix, and the part of the configuration that the forward pass needs."""

    weights: Weights
    layers: int
    heads: int
    epsilon: float
    activation: str
    longest: int

    @property
    def dimension(self) -> int:
        """The width of a token's hidden state."""
        return int(self.weights["embeddings.word_embeddings.weight"].shape[1])


def load(folder: Path) -> Bert:
    """Read a saved BERT from a folder."""
    from safetensors.numpy import load_file

    config = _config(folder)
    path = folder / "model.safetensors"
    if not path.is_file():
        raise BertError(
            f"{folder}: no model.safetensors; save the model with "
            "save_pretrained(..., safe_serialization=True)"
        )
    return assemble(config, load_file(path), str(folder))


def assemble(config: dict[str, Any], weights: Weights, source: str) -> Bert:
    """Return a `Bert` from its configuration and weights; anything else is a `BertError`."""
    if config.get("model_type", "bert") != "bert":
        raise BertError(f"{source}: model_type is {config['model_type']!r}; only 'bert' can be run")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise BertError(f"{source}: only absolute position embeddings can be run")
    activation = config.get("hidden_act", "gelu")
    if activation not in ACTIVATIONS:
        raise BertError(f"{source}: hidden_act {activation!r} is unknown; {', '.join(ACTIVATIONS)}")
    made = {_plain(name): np.asarray(value, np.float32) for name, value in weights.items()}
    if "embeddings.word_embeddings.weight" not in made:
        raise BertError(f"{source}: the weights hold no BERT (embeddings.word_embeddings.weight)")
    return Bert(
        weights=made,
        layers=int(config["num_hidden_layers"]),
        heads=int(config["num_attention_heads"]),
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
        activation=activation,
        longest=int(config.get("max_position_embeddings", 512)),
    )


def random(
    seed: int, *, vocabulary: int, width: int, layers: int, heads: int, longest: int = 128
) -> tuple[dict[str, Any], Weights]:
    """Return a configuration and untrained weights, normal with standard deviation 0.02 as BERT initialises them."""
    draw = np.random.default_rng(seed)
    config = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": width,
        "intermediate_size": 4 * width,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": longest,
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "type_vocab_size": 2,
        "vocab_size": vocabulary,
    }
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (vocabulary, width),
        "embeddings.position_embeddings.weight": (longest, width),
        "embeddings.token_type_embeddings.weight": (2, width),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(layers):
        at = f"encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes[f"{at}.attention.{part}.weight"] = (width, width)
            shapes[f"{at}.attention.{part}.bias"] = (width,)
        shapes[f"{at}.intermediate.dense.weight"] = (4 * width, width)
        shapes[f"{at}.intermediate.dense.bias"] = (4 * width,)
        shapes[f"{at}.output.dense.weight"] = (width, 4 * width)
        shapes[f"{at}.output.dense.bias"] = (width,)
        norms += [f"{at}.attention.output.LayerNorm", f"{at}.output.LayerNorm"]
    weights = {
        name: (
            np.zeros(shape, np.float32)
            if name.endswith("bias")
            else draw.normal(0.0, 0.02, shape).astype(np.float32)
        )
        for name, shape in shapes.items()
    }
    for name in norms:
        weights[f"{name}.weight"] = np.ones(width, np.float32)
        weights[f"{name}.bias"] = np.zeros(width, np.float32)
    return config, weights


def hidden(bert: Bert, tokens: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the last hidden states [B, S, D] of tokens [B, S]. `mask` [B, S] is 1 for tokens and 0 for padding."""
    w, (batch, length), width = bert.weights, tokens.shape, bert.dimension
    x = (
        w["embeddings.word_embeddings.weight"][tokens]
        + w["embeddings.position_embeddings.weight"][:length]
        + w["embeddings.token_type_embeddings.weight"][0]
    )
    x = _norm(bert, x, "embeddings.LayerNorm")
    hide = np.where(mask[:, None, None, :] > 0, 0.0, -1e9).astype(np.float32)
    for layer in range(bert.layers):
        at = f"encoder.layer.{layer}"

        def heads(part: str, x: np.ndarray = x, at: str = at) -> np.ndarray:
            y = _dense(bert, x, f"{at}.attention.self.{part}")
            return y.reshape(batch, length, bert.heads, -1).swapaxes(1, 2)

        scores = heads("query") @ heads("key").swapaxes(2, 3) / math.sqrt(width // bert.heads)
        mixed = (_softmax(scores + hide) @ heads("value")).swapaxes(1, 2)
        mixed = mixed.reshape(batch, length, width)
        x = _norm(
            bert,
            x + _dense(bert, mixed, f"{at}.attention.output.dense"),
            f"{at}.attention.output.LayerNorm",
        )
        wide = _activate(bert.activation, _dense(bert, x, f"{at}.intermediate.dense"))
        x = _norm(bert, x + _dense(bert, wide, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    return x


def _config(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BertError(f"{folder}: no config.json; give the folder of a saved BERT") from None
    except ValueError as error:
        raise BertError(f"{folder}/config.json: not JSON: {error}") from None


def _plain(name: str) -> str:
    """Return the name without the prefix of models with a head. Old files call weight and bias gamma and beta."""
    name = name.removeprefix("bert.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
        "LayerNorm.beta", "LayerNorm.bias"
    )


def _dense(bert: Bert, x: np.ndarray, name: str) -> np.ndarray:
    return x @ bert.weights[f"{name}.weight"].T + bert.weights[f"{name}.bias"]


def _norm(bert: Bert, x: np.ndarray, name: str) -> np.ndarray:
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(-1, keepdims=True) + bert.epsilon)
    return x * bert.weights[f"{name}.weight"] + bert.weights[f"{name}.bias"]


def _softmax(x: np.ndarray) -> np.ndarray:
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def _activate(name: str, x: np.ndarray) -> np.ndarray:
    if name == "relu":
        return np.maximum(x, 0)
    if name == "gelu_new":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


def _erf(x: np.ndarray) -> np.ndarray:
    """Return the error function with an error below 3e-7 (Numerical Recipes' Chebyshev fit of erfc)."""
    t = 1 / (1 + np.float32(0.5) * np.abs(x))
    fit = np.full_like(t, ERFC[-1])
    for coefficient in ERFC[-2::-1]:
        fit *= t
        fit += np.float32(coefficient)
    tail = t * np.exp(fit - x * x)
    return np.where(x >= 0, 1 - tail, tail - 1)


ERFC = (
    -1.26551223,
    1.00002368,
    0.37409196,
    0.09678418,
    -0.18628806,
    0.27886807,
    -1.13520398,
    1.48851587,
    -0.82215223,
    0.17087277,
)
