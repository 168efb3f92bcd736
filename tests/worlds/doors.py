"""Doors: six agents in three lanes, doors that need a partner at the switch, floors that slip. Rewards of 10 and 50.

In each lane a runner passes two doors, one after the other. Before each, the runner goes to the door and the holder to
its switch: running is short, but a tick makes no headway with probability 0.3; walking is longer and sure. Then both
open the main door (two ticks) or the side door (five ticks). They must begin in the same tick: who tries alone loses 2.
The first door pays 10 and the second 50. The lanes differ in length. The task is done when all three runners are out.
Agents see their own lane alone.

The lanes have nothing in common but the end of the episode, which comes when none of them can earn any more. The
team's return is therefore the sum of what the lanes earn, and its expectation is largest if each lane's is.
`Doors(lanes=1, first=k)` is lane k by itself, small enough for exact dynamic programming, and the best return is the
sum of the three values. A prohibition binds each agent's own choices, so the sum is the best obedient return too.
"""

from __future__ import annotations

import itertools
from enum import IntEnum
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from worlds.known import Known

from mavic.envs.api import register
from mavic.types import Array, Scene, Sprite, Tick, record, static


class Runner(IntEnum):
    WAIT = 0
    RUN = 1
    WALK = 2
    PASS_MAIN = 3
    PASS_SIDE = 4


class Holder(IntEnum):
    WAIT = 0
    RUN = 1
    WALK = 2
    HOLD_MAIN = 3
    HOLD_SIDE = 4


NAMES = ("ann", "abe", "bea", "bob", "cat", "cal")
DOORS, GRIP = 2, 0.7
STEPS = np.array([2, 3, 4])  # by lane: of a run; a walk takes three times as many
OPENING = np.array([0, 0, 0, 2, 5])  # ticks by macro


@record
class State:
    passed: Array  # [lanes] doors behind the runner
    ready: Array  # [N] the agent stands at the next door or switch
    left: Array  # [N] ticks, or steps on the way, that the running macro still needs


@record
class Doors:
    lanes: int = static(default=3)
    first: int = static(default=0)  # the number of the first lane
    door: float | Array = 10.0
    exit: float | Array = 50.0
    alone: float | Array = 2.0  # what an agent loses that opens a door alone

    name: ClassVar[str] = "doors"
    horizon: ClassVar[int] = 150
    horizon_ends: ClassVar[bool] = False
    events: ClassVar[tuple[str, ...]] = ("solved", "doors", "alone")
    preconditions: ClassVar[tuple[str, ...]] = ()
    effects: ClassVar[tuple[str, ...]] = ()

    @property
    def agents(self) -> tuple[str, ...]:
        return NAMES[2 * self.first : 2 * (self.first + self.lanes)]

    @property
    def macros(self) -> tuple[type[IntEnum], ...]:
        return (Runner, Holder) * self.lanes

    def reset(self, key):
        del key
        zeros = jnp.zeros(2 * self.lanes, jnp.int32)
        return State(passed=zeros[: self.lanes], ready=zeros, left=zeros)

    def lucks(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all lucks of a tick (which agents do not slip) and their probabilities."""
        grips = np.array(list(itertools.product([False, True], repeat=2 * self.lanes)))
        return grips, np.where(grips, GRIP, 1 - GRIP).prod(1)

    def tick(self, key, state, macro, fresh, effect):
        del effect
        return self.move(jax.random.bernoulli(key, GRIP, macro.shape), state, macro, fresh)

    def move(self, luck, state, macro, fresh):
        """Run one tick in which the agents of `luck` [N] do not slip."""
        steps = jnp.repeat(jnp.asarray(STEPS)[self.first : self.first + self.lanes], 2)
        out = jnp.repeat(state.passed == DOORS, 2)
        runs, walks = macro == Runner.RUN, macro == Runner.WALK
        way = jnp.where((state.ready == 1) | out, 1, steps * jnp.where(runs, 1, 3))
        needed = jnp.where(runs | walks, way, jnp.maximum(jnp.asarray(OPENING)[macro], 1))
        slips = runs & ~luck & (state.ready == 0) & ~out
        left = jnp.where(fresh, needed, state.left) - ~slips
        opens = macro >= Runner.PASS_MAIN
        pair = [one.reshape(-1, 2) for one in (macro, left, state.ready)]
        together = (pair[0][:, 0] == pair[0][:, 1]) & (pair[1][:, 0] == pair[1][:, 1])
        together &= (pair[2].sum(1) == 2) & (state.passed < DOORS)
        alone = opens & ~jnp.repeat(together, 2)
        ended = (left <= 0) | alone
        through = (opens & ended & ~alone)[::2]
        passed = state.passed + through
        ready = jnp.where((runs | walks) & ended, 1, state.ready) * ~jnp.repeat(through, 2)
        done = (passed == DOORS).all()
        paid = jnp.where(passed == DOORS, self.exit, self.door) * through
        return Tick(
            state=State(passed=passed, ready=ready, left=left * ~ended),
            reward=jnp.full(macro.shape, paid.sum() - self.alone * alone.sum(), jnp.float32),
            ended=ended,
            terminal=done,
            events=jnp.stack([done, through.sum(), alone.sum()]).astype(jnp.float32),
            effective_macro=macro,
        )

    def check(self, state):
        del state
        return jnp.zeros(0, bool)

    def observe(self, state):
        doors = jnp.repeat(jnp.eye(DOORS + 1)[state.passed], 2, 0)
        partner = state.ready.reshape(-1, 2)[:, ::-1].reshape(-1)
        return jnp.concatenate([doors, jnp.stack([state.ready, partner], 1)], 1)

    def available(self, state):
        return jnp.ones((len(state.ready), len(Runner)), bool)

    def scene(self, state, macro):
        del macro
        sprites = []
        for lane in range(self.lanes):
            sprites += [Sprite(shape="wall", x=x, y=float(lane), width=0.2) for x in (2.0, 4.4)]
            here = 2.4 * int(state.passed[lane])
            for side in range(2):
                x = here + 0.5 * int(state.ready[2 * lane + side])
                name = self.agents[2 * lane + side]
                sprites.append(
                    Sprite(shape="robot", x=x + 0.4 * side, y=float(lane), width=0.6, label=name)
                )
        return Scene(width=6.4, height=self.lanes, sprites=tuple(sprites))


def best_choices(observation: Array, allowed: Array) -> Array:
    """Return what each agent chooses in a best policy: go, wait for the partner, open the door together.

    Args:
        observation: [N, O] what the agents see.
        allowed: [N, M] the macros that are not forbidden. What one of a lane may not do, the other does not either:
            running on would only mean to wait.
    """
    out, ready = observation[:, DOORS] > 0, observation[:, -2] > 0
    both = ready & (observation[:, -1] > 0)
    lane = jnp.repeat(allowed.reshape(-1, 2, len(Runner)).all(1), 2, 0)
    way = jnp.where(lane[:, Runner.RUN], Runner.RUN, Runner.WALK)
    door = jnp.where(lane[:, Runner.PASS_MAIN], Runner.PASS_MAIN, Runner.PASS_SIDE)
    here = jnp.where(both, door, Runner.WAIT)
    return jnp.where(out, Runner.WAIT, jnp.where(ready, here, way))


GAMMA = 0.98
BEST = Known(
    make=Doors,
    gamma=GAMMA,
    returns={
        None: 142.3228,
        "avoid-main-doors": 127.5483,
        "no-running": 123.1618,
        "runners-do-not-run": 123.1618,
        "lane-c-avoids-main-doors": 137.6891,
        "avoid-main-doors+no-running": 110.4604,
        "avoid-main-doors+runners-do-not-run": 110.4604,
        "avoid-main-doors+lane-c-avoids-main-doors": 127.5483,
        "no-running+runners-do-not-run": 123.1618,
        "no-running+lane-c-avoids-main-doors": 119.4015,
        "runners-do-not-run+lane-c-avoids-main-doors": 119.4015,
    },
)
register("doors", Doors, "doors.toml", title="Doors", gamma=GAMMA, optimum=BEST)
