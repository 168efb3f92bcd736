"""What the page of a study and the server say to each other, beside the messages of the playground."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from mavic.apps.playground.limits import LONGEST_TEXT, RequestError
from mavic.apps.playground.messages import Frames, Opened


class _Request(BaseModel):
    """What a page sends."""

    model_config = ConfigDict(strict=True, frozen=True)


class Consent(_Request):
    """The person agrees to take part, or does not."""

    do: Literal["consent"]
    agree: bool


class Ready(_Request):
    """The person wants to begin the task of this step."""

    do: Literal["ready"]
    step: int


class Say(_Request):
    """The person says something to the team."""

    do: Literal["say"]
    text: Annotated[str, Field(max_length=LONGEST_TEXT)]


class Drive(_Request):
    """The person's own agent is to run a macro."""

    do: Literal["drive"]
    macro: Annotated[str, Field(max_length=80)]


class Answers(_Request):
    """The answers to the questions of this step, by name."""

    do: Literal["answers"]
    step: int
    answers: dict[str, int | str | None]


class Leave(_Request):
    """The person leaves the study. `keep`: what was recorded so far may be used."""

    do: Literal["leave"]
    keep: bool


class Button(_Request):
    """End what holds, go on without an answer to the prompt, go on after a task, or without the other person."""

    do: Literal["end", "skip", "next", "alone"]


AnyRequest = Annotated[
    Consent | Ready | Say | Drive | Answers | Leave | Button, Field(discriminator="do")
]
_REQUESTS: TypeAdapter[AnyRequest] = TypeAdapter(AnyRequest)


def parse(text: str) -> AnyRequest:
    """Return a page's message, or raise a `RequestError` that says what is wrong with it."""
    try:
        return _REQUESTS.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        raise RequestError(f"this message is not understood: {where} {first['msg']}") from None


class Screen(BaseModel):
    """What the page shows now."""

    type: Literal["screen"] = "screen"
    name: Literal["consent", "intro", "task", "questions", "end", "left"]
    title: str  # of the study
    step: int = -1
    steps: int = 0  # how many there are
    heading: str = ""
    text: str = ""
    team: str = ""
    job: str = ""
    you: str = ""  # what the person's own agent is called
    people: int = 1
    again: bool = False  # the task was begun before
    waits: bool = False  # the person is ready, the other one is not
    questions: list[dict[str, Any]] = []
    code: str = ""
    look: dict[str, Any] | None = None  # how the stage is drawn
    opened: Opened | None = None
    frames: Frames | None = None


class Prompt(BaseModel):
    """What the person is asked to say now. An empty text: nothing."""

    type: Literal["prompt"] = "prompt"
    text: str
    waits: bool = False


class Spoken(BaseModel):
    """Another person of the kitchen said something."""

    type: Literal["spoken"] = "spoken"
    text: str


class Over(BaseModel):
    """The task has ended."""

    type: Literal["over"] = "over"
    text: str


class Other(BaseModel):
    """The other person of the kitchen is away, has gone for good, or is there."""

    type: Literal["other"] = "other"
    state: Literal["there", "away", "gone"]
