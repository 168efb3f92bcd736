"""Modules of the user: those that `--plugins` names, and those that a command needs but does not name.

A command may name a world, a method, a network or an encoder that is not known. A module in the current folder that
adds it is then imported, and the command says so. A policy file remembers the module of its world.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mavic.apps.commands.command import Command, UserError
from mavic.envs import api
from mavic.experiments import shipped_teams
from mavic.experiments.methods import METHODS
from mavic.language import encoder
from mavic.learn.networks import NETWORKS


class Wanted(NamedTuple):
    """A world, a method, a network or an encoder that a command names."""

    what: str  # a key of ADDED
    name: str
    module: str = ""  # where a policy file says it comes from


ADDED = {  # how a module adds it
    "world": r"""register\(\s*["']{}["']""",
    "method": r"""METHODS\[\s*["']{}["']\s*\]\s*=""",
    "network": r"""NETWORKS\[\s*["']{}["']\s*\]\s*=""",
    "encoder": r"""OWN\[\s*["']{}["']\s*\]\s*=""",
}


def load(modules: Iterable[str]) -> None:
    """Import modules. The current folder is searched too."""
    for module in modules:
        if str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise UserError(f"plugin {module}: {error}") from None
        except (Exception, SystemExit) as error:  # whatever a plugin raises is the plugin's
            raise UserError(f"plugin {module}: {_raised(error)}") from None


def _raised(error: BaseException) -> str:
    """Return what was raised, with the file and line that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = f" ({Path(last[0].filename).name}:{last[0].lineno})" if last else ""
    return f"{type(error).__name__}: {error}{place}"


def guess(command: Command) -> Iterator[str]:
    """Import the modules of the current folder that add what a command needs. Yield a line for each."""
    for wanted in wanted_by(command):
        if _known(wanted):
            continue
        module = _module_of(wanted)
        if module:
            load([module])
            yield f"using --plugins {module}: it adds the {wanted.what} {wanted.name!r}"


def _known(wanted: Wanted) -> bool:
    if wanted.what == "encoder":
        return encoder.known(wanted.name)
    return (
        wanted.name in {"world": api.names(), "method": METHODS, "network": NETWORKS}[wanted.what]
    )


def wanted_by(command: Command) -> Iterator[Wanted]:
    """Yield the worlds, methods, networks and encoders that a command names, by themselves or in a policy or record."""
    given = vars(command)
    if (world := given.get("world", "")) and not world.endswith(".toml"):
        yield Wanted("world", world)
    yield from (Wanted("method", name) for name in given.get("methods", ()) if name != "all")
    yield from (Wanted("network", name) for name in given.get("networks") or ())
    if given.get("encoder"):
        yield Wanted("encoder", given["encoder"])
    for option in ("policy", "against", "initial", "source"):
        if given.get(option) is not None:
            yield from _of_policy(shipped_teams.notes_of(shipped_teams.find(given[option])))
    if (folder := given.get("folder")) is not None:
        for record in sorted(Path(folder).glob("*.jsonl")):
            yield from _of_config(_json(record.read_text(encoding="utf-8").partition("\n")[0]))


def _of_policy(path: Path) -> Iterator[Wanted]:
    if path.is_file():
        yield from _of_config(_json(path.read_text(encoding="utf-8")))


def _of_config(facts: dict[str, Any]) -> Iterator[Wanted]:
    config = facts.get("config", {})
    for what in ADDED:
        if what in config:
            yield Wanted(what, config[what], facts.get("module", ""))


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}  # whoever reads the file says what is wrong with it
    return found if isinstance(found, dict) else {}


def _module_of(wanted: Wanted) -> str:
    """Return the module of the current folder that adds what is wanted; empty if there is none."""
    pattern = re.compile(ADDED[wanted.what].format(re.escape(wanted.name)))
    paths = sorted(Path.cwd().glob("*.py"), key=lambda path: path.stem != wanted.module)
    for path in paths:
        if pattern.search(path.read_text(encoding="utf-8", errors="replace")):
            return path.stem
    return ""
