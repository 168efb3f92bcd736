"""The first steps with any text: normalise it, check it, name it by a hash."""

from __future__ import annotations

import hashlib
import unicodedata

MAX_CHARACTERS = 10_000  # the rest is cut; encoders read only the first 128 word pieces anyway


class TextError(ValueError):
    """The text cannot be read as a sentence; the message says why."""


def fold(text: str) -> str:
    """Return the text in one spelling: lower case, single spaces, plain apostrophes, no closing punctuation."""
    text = unicodedata.normalize("NFKC", text[:MAX_CHARACTERS])
    text = text.replace("\u2019", "'").replace("\u2018", "'")
    text = "".join(" " if unicodedata.category(c).startswith("C") else c for c in text)
    return " ".join(text.lower().split()).rstrip(" .!?,;:\u2026")


def check(text: str) -> str:
    """Return the folded text. A text without a letter or digit is a `TextError`."""
    folded = fold(text)
    if not folded:
        raise TextError("the text is empty")
    if not any(c.isalnum() for c in folded):
        raise TextError("the text has no letter or digit")
    return folded


def name(text: str) -> str:
    """Return a short hash of the folded text; vectors and states are stored under it."""
    return hashlib.sha256(fold(text).encode()).hexdigest()[:16]


def shown(text: str, longest: int = 200) -> str:
    """Return the text as a terminal can show it: one line, no control characters, at most `longest` characters."""
    text = text[:MAX_CHARACTERS]
    plain = "".join(" " if unicodedata.category(c).startswith("C") else c for c in text)
    plain = " ".join(plain.split())
    return plain if len(plain) <= longest else plain[: longest - 1] + "\u2026"


def given(text: str) -> str:
    """Return a text from the command line, unchanged. If its bytes were not UTF-8, it is a `TextError`."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise TextError("not UTF-8 text") from None
    return text


def lines(raw: bytes) -> list[str]:
    """Return the lines of a file that are not blank. If the file is not UTF-8, it is a `TextError`."""
    try:
        decoded = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextError(f"not UTF-8 text ({error.reason} at byte {error.start})") from None
    return [line for line in decoded.splitlines() if line.strip()]
