"""What exact search found for a world of this folder: the best returns and the plans that earn them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mavic.envs.api import Env

# What each agent chooses, in order: one text per agent, one digit per macro.
Plan = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Known:
    """The best returns of one world by the kind that is obeyed from the start. It is the world's `optimum`."""

    make: Callable[[], Env]
    gamma: float
    returns: Mapping[str | None, float]
    """By kind; None: no instruction; "KIND+KIND": both. Only kinds that leave the task on."""
    plans: Mapping[str | None, Plan] = field(default_factory=dict)
    """By kind, without pairs; empty in a world with chance."""

    def __call__(self, env: Env, gamma: float, kind: str | None = None) -> float | None:
        """Return the best return; None for other options, another discount and kinds that are not known."""
        if env != self.make() or gamma != self.gamma:
            return None
        return self.returns.get(kind)
