"""Updates: gradients through time, contexts and teammates kept apart, counterfactual values, other networks."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_team import (
    NUM_ENVS,
    PRESET,
    TASK,
    VECTORS,
    by_agent,
    first_agent,
    someones,
    static_config,
    team,
)

from mavic.experiment.config import ExperimentConfig
from mavic.learn import backbones, batches, bptt, gru, losses, networks, update
from mavic.learn.cells import from_cell
from mavic.learn.losses import ActorRows
from mavic.learn.networks import Seen
from mavic.learn.returns import CORRECTIONS
from mavic.training import train
from mavic.training.runs import Run, make_run
from mavic.types import replace


@pytest.mark.parametrize("length", [1, 8, 36, 40, 100, 197, 200, 201, 400])
def test_rows_fill_whole_blocks_on_any_device(monkeypatch, length):
    for device in ("cpu", "gpu"):
        monkeypatch.setattr(jax, "default_backend", lambda device=device: device)
        padded = len(bptt.pad(jnp.ones((length, 2))))
        short = 16 if device == "cpu" else 8
        assert length <= padded < length + short and padded % bptt._block_size(padded) == 0
        assert bptt._blocks_for(jnp.int32(padded), padded) * bptt._block_size(padded) == padded
        long = device == "gpu" and padded in (40, 200)
        assert bptt._block_size(padded) == (40 if long else short)


def actor_rows(rows, key):
    shape = rows.macro.shape
    return ActorRows(
        seen=Seen.before(rows),
        first=rows.first,
        instructed=rows.kind > 0,
        available=rows.available,
        macro=rows.macro,
        epsilon=jnp.full(shape, 0.1),
        entropy=jnp.full(shape, 0.05),
        advantage=jax.random.normal(key, shape),
        weight=rows.valid.astype(jnp.float32),
        forbidden=rows.forbidden,
    )


@pytest.mark.long
@pytest.mark.parametrize("on", ["cpu", "gpu"])
@pytest.mark.parametrize("name", ["shared", "protected"])
def test_gradients_in_blocks_equal_plain_back_propagation(name, on, monkeypatch):
    """On a GPU blocks are longer, several of their rows are compiled at once, and memory is emptied later."""
    if on == "gpu":
        monkeypatch.setattr(jax, "default_backend", lambda: on)
        monkeypatch.setattr(bptt, "_block_size", lambda length: length // 2)
        monkeypatch.setattr(gru, "_unrolled", lambda: 3)
    network = static_config(name).network
    state, transitions = team(name, 2), someones(2)
    rows, actor = first_agent(by_agent(transitions)), first_agent(state.actor)
    data = actor_rows(rows, jax.random.key(0))
    loss = partial(losses.actor_loss, network)
    blocks = bptt._blocks_for(transitions.valid.sum(0).max(), len(transitions.valid))
    got, total, _ = jax.jit(partial(update._gradient, network, loss))(actor, VECTORS, data, blocks)

    def plain(actor):
        return loss(network.project(actor, VECTORS), network.empty(NUM_ENVS), data, None)[1]

    want_total, want = jax.jit(jax.value_and_grad(plain))(actor)
    np.testing.assert_allclose(total, want_total, rtol=1e-4)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3 * float(jnp.abs(b).max()))


@pytest.mark.long
@pytest.mark.parametrize("name", ["protected", "residual"])
def test_contexts_do_not_touch_each_others_parameters(name):
    """Losses of instructed rows leave the uninstructed part alone, also where its logits count, and vice versa."""
    network = static_config(name).network
    state, transitions = team(name, 3), someones(3)
    rows, actor = first_agent(by_agent(transitions)), first_agent(state.actor)
    data = actor_rows(rows, jax.random.key(0))

    @jax.jit
    @jax.grad
    def gradient(actor, weight):
        net, chosen = network.project(actor, VECTORS), replace(data, weight=data.weight * weight)
        return losses.actor_loss(network, net, network.empty(NUM_ENVS), chosen, None)[1]

    def size(weight, part):
        return sum(float(jnp.abs(g[part]).sum()) for g in jax.tree.leaves(gradient(actor, weight)))

    instructed = (rows.kind > 0).astype(jnp.float32)
    assert size(instructed, 0) == 0.0 < size(instructed, 1)
    assert size(1 - instructed, 1) == 0.0 < size(1 - instructed, 0)


def test_the_loss_on_the_allowed_probability_by_hand():
    """Its gradient on the logits, against numpy: rows in which all, some and none of the macros are allowed, and a
    drill, in which forbidden macros are not available and count all the same."""
    random = np.random.default_rng(0)
    logits = random.normal(size=(5, 4)).astype(np.float32)
    available = np.array(
        [[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 1], [1, 0, 0, 0]], bool
    )
    forbidden = np.array(
        [[0, 0, 0, 0], [0, 1, 1, 0], [1, 1, 0, 0], [0, 1, 0, 0], [0, 1, 1, 1]], bool
    )
    masks = jnp.asarray(available), jnp.asarray(forbidden)
    found = losses._log_allowed(jnp.asarray(logits), *masks)
    slope = jax.grad(lambda x: losses._log_allowed(x, *masks).sum())(jnp.asarray(logits))
    for row in range(5):
        counted, kept = available[row] | forbidden[row], available[row] & ~forbidden[row]
        share = np.where(counted, np.exp(logits[row]), 0.0)
        if not kept.any():
            assert float(found[row]) == losses.LEAST_LOG_ALLOWED and not slope[row].any()
            continue
        total = share[kept].sum() / share.sum()
        np.testing.assert_allclose(found[row], np.log(total), rtol=1e-5, atol=1e-6)
        among_kept = np.where(kept, share, 0.0) / share[kept].sum()
        np.testing.assert_allclose(slope[row], among_kept - share / share.sum(), atol=1e-5)


def update_once(static, state, transitions, hyper=None):
    hyper = hyper or make_run(ExperimentConfig(), PRESET, TASK, 0).hyper
    cut = jax.tree.map(jnp.float32, CORRECTIONS["cut"])
    return backbones.learn(static, hyper, cut, VECTORS, state, batches.Batch(rows=transitions))[0]


@partial(jax.jit, static_argnames=("target_network", "allowed_loss"))
def updated(state, transitions, hyper, target_network=False, allowed_loss=False):
    """One update of a residual network. The tests below share its programs."""
    switches = dict(target_network=target_network, allowed_loss=allowed_loss)
    return update_once(replace(static_config("residual"), **switches), state, transitions, hyper)


def late_team(seed):
    """A residual team after 900 episodes (ε is below 1, so actors learn), transitions, and the learner's numbers."""
    state = replace(team("residual", seed), episodes=jnp.int32(900))
    hyper = make_run(ExperimentConfig(), PRESET, TASK, 0).hyper
    return state, bptt.pad(someones(seed)), hyper


@pytest.mark.long
def test_the_allowed_loss_reaches_addressed_agents_by_context():
    """Actors change by it only through rows of agents that are addressed, in a context that has a weight."""
    state, transitions, hyper = late_team(4)

    def moved(weights, forbidden, on=True):
        numbers = replace(hyper, allowed_loss=weights)
        rows = replace(transitions, forbidden=forbidden)
        after = updated(state, rows, numbers, allowed_loss=on)
        return jax.tree.leaves(after.actor_optimizer[0].mu)

    def differ(one, two):
        return any(not np.array_equal(a, b) for a, b in zip(one, two, strict=True))

    own, context = transitions.phrases[..., 0] > 0, transitions.context
    assert {0, 1, 2} == set(np.unique(context[transitions.valid]).tolist())
    forbidden, nothing = transitions.forbidden, jnp.zeros_like(transitions.forbidden)
    weights = jnp.array([0.0, 0.5, 0.0])
    off = moved(jnp.zeros(3), forbidden)
    for without, switched_off in zip(off, moved(weights, forbidden, on=False), strict=True):
        np.testing.assert_allclose(without, switched_off, rtol=1e-4, atol=1e-7)  # other programs
    assert differ(off, moved(weights, forbidden))
    counts = (own & (context == 1))[..., None]
    assert differ(moved(weights, nothing), moved(weights, forbidden & counts))
    assert not differ(moved(weights, forbidden), moved(weights, forbidden & counts))


@pytest.mark.long
def test_a_teammates_parameters_never_change_an_agents_update():
    state, transitions, hyper = late_team(5)
    other = jax.tree.map(lambda x: x.at[1].multiply(1.5), state.critic)
    one = updated(state, transitions, hyper, target_network=True)
    changed = replace(state, critic=other, target=other)
    two = updated(changed, transitions, hyper, target_network=True)
    moments = [s.actor_optimizer[0].mu for s in (one, two)]  # Adam's first step hides sizes
    pairs = list(zip(*map(jax.tree.leaves, moments), strict=True))
    for a, b in pairs:
        np.testing.assert_array_equal(a[0], b[0])
    assert max(float(jnp.abs(a[1] - b[1]).max()) for a, b in pairs) > 0


@pytest.mark.long
def test_without_a_target_network_the_target_follows_the_critic():
    """The critic's pass is then not repeated, and the step is the same."""
    state, transitions, hyper = late_team(8)
    kept, copied = (updated(state, transitions, hyper, target_network=on) for on in (True, False))
    for a, b in zip(
        jax.tree.leaves((kept.actor, kept.critic)),
        jax.tree.leaves((copied.actor, copied.critic)),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    for target, critic in ((kept.target, state.critic), (copied.target, copied.critic)):
        for a, b in zip(jax.tree.leaves(target), jax.tree.leaves(critic), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_target_network_is_copied_when_its_episodes_have_passed():
    state = team("shared", 8)
    static = replace(static_config("shared"), target_network=True)
    hyper = replace(make_run(ExperimentConfig(), PRESET, TASK, 0).hyper, target_update_episodes=32)
    state = replace(state, critic=jax.tree.map(jnp.ones_like, state.critic))
    for before, after, due in ((0, 12, False), (24, 36, True), (36, 63, False), (36, 64, True)):
        moved = backbones._copy_target(
            static, hyper, replace(state, episodes=jnp.int32(before)), jnp.int32(after)
        )
        assert bool((jax.tree.leaves(moved.target)[0] == 1).all()) == due
        assert int(moved.episodes) == after


def test_values_after_a_row_are_true_counterfactuals():
    """V(h', c): what the critic would say if the instruction had not changed. Elsewhere it is the next row's value."""
    static = static_config("shared")
    network = static.network
    state, transitions = team("shared", 6), someones(6)
    rows = by_agent(transitions)
    critic = jax.tree.map(lambda x: x * 3.0, state.critic)
    _, found = jax.jit(partial(backbones.values, static, VECTORS))(
        replace(state, critic=critic), batches.Batch(rows=transitions)
    )
    padded = jax.tree.map(
        lambda x: jnp.pad(
            x, [(0, 0), (0, rows.macro.shape[1] - x.shape[1])] + [(0, 0)] * (x.ndim - 2)
        ),
        found,
    )

    def one_step_later(critic, scale, rows, memory):
        """V(h', c) of every row by one step of the network from the true memory."""
        net = network.project(critic, VECTORS)
        heads = network.step(network.shape, net, jnp.moveaxis(memory, 1, 0), Seen.after(rows))
        return networks.value(heads[1], rows.context, scale)

    counterfactual = jax.jit(jax.vmap(one_step_later))(critic, state.scale, rows, padded.memory)
    inside = rows.valid & ~rows.last
    unchanged, changed = inside & ~rows.switched, inside & rows.switched
    for own in (padded.v_same_instruction, padded.v_next_instruction):
        np.testing.assert_allclose(
            jnp.where(unchanged, counterfactual, 0), jnp.where(unchanged, own, 0), atol=1e-4
        )
    np.testing.assert_allclose(
        jnp.where(changed, counterfactual, 0),
        jnp.where(changed, padded.v_same_instruction, 0),
        atol=1e-4,
    )
    differs = jnp.abs(padded.v_same_instruction - padded.v_next_instruction)[changed]
    assert (differs > 1e-3).mean() > 0.8
    assert 0 < changed.sum() < rows.valid.sum() / 2


def test_an_untrained_critics_values_have_the_size_asked_for():
    """Values of ±100 that mean nothing would be the first advantages."""

    def fresh(**changes) -> np.ndarray:
        preset = dataclasses.replace(PRESET, **changes)
        runs = Run.stack([make_run(ExperimentConfig(), preset, TASK, 3)])
        state = jax.tree.map(lambda x: x[0], train.init_states(static_config("protected"), runs))
        hidden = jax.random.normal(jax.random.key(0), (32,))
        heads = jnp.einsum("h,nphc->npc", hidden, state.critic["head"]["w"])
        contexts = jnp.array([False, True])
        return np.asarray(jax.vmap(lambda h, s: networks.value(h, contexts, s))(heads, state.scale))

    small, large = fresh(critic_init_scale=1.0), fresh(critic_init_scale=None)
    np.testing.assert_allclose(fresh(value_scale=1.0, critic_init_scale=None), small, rtol=1e-5)
    np.testing.assert_allclose(large, 100 * small, rtol=1e-5)
    assert np.abs(small).max() < 5 < np.abs(large).max()


# A plain GRU between dense layers, as a user would write it: no gradient of its own, no tables of phrases.


@jax.numpy_rank_promotion("allow")  # users may add a bias to rows as numpy lets them
def plain_cell(params, memory, inputs):
    def leaky(x):
        return jnp.where(x >= 0, x, 0.01 * x)

    def dense(layer, x):
        return x @ layer["w"] + layer["b"]

    gru = params["gru"]
    hidden = leaky(dense(params["second"], leaky(dense(params["first"], inputs))))
    reset_in, update_in, new_in = jnp.split(hidden @ gru["wi"] + gru["bi"], 3, axis=-1)
    reset_h, update_h, new_h = jnp.split(memory @ gru["wh"] + gru["bh"], 3, axis=-1)
    reset, keep = jax.nn.sigmoid(reset_in + reset_h), jax.nn.sigmoid(update_in + update_h)
    new = jnp.tanh(new_in + reset * new_h)
    memory = (1 - keep) * new + keep * memory
    return memory, leaky(dense(params["third"], memory))


def plain_init(key, inputs, hidden):
    sizes = {"first": (inputs, hidden), "second": (hidden, hidden), "third": (hidden, hidden)}
    layers = {
        name: {"w": 0.1 * jax.random.normal(key, size), "b": jnp.zeros(size[1])}
        for name, size in sizes.items()
    }
    square, row = 0.1 * jnp.ones((hidden, 3 * hidden)), jnp.zeros(3 * hidden)
    return {**layers, "gru": {"wi": square, "wh": square, "bi": row, "bh": row}}


def as_plain(params):
    """The fast network's weights in the layout of `from_cell`."""
    layers = {name: params[name] for name in ("first", "second", "gru", "third")}
    others = {name: layer for name, layer in params.items() if name not in layers}
    return {"cell": layers, **others}


def with_kind_heads(params, seed):
    """Every agent's parameters with random output layers for the kinds in place of zeros."""
    random = np.random.default_rng(seed)
    layers = jax.tree.map(lambda x: random.normal(0, 0.1, x.shape), params["kind_heads"])
    return {**params, "kind_heads": jax.tree.map(jnp.float32, layers)}


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param("shared", marks=pytest.mark.slow), "residual"])
def test_a_users_network_learns_as_the_fast_one_does(name):
    """The residual one has an output layer for each kind, too."""
    static = static_config(name)
    state, transitions = team(name, 9), someones(9)
    if name == "residual":
        shape = replace(static.network.shape, kind_heads=True)
        static = replace(static, network=gru.network(shape))
        blank = update.init(jax.random.key(0), static)
        assert not any(layer.any() for layer in jax.tree.leaves(blank.actor["kind_heads"]))
        parts = ("actor", "critic", "target")
        layers = {part: getattr(blank, part)["kind_heads"] for part in parts}
        state = replace(
            blank,
            **{
                part: with_kind_heads({**getattr(state, part), "kind_heads": layers[part]}, n)
                for n, part in enumerate(parts)
            },
        )
    plain = replace(static, network=from_cell(static.network.shape, plain_init, plain_cell))
    state = replace(state, episodes=jnp.int32(900))
    own = replace(
        jax.jit(partial(update.init, config=plain))(jax.random.key(0)),
        **{part: as_plain(getattr(state, part)) for part in ("actor", "critic", "target")},
        episodes=state.episodes,
    )
    fast = jax.jit(partial(update_once, static))(state, transitions)
    slow = jax.jit(partial(update_once, plain))(own, transitions)
    for part in ("actor", "critic"):
        moment = f"{part}_optimizer"
        want = as_plain(getattr(fast, moment)[0].mu)
        got = getattr(slow, moment)[0].mu
        assert jax.tree.structure(want) == jax.tree.structure(got)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3 * float(jnp.abs(b).max()) + 1e-9)
