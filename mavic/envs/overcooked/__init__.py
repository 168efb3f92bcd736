"""Overcooked: cooks prepare, plate and deliver a dish.

- `env`, `state`: the environment and its state.
- `macros`: the macros of the cooks.
- `kitchen`, `grid`: the maps and their geometry.
- `controllers`, `pathfinding`, `memory`, `scripted_cook`: from macros to one-tick moves, by what the cooks remember.
- `interactions`, `observation`: what a move does, and what the cooks see.
- `optimum`: the best plans and their returns.
- `presets`, `words`, `render`: hyper-parameters, names for people, the picture.
"""

from pathlib import Path

from mavic.envs.api import World
from mavic.envs.overcooked import optimum, words
from mavic.envs.overcooked.env import Overcooked
from mavic.envs.overcooked.macros import PattyMacro, SaladMacro, SaladPassMacro
from mavic.envs.overcooked.presets import PRESETS
from mavic.envs.overcooked.state import State

WORLD = World.built_in(
    Path(__file__).parent,
    Overcooked,
    title="Overcooked",
    version=1,
    gamma=0.992,
    episodes=160_000,
    presets=PRESETS,
    optimum=optimum.best_return,
    job=words.JOB,
    examples=words.EXAMPLES,
    macro_words=words.MACRO_WORDS,
    macro_things=words.MACRO_THINGS,
    other_words=words.OTHER_WORDS,
    agent_words=words.COOKS,
    opens_first=True,
    impossible_together=(  # one board, one oven and one plate are needed
        ("avoid-right-board", "avoid-left-board"),
        ("avoid-plate-1", "avoid-plate-2"),
        ("avoid-left-oven", "avoid-right-oven"),
    ),
    reference_speed=(10_000, 1_400),
    guest={"cooks": 3, "third_cook": False},
)

__all__ = ["WORLD", "Overcooked", "PattyMacro", "SaladMacro", "SaladPassMacro", "State"]
