"""What tests of several folders share."""

from __future__ import annotations

import jax
import pytest

# Most programs here are large and run briefly: half the compile time, the same numbers up to rounding.
jax.config.update("jax_disable_most_optimizations", True)
jax.devices()  # settled: a command that would make devices of the cores finds one, as the other tests do

# Files that train teams of the same shapes share a process, so that what one compiled the other finds.
TOGETHER = dict.fromkeys(("test_session.py", "test_cli.py"), "teams")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file's tests stay in one process."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(TOGETHER.get(item.path.name, str(item.path))))
