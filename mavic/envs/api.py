"""What a world must offer, and the conformance test that proves it does.

A world is a record (a pytree): rewards and rates are array leaves, so a grid of settings is one `vmap`; sizes and
rule sets are static. All methods are pure. Agents with fewer macros or smaller observations than others are padded.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from mavic.types import Array, Scene, Tick


@runtime_checkable
class Env(Protocol):
    """A cooperative world whose agents run macro-actions, one tick at a time."""

    @property
    def name(self) -> str:
        """World id, such as `box_pushing`."""

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents' names; everything per agent is in this order."""

    @property
    def macros(self) -> tuple[type[IntEnum], ...]:
        """One enum of macros per agent; the longest sets M."""

    @property
    def horizon(self) -> int:
        """Ticks after which an episode is cut."""

    @property
    def horizon_ends(self) -> bool:
        """Whether the horizon is a true end (nothing comes after) rather than a cut."""

    @property
    def events(self) -> tuple[str, ...]:
        """Names of what can happen in a tick; the first is "solved", the task done."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """Names of facts about a state that an instruction may require when it is given."""

    @property
    def effects(self) -> tuple[str, ...]:
        """Names of what an instruction can change in the world while it holds."""

    def reset(self, key: Array) -> Any:
        """The first state."""

    def tick(self, key: Array, state: Any, macro: Array, fresh: Array, effect: Array) -> Tick:
        """One primitive step. `macro` [N] runs; `fresh` [N]: chosen just now (if an old one was still running it was
        interrupted); `effect` [N]: 0, or 1 + the index in `effects` of what the agent's instruction asks."""

    def check(self, state: Any) -> Array:
        """Bool, one per name in `conditions`."""

    def observe(self, state: Any) -> Array:
        """Float [N, O], what each agent would see now; never depends on the instruction."""

    def available(self, state: Any) -> Array:
        """Bool [N, M], which macros may be chosen; padding is never available."""

    def scene(self, state: Any, macro: Array) -> Scene:
        """A picture of the state (on the host)."""


def macro_count(env: Env) -> int:
    """M: the largest number of macros any agent has."""
    return max(len(macros) for macros in env.macros)
