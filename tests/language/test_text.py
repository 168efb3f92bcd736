"""Texts as people type them."""

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
def test_what_is_said_alike_is_spelt_alike(typed, folded):
    assert fold(typed) == folded and name(typed) == name(folded)


@settings(derandomize=True)
@given(st.text(max_size=200))
def test_folding_never_fails_and_is_final(text):
    assert fold(fold(text)) == fold(text)


def test_ten_thousand_characters_and_more_are_cut():
    assert len(fold("a" * 50_000)) == 10_000


@pytest.mark.parametrize(("text", "why"), [(" \x07", "empty"), ("-- ¿", "no letter or digit")])
def test_what_cannot_be_a_sentence_is_refused(text, why):
    with pytest.raises(TextError, match=why):
        check(text)


def test_a_file_gives_a_text_a_line():
    assert lines(b"\xef\xbb\xbfstay\r\n\n  go left\n") == ["stay", "  go left"]
    with pytest.raises(TextError, match=r"not UTF-8 .* at byte 2"):
        lines(b"ok\xff\xfe")
