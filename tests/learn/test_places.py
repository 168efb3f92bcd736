"""Which row, which agent and which sign: the learner's pieces on numbers that name their place.

Networks are replaced by plain numbers, so hardly anything is compiled.
"""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

from mavic.learn import acac, act, backbones, batches, bptt, cells, gru, losses, update
from mavic.learn.batches import Batch
from mavic.learn.losses import ActorOutputs, ActorRows, ClippedRows
from mavic.learn.networks import Shape
from mavic.learn.popart import Scale
from mavic.learn.update import CriticOutputs
from mavic.learn.values import Values
from mavic.learn.views import VIEWS
from mavic.types import MacroTransitions, replace


@pytest.fixture(autouse=True)
def hollow(monkeypatch):
    """Networks and rows are stand-ins, which annotations would refuse."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def column(*values, kind=jnp.float32):
    return jnp.asarray(values, kind)[:, None]


def batch_of(**own) -> Batch:
    """Three rows of an agent over five rows of the team: begun in rows 0, 1, 3, ended in rows 0, 2, 4."""
    flags = dict(valid=[True] * 3, last=[False] * 3, bootstraps_from_self=[False] * 3, **own)
    rows = SimpleNamespace(**{name: column(*x, kind=bool) for name, x in flags.items()})
    team = SimpleNamespace(valid=jnp.ones((5, 1), bool))
    begun, ended = (column(*x, kind=jnp.int32) for x in ((0, 1, 3), (0, 2, 4)))
    return Batch(rows=rows, team=team, begun=begun, ended=ended)


def test_a_macro_is_valued_where_it_began_and_what_follows_where_it_ended():
    of_team = Values(
        value=column(0, 1, 2, 3, 4),
        v_same_instruction=column(10, 11, 12, 13, 14),
        v_next_instruction=column(20, 21, 22, 23, 24),
        memory=jnp.zeros(0),
    )
    batch = batch_of()
    found = of_team.of_macros(batch)
    assert found.value[:, 0].tolist() == [0, 1, 3]
    assert found.v_same_instruction[:, 0].tolist() == [10, 12, 14]
    assert found.v_next_instruction[:, 0].tolist() == [20, 22, 24]
    batch.rows.bootstraps_from_self = column(False, True, False, kind=bool)
    batch.rows.last = column(False, True, True, kind=bool)
    found = of_team.of_macros(batch)
    assert found.v_same_instruction[:, 0].tolist() == [10, 1, 14]
    assert found.v_next_instruction[:, 0].tolist() == [20, 1, 14]  # an episode has no next row
    assert of_team.of_macros(Batch(rows=batch.rows)) is of_team


def test_targets_stand_at_the_teams_rows_in_which_macros_began():
    batch = batch_of()
    target, valid = update._at_team_rows(column(5, 6, 7), batch)
    assert target[:, 0].tolist() == [5, 6, 0, 7, 0]
    assert valid[:, 0].tolist() == [True, True, False, True, False]
    batch.rows.valid = column(True, False, True, kind=bool)
    target, valid = update._at_team_rows(column(5, 6, 7), batch)
    assert target[:, 0].tolist() == [5, 0, 0, 7, 0]


def test_rows_weigh_alike_and_balanced_kinds_do():
    kind, valid = column(0, 0, 0, 2, 1, kind=jnp.int32), column(1, 1, 1, 1, 0)
    plain, balanced = (update._weigh(kind, valid, 3, jnp.float32(flag)) for flag in (0, 1))
    assert plain[:, 0].tolist() == pytest.approx([1 / 4] * 4 + [0])
    assert balanced[:, 0].tolist() == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2, 0])


def test_advantages_are_centred_and_divided_kind_by_kind():
    advantage, kind = column(1, 5, -2, 6, 100), column(0, 0, 1, 1, 1, kind=jnp.int32)
    valid, ones = column(1, 1, 1, 1, 0), jnp.ones((5, 1))
    by_hand = [-1, 1, -1, 1]  # 3 ± 2 and 2 ± 4
    found = update._normalize(advantage, kind, valid, 2, ones, ones)
    assert found[:4, 0].tolist() == pytest.approx(by_hand, abs=1e-5)
    found = update._normalize(advantage, kind, valid, 2, ones, 0 * ones)
    assert found[:4, 0].tolist() == pytest.approx([-2, 2, -4, 4])
    halved = update._normalize(advantage, kind, valid, 2, ones, 0.5 * ones)
    assert halved[:4, 0].tolist() == pytest.approx([-(2**0.5), 2**0.5, -2, 2], abs=1e-5)
    plain = update._normalize(advantage, kind, valid, 2, 0 * ones, 0 * ones)
    assert plain[:, 0].tolist() == [1, 5, -2, 6, 0]


def network(joint: bool, counts: tuple[int, ...] = (2, 3)) -> SimpleNamespace:
    """A network whose logits are what the rows say they saw."""
    shape = SimpleNamespace(
        joint=joint,
        macro_counts=counts,
        agents=len(counts),
        logits=lambda heads, instructed: heads,
    )
    return SimpleNamespace(
        shape=shape, unroll=lambda _, net, memory, seen, *__: (memory, None, seen)
    )


def rows_of(logits, available, macro, *, forbidden=None, **more) -> ActorRows:
    available = jnp.asarray(available, bool)
    numbers = dict(epsilon=0.0, entropy=0.0, advantage=1.0, weight=1.0) | more
    wide = {name: jnp.broadcast_to(jnp.float32(x), (len(macro), 1)) for name, x in numbers.items()}
    return ActorRows(
        seen=jnp.asarray(logits, jnp.float32)[:, None],
        first=None,
        instructed=None,
        available=available[:, None],
        macro=column(*macro, kind=jnp.int32),
        forbidden=jnp.zeros_like(available[:, None])
        if forbidden is None
        else jnp.asarray(forbidden, bool)[:, None],
        **wide,
    )


def test_a_combination_needs_every_agents_macro():
    """Agents with two and three macros. The first can choose only its macro 1, the second only 0 and 2."""
    available = [[False, True, False, True, False, True]]  # each agent's, padded to three macros
    logits = np.log(
        [[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]]
    )  # of the six combinations, the first agent counts most
    _, loss, acted = losses.actor_loss(
        network(joint=True), None, None, rows_of(logits, available, [3]), None
    )
    share = 8 / (8 + 32)  # of the combinations 3 = (1, 0) and 5 = (1, 2)
    assert acted.log_prob.item() == pytest.approx(np.log(share), abs=1e-6)
    assert loss.item() == pytest.approx(-np.log(share), abs=1e-6)
    entropy = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    assert acted.entropy.item() == pytest.approx(entropy, abs=1e-6)


def test_a_combination_is_forbidden_if_one_macro_is():
    available, no = [[True] * 2 + [False] + [True] * 3], [False] * 3
    rows = rows_of(
        np.log([[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]]),
        available,
        [0],
        forbidden=[[True, False, False, *no[:2], True]],
        advantage=0.0,
        allowed_weight=2.0,
    )
    _, loss, _ = losses.actor_loss(network(joint=True), None, None, rows, None)
    assert loss.item() == pytest.approx(-2 * np.log((8 + 16) / 63), abs=1e-5)


def test_both_losses_by_hand():
    """Two rows with two macros each; the ratios of the second pass are 2 and 1/2."""
    logits, available = np.log([[1.0, 3.0], [1.0, 1.0]]), [[True, True]] * 2
    rows = rows_of(logits, available, [1, 0], epsilon=0.2)
    rows = update.replace(
        rows, advantage=column(2, -3), weight=column(0.25, 0.75), entropy=column(0.1, 0.2)
    )
    plain = network(joint=False)
    chance = np.array([0.8 * 0.75 + 0.1, 0.5])
    entropy = np.array([-(0.25 * np.log(0.25) + 0.75 * np.log(0.75)), np.log(2)])
    bonus = np.array([0.1, 0.2]) * entropy
    _, loss, acted = losses.actor_loss(plain, None, None, rows, None)
    gain = np.array([2, -3]) * np.log(chance)
    assert acted.log_prob[:, 0].tolist() == pytest.approx(np.log(chance).tolist(), abs=1e-6)
    assert loss.item() == pytest.approx(-(np.array([0.25, 0.75]) * (gain + bonus)).sum(), abs=1e-5)
    before = column(*np.log(chance / [2, 0.5]))
    clipped = ClippedRows(rows=rows, log_prob=before, clip=jnp.full((2, 1), 0.1))
    _, loss, _ = losses.clipped_actor_loss(plain, None, None, clipped, None)
    gain = np.array([min(2 * 2, 1.1 * 2), min(0.5 * -3, 0.9 * -3)])
    assert loss.item() == pytest.approx(-(np.array([0.25, 0.75]) * (gain + bonus)).sum(), abs=1e-5)


def test_an_agents_own_critic_of_the_team_has_that_agents_context():
    names = MacroTransitions.__dataclass_fields__
    rows = MacroTransitions(**dict.fromkeys(names, jnp.zeros((3, 1, 2))))
    team = MacroTransitions(**dict.fromkeys(names, jnp.zeros((5, 1, 1))))
    contexts = jnp.arange(10).reshape(5, 1, 2)
    place = jnp.zeros((3, 1, 2), int)
    batch = Batch(rows=rows, team=team, begun=place, ended=place, contexts=contexts)
    config = SimpleNamespace(backbone="mac-iaicc")
    columns, axes = backbones._of_critics(config, batch)
    found = jax.vmap(lambda batch: batch.critic.context, in_axes=(axes,))(columns)
    assert found[:, :, 0].tolist() == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    one, _ = backbones._of_critics(SimpleNamespace(backbone="mac-naive-iacc"), batch)
    assert one.critic.context.shape == (1, 5, 1)  # a critic of the whole team has the team's


def test_the_contexts_of_the_teams_rows_are_those_of_the_ticks_in_which_they_end(monkeypatch):
    ticks = SimpleNamespace(
        context=jnp.arange(8).reshape(4, 1, 2), fresh=jnp.ones((4, 1, 2), bool), macro=jnp.zeros((4, 1, 2), int)
    )  # fmt: skip
    ends = jnp.asarray([0, 1, 3, -1])[:, None, None]
    own = jnp.repeat(ends, 2, -1)
    monkeypatch.setattr(batches, "macro_transitions", lambda *_: None)
    made = batches.batch_of([ticks, ticks], [own, ends], 0.9)
    assert made.contexts[:3, 0].tolist() == [[0, 1], [2, 3], [6, 7]]


@pytest.mark.parametrize("heads, expected", [(2, [[10, 20]]), (1, [[20]])])
def test_one_critic_of_the_team_has_the_largest_context_and_several_have_their_agents(
    monkeypatch, heads, expected
):
    monkeypatch.setattr(act, "_step", lambda *_: (jnp.zeros((heads, 1)), None))
    monkeypatch.setattr(act.networks, "value", lambda heads, context, scale: 10 * context)
    found = act.values(None, None, jnp.zeros(heads), None, None, jnp.asarray([[1, 2]]), None)
    assert found.tolist() == expected


def test_who_is_busy_keeps_the_macro_and_others_take_the_likeliest_available_one(monkeypatch):
    logits = jnp.log(jnp.asarray([[[1.0, 2.0, 4.0]], [[1.0, 4.0, 2.0]], [[4.0, 2.0, 1.0]]]))
    monkeypatch.setattr(act, "_policy_logits", lambda *_: (logits, "after"))
    observed = act.Observed(
        observation=jnp.zeros((1, 3, 1)), last_macro=jnp.asarray([[0, 0, 2]]), phrase=jnp.zeros((1, 3), int)
    )  # fmt: skip
    idle, available = jnp.asarray([[True, True, False]]), jnp.ones((1, 3, 3), bool)
    found, memory = act.decide(
        network(joint=False), None, None, observed, idle, available.at[0, 0, 2].set(False),
        jnp.zeros((1, 1)), jnp.zeros((1, 3)), True,
    )  # fmt: skip
    assert found.tolist() == [[1, 1, 2]] and memory == "after"


def test_a_draw_falls_on_the_available_macros_only_also_at_its_ends():
    """Chances of 1/4 and 3/4 beside a macro that is not available. A draw that was rounded to 1 takes the last one."""
    logits = jnp.log(jnp.asarray([1.0, 9.0, 3.0]))
    for places, chances in (((0, 2), (True, False, True)), ((1, 2), (False, True, True))):
        wide = logits if places[0] == 0 else jnp.log(jnp.asarray([9.0, 1.0, 3.0]))
        draws = jnp.asarray([0.0, 0.24, 0.26, 1.0])
        every = (jnp.broadcast_to(jnp.asarray(x), (4, 3)) for x in (wide, chances))
        found = act._choose(*every, jnp.zeros(4), draws, jnp.asarray(False))
        assert found.tolist() == [places[0], places[0], places[1], places[1]]


def test_a_draw_that_was_rounded_to_one_takes_the_last_combination():
    found = act._choose_jointly(
        (2, 3), jnp.zeros((2, 2), int), jnp.ones((2, 2), bool), jnp.zeros((2, 6)), jnp.ones((2, 2, 3), bool),
        jnp.zeros(2), jnp.asarray([0.0, 1.0]), False,
    )  # fmt: skip
    assert found.tolist() == [[0, 0], [1, 2]]


def test_the_metrics_are_means_over_agents_of_their_uninstructed_and_instructed_rows():
    """Two critics of four rows, and two actors of two. What does not count is a thousand."""

    def wide(*agents, kind=jnp.float32):
        return jnp.asarray(agents, kind)[:, :, None]

    value = wide([1, 2, 4, 1000], [3, 1000, 5, 7])
    critic = CriticOutputs(
        target=10 * value, valid=wide([1, 1, 1, 0], [1, 0, 1, 1]), value=value, advantage=value,
        loss=jnp.asarray([2.0, 6.0]),
    )  # fmt: skip
    entropy = wide([1, 5], [2, 1000])
    found = backbones._Learnt(
        kind=wide([0, 1, 2, 1], kind=int),
        rows=SimpleNamespace(
            kind=wide([0, 2], [1, 0], kind=int), valid=wide([1, 1], [1, 0], kind=bool)
        ),
        critic=critic,
        advantage=value,
        actor=ActorOutputs(log_prob=entropy, entropy=entropy),
    ).metrics()
    assert found.value.tolist() == [(1 + 3) / 2, (3 + 6) / 2]
    assert found.target.tolist() == [20, 45]
    assert found.entropy.tolist() == [(1 + 0) / 2, (5 + 2) / 2]
    assert found.rows.tolist() == [(1 + 0) / 2, (1 + 1) / 2]
    assert found.critic_loss == 4


def test_a_step_goes_against_the_gradient():
    """Adam's first step has the size asked for, whatever the gradient's."""
    params = {"w": jnp.asarray([1.0, 1.0, 1.0])}
    start = update._optimizer(1.0, 0.9).init(params)
    grads, hyper = {"w": jnp.asarray([2.0, -0.5, 0.0])}, SimpleNamespace(adam_b2=0.9)
    after, _ = update._descend(grads, params, start, jnp.float32(0.25), hyper)
    assert after["w"].tolist() == pytest.approx([0.75, 1.25, 1.0])


LANES = 2
BLOCK = bptt._CPU_BLOCK
BLOCKS, IN_USE = 4, 3 * BLOCK  # the last block is not in use


def test_blocks_follow_one_another_up_to_the_last():
    rows = jnp.arange(BLOCKS * BLOCK * LANES).reshape(-1, LANES)

    def segment(carry, block):
        total = carry[None] + jnp.cumsum(block, axis=0)
        return total[-1], total

    found = bptt.forward(segment, jnp.asarray([1000, 2000]), rows, jnp.int32(3))
    want = np.asarray([[1000, 2000]]) + np.cumsum(rows, axis=0)
    assert found[:IN_USE].tolist() == want[:IN_USE].tolist() and not found[IN_USE:].any()


def test_the_gradient_in_blocks_is_the_gradient_of_all_rows():
    """A memory that fades: each row keeps a share of the one before and adds its own number."""
    rows = jnp.sin(jnp.arange(BLOCKS * BLOCK * LANES)).reshape(-1, LANES)
    start, share = jnp.asarray([5.0, -4.0]), jnp.float32(0.9)

    def run(share, memory, rows):
        def step(memory, row):
            memory = share * memory + row
            return memory, memory

        return jax.lax.scan(step, memory, rows)[1]

    def segment(share, memory, block, known):
        found = run(share, memory, block)
        return found[-1], (found**2).sum(), found - known + 7

    in_use = rows[:IN_USE]
    memory = jnp.concatenate([run(share, start, in_use), jnp.full((BLOCK, LANES), 1000.0)])
    grads, total, outputs = bptt.gradient(segment, share, start, rows, memory, jnp.int32(3))
    want, slope = jax.value_and_grad(lambda share: (run(share, start, in_use) ** 2).sum())(share)
    assert total == pytest.approx(float(want), rel=1e-5)
    assert grads == pytest.approx(float(slope), rel=1e-5)
    np.testing.assert_allclose(outputs[:IN_USE], 7, atol=1e-5)
    assert not outputs[IN_USE:].any()


def test_a_function_of_some_rows_stands_in_these_rows():
    wanted = jnp.asarray(np.random.default_rng(0).random((5, 7)) < 0.4)
    chunks = bptt._chunks_for(wanted)
    assert chunks == -(-int(wanted.sum()) // 3)  # a sixteenth of 35 rows each
    found = bptt.map_where(wanted, lambda k, w: 10.0 * k + w + 1, chunks)
    rows, lanes = np.arange(5)[:, None], np.arange(7)[None]
    assert found.tolist() == np.where(wanted, 10.0 * rows + lanes + 1, 0).tolist()


def test_the_first_batch_replaces_a_constant_scale_where_it_has_rows():
    scale = Scale.of(5.0)
    assert scale.centre().tolist() == [0, 0] and scale.spread().tolist() == pytest.approx([5, 5])
    target, head = column(2, 4, 1000), column(0, 0, 0, kind=jnp.int32)
    for size in (0.5, 0.25):
        moved = scale.track(target, head, column(1, 1, 0), jnp.float32(size))
        assert moved.weight.tolist() == pytest.approx([size, 0], abs=2e-6)
        assert moved.centre().tolist() == pytest.approx([3, 0], abs=1e-4)
        assert moved.spread().tolist() == pytest.approx([(10 - 3**2) ** 0.5, 5], abs=1e-3)
    kept = scale.track(target, head, column(1, 1, 0), jnp.float32(0))
    assert kept.spread().tolist() == pytest.approx([5, 5]) and not kept.centre().any()


def test_a_critic_gives_the_same_values_under_its_new_scale():
    """Means 2 and -4 and spreads 4 and 3 become means 1 and 10 and spreads 2 and 1/2."""
    old = Scale(mean=jnp.asarray([1.0, -2.0]), square=jnp.asarray([10.0, 12.5]), weight=jnp.full(2, 0.5))  # fmt: skip
    new = Scale(mean=jnp.asarray([0.5, 5.0]), square=jnp.asarray([2.5, 50.125]), weight=jnp.full(2, 0.5))  # fmt: skip
    weight, bias = jnp.asarray([[[1.0, 2.0], [3.0, 4.0]]]), jnp.asarray([[5.0, 6.0]])
    layer = {"w": weight, "b": bias}
    moved = old.rescale({"head": layer, "kind_heads": layer}, new)
    assert moved["head"]["w"].tolist() == [[[1 * 4 / 2, 2 * 3 * 2], [3 * 4 / 2, 4 * 3 * 2]]]
    assert moved["head"]["b"].tolist() == [[(5 * 4 + 2 - 1) / 2, (6 * 3 - 4 - 10) * 2]]
    assert moved["kind_heads"]["w"].tolist() == moved["head"]["w"].tolist()
    assert moved["kind_heads"]["b"].tolist() == [[5 * 4 / 2, 6 * 3 * 2]]


@pytest.mark.parametrize("size", [0.0, 0.5])
def test_a_scale_that_grows_keeps_the_largest_targets_and_no_mean(size):
    scale, head = Scale.of(0.0), column(0, 1, kind=jnp.int32)
    for target, spread in (((3, -4), (3, 4)), ((-2, 5), (3, 5)), ((6, 1), (6, 5))):
        scale = scale.track(column(*target), head, column(1, 1), jnp.float32(size))
        assert scale.spread().tolist() == pytest.approx(spread)
        assert not scale.centre().any() and scale.weight.tolist() == [1, 1]
    assert scale.track(column(9, 9), head, column(0, 1), 0.0).spread().tolist() == [6, 9]


def test_only_the_critic_of_acac_attends_and_only_its_networks_are_its_own(monkeypatch):
    shape = Shape(observation=1, macros=2, agents=2, embedding=1, macro_counts=(2, 2))
    makes = {name: backbones.networks_of(name, shape) for name in backbones.BACKBONES}
    actor, critic = makes["acac"]
    assert critic is acac.critic(VIEWS["tokens"].widen(shape))
    for made in (actor, *(each for name in makes if name != "acac" for each in makes[name])):
        assert made is None or made.init is gru._init
    monkeypatch.setitem(cells.CELLS, "mine", cells.Cell(init=None, step=None))
    for name in makes:
        if name == "acac":
            with pytest.raises(ValueError, match="has networks of its own"):
                backbones.networks_of(name, replace(shape, cell="mine"))
        else:
            made, _ = backbones.networks_of(name, replace(shape, cell="mine"))
            assert made.init is not gru._init
