"""Our learners take every recorded update of the reference: rows, targets, advantages, losses, gradients, weights."""

from __future__ import annotations

from functools import lru_cache, partial

import jax
import numpy as np
import pytest

from golden.updates import ALGORITHMS, VECTORS, RecordedUpdates, all_named, by_file
from mavic.learn import backbones, batches, update
from mavic.learn.returns import CORRECTIONS
from mavic.learn.transitions import as_played

TARGET, GRADIENT = 1e-5, 1e-4  # of the largest number of the array
ADAM = 3e-4  # a float's noise in a small gradient may move a weight by this, of the step size


@partial(jax.jit, static_argnames="static")
def learn(static, hyper, state, ticks):
    dropped = dict(drop_unfinished=True)
    views = batches.views_of(static.network.shape, static.critic.shape, ticks, **dropped)
    batch = batches.batch_of(views, [as_played(view, **dropped) for view in views], hyper.gamma)
    return batch, *backbones.learn(static, hyper, CORRECTIONS["none"], VECTORS, state, batch)


@lru_cache(maxsize=4)
def learnt(recorded: RecordedUpdates):
    """Every update of a file: the number, our batch, our next state, and what was computed on the way."""
    static, hyper, found = recorded.static_config(), recorded.hyper(), []
    for number in range(recorded.count):
        made = learn(static, hyper, recorded.state(number), recorded.ticks(number))
        found.append((number, *jax.tree.map(np.asarray, made)))
    return found


def in_order(values, valid):
    """Our values [K, E, ...] of the recorded rows [E, L] that are valid."""
    return np.moveaxis(values, 0, 1)[:, : valid.shape[1]][valid]


def near(ours, theirs, share, what=""):
    """Differ by no more than this share of the largest number."""
    largest = np.abs(theirs).max()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=share * largest, err_msg=what)


@by_file("mac")
def test_rows_are_the_recorded_ones(recorded):
    """What a busy agent would see now is marked in the ticks and must not turn up in the team's rows."""
    gamma, checked = recorded.meta["gamma"], set()
    for number, batch, _, _ in learnt(recorded):
        for name in recorded.row_names(number):
            team = name == "joint"
            rows, i = (batch.critic, 0) if team else (batch.rows, int(name))
            inputs = recorded.inputs("critic" if team else "actor", name)
            ours = {
                "obs": rows.observation[:, :, i][..., inputs],
                "next_obs": rows.next_observation[:, :, i][..., inputs],
                "action": rows.macro[:, :, i],
                "terminate": rows.discount[:, :, i] == 0,
                "reward": rows.reward[:, :, i],
                "discount": gamma ** rows.time[:, :, i],
            }
            valid = recorded.get(number, f"rows/{name}/valid") > 0
            assert (
                rows.valid[:, :, i].sum(0).tolist()
                == recorded.get(number, f"rows/{name}/epi_len").tolist()
            )
            for key, values in ours.items():
                theirs = recorded.arrays.get(f"u{number}/rows/{name}/{key}")
                if theirs is None:
                    continue
                checked.add(key)
                if key in ("reward", "discount"):  # sums and powers, rounded in another order
                    np.testing.assert_allclose(
                        in_order(values, valid), theirs[valid], rtol=2e-6, atol=1e-5, err_msg=key
                    )
                else:
                    np.testing.assert_array_equal(
                        in_order(values, valid), theirs[valid], err_msg=key
                    )
    assert checked >= {"obs", "action", "discount", "reward", "terminate"}


@by_file("mac_iaicc")
def test_an_agents_macros_lie_in_the_teams_rows_as_recorded(recorded):
    for number, batch, _, _ in learnt(recorded):
        for i, name in enumerate(recorded.names("actor")):
            starts = recorded.get(number, f"rows/{name}/joint_mac_start")
            seen = recorded.get(number, f"rows/{name}/joint_obs")
            after = recorded.get(number, f"rows/{name}/joint_next_obs")
            length = seen.shape[1]
            own = batch.rows.valid[:, :, i]
            marks = np.zeros(batch.critic.valid.size, bool)
            marks[batch.begun[:, :, i][own]] = True
            marks = marks.reshape(batch.critic.valid.shape[:2]).T
            np.testing.assert_array_equal(marks[:, :length], starts)
            assert not marks[:, length:].any()
            inputs, valid = recorded.inputs("critic", name), batch.critic.valid[:length, :, 0].T
            for key, theirs in (("observation", seen), ("next_observation", after)):
                ours = getattr(batch.critic, key)[:length, :, 0][..., inputs]
                np.testing.assert_array_equal(np.moveaxis(ours, 0, 1)[valid], theirs[valid])


@by_file("mac")
def test_targets_values_and_advantages_are_the_recorded_ones(recorded):
    for number, batch, _, found in learnt(recorded):
        for c, name in enumerate(recorded.names("critic")):
            valid = recorded.get(number, f"rows/{name}/valid") > 0
            critic = jax.tree.map(lambda x, c=c: x[c], found.critic)
            if recorded.backbone == "mac-iaicc":  # where its own macros began
                own = batch.begun[:, :, c]
                critic = jax.tree.map(
                    lambda x, own=own: x.reshape(-1)[own] if x.ndim else x, critic
                )
            for key, ours in (
                ("Gt", critic.target),
                ("v_before", critic.value),
                ("td", critic.target - critic.value),
                ("v_after", critic.target - critic.advantage),
            ):
                theirs = recorded.get(number, f"critic/{name}/{key}")[valid]
                near(in_order(ours, valid), theirs, TARGET, f"{name} {key}")
            near(critic.loss, recorded.get(number, f"critic/{name}/loss"), TARGET, "critic loss")
        for i, name in enumerate(recorded.names("actor")):
            valid = recorded.get(number, f"rows/{name}/valid") > 0
            for key, ours in (("adv", found.advantage[i]), ("logp", found.actor.log_prob[i])):
                theirs = recorded.get(number, f"actor/{name}/{key}")[valid]
                near(in_order(ours, valid), theirs, TARGET, f"{name} {key}")


@by_file("mac")
@pytest.mark.parametrize("role", ["critic", "actor"])
def test_gradients_and_steps_are_the_recorded_ones(recorded, role):
    """The gradient is read from Adam's first moment, whose own rounding is allowed for."""
    lr = recorded.meta[f"{role}_lr"]
    for number, _, state, _ in learnt(recorded):
        before = recorded.state(number)
        old, new = (getattr(s, f"{role}_optimizer")[0].mu for s in (before, state))
        gradient = jax.tree.map(lambda a, b: (np.asarray(b) - 0.9 * np.asarray(a)) / 0.1, old, new)
        for name in recorded.names(role):
            theirs = recorded.tensors(f"grad/{role}", name, number)
            moment = recorded.tensors(f"adam/{role}", name, number, moment="exp_avg")
            for tensor, ours in recorded.outof(gradient, role, name).items():
                want, rounding = theirs[tensor], 4e-7 * np.abs(moment[tensor]).max() / 0.1
                atol = GRADIENT * np.abs(want).max() + rounding
                np.testing.assert_allclose(ours, want, rtol=0, atol=atol, err_msg=tensor)
            after = recorded.tensors(role, name, number + 1)
            for tensor, ours in recorded.outof(getattr(state, role), role, name).items():
                np.testing.assert_allclose(ours, after[tensor], rtol=1e-6, atol=max(ADAM, lr * 0.1))
    assert (
        int(state.episodes) == recorded.get(number, "episodes_before") + recorded.meta["train_freq"]
    )


@jax.jit
def adam_step(gradient, weights, count, mu, nu, lr, hyper):
    adam, rest = update._optimizer(1.0, 0.999).init(weights)
    state = (adam._replace(count=count, mu=mu, nu=nu), rest)
    return update._descend(gradient, weights, state, lr, hyper)[0]


@by_file("mac")
def test_adam_makes_the_recorded_step_of_the_recorded_gradient(recorded):
    """All tensors of a network as one vector, padded to one size: one small program for all files."""

    def vector(prefix, name, number, moment=""):
        tensors = recorded.tensors(prefix, name, number, moment).values()
        flat = np.concatenate([tensor.reshape(-1) for tensor in tensors])
        return np.pad(flat, (0, 2**15 - len(flat)))

    for number in range(recorded.count):
        for role in ("critic", "actor"):
            for name in recorded.names(role):
                made = adam_step(
                    vector(f"grad/{role}", name, number),
                    vector(role, name, number),
                    recorded.arrays[f"adam/{role}/{name}/step"][number],
                    vector(f"adam/{role}", name, number, "exp_avg"),
                    vector(f"adam/{role}", name, number, "exp_avg_sq"),
                    np.float32(recorded.meta[f"{role}_lr"]),
                    recorded.hyper(),
                )
                theirs = vector(role, name, number + 1)
                np.testing.assert_allclose(made, theirs, rtol=2e-7, atol=2e-7)


@by_file("mac")
def test_the_target_critic_is_kept_and_copied_as_recorded(recorded):
    for number, _, state, _ in learnt(recorded):
        for name in recorded.names("critic"):
            theirs = recorded.tensors("critic_tgt", name, number + 1)
            ours = recorded.outof(state.target, "critic", name)
            for tensor, want in theirs.items():
                np.testing.assert_allclose(ours[tensor], want, rtol=1e-6, atol=ADAM)


def test_some_recorded_updates_keep_the_target_critic_and_some_copy_it():
    kept = []
    for recorded in all_named("mac").values():
        for number in range(1, recorded.count + 1):
            for name in recorded.names("critic"):
                target, fresh = (
                    recorded.tensors(x, name, number) for x in ("critic_tgt", "critic")
                )
                kept.append(any((target[tensor] != fresh[tensor]).any() for tensor in fresh))
    assert any(kept) and not all(kept)


def test_every_backbone_of_the_reference_has_its_algorithm():
    assert set(ALGORITHMS.values()) | {"acac"} == set(backbones.BACKBONES)
