"""What a recorded episode shows, as facts and as sentences. Captions say this and no more."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mavic.apps.frames import Frame
from mavic.apps.recording import Recording

ALIKE = 0.1  # share of the ticks by which two teams may differ and still count as alike


APART = "They were trained in different settings, so not every difference is the correction's."


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The facts of one episode."""

    ticks: int
    over: str  # as in `Frame`
    told: int  # ticks under an instruction
    disobeyed: int  # how many of them some addressed agent did not comply in
    forbidden: tuple[str, ...]  # the things that the instruction forbids
    misused: tuple[str, ...]  # those of them that agents began to use while they were forbidden
    instead: tuple[str, ...]  # things of the same sort that they began to use meanwhile
    earned: float

    @property
    def finished(self) -> bool:
        """Whether the task was done."""
        return self.over == "solved"

    @property
    def obeyed(self) -> bool:
        """Whether the team was told something and complied at every tick."""
        return self.told > 0 and not self.disobeyed


def see(recording: Recording) -> Seen:
    """Return the facts of a recorded episode."""
    frames = recording.frames
    told = [frame for frame in frames if frame["instruction"]]
    forbidden = sorted({thing for frame in told for thing in _forbidden(frame)})
    begun = [
        thing
        for before, frame in itertools.pairwise(frames)
        if before["instruction"]
        for thing in sorted(_in_use(frame) - _in_use(before))
    ]
    sorts = {s["name"]: _sort(s) for s in frames[0]["scene"]["sprites"] if s["name"]}
    wants = any(frame["instruction"].get("wants") for frame in told if frame["instruction"])
    alike = set() if wants else {sorts.get(thing) for thing in forbidden} - {None}
    return Seen(
        ticks=frames[-1]["time"],
        over=frames[-1]["over"],
        told=len(told),
        disobeyed=sum(any(a["complies"] is False for a in frame["agents"]) for frame in told),
        forbidden=tuple(forbidden),
        misused=tuple(dict.fromkeys(thing for thing in begun if thing in forbidden)),
        instead=tuple(
            dict.fromkeys(t for t in begun if t not in forbidden and sorts.get(t) in alike)
        ),
        earned=frames[-1]["earned"],
    )


def _forbidden(frame: Frame) -> list[str]:
    active = frame["instruction"]
    return [] if active is None else active.get("forbids", [])


def _sort(sprite: Mapping[str, str]) -> str | None:
    """Return what sort of thing a sprite is: that of its picture, such as `board`."""
    return sprite["picture"].split("-")[0] or None


def _in_use(frame: Frame) -> set[str]:
    """Return the names of the things that have something in them or that an agent holds."""
    sprites = frame["scene"]["sprites"]
    full = {s["name"] for s in sprites if s["shape"] == "station" and s["holds"]}
    held = {part for s in sprites if s["shape"] == "robot" for part in s["holds"].split(" with ")}
    return (full | held) - {""}


def on_the_way(
    frames: Sequence[Frame], thing: str, things: Mapping[str, str], *, loaded: bool = False
) -> tuple[int, int] | None:
    """Return the first agent that goes to a thing, and the tick in the middle of its way.

    Args:
        frames: of one episode.
        thing: the name of the thing.
        things: names of things by macro.
        loaded: the agent must carry something.
    """
    for first, frame in enumerate(frames):
        for agent, doing in enumerate(frame["agents"]):
            last = first
            while last < len(frames) and _goes(frames[last], agent, thing, things, loaded):
                last += 1
            if doing["decided"] and last - first > 1:
                return agent, frames[(first + last - 1) // 2]["time"]
    return None


def _goes(frame: Frame, agent: int, thing: str, things: Mapping[str, str], loaded: bool) -> bool:
    doing = frame["agents"][agent]
    return things.get(doing["macro"]) == thing and (bool(doing["holds"]) or not loaded)


def expectation(
    values: Sequence[Mapping[str, float] | None], rewards: Sequence[float], gamma: float
) -> tuple[float, float] | None:
    """Return what a team expects on average, and what it then earns. If the first is much lower, its values leak.

    Args:
        values: V(h, c) by kind at each tick of an episode without an instruction.
        rewards: of the task, of the same ticks.
        gamma: the discount.
    """
    expected = [one["none"] for one in values if one is not None]
    if not expected or len(expected) < len(rewards):
        return None
    earned = np.zeros(len(rewards) + 1)
    for i in reversed(range(len(rewards))):
        earned[i] = rewards[i] + gamma * earned[i + 1]
    return round(float(np.mean(expected)), 2), round(float(earned[:-1].mean()), 2)


def the(thing: str) -> str:
    """Return the name of a thing with its article; numbered things have none."""
    return thing if thing[-1].isdigit() else f"the {thing}"


def end_words(seen: Seen) -> str:
    """Return how an episode ended, such as `finishes after 69 ticks`."""
    if seen.finished:
        return f"finishes after {seen.ticks} moves"
    if seen.over:
        return f"has not finished when the time is up, after {seen.ticks} moves"
    return f"has not finished after {seen.ticks} moves"


def caption(seen: Seen) -> str:
    """Return what a team did in an episode, as a part of a sentence."""
    said = []
    if seen.told:
        said.append(
            "obeys"
            if seen.obeyed
            else f"does not obey in {seen.disobeyed} of the {seen.told} moves in which it is told"
        )
    if seen.instead and not seen.misused:
        said.append(f"uses {' and '.join(map(the, seen.instead))} instead")
    return ", ".join([*said, end_words(seen)])


def contrast(names: Sequence[str], both: Sequence[Seen], apart: str = "") -> str:
    """Return how two teams differ in an episode, or that they do not.

    Args:
        names: of the teams.
        both: what they did.
        apart: what else they differ in, as a sentence.
    """
    one, two = both
    said = []
    for fact, words in (("obeyed", "obeys"), ("finished", "finishes")):
        if getattr(one, fact) != getattr(two, fact):
            who = names[0] if getattr(one, fact) else names[1]
            said.append(f"only the team {who} {words}")
    if (
        one.finished
        and two.finished
        and abs(one.ticks - two.ticks) > ALIKE * max(one.ticks, two.ticks)
    ):
        faster = names[0] if one.ticks < two.ticks else names[1]
        said.append(f"the team {faster} is {abs(one.ticks - two.ticks)} moves faster")
    if not said:
        return "The two teams do alike here."
    return f"They differ: {' and '.join(said)}. {apart}".strip()
