"""What tests of several folders share."""

from __future__ import annotations

import jax
import pytest


@pytest.fixture(scope="module")
def quick_compiles():
    """For large programs that run briefly: half the compile time, the same numbers up to rounding."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
