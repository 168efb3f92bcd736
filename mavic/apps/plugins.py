"""Modules of the user. Only `--plugins` loads one. A file may name a module that it needs, which is not imported."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

from mavic.apps.commands.command import Command, UserError
from mavic.envs import api
from mavic.storage import files, json_shape
from mavic.teams import shipped


def load(modules: Iterable[str]) -> None:
    """Import modules. The current folder is searched last, so that no file in it replaces an installed module."""
    here = Path.cwd()
    for module in modules:
        if str(here) not in sys.path:
            sys.path.append(str(here))
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise UserError(f"plugin {module}: {error}") from None
        except (Exception, SystemExit) as error:  # a plugin may raise any error
            raise UserError(f"plugin {module}: {_raised(error)}") from None
        own = here / f"{module.replace('.', '/')}.py"
        if own.is_file() and not own.samefile(getattr(found, "__file__", None) or sys.executable):
            raise UserError(
                f"plugin {module}: an installed module has the same name; rename {own.name}"
            )


def _raised(error: BaseException) -> str:
    """Return what was raised, with the file and line that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = f" ({Path(last[0].filename).name}:{last[0].lineno})" if last else ""
    return f"{type(error).__name__}: {error}{place}"


def advice(command: Command) -> str:
    """Return which module a policy of the command names for a world that is unknown, and what to type; "" if none."""
    for option in ("policy", "against", "initial", "source"):
        given = getattr(command, option, None)
        if given is None:
            continue
        notes = shipped.notes_of(shipped.find(given))
        try:
            facts = json_shape.parse(files.read_bytes(notes))
            json_shape.check(facts, {"world": str, "module": str})
        except (OSError, ValueError):  # the error of the command says what is wrong with it
            continue
        module = facts["module"]
        if facts["world"] not in api.names() and all(map(str.isidentifier, module.split("."))):
            return (
                f"{notes} says that module {module!r} adds its world: --plugins {module} imports it"
            )
    return ""
