"""What teams hear of phrases: kinds as one-hot rows, the reader's probabilities for free sentences, or vectors."""

from __future__ import annotations

import built_in
import numpy as np
import pytest

from mavic.language import heard
from mavic.language.reader import read


@pytest.mark.parametrize("world", built_in.WORLDS)
def test_a_team_that_hears_kinds_hears_a_phrases_kind_and_silence_as_zero(world):
    lexicon = built_in.lexicon(world)
    rows, kind = np.asarray(heard.phrases_heard(lexicon, "kinds")), np.asarray(lexicon.kind)
    assert rows.shape == (len(lexicon.texts), len(lexicon.names) - 1)
    assert (rows.sum(1) == (kind > 0)).all()
    assert (rows[kind > 0].argmax(1) + 1 == kind[kind > 0]).all()
    assert not rows[0].any() and not rows[lexicon.spare_row :].any()
    assert heard.phrases_heard(lexicon, "vectors") is lexicon.vectors


def test_of_other_sentences_it_hears_what_the_reader_makes_of_them():
    """A held-out phrase is not known with certainty, however well the file knows its kind."""
    lexicon = built_in.lexicon("warehouse")
    held_out = [t for t, h in zip(lexicon.texts, lexicon.held_out, strict=True) if h]
    trained = lexicon.texts[int(lexicon.table[2, 0])]
    texts = [trained.upper() + "!", *held_out[:3], "¿?"]
    found = heard.kinds_asked(lexicon, texts)
    names = lexicon.names[1:]
    assert found.shares.shape == (5, len(names))
    assert found.shares[0].tolist() == [float(i == 1) for i in range(len(names))]
    for place, answer in enumerate(read.understand_all(lexicon, texts[1:]), start=1):
        wanted = [answer.probabilities.get(name, 0.0) for name in names]
        np.testing.assert_allclose(found.shares[place], wanted, atol=1e-6)
        assert lexicon.names[found.kind[place]] == answer.asked()
    assert 0 < found.shares[1:4].max() < 1 and found.kind[-1] == 0 and not found.shares[-1].any()
    assert heard.texts_heard(lexicon, texts, "kinds").tolist() == found.shares.tolist()
    vectors = heard.texts_heard(lexicon, [trained], "vectors")
    np.testing.assert_array_equal(vectors[0], lexicon.vectors[int(lexicon.table[2, 0])])
