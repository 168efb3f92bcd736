"""Normalises a text, names it by a hash, and makes it printable."""

from __future__ import annotations

import hashlib
import unicodedata

NONE = "none"  # the kind of sentences without an instruction that the world has
END = "end"  # the kind of sentences that end the current instruction
MAX_CHARACTERS = 10_000  # the rest is cut; encoders read only the first 128 word pieces anyway


def fold(text: str) -> str:
    """Return the text in one spelling: lower case, single spaces, plain apostrophes, no closing punctuation."""
    text = unicodedata.normalize("NFKC", text[:MAX_CHARACTERS])
    text = text.replace("\u2019", "'").replace("\u2018", "'")
    return _one_line(text).lower().rstrip(" .!?,;:\u2026")


def name(text: str) -> str:
    """Return a short hash of the folded text; vectors and states are stored under it."""
    return hashlib.sha256(fold(text).encode()).hexdigest()[:16]


def shown(text: str, longest: int = 200) -> str:
    """Return a text as a terminal can show it: one line without control characters.

    Args:
        text: The text.
        longest: The most characters. A longer text is cut and ends in "…".

    Returns:
        The line.
    """
    plain = _one_line(text[:MAX_CHARACTERS])
    return plain if len(plain) <= longest else plain[: longest - 1] + "\u2026"


def _one_line(text: str) -> str:
    """Return the text with single spaces and without control characters."""
    return " ".join(
        "".join(" " if unicodedata.category(c).startswith("C") else c for c in text).split()
    )
