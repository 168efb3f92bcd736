"""Overcooked."""

from mavic.envs.overcooked.env import Overcooked
from mavic.envs.overcooked.macros import PattyMacro, SaladMacro, SaladPassMacro
from mavic.envs.overcooked.state import State

__all__ = ["Overcooked", "PattyMacro", "SaladMacro", "SaladPassMacro", "State"]
