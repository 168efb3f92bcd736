"""The head of an instruction file of one's own, fitted to its phrases alone.

The phrases are taken apart into acts (`acts.from_phrases`), which fill further ways to ask and to forbid. Siblings that
the file does not have ("room c" beside rooms a and b), things of other places and everyday requests are about no kind.
What a sentence does with an act is told by the shipped head (`own_head`).
"""

from __future__ import annotations

import collections
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from mavic.language.reader import data
from mavic.language.reader.acts import ENGLISH, Act, from_phrases
from mavic.language.reader.data import FRAMES
from mavic.language.reader.model import Head, in_order, softmax
from mavic.language.reader.own_head import (
    DO,
    DOES,
    DONT,
    STOP,
    OwnHead,
    Topics,
    inputs_of,
    numbered_in,
    with_digits,
)
from mavic.language.reader.phrase_file import END, NONE, Example
from mavic.language.reader.spelling import correct, known_words
from mavic.language.text import fold

VERSION = 2  # raised when another head is fitted to the same phrases
THINGS = tuple(ENGLISH["things"]["texts"])
ASKED = 9  # further requests of a kind, of each sort
SWAPPED = 2  # siblings of each phrase and word
ELSEWHERE = 10  # requests with things of other places, of each kind
MISUSED = 6  # acts that no team can do, with the things of each kind
EVERYDAY = 260
COPIES = 1
TYPOS = 0.05
LEAST = (2, 4)  # sentences that must contain a word, or a pair of words, for it to be known
OTHER_SHARE = 0.7  # weight of sentences about no kind, against all kinds together
DECAY = 2e-3  # L2 penalty of the regression
STEPS = 150
STOPPING, ENDING = 4, 2  # a quarter and a half of the phrases count in full
AT_ONCE = 256  # sentences between two lines of progress
ASK = (
    "could you {do}", "would you please {do}", "can you {do}", "i'd like you to {do}",
    "it's time to {do}", "you should {do}",
    "i want you to {do}", "let's {do}", "we need you to {do}", "your job is to {do}", "{do}, will you",
    "would you {do}",
    "i need you to {do}", "please {do} now", "go ahead and {do}", "you two, {do}",
    "why don't you {do}", "make sure to {do}",
)  # fmt: skip
FORBID = (
    "please don't {do}", "i don't want you to {do}", "i'd rather you didn't {do}", "nobody may {do}",
    "whatever you do, don't {do}",
    "would you please not {do}", "you are not to {do}", "no {doing}", "no more {doing}", "i don't want anybody {doing}",
    "you must not {do}", "could you not {do}", "make sure nobody {did}", "{doing} is not allowed",
    "don't you {do}", "never {do}",
    "you are not allowed to {do}", "please stop {doing}", "robots must not {do}", "i won't have you {doing}",
)  # fmt: skip


def fit(
    train: Mapping[str, Sequence[str]],
    seed: str,
    does: Head,
    states: Callable[[Sequence[str]], list[np.ndarray]],
    say: Callable[[str], None] = lambda text: None,
) -> OwnHead:
    """Fit a head to the phrases of a file.

    Args:
        train: The training phrases by kind.
        seed: Of all random choices.
        does: The shipped head, which tells what a sentence does.
        states: Gives the encoder's states of texts.
        say: Is told how far the fit is.
    """
    examples = training_set_of(train, seed)
    numbered = numbered_in([text for texts in train.values() for text in texts])
    texts = [with_digits(example.text, numbered) for example in examples]
    read: list[np.ndarray] = []
    for start in range(0, len(texts), AT_ONCE):
        say(f"encoding sentence {start + 1} of {len(texts)} …")
        read += states(texts[start : start + AT_ONCE])
    say("fitting …")
    words, names = known_words(texts, LEAST), (NONE, *train)
    kinds = np.array([names.index(example.kind) for example in examples])
    weights = _regression(inputs_of(texts, read, words), kinds, len(names))
    topics = Topics(names=names, words=words, numbered=numbered, weights=weights)
    return OwnHead(does=does, topics=topics, manner=_manner(train, does, states))


def training_set_of(train: Mapping[str, Sequence[str]], seed: str) -> list[Example]:
    """Return the sentences that tell the kinds of a file apart, in a fixed order.

    Args:
        train: The training phrases by kind.
        seed: Of all random choices.
    """
    acts = from_phrases(train)
    return data.training_set(
        train,
        seed=seed,
        requests=lambda rng: [
            *_asked(acts, rng),
            *_siblings(train, rng),
            *_elsewhere(acts, train, rng),
        ],
        about=False,
        everyday=EVERYDAY,
        copies=COPIES,
        typos=TYPOS,
    )


def _regression(inputs: np.ndarray, kinds: np.ndarray, count: int) -> np.ndarray:
    """Return the weights [F, C] of a softmax regression in which all kinds weigh the same."""
    from scipy.optimize import minimize  # comes with JAX

    each = np.bincount(kinds, minlength=count).clip(1)
    weight = np.where(kinds == 0, OTHER_SHARE * (count - 1) / each[0], 1 / each[kinds])
    weight = (weight / weight.sum()).astype(np.float32)
    meant = np.eye(count, dtype=np.float32)[kinds]
    decay = np.full((inputs.shape[1], 1), DECAY / count, np.float32)
    decay[-1] = 0  # of the 1

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(-1, count).astype(np.float32)
        shares = softmax(inputs @ weights)
        right = np.log(shares[np.arange(len(kinds)), kinds].clip(1e-12))
        slope = inputs.T @ ((shares - meant) * weight[:, None]) + decay * weights
        return float(-weight @ right + (decay * weights**2).sum() / 2), slope.ravel().astype(float)

    start = np.zeros(inputs.shape[1] * count)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return found.x.reshape(-1, count).astype(np.float32)


def _manner(
    train: Mapping[str, Sequence[str]],
    does: Head,
    states: Callable[[Sequence[str]], list[np.ndarray]],
) -> np.ndarray:
    """Return [C, 4] how far the phrases of each kind ask, forbid, stop and end, as `OwnHead` wants it.

    What half of the phrases do counts in full. "Stop" may be a command ("stop all work"), and so may what
    sounds like an end ("back to the bay"). A prohibition is never asked for by what sounds like an end.
    """
    rows = [np.zeros(4)]
    for texts in train.values():
        read = [correct(text, does.words) for text in texts]
        shares = in_order(does.probabilities(read, states(read)), does.names, DOES).mean(0)
        share = dict(zip(DOES, shares, strict=True))
        forbids = share[DONT] + share[STOP]
        both = max(share[DO] + forbids, 1e-6)
        asks, forbids = min(1.0, 2 * share[DO] / both), min(1.0, 2 * forbids / both)
        stops = max(forbids, min(1.0, STOPPING * share[STOP] / both))
        ends = (1 - forbids) * min(1.0, ENDING * share[END] / (both + share[END]))
        rows.append(np.array([asks, forbids, stops, ends]))
    return np.array(rows, np.float32)


def _asked(acts: Sequence[Act], rng: random.Random) -> Iterator[Example]:
    """Return further ways to ask for each act, or to forbid it."""
    for act in acts:
        frames = ASK if act.command else FORBID
        for frame in rng.sample(frames, min(len(frames), ASKED + 3)):
            words = dict(zip(("do", "doing", "did", "done"), rng.choice(act.forms), strict=True))
            yield Example(
                text=frame.format(**words), kind=act.command or act.prohibition, group=frame
            )
        if act.prohibition and act.names:
            for frame in rng.sample(FRAMES["frames"]["avoid"], ASKED + 6):
                text = frame.replace("{x}", rng.choice(act.names))
                yield Example(text=text, kind=act.prohibition, group=frame)


def _siblings(train: Mapping[str, Sequence[str]], rng: random.Random) -> Iterator[Example]:
    """Return phrases with a word of another sibling: of the kind that the sibling has in the file, or of none."""
    kind_of = {fold(text): kind for kind, texts in train.items() for text in texts}
    rows = [row.split() for row in ENGLISH["siblings"]["texts"]]
    goes_to: dict[tuple[str, str, str], collections.Counter[str]] = {}
    made = []
    for kind, texts in train.items():
        for text, row in product(map(fold, texts), rows):
            for old in [word for word in row if _stands_alone(word, text)]:
                for new in row:
                    if new != old:
                        other = _exchanged(text, old, new)
                        found = goes_to.setdefault((kind, old, new), collections.Counter())
                        found[kind_of.get(other, "")] += 1
                        made.append((kind, old, new, text, other))
    rng.shuffle(made)
    count: collections.Counter[tuple[str, str]] = collections.Counter()
    for kind, old, new, text, other in made:
        known = goes_to[kind, old, new]
        del known[""]
        # A number in words is the sibling that its digit is.
        asked = max(known, key=known.__getitem__) if known else _by_digit(kind, old, new, goes_to)
        if other not in kind_of and count[text, old] < SWAPPED:
            count[text, old] += 1
            yield Example(text=other, kind=asked or NONE, group=f"{old} {text}")


def _by_digit(
    kind: str, old: str, new: str, goes_to: Mapping[tuple[str, str, str], collections.Counter[str]]
) -> str:
    """Return the kind to which the same exchange leads if the numbers are written as digits; empty if to none."""
    rows = [row.split() for row in ENGLISH["siblings"]["texts"]]
    digits, words = (next(row for row in rows if row[0] == first) for first in ("0", "zero"))
    for one, other in ((digits, words), (words, digits)):
        if old in one and new in one:
            found = goes_to.get((kind, other[one.index(old)], other[one.index(new)]))
            known = {k: n for k, n in (found or {}).items() if k}
            return max(known, key=known.__getitem__) if known else ""
    return ""


def _stands_alone(word: str, text: str) -> bool:
    """Return whether a word of a row is in a text. A letter counts only at the end of a part, where it is a name."""
    words = text.replace(",", " ,").split()
    if word not in words:
        return False
    if len(word) == 1 and word.isalpha():
        place = len(words) - 1 - words[::-1].index(word)
        after = words[place + 1] if place + 1 < len(words) else ""
        return place > 0 and after in (
            "",
            ",",
            "is",
            "needs",
            "now",
            "please",
            "first",
            "has",
            "searched",
            "and",
        )
    return True


def _exchanged(text: str, old: str, new: str) -> str:
    """Return a text with the last place of a word taken by another."""
    words = text.split(" ")
    place = len(words) - 1 - [word.strip(",") for word in words][::-1].index(old)
    words[place] = words[place].replace(old, new)
    return " ".join(words)


def _elsewhere(
    acts: Sequence[Act], train: Mapping[str, Sequence[str]], rng: random.Random
) -> Iterator[Example]:
    """Return requests of the file's own words with things of other places, and of its things with other verbs."""
    said = {word for texts in train.values() for text in texts for word in fold(text).split()}
    things = [thing for thing in THINGS if thing not in said]
    for act in acts:
        named = [form for form in act.forms if any(name in form[0] for name in act.names)]
        for _ in range(ELSEWHERE if act.names else 0):
            name, thing = rng.choice(act.names), f"the {rng.choice(things)}"
            if act.command:
                able = [form[0] for form in named if name in form[0]]
                if able:
                    text = rng.choice(able).replace(name, thing)
                    frame = rng.choice(("{do}", "please {do}", *ASK))
                    yield Example(text=frame.format(do=text), kind=NONE, group=f"elsewhere {text}")
            else:
                frame = rng.choice(FRAMES["frames"]["avoid"])
                yield Example(
                    text=frame.replace("{x}", thing), kind=NONE, group=f"elsewhere {frame}"
                )
        for _ in range(MISUSED if act.names else 0):
            frame = rng.choice(FRAMES["frames"]["misuse"])
            if frame.split()[0] not in said:
                text = frame.replace("{x}", rng.choice(act.names))
                yield Example(text=text, kind=NONE, group=f"misuse {frame}")
