"""Box Pushing: two robots, two small boxes, and a big box that moves only if both robots push it.

- `env`, `state`: the environment and its state.
- `macros`: the macros of a robot.
- `optimum`: the best plans and their returns.
- `presets`, `words`, `render`: hyper-parameters, names for people, the picture.
"""

from pathlib import Path

from mavic.envs.api import World
from mavic.envs.box_pushing import optimum, words
from mavic.envs.box_pushing.env import BoxPushing
from mavic.envs.box_pushing.macros import Macro
from mavic.envs.box_pushing.presets import PRESETS
from mavic.envs.box_pushing.state import Robot, State

WORLD = World.built_in(
    Path(__file__).parent,
    BoxPushing,
    title="Box Pushing",
    version=1,
    gamma=0.995,
    episodes=96_000,
    presets=PRESETS,
    # D12: a solved episode lasts 6 ticks, so one instruction per episode needs a higher rate.
    schedules={"paper": {"rate": 0.05}},
    optimum=optimum.best_return,
    job=words.JOB,
    examples=words.EXAMPLES,
    macro_words=words.MACRO_WORDS,
    macro_things=words.MACRO_THINGS,
    other_words=words.OTHER_WORDS,
    agent_words=words.ROBOTS,
    reference_speed=(49_000, 1_400),
)

__all__ = ["WORLD", "BoxPushing", "Macro", "Robot", "State"]
