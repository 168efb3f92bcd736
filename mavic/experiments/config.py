"""One experiment configuration (what is trained and evaluated), and the task that it trains on.

Several configurations with the same network and preset run in one compiled program (`mavic.experiments.groups`).
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import jax

from mavic import ranges, renamed
from mavic.envs import api
from mavic.experiments import conditions
from mavic.experiments.methods import METHODS, static_config_of
from mavic.hints import look_up, suggest
from mavic.instruct import spec
from mavic.instruct.schedule import Ticks
from mavic.instruct.spec import InstructionFile
from mavic.language import encoder as encoders
from mavic.language import heard
from mavic.language import lexicon as lexicons
from mavic.language.heard import HEARINGS
from mavic.language.lexicon import Lexicon
from mavic.learn.backbones import BACKBONES
from mavic.learn.networks import NETWORKS
from mavic.learn.update import StaticConfig
from mavic.preset import Preset
from mavic.ranges import NotNegative, Share, Some
from mavic.types import Array

DEFAULT_BACKBONE = "mac-iac"
BY_PRESET = {  # what a configuration takes if it does not say; presets of one's own are as tuned
    "tuned": {"network": "residual", "hear": "kinds"},
    "paper": {"network": "protected", "hear": "vectors"},
    "reference": {"network": "protected", "hear": "vectors"},
}
OLD_FIELDS = {"network": "protected", "hear": "vectors"}  # of files that do not say
# The parts of a condition that people may ask for. `mavic.instruct` has further schedules, for methods.
CONDITION_SCHEDULES = ("live", "paper")
CONDITION_RULES = ("by-kind", "add")  # what an instruction file says, or `add` for every kind


@dataclass(frozen=True, kw_only=True)
class ExperimentConfig:
    """One experiment: a method in a world under a condition, with a network and a preset."""

    world: str = "box_pushing"
    """Which world: see `mavic worlds`."""
    method: str = "mavic"
    """vanilla, naive, switch, mavic, mavic-shift, or random (random macros, for comparison)."""
    network: str = ""
    """shared (the paper's), protected (separate parts for instructed and uninstructed decisions) or residual
    (protected, and the instructed actor adds to the logits of the uninstructed one). Empty: by the preset."""
    backbone: str = "mac-iac"
    """mac-iac (the paper's), mac-cac, mac-naive-iacc, mac-iaicc or acac: who has which actor and critic."""
    hear: str = ""
    """What agents hear: kinds (what was understood: the probability of each kind) or vectors (a sentence's vector, the
    paper's way). Empty: by the preset."""
    encoder: str = encoders.DEFAULT
    """The frozen encoder of agents that hear vectors: minilm-l3, minilm-l6, path:DIR, hf:NAME, or one of your own."""
    preset: str = "tuned"
    """The learner's numbers: tuned, paper (the paper's table) or reference (the commands of the reference code)."""
    schedule: str = "live"
    """When instructions come: live (they come and go) or paper (at most one per episode, held to its end)."""
    rule: str = "by-kind"
    """What instructions pay: by-kind (as the instruction file says) or add (a penalty for every kind, the paper's)."""
    overlap: bool = False
    """A new instruction may replace a running one."""
    extras: bool = False
    """Kinds that the instruction file marks as extra are given too."""
    one_agent: bool = False
    """An instruction addresses one random agent."""
    kinds: Annotated[tuple[str, ...], Some()] | None = None
    """Only these kinds are given (default: all)."""
    penalty: NotNegative | None = None
    """What a forbidden macro costs under the rule add (default: as the instruction file says)."""
    bonus: NotNegative | None = None
    """What an allowed macro earns under the rule add (default: as the instruction file says, mostly nothing)."""
    rate: Share | None = None
    """The chance per tick that an instruction starts while none is active (default: by the schedule)."""
    hold: tuple[Ticks, Ticks] | None = None
    """The least and the largest number of ticks for which one holds (default: by the schedule)."""
    weights: dict[str, float] = field(default_factory=dict)
    """How often a kind is given in training, compared with the others, whose weight is 1. Evaluation gives all kinds
    alike."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the world, such as size=8."""

    def __post_init__(self) -> None:
        ranges.check(self)
        for name, value in BY_PRESET.get(self.preset, BY_PRESET["tuned"]).items():
            if not getattr(self, name):
                object.__setattr__(self, name, value)
        look_up(dict.fromkeys(HEARINGS), self.hear, "hearing")
        look_up(METHODS, self.method, "method")
        look_up(NETWORKS, self.network, "network")
        look_up(BACKBONES, self.backbone, "backbone")
        look_up(dict.fromkeys(CONDITION_RULES), self.rule, "rule")
        look_up(dict.fromkeys(CONDITION_SCHEDULES), self.schedule, "schedule")
        for kind, weight in self.weights.items():
            ranges.check_value(weight, NotNegative, f"the weight of {kind}")
        if self.hold is not None and self.hold[0] > self.hold[1]:
            raise ranges.RangeError(f"hold must be from less to more, not {self.hold}")
        if self.encoder != encoders.DEFAULT and self.hear != "vectors":
            raise ValueError(
                f"encoder {self.encoder!r} makes vectors, but agents would hear {self.hear}; "
                "hear must be 'vectors'"
            )

    def __hash__(self) -> int:
        return hash(json.dumps(asdict(self), sort_keys=True))

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> ExperimentConfig:
        """Return a configuration read from a file."""
        names = tuple(field.name for field in dataclasses.fields(cls))
        for name in fields:
            if name not in names:
                raise ValueError(f"no field is called {name!r}; {suggest(name, names)}")
        options = renamed.in_present_names(dict(fields.get("options", {})), renamed.WORLD_OPTIONS)
        lists = {k: tuple(fields[k]) for k in ("kinds", "hold") if fields.get(k) is not None}
        changes = {**lists, "options": options}
        return cls(**{**OLD_FIELDS, **fields, **changes})

    def table_group(self) -> str:
        """Return the name of its group of rows in `table.json`: preset/[backbone/]network/condition.

        The backbone is named if it is not Mac-IAC. The network's name tells how agents hear if that is not what one
        expects of it, and their encoder if it is not the default.
        """
        return "/".join([self.preset, *self.team_names(), self.condition()])

    def team_names(self) -> list[str]:
        """Return the backbone, if it is not Mac-IAC, and the network, as parts of a name."""
        expected = "kinds" if (self.network, self.preset) == ("residual", "tuned") else "vectors"
        hearing = "" if self.hear == expected else f"+{self.hear}"
        if self.encoder != encoders.DEFAULT:
            hearing += f"+{encoders.short_name(self.encoder)}"
        return [*self.backbone_name(), f"{self.network}{hearing}"]

    def backbone_name(self) -> list[str]:
        """Return the backbone as a part of a name: nothing for Mac-IAC."""
        return [] if self.backbone == DEFAULT_BACKBONE else [self.backbone]

    def condition(self) -> str:
        """Return how the team is instructed, as `mavic.experiments.conditions` writes it."""
        return conditions.text_of(self.schedule, self.rule, vars(self))

    def is_papers(self) -> bool:
        """Return whether backbone, network, hearing and condition are those of the paper's Table 1."""
        mine = self.backbone, self.network, self.hear, self.condition()
        return mine == (DEFAULT_BACKBONE, "shared", "vectors", "paper/add")

    def with_condition(self, condition: str) -> ExperimentConfig:
        """Return the same experiment under another condition."""
        return dataclasses.replace(self, **conditions.read(condition))

    def name(self) -> str:
        """Return its name for files and folders."""
        return "-".join([self.method, *self.table_group().split("/")])

    def as_trained(self) -> ExperimentConfig:
        """Return the configuration that is trained: fields that do not affect training have fixed values.

        Configurations with the same result share one training.
        """
        method = METHODS[self.method]
        plain: dict[str, Any] = {"method": "vanilla"} if method.random else {}
        if method.instructions != "interrupt":
            plain |= dict(schedule="live", overlap=False, rate=None, hold=None)
        if not method.hears:
            plain |= conditions.read("live/by-kind")
        return dataclasses.replace(self, **plain)


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


def make_task(world: str, /, *, hear: str = "vectors", **options: Any) -> Task:
    """Return the task of a world with its own instruction file. `options` go to the environment."""
    return _task(world, hear, encoders.DEFAULT, options)


def task_of(config: ExperimentConfig, /, **options: Any) -> Task:
    """Return the task of a configuration. `options` change those of its environment."""
    return _task(config.world, config.hear, config.encoder, {**config.options, **options})


def _task(world: str, hear: str, encoder: str, options: Mapping[str, Any]) -> Task:
    env = api.make(world, **options)
    file = spec.read(instructions_of(world))
    return Task(env=env, lexicon=lexicons.make(file, encoder), file=file, hear=hear)
