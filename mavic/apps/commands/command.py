"""What all commands share."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


class UserError(Exception):
    """An error that the user can correct. The command line prints it without a traceback."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """The options that every command takes."""

    plugins: tuple[str, ...] = ()
    """Modules to import first; the current folder is searched too. They register worlds or add methods of your own
    (docs/extend.md)."""

    def run(self) -> None:
        """Carry out the command."""
        raise NotImplementedError


def options_from(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the options of an environment from the pairs of texts that a user typed."""
    found: dict[str, Any] = {}
    for name, text in pairs:
        if name in found:
            raise UserError(f"the option {name} is given twice")
        found[name] = _value(text)
    return found


def _value(text: str) -> Any:
    """Return a typed text as a number, a bool or a text. What is no finite number stays a text."""
    try:
        return int(text)
    except ValueError:
        pass
    with contextlib.suppress(ValueError):
        if math.isfinite(number := float(text)):
            return number
    return {"true": True, "false": False}.get(text.lower(), text)
