"""The cooks' macros: three enums (salads, salads across counters, patties), and what each macro does.

The salad macros have the order of the reference. The patty macros have the order of the paper's list.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import numpy as np

from mavic.envs.overcooked.kitchen import Kitchen


class Primitive(IntEnum):
    """What a cook can do in one tick. Moving against a counter or station interacts with it."""

    RIGHT = 0
    DOWN = 1
    LEFT = 2
    UP = 3
    STAY = 4


class Thing(IntEnum):
    """What can be carried. The third food is onion or peas; the dish is a bowl and later a patty."""

    TOMATO = 0
    LETTUCE = 1
    THIRD = 2
    PLATE_1 = 3
    PLATE_2 = 4
    DISH = 5


class Goal(IntEnum):
    """Where a macro leads: to a thing, numbered as in `Thing`, or to a station."""

    TOMATO = 0
    LETTUCE = 1
    THIRD = 2
    PLATE_1 = 3
    PLATE_2 = 4
    DISH = 5
    BOARD_1 = 6
    BOARD_2 = 7
    BLENDER = 8
    OVEN_1 = 9
    OVEN_2 = 10
    DELIVERY = 11
    PASS = 12  # the first free counter inside the room
    NONE = 13


class Mode(IntEnum):
    """How a macro works."""

    MOVE = 0  # one primitive
    GET = 1  # go where the thing was last seen and take it
    GO = 2  # go to the station and use what is in hand there
    WORK = 3  # push against the station beside the cook until its work is done


class SaladMacro(IntEnum):
    """Macros of an open kitchen for salads (maps A)."""

    STAY = 0
    GET_TOMATO = 1
    GET_LETTUCE = 2
    GET_ONION = 3
    GET_PLATE_1 = 4
    GET_PLATE_2 = 5
    GO_BOARD_1 = 6
    GO_BOARD_2 = 7
    DELIVER = 8
    CHOP = 9
    RIGHT = 10
    DOWN = 11
    LEFT = 12
    UP = 13


class SaladPassMacro(IntEnum):
    """Macros of a kitchen for salads with counters inside (maps B, C)."""

    STAY = 0
    GET_TOMATO = 1
    GET_LETTUCE = 2
    GET_ONION = 3
    GET_PLATE_1 = 4
    GET_PLATE_2 = 5
    GO_BOARD_1 = 6
    GO_BOARD_2 = 7
    DELIVER = 8
    CHOP = 9
    GO_COUNTER = 10
    RIGHT = 11
    DOWN = 12
    LEFT = 13
    UP = 14


class PattyMacro(IntEnum):
    """Macros of a kitchen for patties (map D)."""

    STAY = 0
    RIGHT = 1
    DOWN = 2
    LEFT = 3
    UP = 4
    GET_TOMATO = 5
    GET_LETTUCE = 6
    GET_PEAS = 7
    GET_PLATE_1 = 8
    GET_PLATE_2 = 9
    GO_BOARD_1 = 10
    GO_BOARD_2 = 11
    CHOP = 12
    GO_BLENDER = 13
    BLEND = 14
    GET_BOWL = 15
    GO_OVEN_1 = 16
    GO_OVEN_2 = 17
    COOK = 18
    GET_PATTY = 19
    DELIVER = 20


MODES_AND_GOALS: dict[str, tuple[Mode, Goal]] = {
    "GET_TOMATO": (Mode.GET, Goal.TOMATO),
    "GET_LETTUCE": (Mode.GET, Goal.LETTUCE),
    "GET_ONION": (Mode.GET, Goal.THIRD),
    "GET_PEAS": (Mode.GET, Goal.THIRD),
    "GET_PLATE_1": (Mode.GET, Goal.PLATE_1),
    "GET_PLATE_2": (Mode.GET, Goal.PLATE_2),
    "GET_BOWL": (Mode.GET, Goal.DISH),
    "GET_PATTY": (Mode.GET, Goal.DISH),
    "GO_BOARD_1": (Mode.GO, Goal.BOARD_1),
    "GO_BOARD_2": (Mode.GO, Goal.BOARD_2),
    "GO_BLENDER": (Mode.GO, Goal.BLENDER),
    "GO_OVEN_1": (Mode.GO, Goal.OVEN_1),
    "GO_OVEN_2": (Mode.GO, Goal.OVEN_2),
    "GO_COUNTER": (Mode.GO, Goal.PASS),
    "DELIVER": (Mode.GO, Goal.DELIVERY),
    "CHOP": (Mode.WORK, Goal.NONE),
    "BLEND": (Mode.WORK, Goal.NONE),
    "COOK": (Mode.WORK, Goal.NONE),
}
NO_MACRO = -1


@dataclass(frozen=True)
class MacroTable:
    """What an enum's macros do, as arrays [M]."""

    enum: type[IntEnum]
    mode: np.ndarray
    goal: np.ndarray
    primitive: np.ndarray  # the primitive of one-tick macros, STAY for others

    @classmethod
    def of(cls, kitchen: Kitchen) -> MacroTable:
        """Return what the macros of a kitchen's cooks do."""
        if kitchen.patty:
            return cls._of_enum(PattyMacro)
        return cls._of_enum(SaladPassMacro if kitchen.passes else SaladMacro)

    @classmethod
    @lru_cache(maxsize=8)
    def _of_enum(cls, enum: type[IntEnum]) -> MacroTable:
        pairs = [MODES_AND_GOALS.get(macro.name, (Mode.MOVE, Goal.NONE)) for macro in enum]
        stay = Primitive.STAY
        return cls(
            enum=enum,
            mode=np.array([mode for mode, _ in pairs], np.int32),
            goal=np.array([goal for _, goal in pairs], np.int32),
            primitive=np.array([Primitive.__members__.get(m.name, stay) for m in enum], np.int32),
        )

    def number(self, name: str) -> int:
        """Return the macro of that name, or `NO_MACRO` if the enum has none."""
        return int(self.enum[name]) if name in self.enum.__members__ else NO_MACRO
