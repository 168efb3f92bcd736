"""Estimates over seeds, with every interval worked out by hand."""

import math

import numpy as np
import pytest
from sample_records import only_row

from mavic.reporting.stats import estimates


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        # of 5 draws with probability 1/5 each, 10 comes up 0 times in 33 % and at most 3 times in 99.3 %, at most
        # twice in 94.2 %: the 2.5 % quantile of the mean is 0, the 97.5 % quantile 3 · 10 / 5
        ([0.0, 0.0, 0.0, 0.0, 10.0], 0.0, 6.0),
        # four equal cases 0, 1/2, 1/2, 1
        ([0.0, 1.0], 0.0, 1.0),
        # both extremes have probability 1/27 > 2.5 %
        ([0.0, 3.0, 6.0], 0.0, 6.0),
    ],
)
def test_interval_is_the_percentile_bootstrap(tmp_path, values, low, high):
    row = only_row(tmp_path, values)
    assert (row.estimate("base").low, row.estimate("base").high) == (
        pytest.approx(low),
        pytest.approx(high),
    )


@pytest.mark.parametrize("values", [[291.3] * 10, [0.1] * 3, [291.98]])
def test_the_interval_of_equal_seeds_or_one_seed_is_the_mean(tmp_path, values):
    base = only_row(tmp_path, values, leak=values).estimate("base")
    assert base.low == base.high == base.mean == pytest.approx(values[0])
    if len(values) == 1:
        assert math.isnan(base.std)
    else:
        assert base.std == pytest.approx(0)


def test_columns_do_not_influence_each_other():
    tied, varied, missing = estimates(
        np.array([[0.63, 1.0, np.nan], [0.63, 2.0, 1.0], [0.63, 3.0, 1.0]])
    )
    assert tied.low == tied.high == tied.mean
    assert varied.low < varied.mean < varied.high
    assert math.isnan(missing.mean) and math.isnan(missing.low) and math.isnan(missing.high)
