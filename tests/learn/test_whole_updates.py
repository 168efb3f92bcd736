"""Whole updates are those that the independent computation found (`whole_updates.py` wrote them)."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small_batch
import small_ticks
import test_acac
import test_numbers
from whole_updates import DATA, KINDS, tree

from mavic.experiment.methods import hyperparams_of
from mavic.learn.popart import Scale
from mavic.learn.returns import CORRECTIONS
from mavic.types import replace


@cache
def stored(name: str) -> dict[str, np.ndarray]:
    with np.load(DATA / f"{name}.npz") as file:
        return dict(file)


def state_of(arrays, like):
    """The stored state: nothing of it depends on how this version draws untrained weights."""
    nets = {
        name: jax.tree.map(jnp.asarray, tree(arrays, name))
        for name in ("actor", "critic", "target")
    }
    return replace(like, **nets, scale=Scale(**tree(arrays, "scale")))


def near(ours, theirs, share, what):
    """Differ by no more than this share of the largest number."""
    largest = np.abs(theirs).max()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=share * largest + 1e-9, err_msg=what)


def test_an_update_with_layers_of_the_kinds_drills_and_three_contexts():
    arrays = stored("kinds")
    like, rows, learn = test_numbers.setting(kind_heads=True)
    assert all(np.array_equal(rows[name], x) for name, x in tree(arrays, "rows").items())
    drilled = rows["forbidden"].any(-1) & ~(rows["forbidden"] & rows["available"]).any(-1)
    assert drilled.any() and set(np.unique(rows["context"][rows["valid"]])) == {0, 1, 2}
    preset = test_numbers.replaced(test_numbers.BASE, kind_heads=True)
    correction = jax.tree.map(jnp.float32, CORRECTIONS[test_numbers.CASES[KINDS][1]])
    after, found = learn(hyperparams_of(preset), correction, state_of(arrays, like))
    for i in range(test_numbers.AGENTS):
        own = small_batch.of_agent(rows, i)["valid"]
        want = tree(arrays, f"want{i}")
        for key in ("target", "value"):
            ours = np.asarray(getattr(found.critic, key))[i][: len(own)][own]
            near(ours, want[key][own], 1e-5, key)
        near(found.critic.loss[i], want["loss"], 1e-4, "loss")
        for key in ("mean", "square", "weight"):
            near(getattr(after.scale, key)[i], want[key], 1e-5, key)
        for role in ("actor", "critic"):
            moments = getattr(after, f"{role}_optimizer")[0].mu
            for path, gradient in _leaves(tree(arrays, f"gradient{i}")[role]).items():
                ours = _leaves(moments)[path][i]
                near(ours, 0.1 * gradient, 5e-4, f"{role} of agent {i}: {path}")


@pytest.mark.long
def test_an_update_of_acac():
    arrays = stored("acac")
    like, _, _ = test_acac.made()
    ticks = small_ticks.timestep(tree(arrays, "ticks"))
    batch, after, found = test_acac.learn(state_of(arrays, like), ticks)
    used = np.asarray(batch.critic.valid[:, :, 0].T)
    target = np.asarray(found.critic.target[0])[: used.shape[1]].T[used]
    near(target, arrays["want/target"], 1e-5, "target")
    near(after.scale.square[0], arrays["want/square"], 1e-4, "square")
    theirs = {"critic": (after.critic_optimizer[0].mu, 0)}
    theirs |= {f"actor{i}": (after.actor_optimizer[0].mu, i) for i in range(test_acac.AGENTS)}
    for name, (moments, place) in theirs.items():
        for path, moment in _leaves(tree(arrays, "moment")[name]).items():
            near(_leaves(moments)[path][place], moment, 1e-3, f"{name}: {path}")


def _leaves(branch, path=""):
    if not isinstance(branch, dict):
        return {path: np.asarray(branch)}
    return {k: v for name in branch for k, v in _leaves(branch[name], f"{path}/{name}").items()}
