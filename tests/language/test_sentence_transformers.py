"""Encoders that sentence-transformers runs: the built-in minilm-l6, and models in a folder.

`make test-long` installs it. A missing package fails these tests, so that they are never skipped unseen.
"""

import json
import shutil

import built_in
import numpy as np
import pytest
from test_encoder import encodes_as_shipped, fails

from mavic.language import encoder as encoders
from mavic.language.reader import ablation

pytestmark = pytest.mark.long

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "go", "left", "right", "push", "stay"]


@pytest.fixture
def tiny(tmp_path):
    """A tiny BERT with untrained weights, as Hugging Face saves one."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=32,
        initializer_range=0.5,
    )
    folder = tmp_path / "tiny"
    BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    return folder


def test_minilm_l6_gives_the_shipped_vectors_again():
    encodes_as_shipped("minilm-l6")


def test_a_text_has_the_same_vector_alone_and_in_a_batch_of_longer_texts(tiny):
    opened = encoders.open_encoder(f"path:{tiny}")
    alone, among = opened.encode(["stay"]), opened.encode(["go left push right stay", "stay"])
    np.testing.assert_allclose(alone[0], among[1], atol=1e-5)


def test_a_saved_bert_runs_from_its_folder(tiny):
    opened = encoders.open_encoder(f"path:{tiny}")
    vectors = opened.encode(["go left", "left go", "Go  LEFT!"])
    assert vectors.shape == (3, 16) and opened.dimension == 16
    np.testing.assert_allclose((vectors**2).mean(1), 1, rtol=1e-5)
    np.testing.assert_array_equal(vectors[0], vectors[2])
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-4


def test_pooling_is_over_the_hidden_states(tiny):
    mean, first = (encoders.open_encoder(f"path:{tiny}", p) for p in encoders.POOLINGS)
    states = mean.states(["go left"])[0]
    assert states.shape == (4, 16)  # [CLS] go left [SEP]
    for opened, pooled in ((mean, states.mean(0)), (first, states[0])):
        expected = pooled / np.linalg.norm(pooled) * 4
        np.testing.assert_allclose(opened.encode(["go left"])[0], expected, rtol=1e-5)
    assert mean.hash != first.hash
    assert len(mean.states(["go " * 200])[0]) == 32  # cut at the model's longest text


def test_another_model_in_the_folder_has_another_hash(tiny):
    before = encoders.encoder_hash(f"path:{tiny}")
    other = tiny.with_name("other")
    shutil.copytree(tiny, other)
    assert encoders.encoder_hash(f"path:{other}") == before
    (other / "vocab.txt").write_text("\n".join([*WORDS[:-1], "wait"]))
    encoders._opened.cache_clear()
    assert encoders.encoder_hash(f"path:{other}") != before


def test_a_folder_that_cannot_be_loaded_is_an_error_and_its_code_is_not_run(tiny, tmp_path):
    name = f"path:{tiny}"
    ran = tmp_path / "ran"
    (tiny / "own.py").write_text(f"open({str(ran)!r}, 'w')")
    (tiny / "modules.json").write_text(json.dumps([{"type": "own.Module", "path": ""}]))
    fails(name, "names 'own.Module'; code that comes with a model is not run")
    (tiny / "modules.json").write_text("{")
    fails(name, "not a list of modules")
    (tiny / "modules.json").unlink()
    (tiny / "config.json").write_text("{")
    fails(name, "sentence-transformers cannot load it")
    assert not ran.exists()


def test_the_ablation_classifies_by_an_untrained_bert():
    """The accuracies are those in docs/record/words.md."""
    file, phrases = built_in.instructions("warehouse"), built_in.phrases("warehouse")
    rows = ablation.ablation(file, phrases, ("random bert mean scaled",))
    assert [round(100 * row.accuracy) for row in rows] == [100, 92]
