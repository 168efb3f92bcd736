"""Every number has its range in its annotation, and what is outside is refused in words that say the range."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import pytest

from mavic import ranges
from mavic.envs import api
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import preset_of
from mavic.instruct.schedule import make_schedule
from mavic.preset import Preset
from mavic.ranges import RangeError


def is_number(hint) -> bool:
    return any(kind in str(hint) for kind in ("int", "float"))


def test_every_number_of_a_preset_has_a_range():
    hints = ranges._annotations(Preset)
    numbers = {name for name, hint in hints.items() if is_number(hint)}
    without = [name for name in numbers if "Range" not in repr(hints[name])]
    assert len(numbers) > 30 and without == []


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1e39, -1, "1", True, 10**400])
@pytest.mark.parametrize(
    "name", [k for k, v in ranges._annotations(Preset).items() if is_number(v)]
)
def test_no_number_of_a_preset_may_be_anything(name, wrong):
    hint = ranges._annotations(Preset)[name]
    values = (wrong, wrong) if "tuple" in str(hint) else wrong
    with pytest.raises(RangeError, match=rf"^{name} must be a .*, not "):
        ranges.check_value(values, hint, name)  # tests check types before a record is made


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(gamma=1.5), "gamma must be a number from 0 to 1, not 1.5"),
        (dict(actor_lr=0.0), "actor_lr must be a number above 0 and at most 1e+38, not 0.0"),
        (dict(batch=0), "batch must be a whole number from 1 to 1,000,000, not 0"),
        (dict(episodes=0), "episodes must be a whole number from 1 to 1,000,000,000, not 0"),
        (dict(n_steps=0), "n_steps must be a whole number from 1 to 1,000,000, not 0"),
        (
            dict(epsilon_end=(0.1, 2)),
            "epsilon_end must be a list, each of them a number from 0 to 1",
        ),
    ],
)
def test_the_message_says_the_range(changes, message):
    with pytest.raises(RangeError) as refused:
        preset_of("tuned", "box_pushing", **changes)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("world", api.BUILT_IN)
@pytest.mark.parametrize("name", ["tuned", "paper-tuned", "paper"])
def test_presets_of_worlds_are_in_range_and_come_back_from_files(world, name):
    preset = preset_of(name, world)
    assert Preset.of(dataclasses.asdict(preset)) == preset


def test_an_unknown_number_of_a_file_is_named():
    with pytest.raises(ValueError, match=r"no number is called 'gama'; did you mean 'gamma'"):
        Preset.of({"gama": 1.0})


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (dict(rate=-0.1), "rate must be a number from 0 to 1"),
        (dict(hold_min=0), "hold_min must be a whole number from 1 to 1,000,000"),
        (dict(hold_min=9, hold_max=3), r"hold_min must be at most hold_max \(3\), not 9"),
        (dict(from_start=math.nan), "from_start must be a number from 0 to 1, not nan"),
    ],
)
def test_schedules_have_ranges(numbers, message):
    with pytest.raises(RangeError, match=message):
        make_schedule(**numbers)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (dict(schedule="off"), "schedule 'off' is unknown; .*allowed: live, paper"),
        (dict(schedule="from_start"), "allowed: live, paper"),
        (dict(kinds=()), "kinds must be a list that is not empty"),
        (dict(kinds=("push", "push")), r"without the same thing twice \(push\)"),
    ],
)
def test_configurations_are_checked(fields, message):
    with pytest.raises(ValueError, match=message):
        ExperimentConfig.of(fields)


@pytest.mark.parametrize(
    ("value", "annotation", "message"),
    [
        (3, str, "it must be a text, not 3"),
        ("yes", bool, "it must be true or false, not 'yes'"),
        (0.5, int | None, "it must be a whole number that is finite, not 0.5"),
        ("x", Literal["a", "b"], "it must be one of a, b, not 'x'"),
        ([], tuple[int, ...], "it must be a list, not"),
    ],
)
def test_types_are_checked(value, annotation, message):
    with pytest.raises(RangeError, match=message):
        ranges.check_value(value, annotation, "it")


@pytest.mark.parametrize(
    ("world", "options", "message"),
    [
        (
            "overcooked",
            dict(third_cook="maybe"),
            "option third_cook must be true or false, not 'maybe'",
        ),
        ("overcooked", dict(map=math.nan), "option map must be a text, not nan"),
        ("overcooked", dict(map="nan"), "nan: no such map"),
        ("overcooked", dict(map="."), "cannot be read as a map"),
        ("box_pushing", dict(name="foo"), "has no option 'name'"),
        ("box_pushing", dict(big=math.inf), "option big must be a number that is finite, not inf"),
        ("box_pushing", dict(size=10**9), "at most 100"),
    ],
)
def test_options_of_worlds_are_checked(world, options, message):
    with pytest.raises(ValueError, match=message):
        api.make(world, **options)
