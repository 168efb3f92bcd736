"""The training set of a built-in world's reader: what `phrases.toml` adds to the training phrases.

Templates are filled in, frames of `mavic/language/data/acts.toml` are filled with the world's acts, and development
sentences are added. Held-out and blind sentences are left out, and so is every sentence that contains one of the
paper's own test phrases.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mavic.instruct.spec import InstructionFile
from mavic.language.reader.data import ACTS, FRAMES, training_set
from mavic.language.reader.phrase_file import (
    END,
    NONE,
    Example,
    PhraseFile,
    PhraseFileError,
    check_name,
    held_out_examples,
)
from mavic.language.text import fold

TEMPLATE_CATEGORIES = ("contrasts", "spoken", "negatives", "impossible")
FORMS = 4  # of a verb: do, doing, did, done
DRAWS_OF_A_KIND = 3  # how often one template sentence is filled, for each key
DRAWS_OF_NONE = 8
ACTS_OF_A_FRAME = 3  # how many acts fill each frame
ACTS_OF_A_NEGATION = 8  # which differ by a word or two and mean the opposite
TWIN_SHARE = 0.7  # of the frames with two things name the two that are most alike
SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, kw_only=True)
class _Act:
    """Something that can be done in a world, and the kinds that command and forbid it."""

    forms: tuple[tuple[str, str, str, str], ...]
    """Verbs for it, each as: do, doing, did, done."""
    names: tuple[str, ...] = ()
    """Names of the thing that it is done with."""
    command: str = ""
    prohibition: str = ""
    """A kind, or "end" where forbidding it is to end it."""


@dataclass(frozen=True, kw_only=True)
class _Templates:
    """A block of templates with the words for their slots."""

    place: str
    """The file, the block's number and names, for error messages."""
    templates: tuple[Mapping[str, Any], ...]
    slots: Mapping[str, Any]


def training_set_of(file: InstructionFile, phrases: PhraseFile) -> list[Example]:
    """Return the training set of a world. A mistake in its templates or acts is a `PhraseFileError`.

    Args:
        file: The world's instruction file. The world's id is the seed of all random choices.
        phrases: The world's phrase file.

    Returns:
        The examples in a fixed order.
    """
    blocks, acts = _read_templates(phrases, file.names())
    unseen = held_out_examples(file) + phrases.sentences("blind")
    return training_set(
        {kind.name: kind.train for kind in file.kinds},
        seed=file.world,
        requests=lambda rng: (example for block in blocks for example in _filled(block, rng)),
        acts=lambda rng: _acts(acts, rng),
        written=phrases.sentences("train") + phrases.sentences("development"),
        reserved=[example.text for example in unseen],
        published=[example.text for example in phrases.sentences("published")],
    )


def _read_templates(
    phrases: PhraseFile, kinds: Sequence[str]
) -> tuple[tuple[_Templates, ...], tuple[_Act, ...]]:
    """Return the templates and the acts of a phrase file. A mistake in them is a `PhraseFileError`."""
    raw, path = tomllib.loads(phrases.path.read_text(encoding="utf-8")), phrases.path
    blocks = []
    for number, block in enumerate(raw.get("phrases", ()), start=1):
        if "templates" in block and block["set"] == "train":
            names = ", ".join(block[key] for key in ("set", "author", "category"))
            place = f"{path}: block {number} ({names})"
            check_name(place, "category", block["category"], TEMPLATE_CATEGORIES)
            for template in block["templates"]:
                for key in template.get("keys", [""]):
                    kind = template["kind"].format(key=key)
                    check_name(place, "kind", kind, (NONE, *kinds))
            templates, slots = tuple(block["templates"]), block.get("slots", {})
            blocks.append(_Templates(place=place, templates=templates, slots=slots))
    acts = enumerate(raw.get("acts", ()), start=1)
    return tuple(blocks), tuple(_act(f"{path}: act {n}", act, kinds) for n, act in acts)


def _act(place: str, raw: Mapping[str, Any], kinds: Sequence[str]) -> _Act:
    forms = tuple(map(tuple, raw.get("forms", ())))
    if not forms or any(len(form) != FORMS for form in forms):
        raise PhraseFileError(
            f"{place}: forms must be lists of {FORMS} texts: do, doing, did, done"
        )
    for key in ("command", "prohibition"):
        if key in raw:
            check_name(place, key, raw[key], (END, *kinds))
    return _Act(
        forms=forms,
        names=tuple(raw.get("names", ())),
        command=raw.get("command", ""),
        prohibition=raw.get("prohibition", ""),
    )


def _filled(block: _Templates, rng: random.Random) -> Iterator[Example]:
    """Return the templates of a block, each filled several times. The first filling has no opening and no closing."""
    openings, closings = FRAMES["openings"]["texts"], FRAMES["closings"]["texts"]
    for template in block.templates:
        for key in template.get("keys", [""]):
            kind = template["kind"].format(key=key)
            draws = template.get("draws", DRAWS_OF_NONE if kind == NONE else DRAWS_OF_A_KIND)
            for sentence, choices in _sentences(template):
                for draw in range(draws):
                    text = sentence.replace("{x}", rng.choice(choices))
                    text = _fill_slots(text, block, key, rng)
                    if draw:
                        text = rng.choice(openings) + text + rng.choice(closings)
                    yield Example(text=text, kind=kind, group=sentence)


def _sentences(template: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the sentences of a template, each with the choices for its {x}."""
    if "frame" in template:
        return [(sentence, template["texts"]) for sentence in FRAMES["frames"][template["frame"]]]
    return [(text, [""]) for text in template["texts"]]


def _fill_slots(text: str, block: _Templates, key: str, rng: random.Random) -> str:
    def word(match: re.Match[str]) -> str:
        if match[1] not in block.slots:
            raise PhraseFileError(f"{block.place}: no slot {match[1]!r} for {text!r}")
        choices = block.slots[match[1]]
        return rng.choice(choices[key] if isinstance(choices, dict) else choices)

    while SLOT.search(text):  # the words of a slot may have slots themselves
        text = SLOT.sub(word, text)
    return text


def _acts(done: Sequence[_Act], rng: random.Random) -> Iterator[Example]:
    """Return the frames filled with acts of a world.

    Two frames may make one sentence of different acts ("wait, don't dig"). What the first asks for counts.
    """
    asked: dict[str, str] = {}
    for frame in ACTS["frames"]:
        needs = frame.get("needs", "").split()
        able = [act for act in done if _fits(act, needs, done)]
        many = ACTS_OF_A_NEGATION if frame["category"] == "negation" else ACTS_OF_A_FRAME
        for text in frame["texts"] if able else ():
            for act in rng.sample(able, min(len(able), frame.get("draws", many))):
                group = _with_words(text, ACTS["slots"], rng)
                filled = group.format(**_words_for(act, needs, done, rng))
                kinds = {"command": act.command, "prohibition": act.prohibition}
                kind = kinds.get(frame["kind"], frame["kind"]) or NONE
                if asked.setdefault(fold(filled), kind) == kind:
                    yield Example(text=filled, kind=kind, group=group, category=frame["category"])


def _with_words(text: str, slots: Mapping[str, list[str]], rng: random.Random) -> str:
    """Return a frame with its slots filled; the places of an act stay."""
    filled = SLOT.sub(lambda m: rng.choice(slots[m[1]]) if m[1] in slots else m[0], text)
    return " ".join(filled.split())


def _words_for(
    act: _Act, needs: Collection[str], done: Sequence[_Act], rng: random.Random
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


def _forms(act: _Act, needs: Collection[str]) -> list[tuple[str, str, str, str]]:
    """Return the verbs of an act; only those of one word if a frame needs it."""
    return [form for form in act.forms if "word" not in needs or " " not in form[0]]


def _others(act: _Act, done: Sequence[_Act]) -> list[_Act]:
    """Return the acts that can be commanded and are not this one."""
    return [other for other in done if other.command and other is not act]


def _with_another_thing(act: _Act, done: Sequence[_Act]) -> list[_Act]:
    """Return the acts with another thing that can be asked for like this one's."""
    alike = [other for other in done if bool(other.command) == bool(act.command)]
    return [other for other in alike if other.names and other is not act]


def _most_alike(act: _Act, done: Sequence[_Act], rng: random.Random) -> _Act:
    """Return an act with another thing, most often the thing whose name is most alike: left and right."""
    others = _with_another_thing(act, done)
    shared = [len({*act.names[0].split()} & {*other.names[0].split()}) for other in others]
    nearest = [o for o, n in zip(others, shared, strict=True) if n == max(shared)]
    return rng.choice(nearest if rng.random() < TWIN_SHARE else others)


def _fits(act: _Act, needs: Collection[str], done: Sequence[_Act]) -> bool:
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
