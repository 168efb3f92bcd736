"""From records to tables and figures: every number by hand, the same bytes twice, and what is missing said."""

import csv
import dataclasses
import io
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from mavic.experiments.config import ExperimentConfig
from mavic.experiments.records import Record, RecordError, read, write
from mavic.reporting import report as reporting

KINDS = ("go-small-boxes", "push", "stay")
VERSIONS = {"mavic": "0.1.0", "python": "3.11.9", "jax": "0.10.2", "device": "cpu"}


def score_of(
    base, compliance, leak, *, optimum=300.0, given=1000, kinds=KINDS, greedy=None, episodes=96_000
):
    """A score line: every kind is given equally often and followed alike."""
    seeds = len(base)

    def task(values):
        return {
            "episodes": 1024,
            "discounted": list(values),
            "undiscounted": [v + 5 for v in values],
            "solved": [0.75] * seeds,
            "length": [6.0 + s for s in range(seeds)],
        }

    def live(rates):
        return {
            "episodes": 512,
            "per_instruction": list(rates),
            "per_decision": [1 - (1 - r) / 10 for r in rates],
            "per_step": [1 - (1 - r) / 4 for r in rates],
            "given": {kind: [given] * seeds for kind in kinds},
            "followed": {kind: [given * r for r in rates] for kind in kinds},
        }

    return {
        "type": "score",
        "episodes": episodes,
        "optimum": optimum,
        "base": task(base),
        "base_greedy": task([v + 1 for v in base]),
        "compliance": live(compliance),
        "compliance_greedy": live(greedy or compliance),
        "leak": {"none": list(leak), **{kind: [2 * x for x in leak] for kind in kinds}},
        "held": {
            "none": {"task": list(base), "solved": [1.0] * seeds},
            kinds[0]: {"task": [v / 4 for v in base], "solved": [0.5] * seeds},
            **{kind: {"task": [None] * seeds, "solved": [None] * seeds} for kind in kinds[1:]},
        },
    }


def curve_of(base, compliance, points=4, episodes=96_000):
    """Curve lines that rise to the final numbers."""
    return [
        {
            "type": "curve",
            "episodes": episodes * i // points,
            "base": [b * i / points for b in base],
            "compliance": [c * i / points for c in compliance],
            "value": [[b, 0.0] for b in base],
            "steps_per_second": 1e5,
        }
        for i in range(1, points + 1)
    ]


def lines_of(cell, base, compliance, leak, *, finished=True, preset=None, **more):
    """A record as lines."""
    run = {
        "type": "run",
        "cell": dataclasses.asdict(cell),
        "preset": preset or {"episodes": 96_000, "gamma": 0.995},
        "seeds": list(range(len(base))),
        "versions": VERSIONS,
    }
    return [
        run,
        *curve_of(base, compliance),
        *([score_of(base, compliance, leak, **more)] if finished else []),
    ]


def save(folder: Path, cell: ExperimentConfig, base, compliance, leak, **more) -> Path:
    path = folder / f"{cell.name()}.jsonl"
    write(path, lines_of(cell, base, compliance, leak, **more))
    return path


def record_of(tmp_path, cell, base, compliance, leak, **more) -> Record:
    return read(save(tmp_path, cell, base, compliance, leak, **more))


def only_row(tmp_path, base, compliance=None, leak=None, **more) -> reporting.Row:
    compliance = compliance or [1.0] * len(base)
    leak = leak or [0.0] * len(base)
    (row,) = reporting.table(
        [record_of(tmp_path, ExperimentConfig(), base, compliance, leak, **more)]
    )
    return row


def study(folder: Path) -> None:
    """A small study: two networks, one record unfinished."""
    for network, drop in (("protected", 0.0), ("shared", 0.5)):
        for method, base, told in (
            ("mavic", [291, 292, 290], 0.99),
            ("naive", [19, 150, 280], 0.4),
            ("vanilla", [292, 291, 292], 0.2),
        ):
            rates = [told - drop * told - 0.01 * s for s in range(3)]
            save(
                folder,
                ExperimentConfig(method=method, network=network),
                base,
                rates,
                [0.01, 0.02, 0.03],
            )
    save(
        folder,
        ExperimentConfig(method="switch"),
        [1, 2, 3],
        [0.5, 0.5, 0.5],
        [0.0, 0.1, 0.2],
        finished=False,
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "box_pushing"
    study(folder)
    return folder, reporting.report(folder)


def test_mean_std_and_min_by_hand(tmp_path):
    row = only_row(tmp_path, [290.0, 292.0, 288.0, 290.0], [0.9, 1.0, 0.8, 0.9])
    assert row.base.mean == pytest.approx(290)
    assert row.base.std == pytest.approx(math.sqrt(8 / 3))  # squares 0 + 4 + 4 + 0, n − 1 = 3
    assert row.base.min == 288
    assert row.share.mean == pytest.approx(290 / 300)
    assert row.share.min == pytest.approx(0.96)
    assert row.compliance.mean == pytest.approx(0.9)
    assert row.compliance.std == pytest.approx(math.sqrt(0.02 / 3))
    assert row.per_decision.mean == pytest.approx(0.99)
    assert row.per_step.mean == pytest.approx(0.975)
    assert row.by_kind["stay"].mean == pytest.approx(0.9)
    assert row.by_kind["stay"].min == pytest.approx(0.8)
    assert row.given == (3000,) * 4
    assert row.undiscounted.mean == pytest.approx(295)
    assert row.length.mean == pytest.approx(7.5)
    assert row.base_greedy.mean == pytest.approx(291)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        # of 5 draws with probability 1/5 each, 10 comes up 0 times in 33 % and at most 3 times in 99.3 %, at most
        # twice in 94.2 %: the 2.5 % quantile of the mean is 0, the 97.5 % quantile 3 · 10 / 5
        ([0.0, 0.0, 0.0, 0.0, 10.0], 0.0, 6.0),
        # four equal cases 0, 1/2, 1/2, 1
        ([0.0, 1.0], 0.0, 1.0),
        # both extremes have probability 1/27 > 2.5 %
        ([0.0, 3.0, 6.0], 0.0, 6.0),
    ],
)
def test_interval_is_the_percentile_bootstrap(tmp_path, values, low, high):
    row = only_row(tmp_path, values)
    assert (row.base.low, row.base.high) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize("values", [[291.3] * 10, [0.1] * 3, [291.98]])
def test_seeds_that_tie_and_single_seeds_give_the_point(tmp_path, values):
    row = only_row(tmp_path, values, leak=values)
    assert row.base.low == row.base.high == row.base.mean == pytest.approx(values[0])
    if len(values) == 1:
        assert math.isnan(row.base.std)
    else:
        assert row.base.std == pytest.approx(0)


def test_columns_that_vary_do_not_disturb_those_that_tie():
    tied, varied, missing = reporting.estimates(
        np.array([[0.1, 1.0, np.nan], [0.1, 2.0, 1.0], [0.1, 3.0, 1.0]])
    )
    assert tied.low == tied.high == tied.mean
    assert varied.low < varied.mean < varied.high
    assert math.isnan(missing.mean) and math.isnan(missing.low) and math.isnan(missing.high)


def test_leak_is_compared_with_vanilla(tmp_path):
    def gap(mavic, vanilla):
        records = [
            record_of(
                tmp_path,
                ExperimentConfig(method="mavic"),
                [1] * len(mavic),
                [1] * len(mavic),
                mavic,
            ),
            record_of(
                tmp_path,
                ExperimentConfig(method="vanilla"),
                [1] * len(vanilla),
                [1] * len(vanilla),
                vanilla,
            ),
        ]
        first, second = reporting.table(records)
        assert second.leak_over_vanilla is None
        return first.leak_over_vanilla

    found = gap([0.5, 0.5], [0.0, 1.0])  # the difference of means is 1/2, 0 or −1/2
    assert (found.mean, found.low, found.high) == (0.0, -0.5, 0.5)
    assert found.contains_zero
    assert gap([0.5], [0.0, 0.25]) is None  # of one seed nobody knows how far it strays
    assert gap([0.5, 0.25], [0.0]) is None
    assert not gap([0.3, 0.3], [0.2, 0.2]).contains_zero


def test_leak_without_vanilla_or_with_vanilla_of_another_setting_is_not_compared(tmp_path):
    records = [
        record_of(tmp_path, ExperimentConfig(method="mavic"), [1, 2], [1, 1], [0.1, 0.2]),
        record_of(
            tmp_path,
            ExperimentConfig(method="vanilla", network="shared"),
            [1, 2],
            [1, 1],
            [0.1, 0.2],
        ),
        record_of(
            tmp_path, ExperimentConfig(method="vanilla", rule="add"), [1, 2], [1, 1], [0.1, 0.2]
        ),
    ]
    assert [r.leak_over_vanilla for r in reporting.table(records)] == [None, None, None]


def test_who_is_told_nothing_has_no_values_of_instructions(tmp_path):
    told, deaf = reporting.table(
        record_of(tmp_path, ExperimentConfig(method=method), [1, 2], [1, 1], [0.1, 0.2])
        for method in ("mavic", "vanilla")
    )
    assert told.leak_by_kind and not deaf.leak_by_kind and deaf.leak.mean == pytest.approx(0.15)


def test_compliance_while_learning_is_shown_only_where_it_was_asked_so(tmp_path):
    """Switch and vanilla are trained once for several tests, and watched in one of them."""
    for method, schedule, shown in (
        ("switch", "live", True),
        ("switch", "paper", False),
        ("vanilla", "paper", False),
        ("mavic", "paper", True),
    ):
        cell = ExperimentConfig(method=method, schedule=schedule)
        (row,) = reporting.table([record_of(tmp_path, cell, [1, 2], [1, 1], [0.1, 0.2])])
        assert np.isfinite(row.curve.compliance).all() == shown, cell
        assert np.isfinite(row.curve.base).all()


def test_a_random_policy_is_one_sample_however_many_seeds(tmp_path):
    cell = ExperimentConfig(method="random")
    (row,) = reporting.table([record_of(tmp_path, cell, [7, 7, 7], [0.5] * 3, [0.1] * 3)])
    assert row.base.values == (7.0,) and math.isnan(row.base.std) and len(row.given) == 1


def test_vanilla_without_overlap_stands_for_both(tmp_path):
    records = [
        record_of(tmp_path, ExperimentConfig(overlap=True), [1, 2], [1, 1], [0.1, 0.1]),
        record_of(tmp_path, ExperimentConfig(method="vanilla"), [1, 2], [1, 1], [0.3, 0.3]),
    ]
    overlap = next(r for r in reporting.table(records) if r.cell.overlap)
    assert overlap.leak_over_vanilla.mean == pytest.approx(-0.2)


def test_table_json_layout(made):
    _, paths = made
    found = json.loads(paths.json.read_text())
    assert list(found) == [
        "tuned/protected/live/by-kind",
        "tuned/shared/live/by-kind",
    ]
    headline = found["tuned/protected/live/by-kind"]
    assert list(headline) == ["mavic", "naive", "vanilla"]
    assert list(headline["mavic"]) == [
        "base_mean", "base_std", "base_min", "base_ci", "share_of_optimum", "compliance_mean", "compliance_std",
        "compliance_min", "compliance_ci", "compliance_per_decision", "compliance_per_step", "compliance_greedy",
        "leak", "seeds", "episodes",
    ]  # fmt: skip
    mavic = headline["mavic"]
    assert mavic["base_mean"] == 291 and mavic["base_std"] == 1 and mavic["base_min"] == 290
    assert mavic["base_ci"] == [290, 292]
    assert mavic["share_of_optimum"] == 0.97
    assert mavic["compliance_mean"] == 0.98 and mavic["compliance_min"] == 0.97
    assert mavic["compliance_ci"] == [0.97, 0.99]
    assert mavic["compliance_per_decision"] == 0.998 and mavic["compliance_per_step"] == 0.995
    assert mavic["leak"] == 0.02
    assert mavic["seeds"] == 3 and mavic["episodes"] == 96_000


def test_groups_stand_in_order_the_headline_first(tmp_path):
    cells = [
        ExperimentConfig(overlap=True),
        ExperimentConfig(preset="paper", network="shared"),
        ExperimentConfig(rule="add"),
        ExperimentConfig(schedule="paper"),
        ExperimentConfig(network="shared"),
        ExperimentConfig(method="vanilla"),
        ExperimentConfig(),
    ]
    rows = reporting.table(record_of(tmp_path, cell, [1, 1], [1, 1], [0, 0]) for cell in cells)
    assert {k: list(v) for k, v in json.loads(reporting.json_text(rows)).items()} == {
        "tuned/protected/live/by-kind": ["mavic", "vanilla"],
        "tuned/shared/live/by-kind": ["mavic"],
        "tuned/protected/paper/by-kind": ["mavic"],
        "tuned/protected/live/add": ["mavic"],
        "tuned/protected/live/by-kind/overlap": ["mavic"],
        "paper/shared/live/by-kind": ["mavic"],
    }
    assert [group.key for group in reporting.grids(rows)] == list(
        json.loads(reporting.json_text(rows))
    )


def test_numbers_that_are_not_known_are_null(tmp_path):
    row = only_row(tmp_path, [290.0], leak=[math.inf], optimum=None)
    entry = json.loads(reporting.json_text([row]))["tuned/protected/live/by-kind"]["mavic"]
    assert entry["share_of_optimum"] is None and entry["leak"] is None and entry["base_std"] is None
    assert entry["base_ci"] == [290, 290]


def test_labels_and_paper_figures(made):
    _, paths = made
    text = paths.markdown.read_text()
    protected, shared = text.split("## tuned/")[1:3]
    assert "| dual<br>(naive,<br>protected) |" in protected and "| naive |" not in protected
    assert "| naive |" in shared and "dual" not in shared
    assert "288.32<br>± 4.10<br>50 ± 0.14 %" in protected
    assert protected.count("270.60") == 0 and shared.count("270.60<br>± 5.68<br>5 ± 5 %") == 1
    assert "(not told)" in protected
    for fact in (
        "3 seeds (0–2)",
        "96,000 training episodes",
        "1,024 episodes",
        "3,000 instructions",
        "jax 0.10.2",
    ):
        assert fact in protected.split("### The task")[0]
    assert f"{len(KINDS) * 1000:,}" in protected


def test_paper_table_is_whole():
    assert set(reporting.PAPER) == {"box_pushing", "warehouse", "overcooked"}
    for world in reporting.PAPER.values():
        assert set(world) == {"mavic", "naive", "switch", "vanilla"}
        assert {m for m, figure in world.items() if figure.compliance is None} == {"vanilla"}
        assert all(
            0 <= (f.compliance or 0) <= 1 and 0 <= (f.compliance_std or 0) < 1
            for f in world.values()
        )


def test_csv_holds_every_row_and_kind(made):
    _, paths = made
    lines = list(csv.DictReader(paths.csv.read_text().splitlines()))
    assert len(lines) == 6
    assert [float(line["base_mean"]) for line in lines[:1]] == [291]
    assert lines[0]["leak_over_vanilla_contains_zero"] == "True"
    assert lines[2]["leak_over_vanilla"] == ""
    kinds = list(csv.DictReader(paths.kinds_csv.read_text().splitlines()))
    assert len(kinds) == 6 * len(KINDS)
    assert kinds[0]["kind"] == "go-small-boxes" and float(kinds[0]["compliance_mean"]) == 0.98
    assert float(kinds[0]["leak_mean"]) == 0.04


def test_the_task_under_a_lasting_instruction(made):
    folder, _ = made
    table = (folder / "table.md").read_text()
    table = table.split("### The task under a lasting instruction")[1].split("###")[0]
    assert KINDS[0] in table and KINDS[1] not in table
    assert "50.0 %" in table


def test_latex_rows_have_as_many_cells_as_columns(made):
    _, paths = made
    text = paths.latex.read_text()
    tables = text.split(r"\begin{tabular}{")[1:]
    assert len(tables) == 10
    for part in tables:
        columns, body = part.split("}", 1)
        rows = [x for x in body.split(r"\end{tabular}")[0].splitlines() if x.endswith(r"\\")]
        assert len(rows) > 2
        for row in rows:
            assert row.replace(r"\&", "").count("&") == len(columns) - 1
    assert text.isascii()
    assert not [x for x in text.splitlines() if "%" in x.replace(r"\%", "") and x[0] != "%"]


def test_unfinished_records_are_listed_and_left_out(made):
    folder, paths = made
    assert paths.unfinished == (folder / "switch-tuned-protected-live-by-kind.jsonl",)
    assert (
        "Unfinished, left out: `switch-tuned-protected-live-by-kind.jsonl`"
        in paths.markdown.read_text()
    )
    assert "switch" not in paths.json.read_text()


def test_errors_say_what_is_wrong(tmp_path):
    with pytest.raises(RecordError, match="no records"):
        reporting.report(tmp_path)
    with pytest.raises(RecordError, match="no records"):
        reporting.report(tmp_path / "nowhere")
    path = save(tmp_path, ExperimentConfig(), [1.0], [1.0], [0.0], finished=False)
    with pytest.raises(RecordError, match=f"unfinished.*{path.name}"):
        reporting.report(tmp_path)
    assert not (tmp_path / "table.json").exists()


def test_records_that_cannot_stand_side_by_side_are_refused(tmp_path):
    def table(*cells):
        records = []
        for i, cell in enumerate(cells):
            write(tmp_path / f"{i}.jsonl", lines_of(cell, [1, 2], [1, 1], [0, 0]))
            records.append(read(tmp_path / f"{i}.jsonl"))
        return reporting.table(records)

    with pytest.raises(RecordError, match="several worlds"):
        table(ExperimentConfig(), ExperimentConfig(world="warehouse"))
    with pytest.raises(RecordError, match=r"0\.jsonl and 1\.jsonl are both mavic"):
        table(ExperimentConfig(), ExperimentConfig())
    with pytest.raises(RecordError, match="differ in kinds"):
        table(ExperimentConfig(), ExperimentConfig(method="naive", kinds=("push",)))
    assert len(table(ExperimentConfig(), ExperimentConfig(method="naive"))) == 2


def test_a_broken_score_names_its_file_and_field(tmp_path):
    lines = lines_of(ExperimentConfig(), [1, 2], [1, 1], [0, 0])
    del lines[-1]["base"]["solved"]
    write(tmp_path / "a.jsonl", lines)
    with pytest.raises(RecordError, match=r"a\.jsonl.*base\.solved"):
        reporting.report(tmp_path)
    lines = lines_of(ExperimentConfig(), [1, 2], [1, 1], [0, 0])
    lines[-1]["leak"]["none"] = [0.0]
    write(tmp_path / "a.jsonl", lines)
    with pytest.raises(RecordError, match=r"leak\.none.*one entry a seed \(2\)"):
        reporting.report(tmp_path)


def test_unequal_presets_are_said(tmp_path):
    save(tmp_path, ExperimentConfig(), [1, 2], [1, 1], [0, 0])
    save(
        tmp_path,
        ExperimentConfig(method="naive"),
        [1, 2],
        [1, 1],
        [0, 0],
        preset={"episodes": 5, "gamma": 0.995},
    )
    rows = reporting.table(map(read, sorted(tmp_path.glob("*.jsonl"))))
    caption = reporting.grids(rows)[0].main.caption
    assert "Not the same preset: episodes (MAVIC 96000; dual (naive, protected) 5)." in caption
    assert "gamma" not in caption


def test_remaking_gives_the_same_bytes(made, tmp_path):
    folder, paths = made
    again = reporting.report(folder, tmp_path / "again")
    for first, second in zip(paths.written(), again.written(), strict=True):
        assert first.name == second.name
        assert first.read_bytes() == second.read_bytes(), first.name
    assert {p.name for p in (tmp_path / "again").glob("*.jsonl")} == set()


@pytest.mark.parametrize(
    ("shares", "from_"),
    [((0.2, 0.96, 0.98, 1.0), 0.97), ((0.2, 0.91, 0.95, 0.98), 0.9), ((0.1, 0.2, 0.98), 0.97)],
)
def test_the_closer_look_takes_in_at_least_half_of_the_dots(shares, from_):
    assert reporting.closest_look(np.array(shares)) == from_


def test_figures_are_pictures(made):
    _, paths = made
    names = {path.stem for path in paths.figures}
    assert names == {f"{figure}-tuned-live-by-kind" for figure in ("curves", "kinds", "both")}
    for path in paths.figures:
        data = path.read_bytes()
        assert len(data) > 5_000
        if path.suffix == ".png":
            assert data.startswith(b"\x89PNG\r\n\x1a\n")
            assert int.from_bytes(data[16:20]) == 1350  # 9 inches: twice README width or so
        else:
            assert b"<svg" in data


def test_figures_of_a_single_seed_without_curves_or_optimum(tmp_path):
    lines = lines_of(ExperimentConfig(world="warehouse"), [470.0], [0.9], [0.0], optimum=None)
    write(tmp_path / "a.jsonl", [lines[0], lines[-1]])
    assert len(reporting.report(tmp_path).figures) == 6


def test_the_terminal_shows_the_numbers(made):
    folder, _ = made
    console = Console(width=80, file=io.StringIO())
    reporting.show(reporting.table(map(read, sorted(folder.glob("*.jsonl")))), console)
    text = console.file.getvalue()
    assert "291.00 ± 1.00" in text and "98.00 ± 1.00 %" in text and "50 ± 0.14 %" in text
    assert "tuned/shared/live/by-kind" in text
    assert "…" not in text  # nothing is cut off at the usual width


@pytest.mark.parametrize("missing", ["matplotlib", "scipy"])
def test_a_missing_extra_says_what_to_type(tmp_path, monkeypatch, missing):
    save(tmp_path, ExperimentConfig(), [1, 2], [0.5, 1], [0, 0])
    for name in [n for n in sys.modules if n.split(".")[0] == missing]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(
        reporting.MissingExtraError, match=rf"{missing}.*pip install 'mavic\[report\]'"
    ):
        reporting.report(tmp_path)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (291.978, "291.98"),
        (-0.004, "0.00"),
        (-1.5, "−1.50"),
        (math.nan, "—"),
        (12345.6, "12,345.60"),
    ],
)
def test_numbers_as_texts(value, text):
    assert reporting.number(value) == text


def test_signs_survive_rounding_where_they_matter():
    assert reporting.number(-0.04, 1, sign=True) == "−0.0"
    assert reporting.number(0.0, 1, sign=True) == "0.0"


def test_only_the_whole_is_a_hundred_percent():
    assert reporting.percent(1.0, 2) == "100.00 %"
    assert reporting.percent(0.99999, 2) == "99.99 %"
    assert reporting.percent(0.9946) == "99.5 %"
    assert reporting.percent(-0.02, 1, True) == "−2.0 %"
    assert reporting.percent(math.nan) == "—"
