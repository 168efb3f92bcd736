"""Frames: what one tick of an episode looks like, as data that replays and the playground draw.

A frame is a plain dict, ready for JSON. It shows a state, the reward and the events of the tick that led to it, and
what the agents do next: their macros, the instruction they are under, and whether they comply.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

import numpy as np

from mavic.envs import api
from mavic.ranges import FOREVER
from mavic.rollout.step import InstructedEnv
from mavic.teams.episode import Episode, Moment
from mavic.teams.stage import Stage
from mavic.types import Scene


class _Instruction(TypedDict):
    """The instruction that holds in a frame."""

    number: int  # 1 for the first of the episode
    text: str
    kind: str
    agents: list[int]  # the addressed agents
    left: int | None  # ticks it still holds, this one included; None: to the end of the episode
    held: int  # ticks it has held so far
    forbids: NotRequired[list[str]]  # names of things that must not be used, as in the scene
    wants: NotRequired[list[str]]  # names of things that must be used
    replaces: NotRequired[bool]  # the team is to leave its work


class _Agent(TypedDict):
    """One agent in a frame."""

    name: str
    macro: str
    doing: NotRequired[str]  # the macro in words
    decided: bool  # the agent chose its macro in this tick
    complies: bool | None  # None: the agent is not addressed
    holds: str  # what it carries


class Frame(TypedDict):
    """One tick of an episode."""

    time: int
    scene: dict[str, Any]  # width, height, sprites, notes and steps, as in `mavic.types.Scene`
    agents: list[_Agent]
    instruction: _Instruction | None
    reward: float  # task reward of the tick that led here
    earned: float  # undiscounted sum of these rewards
    events: list[str]  # of the tick that led here
    verdicts: list[dict[str, Any]]  # number, kind, followed: of instructions that ended on the way
    refused: list[str]  # sentences said here that the state does not permit
    judged: int  # instructions that have ended and were counted so far
    followed: int  # how many of these were followed
    values: dict[str, float] | None  # V(h, c) by kind, mean over agents
    also: NotRequired[_Instruction]  # a second instruction that holds beside `instruction`
    over: str  # "" while the episode goes on, else "solved", "ended" or "time is up"


def frame_of(stage: Stage, episode: Episode, moment: Moment) -> Frame:
    """Return the frame of a moment.

    Args:
        stage: the team and its environment.
        episode: the episode as it is in that moment.
        moment: the state, and what the agents do in it.
    """
    env, world = stage.env, api.known(stage.env.name)
    scene = _scene_as_json(env.scene(moment.state, moment.macro))
    robots = [sprite for sprite in scene["sprites"] if sprite["shape"] == "robot"]
    macros = [enum(int(number)).name for enum, number in zip(env.macros, moment.macro, strict=True)]
    active, second = (_instruction(stage, episode, also) for also in (False, True))
    if second and not active:  # one alone always stands in the first place
        active, second = second, None
    frame = Frame(
        time=episode.time,
        scene=scene,
        agents=[
            _Agent(
                name=name,
                macro=macros[i],
                doing=world.macro_word(macros[i]),
                decided=bool(moment.fresh[i]),
                complies=moment.complies[i],
                holds=robots[i]["holds"] if i < len(robots) else "",
            )
            for i, name in enumerate(env.agents)
        ],
        instruction=active,
        reward=episode.reward,
        earned=episode.earned,
        events=list(episode.events),
        verdicts=[verdict._asdict() for verdict in episode.verdicts],
        refused=list(episode.refused),
        judged=episode.judged,
        followed=episode.followed,
        values=moment.values,
        over=episode.over,
    )
    if second:
        frame["also"] = second
    return frame


def _instruction(stage: Stage, episode: Episode, also: bool) -> _Instruction | None:
    """Return the instruction that holds in the second place or in the first."""
    instruction = episode.also if also else episode.instruction
    kind = 0 if instruction is None else int(instruction.kind.max())
    if instruction is None or not kind or episode.over:
        return None
    name, agents = stage.kinds[kind], np.flatnonzero(instruction.kind).tolist()
    said = [text for text in stage.said_texts(episode, also) if text]
    left = int(instruction.ticks_left)
    return _Instruction(
        number=episode.numbers[also],
        text=said[0] if said else name,
        kind=name,
        agents=agents,
        left=None if left > FOREVER // 2 else left,
        held=int(instruction.ticks_held),
        **_things_of(stage.instructed_env, kind, agents),
    )


def _things_of(instructed_env: InstructedEnv, kind: int, agents: list[int]) -> Any:
    """Return what a kind forbids and wants of these agents, as names of things in the scene."""
    env, rules = instructed_env.env, instructed_env.rules
    things = api.known(env.name).macro_things
    allowed, wanted = np.asarray(rules.allowed)[kind], bool(rules.lists_allowed[kind])
    named: dict[str, None] = {}
    region = things.get(_predicate(instructed_env, kind))
    if region is not None:
        named, agents = {region: None}, []
    for agent in agents:
        for macro in env.macros[agent]:
            if bool(allowed[agent, macro]) == wanted and macro.name in things:
                named[things[macro.name]] = None
    forbids, wants = ([], list(named)) if wanted else (list(named), [])
    fulfils = np.flatnonzero(np.asarray(rules.outcome)[kind] > 0)
    events = [api.plain(env.events[event]) for event in fulfils]
    wants += [thing for thing in things.values() if any(e.endswith(thing) for e in events)]
    return {"forbids": forbids, "wants": wants, "replaces": bool(rules.replaces[kind])}


def _predicate(instructed_env: InstructedEnv, kind: int) -> str:
    """Return the predicate that must hold of what a kind forbids or wants; empty if there is none."""
    rules = instructed_env.rules
    if rules.predicate is None or rules.negated is None or bool(rules.negated[kind]):
        return ""
    number = int(rules.predicate[kind])
    return api.predicates_of(instructed_env.env)[number - 1] if number else ""


def _scene_as_json(scene: Scene) -> dict[str, Any]:
    """Return a scene as plain dicts and lists."""
    sprites = [dict(vars(sprite)) for sprite in scene.sprites]
    steps = [dict(vars(step)) for step in scene.steps]
    return {**vars(scene), "sprites": sprites, "notes": list(scene.notes), "steps": steps}
