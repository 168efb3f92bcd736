"""All simulators of a world: which process holds each, how far its episode is, and what becomes of those that fail.

A compiled program knows a state of a simulator by its handle: the simulator's number, the number of its episode, and
the tick. A tick asked for twice is answered from memory. A state that the simulator has left is brought back by
replaying its episode, so states can be kept and returned to, as with compiled environments.

Several devices may ask at once. Each has a lane: simulators of its own in workers of its own, if there are enough, so
no device waits for the simulators of another.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mavic.simulators.adapters import SimulatorError
from mavic.simulators.check import SEED
from mavic.simulators.cluster import places_of
from mavic.simulators.description import Description
from mavic.simulators.episodes import Episodes
from mavic.simulators.macro_simulator import Row
from mavic.simulators.processes import Here, Lost, Request, Workers
from mavic.simulators.worker import Answer

FAILURES_IN_A_ROW = 20  # without an episode that ends well; then training stops
PICTURES = 2048


class Pool:
    """The simulators of one world. Its methods take and return arrays with any axes in front."""

    def __init__(self, description: Description) -> None:
        """Start no process yet."""
        self.description = description
        self.error: SimulatorError | None = None
        self.dropped: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        """Processor time: "simulators", "macros", "travelling" (of workers, to read and send), and "asking" (of this
        process, without what simulators in it take)."""
        self._reports: list[str] = []
        self._lock = (
            threading.Lock()
        )  # of the arrays; a call does not hold it while it waits for workers
        self._lanes: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)
        self._workers = Workers(places_of(description))
        self.is_here = isinstance(self._workers[0], Here)
        """Whether simulators run in this process."""
        self._kept = Episodes(description, self._workers)
        self._pictures: OrderedDict[tuple[int, int, int], Any] = OrderedDict()
        self._in_a_row = 0
        self._tried = False
        self._told = 0
        atexit.register(self.close)

    def close(self) -> None:
        """End all processes. The next call starts them again."""
        self._workers.stop()
        with self._lock:
            self._kept.over[:] = True

    def raise_error(self) -> None:
        """Raise what went wrong since the last call, if anything did that training cannot go on with."""
        error, self.error = self.error, None
        if error is not None:
            raise error

    def reports(self) -> tuple[list[str], int]:
        """Return lines about what happened since the last call, and how many episodes were dropped."""
        with self._lock:
            lines, self._reports = self._reports, []
            total = sum(self.dropped.values())
            dropped, self._told = total - self._told, total
        return lines, dropped

    def reset(
        self, keys: np.ndarray, lane: int = 0, lanes: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        """Begin an episode for each key [..., 2]. Return handles [..., 3] and rows [..., F].

        Args:
            keys: [..., 2] the words of random keys.
            lane: The number of the device that asks.
            lanes: How many devices ask.
        """
        front = keys.shape[:-1]
        handles = np.full((*front, 3), -1, np.int32)
        return self.restart(handles, keys, np.ones(front, bool), lane, lanes)

    def restart(
        self,
        handles: np.ndarray,
        keys: np.ndarray,
        done: np.ndarray,
        lane: int = 0,
        lanes: int = 1,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Begin an episode where `done` [...] holds. Return handles and rows; elsewhere they are the present ones."""
        front = done.shape
        handles, done = handles.reshape(-1, 3).copy(), done.reshape(-1)
        keys = keys.reshape(-1, 2)[done]
        with self._call(lane):
            if done.any():
                self._try_out()
                self._kept.beside[lane] = lanes
                numbers = self._kept.acquire(handles[done], lane)
                seeds = [_seed_of(*key) for key in keys.tolist()]
                self._begin(numbers, seeds, pictures=not front)
                handles[done, 0], handles[done, 1] = numbers, self._kept.episode[numbers]
                handles[done, 2] = 0
            rows = self._kept.rows[handles[:, 0]]
            self._tell_at_once(front, rows)
        return handles.reshape(*front, 3), rows.reshape(*front, -1)

    def tick(
        self, handles: np.ndarray, macro: np.ndarray, fresh: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Run one tick of each state. Return the handles of the next states, and rows [..., F].

        An episode that is over stays where it is. One that fails is over at once, and its rewards are nan.

        Args:
            handles: [..., 3] the states.
            macro: [..., N] the macros that agents run.
            fresh: [..., N] whether they begin now.
        """
        front, agents = handles.shape[:-1], macro.shape[-1]
        handles = handles.reshape(-1, 3).copy()
        macro, fresh = macro.reshape(-1, agents), fresh.reshape(-1, agents)
        lane = int(self._kept.lane[handles[0, 0]])
        with self._call(lane):
            self._kept.begin_call(handles[:, 0], lane)
            places = self._to_step(handles, macro, fresh)
            numbers = handles[places, 0]
            self._step(numbers, macro[places], fresh[places], pictures=not front)
            handles[places, 2] += 1
            rows = self._kept.rows[handles[:, 0]]
            self._tell_at_once(front, rows)
        return handles.reshape(*front, 3), rows.reshape(*front, -1)

    def alone(self, count: int, ticks: int, *, macros: bool) -> float:
        """Return the steps per second of simulators with random actions, without a team.

        Args:
            count: How many simulators each worker steps.
            ticks: How many steps each of them makes.
            macros: Whether agents run random macros instead of random primitive actions.
        """
        request = Request("alone", [], (count, ticks, macros))
        answers = self._workers.exchange(dict.fromkeys(range(len(self._workers)), request))
        for number, answer in answers.items():
            if isinstance(answer, Lost):
                name = self.description.name
                raise SimulatorError(f"{name}, worker {number}: {answer}, with random actions")
        return count * ticks * len(answers) / max(answers.values())

    def picture(self, handle: np.ndarray) -> Any:
        """Return the picture of a state: a `Scene`, an image [H, W, 3], or None."""
        key = (int(handle[0]), int(handle[1]), int(handle[2]))
        with self._call(int(self._kept.lane[key[0]])):
            if key not in self._pictures and not self._is_finished(key):
                self._replay(*key, pictures=True)
            return self._pictures.get(key)

    @contextmanager
    def _call(self, lane: int) -> Iterator[None]:
        """Hold what a call needs. Calls of one lane come one after another."""
        with self._lanes[lane], self._lock:
            began = time.thread_time() - self._spent_here()
            yield
            self.seconds["asking"] += time.thread_time() - began - self._spent_here()

    def _spent_here(self) -> float:
        """Return what the simulators of this process took."""
        return self.seconds["simulators"] + self.seconds["macros"] if self.is_here else 0.0

    # What a call needs, with the locks held.

    def _try_out(self) -> None:
        """Try a simulator before the first episode. Say so if it does not repeat itself."""
        if self._tried or self.error is not None:
            return
        self._tried = True
        try:
            line = self._exchange({0: Request("difference", [], ())})[0]
        except SimulatorError as error:
            self.error = error
            return
        if isinstance(line, Lost):
            line = f"{self.description.name}, worker 0, seed {SEED}: {line}, when it was tried"
        if line:
            self._reports.append(line)

    def _tell_at_once(self, front: tuple[int, ...], rows: np.ndarray) -> None:
        """Where one episode is played by itself, as on a stage, its failure is an error."""
        if not front and self.error is None and np.isnan(rows).any():
            self.error = SimulatorError(self._reports[-1] if self._reports else "it failed before")

    def _to_step(self, handles: np.ndarray, macro: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        """Return the places of the states that move in this call. States that were left are brought back first."""
        number, episode, tick = handles.T
        present = (self._kept.episode[number] == episode) & (self._kept.time[number] == tick)
        first = np.zeros(len(handles), bool)
        first[np.unique(number, return_index=True)[1]] = True
        moves = present & first & ~self._kept.over[number]
        for place in np.flatnonzero(~moves & ~(present & self._kept.over[number])):
            key = (int(number[place]), int(episode[place]), int(tick[place]))
            if self._is_finished(key) or self._is_repeated(key, macro[place], fresh[place]):
                handles[place, 2] = (
                    self._kept.time[key[0]] if key[1] == self._kept.episode[key[0]] else key[2]
                )
                continue
            handles[place] = self._replay(*key, pictures=False)
            moves[place] = True
        return np.flatnonzero(moves)

    def _is_finished(self, key: tuple[int, int, int]) -> bool:
        """Return whether a state belongs to an episode that ended before its simulator began another."""
        number, episode, _ = key
        return episode < self._kept.episode[number] and (number, episode) not in self._kept.past

    def _is_repeated(self, key: tuple[int, int, int], macro: np.ndarray, fresh: np.ndarray) -> bool:
        """Return whether the last tick of a simulator is asked for again."""
        number, episode, tick = key
        if self._kept.episode[number] != episode or self._kept.time[number] != tick + 1:
            return False
        return np.array_equal(self._kept.played[number, tick], 2 * macro + fresh)

    def _replay(self, number: int, episode: int, tick: int, *, pictures: bool) -> np.ndarray:
        """Bring a state back in another simulator and return its handle there."""
        if self._kept.episode[number] == episode:
            seed, played = self._kept.seed[number], self._kept.played[number]
        elif (number, episode) in self._kept.past:
            seed, played = self._kept.past[number, episode]
        else:
            self._fail_for_good(
                f"a state of an episode that ended long ago was asked for, tick {tick}"
            )
            return np.array([number, self._kept.episode[number], self._kept.time[number]], np.int32)
        played = played[:tick].copy()
        (place,) = self._kept.acquire(np.full((1, 3), -1, np.int32), int(self._kept.lane[number]))
        self._begin([place], [seed], pictures=False)
        macro, fresh = played // 2, played % 2 > 0
        request = Request("replay", [place], (place, seed, macro, fresh, pictures))
        self._run({int(self._kept.home[place]): request})
        self._kept.time[place], self._kept.played[place, :tick] = tick, played
        if pictures:
            self._pictures[number, episode, tick] = self._pictures.pop(
                (place, int(self._kept.episode[place]), 0), None
            )
            self._kept.over[place] = True
        return np.array([place, self._kept.episode[place], tick], np.int32)

    def _begin(self, numbers: Any, seeds: list[int], *, pictures: bool) -> None:
        """Begin episodes in these simulators."""
        places = np.asarray(numbers)
        self._kept.episode[places] += 1
        self._kept.time[places], self._kept.over[places] = 0, False
        self._kept.used[places] = self._kept.calls
        for number, seed in zip(places.tolist(), seeds, strict=True):
            self._kept.seed[number] = seed
        requests = {}
        for worker, mine in self._kept.by_worker(places).items():
            given = [seeds[place] for place in mine]
            request = (places[mine].tolist(), given, pictures)
            requests[worker] = Request("reset", request[0], request)
        self._run(requests)

    def _step(
        self, numbers: np.ndarray, macro: np.ndarray, fresh: np.ndarray, *, pictures: bool
    ) -> None:
        """Run a tick of these simulators."""
        self._kept.played[numbers, self._kept.time[numbers]] = 2 * macro + fresh
        self._kept.time[numbers] += 1
        self._kept.used[numbers] = self._kept.calls
        requests = {}
        for worker, mine in self._kept.by_worker(numbers).items():
            args = (numbers[mine].tolist(), macro[mine], fresh[mine], pictures)
            requests[worker] = Request("tick", args[0], args)
        self._run(requests)
        over = Row(self._kept.rows[numbers], self.description.sizes).over.any(-1)
        ended = over | (self._kept.time[numbers] >= self.description.horizon)
        self._kept.over[numbers] = ended
        if (ended & np.isfinite(self._kept.rows[numbers]).all(-1)).any():
            self._in_a_row = 0

    def _run(self, requests: dict[int, Request]) -> None:
        """Send requests to workers, and keep the rows that they answer."""
        numbers = [number for request in requests.values() for number in request.numbers]
        if self.error is None:
            self._kept.asked[numbers] = True
            try:
                answers = self._exchange(requests)
            except SimulatorError as error:
                self.error = self.error or error
            self._kept.asked[numbers] = False
        if self.error is not None:
            self._blank(numbers)
            return
        for worker, answer in answers.items():
            if isinstance(answer, Lost):
                self._lose(worker, requests[worker], str(answer))
            else:
                self._keep(worker, requests[worker], answer)

    def _exchange(self, requests: dict[int, Request]) -> dict[int, Any]:
        """Return the answers of workers, or `Lost`. Other lanes may call in the meantime."""
        self._lock.release()
        try:
            return self._workers.exchange(requests)
        finally:
            self._lock.acquire()

    def _keep(self, worker: int, request: Request, answer: Answer) -> None:
        self._kept.rows[request.numbers] = answer.rows
        for part, seconds in answer.spent.items():
            self.seconds[part] += seconds
        for number, picture in zip(request.numbers, answer.pictures, strict=False):
            key = (number, int(self._kept.episode[number]), int(self._kept.time[number]))
            self._pictures[key] = picture
        while len(self._pictures) > PICTURES:
            self._pictures.popitem(last=False)
        for place, why in answer.failed.items():
            self._drop(worker, request.numbers[place], why)

    def _lose(self, worker: int, request: Request, why: str) -> None:
        """Drop the episodes of all simulators that a worker held. It is started again by the next request."""
        lost = np.flatnonzero((self._kept.home == worker) & ~self._kept.over & ~self._kept.asked)
        for number in sorted({*request.numbers, *lost.tolist()}):
            self._drop(worker, number, why)

    def _drop(self, worker: int, number: int, why: str) -> None:
        """Drop the episode of a simulator, and say so."""
        self._blank([number])
        self.dropped[why.split(":")[0].split(" (")[0]] += 1
        seed, tick = self._kept.seed[number], self._kept.time[number]
        where = f"{self.description.name}, worker {worker}, seed {seed}, tick {tick}"
        line = f"{where}: {why}; the episode is dropped"
        self._reports.append(line)
        self._in_a_row += 1
        if self._in_a_row > FAILURES_IN_A_ROW:
            self._fail_for_good(f"{self._in_a_row} episodes in a row failed; the last: {line}")

    def _blank(self, numbers: list[int]) -> None:
        """Make the rows of failed episodes: cut, with rewards that are not numbers. Some macro is available."""
        row = Row(np.zeros(self.description.sizes.row, np.float32), self.description.sizes)
        row.reward[:], row.ended[:], row.over[1] = np.nan, 1, 1
        row.available[:, 0] = 1
        self._kept.rows[numbers] = row.vector
        self._kept.over[numbers] = True

    def _fail_for_good(self, why: str) -> None:
        self.error = self.error or SimulatorError(f"{self.description.name}: {why}")


def _seed_of(first: int, second: int) -> int:
    """Return a seed from the two words of a random key."""
    return ((first & 0xFFFFFFFF) * 2_654_435_761 + (second & 0xFFFFFFFF)) % 2**31
