"""Methods and networks as rows of tables, and presets as the learner's arrays."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from mavic.envs import api
from mavic.hints import look_up
from mavic.learn import gru, networks
from mavic.learn.networks import Shape
from mavic.learn.update import HyperParams, StaticConfig
from mavic.preset import GENERAL, Preset
from mavic.types import CONTEXTS


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method: the instructions of its training, and the correction of targets where the instruction changes."""

    instructions: str  # none | interrupt | per_episode
    correction: str  # none | shift | cut
    random: bool = False  # plays random macros in evaluation, as a baseline without learning

    @property
    def hears(self) -> bool:
        """Return whether it hears instructions. Methods that do not hear any comply only by chance."""
        return self.instructions != "none"


METHODS = {
    "vanilla": Method(instructions="none", correction="none"),
    "naive": Method(instructions="interrupt", correction="none"),
    "switch": Method(instructions="per_episode", correction="none"),
    "mavic": Method(instructions="interrupt", correction="cut"),
    "mavic-shift": Method(instructions="interrupt", correction="shift"),
    "random": Method(instructions="none", correction="none", random=True),
}
NETWORKS = tuple(networks.NETWORKS)
RULES = ("by-kind", "add")


def preset_of(name: str, world: str, **changes: Any) -> Preset:
    """Return a world's preset with some numbers changed. A world without presets gets the general ones.

    If `episodes` changes, `epsilon_episodes` and `entropy_episodes` change in proportion.
    """
    preset = api.world(world).presets.get(name) or look_up(GENERAL, name, "preset")
    share = changes.get("episodes", preset.episodes) / preset.episodes
    along = {
        k: max(1, round(getattr(preset, k) * share))
        for k in ("epsilon_episodes", "entropy_episodes")
    }
    return dataclasses.replace(preset, **{**along, **changes})


def static_config_of(
    preset: Preset,
    network: str,
    *,
    observation: int,
    macros: int,
    agents: int,
    embedding: int,
    kinds: int,
    hear: str = "vectors",
) -> StaticConfig:
    """Return the static part of a training, from a preset, a network's name and the sizes of a task."""
    return StaticConfig(
        network=gru.network(
            Shape(
                observation=observation,
                macros=macros,
                agents=agents,
                embedding=embedding,
                hidden=preset.hidden,
                projected=preset.hidden,
                last_macro=preset.last_macro,
                kind_heads=preset.kind_heads and hear == "kinds",
                **look_up(networks.NETWORKS, network, "network"),
            )
        ),
        n_steps=math.inf if preset.n_steps is None else preset.n_steps,
        batch=preset.batch,
        kinds=kinds,
        drop_unfinished=preset.drop_unfinished,
        target_network=preset.target_network,
        allowed_loss=any(preset.allowed_loss),
    )


def hyperparams_of(preset: Preset) -> HyperParams:
    """Return the preset's numbers as arrays. Numbers that are None are filled in."""
    own = dataclasses.asdict(preset)
    own |= {
        "critic_init_scale": preset.value_scale
        if preset.critic_init_scale is None
        else preset.critic_init_scale,
        "critic_hysteresis_end": preset.hysteresis_end or preset.critic_hysteresis,
        "actor_hysteresis_end": preset.actor_hysteresis_end
        or preset.hysteresis_end
        or preset.actor_hysteresis,
        "critic_final_lr_fraction": preset.final_lr_fraction
        if preset.critic_final_lr_fraction is None
        else preset.critic_final_lr_fraction,
    }
    leaves: dict[str, Any] = {
        f.name: np.asarray(_widened(own[f.name]), np.float32)
        for f in dataclasses.fields(HyperParams)
    }
    leaves["target_update_episodes"] = np.int32(preset.target_update_episodes)
    return HyperParams(**{name: jnp.asarray(leaf) for name, leaf in leaves.items()})


def _widened(number: Any) -> Any:
    """Return a number as it is, and numbers by context as one for each context."""
    if not isinstance(number, tuple):
        return number
    return (*number, *number[-1:] * (CONTEXTS - len(number)))
