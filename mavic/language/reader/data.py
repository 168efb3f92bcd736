"""The reader's training set: training phrases, filled templates, everyday requests, acts, development sentences.

Most sentences also appear as people type them: with an opening, a closing, a reason or a typing error. All choices are
drawn with a fixed seed, so a world's training set is always the same. Held-out and blind sentences are never in it, and
no sentence that contains one of the paper's own test phrases.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from mavic.instruct.spec import InstructionFile
from mavic.language import shipped
from mavic.language.reader.phrase_file import (
    ACT_CATEGORIES,
    END,
    NONE,
    Act,
    Block,
    Example,
    PhraseFile,
    PhraseFileError,
    held_out_examples,
    read_toml,
)
from mavic.language.reader.spelling import add_typo, correct, known_words
from mavic.language.text import fold

DRAWS_OF_A_KIND = 3  # how often one template sentence is filled, for each key
DRAWS_OF_NONE = 8
EVERYDAY_REQUESTS = 700  # pairs of an everyday verb and object
CASUAL_COPIES = 3  # of a phrase that is no filled template: with an opening, a closing or both
REASON_SHARE = 0.15  # of the sentences are also trained on with a reason
ACTS_OF_A_FRAME = 3  # how many acts fill each frame
ACTS_OF_A_NEGATION = 8  # which differ by a word or two and mean the opposite
TWIN_SHARE = 0.7  # of the frames with two things name the two that are most alike
TYPO_SHARE = 0.4  # of the sentences are also trained on with a typing error
SLOT = re.compile(r"\{(\w+)\}")
WORDS = re.compile(r"[a-z0-9']+")

Frames = dict[str, Any]


def training_set_of(file: InstructionFile, phrases: PhraseFile) -> list[Example]:
    """Return the training set of a world with a phrase file."""
    return training_set(
        {kind.name: kind.train for kind in file.kinds},
        seed=file.world,
        phrases=phrases,
        held_out=[example.text for example in held_out_examples(file)],
    )


def training_set(
    train: Mapping[str, Sequence[str]],
    *,
    seed: str,
    phrases: PhraseFile | None = None,
    held_out: Collection[str] = (),
) -> list[Example]:
    """Return distinct examples, each with a corrected text; none equals a held-out or a blind sentence.

    `train` lists the training phrases by kind; `phrases` adds templates and development sentences.
    """
    frames = read_toml(shipped.FOLDER / "frames.toml")
    acts = read_toml(shipped.FOLDER / "acts.toml")
    rng = random.Random(seed)
    requests = [
        Example(text=text, kind=kind, group=text) for kind, texts in train.items() for text in texts
    ]
    for block in phrases.blocks if phrases else ():
        requests += _filled(block, frames, rng)
    requests += _everyday(frames, rng)
    own = random.Random(f"{seed} acts")  # so that a new sentence here changes no request
    about = list(_acts(acts, phrases.acts if phrases else (), own))
    written = phrases.sentences("train") + phrases.sentences("development") if phrases else []
    requests += [e for e in written if e.category not in ACT_CATEGORIES]
    about += [e for e in written if e.category in ACT_CATEGORIES]
    blind = [example.text for example in phrases.sentences("blind")] if phrases else []
    reserved = {fold(text) for text in (*held_out, *blind)}
    unseen = [fold(e.text) for e in phrases.sentences("published")] if phrases else []
    examples = [e for e in _distinct(requests + about, reserved) if not _contains(e.text, unseen)]
    typed = []
    for is_about, around, drawn in (
        (False, {part: frames[part]["texts"] for part in ("openings", "closings")}, rng),
        (True, acts["asides"], own),
    ):
        part = [e for e in examples if (e.category in ACT_CATEGORIES) == is_about]
        typed += _as_typed(part, around, frames["reasons"], drawn)
    known = known_words([example.text for example in examples])
    reserved |= {correct(text, known) for text in reserved}
    by_text: dict[str, Example] = {}
    for example in examples + typed:
        text = correct(example.text, known)
        if text not in reserved:  # of equal sentences the first is kept
            by_text.setdefault(text, dataclasses.replace(example, text=text))
    return list(by_text.values())


def _filled(block: Block, frames: Frames, rng: random.Random) -> Iterator[Example]:
    """Return the templates of a block, each filled several times. The first filling has no opening and no closing."""
    openings, closings = frames["openings"]["texts"], frames["closings"]["texts"]
    for template in block.templates:
        for key in template.get("keys", [""]):
            kind = template["kind"].format(key=key)
            draws = template.get("draws", DRAWS_OF_NONE if kind == NONE else DRAWS_OF_A_KIND)
            for sentence, choices in _sentences(template, frames):
                for draw in range(draws):
                    text = sentence.replace("{x}", rng.choice(choices))
                    text = _fill_slots(text, block, key, rng)
                    if draw:
                        text = rng.choice(openings) + text + rng.choice(closings)
                    yield Example(text=text, kind=kind, group=sentence)


def _sentences(template: Mapping[str, Any], frames: Frames) -> list[tuple[str, list[str]]]:
    """Return the sentences of a template, each with the choices for its {x}."""
    if "frame" in template:
        return [(sentence, template["texts"]) for sentence in frames["frames"][template["frame"]]]
    return [(text, [""]) for text in template["texts"]]


def _fill_slots(text: str, block: Block, key: str, rng: random.Random) -> str:
    def word(match: re.Match[str]) -> str:
        if match[1] not in block.slots:
            raise PhraseFileError(f"{block.place}: no slot {match[1]!r} for {text!r}")
        choices = block.slots[match[1]]
        return rng.choice(choices[key] if isinstance(choices, dict) else choices)

    while SLOT.search(text):  # the words of a slot may have slots themselves
        text = SLOT.sub(word, text)
    return text


def _everyday(frames: Frames, rng: random.Random) -> Iterator[Example]:
    """Return requests that no world's team can be asked."""
    everyday = frames["everyday"]
    for text in everyday["sayings"]:
        yield Example(text=text, kind=NONE, group=text)
    for _ in range(EVERYDAY_REQUESTS):
        verb, thing = rng.choice(everyday["verbs"]), rng.choice(everyday["objects"])
        opening, closing = (rng.choice(frames[k]["texts"]) for k in ("openings", "closings"))
        yield Example(text=f"{opening}{verb} {thing}{closing}", kind=NONE, group=verb)


def _acts(acts: Frames, done: Sequence[Act], rng: random.Random) -> Iterator[Example]:
    """Return the ends that all worlds share, and the frames filled with acts of a world.

    Two frames may make one sentence of different acts ("wait, don't dig"). What the first asks for counts.
    """
    asked: dict[str, str] = {}
    for text in acts["ends"]["texts"]:
        yield Example(text=text, kind=END, group=text, category="permission")
    for frame in acts["frames"]:
        needs = frame.get("needs", "").split()
        able = [act for act in done if _fits(act, needs, done)]
        many = ACTS_OF_A_NEGATION if frame["category"] == "negation" else ACTS_OF_A_FRAME
        for text in frame["texts"] if able else ():
            for act in rng.sample(able, min(len(able), frame.get("draws", many))):
                group = _with_words(text, acts["slots"], rng)
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


def _forms(act: Act, needs: Collection[str]) -> list[tuple[str, str, str, str]]:
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


def _contains(text: str, phrases: Collection[str]) -> bool:
    """Return whether a text has one of the phrases in it, word for word."""
    words = f" {' '.join(WORDS.findall(fold(text)))} "
    return any(f" {phrase} " in words for phrase in phrases)


def _as_typed(
    examples: list[Example], around: Frames, reasons: Frames, rng: random.Random
) -> list[Example]:
    """Return copies of sentences as people type and explain them; `around` has openings and closings."""
    openings, closings = (
        [text for text in around[part] if text] for part in ("openings", "closings")
    )
    copies = []
    for example in examples:
        for _ in range(CASUAL_COPIES if example.group == example.text else 0):
            where = rng.random()
            opening = rng.choice(openings) if where < 0.7 else ""
            closing = rng.choice(closings) if where > 0.4 else ""
            copies.append(_copy(example, opening + example.text + closing))
    for example in examples:
        if rng.random() < REASON_SHARE:
            reason, join = (rng.choice(reasons[part]) for part in ("texts", "joins"))
            text = join.replace("{reason}", reason).replace("{x}", example.text)
            copies.append(_copy(example, text))
    mistyped = [example for example in examples + copies if rng.random() < TYPO_SHARE]
    return copies + [_copy(example, add_typo(example.text, rng)) for example in mistyped]


def _copy(example: Example, text: str) -> Example:
    return dataclasses.replace(example, text=text, copy=True)


def _distinct(examples: Iterable[Example], reserved: Collection[str]) -> list[Example]:
    """Return each sentence once and none that is reserved. Kinds go before "end", and "end" goes before "none"."""
    by_text: dict[str, Example] = {}
    for example in sorted(examples, key=lambda e: (e.kind == NONE) - (e.kind not in (NONE, END))):
        text = fold(example.text)
        if text and text not in reserved:
            first = by_text.setdefault(text, example)
            if example.kind not in (NONE, END, first.kind):
                raise PhraseFileError(f"{text!r} stands for {first.kind} and for {example.kind}")
    return list(by_text.values())
