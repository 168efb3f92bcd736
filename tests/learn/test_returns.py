"""Targets of six hand-written rows, worked by hand."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mavic.learn.returns import CORRECTIONS, Correction, targets

# Two episodes in one lane: rows 0-2, which end truly, and rows 3-4, cut by the horizon; row 5 is
# padding. The instruction changes after row 0 and again after row 3.
COLUMNS = {
    "reward": jnp.array([1.0, 2.0, 3.0, 4.0, 5.0, jnp.nan]),
    "discount": jnp.array([0.5, 0.25, 0.0, 0.5, 0.5, jnp.nan]),
    "v_same_instruction": jnp.array([10.0, 20.0, 99.0, 40.0, 50.0, jnp.nan]),
    "v_next_instruction": jnp.array([12.0, 20.0, 77.0, 48.0, 50.0, jnp.nan]),
    "switched": jnp.array([True, False, True, True, False, True]),
    "last": jnp.array([False, False, True, False, True, False]),
}
BY_HAND = {
    ("none", 1): [1 + 0.5 * 12, 2 + 0.25 * 20, 3, 4 + 0.5 * 48, 5 + 0.5 * 50],
    ("shift", 1): [1 + 0.5 * 10, 2 + 0.25 * 20, 3, 4 + 0.5 * 40, 5 + 0.5 * 50],
    ("cut", 1): [1 + 0.5 * 10, 2 + 0.25 * 20, 3, 4 + 0.5 * 40, 5 + 0.5 * 50],
    # Timestep 0 goes on to row 1's one-step target, 7; row 3 to row 4's, 30.
    ("none", 2): [1 + 0.5 * 7, 2 + 0.25 * 3, 3, 4 + 0.5 * 30, 30],
    ("shift", 2): [1 + 0.5 * (7 + 10 - 12), 2 + 0.25 * 3, 3, 4 + 0.5 * (30 + 40 - 48), 30],
    ("cut", 2): [1 + 0.5 * 10, 2 + 0.25 * 3, 3, 4 + 0.5 * 40, 30],
    # From three steps on, row 0 sees row 1's whole return, 2.75; nothing crosses row 2 or row 4.
    ("none", 3): [1 + 0.5 * 2.75, 2.75, 3, 4 + 0.5 * 30, 30],
    ("shift", 3): [1 + 0.5 * (2.75 - 2), 2.75, 3, 4 + 0.5 * (30 - 8), 30],
    ("cut", 3): [1 + 0.5 * 10, 2.75, 3, 4 + 0.5 * 40, 30],
}
WHOLE = {(name, math.inf): row for (name, n), row in BY_HAND.items() if n == 3}
AS_WHOLE = {(name, n): BY_HAND[name, 3] for name in CORRECTIONS for n in (5, 6, 100)}


@pytest.mark.parametrize("case, by_hand", (BY_HAND | WHOLE | AS_WHOLE).items(), ids=str)
def test_rows_worked_by_hand(case, by_hand):
    name, n_steps = case
    got = targets(**COLUMNS, correction=CORRECTIONS[name], n_steps=n_steps)
    np.testing.assert_array_equal(got[:5], by_hand)


@pytest.mark.parametrize("n_steps", [1, 2, 5, math.inf])
def test_the_final_row_bootstraps_though_nobody_said_it_was_last(n_steps):
    whole = {name: column[:5] for name, column in COLUMNS.items()}
    whole["last"] = whole["last"].at[4].set(False)
    got = targets(**whole, correction=CORRECTIONS["none"], n_steps=n_steps)
    assert got[4] == 5 + 0.5 * 50


SHAPE = (40, 3, 2)


@pytest.fixture
def columns():
    """Rows of many short episodes with changes of instruction and true ends, at random."""
    rng = np.random.default_rng(0)
    shape = SHAPE
    made = {
        "reward": rng.normal(size=shape),
        "discount": 0.95 ** rng.integers(1, 9, shape) * (rng.random(shape) > 0.1),
        "v_same_instruction": rng.normal(size=shape),
        "v_next_instruction": rng.normal(size=shape),
        "switched": rng.random(shape) < 0.3,
        "last": rng.random(shape) < 0.1,
    }
    return jax.tree.map(jnp.asarray, made)


def test_the_scan_is_the_operator_applied_often(columns):
    for correction in CORRECTIONS.values():
        scanned = targets(**columns, correction=correction, n_steps=math.inf)
        applied = targets(**columns, correction=correction, n_steps=39)
        np.testing.assert_allclose(scanned, applied, rtol=2e-6, atol=2e-6)
        assert scanned.shape == SHAPE


@pytest.mark.parametrize("name", CORRECTIONS)
def test_a_traced_return_weighs_the_returns_of_every_length(name, columns):
    """Whence the name: sum over n of (1 - lambda) lambda^(n-1) times the n-step target."""
    td_lambda, rows = 0.7, SHAPE[0]
    by_length = [
        targets(**columns, correction=CORRECTIONS[name], n_steps=n) for n in range(1, rows + 1)
    ]
    weights = [(1 - td_lambda) * td_lambda**n for n in range(rows - 1)] + [td_lambda ** (rows - 1)]
    expected = sum(w * g for w, g in zip(weights, by_length, strict=True))
    got = targets(**columns, correction=CORRECTIONS[name], n_steps=math.inf, td_lambda=td_lambda)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    without = targets(**columns, correction=CORRECTIONS[name], n_steps=math.inf, td_lambda=0.0)
    np.testing.assert_allclose(without, by_length[0], rtol=1e-5, atol=1e-6)


def test_trailing_axes_are_separate_lanes():
    spread = {
        name: jnp.stack([column[:5], column[:5][::-1]], axis=1) for name, column in COLUMNS.items()
    }
    for n_steps in (1, 3, math.inf):
        got = targets(**spread, correction=CORRECTIONS["shift"], n_steps=n_steps)
        for lane in range(2):
            alone = {name: column[:, lane] for name, column in spread.items()}
            single = targets(**alone, correction=CORRECTIONS["shift"], n_steps=n_steps)
            np.testing.assert_array_equal(got[:, lane], single)


@pytest.mark.parametrize("n_steps", [1, 3, math.inf])
def test_methods_in_one_program(n_steps):
    """Corrections stack into one pytree, and a vmapped, compiled run gives each method its own."""
    columns = {name: column[:5] for name, column in COLUMNS.items()}
    stacked = jax.tree.map(lambda *leaves: jnp.array(leaves), *CORRECTIONS.values())
    assert isinstance(stacked, Correction)
    together = jax.jit(
        jax.vmap(lambda c: targets(**columns, correction=c, n_steps=n_steps)),
    )(stacked)
    for row, correction in zip(together, CORRECTIONS.values(), strict=True):
        alone = targets(**columns, correction=correction, n_steps=n_steps)
        np.testing.assert_allclose(row, alone, rtol=1e-6)


@pytest.mark.parametrize("n_steps", [0, -1, 0.5, 2.5, math.nan, -math.inf])
def test_n_steps_must_be_a_number_of_rows(n_steps):
    with pytest.raises(ValueError, match="n_steps"):
        targets(**COLUMNS, correction=CORRECTIONS["cut"], n_steps=n_steps)


def test_single_precision_stays_single():
    for n_steps in (1, 5, math.inf):
        assert targets(**COLUMNS, correction=CORRECTIONS["cut"], n_steps=n_steps).dtype == "float32"
