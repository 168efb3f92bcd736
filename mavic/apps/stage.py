"""One team in one instructed environment, played tick by tick.

`open_stage` loads a team from its policy file. `start`, `say`, `advance` and `last_frame` play an episode; people may
talk to the team while it plays, or drive one of its agents. Each tick gives a frame (`mavic.apps.frames`).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from mavic.apps import turn
from mavic.apps.frames import ActiveInstruction, AgentFrame, Frame, Verdict, scene_as_json
from mavic.apps.hearing import Heard, hear
from mavic.apps.things import things_of
from mavic.apps.turn import Turn
from mavic.envs import api
from mavic.experiments import policy_file
from mavic.experiments.config import ExperimentConfig, task_of
from mavic.experiments.methods import METHODS
from mavic.experiments.policy_file import TeamPolicy
from mavic.experiments.runs import make_run
from mavic.hints import suggest
from mavic.instruct import pairs, schedule
from mavic.language.lexicon import Lexicon
from mavic.rollout.step import InstructedEnv, shielded
from mavic.types import Array, InstructedState, Instruction, replace


class StageError(ValueError):
    """A request cannot be carried out. The message says what is allowed."""


@runtime_checkable
class Team(Protocol):
    """Who acts, such as a `TeamPolicy`. If it also has `values`, frames show them."""

    def start(self) -> Any:
        """Return the memory at the start of an episode."""

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
        """Return the macros [N] and the memory. Agents that are not idle keep theirs."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A team, the instructed environment in which it plays, and the lexicon of what can be said to it."""

    team: Team
    instructed_env: InstructedEnv
    lexicon: Lexicon
    hears: bool = True  # False: the team hears nothing; whether it follows instructions is counted all the same
    own_words: bool = (
        False  # it hears a free sentence itself; otherwise the nearest training phrase of its kind
    )
    greedy: bool = False
    seats: tuple[int, ...] = ()  # agents that people drive
    resting_macros: tuple[str, ...] = ()  # what those agents do while nothing is asked of them
    name: str = "team"

    def __post_init__(self) -> None:
        agents = self.env.agents
        for seat in self.seats:
            if not 0 <= seat < len(agents):
                raise StageError(f"seat {seat} is not one of 0 to {len(agents) - 1}")

    @property
    def env(self) -> api.Env:
        """The environment without instructions."""
        return self.instructed_env.env

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of instruction; the first is "none"."""
        return self.instructed_env.rules.names


@dataclass(frozen=True, kw_only=True)
class Episode:
    """The state of an episode between two ticks."""

    state: InstructedState
    carry: Any  # the team's memory
    instruction: Instruction  # that of `state`, as numpy arrays
    also: Instruction | None = None  # the second one, likewise; None: nobody has said "also"
    numbers: tuple[int, int] = (0, 0)  # of the last that was given in each place, 1 for the first
    time: int = 0
    spoken: Mapping[tuple[int, bool], str] = field(default_factory=dict)
    """Sentences by their row of the lexicon and whether they are second instructions."""
    reward: float = 0.0
    earned: float = 0.0
    events: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    refused: tuple[str, ...] = ()
    judged: int = 0
    followed: int = 0
    over: str = ""

    @property
    def given(self) -> int:
        """The number of instructions that were given so far."""
        return int(self.instruction.given) + (0 if self.also is None else int(self.also.given))

    def now(self, instruction: Instruction, also: Instruction | None, **changes: Any) -> Episode:
        """Return the episode with these instructions. One that is new gets the next number."""
        changed = dataclasses.replace(self, instruction=instruction, also=also, **changes)
        before = 0 if self.also is None else int(self.also.given)
        first, second = self.numbers
        if int(instruction.given) > int(self.instruction.given):
            first = changed.given
        if also is not None and int(also.given) > before:
            second = changed.given
        return dataclasses.replace(changed, numbers=(first, second))


def open_stage(
    path: str | Path,
    *,
    guest: bool = False,
    options: Mapping[str, Any] | None = None,
    shield: bool = False,
) -> Stage:
    """Return the stage of a policy file: the environment in which its team was trained, with changed `options`.

    With `guest` one more agent joins the team, driven by a person. Worlds say whether that is possible (`World.guest`).
    With `shield`, what an instruction forbids is not available to the agents it addresses.
    """
    team = policy_file.load(path)
    config, task, preset = policy_file.origin(team)
    if options:
        task = task_of(config, **options)
    if guest:
        more = guest_options(team.facts)
        if more is None:
            raise StageError(f"nobody can join this team of {config.world}")
        task = task_of(config, **more)
    usual = ExperimentConfig(preset=config.preset).network
    return Stage(
        team=team,
        instructed_env=shielded(make_run(config, preset, task, 0).test_env, shield),
        lexicon=task.lexicon,
        hears=METHODS[config.method].hears,
        own_words=config.hear == "kinds",
        seats=(len(team.agents),) if guest else (),
        resting_macros=api.world(config.world).resting_macros,
        name=config.method if config.network == usual else f"{config.method} ({config.network})",
    )


def guest_options(facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options of the environment that seats one more agent beside a policy file's team.

    Return None if the world has no such seat, or if the team's agents would not see and do there what they learnt.
    """
    guest = api.world(facts["world"]).guest
    if guest is None:
        return None
    options = {**facts["config"]["options"], **guest}
    try:
        agents, macros, observation = _interface(facts["world"], json.dumps(options))
    except ValueError:  # these options do not go together
        return None
    own = len(facts["agents"])
    fits = (
        len(agents) == own + 1
        and list(agents[:own]) == list(facts["agents"])
        and macros[:own] == facts["macros"]
        and observation == facts["shape"]["observation"]
    )
    return options if fits else None


@lru_cache(16)
def _interface(world: str, options: str) -> tuple[tuple[str, ...], list[list[str]], int]:
    """Return the agents, their macros and the observation size of an environment; `options` are JSON."""
    env = api.make(world, **json.loads(options))
    seen = jax.eval_shape(lambda key: env.observe(env.reset(key)), jax.random.key(0))
    return env.agents, [[macro.name for macro in enum] for enum in env.macros], seen.shape[-1]


def start(stage: Stage, key: Array) -> Episode:
    """Return the start of an episode. The same key gives the same episode as the rollout."""
    state = turn.reset(stage.instructed_env, key)
    empty = schedule.nobody(len(stage.env.agents))
    episode = Episode(state=state, carry=stage.team.start(), instruction=jax.device_get(empty))
    return episode.now(*jax.device_get((state.instruction, state.also)))


def say(
    stage: Stage,
    episode: Episode,
    words: str | Heard,
    agents: Sequence[str | int] | None = None,
    hold: int | None = None,
    also: bool = False,
) -> Episode:
    """Return the episode with an instruction given now, or with what is active ended (words "none" or "never mind").

    `agents` are names or numbers; None addresses all agents that no person drives. `hold` is in ticks; None holds the
    instruction until it is resolved or the episode ends. What the state forbids is not given but noted in `refused`.
    A new instruction replaces what is active. With `also` it holds beside the active one. At most two hold at once, and
    two that cannot hold together are a `StageError`.
    """
    kind, phrase, text = meaning(stage.lexicon, words, stage.own_words)
    whom = addressed(stage.env, agents, stage.seats)
    held = [one is not None and bool(one.kind.any()) for one in (episode.instruction, episode.also)]
    if not kind and not any(held):
        return episode
    if kind and not bool(turn.permitted(stage.instructed_env, episode.state)[kind]):
        return dataclasses.replace(episode, refused=(*episode.refused, text))
    given = jnp.int32(kind), jnp.int32(phrase), jnp.asarray(whom)
    lasts = jnp.int32(schedule.FOREVER if hold is None else hold)
    if kind and also and any(held):
        if all(held):
            raise StageError("two instructions hold already; end them first, or replace both")
        other = episode.also if episode.also is not None and held[1] else episode.instruction
        rules = stage.instructed_env.rules
        asked = np.where(whom & np.asarray(rules.addressed)[kind], kind, 0)
        if why := pairs.conflict(stage.env, rules, other.kind, asked):
            raise StageError(why)
        return _given(stage, episode, phrase, text, *given, lasts, also=held[0])
    if held[1]:  # the new one replaces both
        nothing = jnp.int32(0)
        episode = _given(stage, episode, 0, "", nothing, nothing, given[2], nothing, also=True)
    return _given(stage, episode, phrase, text, *given, lasts, also=False)


def _given(
    stage: Stage, episode: Episode, phrase: int, text: str, *what: Array, also: bool
) -> Episode:
    """Return the episode with an instruction given in the second place or in the first, and the verdict on the one
    that was there. `what` are its kind, its phrase, whom it addresses and how long it holds."""
    number = episode.numbers[also]
    state, judgement = turn.interrupt(stage.instructed_env, episode.state, *what, also=also)
    episode = episode.now(
        *jax.device_get((state.instruction, state.also)),
        state=state,
        spoken={**episode.spoken, (phrase, also): text},
    )
    return _with_verdict(stage, episode, number, judgement.closed, judgement.followed)


def advance(
    stage: Stage, episode: Episode, wishes: Mapping[int, int] | None = None
) -> tuple[Frame, Episode]:
    """Let all idle agents decide and the environment run one tick. Return the frame of `episode` and the next episode.

    `wishes` are macros that people ask for now, by the agent they drive. A wish ends the agent's running macro.
    """
    agents = len(stage.env.agents)
    seated, wish = np.zeros(agents, bool), np.full(agents, -1, np.int32)
    seated[list(stage.seats)] = True
    for agent, macro in (wishes or {}).items():
        wish[agent] = macro
    rest = _resting(tuple(stage.env.macros), stage.resting_macros)
    also_heard = None if episode.also is None else _heard_texts(stage, episode, also=True)
    heard = _heard_texts(stage, episode, also=False), also_heard
    made = _turn(stage, episode, *heard, seated, wish, rest)
    shown = made.row, made.before, made.instruction, made.also, made.values
    row, before, instruction, also, values = jax.tree.map(np.asarray, shown)
    row = SimpleNamespace(**row)
    told, complied = row.kind > 0, row.complied
    if row.also is not None:
        told, complied = told | (row.also.kind > 0), complied & row.also.complied
    complies = [bool(c) if k else None for c, k in zip(complied, told, strict=True)]
    values = None if values is None else dict(zip(stage.kinds, values.tolist(), strict=True))
    frame = _frame(stage, episode, before, row.macro, row.fresh, complies, values)
    following = episode.now(
        instruction,
        also,
        state=made.after,
        carry=made.carry,
        time=episode.time + 1,
        verdicts=(),
        refused=(),
        reward=float(row.task_reward),
        earned=episode.earned + float(row.task_reward),
        events=tuple(
            name for name, count in zip(stage.env.events, row.events, strict=True) if count > 0
        ),
        over=_how_it_ended(row),
    )
    for number, one in zip(episode.numbers, (row, row.also), strict=True):
        if one is not None:
            following = _with_verdict(stage, following, number, one.closed, one.followed)
    return frame, following


def last_frame(stage: Stage, episode: Episode) -> Frame:
    """Return the frame of an episode in which nobody decides any more."""
    state = jax.device_get(replace(episode.state, key=None))
    macro = np.maximum(state.macro, 0)
    nobody = np.zeros(len(macro), bool)
    return _frame(stage, episode, state.state, macro, nobody, [None] * len(macro), None)


def meaning(lexicon: Lexicon, words: str | Heard, own_words: bool = False) -> tuple[int, int, str]:
    """Return the kind, the row of the lexicon and the text of what is said. Raise `StageError` if it is unclear.

    Words that end what holds give 0, 0 and no text.
    """
    heard = hear(lexicon, words) if isinstance(words, str) else words
    if heard.ends:
        return 0, 0, ""
    if heard.nothing:
        raise StageError(f"{heard.text!r} asks for nothing")
    if heard.unsure:
        near = ", ".join(repr(phrase) for phrase, _, _ in heard.nearest)
        raise StageError(
            f"it is not clear what {heard.text!r} asks for; near it: {near or 'nothing'}"
        )
    row = heard.own_row if own_words else heard.row
    return lexicon.names.index(heard.kind), row, heard.text


def addressed(
    env: api.Env, agents: Sequence[str | int] | None, seats: Sequence[int] = ()
) -> np.ndarray:
    """Return bool [N], the agents named or numbered in `agents`; None is everybody who is not in a seat."""
    names = tuple(env.agents)
    if agents is None:
        return ~np.isin(np.arange(len(names)), seats)
    chosen = np.zeros(len(names), bool)
    for agent in agents:
        if isinstance(agent, str):
            if agent not in names:
                raise StageError(f"no agent is called {agent!r}; {suggest(agent, names)}")
            agent = names.index(agent)
        if not 0 <= agent < len(names):
            raise StageError(f"agent {agent} is not one of 0 to {len(names) - 1}")
        chosen[agent] = True
    return chosen


def _turn(
    stage: Stage,
    episode: Episode,
    texts: Sequence[str | None],
    also: Sequence[str | None] | None,
    *people: np.ndarray,
) -> Turn:
    """Return what a tick leads to. `people` are three arrays [N]: who is driven, their wishes, their resting macros."""
    team = stage.team
    if isinstance(team, TeamPolicy):
        return turn.turn_of_policy(
            team.networks,
            stage.instructed_env,
            team.listen(texts[: team.shape.agents], also and also[: team.shape.agents]),
            team.weights.scale,
            episode.state,
            episode.carry,
            stage.greedy,
            *people,
        )
    if stage.seats:
        raise StageError("people can only play beside a team from a policy file")
    state, observation, driven, key = turn.prepare(stage.instructed_env, episode.state, *people)
    values = getattr(team, "values", lambda *_: None)(episode.carry, observation)
    if values is not None:
        values = np.stack(list(values.values())).mean(1)
    seen = dict(idle=state.idle, available=state.available, greedy=stage.greedy)
    if also is not None and any(also):
        seen["also"] = also
    macro, carry = team.act(key, episode.carry, state.observation, texts, **seen)
    after, row = turn.move(stage.instructed_env, state, jnp.asarray(macro, jnp.int32), driven)
    return Turn(after, carry, row, state.state, after.instruction, after.also, values)


@lru_cache(16)
def _resting(macros: tuple[type[IntEnum], ...], names: tuple[str, ...]) -> np.ndarray:
    """Return the number of each agent's resting macro [N], -1 where it has none."""
    found = [[enum[name] for name in names if name in enum.__members__] for enum in macros]
    return np.array([int(one[0]) if one else -1 for one in found], np.int32)


def _how_it_ended(row: SimpleNamespace) -> str:
    if row.events[0] > 0:
        return "solved"
    return "time is up" if row.truncated else "ended" if row.terminal else ""


def _frame(
    stage: Stage,
    episode: Episode,
    state: Any,
    macro: np.ndarray,
    fresh: np.ndarray,
    complies: Sequence[bool | None],
    values: dict[str, float] | None,
) -> Frame:
    env, world = stage.env, api.known(stage.env.name)
    scene = scene_as_json(env.scene(state, macro))
    robots = [sprite for sprite in scene["sprites"] if sprite["shape"] == "robot"]
    active, second = (_active(stage, episode, also) for also in (False, True))
    if second and not active:  # one alone always stands in the first place
        active, second = second, None
    frame = Frame(
        time=episode.time,
        scene=scene,
        agents=[
            AgentFrame(
                name=name,
                macro=env.macros[i](int(macro[i])).name,
                doing=world.macro_word(env.macros[i](int(macro[i])).name),
                decided=bool(fresh[i]),
                complies=complies[i],
                holds=robots[i]["holds"] if i < len(robots) else "",
            )
            for i, name in enumerate(env.agents)
        ],
        instruction=active,
        reward=episode.reward,
        earned=episode.earned,
        events=list(episode.events),
        verdicts=list(episode.verdicts),
        refused=list(episode.refused),
        judged=episode.judged,
        followed=episode.followed,
        values=values,
        over=episode.over,
    )
    if second:
        frame["also"] = second
    return frame


def _active(stage: Stage, episode: Episode, also: bool) -> ActiveInstruction | None:
    instruction = episode.also if also else episode.instruction
    kind = 0 if instruction is None else int(instruction.kind.max())
    if instruction is None or not kind or episode.over:
        return None
    name = stage.kinds[kind]
    said = [text for text in _said_texts(stage, episode, also) if text]
    return ActiveInstruction(
        number=episode.numbers[also],
        text=said[0] if said else name,
        kind=name,
        agents=np.flatnonzero(instruction.kind).tolist(),
        left=None
        if instruction.ticks_left > schedule.FOREVER // 2
        else int(instruction.ticks_left),
        held=int(instruction.ticks_held),
        **things_of(stage.instructed_env, kind, tuple(np.flatnonzero(instruction.kind).tolist())),
    )


def _said_texts(stage: Stage, episode: Episode, also: bool) -> list[str | None]:
    """Return what is being said to each agent, in the speaker's words."""
    texts, spoken = stage.lexicon.texts, episode.spoken
    return [spoken.get((row, also)) or texts[row] or None for row in _rows(episode, also)]


def _heard_texts(stage: Stage, episode: Episode, also: bool) -> list[str | None]:
    """Return what each agent hears: a phrase of the lexicon, or a free sentence in a spare row."""
    texts, spoken = stage.lexicon.texts, episode.spoken
    if not stage.hears:
        return [None] * len(stage.env.agents)
    return [texts[row] or spoken.get((row, also)) or None for row in _rows(episode, also)]


def _rows(episode: Episode, also: bool) -> list[int]:
    """Return the row of the lexicon that is said to each agent."""
    instruction = episode.also if also else episode.instruction
    return [] if instruction is None else np.asarray(instruction.phrase).tolist()


def _with_verdict(
    stage: Stage, episode: Episode, number: int, closed: Any, followed: Any
) -> Episode:
    """Return the episode with the verdict on instruction `number` of kind `closed`; unchanged if `closed` is 0."""
    if not int(closed):
        return episode
    verdict = Verdict(number=number, kind=stage.kinds[int(closed)], followed=bool(followed))
    return dataclasses.replace(
        episode,
        verdicts=(*episode.verdicts, verdict),
        judged=episode.judged + 1,
        followed=episode.followed + bool(followed),
    )
