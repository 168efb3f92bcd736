"""Box Pushing."""

from mavic.envs.box_pushing.env import BoxPushing, Robot, State
from mavic.envs.box_pushing.macros import Macro

__all__ = ["BoxPushing", "Macro", "Robot", "State"]
