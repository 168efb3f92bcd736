"""AXES: one table of what an experiment can vary.

The command line, `mavic.train`, studies, grouping, names of records and comparisons read it. A new axis is a field of
`Axes`, and its use where the experiment changes. This module imports no JAX, so that `mavic --help` is fast.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from mavic.hints import suggest
from mavic.ranges import NotNegative, Range, Share, Some, Ticks

DEFAULT_BACKBONE = "mac-iac"
DEFAULT_ENCODER = "minilm-l3"
BY_PRESET = {  # the values of empty axes; other presets use those of `default`
    "default": {"network": "residual", "hear": "kinds", "population": 8},
    "tuned": {"network": "residual", "hear": "kinds", "population": 1},
    "paper-tuned": {"network": "shared", "hear": "vectors", "population": 1},
    "paper": {"network": "protected", "hear": "vectors", "population": 1},
    "reference": {"network": "protected", "hear": "vectors", "population": 1},
}


# Conditions as text: how a team is instructed, such as live/add/kinds=dont-push/penalty=100/rate=0.1. It is
# schedule/rule, then any switches, then any parts NAME=VALUE. Tables, file names and the command line use this text.

_JOIN = "+"  # between the entries of a list; names of kinds do not contain it


class _Part(NamedTuple):
    """A part NAME=VALUE: how a value is written and read, and its value when the part is missing."""

    write: Callable[[Any], str]
    read: Callable[[str], Any]
    default: Any = None
    pair: bool = False  # a value is a pair of numbers, so a sequence of numbers is one value


def _number(value: float) -> str:
    return f"{value:g}"


def _read_weights(text: str) -> dict[str, float]:
    pairs = (entry.rpartition("@") for entry in text.split(_JOIN))
    return {kind: float(weight) for kind, _, weight in pairs}


def _write_weights(weights: Mapping[str, float]) -> str:
    return _JOIN.join(f"{kind}@{_number(weights[kind])}" for kind in sorted(weights))


def _read_hold(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    return int(low), int(high or low)


_KINDS = _Part(_JOIN.join, lambda text: tuple(text.split(_JOIN)))
_NUMBER = _Part(_number, float)
_HOLD = _Part(lambda hold: "-".join(map(str, hold)), _read_hold, pair=True)
_WEIGHTS = _Part(_write_weights, _read_weights, {})


class _Grammar(NamedTuple):
    """The words that a condition may hold."""

    switches: Mapping[str, str]  # word → field
    parts: Mapping[str, _Part]  # by field

    @property
    def form(self) -> str:
        """The form of a condition, for messages."""
        switches = "".join(f"[/{word}]" for word in self.switches)
        return f"schedule/rule{switches}[/NAME=VALUE…]"

    def write(self, schedule: str, rule: str, fields: Mapping[str, Any]) -> str:
        """Return a condition as text. Fields with default values are not named.

        Args:
            schedule: when instructions come.
            rule: what they pay.
            fields: the values of switches and parts by field.
        """
        switches = [word for word, field in self.switches.items() if fields[field]]
        parts = [
            f"{name}={part.write(fields[name])}"
            for name, part in self.parts.items()
            if fields[name] != part.default
        ]
        return "/".join([schedule, rule, *switches, *parts])

    def read(self, condition: str) -> dict[str, Any]:
        """Return the fields of a condition, with defaults for those it does not name.

        Raises:
            ValueError: the text is no condition. The message says what is allowed.
        """
        schedule, _, rest = condition.partition("/")
        rule, *more = rest.split("/")
        if not rule:
            raise ValueError(f"condition {condition!r} is not {self.form}, such as live/by-kind")
        fields: dict[str, Any] = {field: False for field in self.switches.values()}
        fields |= {name: part.default for name, part in self.parts.items()}
        for text in more:
            name, equals, value = text.partition("=")
            if not equals and name in self.switches:
                fields[self.switches[name]] = True
            elif equals and name in self.parts:
                fields[name] = self._value(condition, name, value)
            else:
                known = (*self.switches, *(f"{part}=…" for part in self.parts))
                raise ValueError(
                    f"condition {condition!r} is not {self.form}: {text!r} is unknown; {suggest(text, known)}"
                )
        return {"schedule": schedule, "rule": rule, **fields}

    def _value(self, condition: str, name: str, text: str) -> Any:
        try:
            return self.parts[name].read(text)
        except ValueError:
            raise ValueError(
                f"condition {condition!r}: {text!r} is no value of {name}; examples: penalty=100, rate=0.1, "
                "hold=5-20, kinds=push+stay, weights=push@0.1"
            ) from None


@dataclass(frozen=True, kw_only=True)
class _Axis:
    """The facts of one axis besides its name, type, default and help."""

    several: bool = False
    """Users may give several values. All combinations are trained."""
    program: bool = False
    """Configurations that differ in it cannot train in one compiled program."""
    option: bool = True
    """It is an option of `mavic train`. Otherwise the condition or the world's name sets it."""
    typed: Any = None
    """Its type on the command line, if that is not the type of the field."""
    switch: str = ""
    """Its word in the text of a condition, if it is on or off."""
    part: _Part | None = None
    """How the text of a condition writes and reads it, as NAME=VALUE."""
    suffix: Callable[[Any], str] | None = None
    """Takes a configuration and returns what the name of its network says of this axis, if anything."""

    @property
    def in_condition(self) -> bool:
        """Whether the text of a condition tells it."""
        return bool(self.switch) or self.part is not None

    def values(self, given: Any) -> list[Any]:
        """Return what a user gave as a list of values. Texts are read as a condition would read them."""
        if not self.several:
            return [tuple(given) if isinstance(given, list) else given]
        several = isinstance(given, list | tuple)
        if several and self.part is not None and self.part.pair:
            several = not all(isinstance(number, int) for number in given)
        values = list(given) if several else [given]
        return [self.part.read(x) if self.part and isinstance(x, str) else x for x in values]


def _axis(default: Any, **facts: Any) -> Any:
    """Return the dataclass field of an axis. If the default is a type, each record gets a new empty value of it."""
    kind = "default_factory" if isinstance(default, type) else "default"
    options: dict[str, Any] = {kind: default, "metadata": {"axis": _Axis(**facts)}}
    return dataclasses.field(**options)


def _hearing(config: Any) -> str:
    kinds = config.network == "residual" and config.preset in ("default", "tuned")
    expected = "kinds" if kinds else "vectors"
    return "" if config.hear == expected else config.hear


def _population(config: Any) -> str:
    usual = BY_PRESET.get(config.preset, BY_PRESET["default"])["population"]
    return "" if config.population == usual else f"population{config.population}"


def _encoder(config: Any) -> str:
    """Return an encoder's name as a part of file names: of a folder or of the hub, only the last part."""
    if config.encoder == DEFAULT_ENCODER:
        return ""
    last = config.encoder.rstrip("/\\").replace("\\", "/").rpartition("/")[2].rpartition(":")[2]
    return re.sub(r"[^\w.]+", "-", last) or "encoder"


@dataclass(frozen=True, kw_only=True)
class Axes:
    """What an experiment can vary. The text below a field is its help."""

    world: str = _axis("box_pushing", program=True, option=False)
    """Which world: see `mavic worlds`."""
    method: str = _axis("mavic", several=True)
    """vanilla, naive, switch, mavic, mavic-shift, random (random macros, for comparison), or all. The paper's dual
    method is naive on the network protected."""
    network: str = _axis("", several=True, program=True)
    """shared is the paper's network. protected has separate parts for instructed and uninstructed decisions. residual
    is protected, and its instructed actor adds to the logits of the uninstructed one. The default is residual, shared
    with the preset paper-tuned, and protected with paper and reference. --plugins may add networks of your own."""
    backbone: str = _axis(DEFAULT_BACKBONE, several=True, program=True)
    """Who has which actor and critic: mac-iac (the paper's, the default), mac-cac, mac-naive-iacc, mac-iaicc or acac.
    docs/backbones.md says which one when."""
    hear: str = _axis("", program=True, suffix=_hearing)
    """What agents hear: kinds (the probability of each kind, as the reader understands a sentence) or vectors (the
    sentence's vector, as in the paper). The default is kinds, and vectors with paper-tuned, paper and reference."""
    encoder: str = _axis(DEFAULT_ENCODER, program=True, suffix=_encoder)
    """The frozen encoder that makes the vectors (only with --hear vectors): minilm-l3 (the default), minilm-l6,
    path:DIR (the folder of a saved model), hf:NAME (from the Hugging Face hub), or one of your own that --plugins
    adds."""
    preset: str = _axis("default", program=True)
    """The numbers of the learner: default (for every world), tuned (by hand for each built-in world, version 0.2),
    paper-tuned (those without any help to obey, for the paper's own setting: --condition paper/add), paper (the
    paper's table) or reference (the commands of the reference code)."""
    population: Annotated[int, Range(0, 256)] = _axis(0, program=True, suffix=_population)
    """How many members of each seed start training. At shares of the training the worse half is dropped, until one is
    left; 8 members cost as much as 4.5 trainings. 1 is a single training. The default (0) is 8 with the preset default,
    and 1 with the others."""
    schedule: str = _axis("live", option=False)
    """When instructions come: live (they come and go) or paper (at most one per episode, held to its end)."""
    rule: str = _axis("by-kind", option=False)
    """What instructions pay: by-kind (as the instruction file says), or add (the paper's: a penalty for every kind) or
    replace for every kind."""
    overlap: bool = _axis(False, switch="overlap")
    """A new instruction may replace a running one."""
    extras: bool = _axis(False, switch="extras")
    """Kinds that the instruction file marks as extra are given too."""
    one_agent: bool = _axis(False, switch="one-agent")
    """An instruction addresses one random agent instead of all that it is meant for."""
    kinds: Annotated[tuple[str, ...], Some()] | None = _axis(None, part=_KINDS)
    """Give only these kinds of instruction (default: all). `mavic worlds` lists them."""
    penalty: NotNegative | None = _axis(None, several=True, part=_NUMBER)
    """What a forbidden macro costs under the rule add (default: as the instruction file says)."""
    bonus: NotNegative | None = _axis(None, several=True, part=_NUMBER)
    """What an allowed macro earns under the rule add (default: as the instruction file says, mostly nothing)."""
    rate: Share | None = _axis(None, several=True, part=_NUMBER)
    """The chance per tick that an instruction starts while none is active (default: by the schedule)."""
    hold: tuple[Ticks, Ticks] | None = _axis(None, several=True, part=_HOLD, typed=str)
    """For how many ticks an instruction holds, from least to most, such as 5-20 (default: by the schedule).
    Instructions that an event resolves hold until then."""
    weights: dict[str, float] = _axis(
        dict, part=_WEIGHTS, typed=tuple[tuple[str, NotNegative], ...]
    )
    """How often kinds are given in training, compared with the others, whose weight is 1, such as: --weights push 0.1
    stay 0.01. Evaluation gives all kinds alike."""
    options: dict[str, Any] = _axis(dict, typed=tuple[tuple[str, str], ...])
    """Options of the world, such as: --options people 3 tools 4. `mavic worlds` lists them."""


AXES: dict[str, _Axis] = {field.name: field.metadata["axis"] for field in dataclasses.fields(Axes)}
CONDITIONS = _Grammar(
    switches={one.switch: name for name, one in AXES.items() if one.switch},
    parts={name: one.part for name, one in AXES.items() if one.part is not None},
)
