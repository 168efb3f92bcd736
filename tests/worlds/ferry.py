"""Ferry: a captain and two loaders bring three crates to town. One reward of 1,000, at the end.

The ferry starts in town. The captain sails to the east pier (near) or the west pier (far) and lies there until a crate
is on board, or for 4 ticks. The ferry carries one crate at a time. While it lies at a pier, both loaders put a crate on
board by hand if they stand there and begin in the same tick, or one loader works the pier's crane, which takes longer
and stops when the ferry leaves. A loader that lifts a crate alone loses 20. The captain sails to town fast or slowly.
The captain sees who stands at the ferry's pier, and a loader sees what is at its own pier.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from worlds.known import Known

from mavic.envs.api import register
from mavic.types import Array, Scene, Sprite, Tick, record


class Captain(IntEnum):
    WAIT = 0
    COLLECT_EAST = 1
    COLLECT_WEST = 2
    TOWN_FAST = 3
    TOWN_SLOW = 4


class Loader(IntEnum):
    WAIT = 0
    GO_EAST = 1
    GO_WEST = 2
    LOAD = 3
    CRANE = 4


HOME, EAST, WEST = range(3)  # home is the town for the ferry and the yard for a loader
CRATES, PATIENCE = 3, 4
SAIL = np.array([[1, 3, 5, 1, 1], [1, 1, 2, 3, 5], [1, 2, 1, 5, 7]])  # [place, macro] ticks
WALK = np.array([[1, 2, 2, 2, 4], [1, 1, 3, 2, 4], [1, 3, 1, 2, 4]])
GOAL = np.array([-1, EAST, WEST, HOME, HOME])  # where a captain's macro leads


@record
class State:
    place: Array  # [N]
    aboard: Array  # [] a crate is on the ferry
    delivered: Array  # [] crates in town
    left: Array  # [N] ticks that the running macro still needs


@record
class Ferry:
    prize: float | Array = 1000.0
    alone: float | Array = 20.0  # what a loader loses that lifts alone or for nothing

    name: ClassVar[str] = "ferry"
    agents: ClassVar[tuple[str, ...]] = ("captain", "joe", "kim")
    macros: ClassVar[tuple[type[IntEnum], ...]] = (Captain, Loader, Loader)
    horizon: ClassVar[int] = 100
    horizon_ends: ClassVar[bool] = False
    events: ClassVar[tuple[str, ...]] = ("solved", "delivered", "alone")
    preconditions: ClassVar[tuple[str, ...]] = ("crate-aboard",)
    effects: ClassVar[tuple[str, ...]] = ()

    def reset(self, key):
        del key
        zeros = jnp.zeros(3, jnp.int32)
        return State(place=zeros, aboard=jnp.int32(0), delivered=jnp.int32(0), left=zeros)

    def tick(self, key, state, macro, fresh, effect):
        del key, effect
        sail = jnp.asarray(SAIL)[state.place[0], macro[0]]
        walk = jnp.asarray(WALK)[state.place[1:], macro[1:]]
        left = jnp.where(fresh, jnp.concatenate([sail[None], walk]), state.left) - 1
        over = left <= 0
        hands, goal = macro[1:], jnp.asarray(GOAL)[macro[0]]
        still = (macro[0] == Captain.WAIT) | (goal == state.place[0])
        waits = still & (state.aboard == 0) & (state.place[0] != HOME)
        here = (state.place[1:] == state.place[0]) & waits
        lifts = hands == Loader.LOAD
        together = (lifts & here).all() & (left[1] == left[2])
        alone = lifts & ~together
        cranes = hands == Loader.CRANE
        put = ((lifts & together) | (cranes & here)) & over[1:]
        ferry = jnp.where(over[0] & (goal >= 0), goal, state.place[0])
        walks = (hands == Loader.GO_EAST) | (hands == Loader.GO_WEST)
        loaders = jnp.where(over[1:] & walks, hands, state.place[1:])
        landed = (ferry == HOME) & (state.aboard == 1)
        aboard = jnp.where(landed, 0, jnp.where(put.any(), 1, state.aboard))
        delivered = state.delivered + landed
        done = delivered == CRATES
        collects = (macro[0] == Captain.COLLECT_EAST) | (macro[0] == Captain.COLLECT_WEST)
        lies_on = collects & (aboard == 0) & (left[0] > -PATIENCE)
        ended = over & jnp.concatenate([~lies_on[None], jnp.ones(2, bool)])
        ended = ended.at[1:].set(ended[1:] | alone | (cranes & ~here))
        return Tick(
            state=State(
                place=jnp.concatenate([ferry[None], loaders]),
                aboard=aboard,
                delivered=delivered,
                left=jnp.where(ended, 0, left),
            ),
            reward=jnp.full(3, self.prize * done - self.alone * alone.sum(), jnp.float32),
            ended=ended,
            terminal=done,
            events=jnp.stack([done, landed, alone.any()]).astype(jnp.float32),
            effective_macro=macro,
        )

    def check(self, state):
        return (state.aboard == 1)[None]

    def observe(self, state):
        at_pier = state.place[0] != HOME
        meets = (state.place[1:] == state.place[0]) & at_pier
        captain = jnp.stack([state.aboard, state.delivered / CRATES, meets.sum() / 2])
        partner = (state.place[1] == state.place[2]) & (state.place[1:] != HOME)
        loaders = jnp.stack([meets, meets & (state.aboard == 1), partner], 1)
        facts = jnp.concatenate([captain[None], loaders.astype(jnp.float32)])
        return jnp.concatenate([jnp.eye(3)[state.place], facts], 1)

    def available(self, state):
        empty = (state.place[0] != HOME) & (state.aboard == 0)
        can_load = (state.place == state.place[0]) & empty
        works = jnp.arange(5) >= Loader.LOAD
        return (jnp.arange(3) == 0)[:, None] | can_load[:, None] | ~works[None]

    def scene(self, state, macro):
        del macro
        columns = (2.0, 4.0, 0.0)
        zones = (("town", 2, 0), ("west pier", 0, 1), ("east pier", 4, 1), ("yard", 2, 2))
        places = [
            Sprite(shape="zone", x=float(x), y=float(y), label=name, colour="sand")
            for name, x, y in zones
        ]
        where = [int(place) for place in state.place]
        ferry = Sprite(
            shape="station", x=columns[where[0]], y=float(where[0] != HOME), label="ferry",
            colour="sky", holds="a crate" if int(state.aboard) else "",
        )  # fmt: skip
        loaders = [
            Sprite(shape="robot", x=columns[where[n]], y=2.0, label=self.agents[n]) for n in (1, 2)
        ]
        crates = f"crates in town: {int(state.delivered)} of {CRATES}"
        return Scene(width=5, height=3, sprites=(*places, ferry, *loaders), notes=(crates,))


GAMMA = 0.99
BEST = Known(
    make=Ferry,
    gamma=GAMMA,
    returns={
        None: 793.6143,
        "avoid-east-pier": 703.4477,
        "no-hand-loading": 747.1721,
        "no-fast-sailing": 747.1721,
        "joe-avoids-east-pier": 747.1721,
        "avoid-east-pier+no-hand-loading": 662.2820,
        "avoid-east-pier+no-fast-sailing": 662.2820,
        "avoid-east-pier+joe-avoids-east-pier": 703.4477,
        "no-hand-loading+no-fast-sailing": 703.4477,
        "no-hand-loading+joe-avoids-east-pier": 747.1721,
        "no-fast-sailing+joe-avoids-east-pier": 703.4477,
    },
    plans={
        None: ("131313", "01300000030000003", "01300000030000003"),
        "avoid-east-pier": ("232323", "000230000000000300000000003", "000230000000000300000000003"),
        "no-hand-loading": ("131313", "01400000040000004", ""),
        "no-fast-sailing": ("141414", "013000000003000000003", "013000000003000000003"),
        "joe-avoids-east-pier": ("131313", "", "01400000040000004"),
    },
)
register("ferry", Ferry, "ferry.toml", title="Ferry", gamma=GAMMA, optimum=BEST)
