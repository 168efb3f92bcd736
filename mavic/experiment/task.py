"""Task: a world's environment, its instruction file and its phrases, as a training needs them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from mavic.envs import api
from mavic.experiment.axes import DEFAULT_BACKBONE
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import static_config_of
from mavic.instruct.spec import InstructionFile
from mavic.language import heard
from mavic.language.lexicon import Lexicon
from mavic.learn.update import StaticConfig
from mavic.preset import Preset
from mavic.types import Array


@dataclass(frozen=True, kw_only=True)
class Task:
    """A world's environment, its instruction file, its phrases, and what agents hear of them."""

    env: api.Env
    lexicon: Lexicon
    file: InstructionFile
    hear: str = "vectors"

    @functools.cached_property
    def vectors(self) -> Array:
        """What agents hear of each phrase of the lexicon, [P, D]."""
        return heard.phrases_heard(self.lexicon, self.hear)

    @functools.cached_property
    def observation_size(self) -> int:
        """The size of one agent's observation."""
        seen = jax.eval_shape(lambda k: self.env.observe(self.env.reset(k)), jax.random.key(0))
        return seen.shape[-1]

    def static_config(
        self, preset: Preset, network: str, backbone: str = DEFAULT_BACKBONE
    ) -> StaticConfig:
        """Return the static part of a training on this task."""
        return static_config_of(
            preset,
            network,
            backbone,
            observation=self.observation_size,
            macro_counts=tuple(len(macros) for macros in self.env.macros),
            embedding=self.vectors.shape[1],
            kinds=len(self.file.kinds) + 1,
            hear=self.hear,
        )


def instructions_of(world: str) -> Path:
    """Return the instruction file of a world that is built in or registered."""
    path = api.world(world).instructions
    if path is None:
        raise ValueError(
            f"world {world!r} has no instruction file; register it with one: "
            f'register({world!r}, …, instructions="my.toml")'
        )
    return path


def task_of(config: ExperimentConfig, /, **options: Any) -> Task:
    """Return the task of a configuration. `options` change those of its environment."""
    env = api.make(config.world, **{**config.options, **options})
    file = InstructionFile.read(instructions_of(config.world))
    lexicon = Lexicon.make(file, config.encoder)
    return Task(env=env, lexicon=lexicon, file=file, hear=config.hear)
