"""The conformance test for environments: `check_env` raises at the first broken promise of the `Env` protocol."""

from __future__ import annotations

import inspect
from enum import IntEnum
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mavic.envs import api, painting
from mavic.envs.api import Env, macro_count
from mavic.hints import suggest
from mavic.types import Array, ArrayLike, Scene, Tick

NAME_TUPLES = ("agents", "events", "preconditions", "effects")
STATE_METHODS = ("observe", "available", "check")


class EnvError(AssertionError):
    """An environment breaks the protocol. The message says where and how."""


def check_env(env: Any, key: Array | None = None, ticks: int = 200) -> None:
    """Raise `EnvError` at the first broken promise of an environment.

    It checks names, shapes and types. It compares compiled calls with eager ones, batched calls with single ones, and
    repeated calls with each other. It plays episodes of random macros with random interruptions, and it checks
    pictures of their states.

    Args:
        env: The environment.
        key: A random key; None: one that is always the same.
        ticks: How many ticks are played.
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


def _check_names(env: Any) -> None:
    """Check the properties: names, macros and the horizon."""
    members = [name for name in vars(Env) if not name.startswith("_")]
    missing = [name for name in members if not hasattr(env, name)]
    _require(not missing, f"the environment lacks {', '.join(missing)}")
    _require(isinstance(env.name, str) and env.name, f"name is {env.name!r}, not a text")
    for member in NAME_TUPLES:
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
    for method in STATE_METHODS:
        inputs = list(inspect.signature(getattr(env, method)).parameters)
        _require(
            len(inputs) == 1,
            f"{method} must depend on the state alone, takes {inputs or 'nothing'}",
        )


def _check_shapes(env: Env, key: Array) -> Any:
    """Check the shapes and types of everything the methods return. Return the first state."""
    agents, macros = len(env.agents), macro_count(env)
    for leaf in jax.tree.leaves(env):
        _require(
            jnp.issubdtype(jnp.result_type(leaf), jnp.number),
            f"a leaf of the environment is not a number: {leaf!r}",
        )
    state = env.reset(key)
    leaves = jax.tree.leaves(state)
    _require(leaves, "reset returns a state without arrays")
    for leaf in leaves:
        _require(
            isinstance(leaf, jax.Array), f"the state holds {type(leaf).__name__}, not an array"
        )
    seen = env.observe(state)
    _require(seen.ndim == 2, f"observe must return [N, O], returned shape {seen.shape}")
    _expect("observe", seen, (agents, seen.shape[1]), jnp.floating)
    _expect("available", env.available(state), (agents, macros), jnp.bool_)
    counted_as = api.effective_macros(env, state)
    _expect("effective_macros", counted_as, (agents, macros), jnp.integer)
    _require(((counted_as >= 0) & (counted_as < macros)).all(), "effective_macros names no macro")
    if names := api.predicates_of(env):
        _require(hasattr(env, "holds"), "the environment has predicates but no method holds")
        held = env.holds(state)  # type: ignore[attr-defined]
        _expect("holds", held, (agents, macros, len(names)), jnp.bool_)
    _expect("check", env.check(state), (len(env.preconditions),), jnp.bool_)
    zeros = jnp.zeros(agents, jnp.int32)
    tick = jax.eval_shape(env.tick, key, state, zeros, jnp.ones(agents, bool), zeros)
    _require(isinstance(tick, Tick), f"tick returns {type(tick).__name__}, not a Tick")
    _expect("tick: reward", tick.reward, (agents,), jnp.floating)
    _expect("tick: ended", tick.ended, (agents,), jnp.bool_)
    _expect("tick: terminal", tick.terminal, (), jnp.bool_)
    _expect("tick: events", tick.events, (len(env.events),), jnp.floating)
    _expect("tick: effective_macro", tick.effective_macro, (agents,), jnp.integer)
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
    """Check that eager, compiled, repeated and batched calls agree."""
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
    for method in STATE_METHODS:
        call = getattr(env, method)
        many = jax.vmap(call)(stacked[1])
        each = jnp.stack([call(inputs[1]) for inputs, _ in rows])
        _same(many, each, f"batched {method} differs from single calls")
    _same(env.reset(key), env.reset(key), "the same key gives two different first states")
    _same(env.reset(key), jax.jit(env.reset)(key), "a compiled reset differs from an eager one")


def _same(one: Any, two: Any, message: str) -> None:
    """Require equal leaves. Floats may differ in the last digits, because a compiler may reorder a sum."""
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        if jnp.issubdtype(a.dtype, jnp.floating):
            _require(np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True), message)
        else:
            _require(np.array_equal(a, b), message)


def _draw(key: Array, available: Array) -> Array:
    """Return one available macro per agent, drawn uniformly."""
    return jax.random.categorical(key, jnp.where(available, 0.0, -jnp.inf)).astype(jnp.int32)


def _check_rollout(env: Env, key: Array, ticks: int, num_envs: int = 8) -> tuple[Any, Array]:
    """Play random episodes with interruptions. Return states and macros [T, num_envs, …]."""
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
                "effective_macro is not a macro of the agent": jnp.all(
                    (tick.effective_macro >= 0) & (tick.effective_macro < own.sum(1))
                ),
                '"solved" happened but the episode went on': (tick.events[0] == 0) | tick.terminal,
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

    runs = jax.jit(jax.vmap(play, (None, 0), 1))(env, jax.random.split(key, num_envs))
    facts, states, macros = runs
    for message, held in facts.items():
        bad = np.argwhere(~np.asarray(held))
        _require(not len(bad), f"{message} (random play, tick {bad[0][0] if len(bad) else ''})")
    return states, macros


def _check_scene(env: Env, state: Any, macro: ArrayLike) -> None:
    """Check that `painting` can draw the picture of a state."""
    scene = env.scene(state, macro)
    _require(isinstance(scene, Scene), f"scene returns {type(scene).__name__}, not a Scene")
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
