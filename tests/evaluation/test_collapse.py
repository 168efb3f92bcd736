"""A team that hardly does its task under a kind: what counts as a collapse, and where it is said."""

from __future__ import annotations

import types

import pytest
from sample_records import KINDS, only_row, score_of

from mavic.apps import cli
from mavic.apps.commands.train import _summary
from mavic.evaluation import collapse
from mavic.experiment.config import ExperimentConfig
from mavic.reporting.tables import group_tables
from mavic.session import session

FIRST = KINDS[0]  # earns a quarter of the base return; the others replace the task


def test_without_a_planner_the_base_return_is_the_measure():
    score = score_of([100.0, 60.0], [1, 1], [0, 0], optimum=None)
    assert collapse.shares_of_base(score) == {FIRST: pytest.approx(0.25)}
    assert collapse.collapses(score) == collapse.shares_of_base(score)
    score["under"][FIRST]["task"] = [90.0, None]
    assert collapse.shares_of_base(score) == {FIRST: pytest.approx(90 / 80)}
    assert collapse.collapses(score) == {}
    assert collapse.shares_of_base(score, 0) == {FIRST: pytest.approx(0.9)}
    assert collapse.shares_of_base(score, 1) == {}
    score["under"][FIRST]["task"] = [None, 15.0]
    assert collapse.collapses(score, 1) == {FIRST: pytest.approx(15 / 60)}


def test_what_obeying_must_cost_is_no_collapse():
    """The best obedient plan earns half of the best plan, so a quarter of the base return is half of it."""
    score = score_of([100.0], [1], [0], optimum=300.0)
    assert collapse.shares_of_base(score) == {FIRST: pytest.approx(0.5)}
    assert collapse.collapses(score) == {}


def test_a_base_return_that_is_not_positive_has_no_shares():
    assert collapse.shares_of_base(score_of([-5.0], [1], [0], optimum=None)) == {}


def test_the_last_line_of_a_training_tells_the_task_under_instructions():
    line = _summary("mavic", score_of([100.0], [1], [0], optimum=None))
    assert line.endswith(f"task under an instruction 25% of base (worst {FIRST} 25%)")
    line = _summary("mavic", score_of([100.0], [1], [0]))
    assert line.endswith(f"task under an instruction 50% of what is possible (worst {FIRST} 50%)")
    said = collapse.sentence(FIRST, 0.25)
    assert said.startswith(f"under {FIRST} the task collapses to 25%") and collapse.HELP in said


@pytest.mark.parametrize(
    ("base", "share", "said"),
    [
        ([100.0, 60.0], 0.5, True),  # earns an eighth
        ([100.0, 60.0], 2.2, False),  # earns more than half
        ([0.0, 0.0], 0.5, False),
        ([-5.0, 1.0], 0.5, False),
        ([None, 100.0], 0.5, True),  # a seed that diverged
    ],
)
def test_mavic_train_prints_a_collapse(base, share, said, tmp_path, monkeypatch, capsys):
    """Of a base return that is not positive, no share is told, and so no collapse."""
    known = [value for value in base if value is not None]
    score = score_of(known, [1] * len(known), [0] * len(known), optimum=None)
    score["base"]["discounted"] = base
    score["under"][FIRST]["task"] = [v and share * v / 4 for v in base]
    result = types.SimpleNamespace(
        config=ExperimentConfig(world="box_pushing"), score=score, diverged=[None]
    )
    monkeypatch.setattr(session, "run", lambda *args, **options: iter([result]))
    cli.main(["train", "box_pushing", "--method", "mavic", "--seeds", "1", "--out", str(tmp_path)])
    out = capsys.readouterr().out
    assert (f"  under {FIRST} the task collapses to" in out) == said
    assert ("task under an instruction" in out) == (sum(known) > 0)
    assert "mavic-default-residual-live-by-kind: base" in out


def test_tables_say_what_a_share_is_of_and_mark_a_collapse(tmp_path):
    tables = group_tables([only_row(tmp_path, [100.0, 80.0], optimum=None)])
    (tables,) = tables.values()
    cell = tables["under"].rows[0][1]
    assert cell[0] == "of base 25.0 % (25.0)" and "collapsed" in cell
    assert not any(line.startswith("share") for line in cell)
    assert "because no best plan is known" in tables["under"].caption
    assert collapse.HELP in tables["under"].caption
    (main,) = (row for row in tables["main"].rows if any("of base" in x for c in row for x in c))
    assert any("1 collapsed" in line for cell in main for line in cell)


def test_with_a_planner_tables_are_as_before(tmp_path):
    (tables,) = group_tables([only_row(tmp_path, [100.0, 80.0])]).values()
    text = str(tables["under"].rows) + tables["under"].caption
    assert "share 15.0 %" in text  # a quarter of 100 and 80, of the best obedient plan's 150
    assert "of base" not in text and "collapsed" not in text
