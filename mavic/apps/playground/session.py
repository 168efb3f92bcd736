"""What one page watches: episodes of one team or of two side by side, with what is said to them, all recorded."""

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
from pydantic_core import to_json

from mavic.apps.frames import Frame, frame_of
from mavic.apps.playground.catalog import Catalog
from mavic.apps.playground.limits import LARGEST_SEED, LONGEST_RECORDING, RequestError
from mavic.apps.playground.messages import GUEST, Frames, Opened
from mavic.apps.playground.orders import QUEUED_HOLD, Line, Order, Orders, names_of
from mavic.apps.recording import Recording
from mavic.envs import api
from mavic.experiment.task import instructions_of
from mavic.instruct.spec import InstructionFile
from mavic.language.conversation.hearing import Heard
from mavic.teams.episode import Episode
from mavic.teams.stage import Stage, StageError


@dataclass(kw_only=True)
class _Side:
    """One team of a session: its stage, its present episode and its frames so far."""

    stage: Stage
    episode: Episode
    frames: deque[bytes] = field(default_factory=lambda: deque(maxlen=LONGEST_RECORDING))
    about: str = ""  # what sort of team it is
    leak: tuple[float, float] | None = None  # what it expects without an instruction, and earns
    earlier: Frames.Counts = field(default_factory=Frames.Counts)  # in the episodes before it

    def counts(self) -> Frames.Counts:
        """Return how many instructions were given, judged and followed in all episodes."""
        before, now = self.earlier, self.episode
        return Frames.Counts(
            given=before.given + now.given,
            judged=before.judged + now.judged,
            followed=before.followed + now.followed,
        )


@dataclass(kw_only=True)
class Session:
    """What a page watches."""

    world: str
    sides: list[_Side]
    seed: int
    seat: int | None  # the agent that the person drives
    wish: int | None = None  # the macro that the person asked for
    closed: bool = False  # the end of the episode has been shown
    ticks: int = 0  # frames sent, over all episodes
    orders: Orders = field(default_factory=Orders)

    @property
    def stage(self) -> Stage:
        """The first team's stage. Both teams have the same agents, macros and kinds."""
        return self.sides[0].stage

    @property
    def names(self) -> tuple[str, ...]:
        """What people call the agents."""
        return names_of(self.world, self.stage.env.agents)

    @property
    def over(self) -> bool:
        """Whether the episodes of all teams have ended."""
        return all(side.episode.over for side in self.sides)

    def reset(self, seed: int) -> None:
        """Start a new episode. The recording of the earlier ones stays."""
        self.seed = seed % (LARGEST_SEED + 1)
        self.wish, self.closed = None, False
        for side in self.sides:
            side.earlier = side.counts()
            side.episode = side.stage.start(jax.random.key(self.seed))
        self.orders.log, self.orders.cues = [], []
        if self.orders.standing is not None:
            self._offer(self.orders.standing)

    def check_agents(self, agents: Sequence[int] | None) -> None:
        """Raise `RequestError` unless all numbers are numbers of agents."""
        last = len(self.stage.env.agents) - 1
        if not all(0 <= agent <= last for agent in agents or ()):
            raise RequestError(f"agents must be a list of numbers from 0 to {last}")

    def say(
        self, heard: Heard, agents: Sequence[int] | None, hold: int | None, also: bool = False
    ) -> list[str]:
        """Give an instruction to all teams. If it is wrong for one of them, none gets it.

        Args:
            heard: the instruction.
            agents: whom it addresses. None: all that no person drives.
            hold: ticks. None: until it is ended.
            also: it holds beside the active one instead of replacing it.

        Returns:
            The names of the teams whose state does not permit it.
        """
        self.check_agents(agents)
        self._check_meant(heard, agents)
        told = [side.stage.say(side.episode, heard, agents, hold, also) for side in self.sides]
        refused = []
        for side, episode in zip(self.sides, told, strict=True):
            if len(episode.refused) > len(side.episode.refused):
                refused.append(side.stage.name)
            side.episode = episode
        return refused

    def _check_meant(self, heard: Heard, agents: Sequence[int] | None) -> None:
        """Raise `RequestError` unless the kind is meant for one of the agents."""
        kind = self.stage.kinds.index(heard.kind)
        meant = np.asarray(self.stage.instructed_env.rules.addressed)[kind]
        if not any(meant[agent] for agent in (range(len(meant)) if agents is None else agents)):
            who = [name for name, is_meant in zip(self.names, meant, strict=True) if is_meant]
            raise RequestError(f"“{heard.text}” is only for {', '.join(who)}")

    def end(self) -> None:
        """End all active instructions. What waits for its turn follows."""
        self.orders.standing = None
        self.orders.note(self.time, "")
        for side in self.sides:
            side.episode = side.stage.say(side.episode, "none")

    @property
    def time(self) -> int:
        """The tick of the episode that is played."""
        return max(side.episode.time for side in self.sides)

    @property
    def instructed(self) -> bool:
        """Whether an instruction holds in some team."""
        playing = [side.episode for side in self.sides if not side.episode.over]
        holding = [one for e in playing for one in (e.instruction, e.also) if one is not None]
        return any(bool(instruction.kind.any()) for instruction in holding)

    def obey(self, line: Line) -> list[str]:
        """Carry out a line that is clear. Return the names of the teams whose state does not permit it."""
        self.orders.queue, self.orders.cues = [], []
        if line.ends:
            self.end()
            return []
        first, *rest = line.orders
        if rest and first.hold is None:
            first = first._replace(hold=QUEUED_HOLD)
        refused = self._give(first)
        self.orders.queue = [
            order if order is rest[-1] or order.hold else order._replace(hold=QUEUED_HOLD)
            for order in rest
        ]
        return refused

    def _give(self, order: Order) -> list[str]:
        """Give one order to all teams now."""
        before = [side.episode for side in self.sides]
        refused = self.say(order.heard, order.agents, order.hold)
        if order.beside is not None:
            try:
                second = order.beside
                refused += self.say(second.heard, second.agents, order.hold, also=True)
            except (StageError, RequestError):  # give both or none
                for side, episode in zip(self.sides, before, strict=True):
                    side.episode = episode
                raise
        self.orders.standing = order if order.hold is None else None
        self.orders.note(self.time, order.line, order.agents, order.hold)
        return list(dict.fromkeys(refused))

    def _offer(self, order: Order) -> None:
        """Give an order whose turn has come. One that cannot be given is dropped, and the next frame says so."""
        try:
            self._give(order)
        except (StageError, RequestError):
            for side in self.sides:
                refused = (*side.episode.refused, order.line or order.heard.text)
                side.episode = dataclasses.replace(side.episode, refused=refused)

    def _say_what_is_due(self) -> None:
        """Say what a shared address says at this tick. If no instruction holds, give the next of the queue."""
        for order in self.orders.take_cues(self.time):
            if order is None:
                self.end()
            else:
                self._offer(order)
        if self.instructed or self.over:
            return
        if self.time and not any(side.episode.over for side in self.sides):
            self.orders.standing = None  # it was resolved
        if self.orders.queue:
            self._offer(self.orders.queue.pop(0))

    def drive(self, macro: str) -> None:
        """Note which macro the person in the seat wants to run next."""
        if self.seat is None:
            raise RequestError("you drive no agent; choose a seat first")
        enum = self.stage.env.macros[self.seat]
        if macro not in enum.__members__:
            raise RequestError(f"{macro!r} is none of this agent's macros")
        self.wish = int(enum[macro])

    def tick(self) -> Frames:
        """Run one tick of all teams and return the message for the page. A team whose episode is over waits."""
        wishes = {} if self.wish is None or self.seat is None else {self.seat: self.wish}
        self.wish, self.closed = None, self.over
        self._say_what_is_due()
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
            standing=self.orders.standing is not None,
            queued=[order.heard.text for order in self.orders.queue],
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
        return Opened(
            world=self.world,
            title=world.title or api.plain(self.world),
            job=world.job,
            examples=list(world.examples),
            seed=self.seed,
            seat=self.seat,
            recordings=[
                Opened.Team(
                    name=side.stage.name,
                    about=side.about,
                    leak=side.leak,
                    agents=list(env.agents),
                    agent_words=list(self.names),
                    kinds=list(side.stage.kinds),
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
                )
                for kind in InstructionFile.read(instructions_of(self.world)).kinds
            ],
        )


def _as_sent(side: _Side, frame: Frame) -> dict[str, Any]:
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
    catalog: Catalog, world: str, teams: Sequence[str], seed: int, seat: int | str | None
) -> Session:
    """Return a new session.

    Args:
        catalog: the teams.
        world: the world.
        teams: the names of one team, or of two that play side by side.
        seed: which episode comes first.
        seat: the number of the agent that the person drives, "guest" for one more agent, or None.
    """
    if not 1 <= len(teams) <= 2:
        raise RequestError("one team plays, or two side by side")
    sides = []
    for number, name in enumerate(teams):
        stage = catalog.stage(world, name, seat == GUEST)
        if isinstance(seat, int):
            stage = dataclasses.replace(stage, seats=(seat,))
        called = catalog.called(world, name)
        label = f"{called} (again)" if name in teams[:number] else called
        stage = dataclasses.replace(stage, name=label)
        start, about = stage.start(jax.random.key(seed)), catalog.about(world, name)
        leak = catalog.leak(world, name)
        sides.append(_Side(stage=stage, episode=start, about=about, leak=leak))
    if len({(side.stage.kinds, side.stage.env.agents) for side in sides}) > 1:
        raise RequestError(f"{teams[0]} and {teams[1]} have other agents or hear other kinds")
    seats = sides[0].stage.seats
    return Session(world=world, sides=sides, seed=seed, seat=seats[0] if seats else None)
