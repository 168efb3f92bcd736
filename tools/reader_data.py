"""The training set of a built-in world's reader: what `phrases.toml` adds to the training phrases.

Templates are filled in, frames of `mavic/language/data/acts.toml` are filled with the world's acts, and development
sentences are added. Held-out and blind sentences are left out, and so is every sentence that contains one of the
paper's own test phrases.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mavic.instruct.spec import InstructionFile
from mavic.language.reader.acts import SLOT, Act, filled
from mavic.language.reader.data import FRAMES, training_set
from mavic.language.reader.phrase_file import (
    END,
    NONE,
    Example,
    PhraseFile,
    PhraseFileError,
    check_name,
    held_out_examples,
)

TEMPLATE_CATEGORIES = ("contrasts", "spoken", "negatives", "impossible")
FORMS = 4  # of a verb: do, doing, did, done
DRAWS_OF_A_KIND = 3  # how often one template sentence is filled, for each key
DRAWS_OF_NONE = 8


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
        acts=lambda rng: filled(acts, rng),
        written=phrases.sentences("train") + phrases.sentences("development"),
        reserved=[example.text for example in unseen],
        published=[example.text for example in phrases.sentences("published")],
    )


def _read_templates(
    phrases: PhraseFile, kinds: Sequence[str]
) -> tuple[tuple[_Templates, ...], tuple[Act, ...]]:
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


def _act(place: str, raw: Mapping[str, Any], kinds: Sequence[str]) -> Act:
    forms = tuple(map(tuple, raw.get("forms", ())))
    if not forms or any(len(form) != FORMS for form in forms):
        raise PhraseFileError(
            f"{place}: forms must be lists of {FORMS} texts: do, doing, did, done"
        )
    for key in ("command", "prohibition"):
        if key in raw:
            check_name(place, key, raw[key], (END, *kinds))
    return Act(
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
