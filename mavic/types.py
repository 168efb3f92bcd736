"""The nouns everybody shares: frozen, keyword-only pytrees.

Axes: `E` episodes, `W` lanes (episodes follow one another in a lane), `T` primitive ticks, `K` macro rows,
`N` agents, `M` macros (padded), `O` observation, `C` kinds of instruction (0 = none), `P` phrases (0 = silence),
`D` embedding, `V` events. Time first, then lane, then agent.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, dataclass_transform

import jax

Array = jax.Array
T = TypeVar("T")


def static(default: Any = dataclasses.MISSING) -> Any:
    """A field that is part of the compiled program's shape rather than an array."""
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata={"static": True})
    return dataclasses.field(default=default, metadata={"static": True})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(static, dataclasses.field))
def record(cls: type[T]) -> type[T]:
    """Make `cls` a frozen keyword-only dataclass and a pytree; `static()` fields are its metadata."""
    made = dataclasses.dataclass(frozen=True, kw_only=True)(cls)
    fields = dataclasses.fields(made)  # type: ignore[arg-type]
    meta = [f.name for f in fields if f.metadata.get("static")]
    data = [f.name for f in fields if not f.metadata.get("static")]
    jax.tree_util.register_dataclass(made, data_fields=data, meta_fields=meta)
    return made


def replace(item: T, **changes: Any) -> T:
    """A copy of a record with some fields changed."""
    return dataclasses.replace(item, **changes)  # type: ignore[type-var]


@record
class Tick:
    """What one primitive step of an environment gives back."""

    state: Any
    reward: Array  # [N] task reward
    ended: Array  # [N] the running macro ended by itself in this tick
    terminal: Array  # [] the task is over (never the horizon)
    events: Array  # [V] float: how often each named event happened in this tick
    judged: Array  # [N] int: the macro each agent is judged by (the running one, or what a primitive amounted to)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sprite:
    """One thing in a picture; x to the right, y down, in cells."""

    shape: str  # "robot", "box", "tool", "human", "goal", "wall", "counter", "station", "food", "plate", "zone", "spot"
    x: float
    y: float
    width: float = 1.0
    height: float = 1.0
    label: str = ""  # short text drawn on it
    colour: str = "grey"  # a name of the painters' palette
    heading: str = ""  # "N", "E", "S", "W" for what faces somewhere
    holds: str = ""  # what it carries


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scene:
    """One description of a picture, for every painter; sprites are drawn in order."""

    width: float
    height: float
    sprites: tuple[Sprite, ...]
    notes: tuple[str, ...] = ()  # one line each, below the picture
