"""Numbers as texts."""

import math

import pytest

from mavic.reporting import formats


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (291.978, "291.98"),
        (-0.004, "0.00"),
        (-1.5, "−1.50"),
        (math.nan, "—"),
        (12345.6, "12,345.60"),
    ],
)
def test_numbers_as_texts(value, text):
    assert formats.number(value) == text


def test_signs_survive_rounding_where_they_matter():
    assert formats.number(-0.04, 1, sign=True) == "−0.0"
    assert formats.number(0.0, 1, sign=True) == "0.0"


def test_a_fraction_below_one_is_never_rounded_up_to_100_percent():
    assert formats.percent(1.0, 2) == "100.00 %"
    assert formats.percent(0.99999, 2) == "99.99 %"
    assert formats.percent(0.9946) == "99.5 %"
    assert formats.percent(-0.02, 1, True) == "−2.0 %"
    assert formats.percent(math.nan) == "—"
