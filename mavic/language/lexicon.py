"""The lexicon: every phrase of an instruction file as a vector, with its kind and split, as arrays to look up.

Vectors of the built-in phrases are shipped, so only the phrases of a user's own file need an encoder.
"""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np

from mavic.instruct.spec import InstructionFile
from mavic.language import encoder as encoders
from mavic.language.text import fold
from mavic.language.vectors import vectors
from mavic.types import Array, record, static

SPARE = 4  # free rows for sentences that a person types while a program runs


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

    @property
    def spare_row(self) -> int:
        """The first spare row."""
        return int(self.vectors.shape[0]) - SPARE

    def closest(self, vector: np.ndarray | Array, kind: int) -> int:
        """Return the training phrase that is nearest to a vector.

        Args:
            vector: [D], of a free sentence.
            kind: The kind's number. The phrase is one of its training phrases.

        Returns:
            The row with the largest product. For kind 0 it is row 0, silence.
        """
        rows = np.asarray(self.table[kind, : int(self.count[kind])])
        if not rows.size:
            return 0
        return int(rows[(np.asarray(self.vectors)[rows] @ np.asarray(vector)).argmax()])

    def training_phrases(self) -> dict[str, tuple[str, ...]]:
        """Return the training phrases of each kind, by the kind's name."""
        table, count = np.asarray(self.table), np.asarray(self.count)
        return {
            name: tuple(self.texts[row] for row in table[kind, : count[kind]])
            for kind, name in enumerate(self.names)
            if kind
        }

    def known_kinds(self) -> dict[str, int]:
        """Return the kind's number of each training phrase, by the folded phrase."""
        phrases = self.training_phrases()
        return {fold(text): self.names.index(kind) for kind in phrases for text in phrases[kind]}

    @classmethod
    def load(cls, path: str | Path, encoder: str = encoders.DEFAULT) -> Lexicon:
        """Read an instruction file and return its lexicon.

        Args:
            path: The file. A world's file is `mavic.envs.api.world(name).instructions`.
            encoder: The encoder's name.

        Returns:
            The lexicon.
        """
        return cls.make(InstructionFile.read(Path(path)), encoder)

    @classmethod
    def make(cls, file: InstructionFile, encoder: str = encoders.DEFAULT) -> Lexicon:
        """Return the lexicon of a parsed instruction file.

        Args:
            file: The file.
            encoder: The encoder's name.

        Returns:
            The lexicon.
        """
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
        return cls(
            vectors=jnp.asarray(np.concatenate([blank, phrases, np.repeat(blank, SPARE, 0)])),
            kind=jnp.asarray(kinds + [0] * SPARE, jnp.int32),
            table=jnp.asarray(padded, jnp.int32),
            count=jnp.asarray(count, jnp.int32),
            held_out=jnp.asarray(held + [False] * SPARE),
            texts=tuple(texts) + ("",) * SPARE,
            names=("none", *file.names()),
            world=file.world,
            encoder=encoder,
            encoder_hash=encoders.encoder_hash(encoder),
        )
