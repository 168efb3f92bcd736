"""Sentences for instruction files of other worlds: heard as meant, and no release is taken for a prohibition."""

from __future__ import annotations

import dataclasses
import random
import tomllib
from pathlib import Path

import built_in
import numpy as np
import pytest

from mavic.envs import api
from mavic.instruct.spec import InstructionFile
from mavic.language.lexicon import Lexicon
from mavic.language.reader import acts, own_file, own_head
from mavic.language.reader.model import Head
from mavic.language.reader.own_head import DO, DOES, DONT, STOP, OwnHead, Topics
from mavic.language.reader.phrase_file import END, NONE
from mavic.language.reader.read import understand_all
from mavic.language.reader.spelling import correct
from mavic.language.text import fold
from mavic.language.vectors import shipped_path, states
from tools import act_data

FILES = Path(__file__).parents[1] / "files"
NAMES = sorted(path.stem for path in FILES.glob("*.toml"))
# The share that must be heard as meant. Of the held-out sentences 79 % were: their hand goes far from the phrases.
RIGHT = {"development": 0.85, "held_out": 0.75, "blind": 0.85}
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
@pytest.mark.parametrize("which", ["development", "held_out", "blind"])
def test_sentences_name_kinds_of_their_file(which, name):
    kinds = {NONE, END, *InstructionFile.read(FILES / f"{name}.toml").names()}
    found = sentences_of(which, name)
    assert set(found.values()) <= kinds
    assert which == "blind" or len(found) >= 12


@pytest.mark.slow
@pytest.mark.parametrize("phrases", [12, 3])
@pytest.mark.parametrize("which", ["development", "held_out", "blind"])
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
    assert phrases == 3 or right >= RIGHT[which]


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


def test_the_training_set_holds_siblings_and_things_of_other_places():
    made = {e.text: e.kind for e in own_file.training_set_of(PHRASES, "rescue")}
    assert len(made) < 2500
    siblings = [t for t in made if "room c" in t or "room d" in t]
    assert siblings and all(made[text] == NONE for text in siblings)
    assert made["search room b"] == "search-room-b" and END not in made.values()
    swapped = list(own_file._siblings(PHRASES, random.Random(0)))
    assert {e.kind for e in swapped if "middle corridor" in e.text} == {NONE}


DONE = {
    "you can use aisle 4 again": END,
    "the green gate is open again": END,
    "you don't have to avoid the cellar any more": END,
    "never mind": END,
    "don't use the green gate": DONT,
    "the green gate is off limits": DONT,
    "stop digging": STOP,
    "thanks for staying out of the cellar": NONE,
    "yesterday you searched the cellar": NONE,
    "search the cellar tomorrow": NONE,
    "why is the green gate blocked?": NONE,
    "she told me to search the cellar": NONE,
    "you dug already": NONE,
    "you have dug": NONE,
    "robot 2 kept off the green gate": NONE,
    "nobody used the green gate": NONE,
    "they searched the cellar": NONE,
    "the cellar has been searched": NONE,
    "the cellar is searched": NONE,
    "could you search the cellar": DO,
    "search the cellar now": DO,
}


def test_the_shipped_head_tells_what_a_sentence_does_in_any_world():
    head = Head.load(shipped_path("any", "does"))
    texts = [correct(text, head.words) for text in DONE]
    found = head.probabilities(texts, states(texts)).argmax(1)
    assert head.names == DOES
    assert {text: head.names[i] for text, i in zip(DONE, found, strict=True)} == DONE


@pytest.mark.long
def test_what_sentences_do_is_learned_without_blind_sentences_and_without_their_things():
    examples = act_data.training_set()
    made, words = {fold(example.text) for example in examples}, act_data.known_words(examples)
    assert {example.kind for example in examples} == set(DOES)
    for world in api.BUILT_IN:
        blind = built_in.phrases(world).sentences("blind")
        assert not made & {fold(example.text) for example in blind}
    assert {"don't", "again", "stop"} <= set(words) and not {"windows", "bicycles"} & set(words)


def certain(does):
    return np.eye(len(DOES))[[DOES.index(does)]]


@pytest.mark.parametrize(
    ("does", "about", "meant"),
    [
        (DO, "fetch", "fetch"),
        (DONT, "avoid", "avoid"),
        (STOP, "avoid", "avoid"),
        (STOP, "fetch", END),
        (END, "avoid", END),
        (END, NONE, END),
        (NONE, "avoid", NONE),
        (DO, NONE, NONE),
        (DO, "avoid", NONE),
        (DONT, "fetch", NONE),
    ],
)
def test_what_a_sentence_does_and_what_it_is_about_give_what_is_meant(does, about, meant):
    names, manner = (NONE, "fetch", "avoid"), np.array([[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0]])
    topics = np.eye(3)[[names.index(about)]]
    found = own_head.combined(certain(does), topics, manner)
    assert found.sum() == pytest.approx(1) and (*names, END)[found[0].argmax()] == meant


def test_one_manner_does_not_exclude_the_other():
    """A kind may be asked for both ways: "keep the gate shut", "don't open the gate"."""
    topics, manner = np.eye(2)[[1]], np.array([[0, 0, 0, 0], [0.6, 1, 1, 0]])
    for does in (DO, DONT):
        assert own_head.combined(certain(does), topics, manner).argmax() == 1


def test_stop_may_be_a_command():
    topics, manner = np.eye(2)[[1]], np.array([[0, 0, 0, 0], [1, 0.2, 0.9, 0.3]])
    assert own_head.combined(certain(STOP), topics, manner).argmax() == 1
    assert own_head.combined(certain(END), topics, manner).argmax() == 2


def test_numbers_in_words_are_digits_where_the_file_numbers_things():
    numbered = own_head.numbered_in(["stay off bed 1", "Ward 5 is closed", "take one of them"])
    assert numbered == ("bed", "ward")
    texts = ["the second bed", "bed number two", "Bed two", "bed 2", "one bed and two chairs"]
    assert [own_head.with_digits(t, numbered) for t in texts] == ["bed 2"] * 4 + texts[-1:]
    assert own_head.with_digits("the second bed", ()) == "the second bed"


def test_a_head_is_read_back_as_it_was_written(tmp_path):
    topics = Topics(
        names=(NONE, "fetch"), words={"fetch": 0}, numbered=("bed",), weights=np.eye(386, 2) * 3
    )
    does = Head.load(shipped_path("any", "does"))
    head = OwnHead(does=does, topics=topics, manner=np.array([[0, 0, 0, 0], [1, 0.5, 0.5, 0]]))
    head.save(tmp_path / "head.npz")
    again = own_head.load(tmp_path / "head.npz")
    texts = ["fetch it", "don't fetch the second bed"]
    one, two = (h.probabilities(texts, states(texts)) for h in (head, again))
    np.testing.assert_allclose(one, two, atol=1e-2)
    assert (again.names, again.words) == (head.names, head.words)
    shipped = own_head.load(shipped_path("warehouse", "head"))
    assert isinstance(shipped, Head)


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
