"""Every number of a preset as an option of the command line."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, get_type_hints

from mavic.apps.commands.help_texts import help_texts, with_help
from mavic.preset import Preset

UNCHANGED = "preset"  # the value of an option that leaves the preset's number as it is


def _field(name: str, hint: Any, text: str) -> tuple[str, Any, Any]:
    kind = with_help(hint | Literal["preset"], text)
    return name, kind, dataclasses.field(default=UNCHANGED)


def _fields() -> list[tuple[str, Any, Any]]:
    hints, texts = get_type_hints(Preset), help_texts(Preset)
    names = [field.name for field in dataclasses.fields(Preset)]
    return [_field(name, hints[name], texts.get(name, "")) for name in names]


Numbers: Any = dataclasses.make_dataclass("Numbers", _fields(), frozen=True, kw_only=True)


def changes_of(numbers: Any) -> dict[str, Any]:
    """Return the numbers that the user gave."""
    given = {field.name: getattr(numbers, field.name) for field in dataclasses.fields(numbers)}
    return {name: value for name, value in given.items() if value != UNCHANGED}
