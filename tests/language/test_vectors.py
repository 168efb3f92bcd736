"""Vectors of texts: shipped ones never change, and others are encoded once and kept in whole files."""

import hashlib
import threading

import built_in
import numpy as np
import pytest

from mavic.language import encoder as encoders
from mavic.language import vectors
from mavic.language.text import name as text_name
from tools import ship_reader as ship

WORLDS = built_in.WORLDS


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def letters(monkeypatch):
    """An encoder that counts the letters of texts, and the texts it was given."""
    given = []

    def count(texts):
        given.extend(texts)
        return [[1 + text.count(letter) for letter in "abcdefgh"] for text in texts]

    monkeypatch.setitem(encoders.OWN, "letters", encoders.from_function("letters", count))
    given.clear()
    return given


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("encoder", encoders.BUILT_IN)
def test_every_built_in_phrase_has_a_shipped_vector(world, encoder):
    known = vectors._shipped_vectors(encoder)
    file, phrases = built_in.instructions(world), built_in.phrases(world)
    texts = ship.exact_texts(file, phrases) + ship.half_texts(phrases)
    assert len(texts) > 400
    assert not [text for text in texts if text_name(text) not in known]
    assert all(row.dtype == np.float32 for row in known.values())


def test_shipped_vectors_of_phrases_that_teams_hear_never_change():
    """Training with a fixed seed gives the same numbers only if the default encoder's vectors stay the same bits."""
    digest = hashlib.sha256()
    for world in WORLDS:
        texts = ship.exact_texts(built_in.instructions(world), built_in.phrases(world))
        digest.update(vectors.vectors(texts).tobytes())
    assert digest.hexdigest()[:16] == "94299238ae528845"


def test_shipped_files_of_other_weights_are_refused(monkeypatch):
    vectors._shipped_vectors.cache_clear()
    monkeypatch.setattr(encoders, "encoder_hash", lambda name: "other")
    with pytest.raises(ValueError, match=r"made by other weights than 'minilm-l3'; run: python -m"):
        vectors.vectors(["stay"])


def test_vectors_of_free_texts_are_cached(letters):
    first = vectors.vectors(["push", "stay"], "letters")
    assert letters == ["push", "stay"]
    files = sorted(vectors.cache_folder().rglob("*.npy"))
    assert len(files) == 2
    np.save(files[0], np.full(8, 7, np.float32))
    assert (vectors.vectors(["push", "stay"], "letters") == 7).all(1).sum() == 1
    for file in files:
        file.write_bytes(b"half a file")
    np.testing.assert_array_equal(vectors.vectors(["Push!", " stay"], "letters"), first)
    assert vectors.vectors([], "letters").shape == (0, 8)


def test_a_cached_vector_needs_no_encoder(monkeypatch):
    folder = vectors.cache_folder() / "vectors" / encoders.encoder_hash("minilm-l3")
    row = np.linspace(-1, 1, 384, dtype=np.float32)
    vectors._to_cache(folder, "Hop twice!", row)
    monkeypatch.setattr(encoders, "open_encoder", lambda *_: pytest.fail("opened"))
    np.testing.assert_array_equal(vectors.vectors(["hop  twice"])[0], row)


def test_concurrent_writers_leave_whole_files():
    folder = vectors.cache_folder() / "many"
    rows = [np.full(384, i, np.float32) for i in range(8)]
    writers = [
        threading.Thread(
            target=lambda row=row: [vectors._to_cache(folder, "x", row) for _ in range(20)]
        )
        for row in rows
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        while writer.is_alive():
            found = vectors._from_cache(folder, "x")
            assert found is None or (found == found[0]).all()
        writer.join()
    assert [path.suffix for path in folder.iterdir()] == [".npy"]


def test_an_unwritable_cache_is_no_error(tmp_path, letters, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert vectors.vectors(["push"], "letters").shape == (1, 8)
