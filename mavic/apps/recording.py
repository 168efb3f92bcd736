"""A recording: the frames of one episode, to look at in a page, a GIF or a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

from mavic.apps.frames import Frame, frame_of
from mavic.teams.episode import Cue
from mavic.teams.stage import Stage, open_stage
from mavic.types import Array


@dataclass(frozen=True, kw_only=True)
class Recording:
    """The frames of an episode and what is needed to draw them."""

    name: str
    world: str
    agents: tuple[str, ...]
    kinds: tuple[str, ...]  # the first is "none"
    frames: tuple[Frame, ...]
    about: str = ""  # what sort of team it is
    leak: tuple[float, float] | None = None
    """What the team expects without an instruction and what it then earns, both discounted; None: not measured."""

    @classmethod
    def of(cls, stage: Stage, frames: Sequence[Frame]) -> Recording:
        """Return frames of a stage as a recording."""
        return cls(
            name=stage.name,
            world=stage.env.name,
            agents=tuple(stage.env.agents),
            kinds=stage.kinds,
            frames=tuple(frames),
        )

    @classmethod
    def of_episode(
        cls, stage: Stage, key: Array, script: Sequence[Cue] | None = None, ticks: int | None = None
    ) -> Recording:
        """Play one episode and return its recording. The arguments are those of `Stage.play`."""
        return cls.of(stage, [frame_of(stage, *now) for now in stage.play(key, script, ticks)])

    @classmethod
    def of_policy(
        cls,
        path: str | Path,
        seed: int,
        script: Sequence[tuple[int, str, int]] = (),
        ticks: int | None = None,
        options: Mapping[str, Any] | None = None,
        shield: bool = False,
        also: Sequence[tuple[int, str, int]] = (),
    ) -> Recording:
        """Play one episode of the team in a policy file and return its recording.

        Args:
            path: the policy file, or the name of a shipped team.
            seed: which episode.
            script: what is said, as (tick, words, hold). Without it, instructions come by the schedule of the file.
            ticks: how many ticks are recorded at most.
            options: options of the world that differ from the team's training.
            shield: enforce instructions: what they forbid is not available to the agents they address.
            also: as `script`; these instructions hold beside the active one instead of replacing it.
        """
        stage = open_stage(path, options=options, shield=shield)
        cues = [
            Cue(tick, words, None, hold, beside)
            for lines, beside in ((script, False), (also, True))
            for tick, words, hold in lines
        ]
        return cls.of_episode(stage, jax.random.key(seed), cues or None, ticks)
