"""The server gives memory back. The C library keeps what compilations and GIFs used, for each of its threads.

Otherwise the server keeps the memory of the largest things it ever made. Only glibc (Linux) offers these calls;
elsewhere they do nothing.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

ARENA_MAX = -8  # glibc's number of the option: how many heaps threads may share
ARENAS = 2


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
