"""Number by number: the same results as with whole arrays, and no array operation where it matters."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from corridor import LIVE, RAMBLING, Corridor, instructed

from mavic.experiment.task import task_of
from mavic.learn import update
from mavic.rollout.rollout import rollout
from mavic.session import session
from mavic.training.groups import groups_of
from mavic.training.runs import make_run, rollout_policy
from mavic.types import replace
from mavic.xla import scalars

TABLE = np.array([5, 7, 9, 11], np.int32)
LIKE = {
    "a": jnp.array([[3, -1, 4], [1, -5, 9]], jnp.int32),
    "b": jnp.array([[2, 7, 1], [8, 2, 8]], jnp.int32),
    "f": jnp.array([0.5, -1.25, 3.0]),
    "m": jnp.array([[True, False], [False, False], [True, True]]),
    "n": jnp.int32(2),
}
PACKING = scalars.Packing(LIKE)
BY_NUMBERS = {
    "arithmetic": lambda a, b, f, m, n: (a * 2 + b, a % n, -b, f / 4, jnp.abs(a) ** 2),
    "comparisons": lambda a, b, f, m, n: (a > b, (a == n) | (b >= 3), ~m, (a << 1) ^ b),
    "choices": lambda a, b, f, m, n: (jnp.where(a > b, a, n), jnp.where(f.sum() > 0, a, b)),
    "reductions": lambda a, b, f, m, n: (a.sum(), a.max(1), f.min(), m.any(0), m.all(1)),
    "first best": lambda a, b, f, m, n: (jnp.argmax(m, 1), jnp.argmin(a), jnp.argmax(b, 0)),
    "sums so far": lambda a, b, f, m, n: (jnp.cumsum(a, 1), jnp.cumsum(m[:, 0])),
    "shapes": lambda a, b, f, m, n: (
        a.T,
        a.reshape(3, 2),
        a[1, 1:],
        a[0],
        jnp.concatenate([a, b[:1]]),
        jnp.stack([f, f + 1], axis=1),
        jnp.broadcast_to(a[:, :1], (2, 4)),
    ),
    "tables": lambda a, b, f, m, n: (
        jnp.asarray(TABLE).at[a].get(mode="clip"),
        jnp.asarray(TABLE).at[a].get(mode="fill", fill_value=-7),
        jnp.asarray(TABLE)[b % 4],
    ),
    "functions": lambda a, b, f, m, n: (jax.jit(lambda x: x + n)(a), jax.nn.relu(f)),
    "types": lambda a, b, f, m, n: (m.astype(jnp.float32), f.astype(jnp.int32), a.astype(bool)),
}
WHOLE = {
    "sorted": lambda a, b, f, m, n: jnp.sort(a, axis=1) + b,
    "product": lambda a, b, f, m, n: (a @ b.T).sum(0),
    "large": lambda a, b, f, m, n: jnp.arange(100) * n + a[0, 0],
    "replaced": lambda a, b, f, m, n: a.at[n - 1].set(b[0]).max(),
    "loop": lambda a, b, f, m, n: jax.lax.fori_loop(0, n, lambda i, x: x * 2 + i, a),
}


@pytest.fixture
def apart(monkeypatch):
    """Do on the CPU what is otherwise done on a GPU alone."""
    jax.clear_caches()  # of shapes and traces made the other way
    monkeypatch.setenv("MAVIC_SCALARS", "1")
    yield
    jax.clear_caches()


def packed_and_computed(function):
    """Return a function of the packed arrays, computed number by number."""
    return scalars.number_by_number(lambda packed: function(**PACKING.unpack(packed)))


def same(found, wanted):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", [*BY_NUMBERS, *WHOLE])
def test_results_are_those_of_whole_arrays(apart, name):
    function = (BY_NUMBERS | WHOLE)[name]
    call = packed_and_computed(function)
    same(jax.jit(call)(PACKING.pack(LIKE)), function(**LIKE))
    batch = jax.tree.map(lambda x: jnp.stack([x, jnp.roll(x, 1)]), LIKE)
    found = jax.jit(jax.vmap(lambda tree: call(PACKING.pack(tree))))(batch)
    same(found, jax.vmap(lambda tree: function(**tree))(batch))


@pytest.mark.parametrize("name", BY_NUMBERS)
def test_nothing_but_numbers_is_computed(apart, name):
    """Inside, every operation has the shape of the batch. Only packing and the results put numbers together."""
    traced = jax.make_jaxpr(packed_and_computed(BY_NUMBERS[name]))(PACKING.pack(LIKE))
    moves = ("stack", "concatenate", "reshape", "broadcast_in_dim", "slice", "squeeze", "gather")
    moves += ("convert_element_type", "device_put", "expand_dims", "dynamic_slice", "jit", "pjit")
    shaped = {
        e.primitive.name for e in traced.jaxpr.eqns if any(v.aval.ndim for v in e.outvars)
    } - set(moves)
    assert not shaped


def test_what_is_packed_is_what_is_unpacked(apart):
    random = np.random.default_rng(0)
    tree = {
        "bool": jnp.array([True, False]),
        "int8": jnp.array([-128, 127], jnp.int8),
        "int16": jnp.int16(-300),
        "uint32": jnp.array([0, 2**32 - 1], jnp.uint32),
        "float": jnp.array([[jnp.inf, -0.0], [jnp.nan, 1e-42]]),
        "half": jnp.ones(3, jnp.float16),
        "large": jnp.asarray(random.normal(size=(7, 9)), jnp.float32),
        "key": jax.random.key(3),
    }
    packing = scalars.Packing(tree)
    words, large = packing.pack(tree)
    assert words.shape == (2 + 2 + 1 + 2 + 4,) and len(large) == 3
    found = packing.unpack((words, large))
    for name, leaf in tree.items():
        assert found[name].dtype == leaf.dtype and found[name].shape == leaf.shape
    bits = [x["float"].view(jnp.int32) for x in (found, tree)]
    np.testing.assert_array_equal(*bits)
    for name in ("bool", "int8", "int16", "uint32", "half", "large"):
        np.testing.assert_array_equal(found[name], tree[name])
    many = jax.tree.map(lambda x: jnp.stack([x] * 5), PACKING.pack(LIKE))
    same(PACKING.unpack(many), jax.tree.map(lambda x: jnp.stack([x] * 5), LIKE))


@pytest.mark.parametrize(
    "device, switch, apart",
    [("cpu", "", False), ("gpu", "", True), ("gpu", "0", False), ("cpu", "1", True)],
)
def test_the_device_and_the_switch_decide(monkeypatch, device, switch, apart):
    """MAVIC_SCALARS overrides the rule that only a CPU keeps arrays whole."""
    monkeypatch.setattr(jax, "default_backend", lambda: device)
    monkeypatch.setenv("MAVIC_SCALARS", switch)

    def double(x):
        return 2 * x

    assert (scalars.number_by_number(double) is not double) == apart
    assert (PACKING.pack(LIKE) is not LIKE) == apart


def test_a_wrong_switch_is_refused(monkeypatch):
    monkeypatch.setenv("MAVIC_SCALARS", "off")
    with pytest.raises(ValueError, match="MAVIC_SCALARS is 'off'; it must be 0 or 1"):
        PACKING.pack(LIKE)


@pytest.mark.parametrize("first_to_finish", [False, True])
def test_episodes_are_the_same_number_by_number(monkeypatch, first_to_finish):
    place = replace(instructed(Corridor(horizon=12)), schedule=LIVE)

    def play():
        options = dict(episodes=7, num_envs=3, first_to_finish=first_to_finish)
        return jax.jit(lambda: rollout(place, RAMBLING, jax.random.key(5), **options))()

    jax.clear_caches()
    wanted = jax.device_get(play())
    monkeypatch.setenv("MAVIC_SCALARS", "1")
    jax.clear_caches()
    same(jax.device_get(play()), wanted)
    jax.clear_caches()


@pytest.mark.long
@pytest.mark.parametrize("preset", ["tuned", "paper"])
@pytest.mark.parametrize("world", ["box_pushing", "warehouse", "overcooked"])
def test_the_worlds_are_the_same_number_by_number(monkeypatch, world, preset):
    """As if on a GPU: what the worlds themselves do in another order there is compared too."""
    (group,) = groups_of(session.configs_of(world, preset=preset), [3])
    config = group.configs[0]
    task = task_of(config)
    static = task.static_config(group.preset, config.network, config.backbone)
    run = make_run(config, group.preset, task, 3)
    team = update.init(jax.random.key(0), static)

    def play():
        policy = rollout_policy(static, team.actor, task.vectors, jnp.full(3, 0.5))
        options = dict(episodes=12, num_envs=4, first_to_finish=preset == "paper")
        return jax.jit(lambda: rollout(run.train_env, policy, run.key, **options))()

    wanted = jax.device_get(play())
    assert wanted.rows.alive.any() and wanted.rows.task_reward.any()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert PACKING.pack(LIKE) is not LIKE
    jax.clear_caches()
    same(jax.device_get(play()), wanted)
    jax.clear_caches()
