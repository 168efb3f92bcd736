"""The ranges of numbers. Each is written once, in the annotation of a field, and error messages state it.

    gamma: Annotated[float, Range(0, 1)] = 0.995

`check` compares a record with its annotations: types, ranges, and that no number is nan or infinite.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

LARGEST_SEED = 2**31 - 1
FOREVER = 1_000_000  # ticks: to the end of any episode
WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


class RangeError(ValueError):
    """A value is outside its range. The message names the value and what is allowed."""


@dataclasses.dataclass(frozen=True)
class Range:
    """The numbers that are allowed: from `low` to `high`, without `low` itself if it is `above`."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False

    def holds(self, number: float) -> bool:
        """Return whether a number is allowed. nan and infinite ones never are."""
        if number != number or number in (math.inf, -math.inf):
            return False
        return (number > self.low if self.above else number >= self.low) and number <= self.high

    def words(self) -> str:
        """Return the range as the end of a sentence, such as `from 0 to 1`."""
        low, high = _digits(self.low), _digits(self.high)
        if self.low == -math.inf:
            return "that is finite" if self.high == math.inf else f"of at most {high}"
        first = f"above {low}" if self.above else f"from {low}"
        if self.high == math.inf:
            return first if self.above else f"of {low} or more"
        return f"{first} {'and at most' if self.above else 'to'} {high}"


def _digits(number: float) -> str:
    return f"{number:,.0f}" if number == round(number, 0) and abs(number) < 1e12 else f"{number:g}"


@dataclasses.dataclass(frozen=True)
class Some:
    """A list that must not be empty and must not hold the same thing twice."""


FINITE = Range()
Count = Annotated[int, Range(1, 10**9)]
Share = Annotated[float, Range(0, 1)]
Positive = Annotated[float, Range(0, 1e9, above=True)]
NotNegative = Annotated[float, Range(0, 1e9)]
Ticks = Annotated[int, Range(1, FOREVER)]
Seed = Annotated[int, Range(0, LARGEST_SEED)]


def check(record: Any, label: str = "") -> None:
    """Raise `RangeError` unless every field of a dataclass has its type and is in its range.

    Args:
        record: The dataclass.
        label: What messages put before a field's name. With "--" fields are named as options of the command line.
    """
    for name, annotation in _annotations(record.__class__).items():
        told = name.replace("_", "-") if label else name
        check_value(getattr(record, name), annotation, f"{label}{told}")


@cache
def _annotations(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def check_value(value: Any, annotation: Any, name: str) -> None:
    """Raise `RangeError` unless a value has the annotated type and is in its range.

    Args:
        value: The value.
        annotation: Its type, such as `Annotated[float, Range(0, 1)]`.
        name: What the message calls it.
    """
    problem = _problem(value, annotation)
    if problem:
        raise RangeError(f"{name} must be {problem}, not {_shown(value)}")


def check_arguments(function: Any, given: Mapping[str, Any]) -> None:
    """Raise `RangeError` unless the plain numbers among the arguments `given` to a function are in their ranges.

    The ranges are those of the function's annotations.
    """
    hints = get_type_hints(function, include_extras=True)
    for name, value in given.items():
        if isinstance(value, bool | int | float):
            check_value(value, hints[name], name)


def _problem(value: Any, annotation: Any, allowed: Range = FINITE) -> str:
    """Return what the value must be, or "" if it is that."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        kind, *notes = inside
        ranges = [note for note in notes if isinstance(note, Range)]
        problem = _problem(value, kind, ranges[0] if ranges else allowed)
        if not problem and any(isinstance(note, Some) for note in notes):
            problem = _repeated(value)
        return problem
    if origin in (Union, types.UnionType):
        problems = [_problem(value, one, allowed) for one in inside]
        told = [p for one, p in zip(inside, problems, strict=True) if one is not type(None)]
        return "" if "" in problems else " or ".join(dict.fromkeys(told))
    if origin is Literal:
        return "" if value in inside else f"one of {', '.join(map(str, inside))}"
    if origin is tuple:
        return _tuple_problem(value, inside, allowed)
    if annotation is type(None):
        return "" if value is None else "nothing"
    if annotation in (int, float):
        return "" if _is_number(value, annotation) and allowed.holds(value) else (
            f"{WORDS[annotation]} {allowed.words()}"
        )  # fmt: skip
    kind = origin or annotation
    if kind in (bool, str):
        return "" if isinstance(value, kind) else WORDS[kind]
    if isinstance(kind, type) and kind is not object:
        return "" if isinstance(value, kind) else f"a {kind.__name__}"
    return ""


def _tuple_problem(value: Any, inside: Sequence[Any], allowed: Range) -> str:
    if not isinstance(value, tuple):
        return "a list"
    if len(inside) == 2 and inside[1] is Ellipsis:
        inside = [inside[0]] * len(value)
    if len(value) != len(inside):
        return f"{len(inside)} values"
    problems = [_problem(one, kind, allowed) for one, kind in zip(value, inside, strict=True)]
    return next((f"a list, each of them {problem}" for problem in problems if problem), "")


def plain(value: Any) -> Any:
    """Return a value with Python's own numbers and lists in place of numpy's. Other values are returned as they are."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    return value.tolist() if hasattr(value, "tolist") and hasattr(value, "dtype") else value


def _repeated(values: Sequence[Any]) -> str:
    if not values:
        return "a list that is not empty"
    twice = [one for number, one in enumerate(values) if one in values[:number]]
    return f"a list without the same thing twice ({twice[0]})" if twice else ""


def _is_number(value: Any, kind: type) -> bool:
    allowed = int if kind is int else int | float
    return isinstance(value, allowed) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**20 else "a number so large"
    return text if len(text) <= 60 else f"{text[:59]}…"
