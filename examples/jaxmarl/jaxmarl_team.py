"""JaxMARL's Overcooked (`pip install jaxmarl`) as a world: two cooks in two rooms share two pots.

World and macros are one compiled program. In the layout "asymmetric advantages" one cook is near the place to serve,
the other near the onions. Three onions make a soup; a soup that is served earns 20.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxmarl.environments.overcooked import Overcooked, overcooked_layouts

from mavic.envs.api import register
from mavic.simulators.compiled import MEMORY, Controller, Step, Timeout, Wait, macro_env
from mavic.simulators.controllers import Status
from mavic.simulators.grids import ways_beside
from mavic.types import Scene, Sprite, record

STAY, INTERACT = 4, 5
MOVES = jnp.array([0, 2, 1, 3])  # the actions that go, or turn, north, east, south and west
NOTHING, ONION, PLATE, SOUP = HELD = jnp.array([1, 3, 5, 9])
FULL = 20  # a pot counts down: from 23 by one for each onion, then from 20 to 0 while it cooks
LAYOUT = overcooked_layouts["asymm_advantages"]
KITCHEN = Overcooked(LAYOUT, max_steps=1_000_000)  # the horizon cuts episodes, not JaxMARL
WIDTH, HEIGHT = LAYOUT["width"], LAYOUT["height"]
FLOOR = ~np.isin(np.arange(WIDTH * HEIGHT), LAYOUT["wall_idx"]).reshape(HEIGHT, WIDTH)


def places(what):
    """The cells of a thing, from north to south."""
    return [divmod(int(index), WIDTH) for index in np.sort(LAYOUT[f"{what}_idx"])]


TOP, LOWER = places("pot")


def pot(state, place):
    return state.maze_map[4 + place[0], 4 + place[1], 2].astype(jnp.int32)


def holds(state, cook, thing):
    return state.agent_inv[cook] == thing


def wants_onion(state, cook):
    room = sum(jnp.maximum(pot(state, place) - FULL, 0) for place in (TOP, LOWER))
    return holds(state, cook, NOTHING) & (room > holds(state, 1 - cook, ONION))


def wants_plate(state, cook):
    soups = sum((pot(state, place) <= FULL).astype(int) for place in (TOP, LOWER))
    return holds(state, cook, NOTHING) & (soups > holds(state, 1 - cook, PLATE))


def wants_pot(place):
    def can(state, cook):
        room = pot(state, place) > FULL
        return (holds(state, cook, ONION) & room) | (holds(state, cook, PLATE) & ~room)

    return can


class Use(Controller):
    """Go to a counter, face it, and interact until the cook holds something else."""

    def __init__(self, counters, can):
        self.can_start = can
        self.way, self.there = (jnp.asarray(table) for table in ways_beside(FLOOR, counters))

    def begin(self, state, agent):
        return jnp.zeros(MEMORY, jnp.int32).at[0].set(state.agent_inv[agent])

    def act(self, state, agent, memory):
        column, row = state.agent_pos[agent]
        action = MOVES[self.way[row, column]]
        faces = self.there[row, column] & (state.agent_dir_idx[agent] == action)
        return jnp.where(faces, INTERACT, action), memory

    def status(self, state, agent, memory):
        goes_on = jnp.where(self.can_start(state, agent), Status.RUNNING, Status.FAILED)
        return jnp.where(holds(state, agent, memory[0]), goes_on, Status.ENDED)


MACROS = {
    "ONION": Use(places("onion_pile"), wants_onion),
    "PLATE": Use(places("plate_pile"), wants_plate),
    "TOP_POT": Timeout(Use([TOP], wants_pot(TOP)), 40),
    "LOWER_POT": Timeout(Use([LOWER], wants_pot(LOWER)), 40),
    "SERVE": Use(places("goal"), lambda state, cook: holds(state, cook, SOUP)),
    "WAIT": Wait(STAY, 3),
}


@record
class Kitchen:
    """The environment with primitive actions. Both cooks are paid for every soup."""

    name: ClassVar[str] = "jaxmarl"
    agents: ClassVar[tuple[str, ...]] = ("cook_1", "cook_2")
    horizon: ClassVar[int] = 200
    events: ClassVar[tuple[str, ...]] = ("solved", "served")

    def reset(self, key):
        return KITCHEN.reset(key)[1]

    def step(self, key, state, action) -> Step:
        both = dict(zip(KITCHEN.agents, action, strict=True))
        _, after, reward, _, _ = KITCHEN.step_env(key, state, both)
        events = jnp.stack([0.0, reward["agent_0"] / 20])
        reward = jnp.stack([reward["agent_0"], reward["agent_1"]])
        return Step(state=after, reward=reward, terminal=jnp.bool_(False), events=events)

    def observe(self, state):
        """Where both cooks are and look, what they hold, and both pots."""
        cooks = [state.agent_pos / 8, jax.nn.one_hot(state.agent_dir_idx, 4)]
        cooks = jnp.concatenate([*cooks, state.agent_inv[:, None] == HELD], 1)
        pots = jnp.stack([pot(state, place) / 23 for place in (TOP, LOWER)])
        soups = jnp.stack([pot(state, p) <= most for p in (TOP, LOWER) for most in (FULL, 0)])
        seen = jnp.concatenate([pots, soups])
        return jnp.stack([jnp.concatenate([cooks[i], cooks[1 - i], seen]) for i in range(2)])

    def scene(self, state, macro) -> Scene:
        colours = dict(onion_pile="sand", plate_pile="white", goal="green", pot="red")
        things = [Sprite(shape="counter", x=int(x), y=int(y)) for y, x in np.argwhere(~FLOOR)]
        for what, colour in colours.items():
            for y, x in places(what):
                things.append(Sprite(shape="station", x=x, y=y, colour=colour, name=what))
        for i, (x, y) in enumerate(state.agent_pos):
            place = dict(x=int(x), y=int(y), label=str(i + 1), name=f"cook {i + 1}")
            things.append(Sprite(shape="robot", colour="blue", **place))
        return Scene(width=WIDTH, height=HEIGHT, sprites=tuple(things))


def make():
    return macro_env(Kitchen(), MACROS)


register("jaxmarl", make, "jaxmarl_team.toml", title="JaxMARL's Overcooked", episodes=40_000)
