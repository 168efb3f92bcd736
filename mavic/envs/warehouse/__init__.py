"""Warehouse Tool Delivery: two Turtlebots and a Fetch robot bring tools to people at work.

- `env`, `state`: the environment and its state.
- `macros`: the macros of the robots, and the places in the room.
- `optimum`: the best plans and their returns.
- `presets`, `words`, `render`: hyper-parameters, names for people, the picture.
"""

from pathlib import Path

from mavic.envs.api import World
from mavic.envs.warehouse import optimum, words
from mavic.envs.warehouse.env import Warehouse
from mavic.envs.warehouse.presets import PRESETS
from mavic.envs.warehouse.state import State

WORLD = World.built_in(
    Path(__file__).parent,
    Warehouse,
    title="Warehouse",
    version=1,
    gamma=1.0,
    episodes=160_000,
    presets=PRESETS,
    optimum=optimum.best_return,
    job=words.JOB,
    examples=words.EXAMPLES,
    macro_words=words.MACRO_WORDS,
    macro_things=words.MACRO_THINGS,
    other_words=words.OTHER_WORDS,
    agent_words=words.ROBOTS,
    followed_means="the tool asked for came first and no other was looked for",
    reference_speed=(48_000, 1_400),
)

__all__ = ["WORLD", "State", "Warehouse"]
