"""What each kind of instruction allows, and which two can hold together.

The arrays are those of `mavic.types.Rules`; the answers equal those of `mavic.instruct`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mavic.hints import suggest


@dataclass(frozen=True, kw_only=True)
class Contract:
    """Names and rules of an exported team. Row 0 of each array is no instruction."""

    agents: tuple[str, ...]
    macros: tuple[tuple[str, ...], ...]
    kinds: tuple[str, ...]  # the first is "none"
    allowed: np.ndarray  # [C, N, M] bool
    addressed: np.ndarray  # [C, N] bool
    effect: np.ndarray  # [C]
    exists: np.ndarray  # [N, M] bool: the macro exists for the agent

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Contract:
        """Return the contract of an export's facts. Facts that contradict each other are a ValueError."""
        agents, macros = tuple(facts["agents"]), tuple(map(tuple, facts["macros"]))
        kinds, rules = ("none", *facts["kinds"]), facts["rules"]
        count = max(map(len, macros), default=0)
        exists = np.array([[m < len(own) for m in range(count)] for own in macros], bool)
        arrays = {name: np.array(rules[name]) for name in ("allowed", "addressed", "effect")}
        sizes = {
            "allowed": (len(kinds), len(agents), count),
            "addressed": (len(kinds), len(agents)),
            "effect": (len(kinds),),
        }
        for name, size in sizes.items():
            if arrays[name].shape != size:
                raise ValueError(f"rules.{name} must have the shape {size}")
        return cls(agents=agents, macros=macros, kinds=kinds, exists=exists, **arrays)

    def agent(self, name: str | int) -> int:
        """Return the number of an agent, from its name or number."""
        if isinstance(name, int) and 0 <= name < len(self.agents):
            return name
        if name not in self.agents:
            raise ValueError(f"agent {name!r} is unknown; {suggest(str(name), self.agents)}")
        return self.agents.index(str(name))

    def kind(self, name: str) -> int:
        """Return the number of a kind."""
        if name not in self.kinds:
            raise ValueError(f"kind {name!r} is unknown; {suggest(str(name), self.kinds)}")
        return self.kinds.index(name)

    def permitted(self, kinds: np.ndarray, available: np.ndarray) -> np.ndarray:
        """Return the available macros [N, M] that comply with the kind of each agent [N].

        If no macro is left to an agent, all its available macros stay. Macros are judged by their names.
        """
        left = available & self.allowed[kinds, np.arange(len(self.agents))]
        return np.where(left.any(-1, keepdims=True), left, available)

    def conflict(self, kinds: np.ndarray, also: np.ndarray) -> str:
        """Return why two instructions cannot hold together, as a clause; "" if they can.

        Args:
            kinds: [N] the kind of the first instruction for each agent; 0 if it is not addressed.
            also: [N] the same of the second.
        """
        for number, (one, other) in enumerate(zip(kinds, also, strict=True)):
            if not (one and other):
                continue
            names = self.kinds[one], self.kinds[other]
            if one == other:
                return f"{names[0]} holds already"
            if self.effect[one] and self.effect[other]:
                return f"{names[0]} and {names[1]} both change what the world does"
            both = self.allowed[one, number] & self.allowed[other, number] & self.exists[number]
            if not both.any():
                return (
                    f"{names[0]} and {names[1]} together leave {self.agents[number]} nothing to do"
                )
        return ""
