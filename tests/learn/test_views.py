"""One actor for the whole team: combinations of macros, and choices that fit what busy agents do."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small_ticks

from mavic.experiment.methods import preset_of, static_config_of
from mavic.learn import act
from mavic.learn.backbones import BACKBONES
from mavic.learn.networks import NETWORKS, Shape
from mavic.learn.views import VIEWS, _joint_macro, joint_available, split_macro
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


def clock(number):
    return [np.sin(number), np.cos(number)]


@pytest.mark.parametrize("view, dropped", [("team", False), ("team", True), ("tokens", True)])
def test_in_the_teams_ticks_all_agents_stand_side_by_side(view, dropped):
    """Three agents in two environments. Every number is looked up tick by tick and agent by agent."""
    agents, counts = 3, (3, 4, 5)
    ticks = small_ticks.ticks_of(5, agents)
    random = np.random.default_rng(0)
    for name in ("available", "forbidden", "complied", "bootstraps_from_self"):
        ticks[name] = random.random(ticks[name].shape) < 0.5
    ticks["unfinished"] |= ticks["ended"] & (random.random(ticks["ended"].shape) < 0.3)
    shape = Shape(
        observation=2, macros=5, agents=agents, embedding=1, macro_counts=counts, last_macro=True
    )
    rows = jax.tree.map(jnp.asarray, small_ticks.timestep(ticks))
    made = VIEWS[view].ticks(VIEWS[view].widen(shape), rows, dropped)
    team_began = 0
    for w, t in zip(*np.nonzero(ticks["alive"].T), strict=True):  # one environment after another
        own = {name: x[t, w] for name, x in ticks.items()}
        new = own["ended"] & ~own["unfinished"] if dropped else own["ended"]
        team_began = t if own["fresh"].any() else team_began
        seen, then = [], []
        for i in range(agents):
            began = max(s for s in range(t + 1) if ticks["fresh"][s, w, i])
            received, now = ticks["time"][began, w] + 1, own["time"] + 2
            time = clock(received) if view == "tokens" else []
            later = (clock(now) if new[i] else time) if view == "tokens" else []
            after = own["next_observation"][i] if new[i] else own["observation"][i]
            macro = own["macro"][i] if new[i] else own["last_macro"][i]
            seen += [*own["observation"][i], *time, *(own["last_macro"][i] == np.arange(5))]
            then += [*after, *later, *(macro == np.arange(5))]
        if view == "tokens":
            seen, then = [*seen, *ticks["fresh"][team_began, w]], [*then, *new]
        np.testing.assert_allclose(made.observation[t, w], [seen], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(made.next_observation[t, w], [then], rtol=1e-4, atol=1e-5)
        first, second, third = own["macro"]
        for name, want in dict(
            available=own["available"].reshape(-1), forbidden=own["forbidden"].reshape(-1),
            macro=first * 20 + second * 5 + third, last_macro=-1, fresh=own["fresh"].any(),
            context=own["context"].max(), complied=own["complied"].all(), ended=own["ended"].any(),
            unfinished=own["unfinished"].all(), bootstraps_from_self=own["bootstraps_from_self"].any(),
        ).items():  # fmt: skip
            assert getattr(made, name)[t, w].tolist() == [np.asarray(want).tolist()], name
        assert made.phrase[t, w].tolist() == own["phrase"].tolist()
        assert made.reward[t, w].tolist() == pytest.approx([own["reward"].mean()], abs=1e-6)


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
