"""What a Python world is made of, as data. Nothing here imports JAX: worker processes read descriptions too."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from mavic.simulators import adapters
from mavic.simulators.controllers import Controller, macro_enum

FAILED = "macro-failed"  # an event of every world with controllers
Controllers = Mapping[str, Controller]


class Sizes(NamedTuple):
    """The shapes of a world's arrays. Macros are those of the agent with most."""

    agents: int
    macros: int
    observation: int
    events: int
    preconditions: int
    predicates: int

    @property
    def row(self) -> int:
        """The length of a row: all that one tick returns, as one vector (`mavic.simulators.macro_simulator`)."""
        return (
            self.agents * (self.observation + self.macros * (1 + self.predicates) + 2)
            + 2
            + self.events
            + self.preconditions
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Description:
    """A Python world. Two descriptions are never equal, so each has compiled programs and processes of its own."""

    name: str
    make: Callable[..., Any]
    """Returns a new simulator."""
    options: Mapping[str, Any]
    """The arguments of `make`."""
    horizon: int
    horizon_ends: bool
    agents: tuple[str, ...]
    controllers: tuple[Controllers, ...]
    """The controllers of each agent's macros."""
    event_functions: Mapping[str, Callable[[Any, Any], Any]]
    """Name → function of the simulator and of what `step` returned as info; it returns how often the event happened."""
    precondition_functions: Mapping[str, Callable[[Any], Any]]
    predicate_functions: Mapping[str, Callable[[Any, int, str], Any]]
    """Name → function of the simulator, an agent's number and a macro's name: whether it holds of that choice."""
    see: Callable[[Any, int], Any] | None
    """Returns what an agent sees, from the simulator and the agent's number. None: what the simulator returns."""
    picture: Callable[[Any], Any] | None
    """Returns a `Scene` of the simulator. None: its `rgb_array`, if it renders one."""
    observation: int
    actions: tuple[int, ...]
    """How many primitive actions each agent has."""
    workers: int
    timeout: float
    side_by_side: int | None
    """How many simulators of a training play at once at most. None: as many as compiled environments."""

    @functools.cached_property
    def macros(self) -> tuple[type[IntEnum], ...]:
        """One enum of macros for each agent."""
        return tuple(macro_enum(tuple(own)) for own in self.controllers)

    @functools.cached_property
    def events(self) -> tuple[str, ...]:
        """The names of all events. The first is "solved"."""
        own = tuple(name for name in self.event_functions if name != "solved")
        return ("solved", *own, FAILED)

    @property
    def preconditions(self) -> tuple[str, ...]:
        """The names of facts that a kind of instruction may require."""
        return tuple(self.precondition_functions)

    @property
    def predicates(self) -> tuple[str, ...]:
        """The names of what may hold of a choice."""
        return tuple(self.predicate_functions)

    @functools.cached_property
    def sizes(self) -> Sizes:
        """The shapes of the world's arrays."""
        return Sizes(
            agents=len(self.agents),
            macros=max(len(controllers) for controllers in self.controllers),
            observation=self.observation,
            events=len(self.events),
            preconditions=len(self.preconditions),
            predicates=len(self.predicates),
        )

    def simulator(self) -> adapters.Adapter:
        """Return a new simulator behind the common interface."""
        made = adapters.adapt(self.name, self.make(**self.options), self.agents)
        made.looks = self.see is None
        return made
