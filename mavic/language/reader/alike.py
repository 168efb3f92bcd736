"""Phrases of two kinds that say nearly the same, which no reader and no team can tell apart."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from mavic.language.reader.spelling import correct, in_vocabulary, words_of

COURTESY = {
    "please", "the", "an", "now", "ok", "okay", "just", "you", "hey", "guys", "team", "everyone", "both", "kindly",
}  # fmt: skip
TELLING = {"not", "no", "never", "only", "except", "without", "until", "again"}
FULL = {"won't": "will not", "can't": "can not", "cannot": "can not"}
ENDINGS = {
    "n't": "not",
    "'m": "am",
    "'re": "are",
    "'ve": "have",
    "'ll": "will",
    "'d": "would",
    "'s": "is",
}
ENDING = re.compile(f"(?:{'|'.join(ENDINGS)})$")
LEAST = 3  # words that two phrases must share for one word more to be no difference

Words = tuple[str, ...]


def alike(phrases: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, str, str, bool]]:
    """Return pairs of phrases of two kinds that say nearly the same.

    Contractions, typing errors, articles and courtesy make no difference. Nor does the order of words, or one word
    more that does not set the two kinds apart.

    Args:
        phrases: The phrases by kind.

    Returns:
        Two kinds, a phrase of each, and whether the words and their order are the same.
    """
    known = _known([text for texts in phrases.values() for text in texts])
    content = {kind: [_content(text, known) for text in texts] for kind, texts in phrases.items()}
    for one, other in combinations(phrases, 2):
        apart = _apart(content[one], content[other])
        for said, words in zip(phrases[one], content[one], strict=True):
            for also, others in zip(phrases[other], content[other], strict=True):
                if _near(words, others, apart):
                    yield one, other, said, also, words == others


def _known(texts: Sequence[str]) -> dict[str, int]:
    """Return the words that typing errors are corrected to: not those that one phrase alone has and no dictionary."""
    counts = collections.Counter(word for text in texts for word in set(words_of(text)[0]))
    kept = [word for word, n in counts.most_common() if n > 1 or in_vocabulary(word)]
    return {word: number for number, word in enumerate(kept)}


def _content(text: str, known: Mapping[str, int]) -> Words:
    """Return the words of a phrase that carry its meaning, without contractions and typing errors."""
    words = words_of(correct(text, known))[0]
    articles = {"a"} if words[-1:] != ["a"] else set()  # "room a" is a name
    full = " ".join(_full(w) for w in words if w not in COURTESY | articles)
    return tuple(full.split())


def _full(word: str) -> str:
    """Return a word without contraction: "do not" for "don't"."""
    if word in FULL:
        return FULL[word]
    return ENDING.sub(lambda match: f" {ENDINGS[match[0]]}", word)


def _apart(one: Sequence[Words], other: Sequence[Words]) -> set[str]:
    """Return the words that set two kinds apart: several phrases of one kind have them, and none of the other."""
    counts = [collections.Counter(w for words in own for w in set(words)) for own in (one, other)]
    return {w for c, d in (counts, counts[::-1]) for w, n in c.items() if n > 1 and w not in d}


def _near(one: Words, other: Words, apart: set[str]) -> bool:
    more, less = (collections.Counter(words) for words in (one, other))
    only = [*(more - less).elements(), *(less - more).elements()]
    if not only:
        return bool(one)
    word = only[0]
    telling = word in apart | TELLING or len(word) == 1 or word.isdigit()
    return len(only) == 1 and (more & less).total() >= LEAST and not telling
