"""Slips of the keyboard: which are mended, which are left, and which are made."""

import random

import pytest

from mavic.language.reader.spelling import known_words, mend, slip, vocabulary, words_of

KNOWN = known_words(2 * ["the lettuce, the left board, the tool, the first plate, oven don't"])


@pytest.mark.parametrize(
    ("typed", "mended"),
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
def test_a_slip_is_mended_and_another_word_is_left_alone(typed, mended):
    assert mend(typed, KNOWN) == mended
    assert mend(mended, KNOWN) == mended


def test_of_two_words_as_near_the_commoner_is_meant():
    often, seldom = 9 * ["zorbet"], 2 * ["zorbed"]
    assert "zorbe" not in vocabulary()
    assert mend("zorbe", known_words(often + seldom)) == "zorbet"
    assert mend("zorbe", known_words(2 * ["zorbet"] + 9 * ["zorbed"])) == "zorbed"


def test_words_and_pairs_know_start_end_and_what_belongs_to_a_thing():
    assert words_of("The board's dirty, don't") == (
        ["the", "board", "'s", "dirty", "don't"],
        ["^_the", "the_board", "board_'s", "'s_dirty", "dirty_don't", "don't_$"],
    )


def test_a_slip_is_one_letter_or_mark_and_most_are_mended():
    drawn, text = random.Random(0), "don't take the left board, the first lettuce"
    known = known_words(2 * [text, "take"])
    slips = [slip(text, drawn) for _ in range(300)]
    assert len(set(slips)) > 50
    assert all(abs(len(made) - len(text)) <= 2 for made in slips)
    assert sum(mend(made, known) == text for made in slips) > 150
    assert slip("1 2", random.Random(1)) in ("1 2", "12")
