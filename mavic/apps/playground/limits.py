"""How much a page may ask for, and the error that refuses a request."""

from __future__ import annotations

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


class RequestError(ValueError):
    """A request of a page or of the user cannot be carried out. The message says why."""
