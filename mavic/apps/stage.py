"""Watching a team: one episode step by step, as frames that every painter and page can show.

A frame is a plain dict, ready for JSON. It shows a moment: the picture, what was earned and what
happened on the way to it, and what is being done from it (macros, the instruction that governs
them, whether they comply). `play` makes a whole film; `stage`, `start`, `hear`, `say`, `advance` and
`ending` are its parts, for those who talk to the team, or play along, while it plays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol, TypedDict

import jax
import jax.numpy as jnp
import numpy as np

from mavic.experiments import policy_file as policies
from mavic.experiments.config import make_task, run_of
from mavic.experiments.methods import METHODS
from mavic.experiments.policy_file import Carry, TeamPolicy, Text
from mavic.hints import suggest
from mavic.instruct import schedule
from mavic.language import lexicon as lexicons
from mavic.language.lexicon import Lexicon
from mavic.language.text import fold
from mavic.learn import act as deciding
from mavic.learn import networks
from mavic.learn.networks import Net, Shape
from mavic.rollout.step import InstructedEnv, draws_for, interrupt, reset, step
from mavic.types import Array, InstructedState, Instruction, Scene, replace

RESTS = ("STAY", "WAIT")  # macros of an agent whose driver asks for nothing
REMEMBERED = 256  # sentences whose vectors a team keeps at hand
SHOWN = (  # of a tick's `Timestep`
    *("macro", "fresh", "kind", "complied", "task", "events"),
    *("terminal", "truncated", "closed", "followed"),
)
CLOSEST = 3  # kinds offered to who was not understood


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


class Crew(TeamPolicy):
    """A policy's team made fast for episodes watched one by one: what its networks make of a phrase
    is worked out once. It may play in a world with more agents than it has; those beyond are
    people's."""

    def __init__(self, weights: policies.Weights, facts: dict[str, Any]) -> None:
        super().__init__(weights, facts)
        self._nets = lru_cache(REMEMBERED)(self._nets_for)

    def _nets_for(self, said: tuple[str, ...]) -> tuple[Net, Net]:
        """Actors and critics with phrases: silence, each kind's example, then what is being said."""
        texts = (*self.facts["examples"], *said)
        blank = np.zeros((1, self.shape.embedding), np.float32)
        rows = [blank, lexicons.vectors(texts, self.facts["encoder"]) if texts else blank[:0]]
        rows.append(np.repeat(blank, self.shape.agents - len(said), 0))
        made = _with_phrases((self.weights.actor, self.weights.critic), np.concatenate(rows))
        if not said:
            return made
        actor, critic = (  # a phrase is remembered, not another copy of the weights
            Net(known.trunk, new.table) for known, new in zip(self._nets(()), made, strict=True)
        )
        return actor, critic

    def act(
        self,
        key: Array,
        carry: Carry,
        observation: Array,
        text: Text = None,
        idle: Array | None = None,
        *,
        available: Array | None = None,
        greedy: bool = False,
    ) -> tuple[Array, Carry]:
        """As the policy's; macros of agents beyond the team are 0."""
        if idle is None or available is None or text is None or isinstance(text, str):
            return super().act(
                key, carry, observation, text, idle, available=available, greedy=greedy
            )
        heard = self.listen(text)
        return _decide(self.shape, *heard, key, carry, observation, idle, available, greedy)

    def listen(self, text: Sequence[str | None]) -> tuple[tuple[Net, Net], np.ndarray]:
        """Networks that know what is being said, and the row of their phrases each agent hears."""
        own = tuple(text)[: self.shape.agents]
        said = tuple(sorted({t for t in own if t}))
        rows = [1 + len(self.kinds) + said.index(t) if t else 0 for t in own]
        return self._nets(said), np.array(rows, np.int32)

    def values(self, carry: Carry, observation: Array, text: Text = None) -> dict[str, np.ndarray]:
        """As the policy's."""
        if text is not None:
            return super().values(carry, observation, text)
        names = ("none", *self.kinds)
        net = self._nets(())[1]
        found = _expect(self.shape, self.addressed, net, self.weights.scale, carry, observation)
        return dict(zip(names, np.asarray(found), strict=True))


_with_phrases = jax.jit(
    lambda params, vectors: tuple(deciding.with_phrases(one, vectors) for one in params)
)


@partial(jax.jit, static_argnames="shape")
def _decide(
    shape: Shape,
    nets_: tuple[Net, Net],
    rows: Array,
    key: Array,
    carry: Carry,
    observation: Array,
    idle: Array,
    available: Array,
    greedy: Array | bool,
) -> tuple[Array, Carry]:
    """What `TeamPolicy.act` gives, with networks that know the phrases already."""
    own, beyond = shape.agents, observation.shape[0] - shape.agents
    observation, idle, available = observation[:own], idle[:own], available[:own]
    seen = deciding.Seen(observation[None], carry.macro[None], rows[None])
    logits, actor = deciding.logits(shape, nets_[0], carry.actor, seen, idle[None])
    _, critic = deciding.heads(shape, nets_[1], carry.critic, seen, idle[None])
    draws = jax.random.uniform(key, (own,))
    chosen = deciding.choose(logits[:, 0], available, jnp.zeros(own), draws, jnp.asarray(greedy))
    macro = jnp.where(idle, chosen, carry.macro)
    return jnp.pad(macro, (0, beyond)), Carry(actor=actor, critic=critic, macro=macro)


@partial(jax.jit, static_argnames="shape")
def _expect(
    shape: Shape,
    addressed: Array,
    net: Net,
    scale: networks.Scale,
    carry: Carry,
    observation: Array,
) -> Array:
    """V(h, c) [C, N] of every kind, a lane each, said to those it addresses [C, N]."""
    kinds, own = addressed.shape

    def lanes(one: Array, axis: int) -> Array:
        return jnp.repeat(jnp.expand_dims(one, axis), kinds, axis)

    kind = jnp.arange(kinds)
    seen = deciding.Seen(
        lanes(observation[:own], 0), lanes(carry.macro, 0), jnp.where(addressed, kind[:, None], 0)
    )
    memory = lanes(carry.critic[:, :, 0], 2)
    heads, _ = deciding.heads(shape, net, memory, seen, jnp.ones((kinds, own), bool))
    return jax.vmap(lambda h, s: networks.value(h[None], kind > 0, s))(heads, scale).T


class Heard(NamedTuple):
    """What words were taken for."""

    text: str
    kind: str  # the best guess, even when unsure
    row: int  # of the lexicon
    probability: float
    unsure: bool
    nearest: tuple[tuple[str, str, float], ...]  # phrase, its kind, cosine
    closest: tuple[str, ...]  # kinds, the likeliest first
    note: str  # why not, where the text itself is the reason


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
    setting: InstructedEnv
    lexicon: Lexicon
    hears: bool = True  # a team that never learned to listen is told nothing, yet judged
    greedy: bool = False
    seats: tuple[int, ...] = ()  # agents that people drive
    name: str = "team"

    def __post_init__(self) -> None:
        agents = self.setting.env.agents
        for seat in self.seats:
            if not 0 <= seat < len(agents):
                raise WatchError(f"seat {seat} is not one of 0 to {len(agents) - 1}")

    @property
    def film(self) -> Film:
        """A film of it without frames."""
        env = self.setting.env
        return Film(
            name=self.name,
            world=env.name,
            agents=tuple(env.agents),
            kinds=self.setting.rules.names,
            frames=(),
        )


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Where an episode stands between two ticks."""

    world: InstructedState
    carry: Any
    asked: Instruction  # the world's, on the host
    time: int = 0
    spoken: Mapping[int, str] = field(
        default_factory=dict
    )  # what was said, by the row of the lexicon that stands for it
    reward: float = 0.0
    earned: float = 0.0
    events: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    refused: tuple[str, ...] = ()
    judged: int = 0
    followed: int = 0
    over: str = ""


_reset = jax.jit(reset)
_interrupt = jax.jit(interrupt)


@jax.jit
def _permitted(setting: InstructedEnv, world: InstructedState) -> Array:
    """[C] the kinds that the state permits."""
    everything = replace(setting.rules, given=jnp.ones_like(setting.rules.given))
    return schedule.possible_kinds(setting.env.check(world.state), everything)


@jax.jit
def _prepare(
    setting: InstructedEnv, world: InstructedState, seated: Array, wish: Array, rest: Array
) -> tuple[InstructedState, Array, Array, Array]:
    """The world in which everybody with a wish decides; what everybody would see; the macros [N] of
    those who are driven, -1 where the team decides or a macro goes on; the key of the choices."""
    observation, available = setting.env.observe(world.state), setting.env.available(world.state)
    macros = jnp.arange(available.shape[1])
    may = jnp.any(available & (macros == wish[:, None]), axis=1)
    now = seated & may
    after = replace(
        world,
        idle=world.idle | now,
        observation=jnp.where(now[:, None], observation, world.observation),
        available=jnp.where(now[:, None], available, world.available),
    )
    driven = jnp.where(now, wish, jnp.where(seated & world.idle, rest, -1))
    # the rollout's key: the same luck, the same choices
    return after, observation, driven, jax.random.fold_in(world.key, world.time)


@jax.jit
def _move(
    setting: InstructedEnv, world: InstructedState, macro: Array, driven: Array
) -> tuple[InstructedState, dict[str, Array]]:
    """The world after the tick, and those parts of its row that a frame shows."""
    choice = jnp.where(driven >= 0, driven, macro)
    after, row = step(setting, world, choice, draws_for(world)[macro.shape[0] :])
    return after, {name: getattr(row, name) for name in SHOWN}


class Turn(NamedTuple):
    """What a tick leads to: the next world and memory, and what the frame before it shows."""

    world: InstructedState
    carry: Any
    made: dict[str, Array]  # the parts of its row named in SHOWN
    state: Any  # before the tick
    asked: Instruction  # after it
    values: Any  # [C] mean over agents, or None


@partial(jax.jit, static_argnames="shape")
def _turn_of_crew(
    shape: Shape,
    setting: InstructedEnv,
    heard: tuple[tuple[Net, Net], Array],
    scale: networks.Scale,
    world: InstructedState,
    carry: Carry,
    greedy: Array | bool,
    *people: Array,
) -> Turn:
    """A tick in one program; `_turn` says it step by step."""
    world, observation, driven, key = _prepare(setting, world, *people)
    addressed = setting.rules.addressed[:, : shape.agents]
    values = _expect(shape, addressed, heard[0][1], scale, carry, observation).mean(1)
    seen = world.observation, world.idle, world.available
    macro, carry = _decide(shape, *heard, key, carry, *seen, greedy)
    after, made = _move(setting, world, macro, driven)
    carry = replace(carry, macro=made["macro"][: shape.agents])
    return Turn(after, carry, made, world.state, after.instruction, values)


def _turn(show: Show, moment: Moment, texts: Sequence[str | None], *people: np.ndarray) -> Turn:
    """Whoever the team is: everybody looks, decides and moves."""
    team, setting = show.team, show.setting
    if isinstance(team, Crew):
        heard, scale = team.listen(texts), team.weights.scale
        given = moment.world, moment.carry, show.greedy
        return _turn_of_crew(team.shape, setting, heard, scale, *given, *people)
    if show.seats:
        raise WatchError("people can only play beside a `Crew`")
    world, observation, driven, key = _prepare(setting, moment.world, *people)
    values = getattr(team, "values", lambda *_: None)(moment.carry, observation)
    if values is not None:
        values = np.stack(list(values.values())).mean(1)
    seen = dict(idle=world.idle, available=world.available, greedy=show.greedy)
    macro, carry = team.act(key, moment.carry, world.observation, texts, **seen)
    after, made = _move(setting, world, jnp.asarray(macro, jnp.int32), driven)
    return Turn(after, carry, made, world.state, after.instruction, values)


@lru_cache(16)
def _rests(macros: tuple[type, ...]) -> np.ndarray:
    """[N] what an agent does whose driver asks for nothing; -1: what the team would."""
    found = [[macro[name] for name in RESTS if name in macro.__members__] for macro in macros]  # type: ignore[index, attr-defined]
    return np.array([int(names[0]) if names else -1 for names in found], np.int32)


def play(
    team: Team,
    setting: InstructedEnv,
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
    side by side: they meet the same threefry.
    """
    cues = None if script is None else [Cue(*line) for line in script]
    if cues is not None:
        setting = replace(setting, schedule=schedule.make_schedule())
    show = Show(team=team, setting=setting, lexicon=lexicon, hears=hears, greedy=greedy, name=name)
    for cue in cues or ():  # a wrong script is refused before the curtain rises
        _meaning(lexicon, cue.words)
        _addressed(setting, cue.agents)
    moment = start(show, key)
    frames = []
    limit = setting.env.horizon if ticks is None else min(ticks, setting.env.horizon)
    while not moment.over and moment.time < limit:
        for cue in cues or ():
            if cue.tick == moment.time:
                moment = say(show, moment, cue.words, cue.agents, cue.hold)
        frame, moment = advance(show, moment)
        frames.append(frame)
    frames.append(ending(show, moment))
    return dataclasses.replace(show.film, frames=tuple(frames))


def film(
    path: str | Path,
    seed: int,
    script: Sequence[tuple[int, str, int]] = (),
    ticks: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Film:
    """An episode of the team in a policy file: `script` has (tick, words, hold), none leaves it to the schedule it was
    trained under."""
    show = stage(path, options=options)
    cues = [(tick, words, None, hold) for tick, words, hold in script] or None
    return play(
        show.team,
        show.setting,
        show.lexicon,
        jax.random.key(seed),
        cues,
        ticks,
        name=show.name,
        hears=show.hears,
    )


def stage(
    path: str | Path, *, guest: bool = False, options: Mapping[str, Any] | None = None
) -> Show:
    """The team in a policy file, where it was trained, but for other `options` of the world. `guest`: with one agent
    more, who is driven; only in a world whose agents are as many as one likes (Overcooked's third cook)."""
    loaded = policies.load(path)
    team = Crew(loaded.weights, loaded.facts)
    cell, bench, preset = policies.origin(team)
    if options:
        bench = make_task(cell.world, **{**cell.options, **options})
    if guest:
        if not takes_guest(team.facts):
            raise WatchError(f"nobody can join this team of {cell.world}")
        more = {**cell.options, "cooks": len(team.agents) + 1, "third_cook": False}
        bench = make_task(cell.world, **more)
    return Show(
        team=team,
        setting=run_of(cell, preset, bench, 0).test,
        lexicon=bench.lexicon,
        hears=METHODS[cell.method].instructions != "none",
        seats=(len(team.agents),) if guest else (),
        name=cell.method if cell.network == "protected" else f"{cell.method} ({cell.network})",
    )


def takes_guest(facts: Mapping[str, Any]) -> bool:
    """Whether a third cook can join the team of a policy file: two cooks of the study's rules see
    whoever is there."""
    rules = facts["cell"]["options"].get("rules", "paper")
    return facts["world"] == "overcooked" and len(facts["agents"]) == 2 and rules == "paper"


def start(show: Show, key: Array) -> Moment:
    """The first moment of an episode."""
    world = _reset(show.setting, key)
    return Moment(world=world, carry=show.team.start(), asked=jax.device_get(world.instruction))


def say(
    show: Show,
    moment: Moment,
    words: str | Heard,
    agents: Sequence[str | int] | None = None,
    hold: int | None = None,
) -> Moment:
    """Give an instruction now, or end the active one ("none"); what the state forbids is refused.
    People in seats are not addressed unless they are named."""
    kind, phrase, text = _meaning(show.lexicon, words)
    world, setting = moment.world, show.setting
    if not kind and not moment.asked.kind.any():
        return moment
    if kind and not bool(_permitted(setting, world)[kind]):
        return dataclasses.replace(moment, refused=(*moment.refused, text))
    number = int(moment.asked.given)
    world, judgement = _interrupt(
        setting,
        world,
        jnp.int32(kind),
        jnp.int32(phrase),
        jnp.asarray(_addressed(setting, agents, show.seats)),
        jnp.int32(schedule.FOREVER if hold is None else hold),
    )
    moment = dataclasses.replace(
        moment,
        world=world,
        asked=jax.device_get(world.instruction),
        spoken={**moment.spoken, phrase: text},
    )
    return _judge(show, moment, number, judgement.closed, judgement.followed)


def advance(
    show: Show, moment: Moment, wishes: Mapping[int, int] | None = None
) -> tuple[Frame, Moment]:
    """Everybody idle decides and the world moves one tick: the frame of this moment, and the next.

    `wishes`: macros by agent that people in their seats ask for now; it ends what they were doing.
    """
    setting = show.setting
    agents = len(setting.env.agents)
    seated, wish = np.zeros(agents, bool), np.full(agents, -1, np.int32)
    seated[list(show.seats)] = True
    for agent, wanted in (wishes or {}).items():
        wish[agent] = wanted
    rest = _rests(tuple(setting.env.macros))
    texts = _heard(show, moment) if show.hears else [None] * agents
    turn = _turn(show, moment, texts, seated, wish, rest)
    shown = turn.made, turn.state, turn.asked, turn.values
    made, state, asked, expected = jax.tree.map(np.asarray, shown)
    row = SimpleNamespace(**made)
    complies = [bool(c) if k else None for c, k in zip(row.complied, row.kind, strict=True)]
    values = None
    if expected is not None:
        values = dict(zip(setting.rules.names, expected.tolist(), strict=True))
    frame = _frame(show, moment, state, row.macro, row.fresh, complies, values)
    happened = tuple(
        name for name, times in zip(setting.env.events, row.events, strict=True) if times > 0
    )
    solved = bool(row.events[0] > 0)
    over = (
        "solved" if solved else "time is up" if row.truncated else "ended" if row.terminal else ""
    )
    later = Moment(
        world=turn.world,
        carry=turn.carry,
        asked=asked,
        time=moment.time + 1,
        spoken=moment.spoken,
        reward=float(row.task),
        earned=moment.earned + float(row.task),
        events=happened,
        judged=moment.judged,
        followed=moment.followed,
        over=over,
    )
    return frame, _judge(show, later, int(moment.asked.given), row.closed, row.followed)


def ending(show: Show, moment: Moment) -> Frame:
    """The frame of a moment from which nobody goes on."""
    world = jax.device_get(replace(moment.world, key=None))
    macro = np.maximum(world.macro, 0)
    nobody = np.zeros(len(macro), bool)
    return _frame(show, moment, world.state, macro, nobody, [None] * len(macro), None)


def plain(scene: Scene) -> dict[str, Any]:
    """A scene as JSON knows it."""
    sprites = [dict(vars(sprite)) for sprite in scene.sprites]
    return {**vars(scene), "sprites": sprites, "notes": list(scene.notes)}


def _frame(
    show: Show,
    moment: Moment,
    state: Any,
    macro: np.ndarray,
    fresh: np.ndarray,
    complies: Sequence[bool | None],
    values: dict[str, float] | None,
) -> Frame:
    env = show.setting.env
    scene = plain(env.scene(state, macro))  # type: ignore[arg-type]
    robots = [sprite for sprite in scene["sprites"] if sprite["shape"] == "robot"]
    return Frame(
        time=moment.time,
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
    instruction = moment.asked
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
        left=None if instruction.left > schedule.FOREVER // 2 else int(instruction.left),
        held=int(instruction.held),
    )


def _texts(show: Show, moment: Moment) -> list[str | None]:
    """What each agent is being told, as it was said."""
    rows = np.asarray(moment.asked.phrase).tolist()
    return [moment.spoken.get(row) or show.lexicon.texts[row] or None for row in rows]


def _heard(show: Show, moment: Moment) -> list[str | None]:
    """What each agent hears of it: a phrase of the lexicon, or a sentence in a spare row."""
    rows = np.asarray(moment.asked.phrase).tolist()
    return [show.lexicon.texts[row] or moment.spoken.get(row) or None for row in rows]


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


def hear(lexicon: Lexicon, words: str, own_words: bool = False) -> Heard:
    """What words are taken for: a kind's name, a phrase of the lexicon, or a sentence of one's own. A team hears such a
    sentence as the trained phrase nearest to it of the kind it is understood as; with `own_words`, as it is."""
    if words in lexicon.names:
        row = int(lexicon.table[lexicon.names.index(words), 0])
        return Heard(lexicon.texts[row], words, row, 1.0, False, (), (), "")
    known, folded = _folded(lexicon.texts), fold(words)
    if folded and folded in known:
        row = known[folded]
        name = lexicon.names[int(lexicon.kind[row])]
        return Heard(lexicon.texts[row], name, row, 1.0, False, (), (), "")
    found = lexicon.understand(words)
    shares = {kind: share for kind, share in found.probabilities.items() if kind in lexicon.names}
    ranked = sorted(list(lexicon.names[1:]), key=lambda kind: -shares.get(kind, 0.0))
    unsure = found.unsure or found.kind not in lexicon.names[1:]
    row = lexicons.spare_row(lexicon)
    if not (unsure or own_words):
        vector = lexicons.vectors([words], lexicon.encoder)[0]
        row = lexicons.closest(lexicon, vector, lexicon.names.index(found.kind))
    return Heard(
        text=words,
        kind=found.kind,
        row=row,
        probability=found.probability,
        unsure=unsure,
        nearest=found.nearest,
        closest=tuple(ranked[:CLOSEST]),
        note=found.note,
    )


@lru_cache(8)
def _folded(texts: tuple[str, ...]) -> dict[str, int]:
    """Rows of the lexicon by what is said, the first of each."""
    rows: dict[str, int] = {}
    for row, text in enumerate(texts):
        if text:
            rows.setdefault(fold(text), row)
    return rows


def _meaning(lexicon: Lexicon, words: str | Heard) -> tuple[int, int, str]:
    """Kind, row of the lexicon and text of what is said."""
    heard = hear(lexicon, words) if isinstance(words, str) else words
    if heard.unsure:
        near = ", ".join(repr(phrase) for phrase, _, _ in heard.nearest)
        raise WatchError(
            f"it is not clear what {heard.text!r} asks for; near it: {near or 'nothing'}"
        )
    return lexicon.names.index(heard.kind), heard.row, heard.text


def _addressed(
    setting: InstructedEnv, agents: Sequence[str | int] | None, seats: Sequence[int] = ()
) -> np.ndarray:
    """[N] bool: to whom it is said."""
    names = tuple(setting.env.agents)
    if agents is None:
        return ~np.isin(np.arange(len(names)), seats)
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
