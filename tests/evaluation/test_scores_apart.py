"""Published scores once more, by `tools.apart`: a plain loop over the environment and `act`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import apart

ROOT = Path(__file__).parents[2]
TEAMS = [(w, m) for w in ("box_pushing", "warehouse", "overcooked") for m in ("mavic", "naive")]


@pytest.mark.long
@pytest.mark.parametrize(("world", "method"), TEAMS)
def test_a_plain_loop_finds_the_published_scores(world, method):
    found = list(apart.score_again(f"{world}/{method}", ROOT / "results" / world))
    assert len(found) > 9
    assert not [one for one in found if one.errors > apart.ERRORS]
