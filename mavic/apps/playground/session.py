"""What one page watches: episodes of one team or of two side by side, with what is said to them, all recorded."""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from pydantic_core import to_json

from mavic.apps.frames import Frame, frame_of
from mavic.apps.playground.answers import listed
from mavic.apps.playground.catalog import Catalog
from mavic.apps.playground.conversation import Conversation, Side
from mavic.apps.playground.limits import LARGEST_SEED, RequestError
from mavic.apps.playground.messages import GUEST, Frames, Opened
from mavic.apps.recording import Recording
from mavic.envs import api
from mavic.experiment import talk
from mavic.experiment.task import instructions_of
from mavic.instruct.spec import InstructionFile


@dataclass(kw_only=True)
class Session(Conversation):
    """What a page watches."""

    seed: int
    seats: tuple[int, ...]  # the agents that people drive
    wishes: dict[int, int] = field(default_factory=dict)  # the macros that they asked for, by agent
    closed: bool = False  # the end of the episode has been shown
    ticks: int = 0  # frames sent, over all episodes
    apart: str = ""  # what the teams differ in beside the correction

    @property
    def seat(self) -> int | None:
        """The agent that the only person drives, if there is one."""
        return self.seats[0] if self.seats else None

    def reset(self, seed: int) -> None:
        """Start a new episode. The recording of the earlier ones stays."""
        self.seed = seed % (LARGEST_SEED + 1)
        self.wishes, self.closed = {}, False
        for side in self.sides:
            side.earlier = side.counts()
            side.episode = side.stage.start(jax.random.key(self.seed))
        orders = self.orders
        orders.log, orders.cues, orders.offers = [], [], ()
        again, orders.holding = orders.standing, []
        for order in again:
            self.offer([order], beside=True)
            also = "also " if order is not again[0] else ""
            orders.note(self.time, also + order.asked.text, order.agents)

    def drive(self, macro: str, seat: int | None = None) -> None:
        """Note which macro the person in a seat wants to run next. None: the only seat."""
        seat = self.seat if seat is None else seat
        if seat not in self.seats:
            raise RequestError("you drive no agent; choose a seat first")
        enum = self.stage.env.macros[seat]
        if macro not in enum.__members__:
            raise RequestError(f"{macro!r} is none of this agent's macros")
        self.wishes[seat] = int(enum[macro])

    def tick(self) -> Frames:
        """Run one tick of all teams and return the message for the page. A team whose episode is over waits."""
        wishes, self.wishes, self.closed = self.wishes, {}, self.over
        self.say_what_is_due()
        frames = []
        for side in self.sides:
            before = side.episode
            if before.over:
                moment = before.still()
            else:
                moment, side.episode = side.stage.advance(before, wishes)
            sent = _as_sent(side, frame_of(side.stage, before, moment))
            side.frames.append(zlib.compress(to_json(sent), 1))
            frames.append(sent)
        self.ticks += 1
        return self._message(frames, still=False)

    def look(self) -> Frames:
        """Return the message with the present state. No tick is run, and no frame is recorded."""
        now = [
            (side, frame_of(side.stage, side.episode, side.episode.still())) for side in self.sides
        ]
        return self._message([_as_sent(side, frame) for side, frame in now], still=True)

    def _message(self, frames: list[dict[str, Any]], *, still: bool) -> Frames:
        return Frames(
            frames=frames,
            number=self.ticks,
            seed=self.seed,
            over=self.over,
            still=still,
            totals=[side.counts() for side in self.sides],
            standing=bool(self.orders.standing),
            holding=[
                Frames.Chip(
                    text=o.heard.text, kind=o.heard.kind, agents=listed(o.agents), hold=o.hold
                )
                for o in self.orders.holding
            ],
            queued=[
                " and ".join(order.heard.text for order in group) for group in self.orders.queue
            ],
            log=[cue._asdict() for cue in self.orders.log],
        )

    def recordings(self) -> list[Recording]:
        """Return the last `LONGEST_RECORDING` ticks of each team."""
        made = []
        for side in self.sides:
            frames = [json.loads(zlib.decompress(frame)) for frame in list(side.frames)]
            for frame in frames:
                if frame["values"]:
                    frame["values"] = dict(zip(side.stage.kinds, frame["values"], strict=True))
            made.append(
                dataclasses.replace(
                    Recording.of(side.stage, frames), about=side.about, leak=side.leak
                )
            )
        return made

    def opened(self) -> Opened:
        """Return the message that tells a page about this session."""
        env, world = self.stage.env, api.known(self.world)
        file = InstructionFile.read(instructions_of(self.world))
        about = talk.cast_of(self.world, tuple(env.agents)).about
        things = {
            k.name: sorted(about[k.name].things) if k.name in about else [] for k in file.kinds
        }
        learnt, addressed = self.learnt, np.asarray(self.stage.instructed_env.rules.addressed)
        return Opened(
            world=self.world,
            title=world.title or api.plain(self.world),
            job=world.job,
            examples=list(world.examples),
            seed=self.seed,
            seat=self.seat,
            apart=self.apart,
            recordings=[
                Opened.Team(
                    name=side.stage.name,
                    about=side.about,
                    leak=side.leak,
                    agents=list(env.agents),
                    agent_words=list(self.names),
                    kinds=list(side.stage.kinds),
                    kind_words=list(talk.kind_words(self.world, side.stage.kinds)),
                )
                for side in self.sides
            ],
            macros=[[macro.name for macro in enum] for enum in env.macros],
            macro_words=[[world.macro_word(macro.name) for macro in enum] for enum in env.macros],
            asks=[
                Opened.Kind(
                    kind=kind.name,
                    meaning=kind.meaning,
                    phrases=list(kind.train + kind.held_out),
                    phrase=_offered(kind.train + kind.held_out, things[kind.name]),
                    things=things[kind.name],
                    agents=np.flatnonzero(addressed[self.stage.kinds.index(kind.name)]).tolist(),
                    wants=kind.allow is not None,
                    learnt=kind.name in learnt,
                )
                for kind in file.kinds
            ],
        )


def _offered(phrases: Sequence[str], things: Collection[str]) -> str:
    """Return the phrase to offer: one that calls a thing what the picture calls it, or else one without numbers."""
    named = [phrase for phrase in phrases if any(thing in phrase for thing in things)]
    plain = [phrase for phrase in phrases if not any(map(str.isdigit, phrase))]
    return (*named, *plain, *phrases)[0]


def _as_sent(side: Side, frame: Frame) -> dict[str, Any]:
    """Return a frame as a page gets it: rounded, values in the order of the kinds, and instructions numbered through
    all episodes of the session."""
    values, active = frame["values"], frame["instruction"]
    second = frame.get("also")
    return {
        **frame,
        "reward": round(frame["reward"], 4),
        "earned": round(frame["earned"], 4),
        "values": values and [round(values[kind], 2) for kind in side.stage.kinds],
        "instruction": active and {**active, "number": active["number"] + side.earlier.given},
        **({"also": {**second, "number": second["number"] + side.earlier.given}} if second else {}),
        "verdicts": [{**v, "number": v["number"] + side.earlier.given} for v in frame["verdicts"]],
    }


def open_session(
    catalog: Catalog,
    world: str,
    teams: Sequence[str],
    seed: int,
    seat: int | str | None,
    *more_seats: int | str,
) -> Session:
    """Return a new session.

    Args:
        catalog: the teams.
        world: the world.
        teams: the names of one team, or of two that play side by side.
        seed: which episode comes first.
        seat: the number of the agent that the person drives, "guest" for one more agent, or None.
        more_seats: those of further people.
    """
    if not 1 <= len(teams) <= 2:
        raise RequestError("one team plays, or two side by side")
    wanted = () if seat is None else (seat, *more_seats)
    sides = []
    for number, name in enumerate(teams):
        stage = catalog.stage(world, name, GUEST in wanted)
        numbers = [len(stage.env.agents) - 1 if one == GUEST else int(one) for one in wanted]
        stage = dataclasses.replace(stage, seats=tuple(numbers))
        called = catalog.called(world, name)
        label = f"{called} (again)" if name in teams[:number] else called
        stage = dataclasses.replace(stage, name=label)
        start, about = stage.start(jax.random.key(seed)), catalog.about(world, name)
        leak = catalog.leak(world, name)
        sides.append(Side(stage=stage, episode=start, about=about, leak=leak))
    if len({(side.stage.kinds, side.stage.env.agents) for side in sides}) > 1:
        raise RequestError(f"{teams[0]} and {teams[1]} have other agents or hear other kinds")
    apart = catalog.apart(world, teams)
    return Session(world=world, sides=sides, seed=seed, seats=sides[0].stage.seats, apart=apart)
