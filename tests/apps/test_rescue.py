"""The rescue world of the guide: a sound environment and file, and the best plans."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mavic.envs import api
from mavic.envs.conformance import check_env
from mavic.experiment import check
from mavic.rollout.plan import plan

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def rescue(monkeypatch):
    monkeypatch.setattr(api, "REGISTERED", {})
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delitem(sys.modules, "rescue", raising=False)
    import rescue

    return rescue


@pytest.mark.long
def test_the_world_conforms_and_its_file_has_no_mistake(rescue):
    check_env(rescue.Rescue(), ticks=60)
    found = check.check("rescue", episodes=16)
    assert [str(one) for one in found.findings] == []


# The base plan takes 8 ticks. Without one of the corridors it takes 11, and 10 if the left one leads in only.
BEST = {
    None: 56.4984,
    "avoid-left-corridor": 55.2968,
    "avoid-right-corridor": 55.2968,
    "left-is-one-way": 55.7583,
    "robot-2-keeps-off-the-beam": 56.4984,
}


@pytest.mark.long
@pytest.mark.parametrize("kind", BEST, ids=str)
def test_the_best_plans(rescue, kind):
    found = plan(rescue.Rescue(), kind, gamma=0.99, most=rescue.most)
    assert found.exact and found.value == pytest.approx(BEST[kind], abs=1e-4)


@pytest.mark.long
def test_a_number_only_bounds_the_best_plan(rescue):
    found = plan(rescue.Rescue(), gamma=0.99, most=60.0, width=500)
    assert not found.exact and found.bound > found.value == pytest.approx(BEST[None], abs=1e-4)
