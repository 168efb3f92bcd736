"""What a world must offer, and the conformance test that proves it does.

A world is a record (a pytree): rewards and rates are array leaves, so a grid of settings is one
`vmap`; sizes and rule sets are static. All methods are pure. Agents with fewer macros or smaller
observations than others are padded.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from mavic.hints import suggest
from mavic.preset import Preset
from mavic.types import Array, Scene, Tick


@runtime_checkable
class Env(Protocol):
    """A cooperative world whose agents run macro-actions, one tick at a time."""

    @property
    def name(self) -> str:
        """World id, such as `box_pushing`."""

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents' names; everything per agent is in this order."""

    @property
    def macros(self) -> tuple[type[IntEnum], ...]:
        """One enum of macros per agent; the longest sets M."""

    @property
    def horizon(self) -> int:
        """Ticks after which an episode is cut."""

    @property
    def horizon_ends(self) -> bool:
        """Whether the horizon is a true end (nothing comes after) rather than a cut."""

    @property
    def events(self) -> tuple[str, ...]:
        """Names of what can happen in a tick; the first is "solved", the task done."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """Names of facts about a state that an instruction may require when it is given."""

    @property
    def effects(self) -> tuple[str, ...]:
        """Names of what an instruction can change in the world while it holds."""

    def reset(self, key: Array) -> Any:
        """The first state."""

    def tick(self, key: Array, state: Any, macro: Array, fresh: Array, effect: Array) -> Tick:
        """One primitive step. `macro` [N] runs; `fresh` [N]: chosen just now (if an old one was
        still running it was interrupted); `effect` [N]: 0, or 1 + the index in `effects` of what
        the agent's instruction asks."""

    def check(self, state: Any) -> Array:
        """Bool, one per name in `conditions`."""

    def observe(self, state: Any) -> Array:
        """Float [N, O], what each agent would see now; never depends on the instruction."""

    def available(self, state: Any) -> Array:
        """Bool [N, M], which macros may be chosen; padding is never available."""

    def scene(self, state: Any, macro: Array) -> Scene:
        """A picture of the state (on the host)."""


def macro_count(env: Env) -> int:
    """M: the largest number of macros any agent has."""
    return max(len(macros) for macros in env.macros)


class PaperFigures(NamedTuple):
    """What the paper reports for one method: means and standard deviations over 5 seeds; None where it says nothing."""

    base: float
    base_std: float
    compliance: float | None = None
    compliance_std: float | None = None


@dataclass(frozen=True, kw_only=True)
class World:
    """All that is known about one world. Everything else asks this record instead of naming worlds."""

    name: str
    """The id, such as `box_pushing`."""
    make: Callable[..., Env]
    """Makes the environment from its options."""
    title: str = ""
    """How people call it."""
    instructions: Path | None = None
    """The file of its kinds and phrases; without one it cannot be trained by name."""
    phrases: Path | None = None
    """Further phrases, for the reader of sentences and for tests."""
    presets: Mapping[str, Preset] = field(default_factory=dict)
    """The learner's numbers by preset; a preset that is missing here has general numbers."""
    schedules: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Numbers of a schedule that differ in this world."""
    optimum: Callable[[Env, float, str | None], float | None] | None = None
    """Best discounted return by environment, gamma and kind held from the start (None: no instruction); None where it
    is not known."""
    paper: Mapping[str, PaperFigures] = field(default_factory=dict)
    """The paper's figures by method."""
    paper_note: str = ""
    """What must be said beside the paper's figures."""
    followed_means: str = ""
    """What counts as a followed instruction, where that differs from the other worlds."""
    reference_speed: tuple[int, int] | None = None
    """Steps per second of the public PyTorch code: environment alone, with learning."""
    guest: Mapping[str, Any] | None = None
    """Options with which one more agent can be seated beside a team of two; None: nobody can join."""
    resting_macros: tuple[str, ...] = ("STAY", "WAIT")
    """What a person's agent does while the person asks for nothing: the first of these macros that the agent has. An
    agent that has none of them leaves the choice to the team."""


def built_in(folder: Path, make: Callable[..., Env], **more: Any) -> World:
    """The record of a world whose folder holds `instructions.toml`, `phrases.toml` and `paper.toml`."""
    paper = tomllib.loads((folder / "paper.toml").read_text(encoding="utf-8"))
    return World(
        name=folder.name,
        make=make,
        instructions=folder / "instructions.toml",
        phrases=folder / "phrases.toml",
        paper={method: PaperFigures(**row) for method, row in paper["methods"].items()},
        paper_note=paper.get("note", ""),
        **more,
    )


BUILT_IN = ("box_pushing", "warehouse", "overcooked")  # one folder each, with a record WORLD
REGISTERED: dict[str, World] = {}


def names() -> tuple[str, ...]:
    """The ids of all worlds: built in, then registered."""
    return (*BUILT_IN, *REGISTERED)


def world(name: str) -> World:
    """The record of a world; an unknown name is a `ValueError` that lists the known ones."""
    if name in REGISTERED:
        return REGISTERED[name]
    if name not in BUILT_IN:
        raise ValueError(f"no world is called {name!r}; {suggest(name, names())}")
    return importlib.import_module(f"mavic.envs.{name}").WORLD


def register(
    name: str,
    make: str | Callable[..., Env],
    instructions: str | Path | None = None,
    **more: Any,
) -> None:
    """Make a world of your own known by name. `make` is callable or "module:name"; `instructions` is the file that lets
    it be trained by name; `more` are further fields of `World`."""
    if isinstance(make, str):
        make = _Lazy(make)
    path = None if instructions is None else Path(instructions)
    new = World(name=name, make=make, instructions=path, **more)
    if name in BUILT_IN or REGISTERED.get(name, new).make != make:
        raise ValueError(f"a world called {name!r} is already registered")
    REGISTERED[name] = new


@dataclass(frozen=True)
class _Lazy:
    """A factory named by "module:name", imported when it is first called."""

    place: str

    def __call__(self, **options: Any) -> Env:
        return self.found()(**options)

    def found(self) -> Callable[..., Env]:
        module, _, attribute = self.place.partition(":")
        return getattr(importlib.import_module(module), attribute)


def options_of(env: Env) -> dict[str, Any]:
    """The options of an environment and the values it was made with."""
    if not dataclasses.is_dataclass(env):
        return {}
    found = {f.name: getattr(env, f.name) for f in dataclasses.fields(env) if f.init}
    return {k: v for k, v in found.items() if isinstance(v, bool | int | float | str)}


def make(name: str, **options: Any) -> Env:
    """The environment of that name; `options` are its constructor's."""
    factory = world(name).make
    factory = factory.found() if isinstance(factory, _Lazy) else factory
    if dataclasses.is_dataclass(factory):
        allowed = tuple(f.name for f in dataclasses.fields(factory) if f.init)
        for option in options:
            if option not in allowed:
                raise ValueError(f"{name} has no option {option!r}; {suggest(option, allowed)}")
    env = factory(**options)
    if env.name != name:
        raise ValueError(
            f"the world registered as {name!r} calls itself {env.name!r}: register it by that name"
        )
    return env


class EnvError(AssertionError):
    """A world breaks the protocol; the message says where and how."""


def check_env(env: Env, key: Array | None = None, ticks: int = 200) -> None:
    """The conformance test for any world: raises `EnvError` at the first broken promise.

    It looks at names, shapes and types; compares compiled with eager, batched with single, twice
    with once; plays episodes of random macros with random interruptions; and looks at pictures.
    """
    key = jax.random.key(0) if key is None else key
    _check_names(env)
    first = _check_shapes(env, key)
    _check_purity(env, key, first)
    states, macros = _check_rollout(env, key, ticks)
    for index in range(0, ticks, max(ticks // 8, 1)):
        state, macro = jax.tree.map(lambda leaf, i=index: leaf[i, 0], (states, macros))
        _check_scene(env, state, macro)


def _require(held: Any, message: str) -> None:
    if not bool(held):
        raise EnvError(message)


def _check_names(env: Env) -> None:
    """What a world says about itself."""
    members = [name for name in vars(Env) if not name.startswith("_")]
    missing = [name for name in members if not hasattr(env, name)]
    _require(not missing, f"the world lacks {', '.join(missing)}")
    _require(isinstance(env.name, str) and env.name, f"name is {env.name!r}, not a text")
    for member in ("agents", "events", "conditions", "effects"):
        names = getattr(env, member)
        texts = isinstance(names, tuple) and all(isinstance(name, str) and name for name in names)
        _require(texts, f"{member} must be a tuple of texts, got {names!r}")
        _require(len(set(names)) == len(names), f"{member} names something twice: {names!r}")
    _require(len(env.agents) > 0, "agents is empty")
    _require(env.events[:1] == ("solved",), f'events[0] must be "solved", got {env.events!r}')
    _require(
        len(env.macros) == len(env.agents),
        f"macros has {len(env.macros)} enums for {len(env.agents)} agents",
    )
    for agent, enum in zip(env.agents, env.macros, strict=True):
        good = isinstance(enum, type) and issubclass(enum, IntEnum)
        _require(good, f"macros of {agent} must be an IntEnum, got {enum!r}")
        _require(
            [int(macro) for macro in enum] == list(range(len(enum))),
            f"macros of {agent} must be numbered 0, 1, 2 … without gaps",
        )
    _require(
        isinstance(env.horizon, int) and env.horizon > 0,
        f"horizon must be a positive int, got {env.horizon!r}",
    )
    _require(
        isinstance(env.horizon_ends, bool), f"horizon_ends is {env.horizon_ends!r}, not a bool"
    )
    for method in ("observe", "available", "check"):
        inputs = list(inspect.signature(getattr(env, method)).parameters)
        _require(inputs == ["state"], f"{method} must depend on the state alone, takes {inputs}")


def _check_shapes(env: Env, key: Array) -> Any:
    """Shapes and types of everything the methods give; returns the first state."""
    agents, macros = len(env.agents), macro_count(env)
    for leaf in jax.tree.leaves(env):
        _require(
            jnp.issubdtype(jnp.result_type(leaf), jnp.number),
            f"a leaf of the world is no number: {leaf!r}",
        )
    state = env.reset(key)
    leaves = jax.tree.leaves(state)
    _require(leaves, "reset gives a state without arrays")
    for leaf in leaves:
        _require(
            isinstance(leaf, jax.Array), f"the state holds {type(leaf).__name__}, not an array"
        )
    seen = env.observe(state)
    _require(seen.ndim == 2, f"observe must give [N, O], gave shape {seen.shape}")
    _expect("observe", seen, (agents, seen.shape[1]), jnp.floating)
    _expect("available", env.available(state), (agents, macros), jnp.bool_)
    _expect("check", env.check(state), (len(env.conditions),), jnp.bool_)
    zeros = jnp.zeros(agents, jnp.int32)
    tick = jax.eval_shape(env.tick, key, state, zeros, jnp.ones(agents, bool), zeros)
    _require(isinstance(tick, Tick), f"tick gives {type(tick).__name__}, not a Tick")
    _expect("tick: reward", tick.reward, (agents,), jnp.floating)
    _expect("tick: ended", tick.ended, (agents,), jnp.bool_)
    _expect("tick: terminal", tick.terminal, (), jnp.bool_)
    _expect("tick: events", tick.events, (len(env.events),), jnp.floating)
    _expect("tick: judged", tick.judged, (agents,), jnp.integer)
    before, after = str(jax.tree.structure(state)), str(jax.tree.structure(tick.state))
    _require(before == after, f"tick changes the state's structure from {before} to {after}")
    for old, new in zip(leaves, jax.tree.leaves(tick.state), strict=True):
        _require(
            (old.shape, old.dtype) == (new.shape, new.dtype),
            f"tick turns a leaf of the state from {old.dtype}{old.shape} to {new.dtype}{new.shape}",
        )
    return state


def _expect(what: str, array: Any, shape: tuple[int, ...], kind: Any) -> None:
    good = array.shape == shape and jnp.issubdtype(array.dtype, kind)
    wanted = f"{kind.__name__}{list(shape)}"
    _require(good, f"{what} must be {wanted}, is {array.dtype}{list(array.shape)}")


def _check_purity(env: Env, key: Array, state: Any, ticks: int = 4) -> None:
    """Eager, compiled, repeated and batched calls agree."""
    compiled = jax.jit(type(env).tick)
    batched = jax.jit(jax.vmap(type(env).tick, (None, 0, 0, 0, 0, 0)))
    rows = []
    for key_tick in jax.random.split(key, ticks):
        key_macro, key_fresh, key_effect, key_world = jax.random.split(key_tick, 4)
        macro = _draw(key_macro, env.available(state))
        fresh = jax.random.bernoulli(key_fresh, 0.5, macro.shape)
        effect = jax.random.randint(key_effect, macro.shape, 0, len(env.effects) + 1)
        inputs = (key_world, state, macro, fresh, effect)
        once = compiled(env, *inputs)
        _same(once, compiled(env, *inputs), "the same key gives two different ticks")
        _same(once, env.tick(*inputs), "a compiled tick differs from an eager one")
        _same(state, inputs[1], "tick changes its input")
        rows.append((inputs, once))
        state = once.state
    stacked, singles = jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)
    _same(batched(env, *stacked), singles, "a batched tick differs from single ones")
    for method in ("observe", "available", "check"):
        call = getattr(env, method)
        many = jax.vmap(call)(stacked[1])
        each = jnp.stack([call(inputs[1]) for inputs, _ in rows])
        _same(many, each, f"batched {method} differs from single calls")
    _same(env.reset(key), env.reset(key), "the same key gives two different first states")
    _same(env.reset(key), jax.jit(env.reset)(key), "a compiled reset differs from an eager one")


def _same(one: Any, two: Any, message: str) -> None:
    """Whole numbers agree exactly, floats up to the compiler's freedom to reorder a sum."""
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        if jnp.issubdtype(a.dtype, jnp.floating):
            _require(np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True), message)
        else:
            _require(np.array_equal(a, b), message)


def _draw(key: Array, available: Array) -> Array:
    """One available macro per agent, uniformly."""
    return jax.random.categorical(key, jnp.where(available, 0.0, -jnp.inf)).astype(jnp.int32)


def _check_rollout(env: Env, key: Array, ticks: int, lanes: int = 8) -> tuple[Any, Array]:
    """Random episodes with interruptions; returns states and macros [T, W, …]."""
    own = np.zeros((len(env.agents), macro_count(env)), bool)
    for agent, enum in enumerate(env.macros):
        own[agent, : len(enum)] = True

    def play(env: Env, key: Array) -> Any:
        def step(carry: Any, key: Array) -> Any:
            state, macro, idle, time = carry
            key_macro, key_fresh, key_effect, key_world, key_reset = jax.random.split(key, 5)
            available = env.available(state)
            fresh = idle | jax.random.bernoulli(key_fresh, 0.1, idle.shape)
            macro = jnp.where(fresh, _draw(key_macro, available), macro)
            effect = jax.random.randint(key_effect, macro.shape, 0, len(env.effects) + 1)
            tick = env.tick(key_world, state, macro, fresh, effect)
            seen = env.observe(tick.state)
            facts = {
                "a macro is available that its agent does not have": ~jnp.any(available & ~own),
                "an agent has no macro available": jnp.all(jnp.any(available, 1)),
                "an observation is not finite": jnp.all(jnp.isfinite(seen)),
                "a reward is not finite": jnp.all(jnp.isfinite(tick.reward)),
                "an event count is negative or not finite": jnp.all(
                    jnp.isfinite(tick.events) & (tick.events >= 0)
                ),
                "judged is no macro of the agent": jnp.all(
                    (tick.judged >= 0) & (tick.judged < own.sum(1))
                ),
                '"solved" happened and the episode went on': (tick.events[0] == 0) | tick.terminal,
            }
            over = tick.terminal | (time + 1 >= env.horizon)
            after = jax.tree.map(
                lambda new, old: jnp.where(over, new, old), env.reset(key_reset), tick.state
            )
            carry = (after, macro, tick.ended | over, jnp.where(over, 0, time + 1))
            return carry, (facts, tick.state, macro)

        key_first, key_steps = jax.random.split(key)
        agents = len(env.agents)
        carry = (env.reset(key_first), jnp.zeros(agents, jnp.int32), jnp.ones(agents, bool), 0)
        return jax.lax.scan(step, carry, jax.random.split(key_steps, ticks))[1]

    runs = jax.jit(jax.vmap(play, (None, 0), 1))(env, jax.random.split(key, lanes))
    facts, states, macros = runs
    for message, held in facts.items():
        bad = np.argwhere(~np.asarray(held))
        _require(not len(bad), f"{message} (random play, tick {bad[0][0] if len(bad) else ''})")
    return states, macros


def _check_scene(env: Env, state: Any, macro: Array) -> None:
    """A picture that every painter can draw."""
    from mavic.envs import painting

    scene = env.scene(state, macro)
    _require(isinstance(scene, Scene), f"scene gives {type(scene).__name__}, not a Scene")
    slack = 1e-6
    for sprite in scene.sprites:
        right, below = sprite.x + sprite.width, sprite.y + sprite.height
        inside = -slack <= min(sprite.x, sprite.y) and right <= scene.width + slack
        _require(inside and below <= scene.height + slack, f"{sprite} lies outside the picture")
        _require(
            sprite.shape in painting.SHAPES, f"{sprite}: {suggest(sprite.shape, painting.SHAPES)}"
        )
        colours = tuple(painting.PALETTE)
        _require(sprite.colour in colours, f"{sprite}: {suggest(sprite.colour, colours)}")
        _require(sprite.heading in ("", *"NESW"), f"{sprite}: heading must be N, E, S, W or empty")
    _require(painting.text(scene).strip(), "the picture is empty")
