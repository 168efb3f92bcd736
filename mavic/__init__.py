"""Teams of agents that obey interrupting instructions and still do their task."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from mavic.experiments.policy_file import TeamPolicy

__version__ = "0.2.0"


def load_policy(path: str | Path) -> TeamPolicy:
    """Return a trained team from its policy file, such as `policies/box_pushing/mavic`."""
    from mavic.experiments.policy_file import load

    return load(path)
