"""Jumanji's Level-Based Foraging (`pip install jumanji`) as a world: two agents must load each food together.

Jumanji's environment is JAX, so world and macros are one compiled program. Macros: go to a food, load, wait.
"""

from functools import partial
from typing import Any, ClassVar

import jax.numpy as jnp
from jumanji.environments import LevelBasedForaging

from mavic.envs.api import register
from mavic.simulators.compiled import GoTo, Grid, Step, Timeout, Wait, macro_env
from mavic.types import Scene, Sprite, record

NOOP, UP, DOWN, LEFT, RIGHT, LOAD = range(6)
AROUND = jnp.array([[-1, 0], [0, 1], [1, 0], [0, -1]])
SIZE, FOODS, FAR = 8, 2, 1000
FOREST = LevelBasedForaging(time_limit=10_000)  # the horizon cuts episodes, not Jumanji


@record
class Foraging:
    """The environment with primitive actions. Everybody is paid for every food."""

    name: ClassVar[str] = "foraging"
    agents: ClassVar[tuple[str, ...]] = ("agent_1", "agent_2")
    horizon: ClassVar[int] = 50
    events: ClassVar[tuple[str, ...]] = ("solved", "loaded")

    def reset(self, key) -> Any:
        return FOREST.reset(key)[0]

    def step(self, key, state, action) -> Step:
        after, timestep = FOREST.step(state, action)
        eaten = after.food_items.eaten
        loaded = (eaten & ~state.food_items.eaten).sum()
        events = jnp.stack([eaten.all(), loaded]).astype(jnp.float32)
        reward = jnp.full(2, 10 * timestep.reward.sum() - 0.05)
        return Step(state=after, reward=reward, terminal=eaten.all(), events=events)

    def observe(self, state):
        """Where everything is from where the agent stands, and which food is left."""
        here = state.agents.position
        food, left = state.food_items.position, ~state.food_items.eaten
        to_food = (food[None] - here[:, None]).reshape(2, -1) / SIZE
        left = jnp.broadcast_to(left[None].astype(jnp.float32), (2, FOODS))
        return jnp.concatenate([here / SIZE, to_food, left, (here[::-1] - here) / SIZE], 1)

    def scene(self, state, macro) -> Scene:
        things = [Sprite(shape="zone", x=0, y=0, width=SIZE, height=SIZE, colour="white")]
        for i, (row, column) in enumerate(state.food_items.position):
            if not bool(state.food_items.eaten[i]):
                place = dict(x=int(column), y=int(row), label=str(i + 1), name=f"food {i + 1}")
                things.append(Sprite(shape="food", colour="red", **place))
        for i, (row, column) in enumerate(state.agents.position):
            place = dict(x=int(column), y=int(row), label=str(i + 1), name=f"agent {i + 1}")
            things.append(Sprite(shape="robot", colour="blue", **place))
        return Scene(width=SIZE, height=SIZE, sprites=tuple(things))


def cells_of(places, there):
    """bool [SIZE, SIZE]: the cells of those places that are there."""
    rows, columns = jnp.arange(SIZE)[:, None, None], jnp.arange(SIZE)[None, :, None]
    at = (rows == places[:, 0][None, None]) & (columns == places[:, 1][None, None])
    return (at & there[None, None]).any(-1)


def free(state, agent):
    return ~cells_of(state.food_items.position, ~state.food_items.eaten)


def taken(state, agent):
    return cells_of(state.agents.position, jnp.arange(2) != agent)


def beside(state, agent, food):
    """The nearest cell beside a food that nobody else takes; negative if the food is gone or there is none."""
    cells = state.food_items.position[food][None] + AROUND
    inside = ((cells >= 0) & (cells < SIZE)).all(1)
    row, column = jnp.clip(cells, 0, SIZE - 1).T
    usable = inside & (free(state, agent) & ~taken(state, agent))[row, column]
    far = jnp.abs(cells - state.agents.position[agent][None]).sum(1)
    far = jnp.where(usable & ~state.food_items.eaten[food], far, FAR)
    return jnp.where(far.min() < FAR, cells[far.argmin()], -1)


def position(state, agent):
    return state.agents.position[agent]


GRID = Grid(position=position, free=free, taken=taken, stay=NOOP, moves=(UP, RIGHT, DOWN, LEFT))
GO = {f"GO_{i + 1}": Timeout(GoTo(GRID, partial(beside, food=i)), 20) for i in range(FOODS)}
MACROS = GO | {"LOAD": Wait(LOAD, 2), "WAIT": Wait(NOOP, 2)}


def make():
    return macro_env(Foraging(), MACROS)


register("foraging", make, "foraging_team.toml", title="Level-Based Foraging", episodes=40_000)
