"""Numbers as texts of table cells. A cell is one or more lines."""

from __future__ import annotations

import math

from mavic.evaluation.metrics import Format
from mavic.reporting.stats import Difference, Estimate
from mavic.reporting.styles import MISSING

Lines = tuple[str, ...]
MINUS = "−"


def number(value: float, digits: int = 2, sign: bool = False) -> str:
    """Return a number with thousands separators and a typographic minus; a dash for nan.

    Args:
        value: The number.
        digits: How many decimals are written.
        sign: Positive numbers have a plus, and numbers that round to zero keep their sign.
    """
    if not math.isfinite(value):
        return MISSING
    signed = value != 0 if sign else round(value, digits) != 0
    prefix = (MINUS if value < 0 else "+" if sign else "") if signed else ""
    return f"{prefix}{abs(value):,.{digits}f}"


def hundredths(value: float, digits: int = 1, sign: bool = False) -> str:
    """Return a fraction in hundredths. A fraction below 1 is never rounded up to 100. Arguments as in `number`."""
    if value < 1:
        value = min(value, 1 - 10.0 ** -(digits + 2))
    return number(100 * value, digits, sign)


def percent(value: float, digits: int = 1, sign: bool = False) -> str:
    """Return a fraction in percent; a dash for nan. Arguments as in `number`."""
    return f"{hundredths(value, digits, sign)} %" if math.isfinite(value) else MISSING


def text(value: float, format: Format) -> str:
    """Return a value as a metric's format writes it."""
    return (percent if format.percent else number)(value, format.digits)


def spread(estimate: Estimate, format: Format) -> str:
    """Return the mean ± the standard deviation; the mean alone for one seed."""
    if not math.isfinite(estimate.std):
        return text(estimate.mean, format)
    if format.percent:
        middle = hundredths(estimate.mean, format.digits)
        return f"{middle} ± {number(100 * estimate.std, format.digits)} %"
    return f"{number(estimate.mean, format.digits)} ± {number(estimate.std, format.digits)}"


def bounds(found: Estimate | Difference, format: Format) -> str:
    """Return the interval of the mean in brackets; a dash if it is unknown."""
    if not math.isfinite(found.low):
        return MISSING
    write = hundredths if format.percent else number
    low, high = (write(bound, format.digits, format.sign) for bound in (found.low, found.high))
    return f"[{low}, {high}]"


def cell(estimate: Estimate, format: Format) -> Lines:
    """Return the lines of a table cell: the mean and the worst seed, or the spread and the interval."""
    if not format.worst:
        return (spread(estimate, format), bounds(estimate, format))
    if not math.isfinite(estimate.mean):
        return (MISSING,)
    return (text(estimate.mean, format), f"≥{text(estimate.min, format)}")
