"""The reader: which kind a sentence asks for, when it is unsure, and how it is fitted and measured."""

import dataclasses
import zlib

import built_in
import jax.numpy as jnp
import numpy as np
import pytest

from mavic.instruct.spec import InstructionFile
from mavic.language import encoder as encoders
from mavic.language.lexicon import Lexicon
from mavic.language.reader import ablation, fit, measure, own_file, read
from mavic.language.reader.model import Head, Sentences
from mavic.language.reader.phrase_file import END, NONE, Example
from mavic.language.reader.read import understand
from mavic.language.vectors import shipped_path, states

WORLDS = built_in.WORLDS


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


# Targets that the blind sentences missed, with what was reached: see docs/record/words.md.
MISSED: dict[tuple[str, str], float] = {}
FIRST = ("minilm-l3", "box_pushing")


# One encoder in one world now, the others in make test-long.
READ = [
    pytest.param(encoder, world, marks=() if (encoder, world) == FIRST else pytest.mark.long)
    for encoder in encoders.BUILT_IN
    for world in WORLDS
]


@pytest.mark.parametrize(("encoder", "world"), READ)
def test_blind_sentences_reach_the_targets(world, encoder):
    shares, misses = measure.measure(
        built_in.instructions(world), built_in.phrases(world), encoder=encoder
    )
    reached = {share.measure: share for share in shares}
    measured = [name for name in measure.TARGETS if name in reached]
    assert len(measured) >= 4
    for name in measured:
        least = MISSED.get((world, name), measure.TARGETS[name])
        assert reached[name].share >= least, name
        assert reached[name].met is ((world, name) not in MISSED), (
            "docs/record/words.md is out of date"
        )
    assert reached["novel kept"].total >= 110
    requests = [s for s in shares if s.source.startswith("phrases") and "acts" not in s.source]
    wrong = sum(share.total - share.hits for share in requests)
    assert len(misses) >= wrong // 2


@pytest.mark.long
@pytest.mark.parametrize("author", ["first", "second", "third"])
def test_development_sets_have_no_target(author):
    file, phrases = built_in.instructions("box_pushing"), built_in.phrases("box_pushing")
    shares, _ = measure.measure(file, phrases, "development", author)
    assert all(share.met is None and share.total for share in shares)
    sources = {share.source for share in shares} - {"instructions.toml"}
    assert len(sources) == 4
    assert all(source.startswith(f"phrases.toml, development, {author}, ") for source in sources)


@pytest.mark.parametrize("world", WORLDS)
def test_training_phrases_are_understood(world):
    lexicon = built_in.lexicon(world)
    rows = [i for i, text in enumerate(lexicon.texts) if text and not lexicon.held_out[i]]
    answers = read.understand_all(lexicon, [lexicon.texts[i] for i in rows])
    right = [
        a.asked() == lexicon.names[int(lexicon.kind[i])] for a, i in zip(answers, rows, strict=True)
    ]
    assert all(right)
    first = answers[0]
    assert first.nearest[0][0] == first.text and first.nearest[0][2] == pytest.approx(1, abs=1e-4)
    assert sum(first.probabilities.values()) == pytest.approx(1, abs=1e-4)


# What people were heard to say, and what they mean by it (the examples of the issue tracker).
MEANT = [
    ("box_pushing", "dont stop pushing", "push"),
    ("box_pushing", "don't stay", END),
    ("box_pushing", "never mind", END),
    ("overcooked", "you can use the left oven again", END),
    ("overcooked", "thanks for chopping", NONE),
    ("warehouse", "tool 0 can wait", NONE),
]


@pytest.mark.parametrize(("world", "text", "meant"), MEANT)
def test_a_sentence_about_an_act_is_heard_as_it_is_meant(world, text, meant):
    answer = understand(built_in.lexicon(world), text)
    assert answer.obeyed == meant
    assert meant != NONE or answer.nothing


def test_unsure_means_no_instruction_unless_obey_anyway():
    lexicon = built_in.lexicon("overcooked")
    answer = understand(lexicon, "spin around the room")
    assert answer.unsure and answer.asked() == NONE
    best = max(lexicon.names[1:], key=answer.probabilities.__getitem__)
    assert answer.asked(obey_anyway=True) == best


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
def test_a_text_that_is_no_sentence_is_unsure_with_a_reason(text, note):
    answer = understand(built_in.lexicon("overcooked"), text)
    assert answer.unsure and answer.asked() == answer.asked(obey_anyway=True) == NONE
    assert note in answer.note


def test_case_spaces_and_punctuation_do_not_matter():
    lexicon = built_in.lexicon("box_pushing")
    plain, loud = understand(lexicon, "don't push"), understand(lexicon, "  DON’T\x07 Push!! ")
    assert (plain.kind, plain.probability) == (loud.kind, loud.probability)
    assert plain.kind == "dont-push" and not plain.unsure


def test_a_kind_outside_the_lexicon_counts_as_none():
    file = built_in.instructions("overcooked")
    nine = Lexicon.make(dataclasses.replace(file, kinds=file.kinds[:9]))
    assert not understand(built_in.lexicon("overcooked"), "get the tomato").unsure
    answer = understand(nine, "get the tomato")
    assert answer.unsure and answer.probabilities[NONE] > 0.8


def toy_states(texts):
    """One random state for each word, whatever its neighbours."""

    def state(word):
        return np.random.default_rng(zlib.crc32(word.encode())).normal(size=8)

    return [np.array([state(w) for w in text.split()], np.float32) for text in texts]


TOY = encoders.Encoder(id="toy", hash="toy", dimension=8, pooling="mean", states=toy_states)
TOY_EFFORT = fit._Effort(members=1, calibration_members=1, steps=150, folds=2)


@pytest.fixture(scope="module")
def toy_head():
    """A head for two sides, named alone or together in either order, and for neither."""
    things = ("cup", "pan", "jar", "mug", "pot", "bag")
    alone = [
        Example(
            text=f"{opening} {side} {thing}",
            kind=kind,
            group=f"{opening} {thing}",
            author="first" if thing in things[:3] else "second",
            category=sort,
        )
        for opening in ("take", "use", "get", "grab", "pick", "want")
        for thing in things
        for side, kind, sort in (
            ("left", "l", "novel"),
            ("right", "r", "novel"),
            ("green", NONE, "infeasible"),
            ("small", NONE, "near"),
        )
    ]
    ordered = [
        Example(text=f"{a} {one} not {other} {b}", kind=kind, group=f"{a} {b}")
        for a in things
        for b in things
        for one, other, kind in (("left", "right", "l"), ("right", "left", "r"))
    ]
    return fit.fit(alone + ordered, (NONE, "l", "r", END), TOY, TOY_EFFORT)


@pytest.mark.long
def test_the_head_tells_none_from_kinds_and_sides_apart(toy_head):
    texts = ["grab left urn", "use right lid", "use green lid", "want small lid"]
    shares = toy_head.probabilities(texts, TOY.states(texts))
    assert list(shares.argmax(1)) == [1, 2, 0, 0]
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-5)
    assert 0 < toy_head.threshold <= fit.MAX_THRESHOLD


@pytest.mark.long
def test_the_head_reads_which_of_two_words_stands_first(toy_head):
    """By the states alone, where vector and words of the two sentences are the same."""
    texts = ["urn left not right cup", "urn right not left cup"]
    unread = {name: toy_head.weights[name][:, -1:] for name in ("words", "direct")}
    states_only = dataclasses.replace(toy_head, words={}, weights=toy_head.weights | unread)
    shares = states_only.probabilities(texts, TOY.states(texts))
    assert list(shares[:, 1:3].argmax(1)) == [0, 1]


def test_numpy_and_jax_give_the_same_logits():
    head = Head.load(shipped_path("warehouse", "head"))
    texts = ["fetch tool 1 first", "tool 2 then the rest please"]
    read = Sentences.read(texts, states(texts), head.words)
    weights = {name: value[0] for name, value in head.weights.items()}
    np.testing.assert_allclose(read.forward(np, weights), read.forward(jnp, weights), atol=1e-3)


@pytest.mark.parametrize("text", ["dont push", "don't psuh", "DON'T PUSHH", "pls dont push"])
def test_sentences_with_typing_errors_are_understood(text):
    answer = understand(built_in.lexicon("box_pushing"), text)
    assert answer.asked() == "dont-push" and answer.text == text


MEANT = {
    "box_pushing": {
        "dont stop pushing": "push",
        "could you stop pushing": "dont-push",
        "no need to keep pushing": END,
        "don't stay": END,
        "not the left small box, go to the one on the right": "go-small-box-1",
    },
    "warehouse": {
        "tool 0 can wait": NONE,
        "don't stop looking for tool 1": "fetch-tool-1-first",
        "you can stop looking for tool 1": END,
        "next shift tool 1 should be the first one": NONE,
    },
    "overcooked": {
        "don't stop chopping": "chop",
        "could you stop chopping": "partner-chops",
        "please stop chopping": "partner-chops",
        "stop chopping now": "partner-chops",
        "you don't have to keep chopping": END,
        "you can use the left oven again": END,
        "thanks for chopping": NONE,
        "not the tomato, get me the lettuce": "get-lettuce",
    },
}


@pytest.mark.parametrize("world", WORLDS)
def test_what_is_done_without_asking_back_is_what_is_meant(world):
    """Sentences that earlier heads obeyed wrongly, and the same words without "stop" or "don't"."""
    found = read.understand_all(built_in.lexicon(world), list(MEANT[world]))
    assert {answer.text: answer.obeyed for answer in found} == MEANT[world]


def test_the_threshold_separates_an_unseen_authors_feasible_and_infeasible_sentences():
    """Feasible sentences score at least 0.4 and others 0.1. Every value between serves, so the middle is taken."""
    best = np.array(50 * [0.4] + 50 * [0.9] + 40 * [0.1] + 60 * [0.1])
    sets = in_categories(100 * ["novel"] + 40 * ["infeasible"] + 60 * ["near"])
    kinds = np.array(100 * [1] + 100 * [0])
    threshold = fit._threshold(of_one_kind(best), np.ones(200), kinds, sets)
    assert threshold == pytest.approx(0.25, abs=0.01)
    best[-9:] = 0.95  # 15 % of the near-domain sentences score high, which the aim allows
    again = fit._threshold(of_one_kind(best), np.ones(200), kinds, sets)
    assert again == pytest.approx(threshold, abs=0.01)


def in_categories(names):
    return [Example(text=str(i), kind=NONE, group="", category=c) for i, c in enumerate(names)]


def of_one_kind(best):
    """Probabilities of "none", of one kind and of "end"."""
    return np.stack([1 - best, best, np.zeros_like(best)], 1)


def test_sentences_about_acts_have_their_share_of_the_batches():
    examples = in_categories(["", "", "", "remark", "past"])
    examples.append(Example(text="never mind", kind=END, group="never mind", category="permission"))
    weight = fit._balance(examples, np.array([0, 1, 1, 0, 0, 2]), 3)
    assert weight.sum() == pytest.approx(1)
    assert weight[3:5].sum() == pytest.approx(fit.ACT_SHARES[NONE])
    assert weight[5] == pytest.approx(fit.ACT_SHARES[END]) and weight[1] == weight[2]


def test_an_authors_sentences_are_predicted_by_a_fit_without_that_author(monkeypatch):
    seen_by_seed = {}

    def train(seed, read, kinds, weight, words, count, effort):
        seen_by_seed[seed] = weight > 0
        return {"seed": np.array(seed)}

    monkeypatch.setattr(fit, "_train", train)
    monkeypatch.setattr(
        Sentences,
        "logits",
        lambda read, weights: np.full((len(read.length), 2), weights["seed"]),
    )
    examples = [
        Example(text=f"{author} {n}", kind=NONE, group=f"{n}", author=author, category="novel")
        for author in ("", "first", "second", "third")
        for n in range(3)
    ]
    texts = [example.text for example in examples]
    read = Sentences.read(texts, [np.zeros((2, 4), np.float32)] * 12, {})
    logits, tried = fit._unseen_logits(examples, read, np.zeros(12, int), 0, 2, TOY_EFFORT)
    assert list(tried) == 3 * [False] + 9 * [True] and logits.shape == (1, 9, 2)
    assert TOY_EFFORT.folds == len(seen_by_seed) == 2  # the first and the third author together
    for row, seed in zip(np.flatnonzero(tried), logits[0, :, 0], strict=True):
        seen = seen_by_seed[int(seed)]
        assert not seen[row] and seen[:3].all() and seen.sum() == (9 if seed else 6)


SMALL_FILES = {  # training phrases by kind, and other sentences that ask for a kind
    "corridor": (
        {"wait": ("stay", "don't move"), "left-waits": ("wait there",)},
        ("do not move", "please wait there"),
    ),
    "garden": (
        {
            "water": ("water the roses", "give the roses water"),
            "mow": ("mow the lawn", "cut the grass"),
        },
        ("please water the roses", "could you mow the grass"),
    ),
    "drones": (
        {"land": ("land now",), "north": ("fly north",)},
        ("please land", "fly to the north"),
    ),
    "bell": ({"ring": ("ring the bell",)}, ("please ring the bell", "ring that bell")),
}
EVERYDAY = ("hello", "how are you", "tell me a joke", "buy some milk", "good morning everyone")
EVERYDAY += ("book a flight to rome", "call my mother", "what is the weather like today")


@pytest.mark.slow
@pytest.mark.parametrize("world", SMALL_FILES)
def test_unsure_works_for_a_small_file_of_ones_own(world, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    phrases, meant = SMALL_FILES[world]
    kinds = {
        name: {"rule": "add", "forbid": ["WALK"], "train": list(texts)}
        for name, texts in phrases.items()
    }
    lexicon = Lexicon.make(InstructionFile.parse({"world": world, "kinds": kinds}, f"{world}.toml"))
    assert [a.text for a in read.understand_all(lexicon, EVERYDAY) if not a.unsure] == []
    assert [a.text for a in read.understand_all(lexicon, meant) if a.unsure] == []


def test_a_head_is_the_same_after_saving(tmp_path):
    head = Head.load(shipped_path("warehouse", "head"))
    head.save(tmp_path / "head.npz")
    again = Head.load(tmp_path / "head.npz")
    assert again.names == head.names and again.words == head.words
    texts, read = ["tool 1 first"], states(["fetch tool 1 first"])
    np.testing.assert_array_equal(again.probabilities(texts, read), head.probabilities(texts, read))


def test_a_fitted_head_that_cannot_be_kept_is_used_all_the_same(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    head = Head.load(shipped_path("warehouse", "head"))
    monkeypatch.setattr(own_file, "fit", lambda *_: head)
    lexicon = dataclasses.replace(built_in.lexicon("warehouse"), world="a world without a head")
    assert understand(lexicon, "get tool 1 before the others").kind == "fetch-tool-1-first"


def test_wilson_interval_matches_a_published_value():
    """81 of 263: 0.2553 to 0.3662 (Newcombe 1998, table I)."""
    assert measure._wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert measure._wilson(0, 0) == (0.0, 1.0)
    assert measure._wilson(40, 40)[1] == pytest.approx(1.0)


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
def test_the_mirror_image_of_a_kind(kind, names, other):
    assert ablation._mirror(kind, names) == other


@pytest.mark.long
def test_an_encoder_beats_a_bag_of_words_on_novel_sentences():
    file, phrases = built_in.instructions("overcooked"), built_in.phrases("overcooked")
    variants = ("minilm-l3 mean scaled", "minilm-l3 mean raw", "bag of words")  # need no weights
    rows = ablation.ablation(file, phrases, variants)
    by = {(row.variant, row.phrases): row for row in rows}
    assert len(rows) == 2 * len(variants)
    best, words = by["minilm-l3 mean scaled", "novel"], by["bag of words", "novel"]
    assert best.accuracy > words.accuracy + 0.1
    assert best.left_right > 0.8 and best.left_right_total > 30
    assert best.trained > by["minilm-l3 mean raw", "novel"].trained
    assert set(best.per_kind) == set(built_in.lexicon("overcooked").names[1:])
