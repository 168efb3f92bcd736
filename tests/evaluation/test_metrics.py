"""The table of metrics: sums by hand, one division, and a new row that appears everywhere."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sample_records import KINDS, lines_of

from mavic.evaluation import evaluate, metrics
from mavic.evaluation.metrics import METRICS, PAIRS, UNDER, Metric, Ratio
from mavic.evaluation.quantities import EPISODES, Quantity, Tally
from mavic.experiment import records
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import METHODS
from mavic.reporting.rows import table
from mavic.reporting.tables import group_tables
from mavic.reporting.writers import FILES, Contents
from mavic.types import AlsoHeld, Timestep
from tools import definitions

ROOT = Path(__file__).parents[2]
CONFIG = ExperimentConfig()


def played() -> Tally:
    """Two agents, one environment, five ticks: an episode of two ticks, one of two, and a tick that belongs to none."""

    def column(*values):
        return jnp.asarray(values)[:, None]

    unused = dict.fromkeys(Timestep.__dataclass_fields__)
    rows = {
        **unused,
        "alive": column(True, True, True, True, False),
        "time": column(0, 1, 0, 1, 0),
        "task_reward": column(1.0, 10.0, 2.0, 4.0, 99.0),
        "terminal": column(False, True, False, False, True),
        "truncated": column(False, False, False, True, False),
        "events": column([0.0], [1.0], [0.0], [0.0], [1.0]),
        "kind": column([0, 0], [1, 0], [2, 2], [2, 2], [2, 2]),
        "fresh": column([True, True], [True, True], [True, False], [True, True], [True, True]),
        "complied": column([True, True], [False, True], [True, True], [True, False], [True, True]),
        "macro": column([0, 1], [0, 1], [1, 0], [1, 1], [1, 1]),
        "closed": column(0, 1, 0, 2, 2),
        "followed": column(False, False, False, True, True),
    }
    return Tally(
        rows=Timestep(**rows),
        gamma=jnp.float32(0.5),
        kinds=3,
        twins=jnp.zeros((3, 2, 2), bool).at[2, :, 1].set(True),
        named=jnp.zeros((3, 2, 2), bool).at[1, :, 0].set(True),
        addressed=jnp.array([[False, False], [True, False], [True, True]]),
        value_error=jnp.array([-1.0, -3.0]),
        realised=jnp.array([-4.0, -12.0]),
    )


@pytest.mark.parametrize(
    ("name", "numerator", "denominator", "value"),
    [
        ("base", 1 + 10 / 2 + 2 + 4 / 2, 2, 5.0),
        ("undiscounted", 17, 2, 8.5),
        ("solved", 1, 2, 0.5),
        ("length", 4, 2, 2.0),
        ("per_decision", 2, 4, 0.5),
        ("per_step", 3, 5, 0.6),
        (
            "latency",
            3,
            3,
            1.0,
        ),  # cook 0 never obeys kind 1; cook 1 never chooses what kind 2 allows
        ("solved_instructed", 1, 2, 0.5),
        ("leak", -2, 8, -0.25),
        ("live", 10, 2, 5.0),
        ("under_task", 10, 2, 5.0),
        ("under_solved", 1, 2, 0.5),
    ],
)
def test_sums_by_hand(name, numerator, denominator, value):
    (found,) = metrics.measure([METRICS[name]], played()).values()
    assert (float(found.numerator), float(found.denominator)) == (numerator, denominator)
    assert found.value() == pytest.approx(value)


def test_two_instructions_count_as_obeyed_if_both_were_followed():
    every = played()

    def obeyed(closed, followed):
        columns = (jnp.asarray(values)[:, None] for values in (closed, followed))
        also = AlsoHeld(**dict(zip(("closed", "followed"), columns, strict=True)), **unused)
        rows = dataclasses.replace(every.rows, also=also)
        metric = METRICS["pairs_obeyed"]
        return metrics.measure([metric], dataclasses.replace(every, rows=rows))[metric.name]

    unused = dict.fromkeys(("kind", "phrase", "complied"))
    # of the two episodes the first ends with one that was not followed
    found = obeyed([0, 2, 0, 1, 1], [False, True, False, True, True])
    assert (float(found.numerator), float(found.denominator)) == (1, 2)
    assert float(obeyed([0, 2, 0, 1, 1], [False, True, False, False, True]).numerator) == 0
    # the second goes on where the first is counted
    assert float(obeyed([0, 2, 0, 0, 1], [False, True, False, True, True]).numerator) == 0
    with pytest.raises(ValueError, match="two instructions"):
        metrics.measure([METRICS["pairs_obeyed"]], every)


def test_instructions_are_counted_by_kind():
    found = metrics.measure([METRICS["compliance"]], played())["compliance"]
    assert found.denominator.tolist() == [0, 1, 1] and found.numerator.tolist() == [0, 0, 1]


def test_the_use_of_the_twin_is_counted_while_the_kind_holds_or_while_nothing_is_asked():
    def shares(kind):
        every = played()
        rows = dataclasses.replace(every.rows, kind=jnp.broadcast_to(jnp.asarray(kind), (5, 1, 2)))
        every = dataclasses.replace(every, rows=rows)
        return metrics.measure([METRICS["under_twin"]], every)["under_twin"]

    found = shares([2, 2])  # in four ticks, macro 1 runs twice and three times
    assert (found.numerator[2], found.denominator[2]) == (5, 8)
    assert found.numerator[1] == 0  # kind 1 has no twin
    assert shares([2, 0]).denominator[2] == 4  # only cook 0 is addressed
    nothing_asked = shares([0, 0])
    assert (nothing_asked.numerator[2], nothing_asked.denominator[2]) == (5, 8)
    assert nothing_asked.denominator[1] == 4  # kind 1 would address cook 0 alone
    mixed = metrics.measure([METRICS["under_twin"]], played())["under_twin"]
    assert mixed.denominator[2] == 5  # ticks without an instruction are left out


def test_the_use_of_what_a_kind_names_is_counted_for_those_that_it_addresses():
    found = metrics.measure([METRICS["under_use"]], played())["under_use"]
    assert (found.numerator[1], found.denominator[1]) == (
        1,
        3,
    )  # cook 0 under a kind: macros 0, 1, 1
    assert found.numerator[2] == 0  # kind 2 names nothing here


def test_division_adds_kinds_first_and_gives_nan_for_nothing():
    counts = Ratio(np.array([[0.0, 1.0, 3.0], [0.0, 0.0, 0.0]]), np.array([[0.0, 4.0, 4.0]] * 2))
    assert counts.value().tolist() == [0.5, 0.0]
    assert np.isnan(Ratio(np.array([0.0]), np.array([0.0])).value()).all()


def test_every_metric_belongs_to_a_section_of_the_score_line():
    for name, metric in METRICS.items():
        assert name == metric.name and metric.section in metrics.SECTIONS


def test_the_page_of_definitions_holds_the_table():
    page = (ROOT / "docs" / "record" / "definitions.md").read_text(encoding="utf-8")
    assert definitions.markdown() in page


def test_random_and_vanilla_hear_nothing():
    assert {name for name, method in METHODS.items() if not method.hears} == {"vanilla", "random"}


def test_a_new_row_appears_in_scores_tables_csv_and_definitions(monkeypatch, tmp_path):
    moves = Metric(
        name="macros_started",
        section="base",
        key="macros_started",
        numerator=Quantity("macros started", lambda p: (p.rows.fresh.any(-1) & p.rows.alive).sum()),
        denominator=EPISODES,
        title="Macros",
        caption="ticks per episode in which a macro starts",
        table="task",
    )
    monkeypatch.setitem(METRICS, moves.name, moves)
    sums = metrics.measure(metrics.measured(metrics.FREE), played())
    two_runs = jax.tree.map(lambda x: np.stack([x, 2 * x]), sums)
    totals = evaluate._Totals(episodes=np.array([2.0, 4.0]), ratios=two_runs)
    base = evaluate._section_entries("base", totals, ("none", *KINDS))
    found = base["macros_started"]
    assert found.tolist() == [2, 2]
    greedy = evaluate._section_entries("base_greedy", totals, ("none", *KINDS))
    assert "macros_started" in greedy

    lines = lines_of(CONFIG, [1, 2], [1, 1], [0, 0])
    lines[-1]["base"]["macros_started"] = found
    records.write(tmp_path / "a.jsonl", lines)
    rows = table([records.read(tmp_path / "a.jsonl")])
    _, write = FILES["csv"]
    (line,) = csv.DictReader(io.StringIO(write(Contents(rows=rows))))
    assert float(line["macros_started_mean"]) == pytest.approx(found.mean(), rel=1e-5)
    (grids,) = group_tables(rows).values()
    grid = grids["task"]
    assert "Macros" in grid.header and f"{moves.title}: {moves.caption}." in grid.caption
    assert "| macros_started | uninstructed | macros started | episodes |" in definitions.markdown()


def late(section: str) -> Metric:
    """A row that no other code knows of, for episodes in which instructions are held."""
    return Metric(
        name=f"{section}_late",
        section=section,
        key="late",
        numerator=Quantity("late ticks", lambda t: (t.rows.time * t.rows.alive).sum()),
        denominator=EPISODES,
        title="Late",
        caption="ticks that come late, per episode",
        line="late",
        over_kinds=True,
        optional=True,
    )


def entries_of(section: str) -> dict[str, np.ndarray]:
    """The entries of a kind or pair in the score line: two runs, and in the second the kind replaces the task."""
    every = played()
    also = dict.fromkeys(("kind", "phrase", "complied"))
    also |= {name: getattr(every.rows, name) for name in ("closed", "followed")}
    both = dataclasses.replace(every, rows=dataclasses.replace(every.rows, also=AlsoHeld(**also)))
    sums = metrics.measure(metrics.measured([section]), both)
    two_runs = jax.tree.map(lambda x: np.stack([x, x]), sums)
    totals = evaluate._Totals(episodes=np.array([2.0, 2.0]), ratios=two_runs)
    by_section = {section: totals, "base": totals}
    return evaluate._held_entries(section, by_section, 1, np.array([False, True]), twin=True)


def texts_of(path: Path, section: str, kind: str, more: dict) -> dict[str, str]:
    """The tables of a record whose kind or pair has these entries too."""
    lines = lines_of(CONFIG, [300.0, 300.0], [1, 1], [0, 0])
    known = {"task": [200.0, 100.0], "solved": [1.0, 0.5], "obeyed": [1.0, 0.75]}
    lines[-1][section] = {kind: {**known, **more}}
    records.write(path, lines)
    contents = Contents(rows=table([records.read(path)]))
    return {name: write(contents) for name, (_, write) in FILES.items()}


@pytest.mark.parametrize(("section", "kind"), [(UNDER, KINDS[0]), (PAIRS, "a+b")])
def test_a_new_row_under_held_instructions_appears_everywhere(section, kind, monkeypatch, tmp_path):
    path, metric = tmp_path / "a.jsonl", late(section)
    before = texts_of(path, section, kind, {})
    monkeypatch.setitem(METRICS, metric.name, metric)

    found = entries_of(section)
    assert found["late"][0] == 1.0 and np.isnan(found["late"][1])

    made = texts_of(path, section, kind, {"late": [1.0, 3.0]})
    assert "late 2.00 (1.00)" in made["markdown"] and "late 2.00 (1.00)" in made["latex"]
    assert f"late: {metric.caption}" in made["markdown"]
    (entry,) = next(iter(json.loads(made["json"]).values())).values()
    assert (entry[section][kind]["late_mean"], entry[section][kind]["late_min"]) == (2, 1)
    assert (entry[f"{section}_late_mean"], entry[f"{section}_late_min"]) == (2, 1)
    in_csv = section == UNDER  # CSV files have no pairs
    assert (f"{metric.name}_mean" in made["csv"]) == in_csv
    assert (f"{metric.name}_mean" in made["kinds_csv"]) == in_csv
    assert f"| {metric.name} | {metrics.SECTIONS[section].text} |" in definitions.markdown()

    older = texts_of(path, section, kind, {})
    assert (older["markdown"], older["latex"]) == (before["markdown"], before["latex"])
