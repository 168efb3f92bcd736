"""Which teams there are to play with, and their stages, each compiled once for all pages."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import jax

from mavic.apps import stage
from mavic.apps.stage import Show
from mavic.envs import api
from mavic.experiments import policy_file as policies
from mavic.experiments.config import instructions_of
from mavic.hints import suggest
from mavic.instruct import schedule
from mavic.instruct.spec import InstructionFile, read
from mavic.language import lexicon as lexicons
from mavic.language.encoder import EncoderError, cache_folder
from mavic.types import replace

ORDER = ("mavic", "naive")  # shown first, in this order
ASIDE = "what is the weather like today"  # a sentence that wakes the encoder


class HouseError(ValueError):
    """There is no such team or seat; the message says what there is."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A team's file."""

    name: str
    world: str
    path: Path
    agents: tuple[str, ...]
    guest: bool  # somebody can join it


def shipped() -> Path:
    """The folder of the teams that come along, a folder a world: inside an installed package, or the
    results of a checkout."""
    package = Path(str(resources.files("mavic")))
    inside = package / "policies"
    return inside if inside.is_dir() else package.parent / "results"


def entries(folder: Path) -> list[Entry]:
    """The teams in `folder/<world>/<name>.json`, known ones first."""
    found = [
        entry_of(path, path.stem)
        for world in api.names()
        for path in sorted((folder / world).glob("*.json"))
        if path.with_suffix(".safetensors").is_file()
    ]
    rank = {name: number for number, name in enumerate(ORDER)}
    return sorted(found, key=lambda e: (api.names().index(e.world), rank.get(e.name, 9)))


def entry_of(path: Path, name: str) -> Entry:
    """A team by its file, with or without an ending."""
    notes = path.with_suffix(".json")
    try:
        facts = json.loads(notes.read_text(encoding="utf-8"))
        world, agents, guest = facts["world"], tuple(facts["agents"]), stage.takes_guest(facts)
    except OSError:
        raise HouseError(
            f"{notes}: no such file; a policy is a .safetensors file and a .json"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise HouseError(f"{notes}: not a policy's description ({error})") from None
    if world not in api.names():
        raise HouseError(f"{notes}: its world {world!r} is unknown")
    return Entry(name=name, world=world, path=path.with_suffix(""), agents=agents, guest=guest)


@dataclass(kw_only=True)
class Catalog:
    """The teams by world and name; stages are made when first asked for and then kept."""

    teams: dict[str, dict[str, Entry]]
    _shows: dict[tuple[str, str, bool], Show] = field(default_factory=dict)
    _warm: set[tuple[str, str, bool]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _compiling: dict[tuple[str, bool], threading.Lock] = field(default_factory=dict)

    def entry(self, world: str, name: str) -> Entry:
        """A team, or a `HouseError` that says which there are."""
        if world not in self.teams:
            raise HouseError(f"no team for a world called {world!r}; {_either(world, self.teams)}")
        if name not in self.teams[world]:
            raise HouseError(f"no team is called {name!r}; {_either(name, self.teams[world])}")
        return self.teams[world][name]

    def show(self, world: str, name: str, guest: bool = False) -> Show:
        """Where the team plays, with a schedule that says nothing: people do."""
        entry = self.entry(world, name)
        with self._lock:
            if (world, name, guest) not in self._shows:
                made = stage.stage(entry.path, guest=guest)
                silent = replace(made.setting, schedule=schedule.make_schedule())
                self._shows[world, name, guest] = dataclasses.replace(
                    made, name=name, setting=silent
                )
            return self._shows[world, name, guest]

    def is_warm(self, world: str, name: str, guest: bool = False) -> bool:
        """Whether the team's first tick will be as fast as the others."""
        return (world, name, guest) in self._warm

    def warm(self, world: str, name: str, guest: bool = False) -> None:
        """Compile all that an episode calls: a tick, a word, the end of one. Who comes meanwhile
        waits: nothing is compiled twice."""
        with self._lock:
            compiling = self._compiling.setdefault((world, guest), threading.Lock())
        with compiling:
            if not self.is_warm(world, name, guest):
                self._compile(world, name, guest)

    def _compile(self, world: str, name: str, guest: bool) -> None:
        show = self.show(world, name, guest)
        moment = stage.start(show, jax.random.key(0))
        _, moment = stage.advance(show, moment)
        for kind in show.lexicon.names[1:]:
            told = stage.say(show, moment, kind)
            if not told.refused:
                stage.advance(show, told)
                break
        stage.ending(show, moment)
        self._warm.add((world, name, guest))

    def listen(self, world: str) -> str:
        """Wake the encoder; gives why only the built-in phrases will be understood, if so."""
        try:
            lexicons.load(instructions_of(world)).understand(ASIDE)
        except EncoderError as error:
            return str(error)
        return ""

    def bill(self) -> list[dict[str, Any]]:
        """What is on: worlds with their teams."""
        return [
            {
                "world": world,
                "teams": list(teams),
                "agents": list(next(iter(teams.values())).agents),
                "guest": all(entry.guest for entry in teams.values()),
            }
            for world, teams in self.teams.items()
        ]


def _either(name: str, names: Iterable[str]) -> str:
    return suggest(name, tuple(names))


def open_catalog(
    folder: Path | None = None, policy: Path | None = None, against: Path | None = None
) -> Catalog:
    """The shipped teams (or those in `folder`), and one's own before them."""
    if against is not None and policy is None:
        raise HouseError("--against needs --policy: which two are to be compared?")
    own = [path for path in (policy, against) if path is not None]
    found: list[Entry] = []
    for path in own:
        name = _free_name(path, [e.name for e in found])
        found.append(entry_of(path, name))
    if len({entry.world for entry in found}) > 1:
        raise HouseError(
            f"{policy} plays {found[0].world}, {against} plays {found[1].world}: "
            "two teams side by side need one world"
        )
    for entry in found:
        policies.load(entry.path)  # a broken file is refused before anybody opens a page
    names = {entry.name for entry in found}
    more = entries(folder or shipped())
    found += [
        e
        for e in more
        if e.world not in {f.world for f in found[: len(own)]} or e.name not in names
    ]
    if not found:
        raise HouseError(
            f"no teams in {folder or shipped()}; train one (mavic train box_pushing) and give it: "
            "mavic play --policy FILE, or the folder of folders it is in: --policies FOLDER"
        )
    teams: dict[str, dict[str, Entry]] = {}
    for entry in found:
        teams.setdefault(entry.world, {})[entry.name] = entry
    return Catalog(teams=teams)


def _free_name(path: Path, taken: list[str]) -> str:
    name = path.with_suffix("").name if path.suffix in (".json", ".safetensors") else path.name
    return f"{name} (2)" if name in taken else name


def words_of(world: str) -> InstructionFile:
    """The world's kinds with their meanings and phrases."""
    return read(instructions_of(world))


def prepare() -> None:
    """Before anything is compiled: such small programs run best on the processor, and they outlive
    this process, so that the next start is fast."""
    if "JAX_PLATFORMS" not in os.environ:
        jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_compilation_cache_dir", str(cache_folder().parent / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
