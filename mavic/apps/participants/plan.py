"""The plan of a study: a TOML file, checked before a link is made. Every mistake is one line that says what is allowed.

A field's description completes the sentence "… must be …" when the field is wrong.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mavic.apps.playground.catalog import Catalog
from mavic.apps.playground.limits import (
    FASTEST,
    LARGEST_SEED,
    LONGEST_HOLD,
    NORMAL,
    SLOWEST,
    RequestError,
)
from mavic.apps.playground.messages import GUEST
from mavic.envs import api
from mavic.experiment.talk import names_of
from mavic.experiment.task import instructions_of
from mavic.hints import suggest
from mavic.instruct.spec import InstructionFile
from mavic.storage import files

MOST_PEOPLE = 2  # in one kitchen
MOST_PARTICIPANTS = 1000
AFTER = Literal["task", "team", "end"]

Text = Annotated[
    str, Field(min_length=1, max_length=20_000, description="a text that is not empty")
]
Short = Annotated[str, Field(max_length=200, description="a text of at most 200 characters")]
Name = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$",
        description="a short name of small letters, digits, - and _",
    ),
]
Names = Annotated[list[str], Field(min_length=1, description="a list of names")]
Switch = Annotated[bool, Field(description="true or false")]


def _whole(low: int, high: int) -> Any:
    return Field(ge=low, le=high, description=f"a whole number from {low} to {high:,}")


class PlanError(ValueError):
    """A plan has mistakes. The message has a line for each."""


class _Table(BaseModel):
    """A table of the plan."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Prompt(_Table):
    """What a person is asked to tell the team in mid-task."""

    at: Annotated[int, _whole(0, LONGEST_HOLD)]  # the tick
    text: Text
    kind: Name | None = None  # what it is meant to be understood as; the record says whether it was
    wait: Switch = True  # the clock stops until the person has said it, or goes on without


class Task(_Table):
    """One episode of a world."""

    name: Name
    world: Name
    title: Text
    text: Text
    ticks: Annotated[int, _whole(1, LONGEST_HOLD)] = 100
    seed: Annotated[int, _whole(0, LARGEST_SEED)] = 1
    seats: Names | None = None  # whom each person drives. None: they only talk
    prompt: Annotated[list[Prompt], Field(description="tables [[task.prompt]]")] = []

    def prompt_at(self, number: int) -> Prompt | None:
        """Return a prompt by its number from 0; None if there are not so many."""
        return self.prompt[number] if number < len(self.prompt) else None


class Question(_Table):
    """A question of the questionnaire: a scale, choices or free text."""

    name: Name
    after: Annotated[AFTER, Field(description="task, team or end")] = "end"
    text: Text
    scale: Annotated[int, _whole(2, 11)] | None = None
    low: Short = ""
    high: Short = ""
    choices: Names | None = None
    lines: Annotated[int, _whole(1, 20)] | None = None
    optional: Switch = False

    def wrong(self, answer: Any) -> str:
        """Return why an answer cannot be taken, or "" if it can.

        Args:
            answer: a number for a scale, a text otherwise; None if the person gave none.
        """
        if answer is None or answer == "":
            return "" if self.optional else f"Please answer: {self.text}"
        if self.scale is not None:
            fits = type(answer) is int and 1 <= answer <= self.scale
            return "" if fits else f"{self.name} must be a whole number from 1 to {self.scale}"
        if self.choices is not None:
            return (
                ""
                if answer in self.choices
                else f"{self.name}: {suggest(str(answer), tuple(self.choices))}"
            )
        fits = isinstance(answer, str) and len(answer) <= LONGEST_ANSWER
        return "" if fits else f"{self.name} must be a text of at most {LONGEST_ANSWER} characters"


LONGEST_ANSWER = 2000  # characters


class Plan(_Table):
    """A study."""

    title: Text
    consent: Text
    participants: Annotated[int, _whole(1, MOST_PARTICIPANTS)]
    teams: Names
    people: Annotated[int, _whole(1, MOST_PEOPLE)] = 1  # in each kitchen
    speed: Annotated[
        float,
        Field(ge=SLOWEST, le=FASTEST, description=f"a number from {SLOWEST:g} to {FASTEST:g}"),
    ] = NORMAL  # ticks per second
    show: Annotated[
        list[Literal["examples", "verdicts"]],
        Field(description='a list of "examples" and "verdicts"'),
    ] = []
    thanks: Text = "Thank you. You have done all parts of this study."
    code: Short = ""  # the completion code; "": one for each person
    task: Annotated[list[Task], Field(min_length=1, description="one table [[task]] or more")]
    question: Annotated[list[Question], Field(description="tables [[question]]")] = []

    @property
    def worlds(self) -> tuple[str, ...]:
        """The worlds of the tasks, each once."""
        return tuple(dict.fromkeys(task.world for task in self.task))

    @property
    def mark(self) -> str:
        """What a record is bound to: a hash of the plan without the number of participants, which may grow."""
        return files.digest_of(self.model_dump(exclude={"participants"}))[:16]


def read(path: Path, catalog: Catalog) -> Plan:
    """Return the plan in a file.

    Args:
        path: the file.
        catalog: the teams that can be played with.

    Raises:
        PlanError: it has mistakes, each in a line of the message.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise PlanError(f"{path}: a plan is a text in UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PlanError(f"{path}: this is not TOML: {error}") from None
    try:
        plan = Plan.model_validate(found)
    except ValidationError as error:
        raise PlanError(_lines(path, [_mistake(one) for one in error.errors()])) from None
    if wrong := [*_wrong_names(plan), *_wrong_for(plan, catalog)]:
        raise PlanError(_lines(path, wrong))
    return plan


def _lines(path: Path, mistakes: Sequence[str]) -> str:
    return "\n".join(f"{path}: {one}" for one in mistakes)


class _Place(NamedTuple):
    """Where in the plan something stands."""

    words: str  # such as "task 2, prompt 1: "
    table: type[BaseModel]
    field: str


_TABLES: dict[str, type[BaseModel]] = {"task": Task, "prompt": Prompt, "question": Question}


def _place(loc: Sequence[int | str]) -> _Place:
    table: type[BaseModel] = Plan
    words: list[str] = []
    field = ""
    for part in loc:
        if isinstance(part, int) and field in _TABLES:
            words.append(f"{field} {part + 1}")
            table, field = _TABLES[field], ""
        elif isinstance(part, str) and not field:
            field = part
    return _Place(", ".join(words) + (": " if words else ""), table, field)


def _mistake(error: Any) -> str:
    """Return an error of pydantic as a line."""
    where, table, field = _place(error["loc"])
    if not field:
        return f"{where}this must be a table"
    if error["type"] == "extra_forbidden":
        return f"{where}{field!r} is unknown; {suggest(field, tuple(table.model_fields))}"
    allowed = _allowed(table, field)
    if error["type"] == "missing":
        return f"{where}{field} is missing; it must be {allowed}"
    return f"{where}{field} must be {allowed}"


def _allowed(table: type[BaseModel], field: str) -> str:
    """Return what a field may be, as its description says. Fields that may be left out have it in their type."""
    info = table.model_fields[field]
    if info.description:
        return info.description
    for one in getattr(info.annotation, "__args__", ()):
        for more in getattr(one, "__metadata__", ()):
            if getattr(more, "description", None):
                return str(more.description)
    return "of another type"


def _wrong_names(plan: Plan) -> Iterator[str]:
    """Yield what is wrong with the plan alone."""
    for what, names in (
        ("task", [task.name for task in plan.task]),
        ("question", [question.name for question in plan.question]),
        ("team", plan.teams),
    ):
        for name in dict.fromkeys(one for one in names if names.count(one) > 1):
            yield f"{what} {name!r} is there twice; each needs a name of its own"
    if plan.participants % plan.people:
        yield (
            f"participants must be a multiple of people ({plan.people}), so that every kitchen is full; "
            f"it is {plan.participants}"
        )
    for question in plan.question:
        sorts = [s for s in ("scale", "choices", "lines") if getattr(question, s) is not None]
        if len(sorts) != 1:
            has = " and ".join(sorts) or "none of them"
            yield f"question {question.name!r} must have one of scale, choices and lines; it has {has}"
        elif (question.low or question.high) and question.scale is None:
            yield f"question {question.name!r}: low and high are the ends of a scale; it has none"


def _wrong_for(plan: Plan, catalog: Catalog) -> Iterator[str]:
    """Yield what is wrong because of the worlds and teams that there are."""
    for task in plan.task:
        where = f"task {task.name!r}: "
        if task.world not in catalog.teams:
            yield f"{where}no team plays {task.world!r}; {suggest(task.world, tuple(catalog.teams))}"
            continue
        there = catalog.teams[task.world]
        for name in plan.teams:
            if name not in there:
                yield f"{where}{task.world} has no team {name!r}; {suggest(name, tuple(there))}"
        teams = [there[name] for name in plan.teams if name in there]
        yield from (where + line for line in _wrong_seats(plan, task, teams))
        kinds = InstructionFile.read(instructions_of(task.world)).names()
        for number, prompt in enumerate(task.prompt, start=1):
            if prompt.kind is not None and prompt.kind not in kinds:
                yield f"{where}prompt {number}: kind {prompt.kind!r} is unknown; {suggest(prompt.kind, kinds)}"
            if number > 1 and prompt.at < task.prompt[number - 2].at:
                yield f"{where}prompt {number}: prompts must stand in the order of their ticks"
            if prompt.at >= task.ticks:
                yield (
                    f"{where}prompt {number}: at must be below the task's ticks ({task.ticks}); it is {prompt.at}"
                )


def _wrong_seats(plan: Plan, task: Task, teams: Sequence[Any]) -> Iterator[str]:
    if task.seats is None:
        return
    guest = bool(teams) and all(team.guest for team in teams)
    agents = teams[0].agents if teams else ()
    if any(tuple(team.agents) != tuple(agents) for team in teams):
        yield "seats need teams of the same agents; the plan's teams have other ones"
    allowed = (*names_of(task.world, agents), *((GUEST,) if guest else ()))
    numbers = {**_numbers(task.world, agents), **({GUEST: GUEST} if guest else {})}
    if len(task.seats) != plan.people:
        yield f"seats must name {plan.people}, one for each person; it names {len(task.seats)}"
    taken = [numbers.get(seat, seat) for seat in task.seats]
    for seat, number in zip(task.seats, taken, strict=True):
        if teams and seat not in numbers:
            yield f"seat {seat!r} is unknown; {suggest(seat, allowed)}"
        if taken.count(number) > 1:
            yield f"seat {seat!r} is there twice; two people drive two agents"
            return


def _numbers(world: str, agents: Sequence[str]) -> dict[str, int | str]:
    """Return the numbers of agents by all that they are called: as on pages, as people say, as in the environment."""
    called: dict[str, int | str] = {}
    for number, (name, agent) in enumerate(zip(names_of(world, agents), agents, strict=True)):
        for one in (name, *api.known(world).other_words.get(name, ()), agent, api.plain(agent)):
            called.setdefault(one, number)
    return called


def seats_of(task: Task, catalog: Catalog, team: str) -> tuple[int | str, ...]:
    """Return whom each person drives, as numbers of agents or "guest".

    Args:
        task: the task.
        catalog: the teams.
        team: the name of the team.
    """
    try:
        numbers = _numbers(task.world, catalog.entry(task.world, team).agents)
    except RequestError:  # checked when the plan was read
        return ()
    return tuple(seat if seat == GUEST else numbers[seat] for seat in task.seats or ())
