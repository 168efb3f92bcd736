"""Options of the command line: their help texts, the plain names of their types, and records of options.

The help of an option is the docstring below its field. `AxisOptions` has every axis of an experiment, `Numbers` every
number of a preset.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro

from mavic.experiment.axes import AXES, Axes
from mavic.preset import Preset
from mavic.ranges import Some


def join_lines(command: type) -> None:
    """Give every option of a command its help text as one paragraph. tyro alone keeps the line breaks of the source."""
    for cls in command.__mro__:
        if not cls.__module__.startswith("mavic.") or "_joined" in vars(cls):
            continue
        hints = get_type_hints(cls, include_extras=True)
        texts = _help_texts(cls)
        cls.__annotations__ |= {name: _with_help(hints[name], texts[name]) for name in texts}
        cls._joined = True  # type: ignore[attr-defined]


def _help_texts(cls: type) -> dict[str, str]:
    """Return the docstring of each field that the class itself declares, with its lines joined."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for one, text in pairwise(body.body):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            match text:
                case ast.Expr(value=ast.Constant(value=str(words))):
                    found[one.target.id] = " ".join(words.split())
    return found


@dataclass(frozen=True)
class _Shown:
    """What the help shows as the value of an option."""

    name: str


Folder = Annotated[Path, _Shown("FOLDER")]
WorldName = Annotated[str, _Shown("WORLD")]
StudyName = Annotated[str, _Shown("STUDY")]
_TYPES = {bool: "{True,False}", int: "INT", float: "NUMBER", str: "TEXT", Path: "FILE"}
_UNSAID = ("None", "preset", "", "''")  # defaults that the help text explains


def _with_help(hint: Any, text: str) -> Any:
    """Return a type that carries its help text for tyro. Its option has no prefix, even inside a nested record."""
    shown = None if hint is bool else _metavar(hint)
    option = tyro.conf.arg(help=text, prefix_name=False, help_behavior_hint=_default, metavar=shown)
    return Annotated[hint, option]


def _default(value: str) -> str:
    return "" if value in _UNSAID else f"(default: {value})"


def _metavar(hint: Any) -> str:
    """Return how the help shows the values of a type, such as `INT` or `TEXT [TEXT ...]`."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        if tyro.conf.UseAppendAction in inside[1:]:  # the user repeats the option
            return _metavar(get_args(inside[0])[0])
        named = [note.name for note in inside[1:] if isinstance(note, _Shown)]
        return named[0] if named else _metavar(inside[0])
    if origin in (Union, UnionType):
        first, *others = dict.fromkeys(filter(None, map(_metavar, inside)))
        for other in others:
            longer = other.removeprefix(f"{first} ")  # two numbers or three: the third is optional
            first = f"{first} [{longer}]" if longer != other else f"{first}|{other}"
        return first
    if origin is Literal:
        return "" if inside == ("preset",) else "{" + ",".join(map(str, inside)) + "}"
    if origin is tuple and inside[1:] == (...,):
        one = _metavar(inside[0])
        return f"{one} [{one} ...]"
    if origin is tuple:
        return " ".join(map(_metavar, inside))
    return _TYPES.get(hint, "")


_UNCHANGED = "preset"  # the value of an option that leaves the preset's number as it is


def _number_options() -> list[tuple[str, Any, Any]]:
    hints = get_type_hints(Preset, include_extras=True)
    return [
        (name, _with_help(hints[name] | Literal["preset"], text), _UNCHANGED)
        for name, text in _help_texts(Preset).items()
    ]


def _axis_options() -> list[tuple[str, Any, Any]]:
    hints, texts = get_type_hints(Axes, include_extras=True), _help_texts(Axes)
    options = []
    for name, one in AXES.items():
        if not one.option:
            continue
        hint = one.typed or _without_none(hints[name])
        if one.several:
            hint = Annotated[tuple[hint, ...], Some()]  # type: ignore[valid-type]
        default = False if hint is bool else None
        wanted = hint if hint is bool else hint | None
        options.append((name, _with_help(wanted, texts[name]), default))
    return options


def _without_none(hint: Any) -> Any:
    """Return a type without the None that stands for an option that was not given."""
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return kinds[0] if get_origin(hint) in (Union, UnionType) else hint


class _Options:
    """The base of records whose fields are options."""

    def given(self) -> dict[str, Any]:
        """Return the options that the user gave."""
        return {name: v for name, v in vars(self).items() if v != getattr(type(self), name)}


def _record(name: str, fields: list[tuple[str, Any, Any]]) -> Any:
    return dataclasses.make_dataclass(name, fields, bases=(_Options,), frozen=True, kw_only=True)


Numbers = _record("Numbers", _number_options())
AxisOptions = _record("AxisOptions", _axis_options())
