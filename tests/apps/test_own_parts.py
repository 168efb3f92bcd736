"""An encoder and a network of one's own: configured, trained, kept in a policy file, found in the user's module."""

from __future__ import annotations

import dataclasses
import sys

import fake_training
import jax
import jax.numpy as jnp
import pytest

from mavic.apps import cli
from mavic.experiment.config import ExperimentConfig
from mavic.language import encoder as encoders
from mavic.learn import backbones, cells, networks
from mavic.session import runner
from mavic.teams import file as policy_files
from mavic.teams.facts import PolicyError
from mavic.training import checkpoint
from mavic.training.groups import Group, groups_of

CONFIG = dataclasses.replace(fake_training.CONFIG, hear="vectors", encoder="letters")
MODULE = """
from mavic.language import encoder
encoder.OWN["letters"] = encoder.from_function("letters", lambda texts: [[len(t), 1] for t in texts])
"""


def letters(texts):
    return [[1 + text.count(letter) for letter in "aeinorst"] for text in texts]


def cell(weight, memory, inputs):
    memory = jnp.tanh(jnp.concatenate([inputs, memory], axis=-1) @ weight)
    return memory, memory


@pytest.fixture
def own(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = encoders.from_function("letters", letters)
    monkeypatch.setitem(encoders.OWN, "letters", made)
    init = lambda key, i, h: jax.random.normal(key, (i + h, h))  # noqa: E731
    monkeypatch.setitem(cells.CELLS, "tanh", cells.Cell(init, cell))
    monkeypatch.setitem(networks.NETWORKS, "tanh", {"parts": 2, "cell": "tanh"})
    yield
    backbones._of_own_cell.cache_clear()


def trained_policy(path, config):
    group = Group(configs=(config,), seeds=(3,), preset=fake_training.group_of(1).preset)
    with fake_training.fake():
        trained = runner.train_group(group, points=1, num_envs=4, console=fake_training.QUIET)
    return trained.save_team(path, config, 3)


def test_an_encoder_needs_agents_that_hear_vectors():
    with pytest.raises(ValueError, match="hear must be 'vectors'"):
        ExperimentConfig(encoder="letters")


@pytest.mark.parametrize(
    "name, short",
    [("minilm-l6", "minilm-l6"), ("path:/home/me/bert base/", "bert-base"), ("hf:a/b", "b")],
)
def test_its_name_stands_in_file_names(name, short):
    config = ExperimentConfig(hear="vectors", encoder=name)
    assert config.table_group() == f"default/residual+vectors+{short}/live/by-kind"
    assert ExperimentConfig(hear="vectors").table_group() == "default/residual+vectors/live/by-kind"


def test_trainings_with_two_encoders_are_two_programs(own):
    both = [CONFIG, dataclasses.replace(CONFIG, encoder=encoders.DEFAULT)]
    groups = groups_of(both, (0,))
    assert len(groups) == 2
    assert len({checkpoint._name_of(group) for group in groups}) == 2


def test_a_policy_remembers_its_encoder(own, tmp_path, monkeypatch):
    path = trained_policy(tmp_path / "team", CONFIG)
    team = policy_files.load(path)
    assert (team.facts["encoder"], team.shape.embedding) == ("letters", 8)
    assert team.origin()[1].vectors.shape[1] == 8
    other = encoders.from_function("letters", letters, version="2")
    monkeypatch.setitem(encoders.OWN, "letters", other)
    with pytest.raises(PolicyError, match="its vectors mean something else"):
        policy_files.load(path)
    monkeypatch.delitem(encoders.OWN, "letters")
    with pytest.raises(PolicyError, match="encoder 'letters' is unknown"):
        policy_files.load(path)


def test_a_policy_with_a_network_of_ones_own_acts(own, tmp_path):
    config = dataclasses.replace(fake_training.CONFIG, network="tanh")
    team = policy_files.load(trained_policy(tmp_path / "team", config))
    observation = jnp.zeros((2, team.observation))
    macros, _ = team.act(jax.random.key(0), team.start(), observation, "stay")
    assert team.shape.cell == "tanh" and macros.shape == (2,)


def test_acac_takes_no_other_network(own):
    config = dataclasses.replace(fake_training.CONFIG, network="tanh", backbone="acac")
    (group,) = groups_of([config], (0,))
    with pytest.raises(ValueError, match="acac has networks of its own"):
        runner.train_group(group, console=fake_training.QUIET)


@pytest.mark.parametrize("bad", [lambda texts: [1.0], lambda texts: [[float("nan")]] * len(texts)])
def test_a_function_that_gives_no_vectors_is_refused(bad):
    with pytest.raises(encoders.EncoderError, match="should give 1 rows of finite numbers"):
        encoders.from_function("bad", bad)


def test_the_module_of_an_encoder_is_loaded_only_if_it_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(encoders, "OWN", {})
    monkeypatch.setattr("sys.path", list(sys.path))
    (tmp_path / "my_own_words.py").write_text(MODULE)
    line = "train box_pushing --hear vectors --encoder letters --print-config"
    cli.main([*line.split(), "--plugins", "my_own_words"])
    assert 'encoder = "letters"' in capsys.readouterr().out and encoders.OWN


def test_an_unknown_encoder_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        cli.main(["train", "box_pushing", "--hear", "vectors", "--encoder", "minilm"])
    assert "encoder 'minilm' is unknown; did you mean 'minilm-l" in capsys.readouterr().err
