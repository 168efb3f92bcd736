"""Phrases of two kinds that hardly differ are found, and those that differ in what matters are not."""

from __future__ import annotations

import pytest

from mavic.language.reader.alike import alike

LEFT = ("keep away from the left door", "the left door is shut", "left door: no entry")
RIGHT = ("stay clear of the right door", "the right door is locked", "right door: do not enter")


def between(one, other):
    """What is found of a phrase of one kind and a phrase of another: None, or whether they are the same."""
    found = list(alike({"left": (one, *LEFT), "right": (other, *RIGHT)}))
    return found[0][-1] if found else None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("do not use the left door", "don't use left door"),
        ("Please don't use the left door!", "dont use the left door now"),
        ("the left door's not to be used", "the left door is not to be used"),
        ("you can't use the left door", "you cannot use the left door"),
        ("do not use the left door", "do not use the left doorr"),
        ("use the left door", "you use a left door please"),
    ],
)
def test_contractions_typing_errors_articles_and_courtesy_make_no_difference(one, other):
    assert between(one, other) is True


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("do not use the old door", "do not ever use the old door"),
        ("use the door quickly, robot", "quickly use the door, robot"),
    ],
)
def test_one_word_more_and_another_order_are_nearly_the_same(one, other):
    assert between(one, other) is False


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("left door", "right door"),
        ("do not use the left door", "do not use the right door"),
        ("do not use the door", "do not use the right door"),
        ("use the old door", "do not use the old door"),
        ("now go and search room a", "now go and search room b"),
        ("go to the old door", "go to the old door 2"),
        ("stop", "stop digging"),
        ("now", "please"),
    ],
)
def test_what_sets_kinds_apart_is_a_difference(one, other):
    assert between(one, other) is None
