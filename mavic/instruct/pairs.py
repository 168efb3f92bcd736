"""Two instructions that hold together: which can, and which pairs of prohibitions are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations

import numpy as np

from mavic.envs.api import Env
from mavic.instruct.reward import sometimes_allowed
from mavic.types import ArrayLike, Rules

JOINED = "+"  # between the kinds in the name of a pair


def conflict(
    env: Env,
    rules: Rules,
    kinds: ArrayLike,
    also: ArrayLike,
    *,
    called: Callable[[str], str] = str,
) -> str:
    """Return why two instructions cannot hold together, as a clause; "" if they can.

    Only agents that both instructions address can have a conflict. Their kinds must differ and leave the agent a macro
    that both allow, and only one of the two may change what the environment does.

    Args:
        env: The environment.
        rules: What each kind asks for.
        kinds: [N] the kind of the first instruction for each agent; 0 if it is not addressed.
        also: [N] the same of the second instruction.
        called: Returns what the reader calls a kind; its name if it is left out.
    """
    allowed, effect = sometimes_allowed(rules), np.asarray(rules.effect)
    for number, pair in enumerate(zip(np.asarray(kinds), np.asarray(also), strict=True)):
        if not all(pair):
            continue
        one, other = (called(rules.names[kind]) for kind in pair)
        if pair[0] == pair[1]:
            return f"{one} holds already"
        if effect[list(pair)].all():
            return f"{one} and {other} both change what the world does"
        own = len(env.macros[number])
        if not allowed[list(pair), number, :own].all(0).any():
            return f"{one} and {other} together leave {env.agents[number]} nothing to do"
    return ""


def prohibited_pairs(
    env: Env, rules: Rules, impossible: Iterable[tuple[str, str]] = ()
) -> dict[str, tuple[int, int]]:
    """Return the pairs of prohibitions under which the task goes on, by name: "KIND+KIND".

    A prohibition lists what is forbidden, has rule `add`, is not resolved by events and has no effect on the world.
    Only kinds that the schedule gives count.

    Args:
        env: The environment.
        rules: What each kind asks for.
        impossible: Pairs under which the task cannot be completed (`World.impossible_together`).
    """
    adds = ~np.asarray(rules.replaces) & ~np.asarray(rules.lists_allowed) & np.asarray(rules.given)
    adds &= ~(np.asarray(rules.outcome) != 0).any(-1) & (np.asarray(rules.effect) == 0)
    addressed = np.asarray(rules.addressed)
    left_out = {frozenset(pair) for pair in impossible}
    return {
        f"{rules.names[one]}{JOINED}{rules.names[other]}": (int(one), int(other))
        for one, other in combinations(np.flatnonzero(adds), 2)
        if frozenset((rules.names[one], rules.names[other])) not in left_out
        and not conflict(env, rules, addressed[one] * one, addressed[other] * other)
    }
