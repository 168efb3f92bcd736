"""How methods and networks appear in tables and figures, and in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mavic.envs import api
from mavic.envs.painting import PALETTE
from mavic.experiment.config import ExperimentConfig
from mavic.learn.backbones import BACKBONES

BASELINE = "vanilla"
"""The method that others are compared with: it is trained without instructions."""
DUAL = ("naive", "protected")
"""D17: the naive method on the protected network is the paper's ablation, called dual."""
SHIELDED = ("mavic", "vanilla")
"""The methods that also have a row with the shield: forbidden macros were unavailable."""
HEARS_NOTHING = "(hears nothing)"
MISSING = "—"


@dataclass(frozen=True)
class Look:
    """The label, colour and line style of a method."""

    label: str
    colour: str
    dash: str | tuple = "-"


LOOKS = {  # in the order of tables; hues of Okabe and Ito, each with its own line style
    "mavic": Look("MAVIC", PALETTE["blue"]),
    "mavic-shift": Look("MAVIC-shift", PALETTE["sky"], (0, (5, 1))),
    "switch": Look("switch", PALETTE["green"], (0, (3, 1, 1, 1))),
    "naive": Look("naive", PALETTE["red"], (0, (1, 1))),
    "vanilla": Look("vanilla", PALETTE["slate"], (0, (6, 2))),
    "random": Look("random", PALETTE["grey"], (0, (1, 3))),
}
DUAL_LOOK = Look("dual", PALETTE["orange"], (0, (4, 1, 1, 1, 1, 1)))  # beside naive in one panel
ORDER = {  # rows are sorted by the first axis, then by the next; the first values make up the headline table
    "preset": ("default", "tuned", "paper-tuned", "paper"),
    "rule": ("by-kind", "add"),
    "schedule": ("live", "paper"),
    "backbone": tuple(BACKBONES),
    "network": ("residual", "protected", "shared"),
    "hear": ("kinds", "vectors"),
    "method": tuple(LOOKS),
}


def look(method: str) -> Look:
    """Return a method's look. Methods that LOOKS does not list appear under their names, in purple and dotted."""
    return LOOKS.get(method, Look(method, PALETTE["purple"], ":"))


def label(config: ExperimentConfig, shield: bool = False) -> str:
    """Return the name of a config's method in tables.

    Args:
        config: The configuration.
        shield: Whether the team was evaluated with the shield, which the name then says.
    """
    if is_dual(config):
        return f"dual ({config.method}, {config.network})"
    return look(config.method).label + (" + shield" if shield else "")


def is_dual(config: ExperimentConfig) -> bool:
    """Return whether a config is the paper's ablation. In worlds that the paper does not have, it is called naive."""
    in_paper = bool(api.known(config.world).paper)
    return in_paper and (config.method, config.network) == DUAL


def rank(config: ExperimentConfig) -> tuple[Any, ...]:
    """Return the key by which rows are sorted. Values that ORDER does not list come last, by name."""

    def place(value: str, order: tuple[str, ...]) -> tuple[int, str]:
        return (order.index(value) if value in order else len(order), value)

    preset, *rest = (place(getattr(config, name), order) for name, order in ORDER.items())
    return (preset, config.extras, config.overlap, *rest)
