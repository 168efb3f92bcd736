"""How much of the other instructions' values enters the target of one."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import readings
import sampled
import table

from mavic.theory import semi_mdp

FEW = 20
BOTH = pytest.mark.parametrize("arrivals", semi_mdp.ARRIVALS)


@BOTH
def test_expected_leak_of_errors(arrivals):
    assert table.leaks(FEW, arrivals, "cut").max() == 0
    at_1, at_5, at_inf = table.leaks(FEW, arrivals, "shift").T
    assert at_1.max() == 0
    assert at_5.min() > 0.1
    assert (at_inf > at_5).all(), "the longer the return, the more"
    at_1, at_5, at_inf = table.leaks(FEW, arrivals, "none").T
    assert at_1.min() > 0.1
    assert at_5.min() > 0.1
    assert at_inf.max() == 0, "no bootstrap at all; what leaks are the rewards themselves"


@BOTH
def test_the_worth_of_other_instructions_leaks_into_the_naive_value_only(arrivals):
    for world in semi_mdp.worlds(FEW, arrivals):
        for n_steps in table.N_STEPS:
            assert readings.leak_of_worth(world, "cut", n_steps) < table.EXACT
            assert readings.leak_of_worth(world, "shift", n_steps) < table.EXACT
            assert readings.leak_of_worth(world, "none", n_steps) > 0.1


@BOTH
@pytest.mark.parametrize("n_steps", [1, 5, math.inf])
def test_leak_of_our_targets_row_by_row(arrivals, n_steps):
    """One unit of error in the values of every class but the row's own."""
    world, sample = sampled.world_and_sample(arrivals)
    values = np.random.default_rng(3).normal(size=semi_mdp.CLASSES * semi_mdp.STATES)
    kind = sample.place // semi_mdp.STATES

    def moved(correction, kinds):
        """Change of all targets if the values of `kinds` were wrong by one."""
        wrong = values + np.isin(np.arange(len(values)) // semi_mdp.STATES, kinds)
        before = sampled.ours(sample.columns(values, world.gamma), correction, n_steps)
        after = sampled.ours(sample.columns(wrong, world.gamma), correction, n_steps)
        return np.abs(after - before)

    leak = {
        correction: max(
            moved(correction, [k for k in range(semi_mdp.CLASSES) if k != own])[kind == own].max()
            for own in range(semi_mdp.CLASSES)
        )
        for correction in ("none", "shift", "cut")
    }
    assert leak["cut"] == 0
    assert leak["none"] > 0.5
    if n_steps == 1:
        assert leak["shift"] == 0
    else:
        assert leak["shift"] > 0.2


def test_cut_is_the_less_noisy_target():
    """At the exact values both are unbiased; only `shift` goes on through the other's rewards."""
    rng = np.random.default_rng(11)
    world = semi_mdp.draw(rng, "anytime")
    truth = world.kernels().values(world.policy)
    sample = sampled.sample_rows(world, rng, lanes=1500, blocks=1, horizon=40)
    spread = {}
    for correction in ("shift", "cut"):
        for n_steps in table.N_STEPS:
            got = sampled.ours(sample.columns(truth, world.gamma), correction, n_steps)
            rest = (got - truth[sample.place])[:8]
            spread[correction, n_steps] = float(np.sqrt((rest**2).mean()))
    print("standard deviation of a target at the exact values:", spread)
    assert spread["shift", 1] == spread["cut", 1]
    assert spread["shift", 5] > 1.2 * spread["cut", 5]
    assert spread["shift", math.inf] > 1.5 * spread["cut", math.inf]


def test_gradients_agree_that_cut_reads_nothing_beyond_a_change():
    """Derivatives of a target by every bootstrap and reward below the first change are zero."""
    columns = {
        "reward": np.ones(6),
        "discount": np.full(6, 0.9),
        "v_same_instruction": np.arange(6.0),
        "v_next_instruction": np.arange(6.0) + 3,
    }
    flags = {"switched": jnp.array([0, 0, 1, 0, 0, 0], bool), "last": jnp.zeros(6, bool)}

    def first_target(columns, correction):
        return sampled.targets(
            **columns, **flags, correction=sampled.CORRECTIONS[correction], n_steps=math.inf
        )[0]

    read = {c: jax.grad(first_target)(columns, c) for c in ("shift", "cut")}
    for name in ("reward", "v_same_instruction", "v_next_instruction"):
        assert not np.asarray(read["cut"][name])[3:].any()
    assert np.asarray(read["cut"]["v_same_instruction"])[2] != 0
    assert np.asarray(read["cut"]["v_next_instruction"])[2] == 0
    assert np.asarray(read["shift"]["reward"])[3:].all()
