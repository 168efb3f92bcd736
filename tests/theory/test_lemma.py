"""Lemma 1: which targets have V_c as their fixed point. Figures in docs/record/theory.md."""

import dataclasses

import numpy as np
import pytest
import readings
import table

from mavic.theory import semi_mdp

FEW = 20
BOTH = pytest.mark.parametrize("arrivals", semi_mdp.ARRIVALS)


@BOTH
@pytest.mark.parametrize("reading", ["shift", "cut"])
def test_shift_and_cut_have_the_single_instruction_value_as_fixed_point(reading, arrivals):
    assert table.fixed_points(FEW, arrivals, reading).max() < table.EXACT
    assert table.divergent(FEW, arrivals, reading) == 0


@BOTH
@pytest.mark.parametrize("reading", ["none", "literal", "double", "appendix"])
def test_the_other_readings_have_not(reading, arrivals):
    found = table.fixed_points(FEW, arrivals, reading)
    assert found.min() > 0.05, "every instance, every n"
    assert np.median(found) > 0.3


def test_the_literal_readings_diverge():
    for reading in ("literal", "double"):
        assert table.divergent(FEW, "anytime", reading) == 1
        assert table.divergent(FEW, "boundary", reading) > 0.5
    for reading in ("none", "appendix"):
        assert table.divergent(FEW, "anytime", reading) == 0


@BOTH
def test_without_changes_of_instruction_every_reading_is_right(arrivals):
    for world in semi_mdp.worlds(5, arrivals):
        still = dataclasses.replace(world, change=0.0)
        for reading in readings.READINGS:
            for n_steps in table.N_STEPS:
                assert readings.deviation(still, reading, n_steps) < table.EXACT


def test_a_wrong_discount_moves_the_fixed_point():
    """The comparison with V_c is not blind: rows discounted by gamma instead of gamma**tau fail."""
    for world in semi_mdp.worlds(5, "anytime"):
        kernels = world.kernels()
        truth = kernels.values(world.policy)
        wrong = dataclasses.replace(
            kernels,
            stay=kernels.stay / world.gamma,  # gamma**(tau - 1)
            leave=kernels.leave / world.gamma,
        )
        found = wrong.under(world.policy).fixed_point(readings.READINGS["cut"], 1)
        assert np.abs(found - truth).max() > 0.05 * np.abs(truth).max()


def test_interruptions_change_the_problem_itself():
    """V_c is the value in M_c with the same interruptions: re-deciding early is another problem
    than never being interrupted, unless changes wait for the macro's own end."""
    assert table.interruption_gap(FEW, "boundary").max() < table.EXACT
    anytime = table.interruption_gap(FEW, "anytime")
    assert anytime.min() > 1e-3
    assert np.median(anytime) > 0.02


@pytest.mark.slow
@pytest.mark.parametrize("make", table.TABLES)
def test_the_page_shows_the_figures(make, request):
    page = (request.config.rootpath / "docs" / "record" / "theory.md").read_text(encoding="utf-8")
    assert make(table.INSTANCES) in page
