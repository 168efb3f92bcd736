"""`mavic.learn.returns` against exact expected targets, and wrong targets that must be seen."""

import math

import numpy as np
import pytest
import sampled

from mavic.theory import semi_mdp

N_STEPS = (1, 2, 5, math.inf)
BOTH = pytest.mark.parametrize("arrivals", semi_mdp.ARRIVALS)
SURE = 4.5  # standard errors; 18 cells are looked at
WRONG = 9.0


@BOTH
@pytest.mark.parametrize("correction", ["none", "shift", "cut"])
def test_mean_targets_are_the_exact_ones(correction, arrivals):
    for n_steps in N_STEPS:
        assert sampled.surprise(arrivals, correction, n_steps) < SURE


def _exponent(columns, sample, world):
    off_by_one = world.gamma ** (sample.length - 1)
    return columns | {"discount": np.where(sample.over, 0.0, off_by_one)}


def _constant(columns, sample, world):
    return columns | {"discount": np.where(sample.over, 0.0, world.gamma)}


def _no_end(columns, sample, world):
    return columns | {"discount": world.gamma**sample.length}


def _from_next(columns, sample, world):
    return columns | {"v_same_instruction": columns["v_next_instruction"]}


def _unnoticed(columns, sample, world):
    return columns | {"switched": np.zeros_like(columns["switched"])}


def _reads_on(columns, sample, world):
    return columns | {"last": np.zeros_like(columns["last"])}


@BOTH
@pytest.mark.parametrize("correction", ["shift", "cut"])
@pytest.mark.parametrize(
    "mistake, n_steps",
    [
        (_exponent, 1),
        (_exponent, 5),
        (_constant, 1),
        (_no_end, 1),
        (_from_next, 1),
        (_from_next, math.inf),
        (_unnoticed, 1),
        (_reads_on, 5),
        (_reads_on, math.inf),
    ],
)
def test_wrong_columns_are_seen(mistake, n_steps, correction, arrivals):
    assert sampled.surprise(arrivals, correction, n_steps, columns=mistake) > WRONG


def _literal(columns, reading, n_steps):
    """Paper, the return equation as printed."""
    lost = np.where(columns["switched"], columns["discount"] * columns["v_next_instruction"], 0.0)
    return sampled.ours(columns, reading, n_steps) - lost


def _one_more(columns, reading, n_steps):
    return sampled.ours(columns, reading, n_steps + 1)


@BOTH
@pytest.mark.parametrize("correction", ["shift", "cut"])
@pytest.mark.parametrize("made_by", [_literal, _one_more])
def test_wrong_targets_are_seen(made_by, correction, arrivals):
    assert sampled.surprise(arrivals, correction, 2, made_by=made_by) > WRONG


@BOTH
def test_corrections_are_told_apart(arrivals):
    swapped = {"none": "cut", "cut": "shift", "shift": "none"}
    for right, wrong in swapped.items():
        seen = sampled.surprise(
            arrivals, right, 5, made_by=lambda c, _, n, wrong=wrong: sampled.ours(c, wrong, n)
        )
        assert seen > WRONG


@pytest.mark.long
@BOTH
@pytest.mark.parametrize("n_steps", [1, 5, math.inf])
def test_a_table_learnt_from_our_targets_finds_the_single_instruction_values(n_steps, arrivals):
    def learnt(correction):
        return sampled.learn_table(arrivals, n_steps, lambda c, n: sampled.ours(c, correction, n))

    assert learnt("cut") < 0.06
    assert learnt("shift") < 0.06
    assert learnt("none") > 0.15


def test_a_table_learnt_from_the_literal_equation_blows_up():
    """True ends damp it; without any, every pass over the data makes it worse."""
    literal = sampled.learn_table("anytime", 1, lambda c, n: _literal(c, "cut", n), over=0.0)
    assert literal > 10
    assert sampled.learn_table("anytime", 1, lambda c, n: sampled.ours(c, "cut", n), over=0.0) < 0.1
