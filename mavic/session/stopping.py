"""Ctrl-C and SIGTERM stop a command in the same way. What a point of training has computed is saved first."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(KeyboardInterrupt):
    """The user or the system stopped the command with a signal. `said` is what to tell the user."""

    def __init__(self, number: int = signal.SIGINT, said: str = "stopped") -> None:
        super().__init__(number)
        self.number, self.said = number, said

    @staticmethod
    def status_of(error: KeyboardInterrupt) -> int:
        """Return the exit status of a stopped command: 130 for Ctrl-C, 143 for SIGTERM."""
        return 128 + int(error.number if isinstance(error, Stopped) else signal.SIGINT)


class _Wait:
    """Whether a signal must wait, and the one that does."""

    waiting = False
    pending: int | None = None


@contextlib.contextmanager
def on_signals() -> Iterator[None]:
    """Raise `Stopped` where a signal arrives. Only the main thread can set this up; other threads skip it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _handle) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _handle(number: int, frame: FrameType | None) -> None:
    del frame
    if _Wait.waiting and _Wait.pending is None:
        _Wait.pending = number
        return
    raise Stopped(number)


@contextlib.contextmanager
def after_this(waits: bool = True) -> Iterator[None]:
    """Let a signal wait until the block is done, such as a point and its checkpoint. A second signal does not wait."""
    _Wait.waiting, _Wait.pending = waits, None
    try:
        yield
    finally:
        _Wait.waiting = False
    if _Wait.pending is not None:
        raise Stopped(_Wait.pending)
