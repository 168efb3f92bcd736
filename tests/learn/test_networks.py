"""Networks: decisions replayed as they were made, phrases heard by the right part, a network of one's own."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_team import (
    CELL,
    NUM_ENVS,
    VECTORS,
    by_agent,
    first_agent,
    played,
    someones,
    static_config,
    team,
)

from mavic.learn import acac, cells, gru, networks
from mavic.learn.kind_heads import KindHeads
from mavic.learn.networks import Net, Seen, Shape
from mavic.learn.popart import Scale
from mavic.learn.views import VIEWS
from mavic.types import replace

NETWORKS = [
    pytest.param("shared", marks=pytest.mark.long),
    pytest.param("protected", marks=pytest.mark.long),
    "residual",
]


def replayed_logits(network, actor, rows, first=None):
    net = network.project(actor, VECTORS)
    first = rows.first if first is None else first
    start = network.empty(NUM_ENVS)
    heads = network.unroll(network.shape, net, start, Seen.before(rows), first)[2]
    return jnp.where(rows.available, network.shape.logits(heads, rows.kind > 0), -1e9)


def regret(logits, rows):
    """How far the taken macro's logit lies below the best: 0 where the replay agrees with the rollout."""
    taken = jnp.take_along_axis(logits, rows.macro[..., None], axis=-1)[..., 0]
    return jnp.where(rows.valid, logits.max(-1) - taken, 0.0)


@pytest.fixture
def largest(monkeypatch):
    """Draw the largest number of a uniform distribution, and one standard deviation of a normal one."""
    monkeypatch.setattr(
        jax.random, "uniform", lambda _, size=(), minval=0.0, maxval=1.0: jnp.full(size, maxval)
    )
    monkeypatch.setattr(jax.random, "normal", lambda _, size=(): jnp.ones(size))


SMALL = Shape(
    observation=5, macros=4, agents=3, embedding=2, hidden=6, projected=7, parts=1, kind_heads=True
)
BEFORE_RECTIFIER = (2 / (1 + 0.01**2)) ** 0.5


def of_one_part(params):
    """Return the only number of each array, by its place; and the array's size."""
    paths = jax.tree_util.tree_leaves_with_path(params)
    for path, leaf in paths:
        assert len(np.unique(leaf)) == 1, path
    named = {"/".join(str(key.key) for key in path): leaf for path, leaf in paths}
    return {k: v.ravel()[0] for k, v in named.items()}, {k: v.shape for k, v in named.items()}


def xavier(inputs, outputs):
    return (6 / (inputs + outputs)) ** 0.5


@pytest.mark.parametrize(
    "role, changes, inputs, phrases",
    [
        ("actor", {}, 5 + 7 + 1, 0),
        ("critic", {}, 5 + 7 + 7, 0),
        ("actor", dict(last_macro=True), 5 + 4 + 7 + 1, 0),
        ("critic", dict(hears_each=True, copies=1), 5 + 3 * 7, 3 * 7),
    ],
)
@pytest.mark.parametrize("make", [gru.network, lambda shape: cells.from_cell(shape, *CELL)])
@pytest.mark.usefixtures("largest")
def test_untrained_weights_are_as_large_as_inputs_and_outputs_ask(
    make, role, changes, inputs, phrases
):
    shape = replace(SMALL, **changes)
    outputs = 4 if role == "actor" else 2
    bound, size = of_one_part(make(shape).init(jax.random.key(0), shape, role))
    assert size["head/w"] == (1, 6, outputs) and bound["head/w"] == pytest.approx(
        xavier(6, outputs)
    )
    for name in shape.inputs(role)[0]:
        assert size[f"project/{name}"] == (1, 2, 7)
        assert bound[f"project/{name}"] == pytest.approx(xavier(2, 7))
    assert size["kind_heads/w"] == (2, 6, outputs) and size["kind_heads/b"] == (2, outputs)
    assert bound["kind_heads/w"] == bound["kind_heads/b"] == bound["head/b"] == 0
    if "cell" in size:  # a user's cell is told its sizes
        assert size["cell"] == (1, inputs + 6, 6)
        return
    assert size["first/w"] == (1, inputs - phrases, 6) and size["second/w"] == (1, 6, 6)
    first = BEFORE_RECTIFIER * xavier(inputs, 6)
    assert bound["first/w"] == pytest.approx(first)
    if phrases:
        assert size["heard/w"] == (1, 3, 7, 6) and bound["heard/w"] == pytest.approx(first)
    for name in ("second/w", "third/w"):
        assert bound[name] == pytest.approx(BEFORE_RECTIFIER * xavier(6, 6))
    assert size["gru/wi"] == size["gru/wh"] == (1, 6, 18)
    for name in ("wi", "wh", "bi", "bh"):
        assert bound[f"gru/{name}"] == pytest.approx(6**-0.5)


@pytest.mark.usefixtures("largest")
def test_the_critic_of_acac_has_an_encoder_of_each_agents_inputs():
    shape = VIEWS["tokens"].widen(replace(SMALL, macro_counts=(4, 4, 4), kind_heads=False))
    bound, size = of_one_part(acac.critic(shape).init(jax.random.key(0), shape, "critic"))
    own = 5 + 2 + 7  # an observation, two numbers of the time, a phrase
    assert size["cell/first/w"] == (1, 3, own, 6)
    assert bound["cell/first/w"] == pytest.approx(BEFORE_RECTIFIER * xavier(own, 6))
    assert bound["cell/second/w"] == pytest.approx(BEFORE_RECTIFIER * xavier(6, 6))
    assert bound["cell/gru/wi"] == bound["cell/gru/bh"] == pytest.approx(6**-0.5)
    assert bound["cell/attend/w"] == bound["cell/mlp/w"] == pytest.approx(0.02)
    assert bound["cell/attended/w"] == pytest.approx(0.02 / 2**0.5)
    assert size["cell/mlp_out/w"] == (1, 24, 6) and size["cell/attend/w"] == (1, 6, 18)


@pytest.mark.parametrize("hears_each", [False, True])
@pytest.mark.parametrize("copies", [None, 1, 2])
def test_one_network_that_hears_everybody_stands_for_the_team(hears_each, copies):
    shape = Shape(
        observation=1, macros=2, agents=2, embedding=1, hears_each=hears_each, copies=copies
    )
    assert shape.joint == (hears_each and copies == 1)


def test_a_norm_shifts_and_scales_each_row_by_itself():
    norm = {"gain": jnp.asarray([0.5, 1.0]), "b": jnp.asarray([0.25, -1.0])}
    found = gru.normed(norm, jnp.asarray([[1.0, 3.0], [30.0, 10.0], [4.0, 4.0]]))
    want = [[-1.5 + 0.25, 2 - 1], [1.5 + 0.25, -2 - 1], [0.25, -1]]
    np.testing.assert_allclose(found, want, atol=2e-5)


@pytest.mark.parametrize("device, rows", [("cpu", 1), ("gpu", 8)])
def test_a_gpu_takes_several_rows_at_once_and_a_cpu_is_kept_from_computing_twice(
    monkeypatch, device, rows
):
    monkeypatch.setattr(jax, "default_backend", lambda: device)
    assert gru._unrolled() == rows
    assert ("barrier" in str(jax.make_jaxpr(lambda x: gru._once(x))(1.0))) == (device == "cpu")


@pytest.mark.long
@pytest.mark.parametrize("name", NETWORKS)
def test_replay_decides_as_the_rollout_did(name):
    """Across episode, macro and instruction boundaries. A memory that is shifted or reset at the wrong row fails."""
    network = static_config(name).network
    state, transitions = played(name, 1)
    rows = by_agent(transitions)
    assert int(rows.switched.sum()) > 20
    assert int(rows.first.sum()) == 12 * 2 == int(rows.last.sum())
    logits = jax.vmap(partial(replayed_logits, network))(state.actor, rows)
    np.testing.assert_allclose(regret(logits, rows), 0.0, atol=1e-3)
    # Negative controls: a forgotten episode boundary and forgotten instructions are noticed.
    never = jnp.zeros_like(rows.first)
    wrong = jax.vmap(partial(replayed_logits, network))(state.actor, rows, never)
    assert regret(wrong, rows).max() > 1e-2
    silent = replace(rows, phrases=jnp.zeros_like(rows.phrases))
    wrong = jax.vmap(partial(replayed_logits, network))(state.actor, silent)
    assert regret(wrong, rows).max() > 1e-2


@pytest.mark.parametrize("role", ["actor", "critic"])
def test_the_first_layer_takes_the_concatenated_inputs(role):
    """D3: projected phrases stand beside the observation before the first layer."""
    shape = static_config("protected").network.shape
    params = gru._init(jax.random.key(0), shape, role)
    pairs = [[0, 0], [3, 0], [0, 5], [7, 7], [9, 1], [2, 2], [4, 0], [0, 1], [8, 3]]
    seen = Seen(
        observation=jax.random.normal(jax.random.key(1), (9, shape.observation)),
        last_macro=jnp.arange(-1, 8),
        phrases=jnp.array(pairs),
    )
    net = gru._with_phrases(params, VECTORS)
    users = cells.from_cell(shape, *CELL).project({**params, "cell": None}, VECTORS)
    for part in (0, 1):
        trunk, plain, table = jax.tree.map(
            lambda x, part=part: x[part], (net.trunk, params, users.table)
        )
        hears = shape.hears[part]
        got = gru._first(shape, trunk, hears * gru._heard(shape, net.table, seen), seen)
        heard = VECTORS[seen.phrases] * (part == 1)
        pieces = [seen.observation, jax.nn.one_hot(seen.last_macro, shape.macros)]
        pieces.append(heard[:, 0] @ plain["project"]["own"])
        if role == "critic":
            pieces.append(heard[:, 1] @ plain["project"]["team"])
        else:
            pieces.append((seen.phrases[:, 1:] > 0) * float(part == 1))
        entered = cells._inputs(shape, table, hears, seen)
        np.testing.assert_allclose(entered, jnp.concatenate(pieces, -1), rtol=1e-4, atol=1e-4)
        want = jnp.concatenate(pieces, -1) @ plain["first"]["w"] + plain["first"]["b"][None]
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_a_residual_actor_adds_to_the_uninstructed_logits():
    shape = static_config("residual").network.shape
    heads = jnp.array([[[1.0, 2.0], [3.0, 4.0]], [[10.0, 20.0], [30.0, 40.0]]])  # [R, L, M]
    said = shape.logits(heads, jnp.array([False, True]))
    np.testing.assert_array_equal(said, [[1.0, 2.0], [33.0, 44.0]])


def test_the_uninstructed_part_never_hears_a_phrase():
    network = static_config("protected").network
    actor = first_agent(team("protected", 4).actor)
    rows = first_agent(by_agent(someones(4)))
    net = network.project(actor, VECTORS)
    heads = []
    for phrases in (rows.phrases, jnp.zeros_like(rows.phrases)):
        seen = replace(Seen.before(rows), phrases=phrases)
        heads.append(
            network.unroll(network.shape, net, network.empty(NUM_ENVS), seen, rows.first)[2]
        )
    np.testing.assert_array_equal(heads[0][0], heads[1][0])
    assert jnp.abs(heads[0][1] - heads[1][1]).max() > 1e-3


def test_popart_keeps_values_while_it_moves_the_scale():
    state = team("shared", 7)
    kinds = {"w": jax.random.normal(jax.random.key(1), (3, 32, 2)), "b": jnp.ones((3, 2))}
    critic = {**first_agent(state.critic), "kind_heads": kinds}
    old = Scale.of(1.0)
    new = Scale(
        mean=jnp.array([20.0, -3.0]), square=jnp.array([900.0, 25.0]), weight=jnp.array([0.5, 0.9])
    )
    moved = old.rescale(critic, new)
    hidden = jax.random.normal(jax.random.key(0), (1, 7, 32))
    vectors, phrase = jnp.eye(4, 3, -1), jnp.arange(7) % 4  # row 0 is silence

    def outputs(critic):
        head = critic["head"]
        heads = hidden @ head["w"] + head["b"][:, None]
        return KindHeads.of(critic, vectors).add((phrase,), heads, hidden)

    for context in (False, True):
        flag = jnp.full(7, context)
        before = networks.value(outputs(critic), flag, old)
        after = networks.value(outputs(moved), flag, new)
        np.testing.assert_allclose(before, after, rtol=1e-4, atol=1e-3)


def test_the_layers_of_a_kind_add_to_the_part_that_hears():
    random = np.random.default_rng(0)
    weight, bias = random.normal(size=(3, 5, 4)), random.normal(size=(3, 4))
    vectors = np.array([[0, 0, 0], [1, 0, 0], [0.2, 0.5, 0.1]])  # silence, a kind, a reading
    heads, features = random.normal(size=(2, 6, 4)), random.normal(size=(2, 6, 5))
    phrases = np.array([[0, 0], [1, 1], [2, 2], [0, 1], [1, 0], [0, 2]])
    params = {"kind_heads": {"w": jnp.asarray(weight), "b": jnp.asarray(bias)}}
    kinds = KindHeads.of(params, jnp.asarray(vectors))
    seen = Seen(observation=None, last_macro=None, phrases=jnp.asarray(phrases))
    own, anyones = phrases[:, 0], phrases.max(1)
    for tables, said in (("own",), own), (("own", "team"), anyones), (("each",), anyones):
        net = Net(trunk=None, table=dict.fromkeys(tables), kinds=kinds)
        found = net.with_kinds(seen, jnp.asarray(heads), jnp.asarray(features))
        np.testing.assert_array_equal(found[0], np.float32(heads[0]))
        for row, number in enumerate(said):
            added = sum(
                vectors[number, e] * (features[1, row] @ weight[e] + bias[e]) for e in range(3)
            )
            np.testing.assert_allclose(found[1, row], heads[1, row] + added, rtol=1e-4, atol=1e-5)
    assert net._replace(kinds=None).with_kinds(seen, found, found) is found


def test_values_are_in_units_of_the_value_scale():
    hidden = jax.random.normal(jax.random.key(0), (7, 32))
    state = team("shared", 7)
    head = first_agent(state.critic)["head"]
    heads = hidden @ head["w"] + head["b"][:, None]
    flag = jnp.zeros(7, bool)
    plain, large = (networks.value(heads, flag, Scale.of(size)) for size in (1.0, 100.0))
    np.testing.assert_allclose(large, 100 * plain, rtol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("way", ["each", "own", "cell"])
def test_of_two_instructions_a_critic_hears_the_sum(way):
    """Two phrases are heard as one phrase whose vector is their sum, also by the layers of the kinds."""
    shape = replace(static_config("protected").network.shape, kind_heads=True)
    if way == "each":
        shape = replace(shape, hears_each=True, copies=1)
    network = gru.network(shape) if way != "cell" else cells.from_cell(shape, *CELL)
    params = network.init(jax.random.key(0), shape, "critic")
    layers = jax.tree.map(
        lambda x: jax.random.normal(jax.random.key(1), x.shape), params["kind_heads"]
    )
    first, second = (
        jnp.array([[3, 3], [3, 0], [0, 0], [3, 3]]),
        jnp.array([[5, 5], [0, 5], [5, 5], [0, 0]]),
    )
    vectors = jnp.concatenate([VECTORS, VECTORS[3:4] + VECTORS[5:6]])
    both = len(VECTORS)
    net = network.project({**params, "kind_heads": layers}, vectors)
    observation = jax.random.normal(jax.random.key(2), (4, shape.observation))

    def heads(phrases, also=None):
        seen = Seen(
            observation=observation, last_macro=jnp.zeros(4, int), phrases=phrases, also=also
        )
        return network.step(shape, net, network.empty(4), seen)[1]

    found = heads(first, second)
    one = heads(jnp.array([[both, both], [3, 5], [5, 5], [3, 3]]))
    rows = [0, 2, 3]  # in the layers of the kinds a critic goes by one phrase of each instruction
    np.testing.assert_allclose(
        found[:, jnp.array(rows)], one[:, jnp.array(rows)], rtol=1e-4, atol=1e-4
    )
    assert np.abs(found[-1, 0] - heads(first)[-1, 0]).max() > 1e-3
    assert np.abs(found[-1, 0] - heads(second)[-1, 0]).max() > 1e-3
