"""How people speak of the warehouse: the job, the macros and the things."""

from __future__ import annotations

from mavic.envs.warehouse.macros import MOST_PEOPLE, MOST_TOOLS, TURTLEBOTS

JOB = "Fetch finds tools on the shelves, and two Turtlebots carry each person every tool, in time."
EXAMPLES = ("fetch tool 2 first", "tool 0 is the most urgent", "bring tool 1 before the others")
ROBOTS = ("blue turtlebot", "orange turtlebot", "fetch")
TOOLS = tuple(f"tool {tool}" for tool in range(MOST_TOOLS))
PEOPLE = tuple(f"person {person}" for person in range(1, MOST_PEOPLE + 1))
MACRO_WORDS = {
    **{f"GO_WORK_AREA_{person}": f"to {PEOPLE[person]}" for person in range(MOST_PEOPLE)},
    **{f"LOOK_FOR_{tool}": f"look for tool {tool}" for tool in range(MOST_TOOLS)},
    **{f"PASS_TO_{bot}": f"hand over to {ROBOTS[bot]}" for bot in range(TURTLEBOTS)},
    "GO_TOOL_ROOM": "to the tool room",
    "GET_TOOL": "to the table for a tool",
}
MACRO_THINGS = {f"LOOK_FOR_{tool}": TOOLS[tool] for tool in range(MOST_TOOLS)}
# What people also say for a robot or a tool. Tools are drawn as what they are called here.
OTHER_WORDS = {
    **{name: (f"turtlebot {number}",) for number, name in enumerate(ROBOTS[:TURTLEBOTS])},
    ROBOTS[-1]: ("purple robot", "arm", "fetch robot", "robot arm"),
    TOOLS[0]: ("hammer", "hammers", "mallet"),
    TOOLS[1]: ("wrench", "wrenches", "spanner", "spanners"),
    TOOLS[2]: ("screwdriver", "screw driver", "screwdrivers"),
}
