"""How far the episode of each simulator is: arrays with one entry for each, and which of them are free."""

from __future__ import annotations

from collections import Counter, OrderedDict

import numpy as np

from mavic.simulators.description import Description
from mavic.simulators.processes import Workers

LEAST = 64  # simulators that a lane keeps before the least recently used one is given up
PAST = 512  # episodes that can be replayed after their simulator began another


class Episodes:
    """The simulators of a world by number. Each belongs to a lane and lives in a worker."""

    def __init__(self, description: Description, workers: Workers) -> None:
        """Have no simulators yet."""
        self._workers = workers
        self.rows = np.zeros((0, description.sizes.row), np.float32)
        self.episode = np.zeros(0, np.int32)  # how many it has begun
        self.time = np.zeros(0, np.int32)
        self.over = np.zeros(0, bool)
        self.used = np.zeros(0, np.int64)  # in which call it was used last
        self.lane = np.zeros(0, np.int32)
        self.home = np.zeros(0, np.int32)  # its worker
        self.asked = np.zeros(0, bool)  # whether a worker is asked for it now
        shape = (0, description.horizon, description.sizes.agents)
        self.played = np.zeros(shape, np.int16)  # 2 × macro + whether it was fresh, in each tick
        self.seed: list[int] = []
        self.past: OrderedDict[tuple[int, int], tuple[int, np.ndarray]] = OrderedDict()
        self.calls = 0
        self.beside: dict[int, int] = {}  # how many lanes there are, by lane
        self._largest: Counter[int] = Counter()  # how many a call needed, by lane

    def begin_call(self, numbers: np.ndarray, lane: int) -> None:
        """Keep the simulators of a call [k]: none of them is given up for another of the same call."""
        self.calls += 1
        self._largest[lane] = max(self._largest[lane], len(numbers))
        self.used[numbers] = self.calls

    def acquire(self, handles: np.ndarray, lane: int) -> np.ndarray:
        """Return simulators for new episodes: the one of a handle whose episode is over, or others that are free."""
        count = len(handles)
        self._largest[lane] = max(self._largest[lane], count)
        own = handles[:, 0]
        mine = (
            (own >= 0) & (self.episode[own] == handles[:, 1]) & self.over[own]
            if len(self.over)
            else np.zeros(count, bool)
        )
        needed = count - int(mine.sum())

        def free() -> np.ndarray:
            there = np.flatnonzero(self.over & (self.lane == lane) & ~self.asked)
            return np.setdiff1d(there, own[mine])[:needed]

        found = own.copy()
        if len(chosen := free()) < needed:
            self._grow(needed - len(chosen), lane)
            chosen = free()
        found[~mine] = chosen
        self.over[found] = False
        return found

    def _grow(self, needed: int, lane: int) -> None:
        """Make room for new simulators of a lane, or give up those of it that were not used for longest."""
        present = int((self.lane == lane).sum())
        extra = min(needed, max(0, max(LEAST, 4 * self._largest[lane]) - present))
        if extra:
            size = len(self.over) + extra
            for name in (
                "rows",
                "episode",
                "time",
                "over",
                "used",
                "lane",
                "home",
                "asked",
                "played",
            ):
                old = getattr(self, name)
                new = np.zeros((size, *old.shape[1:]), old.dtype)
                new[: len(old)] = old
                setattr(self, name, new)
            homes = self._workers.of_lane(lane, self.beside.get(lane, 1))
            self.lane[-extra:] = lane
            self.home[-extra:] = [
                homes[place % len(homes)] for place in range(present, present + extra)
            ]
            self.over[-extra:] = True
            self.seed += [0] * extra
        elsewhere = (self.lane != lane) | self.over
        for number in np.argsort(np.where(elsewhere, self.calls + 1, self.used), kind="stable")[
            : needed - extra
        ]:
            self.past[int(number), int(self.episode[number])] = (
                self.seed[number],
                self.played[number, : self.time[number]].copy(),
            )
            self.over[number] = True
        while len(self.past) > PAST:
            self.past.popitem(last=False)

    def by_worker(self, numbers: np.ndarray) -> dict[int, np.ndarray]:
        """Return the places of simulators by the worker that holds them."""
        homes = self.home[numbers]
        return {int(home): np.flatnonzero(homes == home) for home in np.unique(homes)}
