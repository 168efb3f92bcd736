"""Simulators on a Ray cluster, for worlds that one machine is too small for.

Each worker is an actor. An actor that dies, or whose node is lost, is replaced by the next request, on a node that is
left. All nodes must have mavic and the world's module where this machine has them.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import Any

from mavic.simulators.adapters import SimulatorError
from mavic.simulators.description import Description
from mavic.simulators.processes import START_SECONDS, Here, Lost, Place, Process, Request, pickled
from mavic.simulators.worker import Server, raised

ATTEMPTS = 10  # to start an actor
_in_use: dict[str, Any] = {}


def use(address: str | None = None, workers: int | None = None) -> int:
    """Let worlds in plain Python that are made from now on step their simulators on a Ray cluster.

    Args:
        address: Of the cluster. None: a running cluster, else this machine.
        workers: How many actors. None: one for each core of the cluster.

    Returns:
        How many actors step simulators.
    """
    import ray

    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False)
    count = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
    _in_use["workers"] = count
    return count


def where() -> str:
    """Return how many machines the cluster has that is in use."""
    import ray

    count = sum(bool(node["Alive"]) for node in ray.nodes())
    return f"{count} machine{'s' * (count != 1)}"


def places_of(description: Description) -> list[Place]:
    """Return the workers of a world: actors of the cluster, processes of this machine, or this process."""
    if _in_use:
        return [Actor(description, number) for number in range(_in_use["workers"])]
    return [Process(description, number) for number in range(description.workers)] or [
        Here(description)
    ]


class _Hung(Lost):
    """A worker does not answer, such as one for which the cluster has no free core."""


class Actor:
    """A worker on a Ray cluster."""

    def __init__(self, description: Description, number: int) -> None:
        self.description, self.number = description, number
        self.actor: Any = None
        self.answer: Any = None

    def start(self) -> None:
        """Start the actor, unless it runs. A node that is just lost may take it first, so that is tried again."""
        for left in reversed(range(ATTEMPTS)):
            if self.actor is not None:
                return
            try:
                found = self._begin()
            except Lost as lost:
                if not left or isinstance(lost, _Hung):
                    raise SimulatorError(
                        f"{self.description.name}: worker {self.number} did not start: {lost}"
                    ) from None
                time.sleep(1)
                continue
            if found:
                self.stop()
                raise SimulatorError(
                    f"{self.description.name}: a worker cannot import the world: {found}"
                )

    def _begin(self) -> str:
        import ray

        environment = {
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "JAX_PLATFORMS": "cpu",
        }
        made = ray.remote(num_cpus=1, scheduling_strategy="SPREAD")(_Held)
        self.actor = made.options(runtime_env={"env_vars": environment}).remote()
        self.answer = self.actor.load.remote(pickled(self.description))
        return self._receive(START_SECONDS)

    def send(self, request: Request) -> None:
        """Ask for something. The answer comes by `receive`."""
        self.start()
        self.answer = self.actor.ask.remote(request.method, request.args)

    def receive(self) -> Any:
        """Return the answer. `Lost`: there is none, and the actor is ended."""
        answer = self._receive(self.description.timeout)
        if isinstance(answer, SimulatorError):
            raise answer
        return answer

    def stop(self) -> None:
        """End the actor."""
        if self.actor is not None:
            import ray

            with contextlib.suppress(ray.exceptions.RayError):  # it is dead
                ray.kill(self.actor)
        self.actor = self.answer = None

    def _receive(self, seconds: float) -> Any:
        import ray

        try:
            return ray.get(self.answer, timeout=seconds)
        except ray.exceptions.GetTimeoutError:
            self.stop()
            raise _Hung(f"hung: no answer within {seconds:g} seconds") from None
        except ray.exceptions.RayTaskError:  # a fault of ours
            raise
        except ray.exceptions.RayError:
            self.stop()
            raise Lost("died (its process, its node or its answer was lost)") from None


class _Held:
    """What an actor does. It begins empty, so that it starts even if the world cannot be imported."""

    server: Server

    def load(self, description: bytes) -> str:
        """Hold no simulators of the world yet. Return why it cannot, or an empty text."""
        try:
            self.server = Server(description)
        except BaseException as error:
            return raised(error)
        return ""

    def ask(self, method: str, args: tuple) -> Any:
        """Return the answer of the holder."""
        return self.server.answer(method, args)
