"""Methods as rows of a table, and presets as the learner's arrays."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from mavic.envs import api
from mavic.hints import look_up
from mavic.learn import backbones, networks
from mavic.learn.networks import Shape
from mavic.learn.update import HyperParams, StaticConfig
from mavic.preset import GENERAL, Preset, changed
from mavic.types import CONTEXTS


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method: the instructions of its training, and the correction of targets where the instruction changes."""

    instructions: str  # none | interrupt | per_episode
    correction: str  # none | shift | cut
    random: bool = False  # plays random macros in evaluation, as a baseline without learning
    judged: bool = False  # an agent from elsewhere that was only evaluated (`mavic.judge`)
    about: str = ""  # what a visitor of a page should know of it, in a sentence

    @property
    def hears(self) -> bool:
        """Return whether it hears instructions. Methods that do not hear any comply only by chance."""
        return self.instructions != "none"


JUDGED = "judged-"  # begins the names of agents from elsewhere


class _Methods(dict[str, Method]):
    """The rows, and a row for every name that begins with JUDGED, so that records of judged agents can be read."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and name.startswith(JUDGED))

    def __missing__(self, name: str) -> Method:
        if name in self:
            return Method(instructions="interrupt", correction="none", judged=True)
        raise KeyError(name)


METHODS: dict[str, Method] = _Methods()
METHODS |= {
    "vanilla": Method(
        instructions="none",
        correction="none",
        about="It never heard an instruction in its training, and hears none here.",
    ),
    "naive": Method(
        instructions="interrupt",
        correction="none",
        about="It learnt from the same instructions, but they bias its values of the task itself.",
    ),
    "switch": Method(
        instructions="per_episode",
        correction="none",
        about="In its training an instruction held for a whole episode.",
    ),
    "mavic": Method(
        instructions="interrupt",
        correction="cut",
        about="It learnt from the same instructions, and its values are corrected at each change.",
    ),
    "mavic-shift": Method(
        instructions="interrupt",
        correction="shift",
        about="It is MAVIC with the other correction of the paper, the shift.",
    ),
    "random": Method(instructions="none", correction="none", random=True),
}


def preset_of(name: str, world: str, backbone: str = "mac-iac", **changes: Any) -> Preset:
    """Return a world's preset with some numbers changed. A world without presets gets the general ones.

    The general ones take gamma and the number of episodes from the world, if it names them. A preset may have numbers
    of its own for a backbone, under the name preset/backbone. Otherwise the numbers that belong to the backbone's
    algorithm replace those of the preset. If `episodes` changes, those of `FOLLOW_EPISODES` change in proportion.
    """
    record = api.world(world)
    presets = record.presets
    numbers = look_up(backbones.BACKBONES, backbone, "backbone").numbers
    preset = presets.get(f"{name}/{backbone}")
    if preset is None:
        own = {n: p for n, p in presets.items() if "/" not in n}
        preset = look_up({**GENERAL, **own}, name, "preset")
        preset = preset if name in own else _with_facts(preset, record)
        preset = dataclasses.replace(preset, **numbers)
    return changed(preset, changes)


def _with_facts(general: Preset, world: api.World) -> Preset:
    """Return general numbers with a world's own gamma and number of episodes, if it names them."""
    facts = {"gamma": world.gamma, "episodes": world.episodes}
    return changed(general, {name: fact for name, fact in facts.items() if fact is not None})


def static_config_of(
    preset: Preset,
    network: str,
    backbone: str = "mac-iac",
    *,
    observation: int,
    macro_counts: tuple[int, ...],
    embedding: int,
    kinds: int,
    hear: str = "vectors",
) -> StaticConfig:
    """Return the static part of a training, from a preset, a network, a backbone and the sizes of a task."""
    shape = Shape(
        observation=observation,
        macros=max(macro_counts),
        agents=len(macro_counts),
        embedding=embedding,
        hidden=preset.hidden,
        projected=preset.hidden,
        last_macro=preset.last_macro,
        macro_counts=macro_counts,
        kind_heads=preset.kind_heads and hear == "kinds",
        **look_up(networks.NETWORKS, network, "network"),
    )
    actor, critic = backbones.networks_of(backbone, shape)
    return StaticConfig(
        network=actor,
        critic_network=critic,
        backbone=backbone,
        n_steps=math.inf if preset.n_steps is None else preset.n_steps,
        batch=preset.batch,
        kinds=kinds,
        drop_unfinished=preset.drop_unfinished,
        target_network=preset.target_network,
        baseline=preset.baseline,
        passes=preset.passes,
        first_to_finish=preset.first_to_finish,
        allowed_loss=any(preset.allowed_loss),
    )


def hyperparams_of(preset: Preset) -> HyperParams:
    """Return the preset's numbers as arrays. Numbers that are None are filled in."""
    own = dataclasses.asdict(preset)
    own |= {
        "value_scale": preset.value_scale or 0.0,
        "critic_init_scale": preset.value_scale or 0.0
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
