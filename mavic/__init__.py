"""Teams of agents that obey interrupting instructions and still do their job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mavic.study.policy import TeamPolicy

__version__ = "0.1.0"


def load_policy(path: Any) -> TeamPolicy:
    """A trained team from its file: see `mavic.study.policy.TeamPolicy`."""
    from mavic.study.policy import load

    return load(path)
