"""Policy files: a loaded team decides as the rollout does, and files of version 0.1 still load."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mavic
from mavic.apps.stage import guest_options
from mavic.experiments import policy_file
from mavic.language import lexicon as lexicons
from mavic.learn import act

SHIPPED = Path(__file__).parents[2] / "policies"
OLD_FACTS = Path(__file__).parent / "policy_format_1.json"  # of policies/box_pushing/mavic
TEXTS = ["don't push", None, "go to the small boxes", "stay where you are"]


@pytest.fixture(scope="module")
def team():
    return mavic.load_policy(SHIPPED / "box_pushing" / "mavic")


def inputs(team, steps=8):
    """Random decisions: key, observation, who is idle, and what each agent hears."""
    random = np.random.default_rng(3)
    for step in range(steps):
        observation = random.normal(size=(team.shape.agents, team.shape.observation))
        idle = random.random(team.shape.agents) < 0.7
        said = [TEXTS[step % 4], TEXTS[(step // 2) % 4]]
        yield jax.random.key(step), observation.astype(np.float32), idle, said


def test_a_team_decides_as_the_networks_do_with_fresh_phrases(team):
    """The cache of sentences changes nothing: each step is compared with phrases projected anew."""
    network, shape, weights = team.network, team.shape, team.weights
    carry, memory = team.start(), act.empty_memory(network, 1)
    last_macro = jnp.full((1, 2), -1)
    everything = jnp.ones((1, shape.agents, shape.macros), bool)
    for key, observation, idle, said in inputs(team):
        known = sorted({text for text in said if text})
        vectors = np.zeros((3, shape.embedding), np.float32)
        if known:
            vectors[1 : 1 + len(known)] = lexicons.vectors(known, team.facts["encoder"])
        vectors = jnp.asarray(vectors)
        observed = act.Observed(
            observation=jnp.asarray(observation)[None],
            last_macro=last_macro,
            phrase=jnp.array([[1 + known.index(text) if text else 0 for text in said]]),
        )
        expected = act.values(
            network,
            act.project(network, weights.critic, vectors),
            weights.scale,
            carry.critic,
            observed,
            jnp.ones((1, 2), bool),
        )
        found = team.values(carry, observation, said)["text"]
        np.testing.assert_allclose(found, expected[0], rtol=1e-4, atol=1e-3)
        last_macro, memory = act.decide(
            network,
            act.project(network, weights.actor, vectors),
            memory,
            observed,
            jnp.asarray(idle)[None],
            everything,
            jnp.zeros(2),
            jax.random.uniform(key, (1, shape.agents)),
        )
        macro, carry = team.act(key, carry, observation, said, idle, available=everything[0])
        assert macro.tolist() == last_macro[0].tolist()
        np.testing.assert_allclose(carry.actor, memory, atol=1e-5)


def test_a_file_of_version_0_1_loads_and_acts_alike(team, tmp_path):
    shutil.copy(SHIPPED / "box_pushing" / "mavic.safetensors", tmp_path / "old.safetensors")
    shutil.copy(OLD_FACTS, tmp_path / "old.json")
    written = json.loads(OLD_FACTS.read_text())
    assert written["format"] == 1 and "cell" in written and "trace" in written["preset"]
    old = mavic.load_policy(tmp_path / "old")
    assert policy_file.origin(old)[0] == policy_file.origin(team)[0]
    assert policy_file.origin(old)[2] == policy_file.origin(team)[2]
    mine, its = team.start(), old.start()
    for key, observation, idle, said in inputs(team):
        first, mine = team.act(key, mine, observation, said, idle)
        second, its = old.act(key, its, observation, said, idle)
        assert first.tolist() == second.tolist()
    np.testing.assert_array_equal(mine.critic, its.critic)


def test_old_facts_are_translated_to_those_that_are_shipped(tmp_path):
    (tmp_path / "old.json").write_text(OLD_FACTS.read_text())
    shipped = json.loads((SHIPPED / "box_pushing" / "mavic.json").read_text())
    assert shipped["format"] == policy_file.FORMAT
    translated = json.loads(json.dumps(policy_file.read_facts(tmp_path / "old")))
    hashes = {name: shipped.pop(name) for name in ("weights_sha256", "sha256")}
    assert translated == shipped and all(len(found) == 64 for found in hashes.values())


def test_an_old_option_of_the_environment_is_translated(tmp_path):
    facts = json.loads(OLD_FACTS.read_text())
    facts["cell"]["options"] = {"size": 4, "rules": "reference"}
    (tmp_path / "old.json").write_text(json.dumps(facts))
    found = policy_file.read_facts(tmp_path / "old")
    assert found["config"]["options"] == {"size": 4, "dynamics": "reference"}


def test_a_guest_joins_only_a_team_that_sees_and_does_the_same_beside_one():
    facts = policy_file.read_facts(SHIPPED / "overcooked" / "mavic")
    assert guest_options(facts) == {"cooks": 3, "third_cook": False}
    shape = {**facts["shape"], "observation": facts["shape"]["observation"] + 1}
    assert guest_options({**facts, "shape": shape}) is None
    assert guest_options({**facts, "agents": ["cook_0", "cook_1", "cook_2"]}) is None
    wrong = {**facts["config"], "options": {"task": "nothing"}}
    assert guest_options({**facts, "config": wrong}) is None
    assert guest_options(policy_file.read_facts(SHIPPED / "box_pushing" / "mavic")) is None
