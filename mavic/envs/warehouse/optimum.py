"""The best plans for Warehouse, and a proof that they are best.

`BEST_PLANS[None]` solves the uninstructed task with a return of 533. No plan does better: Fetch needs 6 × (look 6 +
pass 4) = 60 ticks before its last tool leaves the table, and a Turtlebot needs 7 more ticks from the table to a
person, so the return is at most 600 − 67.

`BEST_PLANS[k]` is for "fetch tool k first", given at the start. The first delivery resolves the instruction, and all
agents then decide anew. Returns are those of the task, without Fetch's credit. A team that disobeys can still earn
533. A team in which Fetch looks for no other tool while the instruction holds can earn

    k = 0: 533, by the same bound;
    k = 1, 2: 513, because one delivery is late.

The proof for k = 1, 2 is by contradiction. If no delivery were late, both people would have a tool by tick 27. The
first delivery happens at tick 17 or later, and a tool other than k arrives at least 17 ticks after it. So both first
tools would be k. They would be handed over in the same tick, because after the first delivery no person asks
for k first. The earliest such tick is 27, when both passes and both drives are done. Fetch can look for the two next
tools only from then on. They arrive at ticks 44 and 54, but a delivery is late from tick 48 on.

With the credits of D13 Fetch gets 533 + 50 = 583 or 513 + 50 = 563 by obeying, and at most 533 + 50 − 25 = 558 by
disobeying. So obeying is best. `tools/search_warehouse.py` confirms all of this exhaustively.
"""

from __future__ import annotations

from mavic.envs.warehouse.env import Warehouse

Plan = tuple[tuple[str, ...], ...]  # per agent one macro name per decision; the last is repeated


def _plan(*by_agent: str) -> Plan:
    return tuple(tuple(line.split()) for line in by_agent)


_TO_0_AT_20 = "GET_TOOL GO_TOOL_ROOM GO_TOOL_ROOM GO_TOOL_ROOM GO_TOOL_ROOM GO_WORK_AREA_0"

BEST_PLANS: dict[int | None, Plan] = {
    None: _plan(
        "GET_TOOL GO_WORK_AREA_0 GET_TOOL GO_WORK_AREA_0 GET_TOOL GO_WORK_AREA_0",
        "GET_TOOL GET_TOOL GO_WORK_AREA_1 GET_TOOL GO_WORK_AREA_1 GET_TOOL GO_WORK_AREA_1",
        "LOOK_FOR_0 PASS_TO_0 LOOK_FOR_0 PASS_TO_1 LOOK_FOR_1 PASS_TO_0 LOOK_FOR_1 PASS_TO_1 "
        "LOOK_FOR_2 PASS_TO_0 LOOK_FOR_2 PASS_TO_1 WAIT",
    ),
    # The first delivery ends all macros, so the plan delays it to tick 20, when a pass has just ended.
    0: _plan(
        f"{_TO_0_AT_20} GET_TOOL GO_WORK_AREA_0 GET_TOOL GO_WORK_AREA_0",
        "GET_TOOL GET_TOOL GO_WORK_AREA_1 GET_TOOL GO_WORK_AREA_1 GET_TOOL GO_WORK_AREA_1",
        "LOOK_FOR_0 PASS_TO_0 LOOK_FOR_0 PASS_TO_1 LOOK_FOR_1 LOOK_FOR_1 PASS_TO_0 PASS_TO_1 "
        "LOOK_FOR_2 LOOK_FOR_2 PASS_TO_0 PASS_TO_1 WAIT",
    ),
    1: _plan(
        f"{_TO_0_AT_20} GET_TOOL GET_TOOL GO_WORK_AREA_0 GET_TOOL GO_WORK_AREA_0",
        "GET_TOOL GET_TOOL GET_TOOL GO_WORK_AREA_1 GO_WORK_AREA_1 GET_TOOL GO_WORK_AREA_1",
        "LOOK_FOR_1 PASS_TO_0 LOOK_FOR_1 PASS_TO_1 LOOK_FOR_0 PASS_TO_1 LOOK_FOR_0 PASS_TO_0 "
        "LOOK_FOR_2 PASS_TO_1 LOOK_FOR_2 PASS_TO_0 WAIT",
    ),
    2: _plan(
        f"{_TO_0_AT_20} GET_TOOL GET_TOOL GO_WORK_AREA_0 GET_TOOL GO_WORK_AREA_0",
        "GET_TOOL GET_TOOL GET_TOOL GO_WORK_AREA_1 GET_TOOL GO_WORK_AREA_1",
        "LOOK_FOR_2 PASS_TO_0 LOOK_FOR_2 PASS_TO_1 LOOK_FOR_0 PASS_TO_1 LOOK_FOR_0 PASS_TO_0 "
        "LOOK_FOR_1 PASS_TO_1 LOOK_FOR_1 PASS_TO_0 WAIT",
    ),
}
GAMMA = 1.0  # the return is not discounted
OPTIMAL_RETURNS: dict[int | None, float] = {None: 533.0, 0: 533.0, 1: 513.0, 2: 513.0}


def best_return(env: Warehouse, gamma: float, kind: str | None = None) -> float | None:
    """Return the best return of the task.

    Args:
        env: The environment.
        gamma: The discount.
        kind: The kind that holds from the start; None: no instruction.

    Returns:
        The return, or None unless the options and the discount are the default ones.
    """
    if env != Warehouse() or gamma != GAMMA:
        return None
    return OPTIMAL_RETURNS[None if kind is None else int(kind.split("-")[2])]
