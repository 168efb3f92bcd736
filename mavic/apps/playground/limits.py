"""How much a page may ask for."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

LONGEST_TEXT = 400  # characters of an instruction
LONGEST_MESSAGE = 1 << 20  # bytes; a longer message ends the connection
LONGEST_HOLD = 1000  # ticks
LONGEST_RECORDING = 500  # ticks that a session keeps
LONGEST_GIF = 120  # ticks
LONGEST_LOG = 20  # sentences that an address holds
LARGEST_SEED = 2**31 - 1
CONNECTIONS = 100  # pages open at once
FASTEST, SLOWEST, NORMAL = 10.0, 0.5, 3.0  # ticks per second
MESSAGES_PER_SECOND, BURST = 40, 80  # further messages are ignored, and the page is informed


@dataclass(kw_only=True)
class TokenBucket:
    """How many messages a page may still send. It refills with time."""

    left: float = float(BURST)
    updated: float = field(default_factory=time.monotonic)
    ignored: int = 0
    informed: float = 0.0

    def take(self) -> bool:
        """Return whether one more message is allowed, and count it."""
        now = time.monotonic()
        self.left = min(float(BURST), self.left + (now - self.updated) * MESSAGES_PER_SECOND)
        self.updated = now
        if self.left < 1:
            self.ignored += 1
            return False
        self.left -= 1
        return True

    def complaint(self) -> str:
        """Return what to tell the page about ignored messages: a text at most once a second, else ""."""
        now = time.monotonic()
        if not self.ignored or now - self.informed < 1:
            return ""
        text = f"too many messages at once: {self.ignored} were ignored"
        self.ignored, self.informed = 0, now
        return text
