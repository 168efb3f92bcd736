"""Teams of agents that obey interrupting instructions and still do their task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from mavic.envs.api import Env
    from mavic.experiments.policy_file import TeamPolicy

__version__ = "0.2.0"


def make(world: str, **options: Any) -> Env:
    """Return the environment of a world, such as `mavic.make("box_pushing", size=8)`. `mavic worlds` lists options."""
    from mavic.envs import api

    return api.make(world, **options)


def load_policy(path: str | Path) -> TeamPolicy:
    """Return a trained team: a shipped one by name, such as `box_pushing/mavic`, or one of your own by its file."""
    from mavic.experiments.policy_file import load

    return load(path)
