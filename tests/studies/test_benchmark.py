"""What `mavic bench` does before it times: enough updates, but no more than there is patience for."""

from __future__ import annotations

import time

import pytest
from rich.console import Console

from mavic.studies import benchmark


@pytest.mark.parametrize("batch, horizon, updates", [(128, 100, 25), (256, 200, 6), (4096, 200, 1)])
def test_a_timed_piece_is_shorter_where_updates_are_long(batch, horizon, updates):
    assert benchmark._updates(batch * horizon) == updates


def test_the_warm_up_ends_after_its_updates_or_with_its_patience():
    quiet = Console(quiet=True)
    calls: list[int] = []
    made = benchmark._warm_up(lambda: calls.append(1), 25, 60.0, "quick", quiet)
    assert made == benchmark.WARM_UP == 25 * len(calls)

    made = benchmark._warm_up(lambda: time.sleep(0.02), 6, 0.05, "slow", quiet)
    assert 6 <= made <= 18
