"""Which instructions hold after a line: an end and a correction reach what they are about and nothing else."""

from __future__ import annotations

import pytest

from mavic.language.conversation.decision import EVERYTHING, Asked, Decision
from mavic.language.conversation.settling import Rules, settle

AGENTS = frozenset({0, 1})
RULES = Rules(
    clash=lambda one, other: "" if {one.kind, other.kind} & {"left", "plate"} else "clash",
    commands=("stay", "chop"),
    meant=lambda one: AGENTS if one.agents is None else AGENTS & {*one.agents},
)
STAY, LEFT, PLATE = Asked("stay"), Asked("left"), Asked("plate")


@pytest.mark.parametrize(
    "held, decision, holds, fresh",
    [
        ([STAY], Decision(ends=EVERYTHING), [], []),
        ([STAY], Decision(ends=EVERYTHING, of=(0,)), [("stay", (1,))], [("stay", (1,))]),
        ([Asked("stay", (1,))], Decision(ends=("stay",), of=(0,)), [("stay", (1,))], []),
        ([Asked("stay", (1,))], Decision(ends=("stay",), of=(1,)), [], []),
        ([LEFT, PLATE], Decision(ends=("left",)), [("plate", None)], []),
        (
            [LEFT, PLATE],
            Decision(now=(Asked("plate", (0,)),), corrects=(PLATE,)),
            [("left", None), ("plate", (0,))],
            [("plate", (0,))],
        ),
        ([LEFT], Decision(now=(PLATE,), ends=("left",)), [("plate", None)], [("plate", None)]),
    ],
)
def test_what_holds_then(held, decision, holds, fresh):
    settled = settle(RULES, held, decision)
    assert [one[:2] for one in settled.holds] == holds
    assert [one[:2] for one in settled.fresh] == fresh
    assert [*settled.replaced] == [one for one in held if one not in settled.holds]


def test_a_time_is_kept_where_it_ends_for_another():
    (left,) = settle(RULES, [STAY._replace(hold=5)], Decision(ends=("stay",), of=(0,))).holds
    assert left.hold == 5
