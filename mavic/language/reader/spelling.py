"""Slips of the keyboard: mended towards words that are known, and made for training.

A word is taken for a slip only if nobody knows it: neither the head's training sentences nor the
encoder's vocabulary has it whole. So "letuce" becomes "lettuce", and "plane" never "plate".
"""

from __future__ import annotations

import collections
import random
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from mavic.language.text import fold

SHORTEST = 3  # letters of a word that may be mended by a missing, a doubled, a swapped letter
REPLACED = 5  # letters of a word that may be mended by another letter
CONTRACTIONS = (
    "don't",
    "doesn't",
    "didn't",
    "can't",
    "couldn't",
    "won't",
    "wouldn't",
    "shouldn't",
    "mustn't",
    "needn't",
    "isn't",
    "aren't",
    "wasn't",
    "weren't",
    "hasn't",
    "haven't",
    "hadn't",
    "i'm",
    "i've",
    "i'd",
    "you're",
    "you've",
    "you'd",
    "you'll",
    "they're",
    "they've",
    "we've",
    "that's",
    "there's",
    "what's",
    "let's",
    "he's",
    "she's",
    "who's",
    "here's",
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
ALIKE = {c.replace("'", ""): c for c in CONTRACTIONS} | ABBREVIATIONS
SPELT = re.compile(r"[a-z']+")
# An "'s" is a word of its own: "the board's taken" has the word "board".
WORD = re.compile(r"[a-z]+(?:'(?!s\b)[a-z]+)?|'s\b|\d+|#")
SEEN = (2, 25)  # training sentences a word, a pair of words must occur in to be known
LETTERS = "abcdefghijklmnopqrstuvwxyz"
JOINED = 0.15  # share of slips that lose a space, and as many that lose marks


@cache
def vocabulary() -> frozenset[str]:
    """Whole words of the built-in encoders."""
    path = resources.files("mavic.language") / "data" / "vocab.txt"
    return frozenset(path.read_text(encoding="utf-8").split("\n"))


def words_of(text: str) -> tuple[list[str], list[str]]:
    """Words of a text, and pairs of neighbours including its start and end."""
    words = WORD.findall(fold(text))
    return words, [f"{a}_{b}" for a, b in zip(["^", *words], [*words, "$"], strict=True)]


def known_words(texts: Sequence[str]) -> dict[str, int]:
    """Numbers of the words and pairs that occur often enough to be learnt, commonest first."""
    counts = [collections.Counter[str](), collections.Counter[str]()]
    for text in texts:
        for counter, found in zip(counts, words_of(text), strict=True):
            counter.update(set(found))
    kept = [
        (n, w) for c, least in zip(counts, SEEN, strict=True) for w, n in c.items() if n >= least
    ]
    return {word: i for i, (_, word) in enumerate(sorted(kept, key=lambda k: (-k[0], k[1])))}


def mend(text: str, known: Mapping[str, int]) -> str:
    """The folded text, its slips mended towards `known`: words by rank, the commonest first."""

    def word(match: re.Match[str]) -> str:
        return _mended(match[0], known)

    return SPELT.sub(word, fold(text))


def _mended(word: str, known: Mapping[str, int]) -> str:
    if word in ALIKE:
        return ALIKE[word]
    if word in known or "'" in word or len(word) < SHORTEST or word in vocabulary():
        return word
    for near in (_moved(word), _replaced(word)):
        if found := [other for other in near if other in known and len(other) >= SHORTEST]:
            return min(found, key=known.__getitem__)
        if found := [other for other in near if other in ALIKE]:  # "dnot": "dont", "don't"
            return ALIKE[min(found)]
    return word


def _moved(word: str) -> set[str]:
    """What the word may be if two letters were swapped, one was left out, one is too many."""
    splits = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    made = {a + b[1] + b[0] + b[2:] for a, b in splits if len(b) > 1}
    made |= {a + b[1:] for a, b in splits if b}
    return made | {a + letter + b for a, b in splits for letter in LETTERS}


def _replaced(word: str) -> set[str]:
    """What the word may be if a letter but the first is wrong; only for longer words."""
    if len(word) < REPLACED:
        return set()
    return {word[:i] + c + word[i + 1 :] for i in range(1, len(word)) for c in LETTERS}


def slip(text: str, drawn: random.Random) -> str:
    """The text with one slip: a letter swapped, left out, doubled; an apostrophe, a space lost."""
    chance = drawn.random()
    spaces = [i for i, c in enumerate(text) if c == " "]
    if chance < JOINED and spaces:
        at = drawn.choice(spaces)
        return text[:at] + text[at + 1 :]
    if chance < 2 * JOINED and set(text) & set("',.?!-"):
        return re.sub(r"[',.?!]|(?<=\w)-(?=\w)", "", text)
    words = [m for m in re.finditer(r"[A-Za-z]{3,}", text)]
    if not words:
        return text
    match = drawn.choice(words)
    at = drawn.randrange(match.start(), match.end() - 1)
    change = drawn.choice(("swap", "drop", "double"))
    if change == "swap":
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    return text[:at] + text[at + 1 :] if change == "drop" else text[:at] + text[at] + text[at:]
