"""The server gives memory back. The C library keeps what compilations and GIFs used, for each of its threads.

Without this the server's memory after an hour is that of the largest things it ever made. Only glibc (Linux) offers
these calls; elsewhere nothing happens.
"""

from __future__ import annotations

import asyncio
import ctypes
import sys
from functools import cache
from typing import Any

ARENA_MAX = -8  # glibc's number of the option: how many heaps threads may share
ARENAS = 2
TRIM_SECONDS = 60.0


@cache
def _libc() -> Any:
    if sys.platform != "linux":
        return None
    found = ctypes.CDLL(None)
    return found if hasattr(found, "malloc_trim") and hasattr(found, "mallopt") else None


def share_heaps() -> None:
    """Let all threads share few heaps, so that what one frees another can use."""
    if libc := _libc():
        libc.mallopt(ARENA_MAX, ARENAS)


def trim() -> None:
    """Give free memory back to the system. This takes milliseconds."""
    if libc := _libc():
        libc.malloc_trim(0)


async def keep_trimming() -> None:
    """Give memory back once a minute, in a thread."""
    while True:
        await asyncio.sleep(TRIM_SECONDS)
        await asyncio.to_thread(trim)
