"""Texts as people type them: normalised, named, shown."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mavic.language.text import fold, name, shown


@pytest.mark.parametrize(
    ("typed", "folded"),
    [
        ("  Don’t   PUSH!! ", "don't push"),
        ("go\tleft\n", "go left"),
        ("ｓｔａｙ…", "stay"),
        ("stop\x00it", "stop it"),
        ("plate 1.", "plate 1"),
    ],
)
def test_equal_sentences_fold_to_one_spelling(typed, folded):
    assert fold(typed) == folded and name(typed) == name(folded)


@settings(derandomize=True)
@given(st.text(max_size=200))
def test_folding_never_fails_and_changes_nothing_twice(text):
    assert fold(fold(text)) == fold(text)


def test_a_text_is_cut_after_ten_thousand_characters():
    assert len(fold("a" * 50_000)) == 10_000


def test_a_shown_text_is_one_short_line():
    assert shown(" go\x1b[1m\n left ") == "go [1m left"
    assert shown("a" * 300) == "a" * 199 + "…" and shown("a" * 300, 5) == "aaaa…"
