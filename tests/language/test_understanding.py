"""Knowing what was asked, and when not."""

import dataclasses

import numpy as np
import pytest

from mavic import instructions
from mavic.language import encoder as encoders
from mavic.language import lexicon as lexicons
from mavic.language import measure, understanding
from mavic.language.phrases import NONE, Example

WORLDS = lexicons.WORLDS


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


# Targets that the test phrases showed to be missed, with what was reached: see docs/words.md.
MISSED = {
    ("warehouse", "near-domain flagged"): 52 / 66,
    ("overcooked", "near-domain flagged"): 48 / 65,
    ("overcooked", "novel kept"): 126 / 134,
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("encoder", encoders.BUILT_IN)
def test_targets_on_phrases_never_used_for_any_choice(world, encoder):
    shares, misses = measure.report_words(world, encoder)
    reached = {share.measure: share for share in shares}
    assert set(measure.TARGETS) < set(reached)
    for name in measure.TARGETS:
        least = MISSED.get((world, name), measure.TARGETS[name])
        assert reached[name].share >= least, name
        assert reached[name].met is ((world, name) not in MISSED), "docs/words.md is out of date"
    assert reached["novel kept"].total >= 110
    wrong = sum(share.total - share.hits for share in shares if share.file.startswith("phrases"))
    assert len(misses) >= wrong // 2


@pytest.mark.parametrize("prefix", ["dev", "test"])
def test_development_sets_have_no_target(prefix):
    shares, _ = measure.report_words("box_pushing", prefix=prefix)
    assert all(share.met is None for share in shares)
    files = {share.file for share in shares} - {"instructions.toml"}
    assert len(files) == 4 and all(file.startswith(f"phrases/{prefix}_") for file in files)


@pytest.mark.parametrize("world", WORLDS)
def test_training_phrases_are_understood(world):
    lexicon = lexicons.load(world)
    rows = [i for i, text in enumerate(lexicon.texts) if text and not lexicon.held_out[i]]
    answers = understanding.understand_all(lexicon, [lexicon.texts[i] for i in rows])
    right = [
        a.asked() == lexicon.names[int(lexicon.kind[i])] for a, i in zip(answers, rows, strict=True)
    ]
    assert np.mean(right) > 0.98
    first = answers[0]
    assert first.nearest[0][0] == first.text and first.nearest[0][2] == pytest.approx(1, abs=1e-4)
    assert sum(first.probabilities.values()) == pytest.approx(1, abs=1e-4)


def test_unsure_means_nothing_is_asked_unless_one_obeys_anyway():
    lexicon = lexicons.load("overcooked")
    answer = lexicon.understand("spin around the room")
    assert answer.unsure and answer.asked() == NONE
    assert answer.asked(obey_anyway=True) == answer.kind in lexicon.names[1:]


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("", "empty"),
        ("  \n\t ", "empty"),
        ("\x00\x07\x1b", "empty"),
        ("?!…", "empty"),
        ("¿¡ -- ;;", "no letter"),
        ("不要使用左边的烤箱", "no English word"),
        ("не двигайся", "no English word"),
        ("go left " * 1250, "too long"),
    ],
)
def test_bad_input_gets_a_clear_answer(text, note):
    answer = lexicons.load("overcooked").understand(text)
    assert answer.unsure and answer.asked() == answer.asked(obey_anyway=True) == NONE
    assert note in answer.note


def test_case_spaces_and_marks_do_not_matter():
    lexicon = lexicons.load("box_pushing")
    plain, loud = lexicon.understand("don't push"), lexicon.understand("  DON’T\x07 Push!! ")
    assert (plain.kind, plain.probability) == (loud.kind, loud.probability)
    assert plain.kind == "dont-push" and not plain.unsure


def test_a_kind_that_was_left_out_cannot_be_asked():
    file = instructions.read(lexicons.instruction_path("overcooked"))
    nine = lexicons.make(dataclasses.replace(file, kinds=file.kinds[:9]))
    assert not lexicons.load("overcooked").understand("get the tomato").unsure
    answer = nine.understand("get the tomato")
    assert answer.unsure and answer.probabilities[NONE] > 0.8


def test_the_head_tells_none_from_kinds_and_sides_apart(monkeypatch):
    """A head fitted on a toy set: two sides and what is neither, by vectors that say nothing."""
    for name, value in (("FOLDS", 2), ("MEMBERS", 1), ("STEPS", 300)):
        monkeypatch.setattr(understanding, name, value)
    toy = [
        Example(text=f"{opening} {side} {thing}", kind=kind, group=f"{opening} {thing}")
        for opening in ("take", "use", "get", "grab", "pick", "want")
        for thing in ("cup", "pan", "jar", "mug")
        for side, kind in (("left", "l"), ("right", "r"), ("green", NONE), ("small", NONE))
    ]

    class Blind:
        hash = "blind"

        @staticmethod
        def encode(texts):
            return np.zeros((len(texts), 4), np.float32)

    head = understanding.fit(toy, (NONE, "l", "r"), Blind())  # type: ignore[arg-type]
    texts = ["please take the left lid", "use the right lid", "use the green lid", "a small lid"]
    shares = head.probabilities(texts, np.zeros((4, 4), np.float32))
    assert list(shares.argmax(1)) == [1, 2, 0, 0]
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-5)
    assert 0 < head.threshold < 1


@pytest.mark.parametrize("text", ["dont push", "don't psuh", "DON'T PUSHH", "pls dont push"])
def test_slips_of_the_keyboard_are_understood(text):
    answer = lexicons.load("box_pushing").understand(text)
    assert answer.asked() == "dont-push" and answer.text == text


def test_the_threshold_lies_where_another_authors_sentences_part():
    """Feasible sentences score 0.4 and more, others 0.1: anything between serves, so the middle."""
    best = np.array(50 * [0.4] + 50 * [0.9] + 40 * [0.1] + 60 * [0.1])
    sets = 100 * ["novel"] + 40 * ["infeasible"] + 60 * ["near"]
    kinds = np.array(100 * [1] + 100 * [0])
    threshold = understanding._threshold(best, np.ones(200), kinds, sets)
    assert threshold == pytest.approx(0.25, abs=0.01)
    best[-9:] = 0.95  # 15 % of the near-domain ones cannot be told apart: as many as are allowed
    assert understanding._threshold(best, np.ones(200), kinds, sets) == pytest.approx(
        threshold, abs=0.01
    )


def test_an_author_is_judged_by_a_fit_without_that_author(monkeypatch):
    seen_by_seed = {}

    def train(seed, texts, vectors, kinds, seen, words, count):
        seen_by_seed[seed] = {text for text, s in zip(texts, seen, strict=True) if s}
        return {
            "vector": np.zeros((4, 2)),
            "hidden": np.zeros(2),
            "words": np.zeros((len(words) + 1, 2)),
            "out": np.zeros((2, count)),
            "direct": np.zeros((len(words) + 1, count)),
            "bias": np.zeros(count),
        }

    monkeypatch.setattr(understanding, "_train", train)
    examples = [
        Example(text=f"{source} {n}", kind=NONE, group=f"{n}", source=source)
        for source in ("", "dev_novel", "test_novel")
        for n in range(3)
    ]
    texts = [example.text for example in examples]
    logits, tried = understanding._unseen(
        examples, texts, np.zeros((9, 4), np.float32), np.zeros(9, int), 2
    )
    assert list(tried) == 3 * [False] + 6 * [True] and logits.shape == (2, 6, 2)
    assert all(len(seen) == 6 and set(texts[:3]) < seen for seen in seen_by_seed.values())
    assert {texts[3] in seen for seen in seen_by_seed.values()} == {True, False}


def test_a_head_is_the_same_after_saving(tmp_path):
    head = understanding.load(understanding.head_path("warehouse"))
    understanding.save(head, tmp_path / "head.npz")
    again = understanding.load(tmp_path / "head.npz")
    assert again.names == head.names and again.words == head.words
    texts, vectors = ["tool 1 first"], lexicons.vectors(["fetch tool 1 first"])
    np.testing.assert_array_equal(
        again.probabilities(texts, vectors), head.probabilities(texts, vectors)
    )


def test_wilson_interval_matches_a_published_value():
    """81 of 263: 0.2553 to 0.3662 (Newcombe 1998, table I)."""
    assert measure.wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert measure.wilson(0, 0) == (0.0, 1.0)
    assert measure.wilson(40, 40)[1] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("kind", "names", "other"),
    [
        ("avoid-left-oven", ("avoid-left-oven", "avoid-right-oven"), "avoid-right-oven"),
        ("go-big-spot-1", ("go-big-spot-0", "go-big-spot-1"), "go-big-spot-0"),
        ("avoid-plate-1", ("avoid-plate-1", "avoid-plate-2"), "avoid-plate-2"),
        ("move-left", ("move-left", "stay"), None),
        ("stay", ("move-left", "stay"), None),
    ],
)
def test_mirrored_kinds(kind, names, other):
    assert measure.mirror(kind, names) == other


def test_ablation_shows_what_words_alone_cannot_do():
    rows = measure.ablation("overcooked", measure.WITHOUT_WEIGHTS)
    by = {(row.variant, row.phrases): row for row in rows}
    assert len(rows) == 2 * len(measure.WITHOUT_WEIGHTS)
    best, words = by["minilm-l3 mean scaled", "novel"], by["bag of words", "novel"]
    assert best.accuracy > words.accuracy + 0.1
    assert best.left_right > 0.8 and best.left_right_total > 30
    assert best.trained > by["minilm-l3 mean raw", "novel"].trained
    assert set(best.per_kind) == set(lexicons.load("overcooked").names[1:])
