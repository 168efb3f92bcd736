"""Policy files: a loaded team decides as the rollout does, and damage is found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import teams

import mavic
from mavic.language import heard
from mavic.language.vectors import vectors as vectors_of
from mavic.learn import act
from mavic.teams import facts as policy_facts
from mavic.teams import file as policy_file
from mavic.teams.facts import PolicyError
from mavic.teams.stage import Stage
from mavic.types import replace

SHIPPED = Path(__file__).parents[2] / "policies"
TEXTS = ["don't push", None, "go to the small boxes", "stay where you are"]


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    """An untrained team that hears sentence vectors."""
    folder = tmp_path_factory.mktemp("team")
    path = teams.untrained(folder, "box_pushing", network="protected", hear="vectors")
    return mavic.load_policy(path)


def inputs(team, steps=8):
    """Random decisions: key, observation, who is idle, and what each agent hears."""
    random = np.random.default_rng(3)
    for step in range(steps):
        observation = random.normal(size=(team.shape.agents, team.shape.observation))
        idle = random.random(team.shape.agents) < 0.7
        said = [TEXTS[step % 4], TEXTS[(step // 2) % 4]]
        yield jax.random.key(step), observation.astype(np.float32), idle, said


@pytest.mark.long
def test_a_team_decides_as_the_networks_do_with_fresh_phrases(team):
    """The cache of sentences changes nothing: each step is compared with phrases projected anew."""
    network, shape, weights = team.networks.actor, team.shape, team.weights
    carry, memory = team.start(), act.empty_memory(network, 1, second=True)
    last_macro = jnp.full((1, 2), -1)
    everything = jnp.ones((1, shape.agents, shape.macros), bool)
    for step, (key, observation, idle, said) in enumerate(inputs(team)):
        besides = [None, "stay where you are"] if step > 3 else [None, None]  # a second begins
        known = sorted({text for text in (*said, *besides) if text})
        vectors = np.zeros((4, shape.embedding), np.float32)
        if known:
            vectors[1 : 1 + len(known)] = vectors_of(known, team.facts["encoder"])
        vectors = jnp.asarray(vectors)
        observed = act.Observed(
            observation=jnp.asarray(observation)[None],
            last_macro=last_macro,
            **{
                name: jnp.array([[1 + known.index(text) if text else 0 for text in texts]])
                for name, texts in (("phrase", said), ("also", besides))
            },
        )
        expected = act.values(
            network,
            act.project(network, weights.critic, vectors),
            weights.scale,
            carry.critic,
            observed,
            # all these sentences replace the task of the agents that hear one
            jnp.array([[1 + any(own) if known else 0 for own in zip(said, besides, strict=True)]]),
            jnp.ones((1, 2), bool),
        )
        found = team.values(carry, observation, said, besides)["text"]
        np.testing.assert_allclose(found, expected[0], rtol=1e-4, atol=1e-3)
        last_macro, memory = act.decide(
            network,
            act.project(network, weights.actor, vectors),
            memory,
            observed,
            jnp.asarray(idle)[None],
            everything,
            jnp.zeros((1, 1)),
            jax.random.uniform(key, (1, shape.agents)),
        )
        also = besides if any(besides) else None
        macro, carry = team.act(
            key, carry, observation, said, idle, available=everything[0], also=also
        )
        assert macro.tolist() == last_macro[0].tolist()
        np.testing.assert_allclose(carry.actor, memory, atol=1e-5)


@pytest.mark.parametrize(
    "name", sorted(SHIPPED.glob("*/*.json")), ids=lambda p: p.parent.name + p.stem
)
def test_shipped_teams_carry_the_hashes_of_their_files(name):
    facts = json.loads(name.read_text())
    assert len(facts["weights_sha256"]) == len(facts["sha256"]) == 64
    policy_facts.read_facts(name.with_suffix(""))


def test_a_scale_of_values_that_rests_on_nothing_is_refused(listener, tmp_path):
    """Values would be no numbers."""
    weights = listener.weights
    scale = replace(weights.scale, weight=0 * weights.scale.weight)
    path = policy_file.save(tmp_path / "team", replace(weights, scale=scale), listener.facts)
    with pytest.raises(PolicyError, match="the weight of the scale of values must be above 0"):
        mavic.load_policy(path)


def test_a_guest_joins_only_a_team_that_sees_and_does_the_same_beside_one():
    facts = policy_facts.read_facts(SHIPPED / "overcooked" / "mavic")
    assert Stage.guest_options(facts) == {"cooks": 3, "third_cook": False}
    shape = {**facts["shape"], "observation": facts["shape"]["observation"] + 1}
    assert Stage.guest_options({**facts, "shape": shape}) is None
    assert Stage.guest_options({**facts, "agents": ["cook_0", "cook_1", "cook_2"]}) is None
    wrong = {**facts["config"], "options": {"task": "nothing"}}
    assert Stage.guest_options({**facts, "config": wrong}) is None
    assert Stage.guest_options(policy_facts.read_facts(SHIPPED / "box_pushing" / "mavic")) is None


@pytest.fixture(scope="module")
def listener(tmp_path_factory):
    """An untrained team of the warehouse that hears kinds, from its file."""
    path = teams.untrained(tmp_path_factory.mktemp("teams"), "warehouse")
    return mavic.load_policy(path)


def test_a_team_that_hears_kinds_hears_what_was_understood(listener):
    """Its training phrases are one-hot, free sentences the reader's probabilities, others silence."""
    lexicon = listener._task.lexicon
    assert listener.hear == "kinds" and listener.shape.embedding == len(listener.kinds) == 3
    trained, free, unclear = "bring tool 1 first", "could tool two come before the rest", "hm hm"
    assert trained in lexicon.texts and free not in lexicon.texts
    shares = heard.kinds_asked(lexicon, [trained, free]).shares
    assert shares[0].tolist() == [0.0, 1.0, 0.0] and 0 < shares[1].max() < 1
    silence = np.zeros((1, 3), np.float32)
    for text, row in ((trained, shares[0]), (free, shares[1]), (unclear, None), (None, None)):
        listening = listener.listen(text)
        vectors = silence if row is None else np.vstack([silence, row])
        wanted = act.project(listener.networks.actor, listener.weights.actor, jnp.asarray(vectors))
        heard_by = [
            name for name, row in zip(listener.agents, listening.phrase, strict=True) if row
        ]
        assert heard_by == ([] if row is None else ["fetch"])
        found = listening.actors.table["own"][:, listening.phrase.max()]
        np.testing.assert_allclose(found, wanted.table["own"][:, -1], rtol=1e-5, atol=1e-6)


@pytest.mark.long
def test_of_two_sentences_its_critics_hear_the_sum(team):
    """A team that hears vectors; the sum is that of the two sentences' vectors."""
    texts, shape = ["don't push the boxes", "stay"], team.shape
    carry, (_, observation, _, _) = team.start(), next(inputs(team))
    listening = team.listen([texts[0], None], [texts[1], texts[1]])
    assert (listening.phrase > 0).tolist() == [True, False] and all(listening.also > 0)
    one, other = vectors_of(texts, team.facts["encoder"])
    vectors = jnp.stack([jnp.zeros(shape.embedding), one + other, other])
    critics = act.project(team.networks.critic, team.weights.critic, vectors)
    observed = act.Observed(
        observation=jnp.asarray(observation)[None],
        last_macro=jnp.full((1, 2), -1),
        phrase=jnp.array([[1, 2]]),
    )
    wanted = act.values(
        team.networks.critic, critics, team.weights.scale, carry.critic, observed,
        jnp.array([[2, 2]]), jnp.ones((1, 2), bool),
    )  # fmt: skip
    found = team.values(carry, observation, [texts[0], None], [texts[1], texts[1]])
    np.testing.assert_allclose(found["text"], wanted[0], rtol=1e-4, atol=1e-3)
    alone = team.values(carry, observation, [texts[0], None])["text"]
    assert np.abs(alone - found["text"]).max() > 1e-2
    push = team.facts["macros"][0].index("PUSH")
    for key in range(6):
        macro, _ = team.act(
            jax.random.key(key), carry, observation, "keep away from the left box",
            also=texts[0], shield=True,
        )  # fmt: skip
        assert push not in macro.tolist()


def test_two_sentences_that_cannot_hold_together_are_refused(listener):
    observation = np.zeros((3, listener.shape.observation), np.float32)
    how = jax.random.key(0), listener.start(), observation
    with pytest.raises(PolicyError, match="fetch-tool-1-first holds already"):
        listener.act(*how, "bring tool 1 first", also="bring tool 1 first")
    with pytest.raises(PolicyError, match="both change what the world does"):
        listener.act(*how, "bring tool 1 first", also="bring tool 2 first")


def test_it_acts_after_loading_as_its_networks_do(listener):
    network, shape = listener.networks.actor, listener.shape
    random = np.random.default_rng(1)
    kinds = jnp.vstack([jnp.zeros((1, 3)), jnp.eye(3)])
    actors = act.project(network, listener.weights.actor, kinds)
    carry, memory, last = listener.start(), act.empty_memory(network, 1), jnp.full((1, 3), -1)
    everything = jnp.ones((1, shape.agents, shape.macros), bool)
    for step, kind in enumerate((1, 3, 0, 2)):
        observation = jnp.asarray(
            random.normal(size=(shape.agents, shape.observation)), jnp.float32
        )
        phrase = jnp.array([[kind if name == "fetch" else 0 for name in listener.agents]])
        key, idle = jax.random.key(step), jnp.ones((1, 3), bool)
        observed = act.Observed(observation=observation[None], last_macro=last, phrase=phrase)
        draws = jax.random.uniform(key, (1, 3))
        last, memory = act.decide(
            network, actors, memory, observed, idle, everything, jnp.zeros((1, 1)), draws
        )
        text = listener.facts["examples"][kind - 1] if kind else None
        macro, carry = listener.act(key, carry, observation, text, available=everything[0])
        assert macro.tolist() == last[0].tolist()


def test_under_the_shield_it_chooses_only_what_the_sentence_allows(listener):
    """The kind is the one that the reader understands. Without the shield an untrained team disobeys."""
    observation = np.zeros((3, listener.shape.observation), np.float32)
    fetch, text = listener.agents.index("fetch"), "could tool two come before the rest"
    names = listener.facts["macros"][fetch]
    forbidden = {names.index("LOOK_FOR_0"), names.index("LOOK_FOR_1")}

    def chosen(text, **more):
        carry = listener.start()
        return {
            int(listener.act(jax.random.key(k), carry, observation, text, **more)[0][fetch])
            for k in range(40)
        }

    assert forbidden <= chosen(text) and not forbidden & chosen(text, shield=True)
    assert forbidden <= chosen("hm hm", shield=True)  # not understood, so nothing is asked
    counted_as = np.tile(np.arange(listener.shape.macros), (3, 1))
    same = names.index("LOOK_FOR_2")
    assert same in chosen(text, shield=True)
    counted_as[fetch, same] = names.index("LOOK_FOR_0")  # as if it did the other's work
    assert same not in chosen(text, shield=True, effective_macros=counted_as)


@pytest.mark.parametrize("world", ["box_pushing", "overcooked", "warehouse"])
def test_a_flipped_bit_of_a_shipped_team_is_found(world, tmp_path):
    for path in sorted((SHIPPED / world).iterdir()):
        shutil.copy(path, tmp_path / path.name)
    weights = tmp_path / "mavic.safetensors"
    mavic.load_policy(weights)
    data = bytearray(weights.read_bytes())
    data[-1000] ^= 1
    weights.write_bytes(bytes(data))
    with pytest.raises(PolicyError, match=r"mavic\.safetensors: damaged"):
        mavic.load_policy(weights)
    notes = tmp_path / "naive.json"
    notes.write_text(notes.read_text().replace('"seed": ', '"seed": 1'))
    with pytest.raises(PolicyError, match=r"naive\.json: damaged or edited \(its hash differs\)"):
        mavic.load_policy(notes)
