"""Error messages for wrong names: the nearest name, and all that are allowed."""

from __future__ import annotations

import difflib
from typing import Any

ADDED = ("cell", "encoder", "method", "network", "world")  # what modules of the user may add
NAME_IT = "if a module of yours adds it, name it: --plugins MODULE (in Python: import it)"


def suggest(word: str, allowed: tuple[str, ...]) -> str:
    """Return the end of an error message: the allowed name that is nearest to `word`, and all `allowed` names."""
    near = difflib.get_close_matches(str(word), allowed, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}allowed: {', '.join(allowed) or 'nothing'}"


def unknown(what: str, name: str, allowed: tuple[str, ...]) -> str:
    """Return the error message for a name that is not allowed.

    Args:
        what: What the name is of, such as "world".
        name: The wrong name.
        allowed: The right names.
    """
    more = f"; {NAME_IT}" if what in ADDED else ""
    return f"{what} {name!r} is unknown; {suggest(name, allowed)}{more}"


def look_up(table: dict[str, Any], name: str, what: str) -> Any:
    """Return the row `name` of a table. An unknown name is a `ValueError` that lists the rows.

    Args:
        table: The table.
        name: The row's name.
        what: What the rows are, such as "method".
    """
    if name not in table:
        raise ValueError(unknown(what, name, tuple(table)))
    return table[name]
