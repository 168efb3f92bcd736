"""Which teams can be played with, and their stages. Each stage is compiled once for all pages."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from mavic.apps.frames import frame_of
from mavic.apps.playground import seen
from mavic.apps.playground.limits import RequestError
from mavic.apps.playground.messages import Hello
from mavic.envs import api
from mavic.experiment import talk
from mavic.experiment.methods import METHODS
from mavic.experiment.task import instructions_of
from mavic.hints import suggest, unknown
from mavic.instruct import schedule
from mavic.language.encoder import EncoderError
from mavic.language.lexicon import Lexicon
from mavic.language.reader.read import understand
from mavic.teams import facts as policy_facts
from mavic.teams import file as policy_files
from mavic.teams import shipped as shipped_teams
from mavic.teams import stage as stages
from mavic.teams.stage import Stage
from mavic.types import replace

WORDS = {  # what pages call the shipped teams, in the order of the list
    "mavic": "with the correction",
    "naive": "without the correction",
    "mavic-paper": "with the correction, in the paper's setting",
    "naive-paper": "without the correction, in the paper's setting",
}
UNKNOWN_SENTENCE = "what is the weather like today"  # reading it loads the encoder


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """A team's policy file."""

    name: str
    world: str
    path: Path
    agents: tuple[str, ...]
    guest: bool  # a person can join as one more agent
    method: str  # how it was trained
    setting: Mapping[str, Any]  # what else its training was configured with
    collapsed: Mapping[str, float]  # kinds under which it hardly does its task
    gamma: float  # the discount of its training


def _entries(folder: Path) -> list[_Entry]:
    """Return the teams in `folder/<world>/<name>.json`, in the order of the worlds and of `WORDS`."""
    found = [
        _entry_of(path, path.stem)
        for world in api.names()
        for path in sorted((folder / world).glob("*.json"))
        if shipped_teams.weights_of(path).is_file()
    ]
    rank = {name: number for number, name in enumerate(WORDS)}
    return sorted(found, key=lambda e: (api.names().index(e.world), rank.get(e.name, len(rank))))


def _entry_of(path: Path, name: str) -> _Entry:
    """Return the entry of a policy file or of a shipped team. The path may have an ending or none."""
    path = shipped_teams.find(path)
    facts = policy_facts.read_facts(path)
    if facts["world"] not in api.names():
        raise RequestError(f"{path}: {unknown('world', facts['world'], api.names())}")
    return _Entry(
        name=name,
        world=facts["world"],
        path=path,
        agents=tuple(facts["agents"]),
        guest=Stage.guest_options(facts) is not None,
        method=facts["config"]["method"],
        setting={k: v for k, v in facts["config"].items() if k != "method"},
        collapsed=facts.get("collapsed", {}),
        gamma=float(facts["preset"]["gamma"]),
    )


@dataclass(kw_only=True)
class Catalog:
    """The teams by world and name. A stage is made when it is first asked for, and then kept."""

    teams: dict[str, dict[str, _Entry]]
    shield: bool = False  # instructions are enforced
    opening: str = ""  # the world that a page opens
    _stages: dict[tuple[str, str, bool], Stage] = field(default_factory=dict)
    _compiled: set[tuple[str, str, bool]] = field(default_factory=set)
    _leaks: dict[tuple[str, str], tuple[float, float] | None] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _compiling: dict[tuple[str, bool], threading.Lock] = field(default_factory=dict)

    def entry(self, world: str, name: str) -> _Entry:
        """Return a team's entry, or raise a `RequestError` that says which teams there are."""
        if world not in self.teams:
            raise RequestError(
                f"no team for a world called {world!r}; {suggest(world, tuple(self.teams))}"
            )
        if name not in self.teams[world]:
            raise RequestError(
                f"no team is called {name!r}; {suggest(name, tuple(self.teams[world]))}"
            )
        return self.teams[world][name]

    def called(self, world: str, name: str) -> str:
        """Return what pages call a team: plain words for a shipped one, and else its name."""
        entry = self.entry(world, name)
        return WORDS.get(name, name) if name.split("-")[0] == entry.method else name

    def about(self, world: str, name: str) -> str:
        """Return what sort of team it is, and under which kinds it hardly does its task."""
        entry = self.entry(world, name)
        told = "; ".join(talk.kind_words(world, list(entry.collapsed)))
        beware = [f"It gives up its job when it is told: {told}."] if told else []
        return " ".join([METHODS[entry.method].about, *beware])

    def apart(self, world: str, names: Sequence[str]) -> str:
        """Return that teams were trained in different settings; empty if they were not."""
        first, *others = (self.entry(world, name).setting for name in names)
        return seen.APART if any(other != first for other in others) else ""

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
        episode = stage.start(jax.random.key(0))
        _, episode = stage.advance(episode)
        for kind in stage.lexicon.names[1:]:
            instructed = stage.say(episode, kind)
            if not instructed.refused:
                stage.advance(instructed)
                with contextlib.suppress(stages.StageError):  # they need not go together
                    stage.say(instructed, stage.lexicon.names[-1], also=True)
                break
        frame_of(stage, episode, episode.still())
        if not guest:
            self._leaks[world, name] = self._measure(world, name)
        self._compiled.add((world, name, guest))

    def leak(self, world: str, name: str) -> tuple[float, float] | None:
        """Return what a warm team expects without an instruction and what it earns, as `seen.expectation` does."""
        return self._leaks.get((world, name))

    def _measure(self, world: str, name: str) -> tuple[float, float] | None:
        stage = self.stage(world, name)
        episode = stage.start(jax.random.key(1))
        values, rewards = [], []
        while not episode.over:
            moment, episode = stage.advance(episode)
            values.append(moment.values)
            rewards.append(episode.reward)
        return seen.expectation(values, rewards, self.entry(world, name).gamma)

    def load_encoder(self, world: str) -> str:
        """Load the sentence encoder. Return why only the built-in phrases will be understood, or ""."""
        try:
            understand(Lexicon.load(instructions_of(world)), UNKNOWN_SENTENCE)
        except EncoderError as error:
            return str(error)
        return ""

    def listing(self) -> list[Hello.World]:
        """Return the worlds and their teams."""
        return [
            Hello.World(
                world=world,
                title=api.known(world).title or api.plain(world),
                teams=list(teams),
                team_words=[self.called(world, name) for name in teams],
                agents=list(_agents(teams)),
                agent_words=list(talk.names_of(world, _agents(teams))),
                guest=all(entry.guest for entry in teams.values()),
            )
            for world, teams in self.teams.items()
        ]


def _agents(teams: Mapping[str, _Entry]) -> tuple[str, ...]:
    return next(iter(teams.values())).agents


def open_catalog(
    folder: Path | None = None,
    policy: Path | None = None,
    against: Path | None = None,
    *,
    shield: bool = False,
) -> Catalog:
    """Return the catalog of teams.

    Args:
        folder: the teams, with a folder for each world. None: the shipped teams.
        policy: a policy file or shipped team, listed before them.
        against: another one of the same world, to compare with it.
        shield: enforce instructions: what they forbid is not available to the agents they address.
    """
    if against is not None and policy is None:
        raise RequestError("--against needs --policy: name both teams to compare")
    own: list[_Entry] = []
    for path in (policy, against):
        if path is not None:
            own.append(_entry_of(path, _free_name(path, [entry.name for entry in own])))
    if len({entry.world for entry in own}) > 1:
        raise RequestError(
            f"{policy} plays {own[0].world}, {against} plays {own[1].world}: "
            "two teams side by side need one world"
        )
    for entry in own:
        policy_files.load(entry.path)  # a broken file is refused before a page is opened
    taken = {(entry.world, entry.name) for entry in own}
    folder = folder or shipped_teams.folder()
    found = own + [e for e in _entries(folder) if (e.world, e.name) not in taken]
    if not found:
        raise RequestError(
            f"no teams in {folder}; train one (mavic train box_pushing) and name it: "
            "mavic play --policy FILE, or name the folder of its world's folder: --policies FOLDER"
        )
    teams: dict[str, dict[str, _Entry]] = {}
    for entry in found:
        teams.setdefault(entry.world, {})[entry.name] = entry
    longer = [world for world in teams if api.world(world).opens_first]
    opening = own[0].world if own else (*longer, *teams)[0]
    return Catalog(teams=teams, shield=shield, opening=opening)


def _free_name(path: Path, taken: list[str]) -> str:
    name = shipped_teams.bare(path).name
    return f"{name} (2)" if name in taken else name
