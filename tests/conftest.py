"""What tests of several folders share."""

from __future__ import annotations

import jax

# Most programs here are large and run briefly: half the compile time, the same numbers up to rounding.
jax.config.update("jax_disable_most_optimizations", True)
jax.devices()  # settled: a command that would make devices of the cores finds one, as the other tests do
