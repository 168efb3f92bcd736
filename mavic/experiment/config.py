"""One experiment configuration: what is trained and evaluated.

Several configurations with the same network and preset run in one compiled program (`mavic.training.groups`).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mavic import ranges
from mavic.experiment.axes import (
    AXES,
    BY_PRESET,
    CONDITIONS,
    DEFAULT_BACKBONE,
    DEFAULT_ENCODER,
    Axes,
)
from mavic.experiment.methods import METHODS
from mavic.hints import look_up, suggest
from mavic.instruct.reward import BY_KIND
from mavic.instruct.schedule import SCHEDULES
from mavic.instruct.spec import RULES
from mavic.language.heard import HEARINGS
from mavic.learn.backbones import BACKBONES
from mavic.learn.networks import NETWORKS
from mavic.ranges import NotNegative


@dataclass(frozen=True, kw_only=True)
class ExperimentConfig(Axes):
    """One experiment: a value for each axis, checked."""

    def __post_init__(self) -> None:
        ranges.check(self)
        for name, value in BY_PRESET.get(self.preset, BY_PRESET["default"]).items():
            if not getattr(self, name):
                object.__setattr__(self, name, value)
        look_up(dict.fromkeys(HEARINGS), self.hear, "hearing")
        look_up(METHODS, self.method, "method")
        look_up(NETWORKS, self.network, "network")
        look_up(BACKBONES, self.backbone, "backbone")
        look_up({BY_KIND: None, **RULES}, self.rule, "rule")
        look_up(SCHEDULES, self.schedule, "schedule")
        for kind, weight in self.weights.items():
            ranges.check_value(weight, NotNegative, f"the weight of {kind}")
        if self.hold is not None and self.hold[0] > self.hold[1]:
            raise ranges.RangeError(f"hold must be from less to more, not {self.hold}")
        if self.encoder != DEFAULT_ENCODER and self.hear != "vectors":
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
        lists = {k: tuple(fields[k]) for k in ("kinds", "hold") if fields.get(k) is not None}
        return cls(**{**fields, **lists})

    def table_group(self) -> str:
        """Return the name of its group of rows in `table.json`: preset/[backbone/]network/condition.

        The backbone is named if it is not Mac-IAC. The network is followed by what other axes add to its name, such
        as `+vectors`.
        """
        return "/".join([self.preset, *self.team_names(), self.condition()])

    def team_names(self) -> list[str]:
        """Return the backbone, if it is not Mac-IAC, and the network, as parts of a name."""
        told = [one.suffix(self) for one in AXES.values() if one.suffix is not None]
        return [*self.backbone_name(), "+".join([self.network, *filter(None, told)])]

    def backbone_name(self) -> list[str]:
        """Return the backbone as a part of a name. Mac-IAC, the default, is left out."""
        return [] if self.backbone == DEFAULT_BACKBONE else [self.backbone]

    def condition(self) -> str:
        """Return how the team is instructed, as text."""
        return CONDITIONS.write(self.schedule, self.rule, vars(self))

    def is_papers(self) -> bool:
        """Return whether backbone, network, hearing and condition are those of the paper's Table 1."""
        mine = self.backbone, self.network, self.hear, self.condition()
        return mine == (DEFAULT_BACKBONE, "shared", "vectors", "paper/add")

    def with_condition(self, condition: str) -> ExperimentConfig:
        """Return the same experiment under another condition."""
        return dataclasses.replace(self, **CONDITIONS.read(condition))

    def name(self) -> str:
        """Return its name for files and folders."""
        return "-".join([self.method, *self.table_group().split("/")])

    def short_name(self) -> str:
        """Return its name for policy files: the method, and what differs from the defaults, such as `mavic-paper`."""
        default = type(self)(preset=self.preset)
        parts = [
            *([] if self.preset == Axes().preset else [self.preset]),
            *([] if self.team_names() == default.team_names() else self.team_names()),
            *(
                []
                if self.condition() == default.condition()
                else [self.condition().replace("/", "-")]
            ),
        ]
        return "-".join([self.method, *parts])

    def program(self) -> tuple[Any, ...]:
        """Return what configurations must share to train in one compiled program."""
        return tuple(getattr(self, name) for name, one in AXES.items() if one.program)

    def as_trained(self) -> ExperimentConfig:
        """Return the configuration that is trained: fields that do not affect training have fixed values.

        Configurations with the same result share one training.
        """
        method = METHODS[self.method]
        plain: dict[str, Any] = {"method": "vanilla"} if method.random else {}
        if method.instructions != "interrupt":
            plain |= dict(schedule="live", overlap=False, rate=None, hold=None)
        if not method.hears:
            plain |= CONDITIONS.read("live/by-kind")
        return dataclasses.replace(self, **plain)
