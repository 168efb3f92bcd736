"""Our learners take every recorded update of the reference: rows, targets, advantages, losses, gradients, weights."""

from __future__ import annotations

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from golden.updates import VECTORS, RecordedUpdates, all_updates
from mavic.learn import backbones, batches, update
from mavic.learn.returns import CORRECTIONS

GRADIENT, TARGET = 1e-4, 1e-5  # of the largest number of the tensor


@partial(jax.jit, static_argnames="static")
def learn(static, hyper, state, ticks):
    placed = batches.place(static.network.shape, static.critic.shape, ticks, drop_unfinished=True)
    batch = batches.batch_of(placed, hyper.gamma)
    return batch, *backbones.learn(static, hyper, CORRECTIONS["none"], VECTORS, state, batch)


@lru_cache(maxsize=8)
def learnt(path, number):
    recorded = RecordedUpdates(path)
    found = learn(
        recorded.static_config(),
        recorded.hyper(),
        recorded.state(number),
        recorded.ticks(number),
    )
    return recorded, jax.tree.map(np.asarray, found)


def column(names: list[str], name: str, count: int) -> int:
    """The column of an agent's or the team's rows."""
    return names.index(name) if count > 1 else 0


def by_episode(values, valid):
    """[K, E, ...] → [E, L, ...], cut to the recorded length."""
    return np.moveaxis(values, 0, 1)[:, : valid.shape[1]][valid]


def near(ours, theirs, share, what):
    """Differ by no more than this share of the largest number."""
    np.testing.assert_allclose(
        ours, theirs, rtol=0, atol=share * np.abs(theirs).max() + 1e-12, err_msg=what
    )


def each_update(recorded):
    for number in range(recorded.count):
        yield number, *learnt(recorded.path, number)[1]


def rows_of(recorded, batch, name):
    """Our rows of a recorded name, and their column."""
    if name == "joint" or batch.actor.macro.shape[-1] == 1:
        return batch.critic, 0
    return batch.actor, int(name)


@all_updates()
def test_rows_are_the_recorded_ones(recorded):
    """Which macros, seen where, earning what. Observations that nobody takes in are marked and must not turn up."""
    gamma = recorded.meta["gamma"]
    for number, batch, _, _ in each_update(recorded):
        for name in {key.split("/")[2] for key in recorded.arrays if key.startswith(f"u{number}/rows/")}:
            rows, i = rows_of(recorded, batch, name)
            role = "actor" if name in recorded.names("actor") else "critic"
            inputs = recorded.inputs(role, name)

            def theirs(key, name=name, number=number):
                return recorded.arrays.get(f"u{number}/rows/{name}/{key}")

            valid = theirs("valid") > 0
            assert rows.valid[:, :, i].sum(0).tolist() == theirs("epi_len").tolist()
            for key, ours, exact in (
                ("obs", rows.observation[:, :, i][..., inputs], True),
                ("next_obs", rows.next_observation[:, :, i][..., inputs], True),
                ("action", rows.macro[:, :, i], True),
                ("reward", rows.reward[:, :, i], False),
                ("terminate", rows.discount[:, :, i] == 0, True),
                ("discount", gamma ** rows.time[:, :, i], False),
            ):
                if theirs(key) is None or (key in ("next_obs", "terminate") and name != "joint" and recorded.backbone != "mac-iac"):
                    continue
                want = theirs(key)[valid]
                if exact:
                    np.testing.assert_array_equal(by_episode(ours, valid), want, err_msg=key)
                else:
                    np.testing.assert_allclose(
                        by_episode(ours, valid), want, rtol=2e-6, atol=1e-5, err_msg=key
                    )
