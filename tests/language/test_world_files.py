"""The built-in instruction and phrase files contain what the documentation says, and wrong files are refused."""

import collections
import dataclasses
import functools
import hashlib
from pathlib import Path

import built_in
import pytest

from mavic.instruct.spec import InstructionFile
from mavic.language.reader.phrase_file import (
    ACT_CATEGORIES,
    END,
    NONE,
    SENTENCE_CATEGORIES,
    PhraseFile,
    PhraseFileError,
)
from mavic.language.text import fold
from tools.reader_data import _read_templates, training_set_of

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


# A world's training set, of 60,000 sentences, takes seconds to make.
READ = [pytest.param(world, marks=pytest.mark.long) for world in built_in.WORLDS]


@functools.cache
def trained(world):
    """The reader's training set of a world, made once for all tests.

    The eighth author wrote after the heads were fitted, so the training set may contain such sentences."""
    phrases = built_in.phrases(world)
    earlier = tuple(block for block in phrases.blocks if block.author != "eighth")
    return training_set_of(
        built_in.instructions(world), dataclasses.replace(phrases, blocks=earlier)
    )


@pytest.mark.parametrize("world", built_in.WORLDS)
def test_a_world_has_the_named_kinds_with_enough_phrases(world):
    file = built_in.instructions(world)
    assert file.names() == tuple(KINDS[world].split())
    assert all(len(kind.train) >= 8 and len(kind.held_out) >= 3 for kind in file.kinds)


def test_all_phrases_of_the_paper_are_training_phrases():
    counts = {kind.name: len(kind.train) for kind in built_in.instructions("overcooked").kinds[:9]}
    assert counts == PAPER and sum(counts.values()) == 98
    assert "use the left knife instead" in built_in.instructions("overcooked").kinds[0].train


def test_a_kind_that_leaves_another_way_to_the_goal_adds_to_the_reward_and_others_replace_it():
    rules = {
        kind.name: kind.rule
        for world in built_in.WORLDS
        for kind in built_in.instructions(world).kinds
    }
    for name, rule in rules.items():
        another_way = name.startswith(("avoid-", "fetch-tool-"))
        assert rule == ("add" if another_way else "replace"), name


def test_go_small_boxes_allows_each_robot_its_own_box():
    kind = built_in.instructions("box_pushing").kinds[0]
    assert kind.allow == {"robot_0": ("GO_SMALL_BOX_0",), "robot_1": ("GO_SMALL_BOX_1",)}


@pytest.mark.parametrize("k", range(3))
def test_a_tool_request_is_resolved_by_the_first_tool_delivered(k):
    kind = built_in.instructions("warehouse").kinds[k]
    others = [j for j in range(3) if j != k]
    assert kind.agents == ("fetch",) and kind.penalty == -100 and kind.credit == 50
    assert kind.forbid == {"fetch": tuple(f"LOOK_FOR_{j}" for j in others)}
    assert kind.resolved_by == {f"delivered-tool-{j}": 1 if j == k else -1 for j in range(3)}
    assert (kind.given_if, kind.effect) == (f"tool-{k}-can-be-first", f"request-tool-{k}")


@pytest.mark.parametrize("world", built_in.WORLDS)
@pytest.mark.parametrize("category", SENTENCE_CATEGORIES)
def test_blind_sets_are_large_enough_and_repeat_no_sentence(world, category):
    examples = built_in.phrases(world).sentences("blind", category)
    texts = [fold(example.text) for example in examples]
    assert len(texts) >= LEAST[category] and len(set(texts)) == len(texts)
    if category == "novel":
        assert {example.kind for example in examples} == set(built_in.instructions(world).names())
    if category in ("infeasible", "near"):
        assert {example.kind for example in examples} == {NONE}


@pytest.mark.parametrize("world", built_in.WORLDS)
def test_each_development_author_wrote_every_category(world):
    phrases = built_in.phrases(world)
    assert phrases.authors("development") == (
        *("first", "second", "third"),
        *("sixth", "maintainers", "seventh"),
    )
    for author in ("first", "second", "third"):
        for category in SENTENCE_CATEGORIES:
            assert len(phrases.sentences("development", category, author)) >= 18


@pytest.mark.parametrize("world", built_in.WORLDS)
def test_sentences_about_acts_ask_for_a_kind_an_end_or_nothing(world):
    phrases = built_in.phrases(world)
    for set, least in (("train", 600), ("development", 100)):
        examples = [e for e in phrases.sentences(set) if e.category in ACT_CATEGORIES]
        assert len({fold(e.text) for e in examples}) == len(examples) >= least
        assert {e.category for e in examples} == {*ACT_CATEGORIES}
        assert {NONE, END} < {e.kind for e in examples}
    _, acts = _read_templates(phrases, built_in.instructions(world).names())
    assert acts and all(act.command or act.prohibition for act in acts)


@pytest.mark.long
@pytest.mark.parametrize("world", READ)
def test_the_papers_own_test_phrases_are_in_no_training_sentence(world):
    published = [fold(e.text) for e in built_in.phrases(world).sentences("published")]
    assert {"fly", "spin around the room"} <= {*published}
    seen = [f" {fold(e.text).replace(',', ' ')} " for e in trained(world)]
    assert not [text for text in seen for phrase in published if f" {phrase} " in text]


@pytest.mark.long
@pytest.mark.parametrize("world", READ)
def test_no_blind_or_held_out_sentence_is_trained_on(world):
    file, phrases = built_in.instructions(world), built_in.phrases(world)
    known = {fold(example.text) for example in trained(world)}
    known |= {fold(text) for kind in file.kinds for text in kind.train}
    tested = {fold(text) for kind in file.kinds for text in kind.held_out}
    tested |= {fold(example.text) for example in phrases.sentences("blind")}
    assert len(tested) > 250 and not known & tested
    development = {fold(example.text) for example in phrases.sentences("development")}
    assert len(development) > 600 and not development & tested


# The shipped heads were fitted to these examples in this order.
FITTED = {
    "box_pushing": (60228, "2f73d8df5d568b5f"),
    "warehouse": (49501, "84b347016bd2489d"),
    "overcooked": (71901, "81e3d6caba9707d1"),
}


@pytest.mark.parametrize("world", READ)
def test_the_training_set_is_the_one_that_the_shipped_head_was_fitted_to(world):
    digest = hashlib.sha256()
    for e in trained(world):
        digest.update(f"{e.text}|{e.kind}|{e.group}|{e.author}|{e.category}|{e.copy}\n".encode())
    assert (len(trained(world)), digest.hexdigest()[:16]) == FITTED[world]


@pytest.mark.parametrize("world", READ)
def test_mirrored_kinds_have_equally_many_training_sentences(world):
    counts = collections.Counter(example.kind for example in trained(world))
    assert set(counts) == {NONE, END, *built_in.instructions(world).names()}
    assert min(counts.values()) >= 90
    for left, right in (("left", "right"), ("box-0", "box-1"), ("spot-0", "spot-1")):
        for kind in counts:
            if left in kind and kind.replace(left, right) in counts:
                assert counts[kind] == pytest.approx(counts[kind.replace(left, right)], rel=0.1)


@pytest.mark.parametrize("world", READ)
def test_reasons_stand_beside_feasible_and_infeasible_requests_alike(world):
    """Otherwise a reason would tell the reader which of the two it is."""
    kinds = [e.kind for e in trained(world) if "the mayor is visiting" in e.text]
    share = sum(kind == NONE for kind in kinds) / len(kinds)
    assert len(kinds) >= 10 and 0.15 < share < 0.85


def write(folder: Path, *templates: str) -> Path:
    """A phrase file with one block of templates."""
    path = folder / "phrases.toml"
    block = '[[phrases]]\nset = "train"\nauthor = "me"\ncategory = "contrasts"\n'
    path.write_text(block + "".join(f"[[phrases.templates]]\n{t}\n" for t in templates))
    return path


def trained_on(path: Path, **phrases: str) -> dict[str, str]:
    """The kinds of the training set of a world with one training phrase for each kind, by sentence."""
    kinds = {
        kind: {"rule": "add", "forbid": ["WALK"], "train": [text]} for kind, text in phrases.items()
    }
    file = InstructionFile.parse({"world": "mine", "kinds": kinds}, "mine.toml")
    return {e.text: e.kind for e in training_set_of(file, PhraseFile.read(path, file.names()))}


def test_an_unknown_slot_an_unknown_kind_and_an_unknown_category_are_named(tmp_path):
    path = write(tmp_path, 'kind = "go"\ntexts = ["go to the {place}"]')
    with pytest.raises(PhraseFileError, match=r"phrases.toml: .*contrasts.*: no slot 'place'"):
        trained_on(path, go="go")
    with pytest.raises(PhraseFileError, match="kind 'go' is unknown; did you mean 'goo'"):
        trained_on(path, goo="go")
    path.write_text(path.read_text().replace("contrasts", "past"))
    with pytest.raises(PhraseFileError, match=r"block 1 \(train, me, past\): category 'past'"):
        trained_on(path, go="go")


def test_frames_are_filled_with_a_worlds_acts(tmp_path):
    path = tmp_path / "phrases.toml"
    path.write_text(
        '[[acts]]\ncommand = "dig"\nprohibition = "rest"\nforms = [["dig", "digging", "dug", "dug"]]\n'
        '[[acts]]\ncommand = "wait"\nprohibition = "end"\nforms = [["wait", "waiting", "waited", "waited"]]\n'
    )
    found = trained_on(path, dig="dig", rest="rest", wait="wait")
    assert found["don't stop digging"] == "dig" and found["don't start digging"] == "rest"
    assert found["you can dig again"] == found["stop waiting"] == found["don't wait"] == END
    assert found["thanks for digging"] == found["did you dig"] == found["dig later"] == NONE
    assert found["you should have dug"] == found["i told him to wait"] == NONE
    assert "you can wait again" not in found and found["never mind"] == END
    assert found["could you stop digging"] == "rest" and found["could you stop waiting"] == END
    assert found["don't wait, dig"] == "dig" and found["don't dig, wait"] == "wait"
    assert found["the digging has to stop"] == "rest" and found["you can stop digging"] == END
    wrong = path.with_name("wrong.toml")
    wrong.write_text('[[acts]]\nforms = [["dig", "digging"]]\n')
    with pytest.raises(PhraseFileError, match=r"wrong.toml: act 1: forms must be lists of 4"):
        trained_on(wrong, dig="dig")


def test_one_sentence_cannot_mean_two_kinds(tmp_path):
    path = write(tmp_path, 'kind = "{key}"\nkeys = ["a", "b"]\ntexts = ["do it"]')
    with pytest.raises(PhraseFileError, match="'do it' stands for a and for b"):
        trained_on(path, a="x", b="y")


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ('set = "blin"\nauthor = "me"\ncategory = "novel"', "set 'blin' is unknown; did you mean"),
        ('set = "blind"\ncategory = "novel"', r"block 1: no author; every block has set, author"),
        ('set = "blind"\nauthor = "me"\ncategory = "spoken"', "category 'spoken' is unknown"),
        ('set = "train"\nauthor = "me"\ncategory = "novel"', "category 'novel' is unknown"),
        (
            'set = "blind"\nauthor = "me"\ncategory = "past"\nby_kind = { "end or g" = ["go"] }',
            r"block 1 \(blind, me, past\): kind 'g' is unknown",
        ),
        (
            'set = "blind"\nauthor = "me"\ncategory = "near"\nby_kind = { g = ["go"] }',
            r"block 1 \(blind, me, near\): kind 'g' is unknown",
        ),
        ("set = ", "Invalid value"),
    ],
)
def test_a_wrong_block_is_refused_with_its_place(tmp_path, block, message):
    path = tmp_path / "phrases.toml"
    path.write_text(f"[[phrases]]\n{block}\n")
    with pytest.raises(PhraseFileError, match=rf"phrases\.toml: .*{message}"):
        PhraseFile.read(path, ["go"])
