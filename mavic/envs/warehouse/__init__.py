"""Warehouse Tool Delivery: two Turtlebots and a Fetch robot bring tools to people at work."""

from pathlib import Path

from mavic.envs.api import built_in
from mavic.envs.warehouse import optimum, words
from mavic.envs.warehouse.env import State, Warehouse
from mavic.envs.warehouse.presets import PRESETS

WORLD = built_in(
    Path(__file__).parent,
    Warehouse,
    title="Warehouse",
    presets=PRESETS,
    optimum=optimum.best_return,
    job=words.JOB,
    examples=words.EXAMPLES,
    macro_words=words.MACRO_WORDS,
    macro_things=words.MACRO_THINGS,
    followed_means="the tool asked for came first and no other was looked for",
    reference_speed=(48_000, 1_400),
)

__all__ = ["WORLD", "State", "Warehouse"]
