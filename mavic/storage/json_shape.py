"""Checks that JSON has the expected shape. Errors name the wrong place, such as `shape.hidden`.

A shape is a type (`int`, `float`, `str`, `bool`, `dict`, `list`), a list with the shape of all its entries, a dict with
the shapes of the entries that must be there, a `Map` with the shape of all values, or a tuple of shapes of which one
must fit. A whole number fits `float`, a bool fits neither `int` nor `float`, and no number may be infinite or nan.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

WORDS = {
    int: "a whole number",
    float: "a finite number",
    str: "a text",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    type(None): "null",
}


class ShapeError(ValueError):
    """JSON has another shape than it should. The message names the place and what should stand there."""


@dataclass(frozen=True)
class Map:
    """An object with any names, whose values all have one shape."""

    of: Any


def parse(text: str | bytes) -> Any:
    """Return parsed JSON. Anything that is not JSON is a `ShapeError`, however it is wrong."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ShapeError("not readable: the JSON is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise ShapeError(f"not UTF-8 text ({error.reason} at byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise ShapeError(f"not JSON: {error}") from None
    except ValueError as error:  # such as a number of more digits than Python reads
        raise ShapeError(f"not JSON that can be read: {error}") from None


def check(value: Any, shape: Any, where: str = "") -> None:
    """Raise `ShapeError` unless a value has a shape.

    Args:
        value: parsed JSON.
        shape: as the module describes.
        where: the place of the value, for the message.
    """
    if isinstance(shape, tuple):
        if not any(_fits(value, one) for one in shape):
            raise _refusal(where, " or ".join(map(_words, shape)), value)
    elif isinstance(shape, list):
        _must_be(value, list, where)
        for number, one in enumerate(value):
            check(one, shape[0], f"{where}[{number}]")
    elif isinstance(shape, Map):
        _must_be(value, dict, where)
        for name, one in value.items():
            check(one, shape.of, _below(where, name))
    elif isinstance(shape, dict):
        _must_be(value, dict, where)
        for name, one in shape.items():
            if name not in value:
                raise ShapeError(f"{_below(where, name)} is missing")
            check(value[name], one, _below(where, name))
    elif not _is(value, shape):
        raise _refusal(where, _words(shape), value)


def _fits(value: Any, shape: Any) -> bool:
    try:
        check(value, shape)
    except ShapeError:
        return False
    return True


def _is(value: Any, kind: type) -> bool:
    if kind is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and abs(value) < 1e300 and math.isfinite(value)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    return isinstance(value, kind)


def _must_be(value: Any, kind: type, where: str) -> None:
    if not isinstance(value, kind):
        raise _refusal(where, _words(kind), value)


def _refusal(where: str, wanted: str, value: Any) -> ShapeError:
    found = WORDS.get(type(value), type(value).__name__)
    if isinstance(value, int | float) and not isinstance(value, bool):
        found = str(value)[:24]
    return ShapeError(f"{where or 'the file'} must be {wanted}, not {found}")


def _words(shape: Any) -> str:
    if isinstance(shape, list):
        return f"a list, each entry {_words(shape[0])}"
    return "an object" if isinstance(shape, dict | Map) else WORDS[shape]


def _below(where: str, name: str) -> str:
    return f"{where}.{name}"[:80] if where else name[:80]
