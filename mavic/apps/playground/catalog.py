"""Which teams can be played with, and their stages. Each stage is compiled once for all pages."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import jax
import jax.numpy as jnp

from mavic.apps import stage as stages
from mavic.apps.playground import heaps
from mavic.apps.playground.messages import WorldListing
from mavic.apps.playground.orders import names_of
from mavic.apps.stage import Stage
from mavic.envs import api
from mavic.experiments import policy_facts, policy_file, shipped_teams
from mavic.experiments.config import instructions_of
from mavic.experiments.methods import METHODS
from mavic.experiments.policy_file import PolicyError
from mavic.hints import suggest
from mavic.instruct import schedule
from mavic.instruct.spec import InstructionFile, read
from mavic.language import lexicon as lexicons
from mavic.language.encoder import EncoderError
from mavic.types import replace

ORDER = ("mavic", "naive")  # these teams are listed first
UNKNOWN_SENTENCE = "what is the weather like today"  # reading it loads the encoder


class CatalogError(ValueError):
    """There is no such team. The message says which teams there are."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A team's policy file."""

    name: str
    world: str
    path: Path
    agents: tuple[str, ...]
    guest: bool  # a person can join as one more agent
    method: str  # how it was trained


def entries(folder: Path) -> list[Entry]:
    """Return the teams in `folder/<world>/<name>.json`, in the order of the worlds and of `ORDER`."""
    found = [
        entry_of(path, path.stem)
        for world in api.names()
        for path in sorted((folder / world).glob("*.json"))
        if shipped_teams.weights_of(path).is_file()
    ]
    rank = {name: number for number, name in enumerate(ORDER)}
    return sorted(found, key=lambda e: (api.names().index(e.world), rank.get(e.name, len(rank))))


def entry_of(path: Path, name: str) -> Entry:
    """Return the entry of a policy file or of a shipped team. The path may have an ending or none."""
    path = shipped_teams.find(path)
    try:
        facts = policy_facts.read_facts(path)
    except PolicyError as error:
        raise CatalogError(str(error)) from None
    if facts["world"] not in api.names():
        raise CatalogError(
            f"{path}: its world {facts['world']!r} is unknown; name the module that adds it: --plugins MODULE"
        )
    return Entry(
        name=name,
        world=facts["world"],
        path=path,
        agents=tuple(facts["agents"]),
        guest=stages.guest_options(facts) is not None,
        method=facts["config"]["method"],
    )


@dataclass(kw_only=True)
class Catalog:
    """The teams by world and name. A stage is made when it is first asked for, and then kept."""

    teams: dict[str, dict[str, Entry]]
    shield: bool = False  # instructions are enforced
    opening: str = ""  # the world that a page opens
    _stages: dict[tuple[str, str, bool], Stage] = field(default_factory=dict)
    _compiled: set[tuple[str, str, bool]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _compiling: dict[tuple[str, bool], threading.Lock] = field(default_factory=dict)

    def entry(self, world: str, name: str) -> Entry:
        """Return a team's entry, or raise a `CatalogError` that says which teams there are."""
        if world not in self.teams:
            raise CatalogError(f"no team for a world called {world!r}; {_hint(world, self.teams)}")
        if name not in self.teams[world]:
            raise CatalogError(f"no team is called {name!r}; {_hint(name, self.teams[world])}")
        return self.teams[world][name]

    def about(self, world: str, name: str) -> str:
        """Return what sort of team it is, in a sentence."""
        return METHODS[self.entry(world, name).method].about

    def stage(self, world: str, name: str, guest: bool = False) -> Stage:
        """Return a team's stage. Its schedule gives no instructions: people give them."""
        entry = self.entry(world, name)
        with self._lock:
            if (world, name, guest) not in self._stages:
                made = stages.open_stage(entry.path, guest=guest)
                clock = schedule.make_schedule(shield=self.shield)
                # with room for a second instruction
                silent = replace(made.instructed_env, schedule=clock, also=jnp.int32(0))
                self._stages[world, name, guest] = dataclasses.replace(
                    made, name=name, instructed_env=silent
                )
            return self._stages[world, name, guest]

    def is_warm(self, world: str, name: str, guest: bool = False) -> bool:
        """Return whether the team's programs are compiled."""
        return (world, name, guest) in self._compiled

    def warm(self, world: str, name: str, guest: bool = False) -> None:
        """Compile all programs that an episode calls. Two callers do not compile the same program: one waits."""
        with self._lock:
            compiling = self._compiling.setdefault((world, guest), threading.Lock())
        with compiling:
            if not self.is_warm(world, name, guest):
                self._compile(world, name, guest)

    def _compile(self, world: str, name: str, guest: bool) -> None:
        stage = self.stage(world, name, guest)
        episode = stages.start(stage, jax.random.key(0))
        _, episode = stages.advance(stage, episode)
        for kind in stage.lexicon.names[1:]:
            instructed = stages.say(stage, episode, kind)
            if not instructed.refused:
                stages.advance(stage, instructed)
                with contextlib.suppress(stages.StageError):  # they need not go together
                    stages.say(stage, instructed, stage.lexicon.names[-1], also=True)
                break
        stages.last_frame(stage, episode)
        self._compiled.add((world, name, guest))

    def load_encoder(self, world: str) -> str:
        """Load the sentence encoder. Return why only the built-in phrases will be understood, or ""."""
        try:
            lexicons.load(instructions_of(world)).understand(UNKNOWN_SENTENCE)
        except EncoderError as error:
            return str(error)
        return ""

    def listing(self) -> list[WorldListing]:
        """Return the worlds and their teams."""
        return [
            WorldListing(
                world=world,
                title=api.known(world).title or api.plain(world),
                teams=list(teams),
                agents=list(_agents(teams)),
                agent_words=list(names_of(world, _agents(teams))),
                guest=all(entry.guest for entry in teams.values()),
            )
            for world, teams in self.teams.items()
        ]


def _agents(teams: Mapping[str, Entry]) -> tuple[str, ...]:
    return next(iter(teams.values())).agents


def _hint(name: str, names: Iterable[str]) -> str:
    return suggest(name, tuple(names))


def open_catalog(
    folder: Path | None = None,
    policy: Path | None = None,
    against: Path | None = None,
    *,
    shield: bool = False,
) -> Catalog:
    """Return the catalog of the shipped teams, or of those in `folder`, with the user's own teams before them.

    With `shield`, instructions are enforced: what they forbid is not available to the agents they address.
    """
    if against is not None and policy is None:
        raise CatalogError("--against needs --policy: name both teams to compare")
    own: list[Entry] = []
    for path in (policy, against):
        if path is not None:
            own.append(entry_of(path, _free_name(path, [entry.name for entry in own])))
    if len({entry.world for entry in own}) > 1:
        raise CatalogError(
            f"{policy} plays {own[0].world}, {against} plays {own[1].world}: "
            "two teams side by side need one world"
        )
    for entry in own:
        policy_file.load(entry.path)  # a broken file is refused before a page is opened
    taken = {(entry.world, entry.name) for entry in own}
    found = own + [
        e for e in entries(folder or shipped_teams.folder()) if (e.world, e.name) not in taken
    ]
    if not found:
        raise CatalogError(
            f"no teams in {folder or shipped_teams.folder()}; train one (mavic train box_pushing) and name it: "
            "mavic play --policy FILE, or name the folder of its world's folder: --policies FOLDER"
        )
    teams: dict[str, dict[str, Entry]] = {}
    for entry in found:
        teams.setdefault(entry.world, {})[entry.name] = entry
    longer = [world for world in teams if api.world(world).opens_first]
    opening = own[0].world if own else (*longer, *teams)[0]
    return Catalog(teams=teams, shield=shield, opening=opening)


def _free_name(path: Path, taken: list[str]) -> str:
    name = shipped_teams.bare(path).name
    return f"{name} (2)" if name in taken else name


def words_of(world: str) -> InstructionFile:
    """Return the world's kinds with their meanings and phrases."""
    return read(instructions_of(world))


def prepare() -> None:
    """Configure JAX and the heaps of threads before anything is compiled: small programs run fastest on the CPU."""
    heaps.share_heaps()
    if "JAX_PLATFORMS" not in os.environ:
        jax.config.update("jax_platforms", "cpu")
