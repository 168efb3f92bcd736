"""A trained team acts.

    policy = mavic.load_policy("box_pushing/mavic")
    carry = policy.start()
    macro, carry = policy.act(key, carry, observation, "don't push the boxes", idle)

The playground and replays use the same object. `mavic.teams.facts` reads and checks the description.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs import api
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.task import Task, task_of
from mavic.hints import suggest
from mavic.instruct import reward, schedule
from mavic.instruct.pairs import conflict
from mavic.language import heard
from mavic.language.heard import KindsAsked
from mavic.language.reader.endpoint import Endpoint
from mavic.language.text import fold
from mavic.language.vectors import vectors
from mavic.learn import act
from mavic.learn.popart import Scale
from mavic.learn.views import VIEWS
from mavic.preset import Preset
from mavic.teams.facts import PolicyError
from mavic.teams.networks import Networks
from mavic.types import Array, ArrayLike, Rules, record, replace

CACHED_SENTENCES = 256  # sets of sentences whose projections a team keeps
Text = str | Sequence[str | None] | None  # one sentence for all, one per agent, or silence


@record
class Carry:
    """What the team remembers between decisions."""

    actor: Array  # [3, actors, parts, 1, H] after hearing the first instruction, the second, none
    critic: Array  # [critics, parts, 1, H]
    macro: Array  # [N], -1 before the first
    earlier_macro: Array  # [N] the macro before it
    observation: Array  # [N, O] what each agent last decided from
    since: Array  # [N] the tick before which that was
    time: Array  # [] ticks so far: calls of `act`


@record
class Weights:
    """The networks and the value statistics of all agents, stacked over agents."""

    actor: Any
    critic: Any
    scale: Scale


class Listening(NamedTuple):
    """Networks that know the sentences being said, and which of them each agent hears."""

    actors: Any
    critics: Any
    phrase: np.ndarray | Array  # [N] row of the networks' phrase tables, 0 for silence
    also: np.ndarray | Array  # [N] row of a second instruction


class TeamPolicy:
    """A team of trained agents. It is immutable; its memory is in the `Carry` that the caller holds."""

    def __init__(
        self,
        weights: Weights,
        facts: dict[str, Any],
        source: str = "the policy",
        reader: str | Endpoint | None = None,
    ) -> None:
        self.weights = weights
        self.source = source  # its file, for messages
        self.facts = facts
        self.networks = Networks.of(facts)
        self.shape = self.networks.actor.shape
        self.observation: int = facts["observation"]  # of one agent
        self.macro_count: int = max(facts["macro_counts"])  # of the agent that has most
        self.hear: str = facts["config"]["hear"]
        self.kinds: tuple[str, ...] = tuple(facts["kinds"])  # without "none"
        self.agents: tuple[str, ...] = tuple(facts["agents"])
        # [1 + kinds, N] bool: which agents each kind addresses; "none" comes first.
        by_kind = [[], *facts["addressed"]]
        self.addressed = np.array([[name in to for name in self.agents] for to in by_kind])
        self._networks = lru_cache(CACHED_SENTENCES)(self._project)
        self._understood: Callable[[str], tuple[np.ndarray, int]]
        self._understood = lru_cache(CACHED_SENTENCES)(self._understand)
        if reader is not None:
            if self.hear != "kinds":
                raise PolicyError(
                    "only teams that hear kinds take a reader; this one hears vectors"
                )
            examples = dict(zip(self.kinds, facts["examples"], strict=True))
            self._reader = Endpoint(reader, examples) if isinstance(reader, str) else reader
            self._understood = self._understand_elsewhere  # it keeps its answers itself

    @property
    def world(self) -> str:
        """The id of the world in which the team was trained."""
        return self.facts["world"]

    @property
    def needs(self) -> str:
        """What the actors need to see at every decision, in words."""
        return VIEWS[self.shape.view].needs

    def start(self) -> Carry:
        """Return the memory at the start of an episode."""
        agents = self.shape.agents
        return Carry(
            actor=act.empty_memory(self.networks.actor, 1, second=True),
            critic=act.empty_memory(self.networks.critic, 1),
            macro=jnp.full(agents, -1, jnp.int32),
            earlier_macro=jnp.full(agents, -1, jnp.int32),
            observation=jnp.zeros((agents, self.observation)),
            since=jnp.zeros(agents, jnp.int32),
            time=jnp.int32(0),
        )

    def act(
        self,
        key: Array,
        carry: Carry,
        observation: ArrayLike,
        text: Text = None,
        idle: ArrayLike | None = None,
        *,
        available: ArrayLike | None = None,
        greedy: bool = False,
        shield: bool = False,
        effective_macros: ArrayLike | None = None,
        holds: ArrayLike | None = None,
        also: Text = None,
        kind: Text = None,
        also_kind: Text = None,
    ) -> tuple[Array, Carry]:
        """Return the macros [N] and the memory after the decision.

        Args:
            key: the random numbers of this decision.
            carry: the memory, from `start` or the last call.
            observation: [N, O] of every agent. One actor for the whole team (Mac-CAC) sees all of them at every
                decision; those of busy agents are remembered from their own last decision. `needs` says what a team
                needs to see.
            text: the instruction: one sentence for all agents that any kind addresses, or a list with a sentence or
                None for each agent. When it changes, all agents must be idle, as in training.
            idle: bool [N], who decides. The others keep their macro and memory. None: all decide.
            available: bool [N, M], which macros can be chosen. None: all.
            greedy: take the most likely macro instead of a sampled one.
            shield: make unavailable what the sentence forbids, as the reader understands it.
            effective_macros: [N, M] which macro's work each choice would do now (`mavic.envs.api.effective_macros`),
                for the shield. None: macros are judged by name.
            holds: bool [N, M, Q] which predicates of the environment hold of each choice now (its method `holds`), for
                the shield. None: every predicate counts as held.
            also: a second instruction at the same time, in the same form as `text`. It may begin at any decision. An
                agent weighs its macros under each instruction by itself, and what either makes unlikely is unlikely.
                Teams that hear kinds refuse two that cannot hold together.
            kind: in place of `text`, a kind's name for all agents that it addresses, or one or None for each agent;
                for callers that understand sentences by other means.
            also_kind: in place of `also`, likewise.

        A team that sees the time (ACAC) counts one tick per call.
        """
        shape = self.shape
        text, also = self._said(text, kind), self._said(also, also_kind)
        observation = jnp.asarray(observation, jnp.float32)
        if observation.shape != (shape.agents, self.observation):
            raise PolicyError(
                f"observation has shape {observation.shape}; this team of world {self.world!r} "
                f"wants {(shape.agents, self.observation)}: {self.needs}"
            )
        if not isinstance(observation, jax.core.Tracer):
            finite = np.isfinite(np.asarray(observation)).all(-1)
            if not finite.all():
                blind = ", ".join(map(str, np.flatnonzero(~finite)))
                raise PolicyError(
                    f"the observation of agent {blind} has numbers that are not finite"
                )
        idle = jnp.ones(shape.agents, bool) if idle is None else jnp.asarray(idle, bool)
        if available is None:
            counts = jnp.asarray(self.facts["macro_counts"])
            available = counts[:, None] > jnp.arange(self.macro_count)[None]
        available = jnp.asarray(available)
        if shield:
            allowed = self.allowed(text, effective_macros, holds)
            if also is not None:
                allowed &= self.allowed(also, effective_macros, holds)
            available = reward.enforce(available, allowed)
        return decide(
            self.networks,
            self.listen(text, also),
            key,
            carry,
            observation,
            idle,
            available,
            jnp.asarray(greedy),
        )

    def allowed(
        self,
        text: Text,
        effective_macros: ArrayLike | None = None,
        holds: ArrayLike | None = None,
    ) -> Array:
        """Return bool [N, M], the macros that comply with a sentence, as the reader understands it.

        Args:
            text: as in `act`.
            effective_macros: as in `act`.
            holds: as in `act`.
        """
        shape = self.shape
        kind = self._kinds_asked(self._said_to_each(text))
        if effective_macros is None:
            macros = jnp.arange(self.macro_count)
            effective_macros = jnp.broadcast_to(macros, (shape.agents, self.macro_count))
        instruction = replace(
            schedule.no_instruction(shape.agents), kind=jnp.asarray(kind, jnp.int32)
        )
        known = None if holds is None else jnp.asarray(holds, bool)
        effective = jnp.asarray(effective_macros)
        return reward.allowed_macros(instruction, effective, self._rules, known)

    def values(
        self, carry: Carry, observation: ArrayLike, text: Text = None, also: Text = None
    ) -> dict[str, np.ndarray]:
        """Return the values V(h, c) [N] by kind, "none" first, for the memory before the coming decision.

        Args:
            carry: the memory.
            observation: [N, O] of every agent.
            text: adds the entry "text": the values under this sentence.
            also: a second sentence. Critics then hear the sum of both, which they were not trained with.
        """
        names = ("none", *self.kinds)
        listening = self.listen(text, also)
        phrases = np.where(self.addressed, np.arange(len(names))[:, None], 0)
        replaces = np.asarray(self._rules.replaces, np.int32)
        if text is not None:
            names, phrases = (*names, "text"), np.vstack([phrases, listening.phrase])
            asked = [self._kinds_asked(self._said_to_each(one)) for one in (text, also)]
            first, other = (replaces[kinds].max() for kinds in asked)
            replaces = np.append(replaces, first)
        second, other_replaces = np.zeros_like(phrases), np.zeros_like(replaces)
        if text is not None:
            second[-1], other_replaces[-1] = listening.also, other
        context = functools.reduce(
            jnp.maximum,  # as the rollout does: each sentence has its own agents
            (
                schedule.contexts_of(jnp.asarray(heard) > 0, jnp.asarray(instead) > 0)
                for heard, instead in ((phrases, replaces), (second, other_replaces))
            ),
        )
        found = values(
            self.networks,
            listening.critics,
            self.weights.scale,
            carry,
            jnp.asarray(observation, jnp.float32),
            jnp.asarray(phrases),
            context,
            jnp.asarray(second),
        )
        wide = np.broadcast_to(found, (len(names), self.shape.agents))  # one critic speaks for all
        return dict(zip(names, wide, strict=True))

    def listen(self, text: Text, also: Text = None) -> Listening:
        """Return the networks with the sentences projected. Repeated sentences come from a cache.

        Teams that hear kinds ignore sentences of which the reader is unsure. `also` is a second instruction; two that
        cannot hold together are a `PolicyError`.
        """
        spoken = [self._said_to_each(one) for one in (text, also)]
        if self.hear == "kinds":
            clear = {t for texts in spoken for t in texts if t and self._understood(t)[1]}
            spoken = [tuple(t if t in clear else None for t in texts) for texts in spoken]
            if any(spoken[1]):
                asked = (self._kinds_asked(texts) for texts in spoken)
                if why := conflict(self._task.env, self._rules, *asked):
                    raise PolicyError(why)
        said = tuple(sorted({t for texts in spoken for t in texts if t}))
        rows = [
            np.array([1 + len(self.kinds) + said.index(t) if t else 0 for t in texts], np.int32)
            for texts in spoken
        ]
        return Listening(*self._networks(said), *rows)

    def _kinds_asked(self, texts: Sequence[str | None]) -> np.ndarray:
        """Return the kind [N] that each agent is asked for, as the reader understands it; 0 if it is not meant."""
        kind = np.array([self._understood(t)[1] if t else 0 for t in texts])
        return np.where(self._rules.addressed[kind, np.arange(len(kind))], kind, 0)

    def _said_to_each(self, text: Text) -> tuple[str | None, ...]:
        """Return the sentence for each agent. One sentence for all goes to the agents that some kind addresses."""
        if text is None or isinstance(text, str):
            hears = np.any(self.addressed, axis=0, keepdims=True)[0]
            return tuple(text if its else None for its in hears)
        if len(text) != self.shape.agents:
            raise PolicyError(f"{len(text)} texts for {self.shape.agents} agents")
        return tuple(text)

    def _said(self, text: Text, kind: Text) -> Text:
        """Return what is said: the text, or for each agent the example of its kind, a phrase of the training."""
        if kind is None:
            return text
        if text is not None:
            raise PolicyError("give a text or a kind, not both")
        names = [kind] * self.shape.agents if isinstance(kind, str) else list(kind)
        if len(names) != self.shape.agents:
            raise PolicyError(f"{len(names)} kinds for {self.shape.agents} agents")
        said: list[str | None] = []
        for agent, name in enumerate(names):
            if name is not None and name not in self.kinds:
                raise PolicyError(f"kind {name!r} is unknown; {suggest(str(name), self.kinds)}")
            place = -1 if name is None else self.kinds.index(name)
            meant = place >= 0 and bool(self.addressed[1 + place, agent])
            said.append(self.facts["examples"][place] if meant else None)
        return said

    @cached_property
    def _task(self) -> Task:
        return self.origin()[1]

    @cached_property
    def _rules(self) -> Rules:
        config = ExperimentConfig.of(self.facts["config"])
        return reward.rules_of(self._task.env, self._task.file, rule=config.rule)

    def _understand(self, text: str) -> tuple[np.ndarray, int]:
        """Return the probabilities of all kinds [C - 1] and the kind understood, 0 if the reader is unsure."""
        found: KindsAsked = heard.kinds_asked(self._task.lexicon, [text])
        return found.shares[0], int(found.kind[0])

    def _understand_elsewhere(self, text: str) -> tuple[np.ndarray, int]:
        """Return what `_understand` does, as a reader behind an address answers. Training phrases are certain."""
        known = self._task.lexicon.known_kinds().get(fold(text))
        if known is None:
            answer = self._reader.read(text)
            known = 1 + self.kinds.index(answer) if answer in self.kinds else 0
        return np.eye(1 + len(self.kinds), dtype=np.float32)[known, 1:], known

    def vectors_heard(self, said: tuple[str, ...] = ()) -> np.ndarray:
        """Return what the team hears of each kind's example, then of the sentences."""
        if self.hear == "kinds":
            shares = [self._understood(t)[0] for t in said]
            return np.stack([*np.eye(len(self.kinds), dtype=np.float32), *shares])
        return vectors((*self.facts["examples"], *said), self.facts["encoder"])

    def _project(self, said: tuple[str, ...]) -> tuple[Any, Any]:
        """Return actors and critics with phrase rows: silence, each kind's example, then the sentences."""
        blank = np.zeros((1, self.shape.embedding), np.float32)
        rows = [blank, self.vectors_heard(said) if self.kinds or said else blank[:0]]
        room = 2 * self.shape.agents  # for two sentences to each agent: one shape, one program
        rows.append(np.repeat(blank, room - len(said), 0))
        made = _project(
            self.networks, (self.weights.actor, self.weights.critic), np.concatenate(rows)
        )
        if not said:
            return made
        actors, critics = (  # the cache holds the phrases of each entry but the weights only once
            known._replace(table=new.table, kinds=new.kinds)
            for known, new in zip(self._networks(()), made, strict=True)
        )
        return actors, critics

    def origin(self) -> tuple[ExperimentConfig, Task, Preset]:
        """Return how the team was trained: its config, its task and its preset. Raise if it does not fit the task."""
        try:
            config = ExperimentConfig.of(self.facts["config"])
            task = task_of(config)
            self.fits(task.env)
            _same("list of kinds", list(self.kinds), list(task.file.names()))
            return config, task, Preset.of(self.facts["preset"])
        except ValueError as error:
            raise PolicyError(f"{self.source}: {error}") from None

    def fits(self, env: api.Env) -> None:
        """Raise `PolicyError` unless the team can act in this environment."""
        macros = [[m.name for m in enum] for enum in env.macros]
        observation = jax.eval_shape(lambda k: env.observe(env.reset(k)), jax.random.key(0))
        for what, mine, its in (
            ("world", self.world, env.name),
            ("agents", list(self.agents), list(env.agents)),
            ("macros", self.facts["macros"], macros),
            ("observation size", self.observation, observation.shape[-1]),
        ):
            _same(what, mine, its)


def _same(what: str, mine: Any, its: Any) -> None:
    if mine != its:
        raise PolicyError(
            f"this team does not fit the world, which has {what} {its} where the team has {mine}; choose another team, "
            "or train one"
        )


@partial(jax.jit, static_argnames="networks")
def _project(networks: Networks, params: tuple[Any, Any], vectors: Array) -> tuple[Any, Any]:
    """Return actors and critics with these phrases projected."""
    actor, critic = params
    return act.project(networks.actor, actor, vectors), act.project(
        networks.critic, critic, vectors
    )


@partial(jax.jit, static_argnames="networks")
def decide(
    networks: Networks,
    listening: Listening,
    key: Array,
    carry: Carry,
    observation: Array,
    idle: Array,
    available: Array,
    greedy: Array | bool,
) -> tuple[Array, Carry]:
    """Return the macros [N] and the memory of one team in one episode: `mavic.learn.act.decide` without exploration.

    The critics' memory moves along, so that values can be asked for at any time.

    Args:
        networks: the team's networks.
        listening: the networks with the sentences projected.
        key: the random numbers.
        carry: the memory.
        observation: [N, O].
        idle: bool [N], who decides.
        available: bool [N, M].
        greedy: take the most likely macro.
    """
    held = jnp.where(idle[:, None], observation, carry.observation)
    observed = act.Observed(
        observation=held[None],
        last_macro=carry.macro[None],
        phrase=jnp.asarray(listening.phrase)[None],
        earlier_macro=carry.earlier_macro[None],
        time=carry.time[None],
        since=carry.since[None],
        also=jnp.asarray(listening.also)[None],
    )
    draws = jax.random.uniform(key, (networks.actor.shape.agents,))
    macro, actor = act.decide(
        networks.actor,
        listening.actors,
        carry.actor,
        observed,
        idle[None],
        available[None],
        jnp.zeros((1, 1)),
        draws[None],
        greedy,
    )
    critic = act.advance(networks.critic, listening.critics, carry.critic, observed, idle[None])
    return macro[0], Carry(
        actor=actor,
        critic=critic,
        macro=macro[0],
        earlier_macro=jnp.where(idle, carry.macro, carry.earlier_macro),
        observation=held,
        since=jnp.where(idle, carry.time, carry.since),
        time=carry.time + 1,
    )


@partial(jax.jit, static_argnames="networks")
def values(
    networks: Networks,
    critics: Any,
    scale: Scale,
    carry: Carry,
    observation: Array,
    phrases: Array,
    context: Array,
    also: Array | None = None,
) -> Array:
    """Return the values [L, critics] that critics give if the agents hear each row of `phrases`.

    Args:
        networks: the team's networks.
        critics: the critics with phrases projected.
        scale: the statistics of values.
        carry: the memory.
        observation: [N, O].
        phrases: [L, N] rows of the phrase table.
        context: [L, N] of each agent, 0 to 2 (`mavic.types.CONTEXTS`).
        also: [L, N] rows of a second instruction.
    """
    count = phrases.shape[0]

    def repeat(one: Array, axis: int) -> Array:
        return jnp.repeat(jnp.expand_dims(one, axis), count, axis)

    observed = act.Observed(
        observation=repeat(observation, 0),
        last_macro=repeat(carry.macro, 0),
        phrase=phrases,
        time=repeat(carry.time, 0),
        also=also,
    )
    memory = repeat(carry.critic[:, :, 0], 2)
    everyone = jnp.ones(phrases.shape, bool)
    return act.values(networks.critic, critics, scale, memory, observed, context, everyone)
