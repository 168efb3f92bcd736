"""The page of presets: every number of every preset, as tables of at most six columns."""

from __future__ import annotations

import dataclasses
from typing import Any

from mavic.envs import api
from mavic.experiment.methods import preset_of
from mavic.preset import Preset
from tools.guide import table

SHOWN = ("default", "tuned", "paper-tuned", "paper", "reference")


def page() -> str:
    """Return the page in Markdown."""
    parts = [
        "# Presets\n\n`mavic train WORLD --preset NAME`; every number is an option too, such as `--n-steps 5`. "
        "[Methods](methods.md) says which preset is for what. Two or three numbers belong to contexts: no "
        "instruction, an instruction beside the task, an instruction instead of the task. `None` is the word for "
        "off, or for Monte Carlo in `n_steps`.\n"
    ]
    for world in api.BUILT_IN:
        presets = [dataclasses.asdict(preset_of(name, world)) for name in SHOWN]
        lines = [
            [f"`{field.name}`", *(_written(preset[field.name]) for preset in presets)]
            for field in dataclasses.fields(Preset)
        ]
        parts += [f"## {api.world(world).title}\n", table(["number", *SHOWN], lines)]
    return "\n".join(parts)


def _written(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(map(_written, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
