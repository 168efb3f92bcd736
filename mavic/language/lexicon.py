"""The lexicon: every phrase of an instruction file as a vector, with its kind and split, as arrays to look up.

Vectors of the built-in phrases are shipped, so an encoder is needed only for phrases of one's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from mavic.instruct import spec as instructions
from mavic.language import encoder as encoders
from mavic.language import shipped
from mavic.language.text import name as text_name
from mavic.types import Array, record, replace, static

if TYPE_CHECKING:
    from mavic.language.reader.read import Understanding

SPARE = 4  # free rows for sentences that a person types while a program runs


class LexiconError(ValueError):
    """A lexicon cannot be used like this; the message says what is allowed."""


@record
class Lexicon:
    """Phrases as arrays. Row 0 is silence, then come the file's phrases, then the spare rows."""

    vectors: Array  # [P, D] float32: pooled, L2-normalised, times sqrt(D)
    kind: Array  # [P] int32; 0 for silence and spare rows
    table: Array  # [C, Q] int32: the rows of each kind's training phrases, padded by repeating them
    count: Array  # [C] int32: the number of training phrases of each kind
    held_out: Array  # [P] bool
    texts: tuple[str, ...] = static()
    names: tuple[str, ...] = static()  # of the kinds; the first is "none"
    world: str = static()
    encoder: str = static()
    encoder_hash: str = static()

    def understand(self, text: str) -> Understanding:
        """Return the kind that a sentence asks for, or unsure."""
        from mavic.language.reader.read import understand

        return understand(self, text)


def load(path: str | Path, encoder: str = encoders.DEFAULT) -> Lexicon:
    """Return the lexicon of an instruction file. A world's own file is `mavic.envs.api.world(name).instructions`."""
    return make(instructions.read(Path(path)), encoder)


def make(file: instructions.InstructionFile, encoder: str = encoders.DEFAULT) -> Lexicon:
    """Return the lexicon of a parsed instruction file."""
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
    """Return the hash that a policy file carries, so that vectors of another encoder are refused."""
    if encoder in encoders.BUILT_IN:
        return encoders.built_in_hash(encoder)
    return encoders.open_encoder(encoder).hash


def vectors(texts: Sequence[str], encoder: str = encoders.DEFAULT) -> np.ndarray:
    """Return vectors [P, D] of texts: the shipped ones where they exist, else encoded and cached on disk."""
    known = shipped.vectors(encoder)
    rows: dict[int, np.ndarray] = {}
    for i, text in enumerate(texts):
        if (row := known.get(text_name(text))) is not None:
            rows[i] = row
    missing = [i for i in range(len(texts)) if i not in rows]
    if missing:
        encoded = encoders.encode([texts[i] for i in missing], encoder)
        rows.update(zip(missing, encoded, strict=True))
    return np.stack([rows[i] for i in range(len(texts))])


def states(texts: Sequence[str], encoder: str = encoders.DEFAULT) -> list[np.ndarray]:
    """Return states [S, D] of each text's word pieces: the shipped ones where they exist, else computed."""
    known = shipped.states() if encoder == encoders.DEFAULT else {}
    missing = [text for text in texts if text_name(text) not in known]
    computed = iter(encoders.open_encoder(encoder).states(missing) if missing else ())
    return [
        row if (row := known.get(text_name(text))) is not None else next(computed) for text in texts
    ]


def spare_row(lexicon: Lexicon, slot: int = 0) -> int:
    """Return the row number of a spare slot."""
    if not 0 <= slot < SPARE:
        raise LexiconError(f"slot {slot} is not one of the {SPARE} spare rows (0 to {SPARE - 1})")
    return int(lexicon.vectors.shape[0]) - SPARE + slot


def closest(lexicon: Lexicon, vector: np.ndarray | Array, kind: int) -> int:
    """Return the row of the kind's training phrase whose vector points most nearly in the direction of `vector` [D].

    For kind 0 it is row 0, silence.
    """
    rows = np.asarray(lexicon.table[kind, : int(lexicon.count[kind])])
    if not rows.size:
        return 0
    return int(rows[(np.asarray(lexicon.vectors)[rows] @ np.asarray(vector)).argmax()])


def with_text(lexicon: Lexicon, slot: int, vector: np.ndarray | Array, kind: int = 0) -> Lexicon:
    """Return the lexicon with a sentence's vector [D] in a spare row. Shapes stay, so nothing is compiled again."""
    row = spare_row(lexicon, slot)
    return replace(
        lexicon,
        vectors=lexicon.vectors.at[row].set(jnp.asarray(vector, jnp.float32)),
        kind=lexicon.kind.at[row].set(kind),
    )
