"""Lift: two robots lift a beam together and carry it through a gate. Short episodes, rewards of 0.1 to 1.

Ann stands nearer to the left end and Bob nearer to the right one. With a robot at each end, both lift the beam by hand
in the same tick, or one robot works the hoist, which takes longer. Then both carry it through the north gate (short) or
the south gate (long). They must begin together: a robot that lifts or carries alone loses 0.02.
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
    GO_LEFT = 1
    GO_RIGHT = 2
    LIFT = 3
    HOIST = 4
    CARRY_NORTH = 5
    CARRY_SOUTH = 6


DOOR, LEFT, RIGHT = range(3)
# [robot, from, to] ticks of a walk
WALK = np.array([[[1, 1, 3], [1, 1, 2], [1, 2, 1]], [[1, 4, 2], [1, 1, 2], [1, 2, 1]]])
TICKS = np.array([1, 0, 0, 1, 4, 3, 5])  # of the other macros


@record
class State:
    place: Array  # [N]
    up: Array  # [] the beam is off the ground
    left: Array  # [N] ticks that the running macro still needs


@record
class Lift:
    up: float | Array = 0.1
    home: float | Array = 1.0
    alone: float | Array = 0.02  # what a robot loses that lifts or carries alone

    name: ClassVar[str] = "lift"
    agents: ClassVar[tuple[str, ...]] = ("ann", "bob")
    macros: ClassVar[tuple[type[IntEnum], ...]] = (Macro, Macro)
    horizon: ClassVar[int] = 20
    horizon_ends: ClassVar[bool] = False
    events: ClassVar[tuple[str, ...]] = ("solved", "lifted", "alone")
    preconditions: ClassVar[tuple[str, ...]] = ()
    effects: ClassVar[tuple[str, ...]] = ()

    def reset(self, key):
        del key
        return State(place=jnp.zeros(2, jnp.int32), up=jnp.int32(0), left=jnp.zeros(2, jnp.int32))

    def tick(self, key, state, macro, fresh, effect):
        del key, effect
        walks = (macro == Macro.GO_LEFT) | (macro == Macro.GO_RIGHT)
        walk = jnp.asarray(WALK)[jnp.arange(2), state.place, jnp.where(walks, macro, 0)]
        needed = jnp.where(walks, walk, jnp.asarray(TICKS)[macro])
        left = jnp.where(fresh, needed, state.left) - 1
        posted = (state.place.min() > DOOR) & (state.place[0] != state.place[1])
        together = posted & (macro[0] == macro[1]) & (left[0] == left[1])
        lifts = macro == Macro.LIFT
        carries = (macro == Macro.CARRY_NORTH) | (macro == Macro.CARRY_SOUTH)
        alone = (lifts & ~(together & (state.up == 0))) | (carries & ~(together & (state.up == 1)))
        ended = (left <= 0) | alone
        hoisted = (macro == Macro.HOIST) & (state.place > DOOR) & (left == 0)
        raised = (state.up == 0) & ((lifts & ~alone) | hoisted).any()
        home = (carries & ~alone & (left == 0)).all()
        reward = self.up * raised + self.home * home - self.alone * alone.sum()
        return Tick(
            state=State(
                place=jnp.where(walks & (left == 0), macro, state.place),
                up=jnp.where(raised, 1, state.up),
                left=jnp.where(ended, 0, left),
            ),
            reward=jnp.full(2, reward, jnp.float32),
            ended=ended,
            terminal=home,
            events=jnp.stack([home, raised, alone.any()]).astype(jnp.float32),
            effective_macro=macro,
        )

    def check(self, state):
        del state
        return jnp.zeros(0, bool)

    def observe(self, state):
        places = jnp.eye(3)[state.place]
        up = jnp.full((2, 1), state.up, jnp.float32)
        return jnp.concatenate([places, places[::-1], up], 1)

    def available(self, state):
        del state
        return jnp.ones((2, len(Macro)), bool)

    def scene(self, state, macro):
        del macro
        columns = (2.0, 0.0, 4.0)
        beam = Sprite(shape="box", x=1, y=float(1 - int(state.up)), width=3, label="beam")
        robots = [
            Sprite(shape="robot", x=columns[int(place)], y=2, label=name)
            for name, place in zip(self.agents, state.place, strict=True)
        ]
        return Scene(width=5, height=3, sprites=(beam, *robots))


GAMMA = 0.97
BEST = Known(
    make=Lift,
    gamma=GAMMA,
    returns={
        None: 0.9528,
        "avoid-north-gate": 0.9021,
        "no-hand-lift": 0.8965,
        "ann-avoids-left": 0.8965,
        "bob-avoids-right": 0.8965,
        "avoid-north-gate+no-hand-lift": 0.8488,
        "avoid-north-gate+ann-avoids-left": 0.8488,
        "avoid-north-gate+bob-avoids-right": 0.8488,
        "no-hand-lift+ann-avoids-left": 0.8435,
        "no-hand-lift+bob-avoids-right": 0.8488,
        "ann-avoids-left+bob-avoids-right": 0.8965,
    },
    plans={
        None: ("0135", "235"),
        "avoid-north-gate": ("0136", "236"),
        "no-hand-lift": ("145", "00025"),
        "ann-avoids-left": ("0235", "135"),
        "bob-avoids-right": ("01235", "135"),
    },
)
register("lift", Lift, "lift.toml", title="Lift", gamma=GAMMA, optimum=BEST)
