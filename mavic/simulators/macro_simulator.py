"""One simulator with its controllers, tick by tick. A worker process holds many of them.

A tick returns one vector, the row: observations [N, O], rewards [N], which macros ended [N], terminated, truncated,
events [V], available macros [N, M], preconditions [P], predicates [N, M, Q].
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from mavic.simulators.adapters import Adapter, SimulatorFailure, observations
from mavic.simulators.controllers import Action, Status
from mavic.simulators.description import FAILED, Description, Sizes


class MacroSimulator:
    """A simulator whose agents run macros."""

    def __init__(self, description: Description) -> None:
        """Make a new simulator of the world."""
        self.description = description
        self.seed = 0
        self.seconds = 0.0  # in the simulator itself
        self._simulator: Adapter = description.simulator()
        self._controllers = [list(own.values()) for own in description.controllers]
        self._memory: list[Any] = [None] * len(description.agents)

    @property
    def time(self) -> int:
        """The ticks of the episode so far."""
        return self._simulator.time

    @property
    def world(self) -> Any:
        """The simulator without its wrappers, which the user's functions get."""
        return self._simulator.inner

    def close(self) -> None:
        """Close the simulator."""
        self._simulator.close()

    def reset(self, seed: int) -> np.ndarray:
        """Begin an episode and return its first row."""
        self.seed = seed
        self._simulator.reset(seed)
        agents = len(self.description.agents)
        self._memory = [None] * agents
        return self._row([0.0] * agents, [True] * agents, False, False, None)

    def tick(self, macro: Sequence[int], fresh: Sequence[bool]) -> np.ndarray:
        """Run one tick and return its row.

        Args:
            macro: [N] the macro that each agent runs.
            fresh: [N] whether it begins now.
        """
        world, actions = self.world, []
        running = [own[number] for own, number in zip(self._controllers, macro, strict=True)]
        for agent, controller in enumerate(running):
            if fresh[agent]:
                self._memory[agent] = controller.begin(world, agent)
            action, self._memory[agent] = controller.act(world, agent, self._memory[agent])
            count = self.description.actions[agent]
            if not 0 <= action < count:
                raise self._simulator.error(
                    agent, f"a controller chose the action {action!r} of 0 to {count - 1}"
                )
            actions.append(int(action))
        began = time.perf_counter()
        stepped = self._simulator.step(actions)
        self.seconds += time.perf_counter() - began
        status = [
            controller.status(world, agent, self._memory[agent])
            for agent, controller in enumerate(running)
        ]
        ended = [one != Status.RUNNING for one in status]
        failed = sum(one == Status.FAILED for one in status)
        return self._row(
            stepped.rewards, ended, stepped.terminated, stepped.truncated, stepped.info, failed
        )

    def picture(self) -> Any:
        """Return a `Scene` by the user's function, an image [H, W, 3] that the simulator renders, or None."""
        if self.description.picture is not None:
            return self.description.picture(self.world)
        render = getattr(self._simulator.raw, "render", None)
        if not callable(render) or getattr(self._simulator.raw, "render_mode", None) != "rgb_array":
            return None
        return np.asarray(render())

    def _row(
        self,
        rewards: Sequence[float],
        ended: Sequence[bool],
        terminated: bool,
        truncated: bool,
        info: Any,
        failed: int = 0,
    ) -> np.ndarray:
        sizes = self.description.sizes
        parts: list[float] = []
        for agent, seen in enumerate(observations(self._simulator, self.description.see)):
            if len(seen) > sizes.observation:
                raise self._simulator.error(
                    agent,
                    f"the observation has {len(seen)} numbers, at first {sizes.observation}",
                )
            parts += seen.tolist()
            parts += [0.0] * (sizes.observation - len(seen))
        parts += rewards
        parts += ended
        parts += (terminated, truncated and not terminated)
        parts += self._events(terminated, info, failed)
        parts += self._available()
        parts += [bool(f(self.world)) for f in self.description.precondition_functions.values()]
        parts += self._holds()
        vector = np.array(parts, np.float32)
        if not np.isfinite(vector).all():
            self._name_what_is_not_finite(Row(vector, sizes))
        return vector

    def _name_what_is_not_finite(self, row: Row) -> None:
        for what, part in (("reward", row.reward), ("observation", row.observation)):
            bad = ~np.isfinite(part.reshape(len(self.description.agents), -1)).all(-1)
            if bad.any():
                agent = self.description.agents[int(np.flatnonzero(bad)[0])]
                raise SimulatorFailure(f"not finite: the {what} of {agent}")

    def _events(self, terminated: bool, info: Any, failed: int) -> list[float]:
        if self._simulator.time == 0:
            return [0.0] * len(self.description.events)
        found = {"solved": float(terminated), FAILED: float(failed)}
        for name, function in self.description.event_functions.items():
            found[name] = float(function(self.world, info))
            if not (np.isfinite(found[name]) and found[name] >= 0):
                raise self._simulator.error(
                    None, f"the event {name} counts {found[name]}; it must be 0 or more"
                )
        return [found[name] for name in self.description.events]

    def _available(self) -> list[bool]:
        """Return which macros can start, for all agents in order, padded."""
        found: list[bool] = []
        for agent, controllers in enumerate(self._controllers):
            mask = self._simulator.masks[agent]
            own = [
                bool(mask[controller.action])
                if mask is not None and isinstance(controller, Action)
                else bool(controller.can_start(self.world, agent))
                for controller in controllers
            ]
            if not any(own):
                raise self._simulator.error(
                    agent, "no macro can start; give one that always can, such as Wait"
                )
            found += own + [False] * (self.description.sizes.macros - len(own))
        return found

    def _holds(self) -> list[bool]:
        """Return which predicates hold of each choice, for all agents in order, padded."""
        found: list[bool] = []
        functions = self.description.predicate_functions.values()
        for agent, own in enumerate(self.description.controllers):
            found += [bool(f(self.world, agent, macro)) for macro in own for f in functions]
            found += [False] * (self.description.sizes.macros - len(own)) * len(functions)
        return found


class Row:
    """The parts of a row, as views of one vector. Rows of many simulators have further axes in front."""

    def __init__(self, vector: Any, sizes: Sizes) -> None:
        """Divide a vector [..., F].

        Args:
            vector: A NumPy or JAX array.
            sizes: The shapes of the world's arrays.
        """
        n, m, o, v, p, q = sizes
        lengths = dict(
            observation=n * o,
            reward=n,
            ended=n,
            over=2,
            events=v,
            available=n * m,
            facts=p,
            holds=n * m * q,
        )
        parts, start = {}, 0
        for name, length in lengths.items():
            parts[name] = vector[..., start : start + length]
            start += length
        front = vector.shape[:-1]
        self.vector = vector
        self.observation = parts["observation"].reshape(*front, n, o)
        self.reward, self.ended = parts["reward"], parts["ended"]
        self.over, self.events, self.facts = parts["over"], parts["events"], parts["facts"]
        self.available = parts["available"].reshape(*front, n, m)
        self.holds = parts["holds"].reshape(*front, n, m, q)
