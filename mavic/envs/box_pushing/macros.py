"""The macros of Box Pushing. Both robots have the same ones."""

from __future__ import annotations

from enum import IntEnum


class Macro(IntEnum):
    """The macros of one robot, numbered as in the reference."""

    GO_SMALL_BOX_0 = 0
    GO_SMALL_BOX_1 = 1
    GO_BIG_SPOT_0 = 2
    GO_BIG_SPOT_1 = 3
    PUSH = 4
    TURN_LEFT = 5
    TURN_RIGHT = 6
    STAY = 7
