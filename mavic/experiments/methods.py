"""What can be compared: methods, networks, schedules and presets, as rows of tables."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from mavic.envs import api
from mavic.hints import look_up
from mavic.learn import networks
from mavic.learn.networks import Shape
from mavic.learn.update import HyperParams, StaticConfig
from mavic.preset import GENERAL, Preset


@dataclass(frozen=True, kw_only=True)
class Method:
    """What is optimised: which data, and what happens to values at an instruction boundary."""

    instructions: str  # none | interrupt | per_episode
    correction: str  # none | shift | cut
    random: bool = False  # judged with random macros: a yardstick, nothing of it is learnt

    @property
    def hears(self) -> bool:
        """Whether the team hears instructions, in training and when it is evaluated."""
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


def preset_of(name: str, world: str, **changes) -> Preset:
    """A preset's numbers for a world, some of them changed. With another number of `episodes`, what is counted in
    episodes (exploration, entropy) stretches or shrinks along. A world without a row gets a row for any."""
    preset = api.world(world).presets.get(name) or look_up(GENERAL, name, "preset")
    changes = {k: v for k, v in changes.items() if v is not None}
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
) -> StaticConfig:
    """What shapes the compiled program."""
    return StaticConfig(
        shape=Shape(
            observation=observation,
            macros=macros,
            agents=agents,
            embedding=embedding,
            hidden=preset.hidden,
            projected=preset.hidden,
            last_macro=preset.last_macro,
            **look_up(networks.NETWORKS, network, "network"),
        ),
        n_steps=math.inf if preset.n_steps is None else preset.n_steps,
        batch=preset.batch,
        kinds=kinds,
        drop_unfinished=preset.drop_unfinished,
        target_network=preset.target_network,
    )


def hyperparams_of(preset: Preset) -> HyperParams:
    """The numbers that can be vmapped over: a preset's own, by name."""
    own = dataclasses.asdict(preset)
    own |= {
        "popart_beta": preset.popart_step,
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
        f.name: np.asarray(own[f.name], np.float32) for f in dataclasses.fields(HyperParams)
    }
    leaves["target_update_episodes"] = np.int32(preset.target_update_episodes)
    return HyperParams(**{name: jnp.asarray(leaf) for name, leaf in leaves.items()})
