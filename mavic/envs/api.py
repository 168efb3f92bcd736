"""What an environment must offer, what is known about each world, and the registry of worlds.

An environment is a frozen record and a pytree. Rewards and probabilities are array leaves, so a grid of them is one
`vmap`. Sizes and the choice of dynamics are static. All methods are pure. Agents with fewer macros or shorter
observations than others are padded. `mavic.envs.conformance.check_env` tests all of this.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp

from mavic.hints import suggest, unknown
from mavic.preset import Preset
from mavic.ranges import FINITE, check_value
from mavic.types import Array, ArrayLike, Scene, Tick

BUILT_IN = ("box_pushing", "warehouse", "overcooked")  # one folder each, with a record WORLD
REGISTERED: dict[str, World] = {}


@runtime_checkable
class Env(Protocol):
    """A cooperative environment whose agents run macro-actions, one tick at a time.

    Two more methods are optional. `effective_macros(state) -> int [N, M]` returns the effective macro of each choice
    (`Tick.effective_macro`) if teammates stay still. Without it every macro counts as itself. An environment with a
    tuple `predicates` of names has `holds(state) -> bool [N, M, Q]`: which of them hold of each choice in this state,
    such as "southwards" or "while-carrying". Instructions may forbid or allow choices by them.

    Worlds whose ticks the host runs (`mavic.simulators.env`) have three more: `restart`, `raise_failure` and
    `simulator_reports`.
    """

    @property
    def name(self) -> str:
        """The world's id, such as `box_pushing`."""

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents' names. Every array with an agent axis follows this order."""

    @property
    def macros(self) -> tuple[type[IntEnum], ...]:
        """One enum of macros per agent. The longest enum sets M."""

    @property
    def horizon(self) -> int:
        """The number of ticks after which an episode is cut."""

    @property
    def horizon_ends(self) -> bool:
        """True if reaching the horizon is a true end (value 0 afterwards), false if it only truncates the episode."""

    @property
    def events(self) -> tuple[str, ...]:
        """Names of the events a tick can report. The first is "solved": the task is done."""

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Names of facts about a state that a kind of instruction may require when it is given."""

    @property
    def effects(self) -> tuple[str, ...]:
        """Names of changes that an instruction can make to the dynamics while it holds."""

    def reset(self, key: Array) -> Any:
        """Return the first state of an episode."""

    def tick(self, key: Array, state: Any, macro: Array, fresh: Array, effect: Array) -> Tick:
        """Run one primitive step.

        Args:
            key: A random key.
            state: Before the step.
            macro: [N] the macro that each agent runs.
            fresh: [N] whether it was chosen in this tick. The agent's previous macro has ended or was interrupted.
            effect: [N] 0, or 1 + the index in `effects` of the change that the agent's instruction makes.
        """

    def check(self, state: Any) -> Array:
        """Return a bool for each name in `preconditions`: whether it holds in this state."""

    def observe(self, state: Any) -> Array:
        """Return float [N, O], what each agent sees in this state. It never depends on the instruction."""

    def available(self, state: Any) -> Array:
        """Return bool [N, M], which macros each agent may choose. Padding is never available."""

    def scene(self, state: Any, macro: ArrayLike) -> Scene:
        """Return a picture of the state. This runs on the host."""


def macro_count(env: Env) -> int:
    """Return M, the largest number of macros that any agent has."""
    return max(len(macros) for macros in env.macros)


def effective_macros(env: Env, state: Any) -> Array:
    """Return int [N, M], the effective macro of each choice in `state` if teammates stay still."""
    own = getattr(env, "effective_macros", None)
    if own is not None:
        return own(state)
    macros = jnp.arange(macro_count(env), dtype=jnp.int32)
    return jnp.broadcast_to(macros, (len(env.agents), len(macros)))


def runs_on_host(env: Env) -> bool:
    """Return whether simulators on the host run the ticks of a world."""
    return hasattr(env, "restart")


def raise_failure(env: Env) -> None:
    """Raise what went wrong in the simulators of a world, if it has simulators and they cannot go on."""
    own = getattr(env, "raise_failure", None)
    if own is not None:
        own()


def simulator_reports(env: Env) -> tuple[list[str], int]:
    """Return what there is to say of a world's simulators since the last call, and how many episodes were dropped.

    Compiled worlds have nothing to say.
    """
    own = getattr(env, "simulator_reports", None)
    return own() if own is not None else ([], 0)


def predicates_of(env: Env) -> tuple[str, ...]:
    """Return the names of the predicates of an environment; () if it has none."""
    return tuple(getattr(env, "predicates", ()))


def options_of(env: Env) -> dict[str, Any]:
    """Return the options of an environment and the values it was made with."""
    if not dataclasses.is_dataclass(env):
        return {}
    found = {f.name: getattr(env, f.name) for f in dataclasses.fields(env) if f.init}
    return {k: v for k, v in found.items() if isinstance(v, bool | int | float | str)}


class PaperFigures(NamedTuple):
    """The paper's figures for one method: means and standard deviations over 5 seeds. None: not reported."""

    base: float
    base_std: float
    compliance: float | None = None
    compliance_std: float | None = None


@dataclass(frozen=True, kw_only=True)
class World:
    """All facts about one world. Other modules read this record and never name a world."""

    name: str
    """The id, such as `box_pushing`."""
    make: Callable[..., Env]
    """Makes the environment from its options."""
    title: str = ""
    """The name shown in tables and on pages."""
    version: int = 0
    """The number in its Gymnasium id, such as `mavic/BoxPushing-v1`. A change of its dynamics raises it."""
    instructions: Path | None = None
    """The file of its kinds and training phrases. A world without one cannot be trained by name."""
    phrases: Path | None = None
    """The file of further phrases, for the sentence reader and for tests."""
    gamma: float | None = None
    """The discount per tick. None: 0.99."""
    episodes: int | None = None
    """How many episodes a training takes. None: as many as the general numbers say."""
    presets: Mapping[str, Preset] = field(default_factory=dict)
    """The hyper-parameters by preset name. A preset that is missing here takes the general numbers."""
    schedules: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The numbers of a schedule that differ in this world."""
    optimum: Callable[[Env, float, str | None], float | None] | None = None
    """Returns the best discounted return for an environment, a gamma and the kind that holds from the start (None: no
    instruction; "KIND+KIND": both), or None where it is not known."""
    impossible_together: tuple[tuple[str, str], ...] = ()
    """Pairs of prohibitions under which the task cannot be completed, though it can under each of the two."""
    paper: Mapping[str, PaperFigures] = field(default_factory=dict)
    """The paper's figures by method."""
    paper_phrases: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """The paper's compliance with unseen phrases: mean and standard deviation."""
    paper_note: str = ""
    """A remark that tables print beside the paper's figures."""
    followed_means: str = ""
    """When an instruction counts as followed, as a clause for captions. Empty: the usual rule."""
    reference_speed: tuple[int, int] | None = None
    """Steps per second of the public PyTorch code: the environment alone, and with learning."""
    guest: Mapping[str, Any] | None = None
    """The options that add one more agent to a team of two. None: no agent can be added."""
    resting_macros: tuple[str, ...] = ("STAY", "WAIT")
    """What an agent that a person drives does while the person chooses no macro: the first of these that it has. If it
    has none of them, the team chooses for it."""
    job: str = ""
    """The team's job in one sentence, for pages."""
    examples: tuple[str, ...] = ()
    """Sentences that a page offers first. Empty: the first phrase of each kind."""
    agent_words: tuple[str, ...] = ()
    """What people call the agents, in their order. Empty: the agents' names without underscores."""
    other_words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What people also say for an agent, a thing, or the noun in the names of things, by that name."""
    macro_words: Mapping[str, str] = field(default_factory=dict)
    """What people call a macro. A macro that is missing here is called by its name, in lower case."""
    macro_things: Mapping[str, str] = field(default_factory=dict)
    """The thing that a macro or a predicate is about, by its name in the scene. Pages mark what an instruction forbids
    or wants."""
    opens_first: bool = False
    """The playground opens in this world: its episodes are long enough to interrupt."""

    @classmethod
    def built_in(cls, folder: Path, make: Callable[..., Env], **more: Any) -> World:
        """Return the record of a world whose folder holds its data.

        Args:
            folder: The folder of `instructions.toml`, `phrases.toml` and `paper.toml`. Its name is the world's id.
            make: Makes the environment.
            **more: Further fields.
        """
        paper = tomllib.loads((folder / "paper.toml").read_text(encoding="utf-8"))
        return cls(
            name=folder.name,
            make=make,
            instructions=folder / "instructions.toml",
            phrases=folder / "phrases.toml",
            paper={method: PaperFigures(**row) for method, row in paper["methods"].items()},
            paper_phrases={text: tuple(pair) for text, pair in paper.get("phrases", {}).items()},
            paper_note=paper.get("note", ""),
            **more,
        )

    def agent_word(self, agent: str, number: int) -> str:
        """Return what people call an agent."""
        word = self.agent_words[number : number + 1]
        return word[0] if word else plain(agent)

    def macro_word(self, macro: str) -> str:
        """Return what people call a macro."""
        return self.macro_words.get(macro) or plain(macro)


def plain(name: str) -> str:
    """Return a name as words: lower case, without underscores and hyphens."""
    return name.lower().replace("_", " ").replace("-", " ")


def names() -> tuple[str, ...]:
    """Return the ids of all worlds: the built-in ones, then the registered ones."""
    return tuple(dict.fromkeys((*BUILT_IN, *REGISTERED)))


def world(name: str) -> World:
    """Return the record of a world. An unknown name is a `ValueError` that lists the known ones."""
    if name in REGISTERED:
        return REGISTERED[name]
    if name not in BUILT_IN:
        raise ValueError(unknown("world", name, names()))
    return importlib.import_module(f"mavic.envs.{name}").WORLD


def known(name: str) -> World:
    """Return the record of a world, or for an unknown name a record that holds the name alone."""
    return world(name) if name in names() else World(name=name, make=_unregistered)


def _unregistered(**options: Any) -> Env:
    raise ValueError(f"this world is not registered, so it cannot be made with {options}")


def register(
    name: str,
    make: str | Callable[..., Env],
    instructions: str | Path | None = None,
    **more: Any,
) -> None:
    """Add a world of your own, or change the record of a known one.

    To change the record of a known world, give its name, the same `make`, and the fields to replace.

    Args:
        name: The world's id.
        make: A callable or a text "module:name".
        instructions: The file of its instructions, without which it cannot be trained by name. A relative path is
            looked for beside the calling module first, then in the current folder.
        **more: Further fields of `World`.
    """
    if isinstance(make, str):
        make = _Lazy(make)
    before = world(name) if name in names() else World(name=name, make=make)
    if before.make != make:
        raise ValueError(f"a world called {name!r} is already registered")
    for file, path in {"instructions": instructions, "phrases": more.get("phrases")}.items():
        if path is not None:
            more[file] = _beside_caller(Path(path))
    REGISTERED[name] = dataclasses.replace(before, **more)


def _beside_caller(path: Path) -> Path:
    """Return the file beside the nearest calling module that has it; the path itself if none has."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        near = Path(frame.f_globals.get("__file__") or "").parent / path
        if near.is_file():
            return near
        frame = frame.f_back
    return path


@dataclass(frozen=True)
class _Lazy:
    """A factory named by "module:name". The module is imported when the factory is first called."""

    place: str

    def __call__(self, **options: Any) -> Env:
        return self.found()(**options)

    def found(self) -> Callable[..., Env]:
        module, _, attribute = self.place.partition(":")
        return getattr(importlib.import_module(module), attribute)


def module_of(name: str) -> str:
    """Return the module that makes a world of the user, such as `my_worlds`; empty for a built-in world."""
    if name in BUILT_IN:
        return ""
    factory = world(name).make
    module = factory.place.partition(":")[0] if isinstance(factory, _Lazy) else factory.__module__
    if module == "__main__":
        module = Path(getattr(sys.modules["__main__"], "__file__", None) or "").stem
    return module


def make(name: str, /, **options: Any) -> Env:
    """Return the environment of the world with that id. `options` go to its constructor."""
    factory = world(name).make
    factory = factory.found() if isinstance(factory, _Lazy) else factory
    if dataclasses.is_dataclass(factory):
        fields = {f.name: f.default for f in dataclasses.fields(factory) if f.init}
        for option, value in options.items():
            _check_option(name, option, tuple(fields))
            _check_type(name, option, value, fields[option])
    try:
        env = factory(**options)
    except TypeError as error:
        if not options:
            raise
        raise ValueError(f"{name} does not take the options {options}: {error}") from None
    if env.name != name:
        raise ValueError(
            f"the world registered as {name!r} calls itself {env.name!r}: register it by that name"
        )
    return env


def _check_type(name: str, option: str, value: Any, default: Any) -> None:
    """Refuse a plain value of another type than the option's default. Arrays pass."""
    types: dict[type, Any] = {bool: bool, int: int, float: Annotated[float, FINITE], str: str}
    if isinstance(value, bool | int | float | str) and type(default) in types:
        check_value(value, types[type(default)], f"{name}: the option {option}")


def _check_option(name: str, option: str, allowed: tuple[str, ...]) -> None:
    if option not in allowed:
        raise ValueError(f"{name} has no option {option!r}; {suggest(option, allowed)}")
