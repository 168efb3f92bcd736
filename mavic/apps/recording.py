"""A recording: the frames of one episode, to look at in a page, a GIF or a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax

from mavic.apps.frames import Frame
from mavic.apps.stage import (
    Stage,
    Team,
    addressed,
    advance,
    last_frame,
    meaning,
    open_stage,
    say,
    start,
)
from mavic.instruct import schedule
from mavic.language.lexicon import Lexicon
from mavic.rollout.step import InstructedEnv
from mavic.types import Array, replace


@dataclass(frozen=True, kw_only=True)
class Recording:
    """The frames of an episode and what is needed to draw them."""

    name: str
    world: str
    agents: tuple[str, ...]
    kinds: tuple[str, ...]  # the first is "none"
    frames: tuple[Frame, ...]


class Cue(NamedTuple):
    """A line of a script: these words are said before tick `tick`."""

    tick: int
    words: str  # a kind's name, a phrase, a free sentence, or "none" to end the active instruction
    agents: Sequence[str | int] | None = None  # names or numbers; None: all that the kind addresses
    hold: int | None = None  # ticks; None: until it is resolved or the episode ends
    also: bool = False  # it holds beside the active instruction instead of replacing it


def recording_of(stage: Stage, frames: Sequence[Frame]) -> Recording:
    """Return frames of a stage as a recording."""
    return Recording(
        name=stage.name,
        world=stage.env.name,
        agents=tuple(stage.env.agents),
        kinds=stage.kinds,
        frames=tuple(frames),
    )


def record(
    team: Team,
    instructed_env: InstructedEnv,
    lexicon: Lexicon,
    key: Array,
    script: Sequence[Cue | tuple] | None = None,
    ticks: int | None = None,
    *,
    name: str = "team",
    hears: bool = True,
    own_words: bool = False,
    greedy: bool = False,
) -> Recording:
    """Return the recording of one episode, or of its first `ticks`.

    A `script` replaces the schedule of the environment. Two teams with the same key and script can be compared side by
    side: they meet the same random numbers. A wrong script is refused before the episode starts.
    """
    cues = None if script is None else [Cue(*line) for line in script]
    if cues is not None:
        silent = schedule.make_schedule(shield=instructed_env.schedule.shield)
        instructed_env = replace(instructed_env, schedule=silent)
    stage = Stage(
        team=team,
        instructed_env=instructed_env,
        lexicon=lexicon,
        hears=hears,
        own_words=own_words,
        greedy=greedy,
        name=name,
    )
    for cue in cues or ():
        meaning(lexicon, cue.words, own_words)
        addressed(stage.env, cue.agents)
    episode = start(stage, key)
    frames = []
    limit = stage.env.horizon if ticks is None else min(ticks, stage.env.horizon)
    while not episode.over and episode.time < limit:
        for cue in cues or ():
            if cue.tick == episode.time:
                episode = say(stage, episode, *cue[1:])
        frame, episode = advance(stage, episode)
        frames.append(frame)
    frames.append(last_frame(stage, episode))
    return recording_of(stage, frames)


def record_policy(
    path: str | Path,
    seed: int,
    script: Sequence[tuple[int, str, int]] = (),
    ticks: int | None = None,
    options: Mapping[str, Any] | None = None,
    shield: bool = False,
    also: Sequence[tuple[int, str, int]] = (),
) -> Recording:
    """Return the recording of an episode of the team in a policy file.

    `script` holds (tick, words, hold). Without a script, instructions come by the schedule that the file names. With
    `shield`, what an instruction forbids is not available to the agents it addresses. What is in `also` holds beside
    the active instruction instead of replacing it.
    """
    stage = open_stage(path, options=options, shield=shield)
    lines = [(line, False) for line in script] + [(line, True) for line in also]
    cues = [(tick, words, None, hold, beside) for (tick, words, hold), beside in lines] or None
    return record(
        stage.team,
        stage.instructed_env,
        stage.lexicon,
        jax.random.key(seed),
        cues,
        ticks,
        name=stage.name,
        hears=stage.hears,
        own_words=stage.own_words,
    )
