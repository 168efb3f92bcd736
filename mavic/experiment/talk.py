"""Who and what can be spoken of in a world, and which instructions can hold together in it, for a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from mavic.envs import api
from mavic.experiment.task import instructions_of
from mavic.instruct import pairs
from mavic.instruct.spec import InstructionFile
from mavic.language.conversation.cast import Cast
from mavic.language.conversation.decision import Agents, Asked
from mavic.language.conversation.settling import Rules as TalkRules
from mavic.types import Rules


def names_of(world: str, agents: Sequence[str]) -> tuple[str, ...]:
    """Return what people call agents.

    Args:
        world: Their world.
        agents: Their names in the environment.
    """
    record = api.known(world)
    return tuple(record.agent_word(agent, number) for number, agent in enumerate(agents))


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

    together = api.known(env.name).impossible_together
    return TalkRules(clash, cast.commands, frozenset(map(frozenset, together)))
