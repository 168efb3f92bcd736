"""Error messages for wrong names: the nearest name, and all that are allowed."""

from __future__ import annotations

import difflib
from typing import Any


def suggest(word: str, allowed: tuple[str, ...]) -> str:
    """Return the end of an error message: the nearest name, and all that are allowed."""
    near = difflib.get_close_matches(word, allowed, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}allowed: {', '.join(allowed) or 'nothing'}"


def look_up(table: dict[str, Any], name: str, what: str) -> Any:
    """Return a row of a table. An unknown name is a `ValueError` that lists the rows."""
    if name not in table:
        raise ValueError(f"{what} {name!r} is unknown; {suggest(name, tuple(table))}")
    return table[name]
