"""Watching a team: one episode step by step, as frames that every painter and page can show.

A frame is a plain dict, ready for JSON. It shows a moment: the picture, what was earned and what
happened on the way to it, and what is being done from it (macros, the instruction that governs
them, whether they comply). `play` makes a whole film; `start`, `say`, `advance` and `ending` are
its parts, for those who talk to the team while it plays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypedDict

import jax
import jax.numpy as jnp
import numpy as np

from mavic.instructions import suggest
from mavic.language import lexicon as lexicons
from mavic.language.lexicon import Lexicon
from mavic.language.text import fold
from mavic.study import policy as policies
from mavic.study.experiment import run_of
from mavic.study.methods import METHODS
from mavic.types import Array, Scene, World, replace
from mavic.world import instruct
from mavic.world.step import Setting, draws_for, interrupt, reset, step


class WatchError(ValueError):
    """A script asks for what cannot be given; the message says what would do."""


class Team(Protocol):
    """Who acts, such as a `TeamPolicy`; one that also has `values` shows what it expects."""

    def start(self) -> Any:
        """No memory."""

    def act(
        self,
        key: Array,
        carry: Any,
        observation: Array,
        text: Sequence[str | None],
        idle: Array,
        *,
        available: Array,
        greedy: bool,
    ) -> tuple[Array, Any]:
        """Macros [N] and the memory; agents that are not idle keep theirs."""


class Cue(NamedTuple):
    """A line of a script: before tick `tick`, these words are said."""

    tick: int
    words: str  # a phrase, a sentence of one's own, a kind's name, or "none" to end what is active
    agents: Sequence[str | int] | None = None  # names or numbers; None: all it is meant for
    hold: int | None = None  # ticks; None: until it is resolved or the episode ends


class Asked(TypedDict):
    """The active instruction."""

    number: int  # first of the episode: 1
    text: str
    kind: str
    agents: list[int]  # who is addressed
    left: int | None  # ticks it still governs, this one included; None: until the end
    held: int  # ticks it has governed


class Doing(TypedDict):
    """One agent in a moment."""

    name: str
    macro: str
    decided: bool  # chose its macro in this very moment
    complies: bool | None  # None: it is not addressed
    holds: str


class Verdict(TypedDict):
    """An instruction judged on the way to this moment."""

    number: int
    kind: str
    followed: bool


class Frame(TypedDict):
    """One moment of an episode."""

    time: int
    scene: dict[str, Any]  # width, height, sprites, notes: as in `mavic.types.Scene`
    agents: list[Doing]
    instruction: Asked | None
    reward: float  # the task's, of the tick that led here
    earned: float  # sum of these, undiscounted
    events: list[str]  # of the tick that led here
    verdicts: list[Verdict]
    refused: list[str]  # words said here that the state does not permit
    judged: int  # instructions judged so far
    followed: int  # how many of these were followed
    values: dict[str, float] | None  # V(h, c), mean over agents, by kind
    over: str  # "": goes on; "solved", "ended" or "time is up"


@dataclass(frozen=True, kw_only=True)
class Film:
    """An episode to look at."""

    name: str
    world: str
    agents: tuple[str, ...]
    kinds: tuple[str, ...]  # the first is "none"
    frames: tuple[Frame, ...]


@dataclass(frozen=True, kw_only=True)
class Show:
    """Who plays where."""

    team: Team
    setting: Setting
    lexicon: Lexicon
    hears: bool = True  # a team that never learned to listen is told nothing, yet judged
    greedy: bool = False


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Where an episode stands between two ticks."""

    world: World
    carry: Any
    spoken: Mapping[int, str] = field(
        default_factory=dict
    )  # sentences in spare rows of the lexicon
    reward: float = 0.0
    earned: float = 0.0
    events: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    refused: tuple[str, ...] = ()
    judged: int = 0
    followed: int = 0
    over: str = ""


_reset = jax.jit(reset)
_step = jax.jit(step)
_interrupt = jax.jit(interrupt)
_draws_for = jax.jit(draws_for)


@jax.jit
def _see(setting: Setting, world: World) -> tuple[Array, Array, Array]:
    """What everybody would see now, which kinds the state permits, and the key of their choices."""
    everything = replace(setting.rules, given=jnp.ones_like(setting.rules.given))
    permitted = instruct.possible_kinds(setting.env.check(world.state), everything)
    key = jax.random.fold_in(
        world.key, world.time
    )  # the rollout's: the same luck, the same choices
    return setting.env.observe(world.state), permitted, key


def play(
    team: Team,
    setting: Setting,
    lexicon: Lexicon,
    key: Array,
    script: Sequence[Cue | tuple] | None = None,
    ticks: int | None = None,
    *,
    name: str = "team",
    hears: bool = True,
    greedy: bool = False,
) -> Film:
    """One episode from its start to its end, or its first `ticks`.

    `script` replaces the setting's schedule. Two teams with the same key and script can be compared
    side by side: they meet the same luck.
    """
    cues = None if script is None else [Cue(*line) for line in script]
    if cues is not None:
        setting = replace(setting, schedule=instruct.schedule())
    show = Show(team=team, setting=setting, lexicon=lexicon, hears=hears, greedy=greedy)
    for cue in cues or ():  # a wrong script is refused before the curtain rises
        _meaning(lexicon, cue.words)
        _addressed(setting, cue.agents)
    moment = start(show, key)
    frames = []
    limit = setting.env.horizon if ticks is None else min(ticks, setting.env.horizon)
    while not moment.over and int(moment.world.time) < limit:
        for cue in cues or ():
            if cue.tick == int(moment.world.time):
                moment = say(show, moment, cue.words, cue.agents, cue.hold)
        frame, moment = advance(show, moment)
        frames.append(frame)
    frames.append(ending(show, moment))
    return Film(
        name=name,
        world=setting.env.name,
        agents=tuple(setting.env.agents),
        kinds=setting.rules.names,
        frames=tuple(frames),
    )


def film(
    path: str | Path,
    seed: int,
    script: Sequence[tuple[int, str, int]] = (),
    ticks: int | None = None,
) -> Film:
    """An episode of the team in a policy file: `script` has (tick, words, hold), none leaves it to the schedule it was
    trained under."""
    team = policies.load(path)
    cell, bench, preset = policies.origin(team)
    run = run_of(cell, preset, bench, seed)
    hears = METHODS[cell.method].instructions != "none"
    cues = [(tick, words, None, hold) for tick, words, hold in script] or None
    name = cell.method if cell.network == "protected" else f"{cell.method} ({cell.network})"
    return play(
        team, run.test, bench.lexicon, jax.random.key(seed), cues, ticks, name=name, hears=hears
    )


def start(show: Show, key: Array) -> Moment:
    """The first moment of an episode."""
    return Moment(world=_reset(show.setting, key), carry=show.team.start())


def say(
    show: Show,
    moment: Moment,
    words: str,
    agents: Sequence[str | int] | None = None,
    hold: int | None = None,
) -> Moment:
    """Give an instruction now, or end the active one ("none"); what the state forbids is refused."""
    kind, phrase, text = _meaning(show.lexicon, words)
    world, setting = moment.world, show.setting
    if not kind and not bool((world.instruction.kind > 0).any()):
        return moment
    if kind and not bool(_see(setting, world)[1][kind]):
        return dataclasses.replace(moment, refused=(*moment.refused, text))
    number = int(world.instruction.given)
    world, judgement = _interrupt(
        setting,
        world,
        jnp.int32(kind),
        jnp.int32(phrase),
        jnp.asarray(_addressed(setting, agents)),
        jnp.int32(instruct.FOREVER if hold is None else hold),
    )
    moment = dataclasses.replace(moment, world=world, spoken={**moment.spoken, phrase: text})
    return _judge(show, moment, number, judgement.closed, judgement.followed)


def advance(show: Show, moment: Moment) -> tuple[Frame, Moment]:
    """Everybody idle decides and the world moves one tick: the frame of this moment, and the next."""
    setting, world = show.setting, moment.world
    observation, _, key = _see(setting, world)
    texts = _texts(show, moment) if show.hears else [None] * len(setting.env.agents)
    values = _values(show, moment, observation)
    macro, carry = show.team.act(
        key,
        moment.carry,
        world.observation,
        texts,
        world.idle,
        available=world.available,
        greedy=show.greedy,
    )
    agents = len(setting.env.agents)
    after, row = _step(setting, world, jnp.asarray(macro, jnp.int32), _draws_for(world)[agents:])
    row = jax.device_get(row)
    addressed = row.kind > 0
    complies = [bool(c) if a else None for c, a in zip(row.complied, addressed, strict=True)]
    frame = _frame(show, moment, row.macro, row.fresh, complies, values)
    happened = tuple(
        name for name, times in zip(setting.env.events, row.events, strict=True) if times > 0
    )
    solved = bool(row.events[0] > 0)
    over = (
        "solved" if solved else "time is up" if row.truncated else "ended" if row.terminal else ""
    )
    moment = Moment(
        world=after,
        carry=carry,
        spoken=moment.spoken,
        reward=float(row.task),
        earned=moment.earned + float(row.task),
        events=happened,
        judged=moment.judged,
        followed=moment.followed,
        over=over,
    )
    return frame, _judge(show, moment, int(world.instruction.given), row.closed, row.followed)


def ending(show: Show, moment: Moment) -> Frame:
    """The frame of a moment from which nobody goes on."""
    macro = np.maximum(np.asarray(moment.world.macro), 0)
    nobody = np.zeros(len(macro), bool)
    return _frame(show, moment, macro, nobody, [None] * len(macro), None)


def plain(scene: Scene) -> dict[str, Any]:
    """A scene as JSON knows it."""
    made = dataclasses.asdict(scene)
    return {**made, "sprites": list(made["sprites"]), "notes": list(made["notes"])}


def _frame(
    show: Show,
    moment: Moment,
    macro: np.ndarray,
    fresh: np.ndarray,
    complies: Sequence[bool | None],
    values: dict[str, float] | None,
) -> Frame:
    env = show.setting.env
    scene = plain(env.scene(moment.world.state, jnp.asarray(macro)))
    robots = [sprite for sprite in scene["sprites"] if sprite["shape"] == "robot"]
    return Frame(
        time=int(moment.world.time),
        scene=scene,
        agents=[
            Doing(
                name=name,
                macro=env.macros[i](int(macro[i])).name,
                decided=bool(fresh[i]),
                complies=complies[i],
                holds=robots[i]["holds"] if i < len(robots) else "",
            )
            for i, name in enumerate(env.agents)
        ],
        instruction=_asked(show, moment),
        reward=moment.reward,
        earned=moment.earned,
        events=list(moment.events),
        verdicts=list(moment.verdicts),
        refused=list(moment.refused),
        judged=moment.judged,
        followed=moment.followed,
        values=values,
        over=moment.over,
    )


def _asked(show: Show, moment: Moment) -> Asked | None:
    instruction = jax.device_get(moment.world.instruction)
    kind = int(instruction.kind.max())
    if not kind or moment.over:
        return None
    name = show.setting.rules.names[kind]
    said = [text for text in _texts(show, moment) if text]
    return Asked(
        number=int(instruction.given),
        text=said[0] if said else name,
        kind=name,
        agents=np.flatnonzero(instruction.kind).tolist(),
        left=None if instruction.left > instruct.FOREVER // 2 else int(instruction.left),
        held=int(instruction.held),
    )


def _texts(show: Show, moment: Moment) -> list[str | None]:
    """What each agent is being told."""
    rows = np.asarray(moment.world.instruction.phrase).tolist()
    return [moment.spoken.get(row) or show.lexicon.texts[row] or None for row in rows]


def _values(show: Show, moment: Moment, observation: Array) -> dict[str, float] | None:
    values = getattr(show.team, "values", None)
    if values is None:
        return None
    found = values(moment.carry, observation)
    return {kind: float(np.mean(value)) for kind, value in found.items()}


def _judge(show: Show, moment: Moment, number: int, closed: Any, followed: Any) -> Moment:
    if not int(closed):
        return moment
    verdict = Verdict(
        number=number, kind=show.setting.rules.names[int(closed)], followed=bool(followed)
    )
    return dataclasses.replace(
        moment,
        verdicts=(*moment.verdicts, verdict),
        judged=moment.judged + 1,
        followed=moment.followed + bool(followed),
    )


def _meaning(lexicon: Lexicon, words: str) -> tuple[int, int, str]:
    """Kind, row of the lexicon and text of what is said."""
    if words in lexicon.names:
        kind = lexicon.names.index(words)
        row = int(lexicon.table[kind, 0])
        return kind, row, lexicon.texts[row]
    known = [fold(text) for text in lexicon.texts]
    if fold(words) and fold(words) in known:
        row = known.index(fold(words))
        return int(lexicon.kind[row]), row, lexicon.texts[row]
    understood = lexicon.understand(words)
    kind_name = understood.asked()
    if kind_name not in lexicon.names[1:]:
        near = ", ".join(repr(phrase) for phrase, _, _ in understood.nearest)
        raise WatchError(f"it is not clear what {words!r} asks for; near it: {near or 'nothing'}")
    return lexicon.names.index(kind_name), lexicons.spare_row(lexicon), words


def _addressed(setting: Setting, agents: Sequence[str | int] | None) -> np.ndarray:
    """[N] bool: to whom it is said."""
    names = tuple(setting.env.agents)
    if agents is None:
        return np.ones(len(names), bool)
    chosen = np.zeros(len(names), bool)
    for agent in agents:
        if isinstance(agent, str):
            if agent not in names:
                raise WatchError(f"no agent is called {agent!r}; {suggest(agent, names)}")
            agent = names.index(agent)
        if not 0 <= agent < len(names):
            raise WatchError(f"agent {agent} is not one of 0 to {len(names) - 1}")
        chosen[agent] = True
    return chosen
