"""The learner sees what the agents saw: replayed decisions, gradients through time, protection of the base."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mavic.experiments import train
from mavic.experiments.config import ExperimentConfig, acting, make_task, run_of, stack
from mavic.experiments.methods import preset_of
from mavic.instruct import schedule
from mavic.learn import bptt, losses, networks
from mavic.learn import update as learning
from mavic.learn.returns import CORRECTIONS
from mavic.learn.transitions import macro_transitions
from mavic.rollout.rollout import alone, rollout
from mavic.types import replace

BENCH = make_task("box_pushing", size=4)
PRESET = preset_of("tuned", "box_pushing", batch=12, episodes=1000, last_macro=True)
VECTORS = BENCH.lexicon.vectors
LANES = 3
NETWORKS = ["shared", "protected"]


@partial(jax.jit, static_argnames="network")
def played(network: str, seed: int):
    """A loud random team, its greedy episodes under frequent instructions to one agent, and their macro rows."""
    fixed = BENCH.fixed(PRESET, network)
    run = run_of(ExperimentConfig(network=network), PRESET, BENCH, 0)
    busy = schedule.make_schedule(rate=0.2, hold_min=2, hold_max=6, one_agent=True)
    learner = learning.init(jax.random.key(seed), fixed)
    learner = replace(learner, actor=jax.tree.map(lambda x: x * 3.0, learner.actor))

    def play(key):
        policy = acting(fixed, learner.actor, VECTORS, jnp.zeros(2), greedy=True)
        setting = replace(run.setting, schedule=busy)
        return rollout(setting, policy, key, episodes=12, lanes=LANES).rows

    return learner, macro_transitions(alone(play)(jax.random.key(seed)), PRESET.gamma)


def by_agent(rows):
    fields = {k: v for k, v in vars(rows).items() if k != "longest"}
    fields["instructed"] = rows.kind > 0
    return jax.tree.map(lambda x: jnp.moveaxis(x, 2, 0), bptt.pad(fields))


def replayed_logits(fixed, actor, mine, first=None):
    net = networks.with_phrases(actor, VECTORS)
    first = mine["first"] if first is None else first
    start = networks.empty(fixed.shape, LANES)
    heads = networks.unroll(fixed.shape, net, start, learning.seen_before(mine), first)[2]
    return jnp.where(
        mine["available"], networks.logits(fixed.shape, heads, mine["instructed"]), -1e9
    )


def regret(logits, mine):
    """How far below the best logit the taken macro's is: 0 where the replay agrees with the rollout."""
    taken = jnp.take_along_axis(logits, mine["macro"][..., None], axis=-1)[..., 0]
    return jnp.where(mine["valid"], logits.max(-1) - taken, 0.0)


@pytest.mark.parametrize("network", [*NETWORKS, "residual"])
def test_replay_decides_as_the_rollout_did(network):
    """Across episode, macro and instruction boundaries; a memory shifted or reset at the wrong row fails."""
    fixed = BENCH.fixed(PRESET, network)
    learner, rows = played(network, 1)
    mine = by_agent(rows)
    assert int(rows.switched.sum()) > 20
    assert int(rows.first.sum()) == 12 * 2 == int(rows.last.sum())
    logits = jax.vmap(partial(replayed_logits, fixed))(learner.actor, mine)
    np.testing.assert_allclose(regret(logits, mine), 0.0, atol=1e-3)
    # negative controls: forgetting the episode boundary, or the neighbour's instruction, is noticed
    never = jnp.zeros_like(mine["first"])
    wrong = jax.vmap(partial(replayed_logits, fixed))(learner.actor, mine, never)
    assert regret(wrong, mine).max() > 1e-2
    deaf = {**mine, "phrases": jnp.zeros_like(mine["phrases"])}
    wrong = jax.vmap(partial(replayed_logits, fixed))(learner.actor, deaf)
    assert regret(wrong, mine).max() > 1e-2


@pytest.mark.parametrize("kind", ["actor", "critic"])
def test_first_layer_is_that_of_the_concatenated_inputs(kind):
    """D3: projected phrases stand beside the observation before the first layer."""
    fixed = BENCH.fixed(PRESET, "protected")
    shape = fixed.shape
    init = networks.init_actor if kind == "actor" else networks.init_critic
    params = init(jax.random.key(0), shape)
    key = jax.random.key(1)
    seen = {
        "observation": jax.random.normal(key, (9, shape.observation)),
        "previous": jnp.arange(-1, 8),
        "phrases": jnp.array(
            [[0, 0], [3, 0], [0, 5], [7, 7], [9, 1], [2, 2], [4, 0], [0, 1], [8, 3]]
        ),
    }
    net = networks.with_phrases(params, VECTORS)
    for part in (0, 1):
        trunk, plain = jax.tree.map(lambda x, part=part: x[part], (net.trunk, params))
        hears = networks._hears(shape)[part]
        got = networks._first(
            shape, trunk, hears * networks._heard(shape, net.table, seen["phrases"]), seen
        )
        heard = VECTORS[seen["phrases"]] * (part == 1)
        pieces = [seen["observation"], jax.nn.one_hot(seen["previous"], shape.macros)]
        pieces.append(heard[:, 0] @ plain["project"]["own"])
        if kind == "critic":
            pieces.append(heard[:, 1] @ plain["project"]["team"])
        else:
            pieces.append((seen["phrases"][:, 1:] > 0) * float(part == 1))
        want = jnp.concatenate(pieces, -1) @ plain["first"]["w"] + plain["first"]["b"]
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def actor_rows(mine, key):
    shape = mine["macro"].shape
    return {
        "seen": learning.seen_before(mine),
        "first": mine["first"],
        "instructed": mine["instructed"],
        "available": mine["available"],
        "macro": mine["macro"],
        "epsilon": jnp.full(shape, 0.1),
        "entropy": jnp.full(shape, 0.05),
        "advantage": jax.random.normal(key, shape),
        "weight": mine["valid"].astype(jnp.float32),
    }


@pytest.mark.parametrize("network", NETWORKS)
def test_gradients_in_blocks_equal_plain_back_propagation(network):
    fixed = BENCH.fixed(PRESET, network)
    learner, rows = played(network, 2)
    mine = jax.tree.map(lambda x: x[0], by_agent(rows))
    actor = jax.tree.map(lambda x: x[0], learner.actor)
    data = actor_rows(mine, jax.random.key(0))
    carry = networks.empty(fixed.shape, LANES)
    segment = partial(losses.actor_segment, fixed.shape)
    blocks = bptt.blocks_for(rows.longest)
    got, total, _ = jax.jit(partial(learning.phrase_gradient, fixed.shape, segment))(
        actor, VECTORS, data, blocks
    )
    plain = jax.value_and_grad(lambda p: segment(networks.with_phrases(p, VECTORS), carry, data)[1])
    want_total, want = jax.jit(plain)(actor)
    np.testing.assert_allclose(total, want_total, rtol=1e-4)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3 * float(jnp.abs(b).max()))


@pytest.mark.parametrize("network", ["protected", "residual"])
def test_contexts_do_not_touch_each_others_parameters(network):
    """Losses of instructed rows leave the base part alone, and the other way round; also where its logits count."""
    fixed = BENCH.fixed(PRESET, network)
    learner, rows = played(network, 3)
    mine = jax.tree.map(lambda x: x[0], by_agent(rows))
    actor = jax.tree.map(lambda x: x[0], learner.actor)
    data = actor_rows(mine, jax.random.key(0))
    carry = networks.empty(fixed.shape, LANES)

    def size(weight, part):
        chosen = {**data, "weight": data["weight"] * weight}
        grads = jax.grad(
            lambda p: losses.actor_segment(
                fixed.shape, networks.with_phrases(p, VECTORS), carry, chosen
            )[1]
        )
        return sum(float(jnp.abs(g[part]).sum()) for g in jax.tree.leaves(grads(actor)))

    instructed = mine["instructed"].astype(jnp.float32)
    assert size(instructed, 0) == 0.0 < size(instructed, 1)
    assert size(1 - instructed, 1) == 0.0 < size(1 - instructed, 0)


def test_a_residual_actor_changes_what_would_be_done():
    shape = BENCH.fixed(PRESET, "residual").shape
    heads = jnp.array([[[1.0, 2.0], [3.0, 4.0]], [[10.0, 20.0], [30.0, 40.0]]])  # [parts, W, M]
    said = networks.logits(shape, heads, jnp.array([False, True]))
    np.testing.assert_array_equal(said, [[1.0, 2.0], [33.0, 44.0]])


def test_uninstructed_part_never_sees_a_phrase():
    fixed = BENCH.fixed(PRESET, "protected")
    learner, rows = played("protected", 4)
    actor = jax.tree.map(lambda x: x[0], learner.actor)
    mine = jax.tree.map(lambda x: x[0], by_agent(rows))
    heads = []
    for phrases in (mine["phrases"], jnp.zeros_like(mine["phrases"])):
        seen = {**learning.seen_before(mine), "phrases": phrases}
        start = networks.empty(fixed.shape, LANES)
        net = networks.with_phrases(actor, VECTORS)
        heads.append(networks.unroll(fixed.shape, net, start, seen, mine["first"])[2])
    np.testing.assert_array_equal(heads[0][0], heads[1][0])
    assert jnp.abs(heads[0][1] - heads[1][1]).max() > 1e-3


@partial(jax.jit, static_argnames=("network", "target_network"))
def updated(network, learner, rows, target_network=True):
    fixed = replace(BENCH.fixed(PRESET, network), target_network=target_network)
    hyper = run_of(ExperimentConfig(network=network), PRESET, BENCH, 0).hyper
    cut = jax.tree.map(jnp.float32, CORRECTIONS["cut"])
    return alone(partial(learning.update, fixed))(hyper, cut, VECTORS, learner, rows)[0]


def test_a_teammates_parameters_never_change_an_agents_update():
    learner, rows = played("protected", 5)
    learner = replace(learner, episodes=jnp.int32(900))  # past ε = 1, where actors do not learn
    other = jax.tree.map(lambda x: x.at[1].multiply(1.5), learner.critic)
    one = updated("protected", learner, rows)
    two = updated("protected", replace(learner, critic=other, target=other), rows)
    gradients = [one.actor_optimiser.mu, two.actor_optimiser.mu]  # Adam's first step hides sizes
    pairs = list(zip(*map(jax.tree.leaves, gradients), strict=True))
    for a, b in pairs:
        np.testing.assert_array_equal(a[0], b[0])
    assert max(float(jnp.abs(a[1] - b[1]).max()) for a, b in pairs) > 0


def test_a_target_that_is_the_critic_saves_a_pass_and_changes_nothing():
    learner, rows = played("shared", 8)
    learner = replace(learner, episodes=jnp.int32(900))
    one, two = (updated("shared", learner, rows, target_network=kept) for kept in (True, False))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_values_after_a_row_are_true_counterfactuals():
    """V(h', c) is what the critic would say had the instruction not changed: the next row's value where it did not."""
    fixed = BENCH.fixed(PRESET, "shared")
    learner, rows = played("shared", 6)
    mine = by_agent(rows)
    blocks = bptt.blocks_for(rows.longest)
    critic = jax.tree.map(lambda x: x * 3.0, learner.critic)

    def values(critic, scale, mine, wanted):
        rounds = bptt.rounds_for(wanted)
        return learning.values(fixed, VECTORS, critic, scale, mine, blocks, wanted, rounds)

    found, some = (
        jax.vmap(values)(critic, learner.scale, mine, wanted)
        for wanted in (mine["valid"], learning.bootstraps(mine))
    )
    inside = mine["valid"] & ~mine["last"]
    same = inside & ~mine["switched"]
    np.testing.assert_allclose(
        jnp.where(same, found["v_same_instruction"], 0),
        jnp.where(same, found["v_next_instruction"], 0),
        atol=1e-4,
    )
    differs = jnp.abs(found["v_same_instruction"] - found["v_next_instruction"])[
        inside & mine["switched"]
    ]
    assert (differs > 1e-3).mean() > 0.8
    reads = [mine["discount"] * x["v_next_instruction"] for x in (some, found)]
    np.testing.assert_allclose(*reads, atol=1e-4)
    read = inside & mine["switched"]
    assert 0 < read.sum() < mine["valid"].sum() / 2
    np.testing.assert_allclose(
        jnp.where(read, some["v_same_instruction"], 0),
        jnp.where(read, found["v_same_instruction"], 0),
        atol=1e-4,
    )


def test_popart_keeps_values_while_it_moves_the_scale():
    learner, _ = played("shared", 7)
    critic = jax.tree.map(lambda x: x[0], learner.critic)
    old = networks.scale_of(1.0)
    new = networks.Scale(
        mean=jnp.array([20.0, -3.0]), square=jnp.array([900.0, 25.0]), weight=jnp.array([0.5, 0.9])
    )
    moved = networks.rescale(critic, old, new)
    hidden = jax.random.normal(jax.random.key(0), (7, 32))
    for context in (False, True):
        flag = jnp.full(7, context)
        before = networks.value(
            hidden @ critic["head"]["w"] + critic["head"]["b"][:, None], flag, old
        )
        after = networks.value(hidden @ moved["head"]["w"] + moved["head"]["b"][:, None], flag, new)
        np.testing.assert_allclose(before, after, rtol=1e-4, atol=1e-3)


def test_a_critic_thinks_in_units_of_the_value_size():
    hidden = jax.random.normal(jax.random.key(0), (7, 32))
    learner, _ = played("shared", 7)
    critic = jax.tree.map(lambda x: x[0], learner.critic)
    heads = hidden @ critic["head"]["w"] + critic["head"]["b"][:, None]
    flag = jnp.zeros(7, bool)
    plain, large = (networks.value(heads, flag, networks.scale_of(size)) for size in (1.0, 100.0))
    np.testing.assert_allclose(large, 100 * plain, rtol=1e-5)


def test_a_fresh_critic_s_values_are_as_large_as_asked_in_any_unit():
    """Values of ±100 that mean nothing would be the first advantages."""

    def fresh(**changes) -> np.ndarray:
        runs = stack([run_of(ExperimentConfig(), dataclasses.replace(PRESET, **changes), BENCH, 3)])
        fixed = BENCH.fixed(PRESET, ExperimentConfig().network)
        learner = jax.tree.map(lambda x: x[0], train.start(fixed, runs))
        hidden = jax.random.normal(jax.random.key(0), (32,))
        heads = jnp.einsum("h,nphc->npc", hidden, learner.critic["head"]["w"])
        return np.asarray(
            jax.vmap(lambda h, s: networks.value(h, jnp.array([False, True]), s))(
                heads, learner.scale
            )
        )

    small, large = fresh(critic_init_scale=1.0), fresh(critic_init_scale=None)
    np.testing.assert_allclose(fresh(value_scale=1.0, critic_init_scale=None), small, rtol=1e-5)
    np.testing.assert_allclose(large, 100 * small, rtol=1e-5)
    assert np.abs(small).max() < 5 < np.abs(large).max()
