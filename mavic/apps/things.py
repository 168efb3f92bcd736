"""What an instruction is about: the things in the picture that it forbids or wants."""

from __future__ import annotations

from typing import Any

import numpy as np

from mavic.envs import api
from mavic.rollout.step import InstructedEnv


def things_of(instructed_env: InstructedEnv, kind: int, agents: tuple[int, ...]) -> Any:
    """Return what a kind forbids and wants of these agents, as names of things in the scene."""
    env, rules = instructed_env.env, instructed_env.rules
    things = api.known(env.name).macro_things
    allowed, wanted = np.asarray(rules.allowed)[kind], bool(rules.lists_allowed[kind])
    named: dict[str, None] = {}
    for agent in agents:
        for macro in env.macros[agent]:
            if bool(allowed[agent, macro]) == wanted and macro.name in things:
                named[things[macro.name]] = None
    forbids, wants = ([], list(named)) if wanted else (list(named), [])
    fulfils = np.flatnonzero(np.asarray(rules.outcome)[kind] > 0)
    events = [api.plain(env.events[event]) for event in fulfils]
    wants += [thing for thing in things.values() if any(e.endswith(thing) for e in events)]
    return {"forbids": forbids, "wants": wants, "replaces": bool(rules.replaces[kind])}
