"""What a page and the server say to each other, as checked records.

`parse` reads a message of a page. A field's description completes the sentence "… must be …" when the field is wrong.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from mavic.apps.playground.limits import LARGEST_SEED, LONGEST_HOLD, LONGEST_LOG, LONGEST_TEXT
from mavic.apps.playground.orders import Line
from mavic.language.text import shown

GUEST = "guest"  # the seat of a person who joins the team as one more agent


class MessageError(ValueError):
    """A page's message cannot be read. The text says what is wrong, and goes to the page."""


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


class Request(BaseModel):
    """A message of a page. Numbers are not taken for texts, nor booleans for numbers."""

    model_config = ConfigDict(strict=True, frozen=True)


class SharedCue(BaseModel):
    """What a shared address says at a tick. An empty text ends what holds."""

    model_config = ConfigDict(strict=True, frozen=True)
    time: int = Field(ge=0, le=LONGEST_HOLD)
    text: Annotated[str, AfterValidator(_short)]
    agents: list[int] | None = Field(default=None, min_length=1)
    hold: int | None = Field(default=None, ge=1, le=LONGEST_HOLD)


class Open(Request):
    """Start a session: a world, one team or two, and perhaps a seat for the person and what is said when."""

    do: Literal["open"]
    world: Name
    teams: list[str] = Field(description="a list of names")
    seed: Seed = 1
    seat: int | Literal["guest"] | None = Field(
        default=None, description="an agent's number, “guest” or nothing"
    )
    script: list[SharedCue] = Field(
        default_factory=list,
        max_length=LONGEST_LOG,
        description=f"a list of at most {LONGEST_LOG} sentences with their ticks",
    )
    paused: bool = Field(default=False, description="true or false")


class Say(Request):
    """Give an instruction. Without `agents` it addresses everybody; without `hold` it holds until it is ended."""

    do: Literal["say"]
    text: Annotated[str, AfterValidator(_short), Field(description="a text")]
    agents: list[int] | None = Field(
        default=None, min_length=1, description="a list of agents' numbers"
    )
    hold: int | None = Field(
        default=None, ge=1, le=LONGEST_HOLD, description=f"a whole number from 1 to {LONGEST_HOLD}"
    )


class End(Request):
    """End the active instruction."""

    do: Literal["end"]


class Drive(Request):
    """Run this macro with the agent that the person drives."""

    do: Literal["drive"]
    macro: Name


class Play(Request):
    """Let the clock run."""

    do: Literal["play"]


class Pause(Request):
    """Stop the clock."""

    do: Literal["pause"]


class Step(Request):
    """Stop the clock and run one tick."""

    do: Literal["step"]


class Speed(Request):
    """Set the ticks per second; values outside the limits are clipped."""

    do: Literal["speed"]
    value: Number


class Again(Request):
    """Say whether a new episode follows an ended one."""

    do: Literal["again"]
    value: bool = Field(default=False, description="true or false")


class Reset(Request):
    """Start a new episode."""

    do: Literal["reset"]
    seed: Seed = 1


AnyRequest = Annotated[
    Open | Say | End | Drive | Play | Pause | Step | Speed | Again | Reset,
    Field(discriminator="do"),
]
_REQUESTS: TypeAdapter[AnyRequest] = TypeAdapter(AnyRequest)
_BY_NAME: dict[str, type[Request]] = {
    one.model_fields["do"].annotation.__args__[0]: one  # type: ignore[union-attr]
    for one in Request.__subclasses__()
}


def parse(text: str) -> AnyRequest:
    """Return a page's message, or raise a `MessageError` that says what is wrong with it."""
    try:
        return _REQUESTS.validate_json(text)
    except ValidationError as error:
        raise MessageError(_explanation(error)) from None


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


class WorldListing(BaseModel):
    """A world that can be opened."""

    world: str
    title: str
    teams: list[str]
    agents: list[str]
    agent_words: list[str]  # what people call them
    guest: bool  # a person can join as one more agent


class Hello(BaseModel):
    """The first message: what can be opened, and how it is drawn."""

    type: Literal["hello"] = "hello"
    look: dict[str, Any]
    listing: list[WorldListing]
    opens: str  # the world that a page opens unless its address names one
    words: str  # why only the built-in phrases are understood; "" if free sentences are, too
    ticket: str  # names this page when it fetches its recording


class TeamListing(BaseModel):
    """A team of a session."""

    name: str
    about: str  # what sort of team it is, in a sentence
    agents: list[str]
    agent_words: list[str]
    kinds: list[str]


class KindListing(BaseModel):
    """A kind of instruction."""

    kind: str
    meaning: str
    phrases: list[str]


class Opened(BaseModel):
    """A session has started."""

    type: Literal["opened"] = "opened"
    world: str
    title: str
    job: str  # the team's job in a sentence
    examples: list[str]  # sentences to try
    seed: int
    seat: int | None
    recordings: list[TeamListing]
    macros: list[list[str]]  # by agent
    macro_words: list[list[str]]  # what people call them
    asks: list[KindListing]


class InstructionCounts(BaseModel):
    """Instructions given, counted at their end, and followed, over all episodes of a session."""

    given: int
    judged: int
    followed: int


class Frames(BaseModel):
    """The present frame of each team."""

    type: Literal["frame"] = "frame"
    frames: list[
        dict[str, Any]
    ]  # as `mavic.apps.frames.Frame`, with values in the order of the kinds
    number: int  # of the tick, over all episodes of the session
    seed: int
    over: bool
    still: bool  # a picture of the state; nobody has moved
    totals: list[InstructionCounts]
    standing: bool  # what holds does so until the person ends it
    queued: list[str]  # what is said next
    log: list[dict[str, Any]]  # what was said in this episode, as `SharedCue`


class Near(BaseModel):
    """A phrase of the lexicon that is close to what was said."""

    text: str
    kind: str
    cosine: float


class Choice(BaseModel):
    """An instruction that the person may choose."""

    text: str
    agents: list[int] | None


class Understood(BaseModel):
    """What a sentence was understood as, and the teams to which it could not be given."""

    type: Literal["understood"] = "understood"
    text: str
    kind: str
    probability: float
    unsure: bool
    nearest: list[Near]
    closest: list[str]
    note: str
    refused: list[str]
    agents: list[int] | None = None  # the addressed agents; None: everybody
    ends: bool = False  # it ends what holds
    ended: bool = False  # something held and was ended
    nothing: bool = False  # it is known to ask for nothing
    queued: list[str] = []  # what is said after it
    choices: list[Choice] = []  # instructions that cannot hold at the same time: which is meant?
    also: str = ""  # the kind of a second instruction in the same sentence


class Clock(BaseModel):
    """How time passes."""

    type: Literal["clock"] = "clock"
    playing: bool
    speed: float
    again: bool


class Status(BaseModel):
    """What the page is waiting for; "" for nothing."""

    type: Literal["status"] = "status"
    text: str


class Full(BaseModel):
    """Too many pages are open; the connection ends."""

    type: Literal["full"] = "full"
    text: str


class Failure(BaseModel):
    """A request could not be carried out."""

    type: Literal["error"] = "error"
    text: str


def understood(line: Line, refused: list[str], ended: bool = False) -> Understood:
    """Return the message that tells a page what its line was understood as, and whether something was ended."""
    if line.ends:
        return _plain(line.text, ends=True, ended=ended)
    if line.together:
        parts = [Choice(text=o.heard.text, agents=_listed(o.agents)) for o in line.orders]
        return _plain(line.text, unsure=True, choices=parts)
    order = line.unclear or line.orders[0]
    clauses = [order.heard] if order.beside is None else [order.heard, order.beside.heard]
    heard = next((clause for clause in clauses if clause.unsure), clauses[0])
    return Understood(
        text=order.line,
        also=clauses[1].kind if len(clauses) > 1 else "",
        kind=heard.kind,
        probability=round(min(clause.probability for clause in clauses), 4),
        unsure=heard.unsure,
        nearest=[
            Near(text=text, kind=kind, cosine=round(float(cosine), 3))
            for text, kind, cosine in heard.nearest
        ],
        closest=list(heard.closest),
        note=heard.note,
        refused=refused,
        agents=_listed(order.everybody),
        queued=[later.heard.text for later in line.orders[1:]],
        nothing=heard.nothing,
    )


def _plain(text: str, **more: Any) -> Understood:
    """Return the message about a line that was not read as one instruction."""
    facts: dict[str, Any] = dict(kind="none", probability=1.0, unsure=False, note="")
    lists: dict[str, Any] = dict(nearest=[], closest=[], refused=[])
    return Understood(**{"text": text, **facts, **lists, **more})


def _listed(agents: tuple[int, ...] | None) -> list[int] | None:
    return None if agents is None else list(agents)
