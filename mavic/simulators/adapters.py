"""Three sorts of environment behind one interface: PettingZoo's `ParallelEnv`, Gymnasium with several agents' actions,
and plain objects with `reset` and `step`.

What a simulator returns is checked in every tick. A `SimulatorError` names the world, the agent and the tick.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

MASK = "action_mask"


class SimulatorError(ValueError):
    """A simulator breaks its promises, and would do so again: wrong shapes, missing agents, unknown spaces."""


class SimulatorFailure(RuntimeError):
    """A simulator failed in one episode: it raised an error, hung, or returned a number that is not finite."""


class Stepped(NamedTuple):
    """What one primitive step returned."""

    rewards: list[float]  # [N]
    terminated: bool
    truncated: bool
    info: Any


class Adapter:
    """A simulator with agents in a fixed order. Subclasses know what the simulator takes and returns."""

    def __init__(self, name: str, raw: Any, agents: tuple[str, ...]) -> None:
        """Wrap a simulator.

        Args:
            name: The world's id, for messages.
            raw: The simulator.
            agents: The agents' names.
        """
        self.name, self.raw, self.agents = name, raw, agents
        self.inner = getattr(raw, "unwrapped", raw)
        self.time = 0
        self.looks = True  # False: the world has its own `observe`, and what the simulator returns is not read
        self.seen: list[np.ndarray] = []
        self.masks: list[np.ndarray | None] = [None] * len(agents)

    def action_counts(self, given: int | None) -> tuple[int, ...]:
        """Return how many actions each agent has. `given` is how many names the user gave."""
        raise NotImplementedError

    def reset(self, seed: int) -> None:
        """Begin an episode."""
        self.time = 0
        self.masks = [None] * len(self.agents)
        self._take(*self._reset(seed))

    def step(self, actions: Sequence[int]) -> Stepped:
        """Run one primitive step."""
        self.time += 1
        seen, rewards, terminated, truncated, info = self._step(actions)
        self._take(seen, info)
        return Stepped(self._rewards(rewards), terminated, truncated, info)

    def close(self) -> None:
        """Close the simulator, if it can be closed."""
        close = getattr(self.raw, "close", None)
        if callable(close):
            close()

    def error(self, agent: int | None, what: str) -> SimulatorError:
        """Return the error that names world, agent and tick."""
        who = "" if agent is None else f", {self.agents[agent]}"
        return SimulatorError(f"{self.name}{who}, tick {self.time}: {what}")

    def _reset(self, seed: int) -> tuple[Any, Any]:
        raise NotImplementedError

    def _step(self, actions: Sequence[int]) -> tuple[Any, Any, bool, bool, Any]:
        raise NotImplementedError

    def _take(self, seen: Any, info: Any) -> None:
        """Keep the observations and action masks of all agents."""
        raise NotImplementedError

    def _rewards(self, rewards: Any) -> list[float]:
        """Return the rewards [N] of a number, a sequence or a dict."""
        if isinstance(rewards, Mapping):
            for agent, name in enumerate(self.agents):
                if name not in rewards:
                    raise self.error(agent, "the simulator returned no reward of this agent")
            values = [rewards[name] for name in self.agents]
        elif isinstance(rewards, float | int) or np.ndim(rewards) == 0:
            values = [rewards] * len(self.agents)
        else:
            values = list(rewards)
        if len(values) != len(self.agents):
            raise self.error(None, f"{len(values)} rewards for {len(self.agents)} agents")
        try:
            return [float(value) for value in values]
        except (TypeError, ValueError):
            raise self.error(None, f"the rewards {rewards!r} are not numbers") from None

    def _vector(self, agent: int, value: Any) -> np.ndarray:
        """Return an observation as a vector of floats."""
        try:
            vector = np.asarray(value, np.float32).ravel()
        except (TypeError, ValueError):
            raise self.error(
                agent, f"the observation is {type(value).__name__}, not an array of numbers"
            ) from None
        if self.seen and agent < len(self.seen) and len(vector) != len(self.seen[agent]):
            before = len(self.seen[agent])
            raise self.error(agent, f"the observation has {len(vector)} numbers, before {before}")
        return vector


class _Spaces(Adapter):
    """What both libraries share: observations and actions are described by spaces of Gymnasium."""

    observation_spaces: list[Any]
    action_spaces: list[Any]

    def action_counts(self, given: int | None) -> tuple[int, ...]:
        from gymnasium import spaces

        for agent, space in enumerate(self.action_spaces):
            if not isinstance(space, spaces.Discrete):
                raise self.error(agent, f"the action space {space} is not Discrete")
        return tuple(int(space.n) for space in self.action_spaces)

    def _action(self, agent: int, action: int) -> int:
        return int(action) + int(self.action_spaces[agent].start)

    def _flat(self, agent: int, seen: Any, info: Any) -> np.ndarray:
        """Return an agent's observation as a vector, and keep its action mask."""
        from gymnasium import spaces

        space = self.observation_spaces[agent]
        mask = info.get(MASK) if isinstance(info, Mapping) else None
        if isinstance(space, spaces.Dict):
            if isinstance(seen, Mapping) and MASK in seen:
                mask = seen[MASK]
            kept = {key: one for key, one in space.items() if key != MASK}
            space, seen = spaces.Dict(kept), {key: seen[key] for key in kept}
        if mask is not None:
            self.masks[agent] = np.asarray(mask, bool)
        if not isinstance(space, spaces.Box):
            try:
                seen = spaces.flatten(space, seen)
            except (KeyError, TypeError, ValueError, IndexError, NotImplementedError) as error:
                raise self.error(
                    agent, f"the observation does not fit its space {space}: {error}"
                ) from None
        elif np.shape(seen) != space.shape:
            raise self.error(
                agent, f"the observation has shape {np.shape(seen)}, its space {space.shape}"
            )
        return self._vector(agent, seen)


class _PettingZoo(_Spaces):
    """A `ParallelEnv`. The episode ends when no agent is left. Agents that left see zeros and earn nothing."""

    def __init__(self, name: str, raw: Any, agents: tuple[str, ...] | None) -> None:
        self.keys = tuple(raw.possible_agents)
        super().__init__(name, raw, agents or tuple(str(key) for key in self.keys))
        if len(self.agents) != len(self.keys):
            raise self.error(
                None, f"{len(self.agents)} names of agents are given for {list(self.keys)}"
            )
        self.observation_spaces = [raw.observation_space(key) for key in self.keys]
        self.action_spaces = [raw.action_space(key) for key in self.keys]
        self.left: set[Any] = set()

    def _reset(self, seed: int) -> tuple[Any, Any]:
        self.left = set()
        return self.raw.reset(seed=seed)

    def _step(self, actions: Sequence[int]) -> tuple[Any, Any, bool, bool, Any]:
        chosen = {
            key: self._action(agent, actions[agent])
            for agent, key in enumerate(self.keys)
            if key not in self.left
        }
        seen, rewards, terminated, truncated, info = self.raw.step(chosen)
        ended = {key for key in self.keys if terminated.get(key, False)}
        cut = {key for key in self.keys if truncated.get(key, False)}
        over = self.left | ended | cut >= set(self.keys)
        earned = dict.fromkeys(self.left, 0.0) | dict(rewards)  # who left earns nothing
        self.left |= ended | cut
        named = {self.agents[self.keys.index(key)]: value for key, value in earned.items()}
        return seen, named, over and not cut, over and bool(cut), info

    def _take(self, seen: Any, info: Any) -> None:
        found = []
        for agent, key in enumerate(self.keys):
            if key in seen:
                found.append(self._flat(agent, seen[key], info.get(key)))
            elif key in self.left and self.seen:
                found.append(np.zeros_like(self.seen[agent]))
            else:
                raise self.error(agent, "the simulator returned no observation of this agent")
        self.seen = found


class _Gymnasium(_Spaces):
    """A Gymnasium environment whose spaces are a tuple (or one array) with a part for each agent."""

    def __init__(self, name: str, raw: Any, agents: tuple[str, ...] | None) -> None:
        from gymnasium import spaces

        actions, seen = raw.action_space, raw.observation_space
        if isinstance(actions, spaces.MultiDiscrete) and actions.nvec.ndim == 1:
            self.action_spaces = [spaces.Discrete(int(n)) for n in actions.nvec]
        elif isinstance(actions, spaces.Tuple):
            self.action_spaces = list(actions.spaces)
        else:
            raise SimulatorError(
                f"{name}: the action space {actions} is not a Tuple of Discrete spaces with one for each agent"
            )
        count = len(self.action_spaces)
        super().__init__(name, raw, agents or tuple(f"agent_{i}" for i in range(count)))
        if isinstance(seen, spaces.Tuple):
            self.observation_spaces = list(seen.spaces)
        elif isinstance(seen, spaces.Box) and seen.shape[:1] == (count,):
            kind: Any = seen.dtype  # Gymnasium's types differ between versions
            self.observation_spaces = [
                spaces.Box(seen.low[i], seen.high[i], dtype=kind.type) for i in range(count)
            ]
        else:
            raise self.error(
                None, f"the observation space {seen} has no part for each of {count} agents"
            )
        if len(self.agents) != count or len(self.observation_spaces) != count:
            raise self.error(
                None,
                f"{len(self.agents)} agents, {count} action spaces and {len(self.observation_spaces)} observation "
                "spaces do not go together",
            )

    def _reset(self, seed: int) -> tuple[Any, Any]:
        return self.raw.reset(seed=seed)

    def _step(self, actions: Sequence[int]) -> tuple[Any, Any, bool, bool, Any]:
        chosen = tuple(self._action(agent, action) for agent, action in enumerate(actions))
        seen, rewards, terminated, truncated, info = self.raw.step(chosen)
        return seen, rewards, bool(np.all(terminated)), bool(np.any(truncated)), info

    def _take(self, seen: Any, info: Any) -> None:
        if len(seen) != len(self.agents):
            raise self.error(None, f"{len(seen)} observations for {len(self.agents)} agents")
        if self.looks:
            self.seen = [self._flat(agent, one, None) for agent, one in enumerate(seen)]
        masks = info.get(MASK) if isinstance(info, Mapping) else None
        if masks is not None:
            self.masks = [np.asarray(mask, bool) for mask in masks]


class _Plain(Adapter):
    """An object with `reset(seed)` and `step(actions)`. Observations and rewards are by agent's name, or in order.

    `step` returns observations, rewards, terminated and truncated, and may return an info after them. `reset` returns
    observations. Actions come as a list in the agents' order. An attribute `action_mask`, [N, actions], is optional.
    """

    def __init__(self, name: str, raw: Any, agents: tuple[str, ...] | None) -> None:
        for method in ("reset", "step"):
            if not callable(getattr(raw, method, None)):
                raise SimulatorError(f"{name}: {type(raw).__name__} has no method {method}")
        found = agents or tuple(str(agent) for agent in getattr(raw, "agents", ()))
        if not found:
            raise SimulatorError(f"{name}: {type(raw).__name__} names no agents; give agents=[…]")
        super().__init__(name, raw, found)

    def action_counts(self, given: int | None) -> tuple[int, ...]:
        if given is None:
            given = getattr(self.raw, "actions", None)
        if not isinstance(given, int) or given < 1:
            raise SimulatorError(
                f"{self.name}: {type(self.raw).__name__} does not say how many actions an agent has; give actions=[…]"
            )
        return (given,) * len(self.agents)

    def _reset(self, seed: int) -> tuple[Any, Any]:
        return self.raw.reset(seed), None

    def _step(self, actions: Sequence[int]) -> tuple[Any, Any, bool, bool, Any]:
        found = self.raw.step([int(action) for action in actions])
        if not isinstance(found, tuple) or len(found) not in (4, 5):
            raise self.error(
                None,
                "step must return observations, rewards, terminated, truncated and perhaps info",
            )
        for name, flag in zip(("terminated", "truncated"), found[2:4], strict=True):
            if np.ndim(flag) or not isinstance(flag, bool | int | np.bool_ | np.ndarray):
                raise self.error(None, f"{name} must be true or false for all agents, not {flag!r}")
        info = found[4] if len(found) > 4 else None
        return found[0], found[1], bool(found[2]), bool(found[3]), info

    def _take(self, seen: Any, info: Any) -> None:
        if isinstance(seen, Mapping):
            for agent, name in enumerate(self.agents):
                if name not in seen:
                    raise self.error(agent, "the simulator returned no observation of this agent")
            seen = [seen[name] for name in self.agents]
        try:
            count = len(seen)
        except TypeError:
            count = 0
        if count != len(self.agents):
            raise self.error(None, f"{count} observations for {len(self.agents)} agents")
        if self.looks:
            self.seen = [self._vector(agent, one) for agent, one in enumerate(seen)]
        masks = getattr(self.raw, MASK, None)
        if masks is not None:
            self.masks = [np.asarray(mask, bool) for mask in masks]


def adapt(name: str, raw: Any, agents: tuple[str, ...] | None) -> Adapter:
    """Return a simulator behind the common interface.

    Args:
        name: The world's id.
        raw: The simulator.
        agents: The agents' names. None: those of the simulator.
    """
    if hasattr(raw, "possible_agents") and callable(getattr(raw, "action_space", None)):
        return _PettingZoo(name, raw, agents)
    if hasattr(raw, "action_space") and hasattr(raw, "observation_space"):
        return _Gymnasium(name, raw, agents)
    return _Plain(name, raw, agents)


def observations(adapter: Adapter, see: Callable[[Any, int], Any] | None) -> list[np.ndarray]:
    """Return what each agent sees, as vectors: by the user's function, or what the simulator returned."""
    if see is None:
        return adapter.seen
    found = []
    for agent in range(len(adapter.agents)):
        value = see(adapter.inner, agent)
        try:
            found.append(np.asarray(value, np.float32).ravel())
        except (TypeError, ValueError):
            raise adapter.error(
                agent, f"observe returned {type(value).__name__}, not an array of numbers"
            ) from None
    return found
