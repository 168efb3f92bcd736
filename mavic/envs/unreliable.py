"""Unreliable macros and costly interruptions, for any world whose agents can stand still.

A macro fails with a probability when it begins. In each tick an agent slips with a probability: it stands still for
that tick, and its macro begins again where the agent is. An interrupted macro needs ticks to stop, unless the agent
chooses it again; the next macro begins after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp

from mavic.ranges import Range, check_value
from mavic.types import Array, Tick, record, replace, static

OPTIONS: dict[str, tuple[Any, Any]] = {
    "fails": (0.0, Annotated[float, Range(0, 1)]),
    "slips": (0.0, Annotated[float, Range(0, 0.99)]),
    "stopping": (0, Annotated[int, Range(0, 1_000)]),
    "practised": (True, bool),
}
"""The options: their values if they are not given, and which are allowed."""
FAILED = "macro-failed"
DRAW = 7_919  # what the key of a tick is folded with, so that the world's own random numbers stay as they are


@record
class _State:
    """The state of the world, and how far each agent [N] is with its macro."""

    world: Any
    macro: Array  # the macro that has not ended yet; -1: none
    stopping: Array  # ticks until the one before it has stopped
    begun: Array  # bool: it has run for a tick
    waits: Array  # bool: it begins, or begins again, when the agent next moves


@record
class Unreliable:
    """A world with unreliable macros. It has all that the world has; what is not written here is the world's own."""

    inner: Any
    fails: Any  # the probability that a macro fails when it begins
    slips: Any  # the probability that an agent stands still in a tick
    stopping: Any  # ticks that an interrupted macro needs to stop
    practised: bool = static(default=True)
    """Whether training plays so too. Otherwise it plays the reliable world, and only tests are unreliable."""
    rest: tuple[int, ...] = static(default=())
    """The macro with which each agent stands still."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        found = getattr(self.inner, name)
        if name in ("effective_macros", "holds"):  # functions of a state that not every world has
            return lambda state: found(state.world)
        if name == "restart":  # of simulators on the host
            return lambda key, state, done: self._restarted(
                found(key, state.world, done), state, done
            )
        return found

    def in_training(self) -> Unreliable:
        """Return the world that training plays."""
        none = dict(fails=0.0, slips=0.0, stopping=0)
        return self if self.practised else replace(self, **none)

    def reset(self, key: Array) -> _State:
        """Return the first state of an episode."""
        return self._first(self.inner.reset(key))

    def tick(self, key: Array, state: _State, macro: Array, fresh: Array, effect: Array) -> Tick:
        """Run one tick, in which agents that slip, or whose last macro stops, stand still."""
        slip, fail = jax.random.uniform(jax.random.fold_in(key, DRAW), (2, len(self.rest)))
        other = (state.macro >= 0) & (state.macro != macro)
        interrupted = fresh & other & state.begun
        stopping = jnp.where(interrupted, jnp.int32(self.stopping), state.stopping)
        moves = (stopping == 0) & (slip >= self.slips)
        begun = state.begun & ~fresh
        fails = moves & ~begun & (fail < self.fails)
        runs = moves & ~fails
        after = self.inner.tick(
            key,
            state.world,
            jnp.where(runs, macro, jnp.array(self.rest, macro.dtype)),
            fresh | state.waits | ~runs,
            effect,
        )
        ended = jnp.where(runs, after.ended, fails)
        work = getattr(self.inner, "effective_macros", None)
        planned = macro
        if work is not None:
            planned = jnp.take_along_axis(work(state.world), macro[:, None], 1)[:, 0]
        events = after.events
        if FAILED in self.inner.events:
            events = events.at[self.inner.events.index(FAILED)].add(fails.sum())
        return replace(
            after,
            state=_State(
                world=after.state,
                macro=jnp.where(ended, -1, macro).astype(jnp.int32),
                stopping=jnp.maximum(stopping - 1, 0),
                begun=(begun | runs) & ~ended,
                waits=~runs,
            ),
            ended=ended,
            events=events,
            effective_macro=jnp.where(runs, after.effective_macro, planned).astype(jnp.int32),
        )

    def check(self, state: _State) -> Array:
        """Return a bool for each precondition."""
        return self.inner.check(state.world)

    def observe(self, state: _State) -> Array:
        """Return what each agent sees, [N, O]."""
        return self.inner.observe(state.world)

    def available(self, state: _State) -> Array:
        """Return which macros each agent may choose, [N, M]."""
        return self.inner.available(state.world)

    def scene(self, state: _State, macro: Any) -> Any:
        """Return a picture of the state."""
        return self.inner.scene(state.world, macro)

    def _first(self, world: Any) -> _State:
        agents = len(self.rest)
        return _State(
            world=world,
            macro=jnp.full(agents, -1, jnp.int32),
            stopping=jnp.zeros(agents, jnp.int32),
            begun=jnp.zeros(agents, bool),
            waits=jnp.zeros(agents, bool),
        )

    def _restarted(self, world: Any, state: _State, done: Array) -> _State:
        first = self._first(world)
        own = jax.tree.map(
            lambda new, old: jnp.where(done, new, old),
            replace(first, world=None),
            replace(state, world=None),
        )
        return replace(own, world=world)


def unreliable(env: Any, resting: Sequence[str], **options: Any) -> Unreliable:
    """Return a world with unreliable macros.

    Args:
        env: The world.
        resting: Names of macros with which an agent stands still; the first that an agent has is taken.
        **options: Some of `OPTIONS`.
    """
    numbers = {name: default for name, (default, _) in OPTIONS.items()}
    for name, value in options.items():
        value = bool(value) if name == "practised" else value
        check_value(value, OPTIONS[name][1], f"{env.name}: the option {name}")
        numbers[name] = value
    rest = []
    for agent, macros in zip(env.agents, env.macros, strict=True):
        found = next((name for name in resting if name in macros.__members__), None)
        if found is None:
            raise ValueError(
                f"{env.name}: {agent} has no macro with which it stands still, so its macros cannot be unreliable; "
                "name one in the world's resting_macros"
            )
        rest.append(int(macros[found]))
    return Unreliable(inner=env, rest=tuple(rest), **numbers)
