"""Typing errors: which are corrected, which words are left alone, and which errors are added."""

import random

import pytest

from mavic.language.reader.data import _add_typo as add_typo
from mavic.language.reader.spelling import _vocabulary, correct, known_words, words_of

KNOWN = known_words(2 * ["the lettuce, the left board, the tool, the first plate, oven don't"])


@pytest.mark.parametrize(
    ("typed", "corrected"),
    [
        ("dont take teh letuce", "don't take the lettuce"),
        ("the frist tol", "the first tool"),
        ("leftt bord pls", "left board please"),
        ("lwttuce", "lettuce"),
        ("ovn", "oven"),
        ("im at the oven's door", "i'm at the oven's door"),
        ("its turn", "its turn"),
        ("a plane, a loft and some bread", "a plane, a loft and some bread"),
        ("xq zzz qwrtp", "xq zzz qwrtp"),
    ],
)
def test_a_typing_error_is_corrected_and_a_known_word_is_left_alone(typed, corrected):
    assert correct(typed, KNOWN) == corrected
    assert correct(corrected, KNOWN) == corrected


def test_of_two_equally_near_words_the_more_frequent_is_chosen():
    often, seldom = 9 * ["zorbet"], 2 * ["zorbed"]
    assert "zorbe" not in _vocabulary()
    assert correct("zorbe", known_words(often + seldom)) == "zorbet"
    assert correct("zorbe", known_words(2 * ["zorbet"] + 9 * ["zorbed"])) == "zorbed"


def test_pairs_include_start_and_end_and_a_possessive_is_its_own_word():
    assert words_of("The board's dirty, don't") == (
        ["the", "board", "'s", "dirty", "don't"],
        ["^_the", "the_board", "board_'s", "'s_dirty", "dirty_don't", "don't_$"],
    )


def test_an_added_typo_is_small_and_most_typos_are_corrected():
    rng, text = random.Random(0), "don't take the left board, the first lettuce"
    known = known_words(2 * [text, "take"])
    typos = [add_typo(text, rng) for _ in range(300)]
    assert len(set(typos)) > 50
    assert all(abs(len(made) - len(text)) <= 2 for made in typos)
    assert sum(correct(made, known) == text for made in typos) > 150
    assert add_typo("1 2", random.Random(1)) in ("1 2", "12")
