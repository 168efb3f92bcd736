"""Who and what can be spoken of in a world, and which instructions can hold together in it, for a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from mavic.envs import api
from mavic.experiment.task import instructions_of
from mavic.instruct import pairs, reward
from mavic.instruct.spec import InstructionFile
from mavic.language.conversation import hearing
from mavic.language.conversation.cast import Cast
from mavic.language.conversation.decision import Agents, Asked, Reader
from mavic.language.conversation.settling import Rules as TalkRules
from mavic.language.lexicon import Lexicon
from mavic.types import Rules


def names_of(world: str, agents: Sequence[str]) -> tuple[str, ...]:
    """Return what people call agents.

    Args:
        world: Their world.
        agents: Their names in the environment.
    """
    record = api.known(world)
    return tuple(record.agent_word(agent, number) for number, agent in enumerate(agents))


def kind_words(world: str, kinds: Sequence[str]) -> tuple[str, ...]:
    """Return what people call kinds of instructions.

    Args:
        world: Their world. Of one that is not installed, only the names are known.
        kinds: Their names in the instruction file.
    """
    files = [InstructionFile.read(instructions_of(world))] if world in api.names() else []
    told = {k.name: k.meaning for file in files for k in file.kinds if k.meaning != k.name}
    return tuple(told.get(kind, api.plain(kind)) for kind in kinds)


def agents_of(world: str) -> dict[str, int]:
    """Return the numbers of a world's agents by their names in its environment."""
    return {agent: number for number, agent in enumerate(api.make(world).agents)}


@lru_cache(16)
def cast_of(world: str, agents: tuple[str, ...]) -> Cast:
    """Return who and what can be spoken of in a world.

    Args:
        world: The world.
        agents: The agents' names in its environment.
    """
    record, names = api.known(world), names_of(world, agents)
    return Cast.of(
        InstructionFile.read(instructions_of(world)),
        names,
        also_called=[record.other_words.get(name, ()) for name in names],
        macro_things=record.macro_things,
        other_words=record.other_words,
    )


@lru_cache(16)
def reading_of(world: str) -> tuple[Reader, Cast]:
    """Return how sentences to the teams of a world are read, and what they can speak of."""
    lexicon = Lexicon.load(instructions_of(world))
    read = lru_cache(maxsize=4096)(partial(hearing.hear, lexicon))
    return read, cast_of(world, tuple(api.make(world).agents))


def conversation_of(world: str) -> tuple[Reader, Cast, TalkRules]:
    """Return how sentences are read, what they can speak of, and what can hold together."""
    env, file = api.make(world), InstructionFile.read(instructions_of(world))
    read, cast = reading_of(world)
    return read, cast, rules_of(env, reward.rules_of(env, file, extras=True), cast)


def rules_of(env: api.Env, rules: Rules, cast: Cast) -> TalkRules:
    """Return which instructions can hold together.

    Args:
        env: The environment.
        rules: What each kind asks for.
        cast: Who and what can be spoken of.
    """
    addressed, names = np.asarray(rules.addressed), list(rules.names)

    def whom(kind: str, agents: Agents) -> np.ndarray:
        """Return the number of the kind for each agent that it addresses, else 0."""
        number = names.index(kind)
        told = addressed[number].copy()
        if agents is not None:
            told &= np.isin(np.arange(len(told)), agents)
        return told * number

    def clash(one: Asked, other: Asked) -> str:
        if one.kind == other.kind:
            return ""
        return pairs.conflict(env, rules, whom(*one[:2]), whom(*other[:2]))

    def meant(one: Asked) -> frozenset[int]:
        return frozenset(np.flatnonzero(whom(*one[:2])).tolist())

    together = api.known(env.name).impossible_together
    return TalkRules(clash, cast.commands, meant, frozenset(map(frozenset, together)))
