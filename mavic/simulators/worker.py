"""The process that steps simulators: it holds some of them, and answers what the pool asks.

`Holder` does the work. The pool uses it directly where simulators run in its own process.
"""

from __future__ import annotations

import contextlib
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from mavic.simulators import check
from mavic.simulators.adapters import SimulatorError, SimulatorFailure
from mavic.simulators.description import Description
from mavic.simulators.macro_simulator import MacroSimulator, Row

CLOSING_SECONDS = 2  # for a worker to close its simulators


class Answer(NamedTuple):
    """The rows [k, F] of some simulators, those that failed (place in the request → why), the processor time that went
    into what, and pictures, if they were asked for."""

    rows: np.ndarray
    failed: dict[int, str]
    spent: dict[str, float]
    pictures: list[Any]


class Holder:
    """Simulators by number. One that fails is dropped, and made anew when its next episode begins."""

    def __init__(self, description: Description) -> None:
        """Hold no simulators of the world yet."""
        self.description = description
        self.held: dict[int, MacroSimulator] = {}

    def reset(self, numbers: Sequence[int], seeds: Sequence[int], pictures: bool) -> Answer:
        """Begin episodes."""

        def begin(place: int, number: int) -> np.ndarray:
            if number not in self.held:
                self.held[number] = MacroSimulator(self.description)
            return self.held[number].reset(int(seeds[place]))

        return self._each(numbers, begin, pictures)

    def tick(
        self, numbers: Sequence[int], macro: np.ndarray, fresh: np.ndarray, pictures: bool
    ) -> Answer:
        """Run one tick of each simulator. `macro` and `fresh` are [k, N]."""
        chosen, starts = macro.tolist(), fresh.tolist()

        def go_on(place: int, number: int) -> np.ndarray:
            if number not in self.held:
                raise SimulatorFailure("crashed: the simulator was lost")
            return self.held[number].tick(chosen[place], starts[place])

        return self._each(numbers, go_on, pictures)

    def replay(
        self, number: int, seed: int, macro: np.ndarray, fresh: np.ndarray, pictures: bool
    ) -> Answer:
        """Bring a simulator to where an episode was, by its seed and its macros [T, N]."""

        def again(place: int, number: int) -> np.ndarray:
            del place
            row = self.reset([number], [seed], False).rows[0]
            for chosen, starts in zip(macro.tolist(), fresh.tolist(), strict=True):
                row = self.held[number].tick(chosen, starts)
            return row

        return self._each([number], again, pictures)

    def alone(self, count: int, ticks: int, macros: bool) -> float:
        """Return the seconds that new simulators take to run one after another: what the machine could do at most.

        Args:
            count: How many simulators.
            ticks: How many steps each of them makes.
            macros: Whether agents run random macros. Otherwise they take random primitive actions.
        """
        with ExitStack() as closing:
            players = []
            for number in range(count):
                players.append(_Player(self.description, number, macros))
                closing.callback(_close, players[-1].simulator)
            began = time.perf_counter()
            for _ in range(ticks):
                for player in players:
                    player.step()
            return time.perf_counter() - began

    def close(self) -> None:
        """Close the simulators, which may have processes of their own."""
        while self.held:
            _close(self.held.popitem()[1])

    def difference(self) -> str:
        """Return where two episodes of the same seed and macros differ; empty if they agree or if one fails."""
        try:
            return check.difference(self.description)
        except SimulatorError:
            raise
        except Exception as error:  # it is told when it happens in an episode
            return f"{self.description.name}, seed {check.SEED}: {raised(error)}, when it was tried"

    def _each(self, numbers: Sequence[int], call: Any, pictures: bool) -> Answer:
        stepped = sum(held.seconds for held in self.held.values())
        began, busy = time.perf_counter(), time.thread_time()
        rows = np.zeros((len(numbers), self.description.sizes.row), np.float32)
        failed: dict[int, str] = {}
        drawn: list[Any] = []
        for place, number in enumerate(numbers):
            try:
                rows[place] = call(place, number)
                drawn += [self.held[number].picture()] if pictures else []
            except SimulatorError:
                raise
            except SimulatorFailure as failure:
                failed[place] = str(failure)
            except Exception as error:  # a simulator may raise anything
                failed[place] = f"crashed: {raised(error)}"
            if place in failed:
                drawn += [None] if pictures else []
                if number in self.held:
                    _close(self.held.pop(number))
        busy = (
            time.thread_time() - busy
        )  # asking for it takes long, so parts are measured by the clock
        stepped = sum(held.seconds for held in self.held.values()) - stepped
        share = min(1.0, max(0.0, stepped / (time.perf_counter() - began)))
        spent = {"simulators": share * busy, "macros": (1 - share) * busy}
        return Answer(rows, failed, spent, drawn)


def _close(simulator: Any) -> None:
    """Close a simulator. One that crashed may not even do that."""
    with contextlib.suppress(Exception):
        simulator.close()


class _Player:
    """A simulator whose agents choose at random."""

    def __init__(self, description: Description, seed: int, macros: bool) -> None:
        self.random = np.random.default_rng(seed)
        self.description, self.macros = description, macros
        self.running = [0] * len(description.agents)
        self.simulator = MacroSimulator(description) if macros else description.simulator()
        self.row = self.simulator.reset(seed)

    def step(self) -> None:
        simulator, description = self.simulator, self.description
        if isinstance(simulator, MacroSimulator):
            row = Row(self.row, description.sizes)
            for agent in np.flatnonzero(row.ended):
                self.running[agent] = int(self.random.choice(np.flatnonzero(row.available[agent])))
            self.row = simulator.tick(self.running, (row.ended > 0).tolist())
            over = Row(self.row, description.sizes).over.any()
        else:
            stepped = simulator.step(self.random.integers(description.actions).tolist())
            over = stepped.terminated or stepped.truncated
        if over or simulator.time >= description.horizon:
            self.row = simulator.reset(int(self.random.integers(2**31)))


def raised(error: BaseException) -> str:
    """Return an error in one line, with the file and line that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text} ({last.filename.rsplit('/', 1)[-1]}:{last.lineno})"


class Server:
    """Answers requests with a holder, and counts what the process spends on reading and sending them."""

    def __init__(self, description: bytes) -> None:
        """Hold no simulators of a pickled world yet."""
        self._holder = Holder(pickle.loads(description))
        self._mark = time.thread_time()

    def answer(self, method: str, args: tuple[Any, ...]) -> Any:
        """Return what a method of the holder returns, or the `SimulatorError` that it raises."""
        try:
            found = getattr(self._holder, method)(*args)
        except SimulatorError as error:
            return error
        if isinstance(found, Answer):
            since = time.thread_time() - self._mark
            self._mark += since
            found.spent["travelling"] = max(0.0, since - sum(found.spent.values()))
        return found

    def close(self) -> None:
        """Close the simulators."""
        self._holder.close()


def main() -> None:
    """Serve the pool over the connection whose file descriptor is the first argument."""
    for number in (signal.SIGINT, signal.SIGTERM):  # the pool's process decides when to stop
        signal.signal(number, signal.SIG_IGN)
    connection = Connection(int(sys.argv[1]))
    sys.path[:] = connection.recv()
    try:
        server = Server(connection.recv_bytes())
        connection.send(None)
    except BaseException as error:
        connection.send(raised(error))
        return
    while True:
        try:
            request = connection.recv()
        except (EOFError, OSError):  # the pool is gone
            signal.alarm(CLOSING_SECONDS)  # one that hangs does not keep this process
            server.close()
            return
        connection.send(server.answer(*request))
