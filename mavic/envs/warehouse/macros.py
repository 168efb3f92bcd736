"""The macros of the Turtlebots and of Fetch, and the places in the room."""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import Any

TURTLEBOTS = 2
MOST_PEOPLE, MOST_TOOLS = 4, 8

# Positions in metres in the 7 × 5 room. The first two people stand as in the reference. The paper mentions more
# people but no places for them: the third and fourth stand in the same column, one metre further from the middle.
ROOM = (7.0, 5.0)
WORK_AREAS = ((6.0, 3.0), (6.0, 2.0), (6.0, 1.0), (6.0, 4.0))
TOOL_ROOM = (3.0, 2.5)
TABLE = ((1.2, 3.7), (1.2, 1.3))  # one side of the table for each Turtlebot
START = ((3.0, 3.5), (3.0, 1.5))
FETCH = (0.9, 2.5)

WAIT, PASS, LOOK = 0, 1, 1 + TURTLEBOTS  # the first of Fetch's macros of each type


@cache
def macros_of(people: int, tools: int) -> tuple[type[IntEnum], ...]:
    """Return the macros of each robot. A Turtlebot's macro and the waypoint it drives to have the same number."""
    drives = [f"GO_WORK_AREA_{person}" for person in range(people)] + ["GO_TOOL_ROOM", "GET_TOOL"]
    passes = [f"PASS_TO_{bot}" for bot in range(TURTLEBOTS)]
    looks = [f"LOOK_FOR_{tool}" for tool in range(tools)]
    turtlebot: Any = IntEnum("Turtlebot", drives, start=0)  # type: ignore[misc]
    fetch: Any = IntEnum("Fetch", ["WAIT", *passes, *looks], start=WAIT)  # type: ignore[misc]
    return (*[turtlebot] * TURTLEBOTS, fetch)
