"""Every old name that files may still hold and users may still type, and its present name.

Files are read in the present names (`in_present_names`). A user who types an old name is told the new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# All are names of version 0.1.
NUMBERS = {  # of a preset
    "actor_rate": "actor_lr",
    "critic_rate": "critic_lr",
    "rate_end": "final_lr_fraction",
    "critic_rate_end": "critic_final_lr_fraction",
    "trace": "td_lambda",
    "mild_advantage": "actor_hysteresis",
    "mild_error": "critic_hysteresis",
    "mild_end": "hysteresis_end",
    "mild_advantage_end": "actor_hysteresis_end",
    "balance": "balance_kinds",
    "centre": "center_advantages",
    "normalise": "normalize_advantages",
    "time_weight": "discount_actor_loss",
    "value_size": "value_scale",
    "fresh_size": "critic_init_scale",
    "popart": "popart_step",
    "alarm": "spurious_interrupt_prob",
    "quiet": "uninstructed_episode_prob",
    "lasting": "hold_to_end_prob",
    "target_episodes": "target_update_episodes",
    "adam_memory": "adam_b2",
    "clip": "max_grad_norm",
}
REMOVED_NUMBERS = {  # and the only value that files may hold
    "through_mixture": True,
    "word_rate": 1.0,
}
WORLD_OPTIONS = {"rules": "dynamics"}
FIELDS = {"cell": "config"}  # of records and of policies' descriptions
COMMAND_OPTIONS = {
    "train": {
        "--settings": "--conditions",
        **{f"--{old}": f"--{new}".replace("_", "-") for old, new in NUMBERS.items()},
    },
    "evaluate": {"--setting": "--condition"},
}
COMMANDS = {("report", "words"): "words --report"}


def in_present_names(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the values with the old names of a table replaced. The order stays."""
    return {names.get(name, name): value for name, value in values.items()}


def complaints(args: Sequence[str]) -> Iterator[str]:
    """Yield a line for each old name in the arguments of a command line."""
    for command, present in COMMANDS.items():
        if tuple(args[: len(command)]) == command:
            yield f"mavic {' '.join(command)} is now mavic {present}"
    options = COMMAND_OPTIONS.get(args[0], {}) if args else {}
    for arg in args[1:]:
        name = arg.partition("=")[0]
        dashes, word = name[:2], name[2:]
        if new := options.get(dashes + word.replace("-", "_")):
            yield f"{name} is now {new}"
