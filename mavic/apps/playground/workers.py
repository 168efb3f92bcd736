"""The threads in which programs run, so that the server never waits for one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
THREADS = {"ticks": 1, "words": 1, "loading": 2, "warming": 1, "recordings": 1}


class Workers:
    """One pool of threads for each sort of work."""

    def __init__(self) -> None:
        self._pools = {name: ThreadPoolExecutor(count, name) for name, count in THREADS.items()}

    async def run(self, pool: str, work: Callable[..., T], *given: Any) -> T:
        """Run `work` in a thread and wait for its result.

        Args:
            pool: the sort of work: a key of `THREADS`.
            work: the function to call.
            given: its arguments.
        """
        return await asyncio.get_running_loop().run_in_executor(self._pools[pool], work, *given)

    def close(self) -> None:
        """Let no more work begin."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
