"""The training set of the head that tells what a sentence does with an act, in any world.

Frames are filled with acts of no world in particular, so that only their form can tell what they do. To these come
sentences that people wrote for the built-in worlds, and everyday requests. Blind sentences are left out.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mavic.envs import api
from mavic.instruct.spec import InstructionFile
from mavic.language.reader import spelling
from mavic.language.reader.acts import ACTS, Act, filled, forms_of, is_request
from mavic.language.reader.data import FRAMES
from mavic.language.reader.own_file import ASK, FORBID, THINGS
from mavic.language.reader.own_head import DO, DONT, STOP
from mavic.language.reader.phrase_file import ACT_CATEGORIES, END, NONE, Example, PhraseFile
from mavic.language.text import fold
from tools.reader_data import training_set_of

FOLDER = Path(__file__).parent
WORDS = tomllib.loads((FOLDER / "act_words.toml").read_text(encoding="utf-8"))
FURTHER = tomllib.loads((FOLDER / "act_frames.toml").read_text(encoding="utf-8"))["frames"]
# Two of the built-in worlds: what Warehouse forbids, people there ask for in positive words.
PEOPLE = ("box_pushing", "overcooked")
ACTS_MADE = 600
DRAWS = {
    STOP: 8,
    NONE: 2,
    "postponement": 4,
}  # how many acts fill a frame; others are filled with one
FILLED = 4  # how many acts fill a further frame
EVERYDAY = 500
TEMPLATES = 0.6  # share of the templates of the built-in worlds, one sentence of each
TAILS = 0.3  # share of the requests that say how or until when
REASONS = 0.3  # share of the sentences that ask for something and also say why
ASIDES = 0.35  # share of the sentences that also have an opening or a closing
# What a sentence that forbids begins to ask with "stop", which also ends a command.
STOPS = re.compile(
    r"\b(stop|quit|cease|halt|leave off|knock (?:it )?off|give up|cut (?:it )?out|desist|no more|over)\b"
)
NO_STOP = re.compile(r"\b(not|never|nobody|no one|neither|avoiding|\w+n't)\b|\{(x|y|dont)\}")
QUESTIONS = re.compile(
    r"(is|are|was|were|does|did|do|what|what's|who|when|where|why|how|how's|which|will|has)\b"
)
REMARKS = re.compile(r"(i|i'm|we|my|she|he|it|thank|thanks|nothing|can)\b|\{x\}")
REFUSALS = re.compile(r"(don't|avoid|stop|never|skip)\b")
LEAST = (4, 8)  # frames that must contain a word, or a pair of words, for it to be known


def training_set(seed: int = 0) -> list[Example]:
    """Return distinct examples, whose kinds are what they do.

    Args:
        seed: Of all random choices.
    """
    rng = random.Random(seed)
    acts = _acts(rng)
    made = [*_frames(acts, rng), *_further(acts, rng), *_asked(acts, rng), *_everyday(acts, rng)]
    blind: set[str] = set()
    for world in api.BUILT_IN:
        record = api.world(world)
        assert record.instructions is not None and record.phrases is not None
        file = InstructionFile.read(record.instructions)
        phrases = PhraseFile.read(record.phrases, file.names())
        blind |= {fold(example.text) for example in phrases.sentences("blind")}
        made += _people(file, phrases, rng)
    by_text: dict[str, Example] = {}
    for example in made:
        by_text.setdefault(fold(example.text), example)
    plain = [example for text, example in by_text.items() if text not in blind]
    for example in _typed(plain, rng):
        by_text.setdefault(fold(example.text), example)
    return [example for text, example in by_text.items() if text not in blind]


def known_words(examples: list[Example]) -> dict[str, int]:
    """Return the words and pairs of words of enough frames, numbered from the most frequent one.

    Words that only fill frames are not known, so that the head cannot go by them.

    Args:
        examples: The training set.
    """
    groups = sorted({example.group for example in examples})
    return spelling.known_words((re.sub(r"\{\w+\}", " § ", group) for group in groups), LEAST)


def _acts(rng: random.Random) -> list[Act]:
    """Return acts of no world in particular. All can be commanded and forbidden."""
    return [_act(rng) for _ in range(ACTS_MADE)]


def _act(rng: random.Random) -> Act:
    names: tuple[str, ...]

    def one(name: str) -> str:
        return str(rng.choice(WORDS[name]))

    colour = one("adjectives") if rng.random() < 0.3 else ""
    thing = " ".join(f"{one('articles')} {colour} {rng.choice(THINGS)}".split())
    place = rng.choice(
        (
            f"{one('places')} {one('numbers')}",
            f"the {one('adjectives')} {one('places')}",
            f"the {one('places')}",
        )
    )
    sort = rng.random()
    if sort < 0.34:
        do, names = f"{one('verbs')} {thing}", (thing,)
    elif sort < 0.72:
        do, names = f"{one('ways')} {place}", (place,)
    elif sort < 0.93:
        phrase = one("phrases")
        do, names = phrase.format(x=thing, y=place), (thing if "{x}" in phrase else place,)
    else:
        do, names = one("alone"), ()
    return Act(forms=(forms_of(do),), names=names, command=DO, prohibition=DONT)


def _frames(acts: list[Act], rng: random.Random) -> Iterator[Example]:
    """Return the frames of `acts.toml`, filled."""
    frames = []
    for frame in ACTS["frames"]:
        needs = frame.get("needs", "").split()
        does = {"command": DO, "prohibition": DONT}.get(frame["kind"], frame["kind"])
        if does == END and "free" in needs and frame["category"] == "negation":
            does = STOP
        parts = {does: frame["texts"]}
        if does == DONT:
            stops = [t for t in frame["texts"] if STOPS.search(t) and not NO_STOP.search(t)]
            parts = {STOP: stops, DONT: [t for t in frame["texts"] if t not in stops]}
        needs = [need for need in needs if need not in ("free", "forbidden")]
        for kind, texts in parts.items():
            draws = DRAWS.get(frame["category"], DRAWS.get(kind, 1))
            frames.append(
                {**frame, "kind": kind, "needs": " ".join(needs), "texts": texts, "draws": draws}
            )
    yield from filled(acts, rng, frames)
    for text in ACTS["ends"]["texts"]:
        yield Example(text=text, kind=END, group=text)


def _further(acts: list[Act], rng: random.Random) -> Iterator[Example]:
    """Return the further frames, filled."""
    for frame in FURTHER:
        for text in frame["texts"]:
            for _ in range(FILLED if "{" in text else 1):
                act = rng.choice([act for act in acts if act.names])
                words = dict(zip(("do", "doing", "did", "done"), act.forms[0], strict=True))
                thing = act.names[0]
                if "{verb" in text:
                    verb, thing = rng.choice(WORDS["verbs"]), f"the {rng.choice(THINGS)}"
                    forms = forms_of(verb)
                    words |= {"verb": verb, "verbing": forms[1], "verbed": forms[3]}
                if "{made" in text:
                    verb = rng.choice([v for v in WORDS["verbs"] if v not in WORDS["states"]])
                    words["made"], thing = forms_of(verb)[3], f"the {rng.choice(THINGS)}"
                if "{who" in text:
                    words["who"] = rng.choice(WORDS["who"])
                if frame["does"] == DO and rng.random() < TAILS:
                    words["do"] += f" {rng.choice(WORDS['tails'])}"
                yield Example(text=text.format(x=thing, **words), kind=frame["does"], group=text)


def _asked(acts: list[Act], rng: random.Random) -> Iterator[Example]:
    """Return plain requests and prohibitions."""
    sorts = [
        (ASK, DO, 6),
        (("{do}",), DO, 300),
        (FORBID, DONT, 6),
        (("don't {do}", "do not {do}"), DONT, 50),
    ]
    sorts += [
        (FRAMES["frames"][name], kind, 5)
        for name, kind in (("avoid", DONT), ("go", DO), ("get", DO))
    ]
    for frames, kind, count in sorts:
        for frame in frames:
            for act in rng.sample([act for act in acts if act.names], count):
                words = dict(zip(("do", "doing", "did", "done"), act.forms[0], strict=True))
                yield Example(text=frame.format(x=act.names[0], **words), kind=kind, group=frame)


def _everyday(acts: list[Act], rng: random.Random) -> Iterator[Example]:
    everyday = FRAMES["everyday"]
    for text in everyday["sayings"]:
        if does := _does(text):
            yield Example(text=text, kind=does, group=text)
    for _ in range(EVERYDAY):
        verb, thing = rng.choice(everyday["verbs"]), rng.choice(everyday["objects"])
        yield Example(text=f"{verb} {thing}", kind=DO, group=verb)
    for frame in FRAMES["frames"]["misuse"]:
        if does := _does(frame):
            for act in rng.sample([act for act in acts if act.names], 3):
                yield Example(text=frame.format(x=act.names[0]), kind=does, group=frame)


def _does(text: str) -> str:
    """Return what an everyday sentence does, from its first words; empty if they do not tell."""
    folded = fold(text)
    if text.startswith(("can you", "could you", "would you", "please")):
        return DO
    if REFUSALS.match(folded):
        return DONT
    if QUESTIONS.match(folded) or REMARKS.match(text):
        return NONE
    return DO if " " in folded and is_request(folded) else ""


def _people(file: InstructionFile, phrases: PhraseFile, rng: random.Random) -> Iterator[Example]:
    """Return what people wrote for a built-in world."""
    does = {END: END}
    if file.world in PEOPLE:
        does |= {kind.name: DONT if kind.forbid is not None else DO for kind in file.kinds}
        for kind in file.kinds:
            for text in kind.train:
                yield Example(text=text, kind=does[kind.name], group=text)
        seen = set[str]()
        for example in training_set_of(file, phrases):
            new = not (example.copy or example.author or example.category or example.group in seen)
            if new and example.kind in does and rng.random() < TEMPLATES:
                yield Example(text=example.text, kind=does[example.kind], group=example.group)
            seen.add(example.group)
    for example in phrases.sentences("train") + phrases.sentences("development"):
        what = does.get(example.kind, "")
        about_acts = example.category in ACT_CATEGORIES and example.category != "negation"
        if example.kind == NONE:
            near = example.category in ("infeasible", "near")
            what = _does(example.text) if near else NONE * about_acts
        if what and not example.also:
            yield Example(text=example.text, kind=what, group=example.text)


def _typed(examples: list[Example], rng: random.Random) -> Iterator[Example]:
    """Return copies as people type and explain them."""
    openings, closings = (
        [text for text in ACTS["asides"][part] if text] for part in ("openings", "closings")
    )
    for example in examples:
        if rng.random() < ASIDES:
            where = rng.random()
            before = rng.choice(openings) if where < 0.7 else ""
            after = rng.choice(closings) if where > 0.4 else ""
            yield replace(example, text=before + example.text + after)
        if example.kind != NONE and rng.random() < REASONS:
            reason, join = (rng.choice(FRAMES["reasons"][part]) for part in ("texts", "joins"))
            text = join.replace("{reason}", reason).replace("{x}", example.text)
            yield replace(example, text=text)
