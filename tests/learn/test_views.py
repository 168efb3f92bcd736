"""One actor for the whole team: combinations of macros, and choices that fit what busy agents do."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mavic.experiment.methods import preset_of, static_config_of
from mavic.learn import act
from mavic.learn.backbones import BACKBONES
from mavic.learn.networks import NETWORKS
from mavic.learn.views import _joint_macro, joint_available, split_macro
from mavic.types import replace

COUNTS = (2, 3, 2)


def test_the_first_agents_macro_counts_most():
    every = jnp.arange(12)
    macros = split_macro(COUNTS, every)
    assert macros[:4].tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1]]
    assert macros[6].tolist() == [1, 0, 0]
    assert _joint_macro(COUNTS, macros).tolist() == every.tolist()


def test_a_combination_is_available_if_each_macro_is():
    available = jnp.array([[True, False, False], [True, False, True], [False, True, False]])
    found = joint_available(COUNTS, available)
    assert split_macro(COUNTS, jnp.flatnonzero(found)).tolist() == [[0, 0, 1], [0, 2, 1]]


@pytest.mark.parametrize("greedy", [False, True])
def test_one_actor_chooses_as_if_busy_agents_had_been_drawn(greedy):
    """Agent 1 is busy with macro 2: the behaviour policy given that, agents 0 and 2 drawn together."""
    draws = (np.arange(4000) + 0.5) / 4000
    logits = np.random.default_rng(0).normal(size=12)
    epsilon, width = 0.3, len(draws)

    def wide(x):
        return jnp.broadcast_to(jnp.asarray(x), (width, *np.shape(x)))

    chosen = jax.jit(partial(act._choose_jointly, COUNTS, greedy=greedy))(
        wide(np.array([-1, 2, 1])),
        wide(np.array([True, False, True])),
        wide(logits.astype(np.float32)),
        wide(np.ones((3, 3), bool)),
        wide(np.float32(epsilon)),
        jnp.asarray(draws, jnp.float32),
    )
    policy = (1 - epsilon) * np.exp(logits) / np.exp(logits).sum() + epsilon / 12
    given = policy.reshape(COUNTS)[:, 2]
    counted = np.zeros((2, 2))
    np.add.at(counted, (chosen[:, 0], chosen[:, 2]), 1 / width)
    assert (chosen[:, 1] == 2).all()
    want = np.zeros(4) if greedy else given / given.sum()
    if greedy:
        want[given.argmax()] = 1.0
    np.testing.assert_allclose(counted.reshape(-1), want.reshape(-1), atol=2e-3)


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("network", NETWORKS)
def test_every_backbone_has_every_network(backbone, network):
    """The shapes fit together: what a view shows is what its network takes."""
    static = static_config_of(
        preset_of("tuned", "box_pushing", backbone),
        network,
        backbone,
        observation=5,
        macro_counts=(4, 6),
        embedding=3,
        kinds=2,
    )
    for made, role in ((static.network, "actor"), (static.critic, "critic")):
        shape = made.shape
        params = jax.eval_shape(partial(made.init, shape=shape, role=role), jax.random.key(0))
        observed = act.Observed(
            observation=jnp.zeros((7, 2, 5)),
            last_macro=jnp.zeros((7, 2), int),
            phrase=jnp.zeros((7, 2), int),
            earlier_macro=jnp.zeros((7, 2), int),
            time=jnp.zeros(7, int),
        )

        def heads(params, made=made, observed=observed):
            nets = jax.tree.map(
                lambda x: jnp.stack([jnp.zeros(x.shape)] * made.shape.count), params
            )
            nets = act.project(made, nets, jnp.zeros((4, 3)))
            memory = act.empty_memory(made, 7)
            return act._step(made, nets, memory, observed, jnp.ones((7, 2), bool))

        found, memory = jax.eval_shape(partial(heads, params))
        out = 2 if role == "critic" else 24 if backbone == "mac-cac" else 6
        assert found.shape == (shape.count, shape.parts, 7, out)
        assert memory.shape[:3] == (shape.count, shape.parts, 7)
        if role == "actor":
            macro, memory = jax.eval_shape(partial(under_two, made, observed), params)
            assert macro.shape == (7, 2) and memory.shape[:4] == (3, shape.count, shape.parts, 7)


def under_two(network, observed, params):
    """Return what a team chooses under two instructions, and its memory."""
    nets = jax.tree.map(lambda x: jnp.stack([jnp.zeros(x.shape)] * network.shape.count), params)
    return act.decide(
        network, act.project(network, nets, jnp.zeros((4, 3))),
        act.empty_memory(network, 7, second=True), replace(observed, also=observed.phrase),
        jnp.ones((7, 2), bool), jnp.ones((7, 2, 6), bool), jnp.zeros((7, 1)), jnp.zeros((7, 2)),
    )  # fmt: skip
