"""What is done to a text before anything else: cleaned, folded, named by a hash."""

from __future__ import annotations

import hashlib
import unicodedata

LONGEST = 10_000  # characters kept of a text; the encoders read the first 128 word pieces anyway


class TextError(ValueError):
    """The text cannot be understood as a sentence; the message says why."""


def fold(text: str) -> str:
    """One spelling for what is said alike: case, spaces, typographic quotes, closing marks."""
    text = (
        unicodedata.normalize("NFKC", text[:LONGEST]).replace("\u2019", "'").replace("\u2018", "'")
    )
    text = "".join(" " if unicodedata.category(c).startswith("C") else c for c in text)
    return " ".join(text.lower().split()).rstrip(" .!?,;:\u2026")


def check(text: str) -> str:
    """The folded text, or a `TextError` saying why nothing can be made of it."""
    folded = fold(text)
    if not folded:
        raise TextError("the text is empty")
    if not any(c.isalnum() for c in folded):
        raise TextError("the text has no letter or digit")
    return folded


def name(text: str) -> str:
    """A short hash of the folded text, by which vectors are kept."""
    return hashlib.sha256(fold(text).encode()).hexdigest()[:16]


def shown(text: str, longest: int = 200) -> str:
    """The text as a terminal may show it: on one line, without control characters, cut if long."""
    plain = "".join(" " if unicodedata.category(c).startswith("C") else c for c in text[:LONGEST])
    plain = " ".join(plain.split())
    return plain if len(plain) <= longest else plain[: longest - 1] + "\u2026"


def given(text: str) -> str:
    """A text from the command line as it is; a `TextError` if its bytes were not UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise TextError("not UTF-8 text") from None
    return text


def lines(raw: bytes) -> list[str]:
    """The texts of a file, one a line, blank lines left out; a `TextError` if it is not UTF-8."""
    try:
        decoded = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextError(f"not UTF-8 text ({error.reason} at byte {error.start})") from None
    return [line for line in decoded.splitlines() if line.strip()]
