"""Two instructions at once: an actor runs once for each, and keeps both."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_team import CELL

from mavic.experiment.methods import preset_of, static_config_of
from mavic.learn import act, cells
from mavic.learn.views import split_macro

STEPS, AGENTS, COUNTS, MOST = 4, 2, (4, 6), 6
# What agents hear of the first and of the second instruction, one case for each environment.
FIRST = np.array([[1, 1], [1, 1], [0, 0], [1, 0], [0, 0], [1, 0], [0, 1]])
SECOND = np.array([[2, 2], [0, 0], [2, 2], [0, 2], [0, 0], [2, 2], [0, 2]])
# Which of the two each agent goes by: 1, 2, or both (3). Whoever is told nothing goes by the first that holds.
GOES_BY = np.array([[3, 3], [1, 1], [2, 2], [1, 2], [1, 1], [3, 2], [1, 3]])
WIDTH = len(FIRST)
VECTORS = jnp.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])


def network_of(name, backbone="mac-iac"):
    named = "residual" if name == "cell" else name
    static = static_config_of(
        preset_of("tuned", "box_pushing", backbone), named, backbone,
        observation=5, macro_counts=COUNTS, embedding=3, kinds=2,
    )  # fmt: skip
    made = static.network
    return cells.from_cell(made.shape, *CELL) if name == "cell" else made


def actors_of(network):
    """Return actors with large random weights, so that what they hear matters."""
    random, shape = np.random.default_rng(1), network.shape
    one = jax.eval_shape(lambda: network.init(jax.random.key(0), shape, "actor"))
    made = jax.tree.map(lambda x: random.normal(size=(shape.count, *x.shape)), one)
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), made)


def decisions():
    """Return the inputs of several decisions: observations, last macros, who decides, and what is available."""
    random = np.random.default_rng(0)
    observation = random.normal(size=(STEPS, WIDTH, AGENTS, 5)).astype(np.float32)
    macro = random.integers(0, 4, (STEPS, WIDTH, AGENTS))
    idle = random.random((STEPS, WIDTH, AGENTS)) < 0.7
    idle[0] = True
    available = random.random((STEPS, WIDTH, AGENTS, MOST)) < 0.7
    available[..., 0] = True
    available &= np.arange(MOST) < np.array(COUNTS)[:, None]
    np.put_along_axis(available, macro[..., None], True, -1)
    return observation, macro, idle, available


@partial(jax.jit, static_argnames="network")
def decided(network, actors, phrase, also=None):
    """Return logits [S, G, W, M] at each decision, and the memory [S, G, P, W, H] after it."""
    actors = act.project(network, actors, VECTORS)

    def decide(memory, row):
        (observation, macro, idle, available), step, phrase, also = row
        observed = act.Observed(
            observation=observation, last_macro=macro, phrase=phrase, earlier_macro=macro,
            time=jnp.full(WIDTH, step), also=also,
        )  # fmt: skip
        logits, memory = act._policy_logits(network, actors, memory, observed, idle, available)
        return memory, (logits, memory)

    start = act.empty_memory(network, WIDTH, second=also is not None)
    inputs = jax.tree.map(jnp.asarray, decisions())
    return jax.lax.scan(decide, start, (inputs, jnp.arange(STEPS), phrase, also))[1]


def choices_of(network):
    """Return bool [S, G, W, M], what each network can choose: in a joint actor, what fits the macros that run."""
    _, macro, idle, available = decisions()
    if not network.shape.joint:
        return available.swapaxes(1, 2)
    each = np.asarray(split_macro(COUNTS, jnp.arange(24)))  # [24, N]
    kept = (each == macro[:, :, None]) | idle[:, :, None]
    free = np.stack([available[:, :, agent, each[:, agent]] for agent in range(AGENTS)], -1)
    return (kept & free).all(-1)[:, None]


def softmax(logits, choices):
    scores = np.where(
        choices, np.exp(logits - logits.max(-1, keepdims=True, where=choices, initial=-99)), 0
    )
    return scores / scores.sum(-1, keepdims=True)


@pytest.mark.parametrize(
    "name, backbone",
    [
        ("residual", "mac-iac"),
        pytest.param("shared", "mac-iac", marks=pytest.mark.long),
        pytest.param("cell", "mac-iac", marks=pytest.mark.long),
        pytest.param("residual", "mac-cac", marks=pytest.mark.long),
    ],
)
def test_each_instruction_is_heard_alone_and_both_are_kept(name, backbone):
    """The second begins at the second decision. Three histories: with both, with the first, with the second."""
    network = network_of(name, backbone)
    first = np.broadcast_to(FIRST, (STEPS, *FIRST.shape))
    second = np.where(np.arange(STEPS)[:, None, None] > 0, SECOND, 0)
    actors = actors_of(network)
    logits, memory = decided(network, actors, first, second)
    alone = [decided(network, actors, phrase) for phrase in (first, second, np.zeros_like(first))]
    (one, other, silent), memories = zip(*alone, strict=True)
    np.testing.assert_array_equal(memory, np.stack(memories, axis=1))
    heard = memory[-1, :, :, -1, 0]  # of the part that hears, where both are said to all
    assert all(np.abs(heard[i] - heard[j]).max() > 1e-2 for i, j in ((0, 1), (0, 2), (1, 2)))

    goes_by = GOES_BY.T
    if network.shape.joint:
        goes_by = np.where(FIRST.any(-1), 1, 0) + np.where(SECOND.any(-1), 2, 0)
        goes_by = np.maximum(goes_by, 1)[None]
    np.testing.assert_array_equal(logits[0, :, [1, 3, 4]], one[0, :, [1, 3, 4]])  # no second yet
    np.testing.assert_array_equal(logits[1:, goes_by == 1], one[1:, goes_by == 1])
    np.testing.assert_array_equal(logits[1:, goes_by == 2], other[1:, goes_by == 2])
    found, first, second, neither = (
        softmax(np.asarray(x), choices_of(network)) for x in (logits, one, other, silent)
    )
    with np.errstate(divide="ignore", invalid="ignore"):  # what cannot be chosen has probability 0
        further = [np.maximum(x / neither, neither / x) for x in (first, second)]
    wanted = np.where(further[0] >= further[1], first, second)
    wanted /= wanted.sum(-1, keepdims=True)
    np.testing.assert_allclose(
        found[1:, goes_by == 3], wanted[1:, goes_by == 3], rtol=1e-3, atol=1e-6
    )
    assert np.abs(one - other)[1:, goes_by == 3].max() > 0.1  # the two do differ


def both(one, other, silent, choices=(True, True, True)):
    """Return the policy under two instructions from probabilities under each alone and under neither."""
    logits = (jnp.log(jnp.array(p)) for p in (one, other, silent))
    return np.asarray(jax.nn.softmax(act._both_kept(*logits, jnp.array(choices))))


def test_what_one_instruction_changes_is_kept_where_the_other_changes_nothing():
    """The first forbids macro 0 and turns to macro 1, which is never chosen otherwise."""
    usual, changed = [0.98, 0.01, 0.01], [0.01, 0.98, 0.01]
    np.testing.assert_allclose(both(changed, usual, usual), changed, rtol=1e-4)
    np.testing.assert_allclose(both(usual, changed, usual), changed, rtol=1e-4)


def test_two_instructions_that_ask_for_the_same_are_one():
    usual, changed = [0.98, 0.01, 0.01], [0.01, 0.69, 0.3]
    np.testing.assert_allclose(both(changed, changed, usual), changed, rtol=1e-4)


def test_what_either_forbids_is_not_chosen():
    """Macro 0 is forbidden by the first, macro 1 by the second. Each is the usual one or is not wished for more."""
    found = both([1e-4, 0.5, 0.4999], [0.5, 1e-4, 0.4999], [0.4, 0.4, 0.2])
    assert found[2] > 0.99 and found[:2].max() < 1e-3
    found = both([1e-4, 0.5, 0.4999], [0.98, 1e-4, 0.0199], [0.98, 0.01, 0.01])
    assert found[2] > 0.99 and found[:2].max() < 1e-3


def test_what_cannot_be_chosen_does_not_weigh():
    """What one instruction would like most is not available. What is left is compared as if it were all there is."""
    found = both([0.98, 0.01, 0.01], [0.02, 0.49, 0.49], [0.9, 0.05, 0.05], (False, True, True))
    np.testing.assert_allclose(found, [0, 0.5, 0.5], atol=1e-6)
