"""One page's episode: one team or two with the same luck, words said to them, a person in a seat,
and all of it on film."""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from mavic.apps import stage
from mavic.apps.playground.catalog import Catalog, words_of
from mavic.apps.stage import Film, Frame, Heard, Moment, Show

LONGEST_FILM = 500  # ticks kept of what was played
LARGEST_SEED = 2**31 - 1
GUEST = "guest"  # the seat of somebody who joins the team


class VisitError(ValueError):
    """What the page asks for cannot be done; the message says why."""


@dataclass(kw_only=True)
class Lane:
    """A team's side of the visit."""

    show: Show
    moment: Moment
    frames: deque[bytes] = field(default_factory=lambda: deque(maxlen=LONGEST_FILM))
    given: int = 0  # instructions of earlier episodes
    judged: int = 0
    followed: int = 0


@dataclass(kw_only=True)
class Visit:
    """What a page watches."""

    world: str
    lanes: list[Lane]
    seed: int
    seat: int | None
    wish: int | None = None
    closed: bool = False  # the end of the episode has been shown
    ticks: int = 0  # pictures sent, over all episodes

    @property
    def show(self) -> Show:
        """The first team's stage: both have the same agents, macros and kinds."""
        return self.lanes[0].show

    @property
    def over(self) -> bool:
        """Whether everybody's episode has ended."""
        return all(lane.moment.over for lane in self.lanes)

    def reset(self, seed: int) -> None:
        """A new episode; what was played before stays on film."""
        self.seed = seed % LARGEST_SEED
        self.wish, self.closed = None, False
        for lane in self.lanes:
            lane.given += int(lane.moment.asked.given)
            lane.judged += lane.moment.judged
            lane.followed += lane.moment.followed
            lane.moment = stage.start(lane.show, jax.random.key(self.seed))

    def say(self, heard: Heard, agents: Sequence[int] | None, hold: int | None) -> list[str]:
        """Tell all teams; gives what was refused because the state does not permit it."""
        setting = self.show.setting
        meant = np.asarray(setting.rules.addressed)[setting.rules.names.index(heard.kind)]
        told = range(len(meant)) if agents is None else agents
        if not any(meant[agent] for agent in told):
            who = [
                name for name, is_meant in zip(setting.env.agents, meant, strict=True) if is_meant
            ]
            raise VisitError(f"“{heard.kind}” is only for {', '.join(who)}")
        refused: list[str] = []
        for lane in self.lanes:
            before = len(lane.moment.refused)
            lane.moment = stage.say(lane.show, lane.moment, heard, agents, hold)
            if len(lane.moment.refused) > before:
                refused.append(lane.show.name)
        return refused

    def end(self) -> None:
        """End what is being asked."""
        for lane in self.lanes:
            lane.moment = stage.say(lane.show, lane.moment, "none")

    def drive(self, macro: str) -> None:
        """What the person in the seat wants to do next."""
        if self.seat is None:
            raise VisitError("nobody plays along; choose a seat first")
        enum = self.show.setting.env.macros[self.seat]
        if macro not in enum.__members__:
            raise VisitError(f"{macro!r} is none of this agent's macros")
        self.wish = int(enum[macro])

    def tick(self) -> str:
        """Everybody decides and moves; the message for the page. Who is at an end waits there."""
        wishes = {} if self.wish is None or self.seat is None else {self.seat: self.wish}
        self.wish, self.closed = None, self.over
        frames = []
        for lane in self.lanes:
            if lane.moment.over:
                frame = stage.ending(lane.show, lane.moment)
            else:
                frame, lane.moment = stage.advance(lane.show, lane.moment, wishes)
            frames.append(self._record(lane, frame))
        self.ticks += 1
        return self._message(frames, still=False)

    def look(self) -> str:
        """The picture as it stands, nobody moving."""
        frames = [self._text(lane, stage.ending(lane.show, lane.moment)) for lane in self.lanes]
        return self._message(frames, still=True)

    def _record(self, lane: Lane, frame: Frame) -> str:
        text = self._text(lane, frame)
        lane.frames.append(zlib.compress(text.encode(), 1))
        return text

    def _text(self, lane: Lane, frame: Frame) -> str:
        values = frame["values"]
        made: dict[str, Any] = {**frame, "reward": round(frame["reward"], 4)}
        made["earned"] = round(frame["earned"], 4)
        kinds = lane.show.setting.rules.names
        made["values"] = values and [round(values[kind], 2) for kind in kinds]
        if asked := frame["instruction"]:  # numbered through all episodes of the film
            made["instruction"] = {**asked, "number": asked["number"] + lane.given}
        made["verdicts"] = [{**v, "number": v["number"] + lane.given} for v in frame["verdicts"]]
        return json.dumps(made, separators=(",", ":"), allow_nan=False)

    def _message(self, frames: Sequence[str], *, still: bool) -> str:
        totals = [
            {
                "given": lane.given + int(lane.moment.asked.given),
                "judged": lane.judged + lane.moment.judged,
                "followed": lane.followed + lane.moment.followed,
            }
            for lane in self.lanes
        ]
        about = json.dumps(
            {
                "number": self.ticks,
                "seed": self.seed,
                "over": self.over,
                "still": still,
                "totals": totals,
            }
        )
        return f'{{"type":"frame","frames":[{",".join(frames)}],{about[1:]}'

    def films(self) -> list[Film]:
        """What was played, the last `LONGEST_FILM` ticks of it."""
        made = []
        for lane in self.lanes:
            frames = [json.loads(zlib.decompress(frame)) for frame in list(lane.frames)]
            kinds = lane.show.setting.rules.names
            for frame in frames:
                if frame["values"]:
                    frame["values"] = dict(zip(kinds, frame["values"], strict=True))
            made.append(dataclasses.replace(lane.show.film, frames=tuple(frames)))
        return made

    def facts(self) -> dict[str, Any]:
        """What a page must know of it."""
        env = self.show.setting.env
        return {
            "type": "opened",
            "world": self.world,
            "seed": self.seed,
            "seat": self.seat,
            "films": [
                {
                    "name": lane.show.name,
                    "agents": env.agents,
                    "kinds": lane.show.setting.rules.names,
                }
                for lane in self.lanes
            ],
            "macros": [[macro.name for macro in enum] for enum in env.macros],
            "asks": [
                {
                    "kind": kind.name,
                    "meaning": kind.meaning,
                    "phrases": list(kind.train + kind.held_out),
                }
                for kind in words_of(self.world).kinds
            ],
        }


def open_visit(
    catalog: Catalog, world: str, teams: Sequence[str], seed: int, seat: int | str | None
) -> Visit:
    """A first moment for one team or two."""
    if not 1 <= len(teams) <= 2:
        raise VisitError("one team plays, or two side by side")
    guest = seat == GUEST
    lanes = []
    for number, name in enumerate(teams):
        show = catalog.show(world, name, guest)
        if isinstance(seat, int):
            show = dataclasses.replace(show, seats=(seat,))
        label = f"{name} (again)" if name in teams[:number] else name
        show = dataclasses.replace(show, name=label)
        lanes.append(Lane(show=show, moment=stage.start(show, jax.random.key(seed))))
    kinds = {(lane.show.setting.rules.names, lane.show.setting.env.agents) for lane in lanes}
    if len(kinds) > 1:
        raise VisitError(f"{teams[0]} and {teams[1]} have other agents or hear other kinds")
    seats = lanes[0].show.seats
    return Visit(world=world, lanes=lanes, seed=seed, seat=seats[0] if seats else None)
