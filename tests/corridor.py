"""A world small enough to work out by hand, written as a user would write one.

Left and right wait (1 tick) or walk (3 ticks); left can also ring, crash or finish, each in 1 tick. Every tick pays
left 1 and right 10.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

import jax.numpy as jnp

from mavic.instruct import reward, schedule
from mavic.instruct.spec import InstructionFile
from mavic.rollout.rollout import Policy
from mavic.rollout.step import InstructedEnv
from mavic.types import Array, Phrases, Scene, Sprite, Tick, record, static


class Left(IntEnum):
    WAIT = 0
    WALK = 1
    RING = 2
    CRASH = 3
    FINISH = 4


class Right(IntEnum):
    WAIT = 0
    WALK = 1


@record
class Position:
    clock: Array  # ticks so far
    left: Array  # [N] ticks the running macro still needs
    heard: Array  # [N] what the last tick was told to do differently


@record
class Corridor:
    horizon: int = static(default=6)
    horizon_ends: bool = static(default=False)

    name: ClassVar[str] = "corridor"
    agents: ClassVar[tuple[str, ...]] = ("left", "right")
    macros: ClassVar[tuple[type[IntEnum], ...]] = (Left, Right)
    events: ClassVar[tuple[str, ...]] = ("solved", "bell", "crash")
    preconditions: ClassVar[tuple[str, ...]] = ("open",)
    effects: ClassVar[tuple[str, ...]] = ("echo",)

    def reset(self, key):
        del key
        zeros = jnp.zeros(2, jnp.int32)
        return Position(clock=jnp.int32(0), left=zeros, heard=zeros)

    def tick(self, key, state, macro, fresh, effect):
        del key
        left = jnp.where(fresh, jnp.where(macro == Left.WALK, 3, 1), state.left) - 1
        terminal = macro[0] == Left.FINISH
        happened = jnp.stack([terminal, macro[0] == Left.RING, macro[0] == Left.CRASH])
        return Tick(
            state=Position(clock=state.clock + 1, left=left, heard=effect),
            reward=jnp.array([1.0, 10.0]),
            ended=left <= 0,
            terminal=terminal,
            events=happened.astype(jnp.float32),
            effective_macro=macro,
        )

    def check(self, state):
        return jnp.stack([state.clock >= 2])

    def observe(self, state):
        return jnp.stack([jnp.full(2, state.clock), state.left], 1).astype(jnp.float32)

    def available(self, state):
        del state
        return jnp.array([[True] * 5, [True, True, False, False, False]])

    def scene(self, state, macro):
        del macro
        x = float(min(int(state.clock), 9))
        return Scene(width=10, height=1, sprites=(Sprite(shape="robot", x=x, y=0),))


WALK, HURRY, RING = 1, 2, 3
FILE = {
    "world": "corridor",
    "kinds": {
        "walk": {"rule": "replace", "pay": 2, "allow": ["WALK"], "train": ["walk", "go", "move"]},
        "hurry": {
            "rule": "add",
            "penalty": -7,
            "bonus": 3,
            "forbid": ["WAIT"],
            "train": ["no waiting", "hurry"],
        },
        "ring": {
            "rule": "add",
            "penalty": -4,
            "agents": ["left"],
            "forbid": {"left": ["WALK"]},
            "given_if": "open",
            "effect": "echo",
            "resolved_by": {"bell": 1, "crash": -1},
            "credit": 20,
            "train": ["ring the bell"],
        },
    },
}
RULES = reward.rules_of(Corridor(), InstructionFile.parse(FILE, "corridor.toml"))
PHRASES = Phrases(
    table=jnp.array([[0, 0, 0], [1, 2, 3], [4, 5, 99], [6, 99, 99]]), count=jnp.array([0, 3, 2, 1])
)


def instructed(env=None, rules=RULES, phrases=PHRASES, **clock) -> InstructedEnv:
    """The corridor under a schedule."""
    return InstructedEnv(
        env=env or Corridor(),
        rules=rules,
        schedule=schedule.make_schedule(**clock),
        phrases=phrases,
    )


def draws(
    *, arrival=0.99, kind=0.0, phrase=0.0, hold=0.0, agent=0.0, spurious=0.99, drill=0.99
) -> Array:
    """The clock's uniform numbers of one tick; nothing happens unless asked for."""
    return jnp.array([arrival, kind, phrase, hold, agent, spurious, drill], jnp.float32)


ARRIVES = dict(arrival=0.0)


def _ramble(memory, world, draws):
    """Choose by the draws and by all choices before, so that no two episodes are the same."""
    memory = jnp.where((world.time == 0)[:, None], 0, memory)
    drawn = (draws * 50).astype(jnp.int32) + memory
    choice = drawn % jnp.array([[5, 2]])
    rarely = (choice[:, 0] == Left.FINISH) & (drawn[:, 0] % 2 == 0)
    choice = choice.at[:, 0].set(jnp.where(rarely, Left.WALK, choice[:, 0]))
    return choice, jnp.where(world.idle, memory + choice + 1, memory)


RAMBLING = Policy(start=lambda num_envs: jnp.zeros((num_envs, 2), jnp.int32), act=_ramble)
LIVE = schedule.make_schedule(rate=0.3, hold_min=1, hold_max=3, overlap=True)
