"""One team in one instructed environment, played tick by tick.

`open_stage` loads a team from its policy file. `start`, `say` and `advance` play an episode; people may talk to the
team while it plays, or drive one of its agents. `play` plays a whole episode by a script.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs import api
from mavic.experiment import talk
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.environments import instructed_env
from mavic.experiment.methods import METHODS
from mavic.experiment.task import task_of
from mavic.hints import suggest
from mavic.instruct import pairs, schedule
from mavic.language.conversation.hearing import Heard, hear
from mavic.language.lexicon import Lexicon
from mavic.learn.popart import Scale
from mavic.ranges import FOREVER
from mavic.rollout import step as steps
from mavic.rollout.step import InstructedEnv, shielded
from mavic.teams import file as policy_files
from mavic.teams.episode import Cue, Episode, Moment
from mavic.teams.networks import Networks
from mavic.teams.team import Carry, Listening, TeamPolicy, decide
from mavic.teams.team import values as team_values
from mavic.types import Array, InstructedState, Instruction, replace


class StageError(ValueError):
    """A request cannot be carried out. The message says what is allowed."""


@runtime_checkable
class _Team(Protocol):
    """Who acts, such as a `TeamPolicy`. If it also has `values`, they are shown."""

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

    team: _Team
    instructed_env: InstructedEnv
    lexicon: Lexicon
    hears: bool = (
        True  # False: the team is not told instructions; whether it follows them is still counted
    )
    own_words: bool = (
        False  # it hears a free sentence itself; otherwise the nearest training phrase of its kind
    )
    greedy: bool = False
    seats: tuple[int, ...] = ()  # agents that people drive
    resting_macros: tuple[
        str, ...
    ] = ()  # what those agents do until a person asks for something else
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

    @staticmethod
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

    def start(self, key: Array) -> Episode:
        """Return the start of an episode.

        Args:
            key: the random numbers. The same key gives the same episode as the rollout.
        """
        state = jax.block_until_ready(_reset(self.instructed_env, key))
        api.raise_failure(self.env)
        empty = schedule.no_instruction(len(self.env.agents))
        episode = Episode(state=state, carry=self.team.start(), instruction=jax.device_get(empty))
        return episode.now(*jax.device_get((state.instruction, state.also)))

    def say(
        self,
        episode: Episode,
        words: str | Heard,
        agents: Sequence[str | int] | None = None,
        hold: int | None = None,
        also: bool = False,
    ) -> Episode:
        """Return the episode with an instruction given now, or with the active one ended.

        If the state does not permit the kind, the words are noted in `refused` instead. A new instruction replaces the
        active ones.

        Args:
            episode: the episode so far.
            words: a kind, a phrase, a sentence, or "none" to end the active instruction.
            agents: names or numbers. None: all agents that no person drives.
            hold: ticks. None: until an event resolves it or the episode ends.
            also: let it hold beside the active one. At most two hold at once.

        Raises:
            StageError: the words are unclear, an agent is unknown, or two instructions cannot hold together.
        """
        kind, phrase, text = _meaning(self.lexicon, words, self.own_words)
        whom = _addressed(self.env, agents, self.seats)
        held = [
            one is not None and bool(one.kind.any()) for one in (episode.instruction, episode.also)
        ]
        if not kind and not any(held):
            return episode
        if kind and not bool(_permitted(self.instructed_env, episode.state)[kind]):
            return dataclasses.replace(episode, refused=(*episode.refused, text))
        given = jnp.int32(kind), jnp.int32(phrase), jnp.asarray(whom)
        lasts = jnp.int32(FOREVER if hold is None else hold)
        if kind and also and any(held):
            if all(held):
                raise StageError("two instructions hold already; end them first, or replace both")
            other = episode.also if episode.also is not None and held[1] else episode.instruction
            rules = self.instructed_env.rules
            asked = np.where(whom & np.asarray(rules.addressed)[kind], kind, 0)
            if why := pairs.conflict(self.env, rules, other.kind, asked, called=self._called):
                raise StageError(why)
            return _given(self, episode, phrase, text, *given, lasts, also=held[0])
        if held[1]:  # the new one replaces both
            zero = jnp.int32(0)
            episode = _given(self, episode, 0, "", zero, zero, given[2], zero, also=True)
        return _given(self, episode, phrase, text, *given, lasts, also=False)

    def _called(self, kind: str) -> str:
        """Return what people call a kind."""
        return "“" + talk.kind_words(self.env.name, [kind])[0] + "”"

    def end(self, episode: Episode, kind: str, agents: Sequence[int] | None = None) -> Episode:
        """Return the episode without one of the instructions that hold. The other one holds on.

        Args:
            episode: the episode so far.
            kind: the kind that ends.
            agents: end it only if it addresses these agents; None: whomever it addresses.
        """
        number, zero = self.kinds.index(kind), jnp.int32(0)
        whom = _addressed(self.env, None)
        for also, one in ((True, episode.also), (False, episode.instruction)):
            if one is None or number not in one.kind:
                continue
            told = np.flatnonzero(np.asarray(one.kind)).tolist()
            if agents is not None and not set(told) <= set(agents):
                continue
            return _given(self, episode, 0, "", zero, zero, jnp.asarray(whom), zero, also=also)
        return episode

    def advance(
        self, episode: Episode, wishes: Mapping[int, int] | None = None
    ) -> tuple[Moment, Episode]:
        """Let all idle agents decide and the environment run one tick.

        Args:
            episode: the episode so far.
            wishes: macros that people ask for now, by the agent they drive. A wish ends the agent's running macro.

        Returns:
            What the agents do, and the episode after the tick.
        """
        agents = len(self.env.agents)
        seated, wish = np.zeros(agents, bool), np.full(agents, -1, np.int32)
        seated[list(self.seats)] = True
        for agent, macro in (wishes or {}).items():
            wish[agent] = macro
        rest = _resting(tuple(self.env.macros), self.resting_macros)
        also_heard = None if episode.also is None else _heard_texts(self, episode, also=True)
        heard = _heard_texts(self, episode, also=False), also_heard
        made = _played(self, episode, *heard, seated, wish, rest)
        shown = made.row, made.before, made.instruction, made.also, made.values
        row, before, instruction, also, values = jax.tree.map(np.asarray, shown)
        api.raise_failure(self.env)
        row = SimpleNamespace(**row)
        told, complied = row.kind > 0, row.complied
        if row.also is not None:
            told, complied = told | (row.also.kind > 0), complied & row.also.complied
        complies = [bool(c) if k else None for c, k in zip(complied, told, strict=True)]
        values = None if values is None else dict(zip(self.kinds, values.tolist(), strict=True))
        moment = Moment(before, row.macro, row.fresh, complies, values)
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
                name for name, count in zip(self.env.events, row.events, strict=True) if count > 0
            ),
            over=_how_it_ended(row),
        )
        for number, one in zip(episode.numbers, (row, row.also), strict=True):
            if one is not None and int(one.closed):
                kind = self.kinds[int(one.closed)]
                following = following.with_verdict(number, kind, one.followed)
        return moment, following

    def play(
        self, key: Array, script: Sequence[Cue] | None = None, ticks: int | None = None
    ) -> Iterator[tuple[Episode, Moment]]:
        """Yield an episode tick by tick, with what the agents do, and then its end.

        Args:
            key: the random numbers. Two teams with the same key and script can be compared.
            script: what is said when. It replaces the schedule of the environment, and a wrong one is refused at once.
            ticks: how many ticks are played at most.
        """
        stage = self
        if script is not None:
            silent = schedule.make_schedule(shield=stage.instructed_env.schedule.shield)
            quiet = replace(stage.instructed_env, schedule=silent)
            stage = dataclasses.replace(self, instructed_env=quiet)
            for cue in script:
                _meaning(stage.lexicon, cue.words, stage.own_words)
                _addressed(stage.env, cue.agents)
        episode = stage.start(key)
        limit = stage.env.horizon if ticks is None else min(ticks, stage.env.horizon)
        while not episode.over and episode.time < limit:
            for cue in script or ():
                if cue.tick == episode.time:
                    episode = stage.say(episode, *cue[1:])
            before = episode
            moment, episode = stage.advance(before)
            yield before, moment
        yield episode, episode.still()

    def said_texts(self, episode: Episode, also: bool) -> list[str | None]:
        """Return the sentence that holds for each agent, in the speaker's words.

        Args:
            episode: the episode so far.
            also: of the second instruction instead of the first.
        """
        texts, spoken = self.lexicon.texts, episode.spoken
        return [spoken.get((row, also)) or texts[row] or None for row in episode.rows(also)]


def open_stage(
    path: str | Path,
    *,
    guest: bool = False,
    options: Mapping[str, Any] | None = None,
    shield: bool = False,
) -> Stage:
    """Return the stage of a policy file: the environment in which its team was trained.

    Args:
        path: the policy file, or the name of a shipped team.
        guest: one more agent joins the team, driven by a person. Worlds say whether that is possible (`World.guest`).
        options: options of the world that differ from the team's training.
        shield: what an instruction forbids is unavailable to the agents it addresses.
    """
    team = policy_files.load(path)
    config, task, _ = team.origin()
    if options:
        task = task_of(config, **options)
    if guest:
        more = Stage.guest_options(team.facts)
        if more is None:
            raise StageError(f"a person cannot join this team of {config.world}")
        task = task_of(config, **more)
    usual = ExperimentConfig(preset=config.preset).network
    return Stage(
        team=team,
        instructed_env=shielded(instructed_env(config, task), shield),
        lexicon=task.lexicon,
        hears=METHODS[config.method].hears,
        own_words=config.hear == "kinds",
        seats=(len(team.agents),) if guest else (),
        resting_macros=api.world(config.world).resting_macros,
        name=config.method if config.network == usual else f"{config.method} ({config.network})",
    )


@lru_cache(16)
def _interface(world: str, options: str) -> tuple[tuple[str, ...], list[list[str]], int]:
    """Return the agents, their macros and the observation size of an environment; `options` are JSON."""
    env = api.make(world, **json.loads(options))
    seen = jax.eval_shape(lambda key: env.observe(env.reset(key)), jax.random.key(0))
    return env.agents, [[macro.name for macro in enum] for enum in env.macros], seen.shape[-1]


def _given(
    stage: Stage, episode: Episode, phrase: int, text: str, *what: Array, also: bool
) -> Episode:
    """Return the episode with an instruction given in the second place or in the first, and the verdict on the one
    that was there. `what` are its kind, its phrase, whom it addresses and how long it holds."""
    number = episode.numbers[also]
    state, judgement = _interrupt(stage.instructed_env, episode.state, *what, also=also)
    episode = episode.now(
        *jax.device_get((state.instruction, state.also)),
        state=state,
        spoken={**episode.spoken, (phrase, also): text},
    )
    if not int(judgement.closed):
        return episode
    kind = stage.kinds[int(judgement.closed)]
    return episode.with_verdict(number, kind, judgement.followed)


def _meaning(lexicon: Lexicon, words: str | Heard, own_words: bool = False) -> tuple[int, int, str]:
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


def _addressed(
    env: api.Env, agents: Sequence[str | int] | None, seats: Sequence[int] = ()
) -> np.ndarray:
    """Return bool [N], the agents named or numbered in `agents`; None is all that are not in a seat."""
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


def _played(
    stage: Stage,
    episode: Episode,
    texts: Sequence[str | None],
    also: Sequence[str | None] | None,
    *people: np.ndarray,
) -> _Turn:
    """Return the result of a tick. `people` are three arrays [N]: who is driven, their wishes, their resting macros."""
    team = stage.team
    if isinstance(team, TeamPolicy):
        return _turn_of_policy(
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
    state, observation, driven, key = _prepare(stage.instructed_env, episode.state, *people)
    values = getattr(team, "values", lambda *_: None)(episode.carry, observation)
    if values is not None:
        values = np.stack(list(values.values())).mean(1)
    seen = dict(idle=state.idle, available=state.available, greedy=stage.greedy)
    if also is not None and any(also):
        seen["also"] = also
    macro, carry = team.act(key, episode.carry, state.observation, texts, **seen)
    after, row = _move(stage.instructed_env, state, jnp.asarray(macro, jnp.int32), driven)
    return _Turn(after, carry, row, state.state, after.instruction, after.also, values)


@lru_cache(16)
def _resting(macros: tuple[type[IntEnum], ...], names: tuple[str, ...]) -> np.ndarray:
    """Return the number of each agent's resting macro [N], -1 where it has none."""
    found = [[enum[name] for name in names if name in enum.__members__] for enum in macros]
    return np.array([int(one[0]) if one else -1 for one in found], np.int32)


def _how_it_ended(row: SimpleNamespace) -> str:
    if row.events[0] > 0:
        return "solved"
    return "time is up" if row.truncated else "ended" if row.terminal else ""


def _heard_texts(stage: Stage, episode: Episode, also: bool) -> list[str | None]:
    """Return what each agent hears: a phrase of the lexicon, or a free sentence in a spare row."""
    texts, spoken = stage.lexicon.texts, episode.spoken
    if not stage.hears:
        return [None] * len(stage.env.agents)
    return [texts[row] or spoken.get((row, also)) or None for row in episode.rows(also)]


# The compiled programs: one tick of one episode, with people who may drive some of the agents.

_SHOWN = (  # the fields of a `Timestep` that a stage needs
    *("macro", "fresh", "kind", "complied", "task_reward", "events"),
    *("terminal", "truncated", "closed", "followed", "also"),
)

_reset = jax.jit(steps.reset)
_interrupt = jax.jit(steps.interrupt, static_argnames="also")


class _Turn(NamedTuple):
    """The result of a tick, and the parts of the state before it that are shown."""

    after: InstructedState
    carry: Any
    row: dict[str, Any]  # the fields of its `Timestep` named in _SHOWN
    before: Any  # the environment's state before the tick
    instruction: Instruction  # after the tick
    also: Instruction | None  # the second one after the tick
    values: Any  # [C] mean over agents, or None


@partial(jax.jit, static_argnames="networks")
def _turn_of_policy(
    networks: Networks,
    instructed_env: InstructedEnv,
    listening: Listening,
    scale: Scale,
    state: InstructedState,
    carry: Carry,
    greedy: Array | bool,
    *people: Array,
) -> _Turn:
    """Return the result of a tick of a `TeamPolicy`: look, decide and move in one compiled program.

    The environment may have more agents than the team; a person drives those beyond it.
    """
    own = networks.actor.shape.agents
    state, observation, driven, key = _prepare(instructed_env, state, *people)
    kinds = instructed_env.rules.addressed[:, :own]
    phrases = jnp.where(kinds, jnp.arange(kinds.shape[0])[:, None], 0)
    context = schedule.contexts_of(kinds, instructed_env.rules.replaces)
    values = team_values(
        networks, listening.critics, scale, carry, observation[:own], phrases, context
    )
    seen = state.observation[:own], state.idle[:own], state.available[:own]
    macro, carry = decide(networks, listening, key, carry, *seen, greedy)
    macro = jnp.pad(macro, (0, observation.shape[0] - own))
    after, row = _move(instructed_env, state, macro, driven)
    carry = replace(carry, macro=row["macro"][:own])
    return _Turn(after, carry, row, state.state, after.instruction, after.also, values.mean(1))


@jax.jit
def _permitted(instructed_env: InstructedEnv, state: InstructedState) -> Array:
    """Return bool [C], the kinds that the state permits, whether or not the schedule would give them."""
    preconditions = instructed_env.env.check(state.state)
    return schedule.possible_kinds(preconditions, instructed_env.rules, scheduled=False)


@jax.jit
def _prepare(
    instructed_env: InstructedEnv, state: InstructedState, seated: Array, wish: Array, rest: Array
) -> tuple[InstructedState, Array, Array, Array]:
    """Return what a decision needs: the state in which all agents with a wish are idle, the present observations, the
    macros [N] of driven agents (-1: the team decides, or a macro goes on), and the key of the choices."""
    env = instructed_env.env
    observation = env.observe(state.state)
    choices = steps.choices_of(instructed_env, state.state, state.instruction, state.also)
    macros = jnp.arange(choices.available.shape[1])[None]
    now = seated & jnp.any(choices.available & (macros == wish[:, None]), axis=1)
    after = replace(
        state,
        idle=state.idle | now,
        observation=jnp.where(now[:, None], observation, state.observation),
        available=jnp.where(now[:, None], choices.available, state.available),
        forbidden=jnp.where(now[:, None], choices.forbidden, state.forbidden),
        holds=steps.seen_anew(instructed_env, state.state, now, state.holds),
    )
    driven = jnp.where(now, wish, jnp.where(seated & state.idle, rest, -1))
    # this is the rollout's key, so a stage plays the very episode that the rollout plays
    return after, observation, driven, jax.random.fold_in(state.key, state.time)


@jax.jit
def _move(
    instructed_env: InstructedEnv, state: InstructedState, macro: Array, driven: Array
) -> tuple[InstructedState, dict[str, Any]]:
    """Return the state after the tick, and the fields of its `Timestep` in _SHOWN."""
    choice = jnp.where(driven >= 0, driven, macro)
    after, row = steps.step(instructed_env, state, choice, steps.draws_for(state)[macro.shape[0] :])
    return after, {name: getattr(row, name) for name in _SHOWN}
