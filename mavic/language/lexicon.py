"""The lexicon: every phrase of a world as a vector, with its kind and split, as arrays to look up.

Vectors of the built-in phrases are shipped, so nothing here needs an encoder unless a file brings
phrases of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from mavic.instruct import spec as instructions
from mavic.language import encoder as encoders
from mavic.language.text import name as text_name
from mavic.types import Array, record, replace, static

if TYPE_CHECKING:
    from mavic.language.reader.understanding import Understanding

SPARE = 4  # rows kept free for a person's own sentences
WORLDS = ("box_pushing", "warehouse", "overcooked")


class LexiconError(ValueError):
    """The lexicon cannot be made or used so; the message says what would do."""


@record
class Lexicon:
    """Phrases as arrays: row 0 is silence, then the file's phrases, then the spare rows."""

    vectors: Array  # [P, D] float32, pooled, L2-normalised, times sqrt(D)
    kind: Array  # [P] int32; 0 for silence and spare rows
    table: Array  # [C, Q] int32: rows of each kind's training phrases, padded by repeating
    count: Array  # [C] int32: how many of them there are
    held_out: Array  # [P] bool
    texts: tuple[str, ...] = static()
    names: tuple[str, ...] = static()  # kinds; the first is "none"
    world: str = static()
    encoder: str = static()
    encoder_hash: str = static()

    def understand(self, text: str) -> Understanding:
        """What kind a sentence asks for, or that nobody can be sure."""
        from mavic.language.reader.understanding import understand

        return understand(self, text)


def world_folder(world: str) -> Path:
    """The folder of a built-in world, found without importing its code."""
    if world not in WORLDS:
        raise LexiconError(f"world {world!r} is unknown; {instructions.suggest(world, WORLDS)}")
    return Path(str(resources.files("mavic"))) / "envs" / world


def instruction_path(path_or_world: str | Path) -> Path:
    """A world's own instruction file, or the file that was named."""
    if str(path_or_world) in WORLDS:
        return world_folder(str(path_or_world)) / "instructions.toml"
    path = Path(path_or_world)
    if path.suffix != ".toml" and not path.is_file():
        raise LexiconError(
            f"{str(path_or_world)!r} is neither a world nor a file; "
            f"{instructions.suggest(str(path_or_world), WORLDS)}"
        )
    return path


def load(path_or_world: str | Path, encoder: str = encoders.DEFAULT) -> Lexicon:
    """The lexicon of a world or of an instruction file, under an encoder."""
    path = instruction_path(path_or_world)
    return make(instructions.read(path), encoder)


def make(file: instructions.InstructionFile, encoder: str = encoders.DEFAULT) -> Lexicon:
    """The lexicon of a parsed instruction file."""
    texts, kinds, held = [""], [0], [False]
    table: list[list[int]] = [[0]]
    for number, kind in enumerate(file.kinds, start=1):
        table.append(list(range(len(texts), len(texts) + len(kind.train))))
        for phrase in kind.train + kind.held_out:
            texts.append(phrase)
            kinds.append(number)
            held.append(len(texts) - 1 - table[-1][0] >= len(kind.train))
    phrases = vectors(texts[1:], encoder)
    blank = np.zeros((1, phrases.shape[1]), np.float32)
    longest = max(map(len, table))
    count = [0] + [len(rows) for rows in table[1:]]
    padded = [[rows[i % len(rows)] for i in range(longest)] for rows in table]
    return Lexicon(
        vectors=jnp.asarray(np.concatenate([blank, phrases, np.repeat(blank, SPARE, 0)])),
        kind=jnp.asarray(kinds + [0] * SPARE, jnp.int32),
        table=jnp.asarray(padded, jnp.int32),
        count=jnp.asarray(count, jnp.int32),
        held_out=jnp.asarray(held + [False] * SPARE),
        texts=tuple(texts) + ("",) * SPARE,
        names=("none", *file.names()),
        world=file.world,
        encoder=encoder,
        encoder_hash=encoder_hash(encoder),
    )


def encoder_hash(encoder: str) -> str:
    """The hash a policy carries to refuse vectors of another encoder."""
    if encoder in encoders.BUILT_IN:
        return encoders.built_in_hash(encoder)
    return encoders.open_encoder(encoder).hash


def vectors(texts: Sequence[str], encoder: str = encoders.DEFAULT) -> np.ndarray:
    """Vectors [P, D] of texts: shipped where there are, else encoded and cached on disk."""
    known = shipped(encoder)
    rows: dict[int, np.ndarray] = {}
    for i, text in enumerate(texts):
        if (row := known.get(text_name(text))) is not None:
            rows[i] = row
    missing = [i for i in range(len(texts)) if i not in rows]
    if missing:
        made = encoders.encode([texts[i] for i in missing], encoder)
        rows.update(zip(missing, made, strict=True))
    return np.stack([rows[i] for i in range(len(texts))])


def states(texts: Sequence[str], encoder: str = encoders.DEFAULT) -> list[np.ndarray]:
    """States [S, D] of each text's word pieces: shipped for instructions as a head reads them."""
    known = shipped_states() if encoder == encoders.DEFAULT else {}
    missing = [text for text in texts if text_name(text) not in known]
    made = iter(encoders.open_encoder(encoder).states(missing) if missing else ())
    return [
        row if (row := known.get(text_name(text))) is not None else next(made) for text in texts
    ]


@cache
def shipped_states() -> dict[str, np.ndarray]:
    """States by the default encoder that came with the package, by the hash of their text."""
    known: dict[str, np.ndarray] = {}
    for path in filter(Path.is_file, map(states_path, WORLDS)):
        with np.load(path, allow_pickle=False) as file:
            if str(file["encoder_hash"]) != encoders.built_in_hash(encoders.DEFAULT):
                raise LexiconError(
                    f"{path}: made by other weights; run: python -m mavic.language.reader.ship"
                )
            parts = np.split(file["states"], np.cumsum(file["lengths"])[:-1])
            known.update(zip(map(str, file["names"]), parts, strict=True))
    return known


def states_path(world: str) -> Path:
    """Where the shipped states of a world lie."""
    return Path(str(resources.files("mavic"))) / "language" / "data" / f"{world}.states.npz"


@cache
def shipped(encoder: str) -> dict[str, np.ndarray]:
    """Vectors that came with the package, by the hash of their text."""
    known: dict[str, np.ndarray] = {}
    if encoder not in encoders.BUILT_IN:
        return known
    for world in WORLDS:
        path = shipped_path(world, encoder)
        if not path.is_file():
            continue
        with np.load(path, allow_pickle=False) as file:
            if str(file["encoder_hash"]) != encoders.built_in_hash(encoder):
                raise LexiconError(
                    f"{path}: made by other weights; run: python -m mavic.language.reader.ship"
                )
            known.update(zip(map(str, file["names"]), file["vectors"], strict=True))
    return known


def shipped_path(world: str, encoder: str) -> Path:
    """Where the shipped vectors of a world and encoder lie."""
    return Path(str(resources.files("mavic"))) / "language" / "data" / f"{world}.{encoder}.npz"


def spare_row(lexicon: Lexicon, slot: int = 0) -> int:
    """The row of a spare slot."""
    if not 0 <= slot < SPARE:
        raise LexiconError(f"slot {slot} is not one of the {SPARE} spare rows (0 to {SPARE - 1})")
    return int(lexicon.vectors.shape[0]) - SPARE + slot


def closest(lexicon: Lexicon, vector: np.ndarray | Array, kind: int) -> int:
    """The row of a kind's training phrase whose vector is nearest in direction; silence for no kind."""
    rows = np.asarray(lexicon.table[kind, : int(lexicon.count[kind])])
    if not rows.size:
        return 0
    return int(rows[(np.asarray(lexicon.vectors)[rows] @ np.asarray(vector)).argmax()])


def with_text(lexicon: Lexicon, slot: int, vector: np.ndarray | Array, kind: int = 0) -> Lexicon:
    """The lexicon with a sentence's vector in a spare row: no shape changes, nothing recompiles."""
    row = spare_row(lexicon, slot)
    return replace(
        lexicon,
        vectors=lexicon.vectors.at[row].set(jnp.asarray(vector, jnp.float32)),
        kind=lexicon.kind.at[row].set(kind),
    )
