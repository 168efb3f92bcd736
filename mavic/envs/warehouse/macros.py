"""What the robots can be told to do, and where that takes them."""

from __future__ import annotations

from enum import IntEnum
from functools import cache

TURTLEBOTS = 2
MOST_PEOPLE, MOST_TOOLS = 4, 8

# Metres in the 7 × 5 room. Two people stand as in the reference; the paper names more people but no
# places: the third and fourth stand in the same column, each one metre further from the middle.
ROOM = (7.0, 5.0)
WORK_AREAS = ((6.0, 3.0), (6.0, 2.0), (6.0, 1.0), (6.0, 4.0))
TOOL_ROOM = (3.0, 2.5)
TABLE = ((1.2, 3.7), (1.2, 1.3))  # by Turtlebot: each has its own side of the table
START = ((3.0, 3.5), (3.0, 1.5))
FETCH = (0.9, 2.5)

WAIT, PASS, LOOK = 0, 1, 1 + TURTLEBOTS  # first Fetch macro of each sort


@cache
def turtlebot_macros(people: int) -> type[IntEnum]:
    """A Turtlebot's macros; a macro and the waypoint it drives to have the same number."""
    names = [f"GO_WORK_AREA_{person}" for person in range(people)] + ["GO_TOOL_ROOM", "GET_TOOL"]
    return IntEnum("Turtlebot", names, start=0)  # type: ignore[return-value]


@cache
def fetch_macros(tools: int) -> type[IntEnum]:
    """Fetch's macros: wait, pass the front tool to a Turtlebot, look for a tool."""
    passes = [f"PASS_TO_{bot}" for bot in range(TURTLEBOTS)]
    looks = [f"LOOK_FOR_{tool}" for tool in range(tools)]
    return IntEnum("Fetch", ["WAIT", *passes, *looks], start=WAIT)  # type: ignore[return-value]


def waypoints(people: int, bot: int) -> tuple[tuple[float, float], ...]:
    """Where each of a Turtlebot's macros drives to, in the order of the macros."""
    return (*WORK_AREAS[:people], TOOL_ROOM, TABLE[bot])
