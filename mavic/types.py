"""The records that all rooms share: frozen, keyword-only pytrees.

Axes: `E` episodes, `W` environments side by side (episodes follow one another in each), `T` ticks (primitive steps),
`L` lanes of the learner's batch (each holds whole episodes in order), `K` macro transitions, `N` agents, `M` macros
(padded), `O` observation, `C` kinds of instruction (0 = none), `P` phrases (0 = silence), `D` embedding, `V` events.
Time comes first, then the environment or lane, then the agent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

import jax
import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, Key
else:
    try:
        from jaxtyping import Bool, Float, Int, Key
    except ImportError:  # The tests check shapes with it; training does not need it.
        from typing import Annotated

        Bool = Float = Int = Key = Annotated

Array = jax.Array
ArrayLike = Array | np.ndarray | Sequence[Any]  # what callers who do not use JAX may hold
T = TypeVar("T")
CONTEXTS = 3
"""The number of contexts of an agent's decision. 0: no instruction; 1: an instruction, and the task goes on for this
agent (rule add, or only teammates are addressed); 2: an instruction instead of the task (rule replace)."""


def assert_rank(axes: str, **arrays: Any) -> None:
    """Raise a ValueError unless every array has as many axes as `axes` names, as in `assert_rank("K W", mask=mask)`.

    An array of too small a rank would broadcast silently and give wrong numbers.
    """
    rank = len(axes.split())
    for name, array in arrays.items():
        found = jax.numpy.shape(array)
        if len(found) != rank:
            wanted = f"[{', '.join(axes.split())}]"
            raise ValueError(f"{name} must have rank {rank}, {wanted}; its shape is {found}")


def static(default: Any = dataclasses.MISSING) -> Any:
    """Return a dataclass field that is static: a part of the compiled program, not an array."""
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata={"static": True})
    return dataclasses.field(default=default, metadata={"static": True})


def by_name(cls: type[T]) -> type[T]:
    """Make `cls` say that it takes its fields by name when somebody lists them without names."""

    def new(made: type[Any], *listed: Any, **fields: Any) -> Any:
        del fields
        if listed:
            names = [field.name for field in dataclasses.fields(made)]
            raise TypeError(
                f"{made.__name__} takes its fields by name, such as {made.__name__}({names[0]}=…); "
                f"they are {', '.join(names)}"
            )
        return object.__new__(made)

    cls.__new__ = new  # type: ignore[method-assign, assignment]
    return cls


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(static, dataclasses.field)
)
def record(cls: type[T]) -> type[T]:
    """Make `cls` a frozen keyword-only dataclass and a pytree; `static()` fields are its metadata."""
    made = dataclasses.dataclass(frozen=True, kw_only=True)(cls)
    fields = dataclasses.fields(made)  # type: ignore[arg-type]
    meta = [f.name for f in fields if f.metadata.get("static")]
    data = [f.name for f in fields if not f.metadata.get("static")]
    jax.tree_util.register_dataclass(made, data_fields=data, meta_fields=meta)
    # JAX rebuilds records with tracers' stand-ins, axes, shapes or None in place of arrays, so a record's constructor
    # is exempt from the type checks of the tests.
    made.__no_type_check__ = True  # type: ignore[attr-defined]
    return by_name(made)


def replace(item: T, **changes: Any) -> T:
    """Return a copy of a record with some fields changed."""
    return dataclasses.replace(item, **changes)  # type: ignore[type-var]


@record
class Tick:
    """The result of one primitive step of an environment."""

    state: Any
    reward: Array  # [N] the task's reward
    ended: Array  # [N] bool: the running macro ended by itself in this tick
    terminal: Array  # [] bool: the task is over; the horizon never sets it
    events: Array  # [V] float: how often each event happened in this tick
    effective_macro: Array  # [N] int: the macro whose work was done: the running one, or another that would do the same
    truncated: Array | None = (
        None  # [] bool: a simulator cuts the episode before the horizon; None: it never does
    )


@by_name
@dataclasses.dataclass(frozen=True, kw_only=True)
class Sprite:
    """One thing in a picture. Units are cells; x grows to the right and y downwards."""

    shape: str  # "robot", "box", "tool", "human", "goal", "wall", "counter", "station", "food", "plate", "zone", "spot"
    x: float
    y: float
    width: float = 1.0
    height: float = 1.0
    label: str = ""  # a short text drawn on it
    colour: str = "grey"  # a name in `mavic.envs.painting.PALETTE`
    heading: str = ""  # "N", "E", "S" or "W"; empty if it faces nowhere
    holds: str = ""  # what it carries, in words
    name: str = ""  # what people call it, such as "left board"; instructions name things so
    picture: str = ""  # what a page draws it as, such as "oven"; a page that cannot draws the shape
    carries: str = ""  # the picture of what it carries


@by_name
@dataclasses.dataclass(frozen=True, kw_only=True)
class Step:
    """A part of the team's work and how far it is."""

    name: str  # in words, such as "chop the tomato"
    done: int
    of: int = 1


@by_name
@dataclasses.dataclass(frozen=True, kw_only=True)
class Scene:
    """The description of a picture, for text, matplotlib and the web page. Sprites are drawn in order."""

    width: float
    height: float
    sprites: tuple[Sprite, ...]
    notes: tuple[str, ...] = ()  # lines of text below the picture
    steps: tuple[Step, ...] = ()  # the team's work, part by part
    image: str = ""  # a picture below the sprites, as a data address (PNG); worlds that render pixels have one


@record
class Rules:
    """What each kind asks for and what it pays. Row 0 is no instruction."""

    allowed: Array  # [C, N, M] bool
    lists_allowed: Array  # [C] bool: the kind says what to do; otherwise what not to do
    addressed: Array  # [C, N] bool: the agents that the kind is meant for
    replaces: Array  # [C] bool: the task's reward is not paid
    pay: (
        Array  # [C] plus or minus this each tick, by whether the macro is allowed; 0 under rule add
    )
    penalty: Array  # [C] once for each forbidden macro chosen; 0 under rule replace
    bonus: Array  # [C] once for each allowed macro chosen; 0 under rule replace
    outcome: Array  # [C, V] an event with +1 fulfils the instruction and ends it, with -1 breaks and ends it
    credit: Array  # [C] what fulfilling pays and breaking costs
    precondition: Array  # [C] 0, or 1 + the index of the precondition for giving the kind
    effect: Array  # [C] 0, or 1 + the index of what the environment does differently while the kind holds
    given: Array  # [C] bool: whether the schedule gives it
    weight: Array  # [C] how often it is given, compared with the others that are possible
    names: tuple[str, ...] = static()
    predicate: Array | None = None
    """[C] 0, or 1 + the index of the predicate on which it depends whether a choice is forbidden, or allowed. None: no
    kind depends on one."""
    negated: Array | None = None
    """[C] bool: it depends on the predicate's not holding."""


@record
class Schedule:
    """When instructions arrive and end. All fields are arrays, so a grid of schedules is one `vmap`."""

    rate: Array  # [] chance per tick that an instruction starts while none is active
    hold_min: Array  # [] ticks for which it holds, uniform on hold_min..hold_max
    hold_max: Array
    once: Array  # [] bool: at most one per episode
    overlap: Array  # [] bool: one of another kind may replace a running one
    one_agent: (
        Array  # [] chance that it addresses one random agent of those that the kind is meant for
    )
    from_start: Array  # [] chance that one is drawn at reset and held for the whole episode
    from_start_adds: Array  # [] bool: only kinds with rule add are drawn at reset
    single_instruction: Array  # [] bool: no other follows one that was given at reset
    uninstructed_episode_prob: Array  # [] chance that an episode sees no instruction
    hold_to_end_prob: Array  # [] chance that an instruction with rule add holds to the end
    spurious_interrupt_prob: Array  # [] chance per tick that all macros end without an instruction
    drill_prob: Array  # [] chance that a prohibition (rule add, held to the end) is enforced
    shield: Array  # [] bool: every instruction is enforced


@record
class Phrases:
    """The phrases of each kind as integers: what a compiled program needs to draw one."""

    table: Array  # [C, Q] phrase numbers of the kind, padded
    count: Array  # [C] how many of them are real


@record
class Instruction:
    """The active instruction: its kind and phrase for each agent. One clock serves all agents."""

    kind: Array  # [N] 0 = not addressed
    phrase: Array  # [N] 0 = silence
    ticks_left: Array  # [] for which it still holds
    ticks_held: Array  # [] for which it has held
    obeyed: Array  # [] bool: no addressed agent has chosen a forbidden macro so far
    decided: Array  # [] bool: some addressed agent has decided under it
    given: Array  # [] instructions given in this episode so far
    uninstructed: Array  # [] bool: no further instruction is given in this episode
    context: Array  # [N] 0, 1 or 2, as `CONTEXTS` says
    enforced: Array  # [] bool: what it forbids is not available to the agents it addresses


@record
class InstructedState:
    """The state of an environment with its macro clock and its instruction clock."""

    state: Any
    macro: Array  # [N] running macro; -1 before the first
    last_macro: Array  # [N] the macro that ran before it; -1 for none
    idle: Array  # [N] bool: the agent decides now
    observation: Array  # [N, O] what each agent decides from, or last decided from
    available: Array  # [N, M] the macros that were available then
    forbidden: Array  # [N, M] those that the environment offered and the instruction forbade then
    instruction: Instruction
    time: Array  # [] ticks so far
    key: Array  # the episode's key
    also: Instruction | None = None  # a second one that holds beside it; None: compiled without one
    holds: Array | None = None
    """[N, M, Q] bool: the predicates that held of each choice then. None: no kind depends on one."""


@record
class AlsoHeld:
    """The second instruction in one tick, where there is room for one: the fields of `Timestep` of the same names."""

    kind: Array  # [N]
    phrase: Array  # [N]
    complied: Array  # [N]
    closed: Array  # []
    followed: Array  # []


@record
class Timestep:
    """One tick of one episode: what was decided, under which instruction, and what followed."""

    observation: Array  # [N, O] what the agent saw when it chose its macro
    available: Array  # [N, M] the macros that were available then
    forbidden: Array  # [N, M] those that the environment offered and the instruction forbade then
    last_macro: Array  # [N] the macro that ran before; -1 for none
    macro: Array  # [N] the macro that runs in this tick
    fresh: Array  # [N] bool: the macro was chosen in this tick
    kind: Array  # [N] the instruction that holds in this tick; 0 = not addressed
    phrase: Array  # [N] its phrase; 0 = silence
    context: Array  # [N] the agent's context under it: 0, 1 or 2, as `CONTEXTS` says
    reward: Array  # [N] what the learner is paid, instruction included
    task_reward: Array  # [] the task's own reward, mean over agents
    complied: Array  # [N] the running macro is allowed (true when not addressed)
    ended: Array  # [N] the macro ended: by itself, interrupted, or with the episode
    unfinished: Array  # [N] it ended only because the episode did
    switched: Array  # [] the clock, not an event, changed the instruction after this tick
    terminal: Array  # [] true end
    bootstraps_from_self: Array  # [N] the task ended, but an instruction replaces it and goes on
    truncated: Array  # [] cut by the horizon
    events: Array  # [V]
    closed: Array  # [] kind of the instruction that was counted after this tick; 0 for none
    followed: Array  # [] it was followed
    next_observation: Array  # [N, O] what each agent sees after the tick
    time: Array  # [] index of the tick in its episode
    alive: Array  # [] the tick belongs to an episode
    also: AlsoHeld | None = None  # the second instruction; None: compiled without one


@record
class MacroTransitions:
    """One row for each macro that an agent finished. A lane holds whole episodes in order."""

    observation: Array  # [K, L, N, O]
    available: Array  # [K, L, N, M]
    forbidden: Array  # [K, L, N, M]
    last_macro: Array  # [K, L, N]
    macro: Array  # [K, L, N]
    phrases: Array  # [K, L, N, N] of all agents, the row's own agent first
    kind: Array  # [K, L, N] of the joint instruction during the row; 0 = no agent is instructed
    context: Array  # [K, L, N] of that instruction
    reward: Array  # [K, L, N] discounted sum over the macro's ticks
    discount: Array  # [K, L, N] gamma^tau, 0 at a true end
    next_observation: Array  # [K, L, N, O]
    switched: Array  # [K, L, N] the clock, not an event, changed the instruction at its end
    first: Array  # [K, L, N] first row of an episode: memory is empty before it
    last: Array  # [K, L, N] last row of an episode
    bootstraps_from_self: Array  # [K, L, N] as in `Timestep`: bootstrap V(h, c) of this row
    time: Array  # [K, L, N] tick of the episode at which the macro ended
    valid: Array  # [K, L, N] bool
