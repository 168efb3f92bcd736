"""How many faults were injected and how each ended, and examples of a strategy, as many as asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

NUMBERS = ("injected", "survived", "refused", "tracebacks", "silent")


@dataclass
class Count:
    """How many faults were injected, and how each ended."""

    name: str
    injected: int = 0
    survived: int = 0
    refused: int = 0
    tracebacks: int = 0
    silent: int = 0
    examples: list[str] = field(default_factory=list)
    """Of the last two sorts."""

    def add(self, outcome: str, example: str = "") -> None:
        self.injected += 1
        setattr(self, outcome, getattr(self, outcome) + 1)
        if outcome in ("tracebacks", "silent") and len(self.examples) < 5:
            self.examples.append(f"{outcome}: {example[:300]}")

    @property
    def numbers(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in NUMBERS}

    def __str__(self) -> str:
        return f"{self.name:34}" + "".join(f"{n:>11,}" for n in self.numbers.values())


HEADER = f"{'':34}" + "".join(f"{name:>11}" for name in NUMBERS)


def total(counts: Iterable[Count], name: str = "all") -> Count:
    """The sum of several counts."""
    found = Count(name)
    for count in counts:
        for number in NUMBERS:
            setattr(found, number, getattr(found, number) + getattr(count, number))
        found.examples += count.examples
    return found


def repeat(times: int, seed: int, strategy: st.SearchStrategy, act: Callable[[Any], None]) -> None:
    """Call `act` with so many examples of a strategy. The same seed gives the same examples."""

    @hypothesis.seed(seed)
    @settings(
        max_examples=times,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(strategy)
    def go(example: Any) -> None:
        act(example)

    if times:
        go()
