"""Leads people through a study: who is where, what their pages show, and the clocks of their kitchens."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import WebSocket

from mavic.apps.participants import balance, messages, records
from mavic.apps.participants.kitchen import Kitchen, ReplayError, open_kitchen
from mavic.apps.participants.messages import AnyRequest, Over, Spoken
from mavic.apps.participants.people import Group, Person
from mavic.apps.participants.plan import Plan
from mavic.apps.participants.records import LEFT
from mavic.apps.participants.screens import next_step, prompt_of, screen_of, steps_of
from mavic.apps.playground.catalog import Catalog
from mavic.apps.playground.limits import RequestError
from mavic.apps.playground.messages import Notice
from mavic.apps.playground.workers import Workers
from mavic.language.encoder import EncoderError

LOG = logging.getLogger(__name__)
ELSEWHERE = 4001  # the code with which an older page of the same link is closed
DRIVING_GAP = 0.1  # seconds between two ticks that a person's keys ask for


@dataclass(kw_only=True)
class Study:
    """A study that is run."""

    plan: Plan
    catalog: Catalog
    workers: Workers
    folder: Path
    people: dict[str, Person]  # by token
    groups: list[Group]
    say: Callable[[str], None]  # is told who begins and who ends

    # ── what a page shows

    async def show(self, person: Person) -> None:
        """Let the person's page show where the person is."""
        kitchen, look = person.kitchen.task, None
        if self._in_kitchen(person):
            assert kitchen is not None
            look = await self._thread(kitchen.session.look)
        screen = screen_of(self.plan, self.catalog, person, look)
        if screen.name == "end" and person.record.gone != "finished":
            person.note("finished", code=screen.code)
            self.say(f"participant {person.number} has finished")
        await person.send(screen)
        if look is not None and kitchen is not None:
            await person.send(prompt_of(kitchen))
        if screen.name in ("intro", "task"):
            await person.kitchen.tell_others()

    def _in_kitchen(self, person: Person) -> bool:
        """Whether the person does a task that goes on."""
        going = person.kitchen.task is not None and person.record.begun is not None
        return going and not person.record.gone and person.ready == next_step(self.plan, person)

    # ── what a page asks for

    async def arrive(self, person: Person, socket: WebSocket) -> None:
        """A page of the person's link is open. An older one is closed."""
        older, person.before = person.socket, person.seconds
        person.socket, person.since = socket, time.monotonic()
        if older is not None:
            with contextlib.suppress(Exception):
                await older.close(ELSEWHERE)
        async with person.kitchen.turn:
            if person.record.begun is not None and not person.record.gone:
                person.note("back")
                self._join(person)
            await self.show(person)
            person.kitchen.wake.set()

    async def depart(self, person: Person, socket: WebSocket) -> None:
        """A page is closed. Its kitchen waits."""
        if person.socket is not socket:
            return
        person.before, person.socket = person.seconds, None
        async with person.kitchen.turn:
            await person.kitchen.tell_others()

    async def carry_out(self, person: Person, request: AnyRequest) -> None:
        """Do what a page asks for. What does not fit to where the person is changes nothing.

        Args:
            person: who asks.
            request: what for.
        """
        group = person.kitchen
        task, line = group.task, None
        if isinstance(request, messages.Say) and task is not None:
            line = await self._read(person, task, request.text)
        async with group.turn:
            if person.record.gone:
                await self.show(person)
                return
            match request:
                case messages.Consent():
                    await self._consent(person, request.agree)
                case messages.Leave():
                    await self._leave(person, request.keep)
                case _ if person.record.begun is None:
                    await self.show(person)
                case messages.Ready():
                    await self._ready(person, request.step)
                case messages.Answers():
                    await self._answer(person, request)
                case messages.Button(do="next"):
                    await self.show(person)
                case messages.Button(do="alone"):
                    await self._alone(person)
                case _ if group.task is None or group.task.over or not group.complete():
                    pass
                case messages.Say() if line is not None and group.task is task:
                    await self._said(person, line)
                case messages.Button(do="end"):
                    await self._thread(group.task.end, person.place)
                    self._hurry(group)
                case messages.Button(do="skip"):
                    group.task.skip(person.place)
                    await group.send(prompt_of(group.task))
                    group.wake.set()
                case messages.Drive():
                    group.task.drive(person.place, request.macro)
                    self._hurry(group)

    async def _thread(self, work: Callable[..., Any], *given: Any) -> Any:
        return await self.workers.run("ticks", work, *given)

    async def _read(self, person: Person, kitchen: Kitchen, text: str) -> Any:
        try:
            return await self.workers.run("words", kitchen.read, text)
        except RequestError:  # such as an agent that is not there
            kitchen.unread(person.place, text)
            raise
        except EncoderError as error:
            raise RequestError(f"this sentence cannot be read here: {error}") from None

    @staticmethod
    def _hurry(group: Group) -> None:
        group.hurried = True
        group.wake.set()

    async def _consent(self, person: Person, agree: bool) -> None:
        if person.record.begun is not None:
            pass
        elif not agree:
            person.note("declined")
            self.say(f"participant {person.number} does not take part")
            await self._drop(person)
        else:
            row = person.kitchen.row
            if row is None:
                used = [g.row for g in self.groups if g.row is not None and not g.left]
                row = balance.least_used(used, self.plan)
            person.note(
                "begun",
                participant=person.number,
                kitchen=person.kitchen.number,
                person=person.place,
                order=row,
                plan=self.plan.mark,
            )
            self.say(f"participant {person.number} has begun")
            self._join(person)
        await self.show(person)

    async def _ready(self, person: Person, number: int) -> None:
        group = person.kitchen
        steps = steps_of(self.plan, person)
        if (
            number != next_step(self.plan, person)
            or number >= len(steps)
            or steps[number].sort != "task"
        ):
            await self.show(person)
            return
        person.ready = number
        if not group.complete() or any(other.ready != number for other in group.people):
            await self.show(person)
            return
        if group.task is None:
            await group.send(Notice(type="status", text="one moment…"))
            group.task = await self.workers.run("loading", self._open, group, number)
            await group.send(Notice(type="status", text=""))
            group.clock = asyncio.create_task(self._run(group, group.task))
        for one in group.people:
            await self.show(one)

    def _open(self, group: Group, number: int) -> Kitchen:
        """Return the kitchen of a step, as it was when the server stopped if the step had begun."""
        step = balance.steps(self.plan, group.row or 0)[number]
        task = self.plan.task[step.task]
        known = max((p.record.of_task(number) for p in group.people), key=len)
        kitchen = open_kitchen(self.plan, step, self.catalog, group.note)
        if known:
            try:
                kitchen.replay(known)
                return kitchen
            except ReplayError as error:
                LOG.warning("kitchen %d begins task %s anew: %s", group.number, task.name, error)
                kitchen = open_kitchen(self.plan, step, self.catalog, group.note)
        group.note(
            "task", step=number, task=task.name, world=task.world, team=step.team, seed=task.seed
        )
        return kitchen

    async def _said(self, person: Person, line: Any) -> None:
        group = person.kitchen
        kitchen = group.task
        assert kitchen is not None
        told = await self._thread(kitchen.say, person.place, line)
        await person.send(told)
        for other in group.people:
            await other.send(prompt_of(kitchen))
            if other is not person:
                await other.send(Spoken(text=line.text))
        if line.clear:
            self._hurry(group)

    async def _answer(self, person: Person, request: messages.Answers) -> None:
        steps, number = steps_of(self.plan, person), next_step(self.plan, person)
        if number >= len(steps) or request.step != number or steps[number].sort != "questions":
            await self.show(person)
            return
        step = steps[number]
        asked = [q for q in self.plan.question if q.after == step.after]
        answers = {q.name: request.answers.get(q.name) for q in asked}
        wrong = [why for q in asked if (why := q.wrong(answers[q.name]))]
        if wrong:
            raise RequestError("; ".join(wrong))
        task = self.plan.task[step.task].name if step.task >= 0 and step.after == "task" else ""
        world = self.plan.task[step.task].world if step.task >= 0 else ""
        person.note(
            "answers",
            step=number,
            after=step.after,
            world=world,
            team=step.team,
            task=task,
            answers=answers,
        )
        await self.show(person)

    # ── people who go

    async def _leave(self, person: Person, keep: bool) -> None:
        if person.record.begun is None:
            await self._consent(person, False)
            return
        person.kitchen.stop()
        if keep:
            person.note("left")
        else:
            person.record.forget(at=0, what="forgotten", participant=person.number)
            for other in person.kitchen.people:
                if other is not person and other.record.lines:
                    other.record.forget_lines_of(person.place)
        self.say(f"participant {person.number} has left")
        await self.show(person)
        await self._drop(person)

    @staticmethod
    def _join(person: Person) -> None:
        """Note that a person goes on alone whose kitchen the other one has left, or has no use for any more."""
        others = [other for other in person.kitchen.people if other is not person]
        left = any(other.record.gone in LEFT or other.record.alone for other in others)
        if left and not person.record.alone:
            person.note("alone")

    async def _drop(self, person: Person) -> None:
        """Let the others of the kitchen go on without a person."""
        for other in person.kitchen.people:
            if other is not person and other.record.begun is not None and not other.record.gone:
                self._join(other)
                await self.show(other)
        await person.kitchen.tell_others()

    async def _alone(self, person: Person) -> None:
        """Go on without the other person, who is away."""
        others = [other for other in person.kitchen.people if other is not person]
        if not others or any(other.there and not other.record.alone for other in others):
            return
        if not person.record.alone:
            person.kitchen.stop()
            person.note("alone")
        await self.show(person)

    # ── the clock of a kitchen

    async def _run(self, group: Group, kitchen: Kitchen) -> None:
        """Run the ticks of a task while everybody is there."""
        due = time.monotonic()
        last = 0.0
        while group.task is kitchen:
            early = (last + DRIVING_GAP if group.hurried else due) - time.monotonic()
            if not group.complete() or (kitchen.waiting and not group.hurried):
                group.wake.clear()
                await group.wake.wait()
                due = time.monotonic()
                continue
            if early > 0:
                group.wake.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(group.wake.wait(), early)
                continue
            try:
                async with group.turn:
                    if group.task is kitchen and group.complete():
                        await self._tick(group, kitchen)
            except Exception:  # a fault in one kitchen does not end the others
                LOG.exception("kitchen %d stopped", group.number)
                group.task = None
                for person in group.people:  # who begins again goes on where it was
                    person.ready = -1
                    await self.show(person)
                await group.send(Notice(type="error", text="The task stopped by a fault of ours."))
                return
            last = time.monotonic()
            due = max(due + 1 / self.plan.speed, last - 1)

    async def _tick(self, group: Group, kitchen: Kitchen) -> None:
        group.hurried = False
        before = kitchen.prompts
        kitchen.look_for_prompt()
        if kitchen.prompts > before:
            await group.send(prompt_of(kitchen))
        if kitchen.waiting:
            return
        frames = await self._thread(kitchen.tick)
        await group.send(kitchen.seen(frames))
        if kitchen.over:
            await self._over(group, kitchen)

    async def _over(self, group: Group, kitchen: Kitchen) -> None:
        done = kitchen.how == "solved"
        group.note(
            "over",
            task=kitchen.task.name,
            how=kitchen.how,
            ticks=kitchen.time,
            earned=round(kitchen.earned, 4),
        )
        group.task = None
        text = "The team has done its job." if done else "This task is over."
        await group.send(Over(text=text))

    def close(self) -> None:
        """Stop all clocks and close all files."""
        for group in self.groups:
            group.stop()
            for person in group.people:
                person.record.close()


def open_study(
    plan: Plan, catalog: Catalog, workers: Workers, folder: Path, say: Callable[[str], None]
) -> Study:
    """Return a study, with the records that its folder has.

    Args:
        plan: the plan.
        catalog: the teams.
        workers: the threads.
        folder: the folder of its records.
        say: is told who begins and who ends.
    """
    tokens = records.links(folder, plan)
    people: dict[str, Person] = {}
    groups: list[Group] = []
    for number, token in enumerate(tokens[: plan.participants]):
        if number % plan.people == 0:
            groups.append(Group(number=len(groups) + 1))
        path = records.path_of(folder, number + 1)
        records.cut_unfinished(path)
        record = records.read_record(path)
        person = Person(
            number=number + 1,
            place=number % plan.people,
            record=record,
            kitchen=groups[-1],
            before=record.seconds,
        )
        groups[-1].people.append(person)
        people[token] = person
    records.check_marks([p.record for p in people.values()], plan, folder)
    return Study(
        plan=plan,
        catalog=catalog,
        workers=workers,
        folder=folder,
        people=people,
        groups=groups,
        say=say,
    )
