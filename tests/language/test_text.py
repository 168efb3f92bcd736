"""Texts as people type them: normalised, checked, split into lines."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mavic.language.text import TextError, check, fold, lines, name


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


@pytest.mark.parametrize(("text", "why"), [(" \x07", "empty"), ("-- ¿", "no letter or digit")])
def test_a_text_that_is_no_sentence_is_refused(text, why):
    with pytest.raises(TextError, match=why):
        check(text)


def test_a_file_has_one_text_per_line():
    assert lines(b"\xef\xbb\xbfstay\r\n\n  go left\n") == ["stay", "  go left"]
    with pytest.raises(TextError, match=r"not UTF-8 .* at byte 2"):
        lines(b"ok\xff\xfe")
