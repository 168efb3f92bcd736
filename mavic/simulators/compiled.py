"""The macro layer for JAX environments: primitive environment + controllers = macro world, all in one program.

The words are those of `mavic.simulators.controllers`. Functions are pure. A controller's memory is an int32 vector
[MEMORY] whose meaning is its own. `state` is the primitive environment's state, `agent` a Python number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from mavic.simulators import grids
from mavic.simulators.controllers import Status, macro_enum
from mavic.types import Array, ArrayLike, Scene, Tick, record, static

Predicate = Callable[[Any, int, str], Array]
MEMORY = 8  # whole numbers that a controller may keep between ticks
FAILED = "macro-failed"


@record
class Step:
    """The result of one primitive step."""

    state: Any
    reward: Array  # [N]
    terminal: Array  # [] bool: the task is over
    events: Array  # [V] float: how often each event happened
    truncated: Array | None = None  # [] bool: the episode is cut before the horizon


class PrimitiveEnv(Protocol):
    """A JAX environment whose agents take primitive actions. Its words are those of `mavic.envs.api.Env`."""

    @property
    def name(self) -> str:
        """The world's id."""

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents' names."""

    @property
    def horizon(self) -> int:
        """The ticks after which an episode is cut."""

    @property
    def events(self) -> tuple[str, ...]:
        """Names of events. The first is "solved"."""

    def reset(self, key: Array) -> Any:
        """Return the first state of an episode."""

    def step(self, key: Array, state: Any, action: Array) -> Step:
        """Run one step with the actions [N]."""

    def observe(self, state: Any) -> Array:
        """Return what each agent sees, [N, O]."""

    def scene(self, state: Any, macro: ArrayLike) -> Scene:
        """Return a picture of a state."""


class Controller:
    """A macro of one agent. Override `act` and `status`, and the others where the defaults do not fit."""

    def can_start(self, state: Any, agent: int) -> Array:
        """Return bool []: whether the agent may choose the macro now."""
        del state, agent
        return jnp.bool_(True)

    def begin(self, state: Any, agent: int) -> Array:
        """Return the memory [MEMORY] at the start of the macro."""
        del state, agent
        return jnp.zeros(MEMORY, jnp.int32)

    def act(self, state: Any, agent: int, memory: Array) -> tuple[Array, Array]:
        """Return the next primitive action and the memory after it."""
        raise NotImplementedError

    def status(self, state: Any, agent: int, memory: Array) -> Array:
        """Return how the macro stands after the step, as a `Status`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Action(Controller):
    """One primitive action."""

    action: int

    def act(self, state: Any, agent: int, memory: Array) -> tuple[Array, Array]:
        """Take the action."""
        return jnp.int32(self.action), memory.at[0].set(1)

    def status(self, state: Any, agent: int, memory: Array) -> Array:
        """Return that it ended as soon as it is taken."""
        return memory[0] * Status.ENDED


@dataclass(frozen=True)
class Wait(Controller):
    """The same primitive action for a number of ticks, such as standing still."""

    action: int
    ticks: int = 1

    def begin(self, state: Any, agent: int) -> Array:
        """Return the ticks left."""
        return jnp.zeros(MEMORY, jnp.int32).at[0].set(self.ticks)

    def act(self, state: Any, agent: int, memory: Array) -> tuple[Array, Array]:
        """Take the action."""
        return jnp.int32(self.action), memory.at[0].add(-1)

    def status(self, state: Any, agent: int, memory: Array) -> Array:
        """Return that it ended when no tick is left."""
        return jnp.where(memory[0] > 0, Status.RUNNING, Status.ENDED)


class Sequence(Controller):
    """One controller after another. It fails if one of them fails or cannot start.

    The last number of the memory says which part runs; a part may use the others.
    """

    def __init__(self, *parts: Controller) -> None:
        """Make the sequence of some parts, none of which is a sequence itself."""
        self.parts = parts
        inner = [part.controller if isinstance(part, Timeout) else part for part in parts]
        if any(isinstance(part, Sequence) for part in inner):
            raise ValueError(
                "a Sequence has no place for the memory of another; name all parts in one"
            )

    def __eq__(self, other: object) -> bool:
        """Return whether all parts are equal, so that equal worlds share their programs."""
        return isinstance(other, Sequence) and self.parts == other.parts

    def __hash__(self) -> int:
        """Return the hash of the parts."""
        return hash(self.parts)

    def can_start(self, state: Any, agent: int) -> Array:
        """Return whether the first part can start."""
        return self.parts[0].can_start(state, agent)

    def begin(self, state: Any, agent: int) -> Array:
        """Return the memory of the first part."""
        return self.parts[0].begin(state, agent).at[-1].set(0)

    def act(self, state: Any, agent: int, memory: Array) -> tuple[Array, Array]:
        """Take the next action of the first part that has not ended."""
        for number, part in enumerate(self.parts[:-1]):
            over = (memory[-1] == number) & (part.status(state, agent, memory) == Status.ENDED)
            following = self.parts[number + 1].begin(state, agent).at[-1].set(number + 1)
            memory = jnp.where(over, following, memory)
        action, after = jnp.int32(0), memory
        for number, part in enumerate(self.parts):
            own, left = part.act(state, agent, memory)
            mine = memory[-1] == number
            action = jnp.where(mine, own, action)
            after = jnp.where(mine, left.at[-1].set(number), after)
        return action, after

    def status(self, state: Any, agent: int, memory: Array) -> Array:
        """Return the status of the present part, or RUNNING if others follow it."""
        found = jnp.int32(Status.RUNNING)
        for number, part in enumerate(self.parts):
            own = part.status(state, agent, memory)
            if number + 1 < len(self.parts):
                follows = self.parts[number + 1].can_start(state, agent)
                next_one = jnp.where(follows, Status.RUNNING, Status.FAILED)
                own = jnp.where(own == Status.ENDED, next_one, own)
            found = jnp.where(memory[-1] == number, own, found)
        return found


@dataclass(frozen=True)
class Timeout(Controller):
    """A controller that fails if it takes longer than some ticks. The last but one number of the memory counts them."""

    controller: Controller
    ticks: int

    def can_start(self, state: Any, agent: int) -> Array:
        """Return whether the controller can start."""
        return self.controller.can_start(state, agent)

    def begin(self, state: Any, agent: int) -> Array:
        """Return the controller's memory and the ticks left."""
        return self.controller.begin(state, agent).at[-2].set(self.ticks)

    def act(self, state: Any, agent: int, memory: Array) -> tuple[Array, Array]:
        """Take the controller's next action."""
        action, after = self.controller.act(state, agent, memory)
        return action, after.at[-2].set(memory[-2] - 1)

    def status(self, state: Any, agent: int, memory: Array) -> Array:
        """Return the controller's status, or FAILED when time is up."""
        found = self.controller.status(state, agent, memory)
        late = (found == Status.RUNNING) & (memory[-2] <= 0)
        return jnp.where(late, Status.FAILED, found)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """How a grid is read, and which actions move an agent on it. Cells are [row, column]."""

    position: Callable[[Any, int], Array]
    """Where an agent is, int [2]."""
    free: Callable[[Any, int], Array]
    """bool [H, W]: the cells that an agent may enter, whoever stands there."""
    taken: Callable[[Any, int], Array]
    """bool [H, W]: the cells where other agents are."""
    stay: int
    moves: tuple[int, int, int, int] | None = None
    """The actions that move north, east, south and west. None: agents turn and go forward."""
    heading: Callable[[Any, int], Array] | None = None
    """Where an agent looks: 0 north, 1 east, 2 south, 3 west."""
    forward: int = 0
    left: int = 0
    right: int = 0

    def action(self, state: Any, agent: int, way: Array) -> Array:
        """Return the action that goes in a direction, or turns towards it; a negative one: stand still."""
        if self.moves is not None:
            towards = jnp.array(self.moves)[way]
        else:
            assert self.heading is not None
            turns = (way - self.heading(state, agent)) % 4
            towards = jnp.array([self.forward, self.right, self.right, self.left])[turns]
        return jnp.where(way < 0, self.stay, towards).astype(jnp.int32)


@dataclass(frozen=True)
class GoTo(Controller):
    """Go to a place by a shortest path. The agent goes around others, and waits where there is no way around."""

    grid: Grid
    target: Callable[[Any, int], Array]
    """Where to go, int [2], asked once when the macro begins. A negative number: it cannot start."""

    def can_start(self, state: Any, agent: int) -> Array:
        """Return whether there is a place to go to."""
        return (self.target(state, agent) >= 0).all()

    def begin(self, state: Any, agent: int) -> Array:
        """Return the place."""
        return jnp.zeros(MEMORY, jnp.int32).at[:2].set(self.target(state, agent))

    def act(self, state: Any, agent: int, memory: Array) -> tuple[Array, Array]:
        """Take the next step of the path."""
        grid, position = self.grid, self.grid.position(state, agent)
        heading = jnp.int32(-1) if grid.heading is None else grid.heading(state, agent)
        free, taken = grid.free(state, agent), grid.taken(state, agent)
        way = grids.compiled_next_direction(free, taken, position, memory[:2], heading)
        there = (position == memory[:2]).all()
        way = jnp.where(there, grids.WAIT, way)
        return grid.action(state, agent, way), memory.at[2].set(way == grids.LOST)

    def status(self, state: Any, agent: int, memory: Array) -> Array:
        """Return that it ended at the place, and that it failed if no path led there."""
        there = (self.grid.position(state, agent) == memory[:2]).all()
        on_the_way = jnp.where(there, Status.ENDED, Status.RUNNING)
        return jnp.where(memory[2] > 0, Status.FAILED, on_the_way)


@record
class MacroState:
    """The state of a macro world."""

    world: Any
    memory: Array  # [N, MEMORY] of the running macros


@record
class MacroEnv:
    """A macro world of a primitive environment and controllers. It keeps the protocol of `mavic.envs.api.Env`."""

    world: Any
    """The primitive environment: a `PrimitiveEnv`."""
    controllers: tuple[tuple[tuple[str, Controller], ...], ...] = static()
    """For each agent, its macros in order: name and controller. `macro_env` makes this of mappings."""
    predicate_functions: tuple[tuple[str, Predicate], ...] = static(default=())
    horizon_ends: bool = static(default=False)

    @property
    def name(self) -> str:
        """The world's id."""
        return self.world.name

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents' names."""
        return self.world.agents

    @property
    def macros(self) -> tuple[type[IntEnum], ...]:
        """One enum of macros per agent."""
        return tuple(macro_enum(tuple(name for name, _ in own)) for own in self.controllers)

    @property
    def horizon(self) -> int:
        """The ticks after which an episode is cut."""
        return self.world.horizon

    @property
    def events(self) -> tuple[str, ...]:
        """The primitive environment's events, and how many macros failed."""
        return (*self.world.events, FAILED)

    @property
    def preconditions(self) -> tuple[str, ...]:
        """The primitive environment's preconditions, if it has any."""
        return getattr(self.world, "preconditions", ())

    @property
    def predicates(self) -> tuple[str, ...]:
        """The names of what may hold of a choice."""
        return tuple(name for name, _ in self.predicate_functions)

    @property
    def effects(self) -> tuple[str, ...]:
        """None: an instruction changes nothing in the primitive environment."""
        return ()

    def reset(self, key: Array) -> MacroState:
        """Return the first state of an episode."""
        memory = jnp.zeros((len(self.agents), MEMORY), jnp.int32)
        return MacroState(world=self.world.reset(key), memory=memory)

    def tick(
        self, key: Array, state: MacroState, macro: Array, fresh: Array, effect: Array
    ) -> Tick:
        """Run one primitive step, with the actions that the running macros choose."""
        del effect
        chosen = [
            self._act(state, agent, macro[agent], fresh[agent]) for agent in range(len(self.agents))
        ]
        actions, memories = (jnp.stack(part) for part in zip(*chosen, strict=True))
        step = self.world.step(key, state.world, actions)

        def status_of(agent: int) -> Array:
            def status(controller: Controller) -> Array:
                return controller.status(step.state, agent, memories[agent])

            return _of_macro(self.controllers[agent], macro[agent], status)

        status = jnp.stack([status_of(agent) for agent in range(len(self.agents))])
        failed = (status == Status.FAILED).sum().astype(jnp.float32)
        return Tick(
            state=MacroState(world=step.state, memory=memories),
            reward=step.reward,
            ended=status != Status.RUNNING,
            terminal=step.terminal,
            events=jnp.concatenate([step.events, failed[None]]),
            effective_macro=macro.astype(jnp.int32),
            truncated=step.truncated,
        )

    def check(self, state: MacroState) -> Array:
        """Return a bool for each precondition."""
        own = getattr(self.world, "check", None)
        return jnp.zeros(0, bool) if own is None else own(state.world)

    def holds(self, state: MacroState) -> Array:
        """Return which predicates hold of each choice, [N, M, Q]."""
        most = max(len(own) for own in self.controllers)
        held = jnp.zeros((len(self.agents), most, len(self.predicates)), bool)
        for agent, own in enumerate(self.controllers):
            for number, (macro, _) in enumerate(own):
                of_choice = [
                    function(state.world, agent, macro) for _, function in self.predicate_functions
                ]
                held = held.at[agent, number].set(jnp.stack(of_choice))
        return held

    def observe(self, state: MacroState) -> Array:
        """Return what each agent sees, [N, O]."""
        return self.world.observe(state.world)

    def available(self, state: MacroState) -> Array:
        """Return which macros can start, [N, M]."""
        most = max(len(own) for own in self.controllers)
        rows = [
            jnp.stack(
                [controller.can_start(state.world, agent) for _, controller in own]
                + [jnp.bool_(False)] * (most - len(own))
            )
            for agent, own in enumerate(self.controllers)
        ]
        return jnp.stack(rows)

    def scene(self, state: MacroState, macro: ArrayLike) -> Scene:
        """Return a picture of the state."""
        return self.world.scene(state.world, macro)

    def _act(
        self, state: MacroState, agent: int, macro: Array, fresh: Array
    ) -> tuple[Array, Array]:
        """Return an agent's next primitive action and its memory."""

        def act(controller: Controller) -> tuple[Array, Array]:
            begun = controller.begin(state.world, agent)
            memory = jnp.where(fresh, begun, state.memory[agent])
            return controller.act(state.world, agent, memory)

        return _of_macro(self.controllers[agent], macro, act)


def macro_env(
    world: Any,
    macros: Any,
    *,
    predicates: Mapping[str, Predicate] | None = None,
    horizon_ends: bool = False,
) -> MacroEnv:
    """Return the macro world of a primitive JAX environment.

    Args:
        world: The primitive environment, as `PrimitiveEnv` says. It is a pytree.
        macros: Macro name → `Controller`, for all agents alike; or agent → such a mapping.
        predicates: Facts about a choice, on which `when` and `unless` of a kind depend: functions of the primitive
            state, the agent's number and the macro's name. They return bool [].
        horizon_ends: Whether reaching the horizon is a true end.
    """
    by_agent = all(not isinstance(value, Controller) for value in macros.values())
    chosen = [macros[agent] if by_agent else macros for agent in world.agents]
    controllers = tuple(tuple(own.items()) for own in chosen)
    return MacroEnv(
        world=world,
        controllers=controllers,
        predicate_functions=tuple((predicates or {}).items()),
        horizon_ends=horizon_ends,
    )


def _of_macro(own: Any, macro: Array, function: Callable[[Controller], Any]) -> Any:
    """Return what a function of the running macro's controller returns. All are computed, and one is selected."""
    found = [function(controller) for _, controller in own]

    def pick(*leaves: Array) -> Array:
        return jnp.stack(leaves)[jnp.clip(macro, 0, len(leaves) - 1)]

    return jax.tree.map(pick, *found)
