"""Teams of agents that obey interrupting instructions and still do their job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mavic.experiments.policy_file import TeamPolicy

__version__ = "0.2.0"


def load_policy(path: Any) -> TeamPolicy:
    """A trained team from its file: see `mavic.experiments.policy_file.TeamPolicy`."""
    from mavic.experiments.policy_file import load

    return load(path)
