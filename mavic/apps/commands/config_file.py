"""The options of a command as a TOML file: read by `--config`, written by `--print-config`.

world = "box_pushing"
method = ["mavic", "naive"]
seeds = 3

[options]
size = 8

[numbers]
episodes = 40000
n_steps = "None"
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mavic.apps.commands.command import UserError
from mavic.hints import suggest

TABLES = ("options", "weights", "numbers")


def read_arguments(path: Path, options: Mapping[str, Any], numbers: Sequence[str]) -> list[str]:
    """Return a file as arguments of the command line.

    Args:
        path: the file.
        options: the options that it may hold, with their defaults.
        numbers: the names of the numbers that it may hold.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"{path}: {error}") from None
    for name in TABLES:
        if not isinstance(found.get(name, {}), dict):
            raise UserError(f"{path}: {name!r} must be a table: a line [{name}], then its entries")
    for table, allowed in ((found, (*options, "numbers")), (found.get("numbers", {}), numbers)):
        for name in table:
            if name not in allowed:
                raise UserError(f"{path}: {name!r} is unknown; {suggest(name, tuple(allowed))}")
    try:
        return list(_arguments(found, options))
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None


def _arguments(found: Mapping[str, Any], options: Mapping[str, Any]) -> Iterator[str]:
    if "world" in found:
        yield _plain(found["world"])
    for name, value in {**found, **found.get("numbers", {})}.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, dict | list) and name not in ("numbers", *found.get("numbers", {})):
            inside = value.values() if isinstance(value, dict) else value
            if any(isinstance(one, dict | list) for one in inside):
                raise ValueError(
                    f"{name} holds a list or a table where a single value should stand"
                )
        if name in ("world", "numbers"):
            continue
        if name in ("options", "weights"):
            yield flag
            yield from (_plain(part) for pair in value.items() for part in pair)
        elif name in options and isinstance(options[name], bool):
            if not isinstance(value, bool):
                raise ValueError(f"{name} must be true or false, not {value!r}")
            yield flag if value else f"--no-{flag.removeprefix('--')}"
        else:
            yield flag
            yield from map(_plain, value if isinstance(value, list) else [value])


def _plain(value: Any) -> str:
    """Return a value as an argument. A text that looks like an option is a `ValueError`."""
    if isinstance(value, str) and value.startswith("-"):
        raise ValueError(f"{value!r} cannot be a value: it looks like an option of the command")
    return str(value)


def as_toml(values: Mapping[str, Any]) -> str:
    """Return options as TOML. Dictionaries become tables, and None becomes the text "None"."""
    tables = {name: value for name, value in values.items() if isinstance(value, Mapping)}
    lines = [f"{name} = {_value(value)}" for name, value in values.items() if name not in tables]
    for name, table in tables.items():
        if table:
            lines += ["", f"[{name}]"]
            lines += [f"{_key(key)} = {_value(v)}" for key, v in table.items()]
    return "\n".join(lines)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_value, value))}]"
    plain = isinstance(value, bool | int | float)
    text = json.dumps(value if plain else str(value), ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")  # TOML has no control characters, and this is one
