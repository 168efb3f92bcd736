"""The built-in instruction and phrase files hold what is promised of them."""

import collections
import functools
from pathlib import Path

import pytest

from mavic.instruct import spec as instructions
from mavic.language import lexicon
from mavic.language.reader.phrases import (
    DEVELOPMENT,
    NONE,
    TESTS,
    PhraseFileError,
    has,
    read_tests,
    training_set,
)
from mavic.language.reader.ship import examples_of
from mavic.language.text import fold

PAPER = {
    "avoid-right-board": 15,
    "avoid-left-board": 16,
    "stay": 13,
    "avoid-plate-1": 10,
    "avoid-plate-2": 10,
    "avoid-left-oven": 8,
    "avoid-right-oven": 8,
    "partner-delivers": 10,
    "partner-chops": 8,
}
KINDS = {
    "box_pushing": (
        "go-small-boxes go-small-box-0 go-small-box-1 go-big-spot-0 go-big-spot-1 push dont-push "
        "avoid-small-box-0 avoid-small-box-1 avoid-small-boxes stay"
    ),
    "warehouse": "fetch-tool-0-first fetch-tool-1-first fetch-tool-2-first",
    "overcooked": " ".join(PAPER) + " get-tomato get-lettuce get-peas chop deliver move-left",
}
LEAST = {"novel": 110, "infeasible": 40, "near": 60, "instead": 24}


@functools.cache
def trained(world):
    """A world's training set, made once for all tests."""
    return examples_of(world)


def read(world):
    return instructions.read(lexicon.instruction_path(world))


@pytest.mark.parametrize("world", lexicon.WORLDS)
def test_kinds_have_their_names_and_enough_phrases(world):
    file = read(world)
    assert file.names() == tuple(KINDS[world].split())
    assert all(len(kind.train) >= 8 and len(kind.held_out) >= 3 for kind in file.kinds)


def test_all_the_papers_phrases_are_trained_on():
    counts = {kind.name: len(kind.train) for kind in read("overcooked").kinds[:9]}
    assert counts == PAPER and sum(counts.values()) == 98
    assert "use the left knife instead" in read("overcooked").kinds[0].train


def test_rules_follow_whether_another_way_to_the_goal_is_left():
    rules = {kind.name: kind.rule for world in lexicon.WORLDS for kind in read(world).kinds}
    for name, rule in rules.items():
        another_way = name.startswith(("avoid-", "fetch-tool-"))
        assert rule == ("add" if another_way else "replace"), name


def test_small_boxes_are_asked_of_each_robot_its_own():
    kind = read("box_pushing").kinds[0]
    assert kind.allow == {"robot_0": ("GO_SMALL_BOX_0",), "robot_1": ("GO_SMALL_BOX_1",)}


@pytest.mark.parametrize("k", range(3))
def test_a_tool_request_is_resolved_by_the_first_tool_delivered(k):
    kind = read("warehouse").kinds[k]
    others = [j for j in range(3) if j != k]
    assert kind.agents == ("fetch",) and kind.penalty == -25 and kind.credit == 50
    assert kind.forbid == {"fetch": tuple(f"LOOK_FOR_{j}" for j in others)}
    assert kind.resolved_by == {f"delivered-tool-{j}": 1 if j == k else -1 for j in range(3)}
    assert (kind.given_if, kind.effect) == (f"tool-{k}-can-be-first", f"request-tool-{k}")


@pytest.mark.parametrize("world", lexicon.WORLDS)
@pytest.mark.parametrize("name", TESTS)
def test_test_files_are_large_enough_and_say_nothing_twice(world, name):
    file, folder = read(world), lexicon.world_folder(world)
    examples = read_tests(folder, name, file.names())
    texts = [fold(example.text) for example in examples]
    part = name.partition("_")[2]
    assert len(texts) >= LEAST[part] and len(set(texts)) == len(texts)
    if part == "novel":
        assert {example.kind for example in examples} == set(file.names())
    if part in ("infeasible", "near"):
        assert {example.kind for example in examples} == {NONE}


@pytest.mark.parametrize("world", lexicon.WORLDS)
def test_nothing_tested_is_ever_trained_on(world):
    file, folder = read(world), lexicon.world_folder(world)
    known = {fold(example.text) for example in trained(world)}
    known |= {fold(text) for kind in file.kinds for text in kind.train}
    tested = {fold(text) for kind in file.kinds for text in kind.held_out}
    for name in (name for name in TESTS if has(folder, name)):
        tested |= {fold(e.text) for e in read_tests(folder, name, file.names())}
    assert tested and not known & tested
    looked_at = {fold(e.text) for n in DEVELOPMENT for e in read_tests(folder, n, file.names())}
    assert len(looked_at) > 600 and not looked_at & tested


def test_the_training_set_is_the_same_every_time():
    assert examples_of("warehouse") == trained("warehouse")


@pytest.mark.parametrize("world", lexicon.WORLDS)
def test_the_training_set_mirrors_its_sides(world):
    counts = collections.Counter(example.kind for example in trained(world))
    assert set(counts) == {NONE, *read(world).names()}
    assert min(counts.values()) >= 90
    for left, right in (("left", "right"), ("box-0", "box-1"), ("spot-0", "spot-1")):
        for kind in counts:
            if left in kind and kind.replace(left, right) in counts:
                assert counts[kind] == pytest.approx(counts[kind.replace(left, right)], rel=0.1)


@pytest.mark.parametrize("world", lexicon.WORLDS)
def test_reasons_are_given_for_what_can_be_asked_and_what_cannot(world):
    """Else a reason would tell the two apart."""
    kinds = [e.kind for e in trained(world) if "the mayor is visiting" in e.text]
    share = sum(kind == NONE for kind in kinds) / len(kinds)
    assert len(kinds) >= 10 and 0.15 < share < 0.85


def write(folder: Path, contrasts: str) -> Path:
    (folder / "phrases").mkdir()
    (folder / "phrases" / "contrasts.toml").write_text(contrasts)
    (folder / "phrases" / "negatives.toml").write_text("")
    return folder


def test_an_unknown_slot_and_an_unknown_kind_are_named(tmp_path):
    say = '[[say]]\nkind = "go"\ntexts = ["go to the {place}"]\n'
    folder = write(tmp_path, say)
    with pytest.raises(PhraseFileError, match=r"contrasts.toml: no slot 'place'"):
        training_set({"go": ["go"]}, "mine", folder)
    with pytest.raises(PhraseFileError, match="unknown kind; did you mean 'goo'"):
        training_set({"goo": ["go"]}, "mine", folder)


def test_one_sentence_cannot_mean_two_kinds(tmp_path):
    say = '[[say]]\nkind = "{key}"\nkeys = ["a", "b"]\ntexts = ["do it"]\n'
    with pytest.raises(PhraseFileError, match="'do it' is said for a and for b"):
        training_set({"a": ["x"], "b": ["y"]}, "mine", write(tmp_path, say))
