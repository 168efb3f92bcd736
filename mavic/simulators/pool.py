"""All simulators of a world: which process holds each, how far its episode is, and what becomes of those that fail.

A compiled program knows a state of a simulator by its handle: the simulator's number, the number of its episode, and
the tick. A tick asked for twice is answered from memory. A state that the simulator has left is brought back by
replaying its episode, so states can be kept and returned to, as with compiled environments.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections import Counter, OrderedDict
from typing import Any

import numpy as np

from mavic.simulators.adapters import SimulatorError
from mavic.simulators.check import SEED
from mavic.simulators.description import Description
from mavic.simulators.macro_simulator import Row
from mavic.simulators.processes import Here, Lost, Process, Request
from mavic.simulators.worker import Answer

FAILURES_IN_A_ROW = 20  # without an episode that ends well; then training stops
LEAST = 64  # simulators that are kept before the least recently used one is given up
PAST = 512  # episodes that can be replayed after their simulator began another
PICTURES = 2048


class Pool:
    """The simulators of one world. Its methods take and return arrays with any axes in front."""

    def __init__(self, description: Description) -> None:
        """Start no process yet."""
        self.description = description
        self.error: SimulatorError | None = None
        self.dropped: Counter[str] = Counter()
        self.seconds = {"stepping": 0.0, "asking": 0.0}
        """What time went into: "stepping" (in the simulators of the slowest worker) and "asking" (all of a call)."""
        self._reports: list[str] = []
        self._lock = threading.RLock()
        count = description.workers
        self._workers: list[Process | Here] = [
            Process(description, number) for number in range(count)
        ] or [Here(description)]
        self._rows = np.zeros((0, description.sizes.row), np.float32)
        self._episode = np.zeros(0, np.int32)  # of each simulator
        self._time = np.zeros(0, np.int32)
        self._over = np.zeros(0, bool)
        self._used = np.zeros(0, np.int64)
        self._seed: list[int] = []
        self._played: list[list[tuple[np.ndarray, np.ndarray]]] = []
        self._past: OrderedDict[tuple[int, int], tuple[int, list]] = OrderedDict()
        self._pictures: OrderedDict[tuple[int, int, int], Any] = OrderedDict()
        self._calls = 0
        self._largest = 0
        self._in_a_row = 0
        self._tried = False
        self._told = 0
        atexit.register(self.close)

    def close(self) -> None:
        """End all processes. The next call starts them again."""
        with self._lock:
            for worker in self._workers:
                worker.stop()
            self._over[:] = True

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

    def reset(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Begin an episode for each key [..., 2]. Return handles [..., 3] and rows [..., F]."""
        front = keys.shape[:-1]
        handles = np.full((*front, 3), -1, np.int32)
        return self.restart(handles, keys, np.ones(front, bool))

    def restart(
        self, handles: np.ndarray, keys: np.ndarray, done: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Begin an episode where `done` [...] holds. Return handles and rows; elsewhere they are the present ones."""
        front = done.shape
        handles, done = handles.reshape(-1, 3).copy(), done.reshape(-1)
        keys = keys.reshape(-1, 2)[done]
        with self._lock:
            if done.any():
                self._try_out()
                numbers = self._acquire(handles[done])
                seeds = [_seed_of(*key) for key in keys.tolist()]
                self._begin(numbers, seeds, pictures=not front)
                handles[done, 0], handles[done, 1] = numbers, self._episode[numbers]
                handles[done, 2] = 0
            rows = self._rows[handles[:, 0]]
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
        with self._lock:
            began = time.perf_counter()
            self._calls += 1
            places = self._to_step(handles, macro, fresh)
            numbers = handles[places, 0]
            self._step(numbers, macro[places], fresh[places], pictures=not front)
            handles[places, 2] += 1
            rows = self._rows[handles[:, 0]]
            self._tell_at_once(front, rows)
            self.seconds["asking"] += time.perf_counter() - began
        return handles.reshape(*front, 3), rows.reshape(*front, -1)

    def alone(self, count: int, ticks: int) -> float:
        """Return the steps per second of simulators with random primitive actions, without macros or a team.

        Args:
            count: How many simulators each worker steps.
            ticks: How many steps each of them makes.
        """
        with self._lock:
            for worker in self._workers:
                worker.send(Request("alone", [], (count, ticks)))
            seconds = max(worker.receive().seconds for worker in self._workers)
        return count * ticks * len(self._workers) / seconds

    def picture(self, handle: np.ndarray) -> Any:
        """Return the picture of a state: a `Scene`, an image [H, W, 3], or None."""
        key = (int(handle[0]), int(handle[1]), int(handle[2]))
        with self._lock:
            if key not in self._pictures and not self._is_finished(key):
                self._replay(*key, pictures=True)
            return self._pictures.get(key)

    # What a call needs, with the lock held.

    def _try_out(self) -> None:
        """Try a simulator before the first episode. Say so if it does not repeat itself."""
        if self._tried or self.error is not None:
            return
        self._tried = True
        try:
            self._workers[0].send(Request("difference", [], ()))
            if line := self._workers[0].receive():
                self._reports.append(line)
        except SimulatorError as error:
            self.error = error
        except Lost as lost:
            self._reports.append(
                f"{self.description.name}, worker 0, seed {SEED}: {lost}, when it was tried"
            )

    def _tell_at_once(self, front: tuple[int, ...], rows: np.ndarray) -> None:
        """Where one episode is played by itself, as on a stage, its failure is an error."""
        if not front and self.error is None and np.isnan(rows).any():
            self.error = SimulatorError(self._reports[-1] if self._reports else "it failed before")

    def _to_step(self, handles: np.ndarray, macro: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        """Return the places of the states that move in this call. States that were left are brought back first."""
        number, episode, tick = handles.T
        present = (self._episode[number] == episode) & (self._time[number] == tick)
        first = np.zeros(len(handles), bool)
        first[np.unique(number, return_index=True)[1]] = True
        moves = present & first & ~self._over[number]
        for place in np.flatnonzero(~moves & ~(present & self._over[number])):
            key = (int(number[place]), int(episode[place]), int(tick[place]))
            if self._is_finished(key) or self._is_repeated(key, macro[place], fresh[place]):
                handles[place, 2] = (
                    self._time[key[0]] if key[1] == self._episode[key[0]] else key[2]
                )
                continue
            handles[place] = self._replay(*key, pictures=False)
            moves[place] = True
        return np.flatnonzero(moves)

    def _is_finished(self, key: tuple[int, int, int]) -> bool:
        """Return whether a state belongs to an episode that ended before its simulator began another."""
        number, episode, _ = key
        return episode < self._episode[number] and (number, episode) not in self._past

    def _is_repeated(self, key: tuple[int, int, int], macro: np.ndarray, fresh: np.ndarray) -> bool:
        """Return whether the last tick of a simulator is asked for again."""
        number, episode, tick = key
        if self._episode[number] != episode or self._time[number] != tick + 1:
            return False
        last = self._played[number][-1]
        return np.array_equal(last[0], macro) and np.array_equal(last[1], fresh)

    def _replay(self, number: int, episode: int, tick: int, *, pictures: bool) -> np.ndarray:
        """Bring a state back in another simulator and return its handle there."""
        if self._episode[number] == episode:
            seed, played = self._seed[number], self._played[number]
        elif (number, episode) in self._past:
            seed, played = self._past[number, episode]
        else:
            self._fail_for_good(
                f"a state of an episode that ended long ago was asked for, tick {tick}"
            )
            return np.array([number, self._episode[number], self._time[number]], np.int32)
        played = played[:tick]
        (place,) = self._acquire(np.full((1, 3), -1, np.int32))
        self._begin([place], [seed], pictures=False)
        agents = len(self.description.agents)
        macro = np.array([m for m, _ in played], np.int32).reshape(tick, agents)
        fresh = np.array([f for _, f in played], bool).reshape(tick, agents)
        request = Request("replay", [place], (place, seed, macro, fresh, pictures))
        self._run({place % len(self._workers): request})
        self._time[place], self._played[place] = tick, list(played)
        if pictures:
            self._pictures[number, episode, tick] = self._pictures.pop(
                (place, int(self._episode[place]), 0), None
            )
            self._over[place] = True
        return np.array([place, self._episode[place], tick], np.int32)

    def _acquire(self, handles: np.ndarray) -> np.ndarray:
        """Return simulators for new episodes: the one of a handle whose episode is over, or others that are free."""
        count = len(handles)
        self._largest = max(self._largest, count)
        own = handles[:, 0]
        mine = (
            (own >= 0) & (self._episode[own] == handles[:, 1]) & self._over[own]
            if len(self._over)
            else np.zeros(count, bool)
        )
        needed = count - int(mine.sum())
        free = np.setdiff1d(np.flatnonzero(self._over), own[mine])[:needed]
        if len(free) < needed:
            self._grow(needed - len(free))
            free = np.setdiff1d(np.flatnonzero(self._over), own[mine])[:needed]
        found = own.copy()
        found[~mine] = free
        self._over[found] = False
        return found

    def _grow(self, needed: int) -> None:
        """Make room for new simulators, or give up those that were not used for longest."""
        limit = max(LEAST, 4 * self._largest)
        extra = min(needed, max(0, limit - len(self._over)))
        if extra:
            size = len(self._over) + extra
            for name in ("_rows", "_episode", "_time", "_over", "_used"):
                old = getattr(self, name)
                new = np.zeros((size, *old.shape[1:]), old.dtype)
                new[: len(old)] = old
                setattr(self, name, new)
            self._over[-extra:] = True
            self._seed += [0] * extra
            self._played += [[] for _ in range(extra)]
        for number in np.argsort(np.where(self._over, self._calls + 1, self._used), kind="stable")[
            : needed - extra
        ]:
            self._past[int(number), int(self._episode[number])] = (
                self._seed[number],
                self._played[number],
            )
            self._over[number] = True
        while len(self._past) > PAST:
            self._past.popitem(last=False)

    def _begin(self, numbers: Any, seeds: list[int], *, pictures: bool) -> None:
        """Begin episodes in these simulators."""
        places = np.asarray(numbers)
        self._episode[places] += 1
        self._time[places], self._over[places] = 0, False
        self._used[places] = self._calls
        for number, seed in zip(places.tolist(), seeds, strict=True):
            self._seed[number], self._played[number] = seed, []
        requests = {}
        for worker, mine in self._by_worker(places).items():
            given = [seeds[place] for place in mine]
            request = (places[mine].tolist(), given, pictures)
            requests[worker] = Request("reset", request[0], request)
        self._run(requests)

    def _step(
        self, numbers: np.ndarray, macro: np.ndarray, fresh: np.ndarray, *, pictures: bool
    ) -> None:
        """Run a tick of these simulators."""
        for place, number in enumerate(numbers.tolist()):
            self._played[number].append((macro[place], fresh[place]))
        self._time[numbers] += 1
        self._used[numbers] = self._calls
        requests = {}
        for worker, mine in self._by_worker(numbers).items():
            args = (numbers[mine].tolist(), macro[mine], fresh[mine], pictures)
            requests[worker] = Request("tick", args[0], args)
        self._run(requests)
        over = Row(self._rows[numbers], self.description.sizes).over.any(-1)
        ended = over | (self._time[numbers] >= self.description.horizon)
        self._over[numbers] = ended
        if (ended & np.isfinite(self._rows[numbers]).all(-1)).any():
            self._in_a_row = 0

    def _by_worker(self, numbers: np.ndarray) -> dict[int, np.ndarray]:
        """Return the places of simulators by the worker that holds them."""
        workers = numbers % len(self._workers)
        return {
            worker: np.flatnonzero(workers == worker)
            for worker in range(len(self._workers))
            if (workers == worker).any()
        }

    def _run(self, requests: dict[int, Request]) -> None:
        """Send requests to workers, and keep the rows that they answer."""
        if self.error is not None:
            for request in requests.values():
                self._blank(request.numbers)
            return
        slowest = 0.0
        sent: dict[int, Request] = {}
        try:
            for number, request in requests.items():
                try:
                    self._workers[number].send(request)
                    sent[number] = request
                except Lost as lost:
                    self._lose(number, request, str(lost))
            for number, request in list(sent.items()):
                try:
                    answer = self._workers[number].receive()
                    slowest = max(slowest, answer.seconds)
                    self._keep(number, request, answer)
                except Lost as lost:
                    self._lose(number, request, str(lost))
                del sent[number]
        except SimulatorError as error:
            self.error = error
            for worker in sent:  # the others' answers are not wanted any more
                self._workers[worker].stop()
            for request in requests.values():
                self._blank(request.numbers)
        self.seconds["stepping"] += slowest

    def _keep(self, worker: int, request: Request, answer: Answer) -> None:
        self._rows[request.numbers] = answer.rows
        for number, picture in zip(request.numbers, answer.pictures, strict=False):
            key = (number, int(self._episode[number]), int(self._time[number]))
            self._pictures[key] = picture
        while len(self._pictures) > PICTURES:
            self._pictures.popitem(last=False)
        for place, why in answer.failed.items():
            self._drop(worker, request.numbers[place], why)

    def _lose(self, worker: int, request: Request, why: str) -> None:
        """Drop the episodes of all simulators that a worker held. It is started again by the next request."""
        held = np.arange(len(self._over))
        lost = held[(held % len(self._workers) == worker) & ~self._over]
        for number in sorted({*request.numbers, *lost.tolist()}):
            self._drop(worker, number, why)

    def _drop(self, worker: int, number: int, why: str) -> None:
        """Drop the episode of a simulator, and say so."""
        self._blank([number])
        self.dropped[why.split(":")[0].split(" (")[0]] += 1
        line = (
            f"{self.description.name}, worker {worker}, seed {self._seed[number]}, tick {self._time[number]}: {why}; "
            "the episode is dropped"
        )
        self._reports.append(line)
        self._in_a_row += 1
        if self._in_a_row > FAILURES_IN_A_ROW:
            self._fail_for_good(f"{self._in_a_row} episodes in a row failed; the last: {line}")

    def _blank(self, numbers: list[int]) -> None:
        """Make the rows of failed episodes: cut, with rewards that are not numbers. Some macro is available."""
        row = Row(np.zeros(self.description.sizes.row, np.float32), self.description.sizes)
        row.reward[:], row.ended[:], row.over[1] = np.nan, 1, 1
        row.available[:, 0] = 1
        self._rows[numbers] = row.vector
        self._over[numbers] = True

    def _fail_for_good(self, why: str) -> None:
        self.error = self.error or SimulatorError(f"{self.description.name}: {why}")


def _seed_of(first: int, second: int) -> int:
    """Return a seed from the two words of a random key."""
    return ((first & 0xFFFFFFFF) * 2_654_435_761 + (second & 0xFFFFFFFF)) % 2**31
