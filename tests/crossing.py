"""A world whose instructions depend on what is the case: two robots cross a river and carry a load over it.

CROSS takes two ticks. The load lies in the north; a robot in the north can take it. Both are paid when it is put down
in the south. The robots start in the south.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

import jax.numpy as jnp

from mavic.types import Array, Scene, Sprite, Tick, record


class Macro(IntEnum):
    WAIT = 0
    CROSS = 1
    TAKE = 2
    PUT = 3


@record
class River:
    north: Array  # [N] bool: on which side
    left: Array  # [N] ticks that the running macro still needs
    holder: Array  # [] who has the load; -1: it lies in the north


@record
class Crossing:
    name: ClassVar[str] = "crossing"
    agents: ClassVar[tuple[str, ...]] = ("a", "b")
    macros: ClassVar[tuple[type[IntEnum], ...]] = (Macro, Macro)
    horizon: ClassVar[int] = 16
    horizon_ends: ClassVar[bool] = False
    events: ClassVar[tuple[str, ...]] = ("solved",)
    preconditions: ClassVar[tuple[str, ...]] = ()
    effects: ClassVar[tuple[str, ...]] = ()
    predicates: ClassVar[tuple[str, ...]] = ("southwards", "while-carrying")

    def reset(self, key):
        del key
        zeros = jnp.zeros(2, jnp.int32)
        return River(north=zeros > 0, left=zeros, holder=jnp.int32(-1))

    def tick(self, key, state, macro, fresh, effect):
        del key, effect
        left = jnp.where(fresh, jnp.where(macro == Macro.CROSS, 2, 1), state.left) - 1
        done = left <= 0
        north = state.north ^ (done & (macro == Macro.CROSS))
        takes = done & (macro == Macro.TAKE) & state.north & (state.holder < 0)
        holder = jnp.where(takes.any(), jnp.argmax(takes), state.holder).astype(jnp.int32)
        puts = done & (macro == Macro.PUT) & ~state.north & (state.holder == jnp.arange(2))
        solved = puts.any()
        return Tick(
            state=River(north=north, left=left, holder=holder),
            reward=jnp.full(2, -0.1) + 10.0 * solved,
            ended=done,
            terminal=solved,
            events=solved[None].astype(jnp.float32),
            effective_macro=macro,
        )

    def check(self, state):
        del state
        return jnp.zeros(0, bool)

    def holds(self, state):
        southwards = state.north[:, None] & (jnp.arange(len(Macro)) == Macro.CROSS)[None]
        carrying = jnp.broadcast_to((state.holder == jnp.arange(2))[:, None], southwards.shape)
        return jnp.stack([southwards, carrying], -1)

    def observe(self, state):
        mine = state.holder == jnp.arange(2)
        return jnp.stack([state.north, mine, state.left > 0], 1).astype(jnp.float32)

    def available(self, state):
        del state
        return jnp.ones((2, len(Macro)), bool)

    def scene(self, state, macro):
        del macro
        robots = [
            Sprite(shape="robot", x=float(i), y=0.0 if north else 1.0)
            for i, north in enumerate(state.north)
        ]
        river = Sprite(shape="zone", x=0, y=0.9, width=2, height=0.2, name="river")
        return Scene(width=2, height=2, sprites=(*robots, river))


def kinds():
    """The kinds of the tests, as a parsed file."""
    return {
        "world": "crossing",
        "kinds": {
            "south-only": {
                "meaning": "Cross the river southwards only",
                "rule": "add",
                "forbid": ["CROSS"],
                "unless": "southwards",
                "train": ["cross only southwards", "don't go north", "no crossing to the north"],
            },
            "dont-carry-over": {
                "rule": "add",
                "forbid": ["CROSS"],
                "when": "while-carrying",
                "agents": ["a"],
                "train": ["a, don't carry it over", "a must not bring the load", "not you, a"],
            },
            "hands-free": {
                "rule": "add",
                "forbid": ["*"],
                "when": "while-carrying",
                "train": ["no hands", "put nothing on your back", "carry nothing"],
            },
            "go-south": {
                "rule": "replace",
                "allow": ["CROSS"],
                "when": "southwards",
                "train": ["go south", "come south", "over to the south"],
            },
            "wait": {"rule": "replace", "allow": ["WAIT"], "train": ["wait", "stop", "hold"]},
        },
    }
