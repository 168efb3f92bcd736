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

from mavic.learn import act, backbones, batches, losses, update
from mavic.learn.batches import Batch
from mavic.learn.losses import ActorRows, ClippedRows
from mavic.learn.values import Values
from mavic.types import MacroTransitions


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
