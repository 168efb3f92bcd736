"""The state of the warehouse. Axes: `B` Turtlebots (2), `P` people, `K` tools, `H` hand-over spots (2)."""

from __future__ import annotations

from mavic.types import Array, record

EMPTY = -1  # the tool number of an empty hand-over spot


@record
class State:
    """The full state. The arrival or end of an instruction never changes it."""

    xy: Array  # [B, 2] metres
    place: Array  # [B] waypoint, numbered as the macro that goes there; P + 2 if at none
    timer: (
        Array  # [B] positive: metres left after the last move; negative: ticks waited at the table
    )
    basket: Array  # [B, K] number of each tool
    seen: Array  # [B, K] tools that the last visited person had received at the time of the visit
    busy: Array  # [] ticks until Fetch's macro ends
    doomed: (
        Array  # [] the running pass will fail, because its Turtlebot was not ready when it began
    )
    staged: Array  # [H] tools on the hand-over spots, the front one first
    shelf: Array  # [K] copies that Fetch has not found yet
    step: Array  # [P] completed assembly steps
    left: Array  # [P] ticks left of the current step; 0 or less while it waits for its tool
    served: Array  # [P] the person has the tool of the current step
    received: Array  # [P, K] the person has received the tool
