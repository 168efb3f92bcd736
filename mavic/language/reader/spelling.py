"""The words of a text, and its typing errors, which are corrected before the head reads it.

A word counts as a typing error only if neither the head's training sentences nor the encoder's vocabulary contains it.
So "letuce" becomes "lettuce", but "plane" never becomes "plate".
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources

from mavic.language.text import fold

MAX_CHARACTERS = 400  # a longer text is no instruction
MIN_LETTERS = 3  # shortest word that is corrected by adding, removing or swapping letters
MIN_LETTERS_TO_REPLACE = 5  # shortest word that is corrected by replacing a letter
CONTRACTIONS = (
    "don't doesn't didn't can't couldn't won't wouldn't shouldn't mustn't needn't isn't aren't wasn't weren't "
    "hasn't haven't hadn't i'm i've i'd you're you've you'd you'll they're they've we've that's there's what's "
    "let's he's she's who's here's"
)
ABBREVIATIONS = {
    "pls": "please",
    "plz": "please",
    "plss": "please",
    "u": "you",
    "ur": "your",
    "thx": "thanks",
    "ty": "thanks",
    "rn": "right now",
    "asap": "as soon as possible",
    "tho": "though",
    "cuz": "because",
    "bc": "because",
    "btw": "by the way",
    "gimme": "give me",
    "lemme": "let me",
    "ya": "you",
}
REPLACEMENTS = {c.replace("'", ""): c for c in CONTRACTIONS.split()} | ABBREVIATIONS
LETTERS_AND_APOSTROPHES = re.compile(r"[a-z']+")
# "'s" is a word of its own, so "the board's taken" contains the word "board".
WORD = re.compile(r"[a-z]+(?:'(?!s\b)[a-z]+)?|'s\b|\d+|#")
MIN_SENTENCES = (2, 25)  # that must contain a word, or a pair of words, for it to be known
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@cache
def _vocabulary() -> frozenset[str]:
    """Return the words and word pieces that the built-in encoders know."""
    path = resources.files("mavic.language") / "data" / "vocab.txt"
    return frozenset(path.read_text(encoding="utf-8").split("\n"))


def in_vocabulary(word: str) -> bool:
    """Return whether the built-in encoders know a word."""
    return word in _vocabulary()


def words_of(text: str) -> tuple[list[str], list[str]]:
    """Return the words of a text, and its pairs of neighbouring words; "^" is the start and "$" the end."""
    words = WORD.findall(fold(text))
    return words, [f"{a}_{b}" for a, b in zip(["^", *words], [*words, "$"], strict=True)]


def why_no_sentence(text: str) -> str:
    """Return why a text cannot be read; empty for a sentence."""
    folded = fold(text)
    if not folded:
        return "the text is empty"
    if not any(c.isalnum() for c in folded):
        return "the text has no letter or digit"
    if not WORD.search(folded):
        return "the text has no English word or number"
    if len(folded) > MAX_CHARACTERS:
        return (
            f"the text is too long for an instruction "
            f"({len(text)} characters, at most {MAX_CHARACTERS})"
        )
    return ""


def known_words(texts: Iterable[str], least: tuple[int, int] = MIN_SENTENCES) -> dict[str, int]:
    """Return the words and pairs that occur in enough texts, numbered from the most frequent one.

    Args:
        texts: The texts.
        least: How many texts must contain a word, and a pair of words.
    """
    counts = [collections.Counter[str](), collections.Counter[str]()]
    for text in texts:
        for counter, found in zip(counts, words_of(text), strict=True):
            counter.update(set(found))
    kept = [
        (n, w) for c, enough in zip(counts, least, strict=True) for w, n in c.items() if n >= enough
    ]
    return {word: i for i, (_, word) in enumerate(sorted(kept, key=lambda k: (-k[0], k[1])))}


def correct(text: str, known: Mapping[str, int]) -> str:
    """Correct the typing errors of a text.

    Args:
        text: The text.
        known: The words to correct to, numbered from the most frequent one.

    Returns:
        The folded text with corrected words.
    """

    def word(match: re.Match[str]) -> str:
        return _corrected(match[0], known)

    return LETTERS_AND_APOSTROPHES.sub(word, fold(text))


def _corrected(word: str, known: Mapping[str, int]) -> str:
    if word in REPLACEMENTS:
        return REPLACEMENTS[word]
    if word in known or "'" in word or len(word) < MIN_LETTERS or word in _vocabulary():
        return word
    for near in (_one_letter_moved(word), _one_letter_replaced(word)):
        if found := [other for other in near if other in known and len(other) >= MIN_LETTERS]:
            return min(found, key=known.__getitem__)
        if found := [other for other in near if other in REPLACEMENTS]:  # "dnot" → "dont" → "don't"
            return REPLACEMENTS[min(found)]
    return word


def _one_letter_moved(word: str) -> set[str]:
    """Return the texts that differ from the word by two swapped letters, by one letter more or by one letter less."""
    splits = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    made = {a + b[1] + b[0] + b[2:] for a, b in splits if len(b) > 1}
    made |= {a + b[1:] for a, b in splits if b}
    return made | {a + letter + b for a, b in splits for letter in LETTERS}


def _one_letter_replaced(word: str) -> set[str]:
    """Return the texts that differ from the word in one letter other than the first; none for a short word."""
    if len(word) < MIN_LETTERS_TO_REPLACE:
        return set()
    return {word[:i] + c + word[i + 1 :] for i in range(1, len(word)) for c in LETTERS}
