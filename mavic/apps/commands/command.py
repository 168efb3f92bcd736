"""What all commands share."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mavic import ranges


class UserError(Exception):
    """An error that the user can correct. The command line prints it without a traceback."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """The options that every command takes."""

    plugins: tuple[str, ...] = ()
    """Modules to import first; the current folder is searched too. They register worlds or add methods of your own
    (docs/extend.md). Only this option runs code of yours: files may name modules but load none."""
    allow_download: bool = False
    """Let an encoder hf:NAME be fetched from the Hugging Face hub. Otherwise no command asks a network for it."""

    def check(self) -> None:
        """Raise `mavic.ranges.RangeError` unless all values are in their ranges."""
        ranges.check(self, "--")

    def run(self) -> None:
        """Carry out the command."""
        raise NotImplementedError


@contextlib.contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Say how to install a library that is missing.

    Args:
        extra: the extra of this package that has the library.
        what: what needs it, as the first words of the message.
    """
    try:
        yield
    except ImportError as error:
        if error.name is None or error.name.startswith("mavic"):
            raise
        raise UserError(f"{what} needs {error.name}: pip install 'mavic[{extra}]'") from None


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
