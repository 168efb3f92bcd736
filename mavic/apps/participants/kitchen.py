"""One task: an episode with the people in it. What happens is noted, and the notes bring the same state back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mavic.apps.participants.balance import Step
from mavic.apps.participants.plan import Plan, Prompt, Task, seats_of
from mavic.apps.playground.answers import Understood
from mavic.apps.playground.catalog import Catalog
from mavic.apps.playground.limits import RequestError
from mavic.apps.playground.messages import GUEST, Frames, Opened
from mavic.apps.playground.orders import Line
from mavic.apps.playground.session import Session, open_session
from mavic.teams.stage import StageError


class ReplayError(ValueError):
    """The notes of a task do not bring its state back: something else was decided than is noted."""


@dataclass(kw_only=True)
class Kitchen:
    """A task that is being done."""

    task: Task
    called: str  # what people are told that the team is called
    session: Session
    show: Sequence[str]  # what else people see: examples, verdicts
    note: Callable[..., None]  # is told what happens
    prompts: int = 0  # how many prompts have come
    waiting: bool = False  # the clock waits for an answer to a prompt
    answered: bool = True  # what the last prompt asks for has been said

    @property
    def time(self) -> int:
        """The tick."""
        return self.session.time

    @property
    def over(self) -> bool:
        """Whether the task has ended."""
        return self.session.over or self.time >= self.task.ticks

    @property
    def how(self) -> str:
        """How the task ended."""
        return self.session.sides[0].episode.over or "time is up"

    @property
    def earned(self) -> float:
        """The sum of the team's rewards."""
        return self.session.sides[0].episode.earned

    @property
    def prompt(self) -> Prompt | None:
        """What people are asked to say now."""
        return None if self.answered or not self.prompts else self.task.prompt[self.prompts - 1]

    def read(self, text: str) -> Line:
        """Return what a sentence asks for.

        Args:
            text: the sentence.
        """
        return self.session.hear(text)

    def say(self, by: int, line: Line) -> Understood:
        """Carry out what a person said, and note it. Return what it was understood as.

        Args:
            by: which person of the kitchen.
            line: what the sentence asks for.
        """
        before, prompt = self.time, self.prompt
        refused: list[str] = []
        why = ""
        if line.clear:
            try:
                refused = self.session.obey(line)
            except (RequestError, StageError) as error:
                why = str(error)
        told = Understood.of(line, refused)
        given = line.clear and not refused and not why
        told = told.model_copy(update={"refused": [self.called] * bool(refused)})
        said = {"kind": told.kind, "also": told.also, "agents": told.agents, "ends": told.ends}
        self.note(
            "said",
            by=by,
            tick=before,
            text=line.text,
            **said,
            probability=told.probability,
            given=given,
            refused=bool(refused) or bool(why),
            prompt=self.prompts if prompt else None,
            right=_right(prompt, told.kind if line.clear else None),
        )
        if why:
            raise RequestError(why)
        self._heard(given)
        return told

    def unread(self, by: int, text: str) -> None:
        """Note a sentence that nobody could carry out, such as one to an agent that is not there.

        Args:
            by: which person of the kitchen.
            text: the sentence.
        """
        prompt = self.prompt
        self.note(
            "said",
            by=by,
            tick=self.time,
            text=text,
            kind="none",
            also="",
            agents=None,
            ends=False,
            probability=0.0,
            given=False,
            refused=True,
            prompt=self.prompts if prompt else None,
            right=_right(prompt, None),
        )

    def _heard(self, given: bool) -> None:
        if given:
            self.waiting, self.answered = False, True

    def end(self, by: int) -> None:
        """End what holds.

        Args:
            by: which person of the kitchen.
        """
        self.note("ended", by=by, tick=self.time)
        self.session.end()

    def skip(self, by: int) -> None:
        """Go on without an answer to the prompt.

        Args:
            by: which person of the kitchen.
        """
        if self.prompt is not None:
            self.note("passed", by=by, tick=self.time, prompt=self.prompts)
            self.waiting, self.answered = False, True

    def drive(self, by: int, macro: str) -> None:
        """Let the agent that a person drives run a macro.

        Args:
            by: which person of the kitchen.
            macro: its name.
        """
        seat = self.seat(by)
        if seat is None:
            raise RequestError("you drive nobody here")
        self.session.drive(macro, seat)
        self.note("drive", by=by, tick=self.time, macro=macro)

    def seat(self, person: int) -> int | None:
        """Return the agent that a person drives, if there is one.

        Args:
            person: which person of the kitchen.
        """
        seats = self.session.seats
        return seats[person] if person < len(seats) else None

    def look_for_prompt(self) -> None:
        """Let a prompt come whose tick it is. Several of one tick come one after another."""
        due = self.task.prompt_at(self.prompts)
        if not self.waiting and due is not None and due.at <= self.time:
            self.prompts += 1
            self.waiting, self.answered = due.wait, False
            self.note("prompt", tick=self.time, prompt=self.prompts, kind=due.kind)

    def tick(self) -> Frames:
        """Run one tick, and note what the team did."""
        before = self.time
        message = self.session.tick()
        frame = message.frames[0]
        now = self.session.sides[0].episode
        self.note(
            "tick",
            tick=before,
            macros=[agent["macro"] for agent in frame["agents"]],
            complies=[agent["complies"] for agent in frame["agents"]],
            reward=round(now.reward, 4),
            events=list(now.events),
            verdicts=[{"kind": v.kind, "followed": v.followed} for v in now.verdicts],
        )
        return message

    def replay(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Bring back the state that the notes describe. Nothing is noted anew.

        Args:
            lines: the notes of this task, in their order.

        Raises:
            ReplayError: the team decides otherwise than is noted.
        """
        note = self.note
        found: list[dict[str, Any]] = []
        self.note = lambda what, **more: found.append({"what": what, **more})
        try:
            for line in lines:
                self._again(line)
                if line["what"] == "tick" and found[-1]["macros"] != line["macros"]:
                    raise ReplayError(
                        f"tick {line['tick']}: {found[-1]['macros']}, not {line['macros']}"
                    )
        except (RequestError, StageError, KeyError) as error:
            raise ReplayError(str(error)) from None
        finally:
            self.note = note

    def _again(self, line: Mapping[str, Any]) -> None:
        match line["what"]:
            case "prompt":
                self.look_for_prompt()
            case "said" if line["given"]:
                self.session.obey(self.read(line["text"]))
                self._heard(True)
            case "passed":
                self.skip(line["by"])
            case "ended":
                self.end(line["by"])
            case "drive":
                self.drive(line["by"], line["macro"])
            case "tick":
                self.tick()

    def opened(self, person: int) -> Opened:
        """Return the message that tells a person's page about the task. It does not name the team.

        Args:
            person: which person of the kitchen.
        """
        told = self.session.opened()
        (team,) = told.recordings
        shown = "examples" in self.show
        return told.model_copy(
            update={
                "seat": self.seat(person),
                "seed": 0,
                "recordings": [
                    team.model_copy(update={"name": self.called, "about": "", "leak": None})
                ],
                "examples": told.examples if shown else [],
                "asks": told.asks if shown else [],
            }
        )

    def seen(self, message: Frames) -> Frames:
        """Return a message with frames as people see them: without what the team expects, and without verdicts unless
        the plan shows them.

        Args:
            message: the message of the session.
        """
        frames = [_without(frame, "verdicts" in self.show) for frame in message.frames]
        return message.model_copy(update={"frames": frames, "seed": 0, "totals": [], "log": []})


def _right(prompt: Prompt | None, kind: str | None) -> bool | None:
    """Return whether a kind is what a prompt asks for; None if none asks for a kind."""
    return None if prompt is None or prompt.kind is None else kind == prompt.kind


def _without(frame: dict[str, Any], verdicts: bool) -> dict[str, Any]:
    shown = {**frame, "values": None, "reward": 0.0, "earned": 0.0}
    if not verdicts:
        agents = [{**agent, "complies": None} for agent in frame["agents"]]
        shown |= {"agents": agents, "verdicts": [], "judged": 0, "followed": 0}
    return shown


def open_kitchen(plan: Plan, step: Step, catalog: Catalog, note: Callable[..., None]) -> Kitchen:
    """Return the kitchen of a step. Its team's programs are compiled first, if they are not yet.

    Args:
        plan: the plan.
        step: a task of the plan.
        catalog: the teams.
        note: is told what happens.
    """
    task = plan.task[step.task]
    seats = seats_of(task, catalog, step.team)
    catalog.warm(task.world, step.team, GUEST in seats)
    first, *more = seats or (None,)
    session = open_session(
        catalog, task.world, [step.team], task.seed, first, *[s for s in more if s is not None]
    )
    return Kitchen(task=task, called=step.called, session=session, show=plan.show, note=note)
