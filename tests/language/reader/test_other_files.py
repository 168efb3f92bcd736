"""Sentences for instruction files of other worlds: heard as meant, and no release is taken for a prohibition."""

from __future__ import annotations

import dataclasses
import random
import tomllib
from pathlib import Path

import pytest

from mavic.instruct.spec import InstructionFile
from mavic.language.lexicon import Lexicon
from mavic.language.reader import acts, guard, own_file
from mavic.language.reader.phrase_file import END, NONE
from mavic.language.reader.read import understand_all

FILES = Path(__file__).parents[1] / "files"
NAMES = sorted(path.stem for path in FILES.glob("*.toml"))
PHRASES = {kind.name: kind.train for kind in InstructionFile.read(FILES / "rescue.toml").kinds}


def heard(name: str, sentences: dict[str, str], phrases: int = 12) -> list[tuple[str, str]]:
    """What is meant and what a team acts on, for each sentence."""
    file = InstructionFile.read(FILES / f"{name}.toml")
    kinds = tuple(dataclasses.replace(kind, train=kind.train[:phrases]) for kind in file.kinds)
    file = dataclasses.replace(file, world=f"{file.world}-{phrases}", kinds=kinds)
    answers = understand_all(Lexicon.make(file), list(sentences))
    return [
        (meant, answer.obeyed) for meant, answer in zip(sentences.values(), answers, strict=True)
    ]


def sentences_of(which: str, name: str) -> dict[str, str]:
    path = FILES / which / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))["sentences"] if path.is_file() else {}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("which", ["development", "blind"])
def test_sentences_name_kinds_of_their_file(which, name):
    kinds = {NONE, END, *InstructionFile.read(FILES / f"{name}.toml").names()}
    found = sentences_of(which, name)
    assert set(found.values()) <= kinds
    assert which == "blind" or len(found) >= 20


@pytest.mark.slow
@pytest.mark.parametrize("phrases", [12, 3])
@pytest.mark.parametrize("which", ["development", "blind"])
def test_other_files_are_heard_as_meant(which, phrases):
    found = [pair for name in NAMES for pair in heard(name, sentences_of(which, name), phrases)]
    if not found:
        pytest.skip(f"no {which} sentences")
    forbids = {
        kind.name
        for name in NAMES
        for kind in InstructionFile.read(FILES / f"{name}.toml").kinds
        if kind.forbid is not None
    }
    right = sum(meant == obeyed for meant, obeyed in found) / len(found)
    wrongly = sum(obeyed not in (NONE, meant) for meant, obeyed in found) / len(found)
    releases = sum(meant == END and obeyed in forbids for meant, obeyed in found)
    assert releases == 0
    assert wrongly <= 0.02
    assert phrases == 3 or right >= 0.85


def test_acts_are_found_in_phrases():
    found = {act.command or act.prohibition: act for act in acts.from_phrases(PHRASES)}
    left = found["avoid-left-corridor"]
    assert left.prohibition and left.names[:2] == ("the left corridor", "the left hallway")
    assert ("use the left corridor", "using the left corridor") in [form[:2] for form in left.forms]
    room = found["search-room-a"]
    assert room.command and "room a" in room.names
    assert acts.forms_of("search room a")[1:] == ("searching room a", *["searched room a"] * 2)
    assert acts.forms_of("go on") == ("go on", "going on", "went on", "gone on")
    assert [acts.forms_of(v)[2] for v in ("stop", "carry", "move")] == [
        "stopped",
        "carried",
        "moved",
    ]


def test_the_training_set_holds_releases_siblings_and_remarks_of_the_files_own_words():
    made = {e.text: e.kind for e in own_file.training_set_of(PHRASES, "rescue")}
    assert len(made) < 4500
    assert any("left corridor" in text and kind == END for text, kind in made.items())
    siblings = [t for t, kind in made.items() if (kind == NONE and "room c" in t) or "room d" in t]
    assert siblings and not any(made[text] == "search-room-a" for text in siblings)
    assert any(t.startswith("thank") and "room" in t and k == NONE for t, k in made.items())
    swapped = list(own_file._siblings(PHRASES, random.Random(0)))
    assert {e.kind for e in swapped if "middle corridor" in e.text} == {NONE}


@pytest.mark.parametrize(
    ("text", "releases", "nothing"),
    [
        ("you can use the left corridor again", True, False),
        ("the left corridor is open again", True, False),
        ("you don't have to avoid the left corridor any more", True, False),
        ("don't use the left corridor", False, False),
        ("you can't use the left corridor", False, False),
        ("the left corridor is not free", False, False),
        ("thanks for staying out of the left corridor", False, True),
        ("yesterday you searched room a", False, True),
        ("search room a tomorrow", False, True),
        ("why is the left corridor blocked?", False, True),
        ("she told me to search room a", False, True),
        ("could you search room a", False, False),
        ("search room a now", False, False),
    ],
)
def test_the_form_of_a_sentence_tells_releases_and_remarks(text, releases, nothing):
    assert guard.plainly_releases(text) is releases
    assert guard.plainly_asks_nothing(text) is nothing


@pytest.mark.long
def test_a_release_is_never_a_prohibition_and_a_sibling_never_the_other():
    asked = {
        "you can use the left corridor again": END,
        "thanks for searching room a": NONE,
        "you searched room a yesterday": NONE,
        "search room c": NONE,
        "don't use the left corridor": "avoid-left-corridor",
        "could you search room a": "search-room-a",
        "please search room b": "search-room-b",
    }
    assert all(meant == obeyed for meant, obeyed in heard("rescue", asked))
