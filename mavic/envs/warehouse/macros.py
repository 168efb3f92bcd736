"""The macros of the Turtlebots and of Fetch, and the places in the room."""

from __future__ import annotations

from enum import IntEnum
from functools import cache

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
def turtlebot_macros(people: int) -> type[IntEnum]:
    """Return a Turtlebot's macros. A macro and the waypoint it drives to have the same number."""
    names = [f"GO_WORK_AREA_{person}" for person in range(people)] + ["GO_TOOL_ROOM", "GET_TOOL"]
    return IntEnum("Turtlebot", names, start=0)  # type: ignore[return-value]


@cache
def fetch_macros(tools: int) -> type[IntEnum]:
    """Return Fetch's macros: wait, pass the front tool to a Turtlebot, look for a tool."""
    passes = [f"PASS_TO_{bot}" for bot in range(TURTLEBOTS)]
    looks = [f"LOOK_FOR_{tool}" for tool in range(tools)]
    return IntEnum("Fetch", ["WAIT", *passes, *looks], start=WAIT)  # type: ignore[return-value]


def waypoints(people: int, bot: int) -> tuple[tuple[float, float], ...]:
    """Return the position that each of a Turtlebot's macros drives to, in the order of the macros."""
    return (*WORK_AREAS[:people], TOOL_ROOM, TABLE[bot])
