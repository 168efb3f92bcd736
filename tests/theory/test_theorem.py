"""Theorem 1 by exact policy iteration: who ends in a policy that is optimal in every M_c?"""

import pytest
import table
from readings import READINGS

from mavic.theory import semi_mdp

FEW = 30
OPTIMAL = 1e-9


@pytest.mark.parametrize("arrivals", semi_mdp.ARRIVALS)
@pytest.mark.parametrize("reading", ["shift", "cut"])
def test_corrected_targets_end_optimal_under_every_instruction(reading, arrivals):
    matched, _ = table.losses(FEW, arrivals, reading)
    assert (matched < OPTIMAL).all()


@pytest.mark.parametrize("arrivals", semi_mdp.ARRIVALS)
@pytest.mark.parametrize("reading", ["none", "literal"])
def test_naive_and_literal_targets_often_do_not(reading, arrivals):
    matched, _ = table.losses(FEW, arrivals, reading)
    assert (matched > OPTIMAL).mean() > 0.2
    assert matched.max() > 0.01


def test_optimal_with_interruptions_need_not_be_optimal_without():
    _, anytime = table.losses(FEW, "anytime", "cut")
    assert (anytime > OPTIMAL).mean() > 0.2
    _, boundary = table.losses(FEW, "boundary", "cut")
    assert (boundary < OPTIMAL).all()


def test_the_judge_is_independent_of_policy_iteration():
    """A random policy falls short of value iteration's optimum, and none exceeds it."""
    for world in semi_mdp.worlds(5, "anytime"):
        kernels = world.kernels()
        assert kernels.loss(world.policy) > 0.05
        for reading in ("none", "cut"):
            policy = semi_mdp.iterate_policy(kernels, READINGS[reading])
            best = kernels.best_values()
            assert (kernels.values(policy) <= best + 1e-9).all()
