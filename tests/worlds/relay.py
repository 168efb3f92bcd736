"""Relay: four agents pass two parcels along a line of stations. Rewards of 10, and a small cost of time.

Ana stands at the depot, then come Ben, Cora and Dot. A thrown parcel flies for two ticks, and the next agent must catch
it: both begin in the same tick. A throw that nobody catches costs 1, and a catch without a throw 0.5; both end at once.
A cart takes four ticks and needs nobody. Dot drives parcels to town by the road or, more slowly, by the path. Agents
see only their own station and the one before it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from worlds.known import Known

from mavic.envs.api import register
from mavic.types import Array, Scene, Sprite, Tick, record


class First(IntEnum):
    WAIT = 0
    THROW = 1
    CART = 2


class Middle(IntEnum):
    WAIT = 0
    THROW = 1
    CART = 2
    CATCH = 3


class Last(IntEnum):
    WAIT = 0
    ROAD = 1
    PATH = 2
    CATCH = 3


PARCELS = 2
TICKS = np.array([[1, 2, 4, 1], [1, 2, 4, 2], [1, 2, 4, 2], [1, 3, 5, 2]])  # [agent, macro]
FAST, SLOW, CATCH = 1, 2, 3


@record
class State:
    parcels: Array  # [5] at each station; the last is the town
    left: Array  # [N] ticks that the running macro still needs


@record
class Relay:
    delivery: float | Array = 10.0
    time: float | Array = 0.1  # what each tick costs
    missed: float | Array = 1.0  # what a throw costs that nobody catches
    empty: float | Array = 0.5  # what a catch costs without a throw

    name: ClassVar[str] = "relay"
    agents: ClassVar[tuple[str, ...]] = ("ana", "ben", "cora", "dot")
    macros: ClassVar[tuple[type[IntEnum], ...]] = (First, Middle, Middle, Last)
    horizon: ClassVar[int] = 60
    horizon_ends: ClassVar[bool] = False
    events: ClassVar[tuple[str, ...]] = ("solved", "delivered", "missed")
    preconditions: ClassVar[tuple[str, ...]] = ()
    effects: ClassVar[tuple[str, ...]] = ()

    def reset(self, key):
        del key
        return State(
            parcels=jnp.zeros(5, jnp.int32).at[0].set(PARCELS), left=jnp.zeros(4, jnp.int32)
        )

    def tick(self, key, state, macro, fresh, effect):
        del key, effect
        left = jnp.where(fresh, jnp.asarray(TICKS)[jnp.arange(4), macro], state.left) - 1
        throws = (macro == FAST).at[3].set(False)
        catches = macro == CATCH
        flies = throws[:3] & catches[1:] & (left[:3] == left[1:]) & (state.parcels[:3] > 0)
        no = jnp.zeros(1, bool)
        missed = throws & ~jnp.concatenate([flies, no])
        empty = catches & ~jnp.concatenate([no, flies])
        sends = (macro == SLOW) | (macro == FAST) & ~missed
        moves = (sends & (left == 0) & (state.parcels[:4] > 0)).astype(jnp.int32)
        parcels = state.parcels.at[:4].add(-moves).at[1:].add(moves)
        ended = (left <= 0) | missed | empty
        done = parcels[4] == PARCELS
        reward = self.delivery * moves[3] - self.time
        reward -= self.missed * missed.sum() + self.empty * empty.sum()
        return Tick(
            state=State(parcels=parcels, left=jnp.where(ended, 0, left)),
            reward=jnp.full(4, reward, jnp.float32),
            ended=ended,
            terminal=done,
            events=jnp.stack([done, moves[3] > 0, missed.any()]).astype(jnp.float32),
            effective_macro=macro,
        )

    def check(self, state):
        del state
        return jnp.zeros(0, bool)

    def observe(self, state):
        own = state.parcels[:4] / PARCELS
        return jnp.stack([own, jnp.concatenate([jnp.zeros(1), own[:3]])], 1)

    def available(self, state):
        has = state.parcels[:4] > 0
        always = jnp.ones(4, bool)
        return jnp.stack([always, has, has, jnp.arange(4) > 0], 1)

    def scene(self, state, macro):
        del macro
        piles = [
            Sprite(shape="box", x=float(x), y=1, label=str(int(count)))
            for x, count in enumerate(state.parcels)
            if int(count)
        ]
        people = [
            Sprite(shape="robot", x=float(x), y=0, label=name) for x, name in enumerate(self.agents)
        ]
        town = Sprite(shape="goal", x=4, y=0, label="town")
        return Scene(width=5, height=2, sprites=(town, *people, *piles))


GAMMA = 0.98
BEST = Known(
    make=Relay,
    gamma=GAMMA,
    returns={
        None: 14.9661,
        "no-throwing": 12.8939,
        "ben-does-not-throw": 14.1754,
        "dot-does-not-catch": 13.9553,
        "avoid-road": 13.9553,
        "no-throwing+ben-does-not-throw": 12.8939,
        "no-throwing+dot-does-not-catch": 12.8939,
        "no-throwing+avoid-road": 11.9864,
        "ben-does-not-throw+dot-does-not-catch": 13.6318,
        "ben-does-not-throw+avoid-road": 13.2047,
        "dot-does-not-catch+avoid-road": 13.2047,
    },
    plans={
        None: ("10001", "31031", "0031031", "00003131"),
        "no-throwing": ("22", "000022", "0000000022", "000000000000101"),
        "ben-does-not-throw": ("102", "3202", "00000010001", "0000003131"),
        "dot-does-not-catch": ("100001", "310031", "003232", "0000000010001"),
        "avoid-road": ("1001", "3131", "003132", "00003202"),
    },
)
register("relay", Relay, "relay.toml", title="Relay", gamma=GAMMA, optimum=BEST)
