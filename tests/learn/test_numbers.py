"""Every number of the update against an independent computation in float64 (`independent.py`).

The recorded updates of the reference leave these off: hysteresis, normalization, balance, lambda, entropy, PopArt,
clipping, corrections. One compiled program serves all cases; each case is another set of numbers.
"""

from __future__ import annotations

from functools import cache

import independent as plain
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small_batch

from mavic.experiment.methods import hyperparams_of, static_config_of
from mavic.learn import backbones, batches, update
from mavic.learn.popart import Scale
from mavic.learn.returns import CORRECTIONS
from mavic.preset import Preset
from mavic.types import replace

N_STEPS, DONE = 3, 600  # episodes trained so far, of 1000
BASE = Preset(
    episodes=1000,
    gamma=small_batch.GAMMA,
    n_steps=N_STEPS,
    td_lambda=0.7,
    epsilon_end=(0.1, 0.2, 0.3),
    epsilon_episodes=2000,
    entropy_start=(0.5, 0.3, 0.2),
    entropy_episodes=1500,
    actor_hysteresis=(0.1, 0.5, 0.8),
    actor_hysteresis_end=(0.3, 0.2, 0.9),
    critic_hysteresis=(0.2, 0.6, 0.9),
    hysteresis_end=(0.4, 0.5, 1.0),
    balance_kinds=True,
    center_advantages=(0.0, 1.0, 1.0),
    normalize_advantages=(0.0, 1.0, 0.0),
    advantage_scale=(1.0, 0.5, 2.0),
    allowed_loss=(0.0, 0.3, 0.6),
    value_scale=5.0,
    popart_step=0.3,
    target_network=True,
    adam_b2=0.99,
    hidden=2,
    final_lr_fraction=0.5,
)
CASES = {  # what differs from BASE, and the correction
    "everything": ({}, "cut"),
    "the other way round": (
        dict(
            td_lambda=0.2,
            actor_hysteresis=(1.0, 0.3, 0.05),
            actor_hysteresis_end=(0.9, 0.6, 0.1),
            critic_hysteresis=(1.0, 0.3, 0.1),
            hysteresis_end=(0.8, 0.2, 0.4),
            balance_kinds=False,
            center_advantages=(1.0, 0.0, 0.0),
            normalize_advantages=(1.0, 0.0, 1.0),
            advantage_scale=(0.5, 2.0, 1.0),
            popart_step=0.0,
            discount_actor_loss=False,
        ),
        "none",
    ),
    "a scale that grows": (dict(value_scale=None, normalize_advantages=(0.0, 0.5, 1.0)), "cut"),
}
VECTORS = np.array([[0.0, 0.0], [0.7, -1.2], [-0.4, 0.9]])
AGENTS, OBSERVATION, MACROS = 2, 2, 3


@cache
def setting():
    static = static_config_of(
        BASE,
        "residual",
        observation=OBSERVATION,
        macro_counts=(MACROS,) * AGENTS,
        embedding=VECTORS.shape[1],
        kinds=small_batch.KINDS,
    )
    state = jax.jit(lambda: update.init(jax.random.key(1), static, BASE.value_scale, 2.0))()
    target = jax.tree.map(lambda x: x * 1.2, state.critic)
    state = replace(state, target=target, episodes=jnp.int32(DONE))
    rows = small_batch.rows_of(3, AGENTS, OBSERVATION, MACROS, len(VECTORS))
    batch = small_batch.transitions(rows)

    @jax.jit
    def learn(hyper, correction, state):
        vectors = jnp.asarray(VECTORS, jnp.float32)
        made = batches.Batch(rows=jax.tree.map(jnp.asarray, batch))
        return backbones.learn(static, hyper, correction, vectors, state, made)

    return state, rows, learn


@cache
def case(name):
    changes, correction = CASES[name]
    preset = Preset(**{**vars(BASE), **changes})
    state, rows, learn = setting()
    if preset.value_scale is None:  # some targets are larger than any before
        square = jnp.array([[0.5, 1e4], [1e4, 0.5]])
        scale = Scale(mean=jnp.zeros((2, 2)), square=square, weight=jnp.ones((2, 2)))
        state = replace(state, scale=scale)
    correction = jax.tree.map(jnp.float32, CORRECTIONS[correction])
    after, found = learn(hyperparams_of(preset), correction, state)
    return preset, state, rows, after, jax.tree.map(np.asarray, found)


def at(start, end, over):
    """Numbers by context after DONE episodes."""
    share = min(DONE / over, 1.0)
    return np.array([a + share * (b - a) for a, b in zip(start, end, strict=True)])


def agent_of(tree, i):
    return plain.float64(jax.tree.map(lambda x: np.asarray(x)[i], tree))


def expected(name, i):
    """Everything about one agent by the independent computation."""
    preset, state, rows, _, _ = case(name)
    cut = CASES[name][1] == "cut"
    own = small_batch.of_agent(rows, i)
    valid, context = own["valid"], own["context"]
    scale = jax.tree.map(lambda x: np.asarray(x)[i], state.scale)
    stats = plain.Statistics(scale.mean, scale.square, scale.weight)
    critic, target_critic, actor = (
        agent_of(x, i) for x in (state.critic, state.target, state.actor)
    )
    here, after = plain.unroll(plain.stacked(target_critic), own, VECTORS)
    values = [stats.value(x, context)[0] for x in (here, after)]
    told = own["phrases"][..., 0] > 0
    target = plain.targets(own, *values, cut, N_STEPS, preset.td_lambda)

    new = stats.after(target, context, valid, preset.popart_step)
    moved = stats.moved(critic, new)
    hysteresis = at(preset.critic_hysteresis, preset.hysteresis_end, preset.episodes)
    weight = plain.row_weights(own["kind"], valid, preset.balance_kinds)
    # a teammate of those who are addressed goes on with the task: in the actors' losses a kind of its own
    acting = own | {"kind": np.where((own["kind"] > 0) & ~told, 99, own["kind"])}
    actor_weight = plain.row_weights(acting["kind"], valid, preset.balance_kinds)

    def critic_loss(copies):
        return plain.critic_loss(copies, own, VECTORS, new, target, hysteresis[context], weight)

    value = new.value(plain.unroll(plain.stacked(moved), own, VECTORS)[0], context)[0]
    unit = new.spread[(context == 2).astype(int)] if new.grows else 1.0
    advantage = plain.shaped(
        (target - value) / unit,
        acting,
        np.array(preset.center_advantages)[context],
        np.array(preset.normalize_advantages)[context],
        at(preset.actor_hysteresis, preset.actor_hysteresis_end, preset.episodes)[context],
        np.array(preset.advantage_scale)[context],
    )
    epsilon = at((1.0,) * 3, preset.epsilon_end, preset.epsilon_episodes)[context]
    entropy_weight = at(preset.entropy_start, (0.0,) * 3, preset.entropy_episodes)[context]
    timed = preset.gamma ** own["time"] if preset.discount_actor_loss else 1.0
    addressed = np.array(preset.allowed_loss)[context] * told
    frozen = plain.unroll(plain.stacked(actor), own, VECTORS)[0][0, 0]

    def actor_loss(copies):
        taken, entropy, logits = plain.policy(copies, own, VECTORS, epsilon, frozen)
        gain = actor_weight * timed * (advantage * taken + entropy_weight * entropy)
        allowed = np.where(valid, actor_weight * addressed, 0.0) * plain.log_allowed(logits, own)
        return -(gain + allowed).sum((1, 2))

    return {
        "target": target,
        "value": value,
        "loss": critic_loss(plain.stacked(moved))[0],
        "scale": new,
        "critic": plain.gradient(critic_loss, moved),
        "actor": plain.gradient(actor_loss, actor),
    }


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("i", range(AGENTS))
def test_the_update_is_the_independent_one(name, i):
    preset, _, rows, after, found = case(name)
    want = expected(name, i)
    valid = rows["valid"][:, :, i]
    for key in ("target", "value"):
        ours = getattr(found.critic, key)[i][: len(valid)][valid]
        np.testing.assert_allclose(ours, want[key][valid], rtol=1e-4, atol=1e-4, err_msg=key)
    np.testing.assert_allclose(found.critic.loss[i], want["loss"], rtol=1e-4)
    for key in ("mean", "square", "weight"):
        ours = getattr(after.scale, key)[i]
        np.testing.assert_allclose(ours, getattr(want["scale"], key), rtol=1e-4, atol=1e-6)
    for role in ("critic", "actor"):
        adam = getattr(after, f"{role}_optimizer")[0]
        for moments, power, share in ((adam.mu, 1, 0.1), (adam.nu, 2, 1 - preset.adam_b2)):
            ours = plain.leaves(agent_of(moments, i))
            for path, gradient in want[role].items():
                theirs = share * gradient**power
                atol = 5e-4 * np.abs(theirs).max() + 1e-9
                np.testing.assert_allclose(ours[path], theirs, rtol=0, atol=atol, err_msg=path)


def test_step_sizes_fall_as_asked():
    now = hyperparams_of(BASE).anneal(jnp.int32(DONE))
    np.testing.assert_allclose(now.actor_lr, BASE.actor_lr * (1 - 0.6 * 0.5), rtol=1e-6)
    np.testing.assert_allclose(now.critic_lr, BASE.critic_lr * (1 - 0.6 * 0.5), rtol=1e-6)
