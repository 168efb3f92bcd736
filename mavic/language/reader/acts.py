"""Acts: what can be done in a world, with the kinds that command and forbid it, and sentences that speak of them.

The frames of `mavic/language/data/acts.toml` are filled with acts. A built-in world lists its acts in `phrases.toml`.
For an instruction file of one's own, `from_phrases` takes the training phrases apart.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mavic.language.reader.phrase_file import END, NONE, Example
from mavic.language.reader.spelling import in_vocabulary
from mavic.language.text import fold
from mavic.language.vectors import FOLDER

ACTS = tomllib.loads((FOLDER / "acts.toml").read_text(encoding="utf-8"))
ENGLISH = tomllib.loads((FOLDER / "verbs.toml").read_text(encoding="utf-8"))
ACTS_OF_A_FRAME = 3  # how many acts fill each frame
ACTS_OF_A_NEGATION = 8  # which differ by a word or two and mean the opposite
TWIN_SHARE = 0.7  # of the frames with two things name the two that are most alike
SLOT = re.compile(r"\{(\w+)\}")

Forms = tuple[str, str, str, str]  # of a verb: do, doing, did, done

_IRREGULAR = {row.split()[0]: row.split()[1:] for row in ENGLISH["irregular"]["texts"]}
_VERBS = {*_IRREGULAR, *ENGLISH["plain"]["texts"]}
_DETERMINERS = {"the", "your", "all", "some", "that", "those", "these", "it", "them", "any"}
_NO_VERB = {
    "the",
    "a",
    "an",
    "i",
    "you",
    "it",
    "we",
    "they",
    "he",
    "she",
    "no",
    "not",
    "there",
    "this",
    "that",
    "my",
    "our",
}
_NO_VERB |= {
    "your",
    "all",
    "both",
    "two",
    "one",
    "every",
    "everyone",
    "everybody",
    "everything",
    "somebody",
    "someone",
    "please",
}
_NO_VERB |= {
    "nobody",
    "nothing",
    "neither",
    "never",
    "is",
    "are",
    "am",
    "to",
    "for",
    "with",
    "and",
    "in",
    "on",
    "at",
    "don't",
    "do",
}
_BEFORE_NAMES = {
    "to",
    "into",
    "in",
    "through",
    "at",
    "on",
    "onto",
    "up",
    "out",
    "of",
    "off",
    "from",
    "near",
    "for",
    "with",
    "over",
}
_BEFORE_NAMES |= {
    "and",
    "around",
    "about",
    "away",
    "back",
    "down",
    "by",
    "round",
    "toward",
    "towards",
    "into",
    "along",
    "across",
}
_COURTESY = re.compile(
    r"^(?:(?:please|now|hey|ok|okay|guys|everyone|everybody|somebody|both of you|all of you|two of you|you two|go and|"
    r"come and|just|kindly|could you|can you|would you|will you)[, ]+)+|(?:[, ]+(?:please|now"
    r"|right now|at once|for now))+$"
)
_DONT = re.compile(
    r"^(?:don't|do not|never|you must not|you mustn't|you may not|you can't|you shouldn't"
    r"|nobody may|no one may) (?P<do>.+)$"
)
_NO_DOING = re.compile(
    r"^(?:stop|quit|avoid|no|no more|refrain from|cease) (?P<doing>\w+ing)(?P<rest>(?: .+)?)$"
)
_AVOID = re.compile(
    r"^(?:avoid|skip|leave|(?:stay|keep|steer) (?:away from|out of|off|clear of)|hands off|(?:work|do) without|"
    r"keep your hands off|no (?:one|robots?|carts?|trucks?) (?:enters|in|into|uses)"
    r"|nobody (?:enters|uses|goes (?:near|into|to))|"
    r"no one (?:goes (?:near|into|to))|not through|never use|don't use|do not use|don't touch|do not touch)"
    r" (?P<x>.+?)(?: alone| free| clear| to me| dry| closed| shut| in peace)?$"
)
_IS_CLOSED = re.compile(
    r"^(?P<x>(?:the )?[\w' ]+?) (?:is|are|stays?|must be) (?:now )?(?:off limits|closed"
    r"|blocked|broken|mine|taken|forbidden|"
    r"reserved|occupied|free|quiet|out of order|in use|in quarantine|not allowed|not available|being \w+)$"
)


@dataclass(frozen=True, kw_only=True)
class Act:
    """Something that can be done in a world, and the kinds that command and forbid it."""

    forms: tuple[Forms, ...]
    """Verbs for it, each as: do, doing, did, done."""
    names: tuple[str, ...] = ()
    """Names of the thing that it is done with."""
    command: str = ""
    prohibition: str = ""
    """A kind, or "end" where forbidding it is to end it."""


def from_phrases(train: Mapping[str, Sequence[str]]) -> tuple[Act, ...]:
    """Return the acts that the phrases of an instruction file speak of: at most one for each kind.

    Args:
        train: The training phrases by kind.

    Returns:
        The acts. A kind whose phrases cannot be taken apart has none.
    """
    found = []
    for kind, phrases in train.items():
        texts = [_plain(phrase) for phrase in phrases]
        forbidden = [part for text in texts if (part := _forbidden(text)) is not None]
        if 2 * len(forbidden) >= len(texts):
            verbs = [do for do, _ in forbidden if do]
            names = _unique(name for _, name in forbidden if name)
            verbs += [f"{verb} {name}" for name in names[:2] for verb in ("use", "go to")]
            forms = tuple(forms_of(do) for do in _unique(verbs))
            if forms:
                found.append(Act(forms=forms, names=names, prohibition=kind))
        else:
            verbs = [text for text in texts if _forbidden(text) is None and is_request(text)]
            names = _unique(name for text in verbs if _is_name(name := name_in(text)))
            if verbs:
                forms = tuple(forms_of(do) for do in _unique(verbs))
                found.append(Act(forms=forms, names=names, command=kind))
    return tuple(found)


def _is_name(text: str) -> bool:
    """Return whether words can stand for a thing wherever it is named: "the exit", "room a", but not "a while"."""
    words = text.split()
    if not words or words[-1].endswith(("ing", "ed", "together", "first")) or len(words) > 3:
        return False
    numbered = len(words) > 1 and (words[-1].isdigit() or len(words[-1]) == 1)
    return words[0] in {"the", "your"} or numbered


def is_request(text: str) -> bool:
    """Return whether a phrase begins with a verb, as "search room a" does."""
    words = text.split()
    if not words or words[0] in _NO_VERB or not words[0].isalpha():
        return False
    return words[0] in _VERBS or (len(words) > 1 and words[1] in _DETERMINERS)


def name_in(text: str) -> str:
    """Return the thing at the end of a request, as "the exit" in "go to the exit"; empty if there is none."""
    words = text.split()[1:]
    while words and words[0] in _BEFORE_NAMES:
        words = words[1:]
    for place, word in enumerate(words):
        if place and word in _BEFORE_NAMES - {"of"}:
            words = words[:place]
            break
    if not 1 <= len(words) <= 4 or words[0] in {"it", "them", "you", "yourselves", "where"}:
        return ""
    return " ".join(words)


def forms_of(do: str) -> Forms:
    """Return the four forms of a verb with what follows it, as ("go on", "going on", "went on", "gone on")."""
    verb, _, rest = do.partition(" ")
    rest = f" {rest}" if rest else ""
    double = bool(re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", verb))
    stem = verb[:-1] if verb.endswith("e") and not verb.endswith(("ee", "be")) else verb
    doing = (verb + verb[-1] if double else stem) + "ing"
    if verb in _IRREGULAR:
        did, done = _IRREGULAR[verb]
    elif verb.endswith("y") and verb[-2:-1] not in "aeiou":
        did = done = verb[:-1] + "ied"
    else:
        did = done = verb + ("d" if verb.endswith("e") else (verb[-1] + "ed") * double or "ed")
    return verb + rest, doing + rest, did + rest, done + rest


def _plain(phrase: str) -> str:
    return _COURTESY.sub("", fold(phrase)).strip()


def _forbidden(text: str) -> tuple[str, str] | None:
    """Return what a phrase forbids: a verb with what follows it, and a thing; None if it forbids nothing."""
    if (match := _AVOID.match(text)) and not match["x"].split()[0].endswith("ing"):
        return "", match["x"]
    if match := _DONT.match(text):
        return match["do"], name_in(match["do"])
    if match := _NO_DOING.match(text):
        do = _base_of(match["doing"]) + match["rest"]
        return do, name_in(do)
    if match := _IS_CLOSED.match(text):
        return "", match["x"]
    return None


def _base_of(doing: str) -> str:
    """Return the verb of which a word is the form with -ing."""
    stem = doing.removesuffix("ing")
    tried = (stem, f"{stem}e", stem[:-1])
    return next((verb for verb in tried if verb in _VERBS), None) or next(
        (verb for verb in tried if in_vocabulary(verb)), stem
    )


def _unique(texts: Iterator[str] | Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def filled(
    done: Sequence[Act], rng: random.Random, frames: Sequence[Mapping[str, Any]] = ACTS["frames"]
) -> Iterator[Example]:
    """Return frames filled with acts of a world.

    Two frames may make one sentence of different acts ("wait, don't dig"). What the first asks for counts.

    Args:
        done: The acts of the world.
        rng: Makes all choices.
        frames: As in `acts.toml`.
    """
    asked: dict[str, str] = {}
    for frame in frames:
        needs = frame.get("needs", "").split()
        able = [act for act in done if _fits(act, needs, done)]
        many = ACTS_OF_A_NEGATION if frame["category"] == "negation" else ACTS_OF_A_FRAME
        for text in frame["texts"] if able else []:
            for act in rng.sample(able, min(len(able), frame.get("draws", many))):
                group = _with_words(text, ACTS["slots"], rng)
                words = group.format(**_words_for(act, needs, done, rng))
                kinds = {"command": act.command, "prohibition": act.prohibition}
                kind = kinds.get(frame["kind"], frame["kind"]) or NONE
                if asked.setdefault(fold(words), kind) == kind:
                    yield Example(text=words, kind=kind, group=group, category=frame["category"])


def _with_words(text: str, slots: Mapping[str, list[str]], rng: random.Random) -> str:
    """Return a frame with its slots filled; the places of an act stay."""
    words = SLOT.sub(lambda m: rng.choice(slots[m[1]]) if m[1] in slots else m[0], text)
    return " ".join(words.split())


def _words_for(
    act: Act, needs: Collection[str], done: Sequence[Act], rng: random.Random
) -> dict[str, str]:
    """Return the words that an act puts into a frame: forms of its verb and its thing, and those of another act."""
    words = dict(zip(("do", "doing", "did", "done"), rng.choice(_forms(act, needs)), strict=True))
    number = rng.randrange(len(act.names)) if act.names else 0
    words["x"] = act.names[number] if act.names else ""
    if "other" in needs:
        other = rng.choice(_others(act, done))
        words["else_do"], words["else_doing"], *_ = rng.choice(other.forms)
    if "y" in needs:
        names = _most_alike(act, done, rng).names
        words["y"] = names[number] if len(names) == len(act.names) else rng.choice(names)
    return words


def _forms(act: Act, needs: Collection[str]) -> list[Forms]:
    """Return the verbs of an act; only those of one word if a frame needs it."""
    return [form for form in act.forms if "word" not in needs or " " not in form[0]]


def _others(act: Act, done: Sequence[Act]) -> list[Act]:
    """Return the acts that can be commanded and are not this one."""
    return [other for other in done if other.command and other is not act]


def _with_another_thing(act: Act, done: Sequence[Act]) -> list[Act]:
    """Return the acts with another thing that can be asked for like this one's."""
    alike = [other for other in done if bool(other.command) == bool(act.command)]
    return [other for other in alike if other.names and other is not act]


def _most_alike(act: Act, done: Sequence[Act], rng: random.Random) -> Act:
    """Return an act with another thing, most often the thing whose name is most alike: left and right."""
    others = _with_another_thing(act, done)
    shared = [len({*act.names[0].split()} & {*other.names[0].split()}) for other in others]
    nearest = [o for o, n in zip(others, shared, strict=True) if n == max(shared)]
    return rng.choice(nearest if rng.random() < TWIN_SHARE else others)


def _fits(act: Act, needs: Collection[str], done: Sequence[Act]) -> bool:
    """Return whether an act has what a frame needs."""
    has = {
        "command": bool(act.command),
        "forbidden": act.prohibition not in ("", END),
        "free": act.prohibition in ("", END),
        "x": bool(act.names),
        "y": bool(act.names and _with_another_thing(act, done)),
        "word": bool(_forms(act, ("word",))),
        "other": bool(_others(act, done)),
    }
    return all(has[need] for need in needs)
