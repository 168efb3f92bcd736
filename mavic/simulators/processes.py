"""Where simulators are held: in worker processes, or in this process. Who may ask which of them."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol

from mavic.simulators.adapters import SimulatorError
from mavic.simulators.description import Description
from mavic.simulators.worker import CLOSING_SECONDS, Holder

START_SECONDS = 120.0  # for a worker to import the user's module
_START = (
    "from mavic.simulators.worker import main; main()"  # not -m: answers must name their module
)


class Request(NamedTuple):
    """What a worker does: a method of `Holder` and its arguments, for some simulators."""

    method: str
    numbers: list[int]
    args: tuple[Any, ...]


class Lost(Exception):
    """A worker died or hung. The message says which."""


class Process:
    """A worker in a process of its own."""

    def __init__(self, description: Description, number: int) -> None:
        self.description, self.number = description, number
        self.process: subprocess.Popen | None = None
        self.connection: Connection | None = None

    def start(self) -> None:
        """Start the process, unless it runs."""
        if self.process is not None:
            return
        ours, theirs = socket.socketpair()
        with theirs:
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            environment["JAX_PLATFORMS"] = "cpu"  # the device belongs to the training
            self.process = subprocess.Popen(
                [sys.executable, "-c", _START, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=environment,
                stdin=subprocess.DEVNULL,
            )
        self.connection = Connection(ours.detach())
        self.connection.send(sys.path)
        self.connection.send_bytes(pickled(self.description))
        try:
            found = self._receive(START_SECONDS)
        except Lost as lost:
            raise SimulatorError(
                f"{self.description.name}: worker {self.number} did not start: {lost}"
            ) from None
        if found is not None:
            self.stop()
            raise SimulatorError(
                f"{self.description.name}: a worker cannot import the world: {found}"
            )

    def send(self, request: Request) -> None:
        """Ask for something. The answer comes by `receive`."""
        self.start()
        assert self.connection is not None
        try:
            self.connection.send((request.method, request.args))
        except OSError:
            raise self._died() from None

    def receive(self) -> Any:
        """Return the answer. `Lost`: there is none, and the process is ended."""
        answer = self._receive(self.description.timeout)
        if isinstance(answer, SimulatorError):
            raise answer
        return answer

    def stop(self, patience: float = CLOSING_SECONDS) -> None:
        """End the process. It has so many seconds to close its simulators, which may have processes of their own."""
        if self.connection is not None:
            self.connection.close()
        if self.process is not None:
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = self.connection = None

    def _receive(self, seconds: float) -> Any:
        assert self.connection is not None
        try:
            if not self.connection.poll(seconds):
                raise self._lost(f"hung: no answer within {seconds:g} seconds")
            return self.connection.recv()
        except (EOFError, OSError):
            raise self._died() from None

    def _died(self) -> Lost:
        assert self.process is not None
        return self._lost(f"died (exit status {self.process.wait()})")

    def _lost(self, why: str) -> Lost:
        self.stop(patience=0)
        return Lost(why)


class Here:
    """The place of simulators that run in this process. Errors and hangs of theirs are those of the program."""

    def __init__(self, description: Description) -> None:
        self.holder = Holder(description)
        self.answer: Any = None

    def send(self, request: Request) -> None:
        """Do what is asked at once."""
        self.answer = getattr(self.holder, request.method)(*request.args)

    def receive(self) -> Any:
        """Return the answer."""
        return self.answer

    def stop(self) -> None:
        """Close the simulators."""
        self.holder.close()


class Place(Protocol):
    """Where some of the simulators are: a worker. Its `start` is called by `send`."""

    def send(self, request: Request) -> None:
        """Ask for something. The answer comes by `receive`."""

    def receive(self) -> Any:
        """Return the answer. `Lost`: there is none, and the worker is ended."""

    def stop(self) -> None:
        """End the worker."""


class Workers:
    """All workers of a world. Several threads may ask: one worker answers one of them at a time."""

    def __init__(self, places: Sequence[Place]) -> None:
        """Start none of them yet."""
        self._places = places
        self._locks = [threading.Lock() for _ in self._places]

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, number: int) -> Any:
        return self._places[number]

    def of_lane(self, lane: int, lanes: int) -> list[int]:
        """Return the workers of one of several lanes. With fewer workers than lanes, lanes share workers."""
        own = [number for number in range(len(self)) if number % lanes == lane]
        return own or [lane % len(self)]

    def exchange(self, requests: dict[int, Request]) -> dict[int, Any]:
        """Return what each worker answers, or the `Lost` that says why it does not.

        A `SimulatorError` is raised. The answers of the other workers are not wanted any more, so they are ended.
        """
        with ExitStack() as held:
            for number in sorted(requests):
                held.enter_context(self._locks[number])
            found: dict[int, Any] = {}
            try:
                for number, request in requests.items():
                    try:
                        self._places[number].send(request)
                    except Lost as lost:
                        found[number] = lost
                for number in requests.keys() - found.keys():
                    try:
                        found[number] = self._places[number].receive()
                    except Lost as lost:
                        found[number] = lost
            except SimulatorError:
                for number in requests.keys() - found.keys():
                    self._places[number].stop()
                raise
            return found

    def stop(self) -> None:
        """End all processes. The next request starts them again."""
        for place, lock in zip(self._places, self._locks, strict=True):
            with lock:
                place.stop()


def pickled(description: Description) -> bytes:
    """Return a description as bytes. cloudpickle, if it is installed, also takes functions of a script or notebook."""
    try:
        from cloudpickle import dumps
    except ImportError:
        dumps = pickle.dumps
    try:
        return dumps(description)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise SimulatorError(
            f"{description.name}: the world cannot be sent to a worker process ({error}); put its functions at the top "
            "level of a module, or give workers=0"
        ) from None
