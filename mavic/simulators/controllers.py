"""Macros for Python simulators: a controller turns one agent's macro into primitive actions.

The words are those of `mavic.simulators.compiled`, which does the same for JAX environments. `world` is the simulator
without its wrappers, `agent` a number, and `memory` whatever the controller keeps between ticks. An interruption needs
no word: the next macro begins, and the memory is dropped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from mavic.simulators import grids
from mavic.simulators.grids import Cell


class Status(IntEnum):
    """How a macro stands after a tick."""

    RUNNING = 0
    ENDED = 1
    FAILED = 2


@functools.lru_cache(1024)
def macro_enum(names: tuple[str, ...]) -> type[IntEnum]:
    """Return the enum of an agent's macros. Equal names give the same enum."""
    return IntEnum("Macro", {name: number for number, name in enumerate(names)})  # type: ignore[return-value]


class Controller:
    """A macro of one agent. Override `act` and `status`, and the others where the defaults do not fit."""

    def can_start(self, world: Any, agent: int) -> bool:
        """Return whether the agent may choose the macro now."""
        del world, agent
        return True

    def begin(self, world: Any, agent: int) -> Any:
        """Return the memory at the start of the macro."""
        del world, agent
        return None

    def act(self, world: Any, agent: int, memory: Any) -> tuple[int, Any]:
        """Return the next primitive action and the memory after it."""
        raise NotImplementedError

    def status(self, world: Any, agent: int, memory: Any) -> Status:
        """Return how the macro stands, after the simulator's step."""
        raise NotImplementedError


@dataclass(frozen=True)
class Action(Controller):
    """One primitive action."""

    action: int

    def begin(self, world: Any, agent: int) -> bool:
        """Return that the action is not taken yet."""
        return False

    def act(self, world: Any, agent: int, memory: Any) -> tuple[int, Any]:
        """Take the action."""
        return self.action, True

    def status(self, world: Any, agent: int, memory: Any) -> Status:
        """Return that it ended as soon as it is taken."""
        return Status.ENDED if memory else Status.RUNNING


@dataclass(frozen=True)
class Wait(Controller):
    """The same primitive action for a number of ticks, such as standing still."""

    action: int
    ticks: int = 1

    def begin(self, world: Any, agent: int) -> int:
        """Return the ticks left."""
        return self.ticks

    def act(self, world: Any, agent: int, memory: Any) -> tuple[int, Any]:
        """Take the action."""
        return self.action, memory - 1

    def status(self, world: Any, agent: int, memory: Any) -> Status:
        """Return that it ended when no tick is left."""
        return Status.RUNNING if memory > 0 else Status.ENDED


class Sequence(Controller):
    """One controller after another. It fails if one of them fails or cannot start."""

    def __init__(self, *parts: Controller) -> None:
        """Make the sequence of some parts."""
        self.parts = parts

    def can_start(self, world: Any, agent: int) -> bool:
        """Return whether the first part can start."""
        return self.parts[0].can_start(world, agent)

    def begin(self, world: Any, agent: int) -> tuple[int, Any]:
        """Return the number of the first part and its memory."""
        return 0, self.parts[0].begin(world, agent)

    def act(self, world: Any, agent: int, memory: Any) -> tuple[int, Any]:
        """Take the next action of the first part that has not ended."""
        number, inner = memory
        while (
            number + 1 < len(self.parts)
            and self.parts[number].status(world, agent, inner) == Status.ENDED
        ):
            number += 1
            inner = self.parts[number].begin(world, agent)
        action, inner = self.parts[number].act(world, agent, inner)
        return action, (number, inner)

    def status(self, world: Any, agent: int, memory: Any) -> Status:
        """Return the status of the present part, or RUNNING if others follow it."""
        number, inner = memory
        found = self.parts[number].status(world, agent, inner)
        if found != Status.ENDED or number + 1 == len(self.parts):
            return found
        follows = self.parts[number + 1].can_start(world, agent)
        return Status.RUNNING if follows else Status.FAILED


@dataclass(frozen=True)
class Timeout(Controller):
    """A controller that fails if it takes longer than some ticks."""

    controller: Controller
    ticks: int

    def can_start(self, world: Any, agent: int) -> bool:
        """Return whether the controller can start."""
        return self.controller.can_start(world, agent)

    def begin(self, world: Any, agent: int) -> tuple[int, Any]:
        """Return the ticks left and the controller's memory."""
        return self.ticks, self.controller.begin(world, agent)

    def act(self, world: Any, agent: int, memory: Any) -> tuple[int, Any]:
        """Take the controller's next action."""
        left, inner = memory
        action, inner = self.controller.act(world, agent, inner)
        return action, (left - 1, inner)

    def status(self, world: Any, agent: int, memory: Any) -> Status:
        """Return the controller's status, or FAILED when time is up."""
        left, inner = memory
        found = self.controller.status(world, agent, inner)
        return Status.FAILED if found == Status.RUNNING and left <= 0 else found


@dataclass(frozen=True, kw_only=True)
class Grid:
    """How a simulator's grid is read, and which actions move an agent on it. Cells are (row, column)."""

    position: Callable[[Any, int], Cell]
    """Where an agent is."""
    free: Callable[[Any, int], np.ndarray]
    """bool [H, W]: the cells that an agent may enter, whoever stands there."""
    others: Callable[[Any, int], list[Cell]]
    """Where the other agents are."""
    stay: int
    """The action that stands still."""
    moves: tuple[int, int, int, int] | None = None
    """The actions that move north, east, south and west. None: agents turn and go forward."""
    heading: Callable[[Any, int], int] | None = None
    """Where an agent looks: 0 north, 1 east, 2 south, 3 west."""
    forward: int = 0
    left: int = 0
    right: int = 0

    def action(self, world: Any, agent: int, way: int) -> int:
        """Return the action that goes in a direction, or turns towards it; a negative one: stand still."""
        if way < 0:
            return self.stay
        if self.moves is not None:
            return self.moves[way]
        assert self.heading is not None
        turns = (way - self.heading(world, agent)) % 4
        return (self.forward, self.right, self.right, self.left)[turns]


@dataclass(frozen=True)
class GoTo(Controller):
    """Go to a place by a shortest path. The agent goes around others, and waits where there is no way around."""

    grid: Grid
    target: Callable[[Any, int], Cell | None]
    """Where to go, asked once when the macro begins. None: it cannot start."""

    def can_start(self, world: Any, agent: int) -> bool:
        """Return whether there is a place to go to."""
        return self.target(world, agent) is not None

    def begin(self, world: Any, agent: int) -> tuple[Cell | None, bool]:
        """Return the place, and that a path may lead there."""
        return self.target(world, agent), False

    def act(self, world: Any, agent: int, memory: Any) -> tuple[int, Any]:
        """Take the next step of the path."""
        grid, (target, _) = self.grid, memory
        position = grid.position(world, agent)
        if target is None or position == target:
            return grid.stay, memory
        free = grid.free(world, agent)
        heading = None if grid.heading is None else grid.heading(world, agent)
        way = grids.next_direction(free, grid.others(world, agent), position, target, heading)
        return grid.action(world, agent, way), (target, way == grids.LOST)

    def status(self, world: Any, agent: int, memory: Any) -> Status:
        """Return that it ended at the place, and that it failed if no path led there."""
        target, lost = memory
        if target is None or lost:
            return Status.FAILED
        there = self.grid.position(world, agent) == target
        return Status.ENDED if there else Status.RUNNING
