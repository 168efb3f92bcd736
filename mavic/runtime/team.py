"""A team of robots: events in, commands out.

    team = open_team("folder")
    for command in team.observed("cook_0", observation):
        ...  # Start("cook_0", "GET_TOMATO", 1) or Cancel("cook_0")
    answer = team.say("don't use the left board", until=team.now() + 30)

An agent decides when it is idle and reports what it sees. When an instruction comes, changes or ends, every running
macro is cancelled, as in training: robots stop, report `ended` and what they see, and decide anew. No event of one
robot waits for another robot. A wrong event is one `EventError`, and the team stays as it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mavic.language.reader.endpoint import Endpoint
from mavic.language.text import END, NONE
from mavic.runtime import actors
from mavic.runtime.contract import Contract
from mavic.runtime.events import Answer, Cancel, Command, EventError, Start, listed
from mavic.runtime.folder import ACTORS, Export, ExportError, open_export
from mavic.runtime.log import Log
from mavic.runtime.reading import Reading, Reads, reader_of

IDLE, RUNNING, CANCELLING, SILENT = "idle", "running", "cancelling", "silent"
LATEST = 1e300  # a time that a log can hold


@dataclass
class _Robot:
    """What the team knows of one robot."""

    status: str = IDLE
    macro: int = -1  # that runs, or ran last; -1 before the first
    number: int = 0  # of its last decision
    heard_of: float = 0.0  # when it last reported
    sees: bool = False  # it reported an observation since it became idle
    failed: int = -1  # the macro that failed last; it is not offered at the next decision


class _Seen(NamedTuple):
    """What an agent's robot reported."""

    observation: np.ndarray  # [O]
    offered: np.ndarray | None  # bool [M]
    holding: np.ndarray | None  # bool [M, Q], which predicates hold of each macro
    told: Mapping[str, Sequence[str]] | None  # the same in the robot's words


@dataclass(frozen=True, kw_only=True)
class _Instruction:
    """An instruction that holds."""

    kind: np.ndarray  # [N], 0 if the agent is not addressed
    heard: actors.Heard
    text: str
    until: float | None


class RobotTeam:
    """A team that runs without JAX. One thread at a time may use it; an asyncio loop is one thread."""

    def __init__(
        self,
        export: Export,
        *,
        reader: str | Endpoint | Reads | None = None,
        seed: int = 0,
        greedy: bool = False,
        shield: bool = False,
        silent_after: float | None = 30.0,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[int], float] | None = None,
        log: str | Path | None = None,
    ) -> None:
        """Begin an episode. `open_team` describes the arguments."""
        facts = export.facts
        if silent_after is not None and not (
            isinstance(silent_after, float | int) and 0 < silent_after < LATEST
        ):
            raise ValueError(f"silent_after must be seconds above 0, or None, not {silent_after!r}")
        try:
            self.contract = Contract.of(facts)
        except ValueError as error:
            raise ExportError(f"{export.path}: {error}") from None
        path = export.file(ACTORS)
        if path is None:
            raise ExportError(f"{export.path}: it has no actors; export the team again")
        try:
            self._actors = actors.Actors(path)
        except Exception as error:  # onnxruntime has errors of its own
            raise ExportError(f"{path}: onnxruntime cannot load it ({error})") from None
        self._reader = reader_of(export, self.contract, reader)
        self._hears, self._heard_kinds = facts["hear"], np.array(facts["heard"], np.float32)
        self._size = (len(self.contract.agents), facts["observation"])
        self._check_sizes(export)
        self._needs, self.greedy, self.shield = facts["needs"], greedy, shield
        self._silent_after, self.now = silent_after, clock
        self._time = clock()  # of the present event; all its parts have one time
        self._rng = np.random.default_rng(seed)
        self._draw = draw or (lambda agent: float(self._rng.random()))
        self.log = Log(log)
        self._decisions = 0
        names = {name: facts[name] for name in ("world", "agents", "macros", "kinds")}
        settings = dict(greedy=greedy, shield=shield, silent_after=silent_after)
        self._write("open", **names, **settings, export=str(export.path), seed=seed)
        self._reset()

    def _check_sizes(self, export: Export) -> None:
        """Raise `ExportError` if the actors take other arrays than the export says."""
        agents, width = len(self.contract.agents), self._heard_kinds.shape[-1]
        wanted = {
            "observation": self._size,
            "heard": (3, agents, width),
            "memory": (3, agents, *export.facts["memory"]),
        }
        for name, size in wanted.items():
            if self._actors.sizes.get(name) != size:
                raise ExportError(
                    f"{export.path / ACTORS}: {name} has the shape {self._actors.sizes.get(name)}, by team.json {size}"
                )
        if len(self._heard_kinds) != len(self.contract.kinds):
            raise ExportError(f"{export.path}: heard must have {len(self.contract.kinds)} rows")

    def _reset(self) -> None:
        agents = len(self.contract.agents)
        self._robots = [_Robot(heard_of=self._time) for _ in range(agents)]
        self._memory = self._actors.start()
        self._observation = np.zeros(self._size, np.float32)
        self._available = self.contract.exists.copy()
        self._holds = np.zeros((*self._available.shape, len(self.contract.predicates)), bool)
        self._knows = np.zeros(agents, bool)  # whose robot said which predicates hold
        self._held: list[_Instruction | None] = [None, None]

    @property
    def agents(self) -> tuple[str, ...]:
        """The names of the agents."""
        return self.contract.agents

    @property
    def instructions(self) -> tuple[str, ...]:
        """The kinds of the instructions that hold, none to two."""
        return tuple(self.contract.kinds[one.kind.max()] for one in self._held if one is not None)

    @property
    def observation_size(self) -> int:
        """How many numbers an agent sees."""
        return self._size[1]

    def status(self, agent: str | int) -> str:
        """Return what an agent does: idle, running, cancelling or silent.

        Args:
            agent: its name or number.
        """
        return self._robots[self._agent(agent)].status

    def begin(self) -> tuple[Command, ...]:
        """Begin another job: memories are emptied, instructions end, running macros are cancelled."""
        self._time = self.now()
        self._write("begin")
        cancelled = self._cancel_all()
        robots = self._robots
        self._reset()
        for new, old in zip(self._robots, robots, strict=True):
            new.status, new.number, new.heard_of = old.status, old.number, old.heard_of
        return cancelled

    def say(
        self,
        text: str | None = None,
        *,
        kind: str | None = None,
        to: Sequence[str | int] | None = None,
        until: float | None = None,
        also: bool = False,
        reading: Reading | None = None,
    ) -> Answer:
        """Give an instruction, or end what holds.

        Args:
            text: a sentence, which the reader reads; or
            kind: a kind by its name, or "end".
            to: names or numbers of agents. None: all that the kind addresses.
            until: the time by the team's clock (`now`) at which it ends. None: until it is ended or replaced.
            also: it holds beside the one that holds, instead of replacing it. At most two hold at once.
            reading: what `read` returned for the text, if it was read before; reading may take seconds.

        Returns:
            The commands, and how the words were understood. If the reader is unsure, nothing changes.
        """
        if (text is None) == (kind is None):
            raise EventError("say takes a text or a kind, one of the two")
        if not isinstance(also, bool):
            raise EventError(f"also must be True or False, not {also!r}")
        self._time = self.now()
        whom, until = self._whom(to), self._later(until)
        if reading is None:
            reading = self.read(text) if text is not None else self._named(str(kind))
        words = text if text is not None else str(kind)
        if reading.unsure:
            self._write("refused", text=words, why=reading.note or "unsure")
            return Answer(unsure=True, note=reading.note, commands=self._pass_time())
        if reading.kind in (END, NONE):
            return Answer(commands=self._pass_time() + self._end(), kind=END)
        number = self.contract.kind(reading.kind)
        meant = whom & self.contract.addressed[number]
        if not meant.any():
            raise EventError(f"{reading.kind} addresses none of these agents")
        kinds = np.where(meant, number, 0)
        place = self._place(kinds, also)
        vectors = np.where(meant[:, None], self._vector(reading, number)[None], 0)
        heard = actors.Heard(vectors.astype(np.float32), meant)
        commands = self._pass_time()  # after all errors, which would lose its commands
        if not also:
            self._held = [None, None]
        self._held[place] = _Instruction(kind=kinds, heard=heard, text=words, until=until)
        to_names = [name for name, its in zip(self.agents, meant, strict=True) if its]
        line = dict(text=words, kind=reading.kind, to=to_names, until=until, also=also)
        if text is not None:
            line |= {"shares": reading.shares.tolist()}
            line |= {} if reading.vector is None else {"vector": reading.vector.tolist()}
        self._write("say", **line)
        return Answer(commands=commands + self._cancel_all(), kind=reading.kind)

    def read(self, text: str) -> Reading:
        """Return what the reader makes of a sentence. This may run in another thread; the team does not change.

        Args:
            text: the sentence.
        """
        if not isinstance(text, str):
            raise EventError(f"text must be a sentence, not {type(text).__name__}")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise EventError(f"text is no Unicode text ({error.reason})") from None
        return self._reader.read(text)

    def end(self) -> tuple[Command, ...]:
        """End the instructions that hold."""
        self._time = self.now()
        return self._pass_time() + self._end()

    def lost(self, agent: str | int) -> tuple[Command, ...]:
        """Give a robot up, because its process died or its line broke. It comes back with its next report.

        Args:
            agent: its name or number.
        """
        number = self._agent(agent)
        self._time = self.now()
        return self._pass_time() + self._lose(number)

    def observed(
        self, agent: str | int, observation: Any, available: Any = None, holds: Any = None
    ) -> tuple[Command, ...]:
        """Take what an agent sees. If it is idle, it decides. A running robot may report at any time.

        Args:
            agent: its name or number.
            observation: [O] numbers.
            available: bool [M], the macros that it can start now. None: all.
            holds: for teams with kinds by predicate, the macros of which each predicate holds now, such as
                {"outwards": ["LEFT"]}. None: it is not known, and every macro that such a kind names counts.
        """
        number = self._agent(agent)
        seen = self._checked(number, observation, available, holds)
        self._time = self.now()
        return self._elapsed(number) + self._take(number, seen)

    def ended(
        self,
        agent: str | int,
        observation: Any = None,
        available: Any = None,
        holds: Any = None,
        *,
        number: int | None = None,
    ) -> tuple[Command, ...]:
        """Take that an agent's macro ended, by itself or because it was cancelled.

        Args:
            agent: its name or number.
            observation: what it sees now; if it is given, the agent decides.
            available: as in `observed`.
            holds: as in `observed`.
            number: of the `Start` that ended. A report about an earlier one is refused.
        """
        return self._over("ended", agent, (observation, available, holds), number)

    def failed(
        self,
        agent: str | int,
        why: str = "",
        observation: Any = None,
        available: Any = None,
        holds: Any = None,
        *,
        number: int | None = None,
    ) -> tuple[Command, ...]:
        """Take that an agent's macro failed. It is not offered at the agent's next decision if another one is.

        Args:
            agent: its name or number.
            why: for the log.
            observation: as in `ended`.
            available: as in `observed`.
            holds: as in `observed`.
            number: as in `ended`.
        """
        if not isinstance(why, str):
            raise EventError(f"why must be a text, not {type(why).__name__}")
        return self._over("failed", agent, (observation, available, holds), number, why=why)

    def tick(self) -> tuple[Command, ...]:
        """Let time pass: instructions whose deadline is over end, and robots that say nothing are given up.

        Call it often, such as once a second. A robot that reported nothing for `silent_after` seconds is told to stop
        and gets no further command until it reports again. Its teammates go on.
        """
        self._time = self.now()
        return self._pass_time()

    def close(self) -> None:
        """Close the log."""
        self.log.close()

    # What follows is not for callers.

    def _pass_time(self) -> tuple[Command, ...]:
        now = self._time
        commands: tuple[Command, ...] = ()
        left = self._in_time()
        if over := [one for one, its in zip(self._held, left, strict=True) if one and not its]:
            self._held = left
            kinds = [self.contract.kinds[one.kind.max()] for one in over]
            self._write("end", kinds=kinds, by="deadline")
            commands = self._cancel_all()
        for number, robot in enumerate(self._robots):
            if self._silent_after is not None and now - robot.heard_of > self._silent_after:
                commands += self._lose(number)
        return commands

    def _in_time(self) -> list[_Instruction | None]:
        """Return the instructions that hold, without those whose deadline is over."""
        return [
            None if one is None or (one.until is not None and one.until <= self._time) else one
            for one in self._held
        ]

    def _later(self, until: Any) -> float | None:
        """Return the time at which an instruction ends, or raise."""
        if until is None:
            return None
        if not isinstance(until, float | int | np.number):
            raise EventError(f"until must be a time of the team's clock, not {until!r}")
        if not self._time < until < LATEST:
            raise EventError(
                f"until is {until}, but the team's clock is at {self._time}; None stands for no end"
            )
        return float(until)

    def _end(self) -> tuple[Command, ...]:
        if not any(self._held):
            return ()
        self._write("end", kinds=list(self.instructions), by="person")
        self._held = [None, None]
        return self._cancel_all()

    def _lose(self, agent: int) -> tuple[Command, ...]:
        robot = self._robots[agent]
        if robot.status == SILENT:
            return ()
        self._write("silent", agent=self.agents[agent])
        commands = self._cancel(agent) if robot.status == RUNNING else ()
        robot.status, robot.sees = SILENT, False
        return commands

    def _write(self, event: str, **line: Any) -> None:
        self.log.write(t=self._time, event=event, **line)

    def _agent(self, agent: str | int) -> int:
        try:
            return self.contract.agent(agent)
        except ValueError as error:
            raise EventError(str(error)) from None

    def _whom(self, to: Sequence[str | int] | None) -> np.ndarray:
        whom = np.full(len(self.agents), to is None)
        for agent in () if to is None else listed(to):
            whom[self._agent(agent)] = True
        if not whom.any():
            raise EventError("to names no agent")
        return whom

    def _named(self, kind: str) -> Reading:
        nothing = np.zeros(0, np.float32)
        if kind == END:
            return Reading(kind=END, unsure=False, shares=nothing)
        try:
            number = self.contract.kind(kind)
        except ValueError as error:
            raise EventError(str(error)) from None
        shares = np.zeros(len(self.contract.kinds) - 1, np.float32)
        shares[number - 1] = number > 0
        return Reading(kind=kind, unsure=False, shares=shares)

    def _vector(self, reading: Reading, number: int) -> np.ndarray:
        """Return what agents hear [D]: the reader's probabilities, a sentence's vector, or that of the kind."""
        if self._hears == "kinds":
            return reading.shares
        return self._heard_kinds[number] if reading.vector is None else reading.vector

    def _place(self, kinds: np.ndarray, also: bool) -> int:
        """Return whether an instruction becomes the first (0) or the second (1)."""
        held = self._in_time()  # what is over by now is no conflict
        if not also or not any(held):
            return 0
        if all(held):
            raise EventError("two instructions hold already; end them first, or replace both")
        other = next(one for one in held if one is not None)
        if why := self.contract.conflict(other.kind, kinds):
            raise EventError(why)
        return int(held[0] is not None)

    def _checked(self, agent: int, observation: Any, available: Any, holds: Any) -> _Seen:
        """Return what an agent sees, or raise."""
        try:
            holding = None if holds is None else self.contract.holding(agent, holds)
        except (ValueError, TypeError, AttributeError) as error:
            why = (
                str(error) if isinstance(error, ValueError) else "it must map predicates to macros"
            )
            raise EventError(f"holds: {why}") from None
        try:
            if np.iscomplexobj(observation):
                raise TypeError
            with np.errstate(over="ignore"):  # a number that float32 cannot hold is not finite
                seen = np.asarray(observation, np.float32)
        except (TypeError, ValueError, OverflowError):
            raise EventError("observation must be numbers") from None
        if seen.shape != self._size[1:]:
            raise EventError(
                f"observation has shape {seen.shape}; this team wants ({self._size[1]},): {self._needs}"
            )
        if not np.isfinite(seen).all():
            raise EventError("observation has numbers that are not finite")
        if available is None:
            return _Seen(seen, None, holding, holds)
        wanted = self.contract.exists.shape[1:]
        try:
            offered = np.asarray(available)
        except ValueError:  # lists of different lengths
            offered = np.zeros(())
        if offered.shape != wanted or offered.dtype != bool:
            raise EventError(f"available must be {wanted[0]} booleans, one for each macro")
        if not offered.any():
            raise EventError("available offers no macro")
        return _Seen(seen, offered, holding, holds)

    def _elapsed(self, agent: int) -> tuple[Command, ...]:
        """Note that an agent reported, and let time pass."""
        robot = self._robots[agent]
        robot.heard_of = self._time
        if robot.status == SILENT:
            robot.status = IDLE
            self._write("back", agent=self.agents[agent])
        return self._pass_time()

    def _take(self, agent: int, seen: _Seen) -> tuple[Command, ...]:
        robot = self._robots[agent]
        exists = self.contract.exists[agent]
        line = dict(agent=self.agents[agent], observation=seen.observation.tolist())
        if seen.offered is not None:
            line["available"] = seen.offered.tolist()
        if seen.told is not None:
            line["holds"] = {name: list(macros) for name, macros in seen.told.items()}
        self._write("observed", **line)
        if robot.status != IDLE:  # it was a sign of life
            return ()
        self._observation[agent] = seen.observation
        self._available[agent] = exists if seen.offered is None else seen.offered & exists
        self._knows[agent] = seen.holding is not None
        self._holds[agent] = False if seen.holding is None else seen.holding
        robot.sees = True
        return self._decide(agent)

    def _over(
        self,
        event: str,
        agent: str | int,
        sees: tuple[Any, Any, Any],
        number: int | None,
        **more: str,
    ) -> tuple[Command, ...]:
        place = self._agent(agent)
        robot, name = self._robots[place], self.agents[place]
        seen = None if sees[0] is None else self._checked(place, *sees)
        if number is not None and not (
            isinstance(number, int | np.integer) and number == robot.number
        ):
            raise EventError(
                f"{name} {event} number {number}, but its last start is number {robot.number}"
            )
        if robot.status == IDLE:
            raise EventError(f"{name} {event}, but it runs nothing")
        self._time = self.now()
        self._write(event, agent=name, number=robot.number, **more)
        if robot.status != SILENT:
            robot.status = IDLE
        robot.sees = False
        robot.failed = robot.macro if event == "failed" else -1
        commands = self._elapsed(place)
        return commands if seen is None else commands + self._take(place, seen)

    def _decide(self, agent: int) -> tuple[Command, ...]:
        robot = self._robots[agent]
        available = self._available.copy()
        if self.shield:
            available = self.contract.enforced(available, self._allowed())
        if robot.failed >= 0 and available[agent].sum() > 1:
            available[agent, robot.failed] = False
        idle = np.arange(len(self.agents)) == agent
        last = np.array([one.macro for one in self._robots])
        silence = self._actors.silence()
        heard = [silence if one is None else one.heard for one in self._held]
        logits, self._memory = self._actors.logits(
            self._memory, self._observation, last, heard[0], heard[1], idle, available
        )
        shares = actors.probabilities(logits[agent], available[agent])
        draw = self._draw(agent)
        macro = actors.choose(shares, draw, self.greedy)
        self._decisions += 1
        robot.macro, robot.number, robot.status = macro, self._decisions, RUNNING
        robot.sees, robot.failed = False, -1
        name = self.contract.macros[agent][macro]
        start = Start(self.agents[agent], name, self._decisions)
        self._write(
            "start", agent=start.agent, macro=name, number=start.number, draw=draw,
            probability=round(float(shares[macro]), 6), complies=self._complies(agent, macro),
        )  # fmt: skip
        return (start,)

    def _complies(self, agent: int, macro: int) -> bool | None:
        """Return whether a macro is allowed to an agent, by its name; None if no instruction addresses the agent."""
        told = any(one is not None and one.kind[agent] for one in self._held)
        return all(bool(one[agent, macro]) for one in self._allowed()) if told else None

    def _allowed(self) -> list[np.ndarray]:
        """Return bool [N, M] for each instruction that holds, the macros that it allows."""
        held = [one.kind for one in self._held if one is not None]
        return [self.contract.allows(kinds, self._holds, self._knows) for kinds in held]

    def _cancel(self, agent: int) -> tuple[Command, ...]:
        self._write("cancel", agent=self.agents[agent], number=self._robots[agent].number)
        return (Cancel(self.agents[agent]),)

    def _cancel_all(self) -> tuple[Command, ...]:
        """Cancel every running macro: the instruction changed, so everybody decides anew."""
        commands: tuple[Command, ...] = ()
        for number, robot in enumerate(self._robots):
            if robot.status == RUNNING:
                robot.status = CANCELLING
                commands += self._cancel(number)
        return commands


def open_team(folder: str | Path, **settings: Any) -> RobotTeam:
    """Return an exported team, ready for its first event.

    Args:
        folder: what `mavic export team` wrote.
        settings: `reader` (None for the exported one, the address of an OpenAI-compatible endpoint, or an object with
            `read`), `seed` of the choices, `greedy` (take the likeliest macro), `shield` (make unavailable what an
            instruction forbids), `silent_after` (seconds without a report after which a robot is given up; None:
            never), `clock` (a function that returns seconds), `draw` (a function from an agent's number to a number
            from 0 to 1, in place of the seed) and `log` (a file).
    """
    return RobotTeam(open_export(folder), **settings)
