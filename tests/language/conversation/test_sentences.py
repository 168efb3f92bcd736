"""Sentences of visitors: what is done with them is what they mean. The files are described in README.md."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from mavic.envs import api
from mavic.experiment import talk
from mavic.language.conversation.sentences import (
    ASKED,
    RIGHT,
    WRONG,
    SentenceFileError,
    read_sentences,
    score,
)

HERE = Path(__file__).parent
WORLDS = sorted(path.stem for path in (HERE / "development").glob("*.toml"))
LEAST_RIGHT, MOST_WRONG = 0.92, 0.01  # the aims for sentences by another hand
EVERY = 24  # of the sentences, one is scored in the fast suite

conversation = cache(talk.conversation_of)


def results(world, which, every=1):
    path = HERE / which / f"{world}.toml"
    if not path.is_file():
        pytest.skip(f"no {which} sentences")
    read, cast, rules = conversation(world)
    sentences = read_sentences(path, tuple(cast.phrases))[::every]
    return score(read, cast, rules, sentences, talk.agents_of(world))


def shares(found):
    counts = Counter(one.verdict for one in found)
    return counts[RIGHT] / len(found), counts[WRONG] / len(found)


@pytest.mark.parametrize("world", WORLDS)
def test_some_sentences_are_acted_on_as_meant(world):
    right, wrong = shares(results(world, "development", EVERY))
    assert right >= LEAST_RIGHT and wrong == 0


@pytest.mark.long
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("which", ["development", "blind"])
def test_sentences_are_acted_on_as_meant(world, which):
    found = results(world, which)
    missed = [(one.verdict, one.sentence.text, one.done) for one in found if one.verdict != RIGHT]
    right, wrong = shares(found)
    assert right >= LEAST_RIGHT and wrong <= MOST_WRONG, missed


def test_there_is_a_set_for_every_world():
    assert sorted(api.BUILT_IN) == WORLDS
    for world in WORLDS:
        kinds = conversation(world)[1].phrases
        assert len(read_sentences(HERE / "development" / f"{world}.toml", tuple(kinds))) >= 120


def verdict_of(tmp_path, world, line):
    path = tmp_path / "said.toml"
    path.write_text(f"[sentences]\n{line}\n")
    read, cast, rules = conversation(world)
    (one,) = score(
        read, cast, rules, read_sentences(path, tuple(cast.phrases)), talk.agents_of(world)
    )
    return one.verdict


@pytest.mark.parametrize(
    "line, verdict",
    [
        ('"stay" = "stay"', RIGHT),
        ('"stay" = "push"', WRONG),
        ('"stay" = "none"', WRONG),
        ('"hello" = "stay"', ASKED),
        ('"hello" = "none"', RIGHT),
        ('"carry on" = "none"', WRONG),
        ('"you can push again" = "end:dont-push"', RIGHT),
        ('"you can push again" = "end:avoid-small-box-0"', ASKED),
        ('"robot 1, stay" = { means = "stay", to = ["robot_1"] }', RIGHT),
        ('"robot 1, stay" = { means = "stay", to = ["blue robot"] }', WRONG),
        ('"stay, then push" = { means = "stay", then = ["push"] }', RIGHT),
        ('"stay, then push" = { means = "stay" }', WRONG),
        ('"also stay" = { after = ["dont-push"], means = "stay", holds = ["stay"] }', WRONG),
        ('"stay" = { means = "push", or = ["stay"] }', RIGHT),
        ('"stay for 5 ticks" = { means = "stay", hold = 5 }', RIGHT),
        ('"stay for 5 ticks" = "stay"', WRONG),
        ('"carry on" = { after = ["stay"], means = "end" }', RIGHT),
        ('"you can push" = { after = ["dont-push", "avoid-small-box-0"], means = "end" }', WRONG),
        (
            '"you can push, but stay away from the right box" = { after = ["dont-push"], '
            'means = ["end:dont-push", "avoid-small-box-1"], holds = ["avoid-small-box-1"] }',
            RIGHT,
        ),
    ],
)
def test_the_scorer_tells_right_from_wrong(tmp_path, line, verdict):
    assert verdict_of(tmp_path, "box_pushing", line) == verdict


@pytest.mark.parametrize(
    "line, why",
    [
        ('"stay" = "fly"', "no kind"),
        ('"stay" = { meant = "stay" }', "unknown key"),
        ("= 1", "toml"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, line, why):
    with pytest.raises(SentenceFileError, match=why):
        verdict_of(tmp_path, "box_pushing", line)
