"""A rescue world: three robots search a burning building, lift a beam together and leave. It is the world of the guide.

    hall ── left corridor ── room A
      │                        │ door
      └──── right corridor ── room B

The charger and the beam are in the hall. The beam blocks the way out; two robots must lift it in the same tick. A
crossing costs battery, and with an empty battery it takes twice as long.

    mavic check rescue --plugins rescue
    mavic train rescue --plugins rescue
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

import jax.numpy as jnp

from mavic.envs.api import register
from mavic.rollout.plan import searched
from mavic.types import Array, Scene, Sprite, Step, Tick, record


class Macro(IntEnum):
    WAIT = 0
    LEFT = 1  # cross the left corridor
    RIGHT = 2  # cross the right corridor
    DOOR = 3  # go through the door between the rooms
    SEARCH = 4  # the room
    LIFT = 5  # the beam
    CHARGE = 6
    EXIT = 7


class Place(IntEnum):
    HALL = 0
    ROOM_A = 1
    ROOM_B = 2
    OUT = 3


TICKS = jnp.array([1, 2, 2, 1, 2, 1, 1, 1])  # of each macro, with a full battery
COST = jnp.array([0, 2, 2, 1, 0, 0, 0, 0])  # in battery
FULL = 4
# Where a macro leads: [place, macro].
LEADS = (
    jnp.array([[0] * 8, [1] * 8, [2] * 8, [3] * 8])
    .at[Place.HALL, Macro.LEFT].set(Place.ROOM_A)
    .at[Place.HALL, Macro.RIGHT].set(Place.ROOM_B)
    .at[Place.HALL, Macro.EXIT].set(Place.OUT)
    .at[Place.ROOM_A, Macro.LEFT].set(Place.HALL)
    .at[Place.ROOM_A, Macro.DOOR].set(Place.ROOM_B)
    .at[Place.ROOM_B, Macro.RIGHT].set(Place.HALL)
    .at[Place.ROOM_B, Macro.DOOR].set(Place.ROOM_A)
)  # fmt: skip
# Which macros a place offers: [place, macro].
OFFERS = jnp.array(
    [
        [1, 1, 1, 0, 0, 1, 1, 1],
        [1, 1, 0, 1, 1, 0, 0, 0],
        [1, 0, 1, 1, 1, 0, 0, 0],
        [1, 0, 0, 0, 0, 0, 0, 0],
    ],
    bool,
)


@record
class Building:
    place: Array  # [N] where each robot is; during a crossing, where it came from
    left: Array  # [N] ticks that the running macro still needs
    battery: Array  # [N]
    searched: Array  # [2] bool: rooms A and B
    lifted: Array  # [] bool


@record
class Rescue:
    """Three robots search two rooms, lift the beam and leave."""

    prize: float | Array = 30.0
    """For leaving, when everything else is done."""
    each: float | Array = 10.0
    """For each room that is searched, and for the beam."""

    name: ClassVar[str] = "rescue"
    agents: ClassVar[tuple[str, ...]] = ("robot_0", "robot_1", "robot_2")
    macros: ClassVar[tuple[type[IntEnum], ...]] = (Macro, Macro, Macro)
    horizon: ClassVar[int] = 40
    horizon_ends: ClassVar[bool] = False
    events: ClassVar[tuple[str, ...]] = (
        "solved",
        "room-a-searched",
        "room-b-searched",
        "beam-lifted",
    )
    preconditions: ClassVar[tuple[str, ...]] = ("beam-on-the-floor", "somebody-in-a-room")
    effects: ClassVar[tuple[str, ...]] = ()
    predicates: ClassVar[tuple[str, ...]] = ("outwards", "to-the-hall", "to-the-charger")

    def reset(self, key):
        zeros = jnp.zeros(3, jnp.int32)
        return Building(
            place=zeros,
            left=zeros,
            battery=jnp.full(3, FULL, jnp.int32),
            searched=jnp.zeros(2, bool),
            lifted=jnp.asarray(False),
        )

    def tick(self, key, state, macro, fresh, effect):
        weak = state.battery < COST[macro]
        needed = jnp.where(weak, 2 * TICKS[macro], TICKS[macro])
        left = jnp.where(fresh, needed, state.left) - 1
        done = left <= 0
        place = jnp.where(done, LEADS[state.place, macro], state.place)
        drained = jnp.maximum(state.battery - jnp.where(done, COST[macro], 0), 0)
        battery = jnp.where(done & (macro == Macro.CHARGE), FULL, drained)
        found = done & (macro == Macro.SEARCH)
        rooms = jnp.stack(
            [(found & (state.place == room)).any() for room in (Place.ROOM_A, Place.ROOM_B)]
        )
        lifts = ((macro == Macro.LIFT) & (state.place == Place.HALL)).sum() >= 2
        new = jnp.concatenate([rooms & ~state.searched, (lifts & ~state.lifted)[None]])
        searched, lifted = state.searched | rooms, state.lifted | lifts
        solved = (place == Place.OUT).all()
        reward = -0.1 + self.each * new.sum() + self.prize * solved
        return Tick(
            state=Building(
                place=place, left=left, battery=battery, searched=searched, lifted=lifted
            ),
            reward=jnp.full(3, reward),
            ended=done,
            terminal=solved,
            events=jnp.concatenate([solved[None], new]).astype(jnp.float32),
            effective_macro=macro,
        )

    def check(self, state):
        inside = (state.place == Place.ROOM_A) | (state.place == Place.ROOM_B)
        return jnp.stack([~state.lifted, inside.any()])

    def holds(self, state):
        """Return which choices lead outwards through a corridor, to the hall (or stay there), and to the charger."""
        here, ahead = state.place[:, None], LEADS[state.place]
        outwards = (here != Place.HALL) & (ahead == Place.HALL)
        to_hall = outwards | (here == Place.OUT) | ((here == Place.HALL) & (ahead == Place.HALL))
        charges = (here == Place.HALL) & (jnp.arange(len(Macro)) == Macro.CHARGE)[None]
        return jnp.stack([outwards, to_hall, charges | outwards | (here == Place.OUT)], -1)

    def observe(self, state):
        places = (state.place[:, None] == jnp.arange(4)[None]).astype(jnp.float32)
        others = jnp.stack(
            [jnp.delete(places, i, axis=0, assume_unique_indices=True).sum(0) for i in range(3)]
        )
        shared = jnp.concatenate([state.searched, state.lifted[None]]).astype(jnp.float32)
        battery = state.battery[:, None] / FULL
        return jnp.concatenate([places, others / 2, battery, jnp.tile(shared, (3, 1))], 1)

    def available(self, state):
        ready = state.searched.all() & state.lifted
        offered = OFFERS[state.place]
        offered = offered.at[:, Macro.EXIT].set(offered[:, Macro.EXIT] & ready)
        return offered.at[:, Macro.LIFT].set(offered[:, Macro.LIFT] & ~state.lifted)

    def scene(self, state, macro):
        spots = {
            Place.HALL: (0.5, 1.0),
            Place.ROOM_A: (4.5, 0.2),
            Place.ROOM_B: (4.5, 1.8),
            Place.OUT: (0.5, 2.6),
        }
        colours = ["green" if found else "grey" for found in state.searched.tolist()]
        things = [
            Sprite(shape="zone", x=0, y=0.5, width=2, height=1.9, name="hall", label="hall"),
            Sprite(shape="zone", x=2, y=0.4, width=2, height=0.6, name="left corridor"),
            Sprite(shape="zone", x=2, y=2.0, width=2, height=0.6, name="right corridor"),
            Sprite(shape="zone", x=4, y=0, width=2, height=1.4, name="room a", label="A", colour=colours[0]),
            Sprite(shape="zone", x=4, y=1.6, width=2, height=1.4, name="room b", label="B", colour=colours[1]),
            Sprite(shape="station", x=0, y=0.5, width=0.5, height=0.5, name="charger", label="⚡"),
        ]  # fmt: skip
        if not state.lifted:
            things.append(Sprite(shape="box", x=0.2, y=2.45, width=1.4, height=0.15, name="beam"))
        for i, (place, battery) in enumerate(
            zip(state.place.tolist(), state.battery.tolist(), strict=True)
        ):
            x, y = spots[Place(place)]
            things.append(
                Sprite(
                    shape="robot", x=x + 0.45 * i - 0.3, y=y, width=0.4, height=0.4,
                    label=str(i), holds=f"battery {battery}",
                )
            )  # fmt: skip
        work = (
            Step(name="search room A", done=int(state.searched[0])),
            Step(name="search room B", done=int(state.searched[1])),
            Step(name="lift the beam", done=int(state.lifted)),
            Step(name="leave", done=int((state.place == Place.OUT).sum()), of=3),
        )
        return Scene(width=6, height=3.0, sprites=tuple(things), steps=work)


def most(state, gamma):
    """Return a bound on what can still be earned: every part as early as any robot could do it."""
    away = (state.place[:, None] != jnp.array([[Place.ROOM_A, Place.ROOM_B]])).astype(jnp.int32)
    search = jnp.where(state.searched, 0, away.min(0) + 1)  # the last tick of a search may be next
    home = ((state.place != Place.HALL) & (state.place != Place.OUT)).max()
    back = jnp.where(state.searched, 0, search + 2).max()  # the hall is two ticks from a room
    leave = jnp.maximum(jnp.maximum(back, home), ~state.lifted) + 1
    parts = jnp.where(state.searched, 0, 10 * gamma ** (search - 1)).sum()
    return parts + jnp.where(state.lifted, 0, 10.0) + 30 * gamma ** (leave - 1)


register(
    "rescue",
    Rescue,
    instructions="rescue.toml",
    title="Rescue",
    job="The robots search both rooms, lift the beam together and leave.",
    optimum=searched(most=most),
    macro_words={"LEFT": "cross the left corridor", "RIGHT": "cross the right corridor", "DOOR": "go through the door"},
    macro_things={"LEFT": "left corridor", "RIGHT": "right corridor", "LIFT": "beam",
    "to-the-charger": "charger", "to-the-hall": "hall"},
)  # fmt: skip
