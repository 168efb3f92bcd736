"""What a page and the server say to each other, as checked records.

`parse` reads a message of a page. A field's description completes the sentence "… must be …" when the field is wrong.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from mavic.apps.playground.limits import (
    LARGEST_SEED,
    LONGEST_HOLD,
    LONGEST_LOG,
    LONGEST_TEXT,
    RequestError,
)
from mavic.apps.playground.orders import Said
from mavic.language.text import shown

GUEST = "guest"  # the seat of a person who joins the team as one more agent


def _short(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        raise ValueError(
            f"that is too long for an instruction ({len(text)} characters, at most {LONGEST_TEXT})"
        )
    return text


Name = Annotated[str, Field(description="a text")]
Number = Annotated[float, Field(allow_inf_nan=False, description="a number of usual size")]
Seed = Annotated[
    int, Field(ge=0, le=LARGEST_SEED, description=f"a whole number from 0 to {LARGEST_SEED}")
]
Text = Annotated[str, AfterValidator(_short), Field(description="a text")]
Agents = Annotated[list[int] | None, Field(min_length=1, description="a list of agents' numbers")]
Hold = Annotated[
    int | None,
    Field(ge=1, le=LONGEST_HOLD, description=f"a whole number from 1 to {LONGEST_HOLD}"),
]
Switch = Annotated[bool, Field(description="true or false")]


class _Strict(BaseModel):
    """What a page sends. Numbers are not taken for texts, nor booleans for numbers."""

    model_config = ConfigDict(strict=True, frozen=True)


class _SharedCue(_Strict):
    """What a shared address says at a tick. An empty text ends what holds."""

    time: int = Field(ge=0, le=LONGEST_HOLD)
    text: Text
    agents: Agents = None
    hold: Hold = None


class _Request(_Strict):
    """A message of a page."""


class Open(_Request):
    """Start a session: a world, one team or two, and perhaps a seat for the person and what is said when."""

    do: Literal["open"]
    world: Name
    teams: list[str] = Field(description="a list of names")
    seed: Seed = 1
    seat: int | Literal["guest"] | None = Field(
        default=None, description="an agent's number, “guest” or nothing"
    )
    script: list[_SharedCue] = Field(
        default_factory=list,
        max_length=LONGEST_LOG,
        description=f"a list of at most {LONGEST_LOG} sentences with their ticks",
    )
    paused: Switch = False

    def cues(self) -> list[Said]:
        """Return what is to be said when."""
        told = self.script
        return [
            Said(c.time, c.text, None if c.agents is None else tuple(c.agents), c.hold)
            for c in told
        ]


class Say(_Request):
    """Give an instruction. Without `agents` it addresses all; without `hold` it holds until it is ended."""

    do: Literal["say"]
    text: Text
    agents: Agents = None
    hold: Hold = None


class Choose(_Request):
    """Answer the last question with one of its offers."""

    do: Literal["choose"]
    number: int = Field(ge=0, le=LONGEST_LOG, description="the number of an offer")


class End(_Request):
    """End what holds: all, one kind (for some agents), or what waits in a place of the queue."""

    do: Literal["end"]
    kind: Name | None = Field(default=None, description="a kind")
    agents: Agents = None
    queued: int | None = Field(
        default=None, ge=0, le=LONGEST_LOG, description="a place in the queue"
    )


class Button(_Request):
    """Let the clock run, stop it, or stop it and run one tick."""

    do: Literal["play", "pause", "step"]


class Drive(_Request):
    """Run this macro with the agent that the person drives."""

    do: Literal["drive"]
    macro: Name


class Speed(_Request):
    """Set the ticks per second; values outside the limits are clipped."""

    do: Literal["speed"]
    value: Number


class Again(_Request):
    """Say whether a new episode follows an ended one."""

    do: Literal["again"]
    value: Switch = False


class Reset(_Request):
    """Start a new episode."""

    do: Literal["reset"]
    seed: Seed = 1


AnyRequest = Annotated[
    Open | Say | Choose | End | Button | Drive | Speed | Again | Reset,
    Field(discriminator="do"),
]
_REQUESTS: TypeAdapter[AnyRequest] = TypeAdapter(AnyRequest)
_BY_NAME: dict[str, type[_Request]] = {
    name: one
    for one in _Request.__subclasses__()
    for name in get_args(one.model_fields["do"].annotation)
}


def parse(text: str) -> AnyRequest:
    """Return a page's message, or raise a `RequestError` that says what is wrong with it."""
    try:
        return _REQUESTS.validate_json(text)
    except ValidationError as error:
        raise RequestError(_explanation(error)) from None


def _explanation(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        return "a message must be JSON"
    if first["type"] == "value_error":  # raised by a check of ours, in full sentences
        return str(first["ctx"]["error"])
    if len(first["loc"]) < 2:
        if not isinstance(first["input"], dict):
            return "a message must be a JSON object"
        wanted = shown(str(first["input"].get("do")), 40)
        return f"no such message: {wanted!r}; allowed: {', '.join(_BY_NAME)}"
    message, field = str(first["loc"][0]), str(first["loc"][1])
    return f"{field} must be {_BY_NAME[message].model_fields[field].description}"


class Hello(BaseModel):
    """The first message: what can be opened, and how it is drawn."""

    class World(BaseModel):
        """A world that can be opened."""

        world: str
        title: str
        teams: list[str]
        team_words: list[str]  # what pages call them
        agents: list[str]
        agent_words: list[str]  # what people call them
        guest: bool  # a person can join as one more agent

    type: Literal["hello"] = "hello"
    look: dict[str, Any]
    listing: list[World]
    opens: str  # the world that a page opens unless its address names one
    story: bool  # there is a first minute to show
    server: str  # names this run of the server
    words: str  # why only the built-in phrases are understood; "" if free sentences are, too
    ticket: str  # names this page when it fetches its recording


class Opened(BaseModel):
    """A session has started."""

    class Team(BaseModel):
        """A team of the session."""

        name: str
        about: str  # what sort of team it is, in a sentence
        leak: (
            tuple[float, float] | None
        )  # what it expects without an instruction, and what it earns
        agents: list[str]
        agent_words: list[str]
        kinds: list[str]
        kind_words: list[str]  # what people call them

    class Kind(BaseModel):
        """A kind of instruction."""

        kind: str
        meaning: str
        phrases: list[str]
        phrase: str  # the one that is offered
        things: list[str] = []  # what it forbids or wants, by the names in the picture
        agents: list[int] = []  # whom it can address
        wants: bool = False  # it says what to do
        learnt: bool = True  # the first team was trained with it

    type: Literal["opened"] = "opened"
    world: str
    title: str
    job: str  # the team's job in a sentence
    examples: list[str]  # sentences to try
    seed: int
    seat: int | None
    recordings: list[Team]
    macros: list[list[str]]  # by agent
    macro_words: list[list[str]]  # what people call them
    asks: list[Kind]
    apart: str = ""  # what two teams differ in beside the correction


class Frames(BaseModel):
    """The present frame of each team."""

    class Counts(BaseModel):
        """Instructions given, counted at their end, and followed, over all episodes of a session."""

        given: int = 0
        judged: int = 0
        followed: int = 0

    class Chip(BaseModel):
        """An instruction that holds."""

        text: str
        kind: str
        agents: list[int] | None  # None: all
        hold: int | None  # ticks in all; None: until the person ends it

    type: Literal["frame"] = "frame"
    frames: list[dict[str, Any]]  # as `mavic.apps.frames.Frame`; values in the order of the kinds
    number: int  # of the tick, over all episodes of the session
    seed: int
    over: bool
    still: bool  # no tick was run: the frames show the state alone
    totals: list[Counts]
    standing: bool  # what holds does so until the person ends it
    holding: list[Chip]  # the oldest first
    queued: list[str]  # what is said next
    log: list[dict[str, Any]]  # what was said in this episode, as `_SharedCue`


class Clock(BaseModel):
    """How time passes."""

    type: Literal["clock"] = "clock"
    playing: bool
    speed: float
    again: bool


class Notice(BaseModel):
    """A text for the page.

    `status` says what the page waits for, "" for nothing. `full` says that too many pages are open; the connection
    ends. `error` says why a request was not carried out.
    """

    type: Literal["status", "full", "error"]
    text: str
