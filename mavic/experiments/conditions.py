"""A condition as text: how a team is instructed, such as `live/add/kinds=dont-push/penalty=100/rate=0.1`.

It is schedule/rule, then any of the switches and of the parts NAME=VALUE. Tables, file names and the command line use
the same text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mavic.hints import suggest

SWITCHES = {"overlap": "overlap", "extras": "extras", "one-agent": "one_agent"}  # text → field
FORM = "schedule/rule[/overlap][/extras][/one-agent][/NAME=VALUE…]"
JOIN = "+"  # between the entries of a list; names of kinds do not hold it


class Part(NamedTuple):
    """A part NAME=VALUE: how a value is written and read, and what it is when the part is missing."""

    write: Callable[[Any], str]
    read: Callable[[str], Any]
    default: Any = None


def _number(value: float) -> str:
    return f"{value:g}"


def _weights(text: str) -> dict[str, float]:
    pairs = (entry.rpartition("@") for entry in text.split(JOIN))
    return {kind: float(weight) for kind, _, weight in pairs}


def _hold(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    return int(low), int(high or low)


PARTS = {  # by the name of the field
    "kinds": Part(JOIN.join, lambda text: tuple(text.split(JOIN))),
    "penalty": Part(_number, float),
    "bonus": Part(_number, float),
    "rate": Part(_number, float),
    "hold": Part(lambda hold: "-".join(map(str, hold)), _hold),
    "weights": Part(
        lambda weights: JOIN.join(f"{kind}@{_number(weights[kind])}" for kind in sorted(weights)),
        _weights,
        {},
    ),
}


def text_of(schedule: str, rule: str, fields: Mapping[str, Any]) -> str:
    """Return a condition as text. `fields` are those of SWITCHES and PARTS; what has its default is not named."""
    switches = [name for name, field in SWITCHES.items() if fields[field]]
    parts = [
        f"{name}={part.write(fields[name])}"
        for name, part in PARTS.items()
        if fields[name] != part.default
    ]
    return "/".join([schedule, rule, *switches, *parts])


def read(condition: str) -> dict[str, Any]:
    """Return the fields that a condition names, and the defaults of all others. What is wrong is a `ValueError`."""
    schedule, _, rest = condition.partition("/")
    rule, *more = rest.split("/")
    if not rule:
        raise ValueError(f"condition {condition!r} is not {FORM}, such as live/by-kind")
    fields: dict[str, Any] = {field: False for field in SWITCHES.values()}
    fields |= {name: part.default for name, part in PARTS.items()}
    for text in more:
        name, equals, value = text.partition("=")
        if not equals and name in SWITCHES:
            fields[SWITCHES[name]] = True
        elif equals and name in PARTS:
            fields[name] = _value(condition, name, value)
        else:
            known = (*SWITCHES, *(f"{part}=…" for part in PARTS))
            raise ValueError(
                f"condition {condition!r} is not {FORM}: {text!r} is unknown; {suggest(text, known)}"
            )
    return {"schedule": schedule, "rule": rule, **fields}


def _value(condition: str, name: str, text: str) -> Any:
    try:
        return PARTS[name].read(text)
    except ValueError:
        raise ValueError(
            f"condition {condition!r}: {text!r} is no value of {name}; examples: penalty=100, rate=0.1, "
            "hold=5-20, kinds=push+stay, weights=push@0.1"
        ) from None
