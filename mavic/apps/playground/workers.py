"""The threads in which programs run, so that the server never waits for one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class Workers:
    """One pool of threads for each sort of work."""

    def __init__(self) -> None:
        self.ticks = ThreadPoolExecutor(1, "ticks")
        self.words = ThreadPoolExecutor(1, "words")
        self.loading = ThreadPoolExecutor(2, "loading")
        self.warming = ThreadPoolExecutor(1, "warming")
        self.recordings = ThreadPoolExecutor(1, "recordings")

    async def run(self, pool: ThreadPoolExecutor, work: Callable[..., T], *given: Any) -> T:
        """Run `work` in a thread of the pool and wait for its result."""
        return await asyncio.get_running_loop().run_in_executor(pool, work, *given)

    def close(self) -> None:
        """Let no more work begin."""
        for pool in (self.ticks, self.words, self.loading, self.warming, self.recordings):
            pool.shutdown(wait=False, cancel_futures=True)
