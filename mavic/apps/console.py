"""Where commands write: results to standard output, complaints to standard error."""

from __future__ import annotations

from rich.console import Console

OUT = Console(highlight=False)
ERR = Console(stderr=True, highlight=False)
