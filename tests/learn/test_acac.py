"""ACAC: its view of the team, its advantages by hand, and whole updates against an independent one in float64."""

from __future__ import annotations

from functools import cache

import independent as plain
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small_ticks

from mavic.experiment.methods import hyperparams_of, static_config_of
from mavic.learn import backbones, batches, update
from mavic.learn.networks import Seen
from mavic.learn.returns import CORRECTIONS, targets
from mavic.learn.transitions import as_played
from mavic.preset import ACAC, Preset
from mavic.types import replace

AGENTS, OBSERVATION, MACROS, HIDDEN = 2, 2, 3, 4
VECTORS = np.array([[0.0, 0.0], [0.7, -1.2], [-0.4, 0.9]])
PRESET = Preset(
    **{**ACAC, "popart_step": 0.2},
    gamma=small_ticks.GAMMA,
    epsilon_start=0.3,
    epsilon_end=(0.3, 0.3),
    actor_lr=0.05,
    critic_lr=0.01,
    hidden=HIDDEN,
    value_scale=2.0,
)


def test_advantages_are_gae_and_nothing_crosses_a_change_of_instruction():
    """γ = .5, λ = .5. V = 10, 20, 30, 40; the instruction changes after the second row, where V(h', c) = 8.

    δ = 1 + .5·20 − 10 = 1;  2 + .5·8 − 20 = −14;  4 + .25·40 − 30 = −16;  8 + .5·6 − 40 = −29.
    A_3 = −29; A_2 = −16 + .25·.5·(−29) = −19.625; A_1 = −14 with `cut` alone; A_0 = 1 + .25·(−14) = −2.5.
    """
    value = jnp.array([10.0, 20.0, 30.0, 40.0])
    column = dict(
        reward=jnp.array([1.0, 2.0, 4.0, 8.0]),
        discount=jnp.array([0.5, 0.5, 0.25, 0.5]),
        v_same_instruction=jnp.array([20.0, 8.0, 40.0, 6.0]),
        v_next_instruction=jnp.array([20.0, 30.0, 40.0, 6.0]),
        switched=jnp.array([False, True, False, False]),
        last=jnp.array([False, False, False, True]),
    )

    def advantage(correction):
        made = targets(**column, correction=CORRECTIONS[correction], n_steps=np.inf, td_lambda=0.5)
        return (made - value).tolist()

    assert advantage("cut") == [-2.5, -14.0, -19.625, -29.0]
    # Without the correction: δ_1 = 2 + .5·30 − 20 = −3 and A_1 = −3 + .5·.5·A_2.
    assert advantage("none") == [1 + 0.25 * -7.90625, -3 + 0.25 * -19.625, -19.625, -29.0]


def static_config():
    return static_config_of(
        PRESET,
        "shared",
        "acac",
        observation=OBSERVATION,
        macro_counts=(MACROS,) * AGENTS,
        embedding=VECTORS.shape[1],
        kinds=2,
    )


@cache
def made():
    static = static_config()
    state = jax.jit(lambda: update.init(jax.random.key(2), static, PRESET.value_scale))()
    critic = jax.tree.map(
        lambda x: x + 0.1 * jnp.cos(jnp.arange(x.size)).reshape(x.shape), state.critic
    )
    state = replace(state, critic=critic, target=jax.tree.map(lambda x: 1.1 * x, critic))
    ticks = small_ticks.ticks_of(5)

    return state, ticks, jax.tree.map(np.asarray, learn(state, small_ticks.timestep(ticks)))


@jax.jit
def learn(state, ticks):
    static = static_config()
    views = batches.views_of(static.network.shape, static.critic.shape, ticks)
    batch = batches.batch_of(views, [as_played(view) for view in views], PRESET.gamma)
    vectors, cut = jnp.asarray(VECTORS, jnp.float32), CORRECTIONS["cut"]
    return batch, *backbones.learn(static, hyperparams_of(PRESET), cut, vectors, state, batch)


def clock(time):
    return np.stack([np.sin(time), np.cos(time)], -1)


@pytest.mark.long
def test_the_critic_sees_every_agents_last_observation_its_time_and_who_is_new():
    _, ticks, (batch, _, _) = made()
    for w in range(len(small_ticks.EPISODES)):
        wanted = small_ticks.team_rows(ticks, w)
        assert batch.critic.valid[:, w, 0].sum() == len(wanted)
        for k, row in enumerate(wanted):
            for key, seen, received, new in (
                ("observation", "seen", "received", "new"),
                ("next_observation", "next_seen", "next_received", "next_new"),
            ):
                timed = np.concatenate([row[seen], clock(np.array(row[received], float))], -1)
                want = np.concatenate([timed.reshape(-1), row[new]])
                np.testing.assert_allclose(getattr(batch.critic, key)[k, w, 0], want, atol=1e-6)
            assert batch.critic.phrases[k, w, 0].tolist() == row["phrase"].tolist()


@pytest.mark.long
def test_a_macros_rows_of_the_team_are_those_in_which_it_began_and_ended():
    _, ticks, (batch, _, _) = made()
    lanes = len(small_ticks.EPISODES)
    for w in range(lanes):
        wanted = small_ticks.team_rows(ticks, w)
        starts = {row["start"]: k for k, row in enumerate(wanted)}
        ends = {row["end"]: k for k, row in enumerate(wanted)}
        for i in range(AGENTS):
            last = np.flatnonzero(ticks["ended"][:, w, i] & ticks["alive"][:, w])
            first = np.flatnonzero(ticks["fresh"][:, w, i] & ticks["alive"][:, w])
            for k, (began, ended) in enumerate(zip(first, last, strict=True)):
                assert divmod(batch.begun[k, w, i], lanes) == (starts[began], w)
                assert divmod(batch.ended[k, w, i], lanes) == (ends[ended], w)


# The critic once more.


def linear(layer, x):
    return np.einsum("b...i,bio->b...o", x, layer["w"]) + np.expand_dims(
        layer["b"], tuple(range(1, x.ndim - 1))
    )


def norm(layer, x):
    gain, bias = (np.expand_dims(layer[k], tuple(range(1, x.ndim - 1))) for k in ("gain", "b"))
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return (1 + gain) * x + bias


def encode(params, row, after, memory):
    """Memories [B, N, H] after the row's observation, or after the next one."""
    seen, time, new = (
        ("next_seen", "next_received", "next_new") if after else ("seen", "received", "new")
    )
    out = memory.copy()
    for i in range(AGENTS):
        if not row[new][i]:
            continue
        cell = {
            name: {k: v[:, i] for k, v in params["cell"][name].items()}
            for name in ("first", "second", "gru")
        }
        heard = VECTORS[row["phrase"][i]] @ params["project"]["each"]
        own = np.concatenate([row[seen][i], clock(float(row[time][i]))])
        x = np.concatenate([np.repeat(own[None], len(heard), 0), heard], -1)[:, None]
        hidden = plain.leaky(
            plain.dense(cell["second"], plain.leaky(plain.dense(cell["first"], x)))
        )
        out[:, i] = plain.gru_step(cell["gru"], hidden, memory[:, i][:, None])[:, 0]
    return out


def value_heads(params, memory):
    """Heads [B, 2] of memories [B, N, H]."""
    cell = params["cell"]
    x = memory + cell["position"]
    asks, keys, gives = (
        y.reshape(len(x), AGENTS, 2, HIDDEN // 2)
        for y in np.split(linear(cell["attend"], norm(cell["attend_norm"], x)), 3, -1)
    )
    mixed = np.zeros_like(gives)
    for head in range(2):
        score = asks[:, :, head] @ keys[:, :, head].swapaxes(1, 2) / np.sqrt(HIDDEN // 2)
        share = np.exp(score) / np.exp(score).sum(-1, keepdims=True)
        mixed[:, :, head] = share @ gives[:, :, head]
    x = x + linear(cell["attended"], mixed.reshape(len(x), AGENTS, HIDDEN))
    wide = linear(cell["mlp"], norm(cell["mlp_norm"], x))
    gelu = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    x = norm(cell["last_norm"], x + linear(cell["mlp_out"], gelu)).mean(1)
    return linear(params["head"], x[:, None])[:, 0]


def values(critic, rows, stats):
    """V(h, c) and V(h', c) [B, K] of the team's rows of one environment."""
    params = plain._part(critic, 0)
    memory = np.zeros((params["head"]["b"].shape[0], AGENTS, HIDDEN))
    here, later = [], []
    for row in rows:
        memory = encode(params, row, False, memory * (not row["first"]))
        asked = int(row["phrase"].any())
        for found, at in ((here, memory), (later, encode(params, row, True, memory))):
            found.append(
                value_heads(params, at)[:, asked] * stats.spread[asked] + stats.centre[asked]
            )
    return np.stack(here, 1), np.stack(later, 1)


def test_each_agents_memory_steps_where_its_observation_is_new_and_the_value_attends_to_all():
    """Five rows by the network's own steps, and by the independent ones."""
    network, random = static_config().critic, np.random.default_rng(0)
    shape = network.shape
    like = jax.eval_shape(lambda: network.init(jax.random.key(0), shape, "critic"))
    params = jax.tree.map(lambda x: jnp.float32(random.normal(0, 0.5, x.shape)), like)
    net = network.project(params, jnp.asarray(VECTORS, jnp.float32))
    copies = plain._part(plain.stacked(plain.float64(params)), 0)
    memory, theirs = network.empty(1), np.zeros((1, AGENTS, HIDDEN))
    rows = small_ticks.team_rows(small_ticks.ticks_of(5), 0)[:5]
    assert {row["new"].all() for row in rows} == {True, False}
    for row in rows:
        timed = np.concatenate([row["seen"], clock(np.array(row["received"], float))], -1)
        observation = np.concatenate([timed.reshape(-1), row["new"]])[None]
        seen = Seen(
            observation=jnp.asarray(observation, jnp.float32),
            last_macro=jnp.full(1, -1),
            phrases=jnp.asarray(row["phrase"])[None],
        )
        memory, heads = network.step(shape, net, memory, seen)
        theirs = encode(copies, row, False, theirs)
        np.testing.assert_allclose(memory[0, 0], theirs[0].reshape(-1), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(
            heads[0, 0], value_heads(copies, theirs)[0], rtol=1e-4, atol=1e-4
        )


@cache
def expected():
    state, ticks, _ = made()
    lanes = [small_ticks.team_rows(ticks, w) for w in range(len(small_ticks.EPISODES))]
    rows = [row for lane in lanes for row in lane]
    asked = np.array([row["phrase"].any() for row in rows])
    stats = plain.Statistics(
        *(np.asarray(x)[0] for x in (state.scale.mean, state.scale.square, state.scale.weight))
    )
    critic, target = (
        plain.float64(jax.tree.map(lambda x: x[0], x)) for x in (state.critic, state.target)
    )
    found = [values(plain.stacked(target), lane, stats) for lane in lanes]
    gae = []
    for lane, (here, after) in zip(lanes, found, strict=True):
        onward = 0.0
        for k in reversed(range(len(lane))):
            row, v = lane[k], here[0]
            stops = row["last"] or row["switched"]
            following = after[0, k] if stops else v[k + 1]
            delta = row["reward"] + row["discount"] * following - v[k]
            onward = delta + (0.0 if stops else row["discount"] * PRESET.td_lambda * onward)
            gae.append((id(row), onward))
    advantage = np.array([dict(gae)[id(row)] for row in rows])
    goal = advantage + np.concatenate([here[0] for here, _ in found])
    new = stats.after(goal, 2 * asked, np.ones(len(rows), bool), PRESET.popart_step)

    def loss(copies):
        value = np.concatenate([values(copies, lane, new)[0] for lane in lanes], 1)
        return (((goal - value) / new.spread[asked.astype(int)]) ** 2).mean(1)

    critic, adam = stats.moved(critic, new), plain.Adam(PRESET.critic_lr, PRESET.adam_b2)
    for _ in range(PRESET.passes):
        critic = adam.step(critic, plain.gradient(loss, critic))
    return rows, goal, advantage, new, adam


@pytest.mark.long
def test_targets_and_critic_steps_are_the_independent_ones():
    _, _, (batch, after, found) = made()
    _, goal, _, stats, adam = expected()
    used = batch.critic.valid[:, :, 0].T
    length = used.shape[1]
    np.testing.assert_allclose(found.critic.target[0][:length].T[used], goal, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(after.scale.square[0], stats.square, rtol=1e-4)
    ours = plain.leaves(jax.tree.map(lambda x: x[0], after.critic_optimizer[0].mu))
    for path, moment in adam.first.items():
        atol = 1e-3 * np.abs(moment).max() + 1e-7
        np.testing.assert_allclose(ours[path], moment, rtol=0, atol=atol, err_msg=path)


def expected_actor(i: int):
    """Adam's moments of one agent's actor, and how often the ratio of probabilities was clipped."""
    state, ticks, (batch, _, _) = made()
    _, _, advantage, _, _ = expected()
    lanes = [small_ticks.team_rows(ticks, w) for w in range(len(small_ticks.EPISODES))]
    began = {}
    for (w, row), own in zip(
        ((w, r) for w, lane in enumerate(lanes) for r in lane), advantage, strict=True
    ):
        began[w, row["start"]] = own
    names = [
        "observation",
        "next_observation",
        "phrases",
        "first",
        "valid",
        "kind",
        "macro",
        "available",
    ]
    own = {name: getattr(batch.rows, name)[:, :, i] for name in names}
    gains = np.zeros(own["valid"].shape)
    for w in range(len(lanes)):
        first = np.flatnonzero(ticks["fresh"][:, w, i] & ticks["alive"][:, w])
        gains[: len(first), w] = [began[w, t] for t in first]
    epsilon = np.full(own["valid"].shape, 0.3)
    weight = own["valid"] / own["valid"].sum()
    actor, old = plain.float64(jax.tree.map(lambda x: x[i], state.actor)), None
    adam, outside = plain.Adam(PRESET.actor_lr, PRESET.adam_b2), 0
    for _ in range(PRESET.passes):
        now = plain.policy(plain.stacked(actor), own, VECTORS, epsilon)[0]
        old = now if old is None else old
        outside += (np.abs(np.exp(now - old) - 1) > PRESET.ppo_clip)[0][own["valid"]].sum()

        def loss(copies, old=old):
            ratio = np.exp(plain.policy(copies, own, VECTORS, epsilon)[0] - old)
            kept = np.clip(ratio, 1 - PRESET.ppo_clip, 1 + PRESET.ppo_clip)
            return -(weight * np.minimum(ratio * gains, kept * gains)).sum((1, 2))

        actor = adam.step(actor, plain.gradient(loss, actor))
    return adam, outside


@pytest.mark.long
def test_actor_steps_are_ppo_on_the_advantage_where_the_macro_began():
    _, _, (_, after, _) = made()
    for i in range(AGENTS):
        adam, outside = expected_actor(i)
        assert outside > 0  # otherwise clipping is not tested
        ours = plain.leaves(jax.tree.map(lambda x, i=i: x[i], after.actor_optimizer[0].mu))
        for path, moment in adam.first.items():
            atol = 1e-3 * np.abs(moment).max() + 1e-7
            np.testing.assert_allclose(ours[path], moment, rtol=0, atol=atol, err_msg=path)
