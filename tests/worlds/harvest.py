"""Harvest: three robots fill a basket. Many small rewards, long episodes, batteries and one dock.

A trip to the near row takes 4 ticks and brings one unit; a trip to the far row takes 8 and brings three. Each costs one
of a battery's three charges, and a trip on an empty battery brings nothing and costs 0.1. The dock fills a battery in
4 ticks, but two robots there at once block each other and lose 0.2 each. The sun takes 12 ticks. Every unit pays 0.1,
and the task is done when the basket is full. Robots see their own battery and the basket, not each other. They start
with one, two and three charges.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from worlds.known import Known

from mavic.envs.api import register
from mavic.types import Array, Scene, Sprite, Tick, record


class Macro(IntEnum):
    WAIT = 0
    NEAR = 1
    FAR = 2
    DOCK = 3
    SUN = 4


FULL, BASKET = 3, 90
TICKS = np.array([4, 4, 8, 4, 12])
UNITS = np.array([0, 1, 3, 0, 0])


@record
class State:
    battery: Array  # [N]
    basket: Array  # [] units
    left: Array  # [N] ticks that the running macro still needs


@record
class Harvest:
    unit: float | Array = 0.1
    empty: float | Array = 0.1  # what a trip costs on an empty battery
    blocked: float | Array = 0.2  # what a robot loses at a dock that another one uses

    name: ClassVar[str] = "harvest"
    agents: ClassVar[tuple[str, ...]] = ("red", "green", "blue")
    macros: ClassVar[tuple[type[IntEnum], ...]] = (Macro, Macro, Macro)
    horizon: ClassVar[int] = 400
    horizon_ends: ClassVar[bool] = False
    events: ClassVar[tuple[str, ...]] = ("solved", "units", "blocked")
    preconditions: ClassVar[tuple[str, ...]] = ()
    effects: ClassVar[tuple[str, ...]] = ()

    def reset(self, key):
        del key
        battery = jnp.arange(1, FULL + 1, dtype=jnp.int32)
        return State(battery=battery, basket=jnp.int32(0), left=jnp.zeros(3, jnp.int32))

    def tick(self, key, state, macro, fresh, effect):
        del key, effect
        left = jnp.where(fresh, jnp.asarray(TICKS)[macro], state.left) - 1
        ended = left <= 0
        units = jnp.asarray(UNITS)[macro]
        trip = ended & (units > 0)
        empty = trip & (state.battery == 0)
        docks = macro == Macro.DOCK
        blocked = ended & docks & (docks.sum() > 1)
        charged = ended & ((docks & ~blocked) | (macro == Macro.SUN))
        battery = jnp.where(charged, FULL, state.battery - (trip & ~empty))
        brought = jnp.where(trip & ~empty, units, 0).sum()
        basket = jnp.minimum(state.basket + brought, BASKET)
        new, done = basket - state.basket, basket == BASKET
        reward = self.unit * new - self.empty * empty.sum() - self.blocked * blocked.sum()
        return Tick(
            state=State(battery=battery, basket=basket, left=left * ~ended),
            reward=jnp.full(3, reward, jnp.float32),
            ended=ended,
            terminal=done,
            events=jnp.stack([done, new, blocked.sum()]).astype(jnp.float32),
            effective_macro=macro,
        )

    def check(self, state):
        del state
        return jnp.zeros(0, bool)

    def observe(self, state):
        charges = jnp.eye(FULL + 1)[state.battery]
        return jnp.concatenate([charges, jnp.full((3, 1), state.basket / BASKET)], 1)

    def available(self, state):
        del state
        return jnp.ones((3, len(Macro)), bool)

    def scene(self, state, macro):
        columns = (2.0, 3.0, 4.0, 1.0, 0.0)
        names = (("sun", 0), ("dock", 1), ("near row", 3), ("far row", 4))
        places = [
            Sprite(shape="zone", x=x, y=0, height=3, label=name, colour="sand") for name, x in names
        ]
        robots = [
            Sprite(
                shape="robot", x=columns[max(int(macro[n]), 0)], y=float(n),
                label=f"{name} {int(state.battery[n])}",
            )
            for n, name in enumerate(self.agents)
        ]  # fmt: skip
        basket = f"basket: {int(state.basket)} of {BASKET}"
        return Scene(width=5, height=3, sprites=(*places, *robots), notes=(basket,))


GAMMA = 0.995
BEST = Known(
    make=Harvest,
    gamma=GAMMA,
    returns={
        None: 7.1040,
        "avoid-far-row": 6.1793,
        "avoid-dock": 6.7301,
        "blue-avoids-far-row": 6.8607,
        "red-avoids-dock": 6.9743,
        "avoid-far-row+avoid-dock": 5.2620,
        "avoid-far-row+blue-avoids-far-row": 6.1793,
        "avoid-far-row+red-avoids-dock": 5.9149,
        "avoid-dock+blue-avoids-far-row": 6.3681,
        "avoid-dock+red-avoids-dock": 6.7301,
        "blue-avoids-far-row+red-avoids-dock": 6.6948,
    },
    plans={
        None: ("2322232223222", "22322232223221", "22232223222311"),
        "avoid-far-row": (
            "1311131113111311131113111311131113111311",
            "1131113111311131113111311131113111311131",
            "111311131113111311131113111311131113111",
        ),
        "avoid-dock": ("2422242224222", "22422242224221", "22242224222411"),
        "blue-avoids-far-row": (
            "23222322232223211",
            "22322232223222311",
            "1113111311311131131113111031",
        ),
        "red-avoids-dock": ("242224222421", "22322232223222", "222322232223211"),
    },
)
register("harvest", Harvest, "harvest.toml", title="Harvest", gamma=GAMMA, optimum=BEST)
