"""What each kind of instruction allows, and which two can hold together.

The arrays are those of `mavic.types.Rules`; the answers equal those of `mavic.instruct`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    lists_allowed: np.ndarray  # [C] bool
    predicate: np.ndarray  # [C] 0, or 1 + the number of the predicate on which it depends
    negated: np.ndarray  # [C] bool: it depends on the predicate's not holding
    predicates: tuple[str, ...]
    exists: np.ndarray  # [N, M] bool: the macro exists for the agent

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Contract:
        """Return the contract of an export's facts. Facts that contradict each other are a ValueError."""
        agents, macros = tuple(facts["agents"]), tuple(map(tuple, facts["macros"]))
        kinds, rules = ("none", *facts["kinds"]), facts["rules"]
        count = max(map(len, macros), default=0)
        exists = np.array([[m < len(own) for m in range(count)] for own in macros], bool)
        each = (len(kinds),)
        sizes = {
            "allowed": (*each, len(agents), count),
            "addressed": (*each, len(agents)),
            **dict.fromkeys(("effect", "lists_allowed", "predicate", "negated"), each),
        }
        arrays = {name: np.array(rules[name]) for name in sizes}
        for name, size in sizes.items():
            if arrays[name].shape != size:
                raise ValueError(f"rules.{name} must have the shape {size}")
        predicates = tuple(facts["predicates"])
        if not ((arrays["predicate"] >= 0) & (arrays["predicate"] <= len(predicates))).all():
            raise ValueError(f"rules.predicate must be numbers from 0 to {len(predicates)}")
        return cls(
            agents=agents,
            macros=macros,
            kinds=kinds,
            predicates=predicates,
            exists=exists,
            **arrays,
        )

    def agent(self, name: str | int) -> int:
        """Return the number of an agent, from its name or number."""
        if isinstance(name, int) and not isinstance(name, bool) and 0 <= name < len(self.agents):
            return name
        if not isinstance(name, str) or name not in self.agents:
            raise ValueError(f"agent {name!r} is unknown; {suggest(str(name), self.agents)}")
        return self.agents.index(name)

    def kind(self, name: str) -> int:
        """Return the number of a kind."""
        if name not in self.kinds:
            raise ValueError(f"kind {name!r} is unknown; {suggest(str(name), self.kinds)}")
        return self.kinds.index(name)

    def holding(self, agent: int, told: Mapping[str, Sequence[str]]) -> np.ndarray:
        """Return bool [M, Q], which predicates hold of each macro of an agent.

        Args:
            agent: its number.
            told: for each predicate, the macros of which it holds. Of those that are left out it does not hold.
        """
        found = np.zeros((self.exists.shape[1], len(self.predicates)), bool)
        for name, macros in told.items():
            if name not in self.predicates:
                allowed = suggest(str(name), self.predicates)
                raise ValueError(f"predicate {name!r} is unknown; {allowed}")
            for macro in macros:
                if macro not in self.macros[agent]:
                    allowed = suggest(str(macro), self.macros[agent])
                    raise ValueError(
                        f"macro {macro!r} of {self.agents[agent]} is unknown; {allowed}"
                    )
                place = self.macros[agent].index(macro)
                found[place, self.predicates.index(name)] = True
        return found

    def allows(self, kinds: np.ndarray, holds: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return bool [N, M], the macros that comply with the kind of each agent. They are judged by their names.

        Args:
            kinds: [N]; 0 if the agent is not addressed.
            holds: bool [N, M, Q], which predicates hold of each choice.
            known: bool [N], whether the agent's robot said so. Otherwise every choice counts as one of which what
                matters holds.
        """
        agents = np.arange(len(self.agents))
        listed = self.allowed[kinds, agents]
        if not self.predicates:
            return listed
        predicate = self.predicate[kinds]
        held = holds[agents, :, np.maximum(predicate - 1, 0)] ^ self.negated[kinds, None]
        concerned = held | (predicate == 0)[:, None] | ~known[:, None]
        return np.where(self.lists_allowed[kinds, None], listed & concerned, listed | ~concerned)

    def enforced(self, available: np.ndarray, allowed: Sequence[np.ndarray]) -> np.ndarray:
        """Return the available macros [N, M] that all instructions allow; all of an agent if none is left to it.

        Args:
            available: bool [N, M].
            allowed: bool [N, M] of each instruction that holds.
        """
        left = np.logical_and.reduce([available, *allowed])
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
            both = (
                self._sometimes(one, number) & self._sometimes(other, number) & self.exists[number]
            )
            if not both.any():
                return (
                    f"{names[0]} and {names[1]} together leave {self.agents[number]} nothing to do"
                )
        return ""

    def _sometimes(self, kind: int, agent: int) -> np.ndarray:
        """Return bool [M], the macros that a kind allows an agent in some state."""
        depends = self.predicate[kind] > 0 and not self.lists_allowed[kind]
        return self.allowed[kind, agent] | depends
