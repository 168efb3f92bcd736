"""A small world for planted mistakes: two robots in a yard walk to the far end and dig there."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

import jax.numpy as jnp

from mavic.types import Array, Scene, Sprite, Tick, record, static


class Macro(IntEnum):
    STAY = 0
    WALK = 1
    BACK = 2
    RING = 3
    KNOCK = 4  # makes the bell ring too
    DIG = 5  # available at the far end alone
    FLY = 6  # never available
    PATROL = 7  # digs where it comes by, and never ends by itself


@record
class Places:
    x: Array  # [N] cells
    dug: Array  # [N] bool


@record
class Yard:
    length: int = static(default=3)

    name: ClassVar[str] = "yard"
    agents: ClassVar[tuple[str, ...]] = ("left", "right")
    macros: ClassVar[tuple[type[IntEnum], ...]] = (Macro, Macro)
    horizon: ClassVar[int] = 30
    horizon_ends: ClassVar[bool] = False
    events: ClassVar[tuple[str, ...]] = ("solved", "bell")
    preconditions: ClassVar[tuple[str, ...]] = ("it-rains",)
    effects: ClassVar[tuple[str, ...]] = ()

    def reset(self, key):
        del key
        return Places(x=jnp.zeros(2, jnp.int32), dug=jnp.zeros(2, bool))

    def tick(self, key, state, macro, fresh, effect):
        del key, fresh, effect
        step = (macro == Macro.WALK).astype(jnp.int32) - (macro == Macro.BACK)
        x = jnp.clip(state.x + step, 0, self.length - 1)
        digs = (macro == Macro.DIG) | (macro == Macro.PATROL)
        dug = state.dug | (digs & (state.x == self.length - 1))
        solved = dug.all()
        bell = ((macro == Macro.RING) | (macro == Macro.KNOCK)).sum()
        return Tick(
            state=Places(x=x, dug=dug),
            reward=jnp.full(2, -0.1) + 100.0 * solved,
            ended=macro != Macro.PATROL,
            terminal=solved,
            events=jnp.stack([solved, bell]).astype(jnp.float32),
            effective_macro=macro,
        )

    def check(self, state):
        return (state.x < 0).any()[None]

    def observe(self, s):
        return jnp.stack([s.x / self.length, s.dug], 1).astype(jnp.float32)

    def available(self, state):
        offered = jnp.ones((2, len(Macro)), bool).at[:, Macro.FLY].set(False)
        at_the_end = (state.x == self.length - 1)[:, None]
        return offered.at[:, (Macro.DIG, Macro.PATROL)].set(at_the_end)

    def scene(self, state, macro):
        del macro
        robots = (Sprite(shape="robot", x=float(x), y=float(y)) for y, x in enumerate(state.x))
        return Scene(width=self.length, height=2, sprites=tuple(robots))
