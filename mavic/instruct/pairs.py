"""Two instructions that hold together: which can, and which pairs of prohibitions are evaluated."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np

from mavic.envs.api import Env
from mavic.types import ArrayLike, Rules

JOINED = "+"  # between the kinds in the name of a pair


def conflict(
    env: Env, rules: Rules, one: int, other: int, agents: ArrayLike | None = None
) -> str:
    """Return why two kinds cannot hold together, as a clause; "" if they can.

    What matters are the agents that hear both: those of `agents` [N] bool (default: all) that both kinds are meant for.
    One of them cannot be told the same kind twice. It must be left at least one macro that both allow. And the
    environment can do only one thing differently for it.
    """
    addressed, allowed = np.asarray(rules.addressed), np.asarray(rules.allowed)
    both = addressed[one] & addressed[other]
    if agents is not None:
        both &= np.asarray(agents)
    if not both.any():
        return ""
    names = rules.names[one], rules.names[other]
    if one == other:
        return f"{names[0]} holds already"
    effects = np.asarray(rules.effect)[[one, other]]
    if effects.all():
        return f"{names[0]} and {names[1]} both change what the world does"
    for number in np.flatnonzero(both):
        own = len(env.macros[number])
        if not (allowed[one, number, :own] & allowed[other, number, :own]).any():
            return f"{names[0]} and {names[1]} together leave {env.agents[number]} nothing to do"
    return ""


def prohibited_pairs(
    env: Env, rules: Rules, impossible: Iterable[tuple[str, str]] = ()
) -> dict[str, tuple[int, int]]:
    """Return the pairs of prohibitions under which the task goes on, by name: "KIND+KIND".

    A prohibition lists what is forbidden, has rule `add`, is not resolved by events and changes nothing in the
    world; only kinds that the schedule gives count. `impossible` names pairs under which the task cannot be completed (`World.impossible_together`).
    """
    adds = ~np.asarray(rules.replaces) & ~np.asarray(rules.lists_allowed) & np.asarray(rules.given)
    adds &= ~(np.asarray(rules.outcome) != 0).any(-1) & (np.asarray(rules.effect) == 0)
    left_out = {frozenset(pair) for pair in impossible}
    return {
        f"{rules.names[one]}{JOINED}{rules.names[other]}": (int(one), int(other))
        for one, other in combinations(np.flatnonzero(adds), 2)
        if frozenset((rules.names[one], rules.names[other])) not in left_out
        and not conflict(env, rules, int(one), int(other))
    }
