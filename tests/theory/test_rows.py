"""Truths about rows: ticks as macro transitions have the same returns, and corrections act only at changes."""

import math

import numpy as np
import pytest
import sampled

from mavic.theory import semi_mdp

BOTH = pytest.mark.parametrize("arrivals", semi_mdp.ARRIVALS)
VALUES = np.random.default_rng(5).normal(size=semi_mdp.CLASSES * semi_mdp.STATES) * 5


def _primitive_returns(world, sample, lane):
    """Tick by tick, from the far end: the return from each row's first tick."""
    found, onward = np.zeros(len(sample.place)), 0.0
    for k in reversed(range(len(found))):
        if sample.over[k, lane]:
            onward = 0.0
        elif sample.last[k, lane]:
            onward = VALUES[sample.place_kept[k, lane]]
        for j in reversed(range(sample.length[k, lane])):
            onward = sample.ticks[k, j, lane] + world.gamma * onward
        found[k] = onward
    return found


@BOTH
def test_the_return_of_macro_transitions_is_the_primitive_return(arrivals):
    world, sample = sampled.world_and_sample(arrivals)
    columns = sample.columns(VALUES, world.gamma)
    right = sampled.ours(columns, "none", math.inf)
    off = {**columns, "discount": np.where(sample.over, 0.0, world.gamma ** (sample.length - 1))}
    wrong = sampled.ours(off, "none", math.inf)
    for lane in range(10):
        primitive = _primitive_returns(world, sample, lane)
        np.testing.assert_allclose(right[:, lane], primitive, rtol=0, atol=1e-12)
        assert np.abs(wrong[:, lane] - primitive).max() > 0.05


@BOTH
def test_shift_is_cut_at_one_step_bit_for_bit(arrivals):
    world, sample = sampled.world_and_sample(arrivals)
    columns = sample.columns(VALUES, world.gamma)
    assert sample.switched.mean() > 0.1
    shift, cut = sampled.ours(columns, "shift", 1), sampled.ours(columns, "cut", 1)
    np.testing.assert_array_equal(shift, cut)
    assert (sampled.ours(columns, "shift", 2) != sampled.ours(columns, "cut", 2)).any()
    assert (sampled.ours(columns, "none", 1) != cut)[sample.switched].all()


@BOTH
@pytest.mark.parametrize("n_steps", [1, 2, 5, math.inf])
def test_without_a_change_all_corrections_are_equal_bit_for_bit(n_steps, arrivals):
    world, sample = sampled.world_and_sample(arrivals)
    columns = sample.columns(VALUES, world.gamma)
    columns["v_same_instruction"] = columns["v_same_instruction"] + 100.0  # nobody may read it
    still = columns | {"switched": np.zeros_like(sample.switched)}
    naive, shift, cut = (sampled.ours(still, c, n_steps) for c in ("none", "shift", "cut"))
    np.testing.assert_array_equal(naive, shift)
    np.testing.assert_array_equal(naive, cut)
    for correction in ("shift", "cut"):
        assert (sampled.ours(columns, correction, n_steps) != naive).any()


def test_each_correction_reads_only_what_it_may_before_a_change():
    """Rows whose window holds no change have the naive target, whatever happens later."""
    world, sample = sampled.world_and_sample("anytime")
    columns = sample.columns(VALUES, world.gamma)
    n_steps = 3
    reached = np.ones_like(sample.switched)
    quiet = np.ones_like(sample.switched)
    for j in range(n_steps):
        pad = ((0, j), (0, 0))
        switched = np.pad(sample.switched[j:], pad)
        last = np.pad(sample.last[j:], pad, constant_values=True)
        quiet &= ~(reached & switched)
        reached &= ~last
    naive = sampled.ours(columns, "none", n_steps)
    for correction in ("shift", "cut"):
        same = sampled.ours(columns, correction, n_steps) == naive
        assert same[quiet].all()
        assert not same[~quiet].all()
