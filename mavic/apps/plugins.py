"""Modules of the user: those that `--plugins` names, and those that a command needs but does not name.

A command may name a world, a method, a network or an encoder that is not known. A module in the current folder that
adds it is then imported, and the command says so. A module that does more than add things, such as a script that also
trains, is only named. A policy file remembers the module of its world.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NamedTuple

from mavic.apps.commands.command import Command, UserError
from mavic.envs import api
from mavic.experiments import json_shape, records, shipped_teams
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


CALLS = (  # what a module may call when it is imported without being asked for
    *(
        "register",
        "from_function",
        "from_cell",
        "dataclass",
        "field",
        "replace",
        "partial",
        "cache",
    ),
    *("dict", "frozenset", "len", "list", "range", "set", "sorted", "super", "tuple", "zip"),
    *("getLogger", "namedtuple", "resolve", "update", "with_name"),
)


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
    """Import the modules that add what a command needs. Yield a line for each.

    A policy names its module. Otherwise the current folder is searched. A module there that would do more than add
    things when it is imported is not imported but named.
    """
    for wanted in wanted_by(command):
        if _known(wanted):
            continue
        if wanted.what == "world" and _is_installed(wanted.module):
            load([wanted.module])
            yield f"using --plugins {wanted.module}: it adds the {wanted.what} {wanted.name!r}"
        elif path := _file_of(wanted):
            if not only_defines(path.read_text(encoding="utf-8", errors="replace")):
                yield (
                    f"{path.name} adds the {wanted.what} {wanted.name!r} but also does something else when it is "
                    f"imported; if you want that, say --plugins {path.stem}"
                )
                continue
            load([path.stem])
            yield f"using --plugins {path.stem}: it adds the {wanted.what} {wanted.name!r}"


def _known(wanted: Wanted) -> bool:
    if wanted.what == "encoder":
        return encoder.known(wanted.name)
    return (
        wanted.name in {"world": api.names(), "method": METHODS, "network": NETWORKS}[wanted.what]
    )


def _is_installed(module: str) -> bool:
    """Return whether a module is found without the current folder."""
    here = {"", str(Path.cwd())}
    paths = [path for path in sys.path if path not in here]
    try:
        return bool(module) and PathFinder.find_spec(module.partition(".")[0], paths) is not None
    except (ImportError, ValueError):
        return False


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
            path = shipped_teams.notes_of(shipped_teams.find(given[option]))
            yield from _of_config(path.read_bytes() if path.is_file() else b"")
    if (folder := given.get("folder")) is not None:
        for record in records.paths_in(Path(folder)):
            yield from _of_config(_first_line(record))


def _first_line(record: Path) -> bytes:
    """Return the first line of a record, or nothing if it cannot be read. Whoever reads the record says why."""
    try:
        return records.content(record).partition(b"\n")[0]
    except records.RecordError:
        return b""


def _of_config(text: bytes) -> Iterator[Wanted]:
    """Yield what a description in JSON names. Whoever reads the file says what is wrong with it."""
    try:
        facts = json_shape.parse(text)
        json_shape.check(facts, {"config": dict})
    except json_shape.ShapeError:
        return
    module = facts.get("module")
    for what in ADDED:
        if isinstance(name := facts["config"].get(what), str):
            yield Wanted(what, name, module if isinstance(module, str) else "")


def _file_of(wanted: Wanted) -> Path | None:
    """Return the module of the current folder that adds what is wanted; None if there is none."""
    pattern = re.compile(ADDED[wanted.what].format(re.escape(wanted.name)))
    paths = sorted(Path.cwd().glob("*.py"), key=lambda path: path.stem != wanted.module)
    for path in paths:
        if pattern.search(path.read_text(encoding="utf-8", errors="replace")):
            return path
    return None


def only_defines(source: str) -> bool:
    """Return whether importing this source imports, defines, assigns and registers, and does nothing else.

    It may call `register`, classes and the harmless functions of `CALLS`.
    """
    try:
        return all(map(_is_definition, ast.parse(source).body))
    except (SyntaxError, ValueError, RecursionError):
        return False


def _is_definition(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        run = [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
        return all(map(_is_harmless, run))
    if isinstance(node, ast.ClassDef):
        run = [*node.decorator_list, *node.bases, *(word.value for word in node.keywords)]
        return all(map(_is_harmless, run)) and all(map(_is_definition, node.body))
    if isinstance(node, ast.If):
        if ast.unparse(node.test).startswith("__name__ == "):  # not when it is imported
            return all(map(_is_definition, node.orelse))
        return _is_harmless(node.test) and all(map(_is_definition, [*node.body, *node.orelse]))
    if isinstance(node, ast.For):
        return _is_harmless(node.iter) and all(map(_is_definition, [*node.body, *node.orelse]))
    if isinstance(node, ast.Try):
        caught = [line for handler in node.handlers for line in handler.body]
        return all(map(_is_definition, [*node.body, *caught, *node.orelse, *node.finalbody]))
    plain = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.Expr, ast.Pass)
    return isinstance(node, plain) and _is_harmless(node)


def _is_harmless(node: ast.AST) -> bool:
    """Return whether evaluating this calls only what `CALLS` names and classes, which begin with a capital."""
    if isinstance(node, ast.Lambda):  # its body is not run
        return True
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func).rpartition(".")[2]
        if name not in CALLS and not name.lstrip("_")[:1].isupper():
            return False
    return all(map(_is_harmless, ast.iter_child_nodes(node)))
