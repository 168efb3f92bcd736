"""Every event and every decision of a team as JSON lines, and the same events once more.

A line has the time `t` and what happened, `event`: `open` (the first line), `begin`, `say`, `end`, `observed`, `ended`,
`failed`, `silent`, `back`, `start`, `cancel`, `refused`. `mavic replay LOG` draws it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from mavic.hints import look_up
from mavic.storage import json_shape

OR_NONE = type(None)
ROBOT = {"agent": str}
SHAPES: dict[str, dict[str, Any]] = {
    "open": {"world": str, "agents": [str], "kinds": [str], "greedy": bool, "shield": bool},
    "begin": {},
    "say": {"text": str, "kind": str, "to": [str], "until": (float, OR_NONE), "also": bool},
    "end": {"kinds": [str], "by": str},
    "observed": {**ROBOT, "observation": [float]},
    "ended": ROBOT,
    "failed": {**ROBOT, "why": str},
    "silent": ROBOT,
    "back": ROBOT,
    "start": {**ROBOT, "macro": str, "number": int, "draw": float, "complies": (bool, OR_NONE)},
    "cancel": ROBOT,
    "refused": {"text": str, "why": str},
}
"""What a line has beside its time, by its event. What else it has is for people."""


class LogError(ValueError):
    """A log cannot be read. The message names the line."""


class Log:
    """Lines that go to a file at once, so that a killed process loses none."""

    def __init__(self, path: str | Path | None) -> None:
        """Open a log.

        Args:
            path: the file, which is begun anew. None: nothing is kept.
        """
        self._file: TextIO | None = None
        if path is not None:
            self._file = open(path, "w", encoding="utf-8", buffering=1)  # noqa: SIM115

    def write(self, **line: Any) -> None:
        """Write a line."""
        if self._file is not None:
            self._file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def read(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a log. A last line that a killed process left unfinished is left out.

    Args:
        path: the file.
    """
    with open(path, encoding="utf-8", errors="replace") as file:
        held: str | None = None
        number = 0
        for number, text in enumerate(file, start=1):
            if held is not None:
                yield _line(path, number - 1, held)
            held = text
        if held is not None and held.endswith("\n"):
            yield _line(path, number, held)


def _line(path: str | Path, number: int, text: str) -> dict[str, Any]:
    try:
        line = json_shape.parse(text)
        json_shape.check(line, {"t": float, "event": str}, "the line")
        shape = look_up(SHAPES, line["event"], "event")
        json_shape.check(line, shape, "the line")
    except ValueError as error:
        raise LogError(f"{path}:{number}: {error}") from None
    if (number == 1) != (line["event"] == "open"):
        raise LogError(f"{path}:{number}: a log has one line `open`, the first")
    return line
