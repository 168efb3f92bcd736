"""The lexicon: the arrays in which training looks phrases up."""

import subprocess
import sys

import built_in
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mavic.instruct import spec as instructions
from mavic.language import lexicon as lexicons
from mavic.language.lexicon import Lexicon

WORLDS = built_in.WORLDS


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("world", WORLDS)
def test_rows_are_silence_then_phrases_then_spare_rows(world):
    lexicon = built_in.lexicon(world)
    vectors, kind = np.asarray(lexicon.vectors), np.asarray(lexicon.kind)
    assert vectors.dtype == np.float32 and vectors.shape == (len(lexicon.texts), 384)
    assert not vectors[0].any() and not vectors[-lexicons.SPARE :].any()
    np.testing.assert_allclose((vectors[1 : -lexicons.SPARE] ** 2).mean(1), 1, rtol=1e-5)
    assert kind[0] == 0 and not kind[-lexicons.SPARE :].any() and kind[1 : -lexicons.SPARE].all()
    file = built_in.instructions(world)
    assert lexicon.names == ("none", *file.names())
    row = lexicon.texts.index(file.kinds[1].held_out[0])
    assert kind[row] == 2 and bool(lexicon.held_out[row])


@pytest.mark.parametrize("world", WORLDS)
def test_the_table_draws_every_training_phrase_and_no_other(world):
    lexicon = built_in.lexicon(world)
    share = jnp.linspace(0, 1, 500, endpoint=False)

    @jax.jit
    def draw(kind, u):
        return lexicon.table[kind, jnp.floor(u * lexicon.count[kind]).astype(int)]

    file = built_in.instructions(world)
    for number, kind in enumerate(file.kinds, start=1):
        drawn = {lexicon.texts[row] for row in np.asarray(draw(number, share))}
        assert drawn == set(kind.train)
    assert int(lexicon.count[0]) == 0 and not np.asarray(lexicon.table[0]).any()


def test_part_of_a_file_makes_a_smaller_lexicon():
    import dataclasses

    file = built_in.instructions("overcooked")
    nine = Lexicon.make(dataclasses.replace(file, kinds=file.kinds[:9]))
    assert nine.names[-1] == "partner-chops" and nine.table.shape[0] == 10


def test_built_in_phrases_need_no_encoder_package():
    """As on a machine without onnxruntime, tokenizers and weights."""
    code = (
        "import sys\n"
        "for name in ('onnxruntime', 'tokenizers', 'sentence_transformers'): sys.modules[name] = None\n"
        "from mavic.language.lexicon import Lexicon\n"
        "from mavic.language.reader.read import understand\n"
        "for path in sys.argv[1:]:\n"
        "    for encoder in ('minilm-l3', 'minilm-l6'):\n"
        "        loaded = Lexicon.load(path, encoder)\n"
        "        assert understand(loaded, loaded.texts[1]).kind == loaded.names[1]\n"
        "assert 'mavic.envs' not in sys.modules\n"
    )
    paths = [str(built_in.instruction_path(world)) for world in WORLDS]
    subprocess.run([sys.executable, "-c", code, *paths], check=True, timeout=120)


def test_a_missing_instruction_file_is_named():
    with pytest.raises(instructions.InstructionFileError, match="no such file"):
        Lexicon.load("nowhere.toml")


def test_a_lexicon_names_its_encoder():
    three, six = (built_in.lexicon("warehouse", name) for name in ("minilm-l3", "minilm-l6"))
    assert (three.encoder, six.encoder) == ("minilm-l3", "minilm-l6")
    assert three.encoder_hash != six.encoder_hash
    assert not np.allclose(three.vectors, six.vectors)
