"""`python_world`: a world of a simulator in plain Python."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mavic.simulators import adapters
from mavic.simulators.adapters import SimulatorError
from mavic.simulators.controllers import Action, Controller
from mavic.simulators.description import Controllers, Description
from mavic.simulators.env import PythonEnv
from mavic.simulators.worker import raised

TIMEOUT = 60.0  # seconds


class _Factory:
    """Makes the environments of a Python world. The same options give the same description."""

    def __init__(
        self, name: str, make: Callable[..., Any], module: str, more: Mapping[str, Any]
    ) -> None:
        self.name, self.make, self.more = name, make, more
        self.__module__ = module  # policy files name it
        self.made: dict[str, Description] = {}

    def __call__(self, **options: Any) -> PythonEnv:
        return PythonEnv(description=self.describe(**options))

    def describe(self, **options: Any) -> Description:
        key = json.dumps(options, sort_keys=True, default=repr)
        if key not in self.made:
            _check_options(self.name, self.make, options)
            more = {name: _value(given, options) for name, given in self.more.items()}
            self.made[key] = _describe(self.name, self.make, options, **more)
        return self.made[key]


def python_world(
    name: str,
    make: Callable[..., Any],
    *,
    horizon: int,
    horizon_ends: bool = False,
    agents: Sequence[str] | Callable[..., Sequence[str]] | None = None,
    actions: Sequence[str] | None = None,
    macros: Mapping[str, Any] | Callable[..., Mapping[str, Any]] | None = None,
    events: Mapping[str, Callable[[Any, Any], Any]] | None = None,
    preconditions: Mapping[str, Callable[[Any], Any]] | None = None,
    predicates: Mapping[str, Callable[[Any, int, str], Any]] | None = None,
    observe: Callable[[Any, int], Any] | None = None,
    scene: Callable[[Any], Any] | None = None,
    workers: int | None = None,
    timeout: float = TIMEOUT,
    side_by_side: int | None = None,
) -> Callable[..., PythonEnv]:
    """Return what `mavic.envs.api.register` needs as `make`, for a simulator in plain Python.

    `make` and all functions must stand at the top level of a module, since worker processes import them.

    Args:
        name: The world's id.
        make: Returns a new simulator: a PettingZoo `ParallelEnv`, a Gymnasium environment whose action space has one
            `Discrete` for each agent, or any object with `reset(seed)` and `step(actions)`. Its arguments are the
            options of the world.
        horizon: The ticks after which an episode is cut.
        horizon_ends: Whether reaching the horizon is a true end (value 0 afterwards).
        agents: The agents' names, or a function from the options to them. None: those that the simulator gives them,
            else agent_0, agent_1, …
        actions: The names of the primitive actions. They are the macros, each of one tick, if no `macros` are given.
        macros: Macro name → `Controller`, for all agents alike; or agent → such a mapping; or a function from the
            options to either.
        events: Event → function of the simulator and of the info that `step` returned. It returns a count or a bool.
            "solved" is by default that the simulator terminated.
        preconditions: Facts about a state that a kind of instruction may require.
        predicates: Facts about a choice, on which `when` and `unless` of a kind depend: functions of the simulator, the
            agent's number and the macro's name.
        observe: What an agent sees, from the simulator and the agent's number. None: the simulator's observations.
        scene: A picture of the simulator as a `mavic.types.Scene`. None: its `rgb_array` if it renders one.
        workers: Processes that step simulators. 0: this process; None: one for each core.
        timeout: Seconds that a worker may take for one tick of its simulators before it counts as hung.
        side_by_side: How many simulators of one training play at once, at most.
    """
    frame = sys._getframe(1)
    return _Factory(
        name=name,
        make=make,
        module=frame.f_globals.get("__name__", ""),
        more=dict(
            horizon=horizon,
            horizon_ends=horizon_ends,
            agents=_Late(agents) if callable(agents) else agents,
            actions=actions,
            macros=_Late(macros) if callable(macros) else macros,
            events=events or {},
            preconditions=preconditions or {},
            predicates=predicates or {},
            see=observe,
            picture=scene,
            workers=_cores() if workers is None else workers,
            timeout=timeout,
            side_by_side=side_by_side,
        ),
    )


class _Late(NamedTuple):
    """A value that depends on the options of the world."""

    of: Callable[..., Any]


def _value(given: Any, options: Mapping[str, Any]) -> Any:
    return given.of(**options) if isinstance(given, _Late) else given


def _cores() -> int:
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def _check_options(name: str, make: Callable[..., Any], options: Mapping[str, Any]) -> None:
    try:
        inspect.signature(make).bind(**options)
    except TypeError as error:
        raise SimulatorError(f"{name} does not take the options {dict(options)}: {error}") from None
    except ValueError:  # no signature: a builtin
        return


def _describe(
    name: str,
    make: Callable[..., Any],
    options: Mapping[str, Any],
    *,
    horizon: int,
    agents: Sequence[str] | None,
    actions: Sequence[str] | None,
    macros: Mapping[str, Any] | None,
    events: Mapping[str, Any],
    preconditions: Mapping[str, Any],
    predicates: Mapping[str, Any],
    **more: Any,
) -> Description:
    """Return a description with the sizes of a simulator that is made here, looked at and closed."""
    if not isinstance(horizon, int) or horizon < 1:
        raise SimulatorError(f"{name}: horizon must be a positive whole number, not {horizon!r}")
    try:
        raw = make(**options)
    except SimulatorError:
        raise
    except Exception as error:
        raise SimulatorError(f"{name}: the simulator cannot be made: {raised(error)}") from error
    simulator = adapters.adapt(name, raw, tuple(agents) if agents else None)
    try:
        found = simulator.agents
        counts = simulator.action_counts(len(actions) if actions else None)
        draft = Description(
            name=name,
            make=make,
            options=dict(options),
            horizon=horizon,
            agents=found,
            actions=counts,
            controllers=_controllers(name, found, counts, macros, actions),
            event_functions=dict(events),
            precondition_functions=dict(preconditions),
            predicate_functions=dict(predicates),
            observation=0,
            **more,
        )
        try:
            simulator.reset(0)
            seen = adapters.observations(simulator, draft.see)
        except SimulatorError:
            raise
        except Exception as error:
            raise SimulatorError(f"{name}: the first reset failed: {raised(error)}") from error
        return dataclasses.replace(draft, observation=max(len(one) for one in seen))
    finally:
        simulator.close()


def _controllers(
    name: str,
    agents: tuple[str, ...],
    counts: tuple[int, ...],
    macros: Mapping[str, Any] | None,
    actions: Sequence[str] | None,
) -> tuple[Controllers, ...]:
    """Return the controllers of each agent."""
    if macros is None:
        names = [tuple(actions or [f"ACTION_{i}" for i in range(n)]) for n in counts]
        for agent, own, count in zip(agents, names, counts, strict=True):
            if len(own) != count:
                raise SimulatorError(
                    f"{name}: {agent} has {count} actions, but {len(own)} names are given"
                )
        return tuple({word: Action(number) for number, word in enumerate(own)} for own in names)
    by_agent = all(isinstance(value, Mapping) for value in macros.values())
    if by_agent and set(macros) != set(agents):
        raise SimulatorError(
            f"{name}: macros are given for {sorted(macros)}, but the agents are {list(agents)}"
        )
    made = tuple(dict(macros[agent] if by_agent else macros) for agent in agents)
    for agent, chosen in zip(agents, made, strict=True):
        for macro, controller in chosen.items():
            if not isinstance(controller, Controller):
                raise SimulatorError(
                    f"{name}: the macro {macro} of {agent} is {type(controller).__name__}, not a Controller"
                )
        if not chosen:
            raise SimulatorError(f"{name}: {agent} has no macros")
    return made
