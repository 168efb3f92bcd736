"""From records to files: tables in every format, the same bytes twice, and what is missing is named."""

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
from sample_records import KINDS, config_of, lines_of, only_row, record_of, save

from mavic.envs import api
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.records import RecordError, paths_in, read, read_folder, write
from mavic.reporting import backbones, figures, stats, tables, terminal
from mavic.reporting.extras import _MissingExtraError
from mavic.reporting.report import report
from mavic.reporting.rows import table
from mavic.reporting.tables import group_tables
from mavic.reporting.writers import FILES, Contents
from mavic.training import divergence


def text_of(file, rows):
    """The text of one file of a report."""
    _, write = FILES[file]
    return write(Contents(rows=rows))


def test_table_json_layout(made):
    _, paths = made
    found = json.loads(paths.json.read_text())
    assert list(found) == [
        "default/protected/live/by-kind",
        "default/shared/live/by-kind",
    ]
    headline = found["default/protected/live/by-kind"]
    assert list(headline) == ["mavic", "naive", "vanilla"]
    assert list(headline["mavic"]) == [
        "base_mean", "base_std", "base_min", "base_ci", "share_of_optimum", "compliance_mean", "compliance_std",
        "compliance_min", "compliance_ci", "compliance_per_decision", "compliance_per_step", "compliance_greedy",
        "leak", "seeds", "episodes", "live_solved", "live_solved_min", "live_share", "live_share_min", "under",
        "under_share_mean", "under_share_min", "under_solved_mean", "under_solved_min", "under_obeyed_mean",
        "under_obeyed_min", "twin",
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
    assert mavic["live_share"] == mavic["live_share_min"] == 0.5
    assert mavic["live_solved"] == mavic["live_solved_min"] == 0.875


def test_table_json_holds_the_task_under_each_kind_that_leaves_it_on(made):
    _, paths = made
    entry = json.loads(paths.json.read_text())["default/protected/live/by-kind"]["mavic"]
    kind, task = KINDS[0], [291 / 4, 292 / 4, 290 / 4]  # of a best obedient plan with 150
    assert entry["under"] == {
        kind: {
            "optimum": 150, "task_mean": 72.75, "task_min": 72.5, "solved_mean": 0.5, "solved_min": 0.5,
            "obeyed_mean": 0.25, "obeyed_min": 0.25, "share_mean": 0.485,
            "share_min": pytest.approx(min(task) / 150, rel=1e-5),
        }
    }  # fmt: skip
    assert entry["under_share_mean"] == 0.485
    assert entry["under_share_min"] == pytest.approx(min(task) / 150, rel=1e-5)
    assert entry["under_solved_min"] == 0.5
    assert (entry["under_obeyed_mean"], entry["under_obeyed_min"]) == (0.25, 0.25)
    assert entry["twin"] == {kind: {"under": 0.125, "uninstructed": 0.0625}}


def test_worst_means_the_worst_kind_of_the_worst_seed(tmp_path):
    lines = lines_of(config_of(), [300.0, 300.0], [1, 1], [0, 0])
    under, optima = (lines[-1][name] for name in ("under", "optima"))
    under["push"] = {**under[KINDS[0]], "task": [90.0, 30.0], "solved": [1.0, 0.25]}
    optima["push"] = 100.0
    write(tmp_path / "a.jsonl", lines)
    (row,) = table([read(tmp_path / "a.jsonl")])
    assert row.over_kinds("under_share") == pytest.approx(((0.5 + 0.5 + 0.9 + 0.3) / 4, 0.3))
    assert row.over_kinds("under_solved") == pytest.approx((2.25 / 4, 0.25))
    text = text_of("markdown", [row])
    assert "55.0 %<br>worst 30.0 %<br>solved ≥25 %<br>obeyed ≥25 %" in text


@pytest.mark.usefixtures("tables_alone")
def test_teams_with_the_shield_have_rows_of_their_own(tmp_path):
    for method in ("mavic", "naive", "vanilla"):
        save(tmp_path, config_of(method=method), [290, 292], [0.8, 0.6], [0, 0.1], shield=True)
    paths = report(tmp_path)
    found = json.loads(paths.json.read_text())["default/protected/live/by-kind"]
    assert list(found) == ["mavic", "mavic+shield", "naive", "vanilla", "vanilla+shield"]
    plain, masked = found["mavic"], found["mavic+shield"]
    assert masked["base_mean"] == plain["base_mean"] and masked["leak"] is None
    assert (plain["compliance_mean"], masked["compliance_mean"]) == (0.7, 1.0)
    assert masked["under_share_mean"] == pytest.approx(plain["under_share_mean"] / 2, rel=1e-5)
    text = paths.markdown.read_text()
    assert "| MAVIC<br>+ shield |" in text and "| vanilla<br>+ shield |" in text
    assert "what the instruction forbids was unavailable" in text


def test_pairs_have_a_table_and_numbers_of_their_own(tmp_path):
    lines = lines_of(config_of(), [300.0, 300.0], [1, 1], [0, 0])
    part = {"task": [200.0, 100.0], "solved": [1.0, 0.5], "obeyed": [1.0, 0.75]}
    lines[-1]["pairs"] = {"a+b": part, "a+c": {**part, "solved": [1.0, 1.0]}}
    lines[-1]["optima"] |= {"a+b": 250.0, "a+c": None}
    write(tmp_path / "a.jsonl", lines)
    (row,) = table([read(tmp_path / "a.jsonl")])
    (entry,) = json.loads(text_of("json", [row]))["default/protected/live/by-kind"].values()
    assert entry["pairs"]["a+b"] == {
        "optimum": 250, "task_mean": 150, "task_min": 100, "solved_mean": 0.75, "solved_min": 0.5,
        "obeyed_mean": 0.875, "obeyed_min": 0.75,
    }  # fmt: skip
    assert entry["pairs"]["a+c"]["optimum"] is None
    assert (entry["pairs_solved_mean"], entry["pairs_solved_min"]) == (0.875, 0.5)
    assert list(entry["under"]) == [KINDS[0]]  # a pair is no kind
    text = text_of("markdown", [row]).split("### Two at once")[1].split("###")[0]
    cell = "task 150.0 (100.0)<br>solved 75.0 % (50.0)<br>obeyed 87.5 % (75.0)"
    assert f"| a<br>b<br>best 250.0 | {cell} |" in text and "| a<br>c |" in text
    assert "pairs" not in text_of("kinds_csv", [row])


@pytest.mark.usefixtures("tables_alone")
def test_records_without_the_new_sections_still_make_a_report(tmp_path):
    lines = lines_of(config_of(), [300.0, 300.0], [1, 1], [0, 0])
    for name in ("under", "optima"):
        del lines[-1][name]
    for name in ("discounted", "solved"):
        del lines[-1]["compliance"][name]
    write(tmp_path / "a.jsonl", lines)
    paths = report(tmp_path)
    (entry,) = json.loads(paths.json.read_text())["default/protected/live/by-kind"].values()
    assert entry["under"] == {} == entry["twin"] and entry["base_mean"] == 300
    assert entry["under_share_min"] is None and entry["live_share"] is None
    assert "Under an instruction" not in paths.markdown.read_text()


def test_groups_stand_in_order_the_headline_first(tmp_path):
    configs = [
        config_of(overlap=True),
        config_of(preset="paper", network="shared"),
        config_of(rule="add"),
        config_of(schedule="paper"),
        config_of(network="shared"),
        config_of(method="vanilla"),
        config_of(),
    ]
    rows = table(record_of(tmp_path, config, [1, 1], [1, 1], [0, 0]) for config in configs)
    assert {k: list(v) for k, v in json.loads(text_of("json", rows)).items()} == {
        "default/protected/live/by-kind": ["mavic", "vanilla"],
        "default/shared/live/by-kind": ["mavic"],
        "default/protected/paper/by-kind": ["mavic"],
        "default/protected/live/add": ["mavic"],
        "default/protected/live/by-kind/overlap": ["mavic"],
        "paper/shared/live/by-kind": ["mavic"],
    }
    assert list(group_tables(rows)) == list(json.loads(text_of("json", rows)))


def test_numbers_that_are_not_known_are_null(tmp_path):
    row = only_row(tmp_path, [290.0], leak=[math.inf], optimum=None)
    entry = json.loads(text_of("json", [row]))["default/protected/live/by-kind"]["mavic"]
    assert entry["share_of_optimum"] is None and entry["leak"] is None and entry["base_std"] is None
    assert entry["base_ci"] == [290, 290]


def test_labels_and_paper_figures(made):
    _, paths = made
    text = paths.markdown.read_text()
    protected, shared = text.split("## default/")[1:3]
    assert "| dual<br>(naive,<br>protected) |" in protected and "| naive |" not in protected
    assert "| naive |" in shared and "dual" not in shared
    assert "288.32" not in text  # the paper's network is shared, its condition paper/add
    assert "(hears nothing)" in protected
    for fact in (
        "3 seeds (0–2)",
        "96,000 training episodes",
        "1,024 episodes",
        "3,000 instructions",
        "jax 0.10.2",
    ):
        assert fact in protected.split("### Task")[0]
    assert f"{len(KINDS) * 1000:,}" in protected


def test_the_papers_figures_stand_beside_its_own_network_and_condition(tmp_path):
    papers = {"network": "shared", "schedule": "paper", "rule": "add"}
    unlike = (
        {"network": "protected"},
        {"rule": "by-kind"},
        {"penalty": 20.0},
        {"backbone": "mac-cac"},
    )
    for fields in ({}, *unlike):
        save(tmp_path, config_of(**{**papers, **fields}), [1, 2], [1, 1], [0, 0])
    rows = table(read_folder(tmp_path))
    assert [row.group for row in rows if row.paper] == ["default/shared/paper/add"]
    (cells,) = [
        group["main"].rows[0]
        for group in group_tables(rows).values()
        if "Paper" in group["main"].header
    ]
    assert cells[-1] == ("288.32", "± 4.10", "50 ± 0.14 %")


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


def test_the_task_under_an_instruction_lists_the_kinds_that_leave_it_on(made):
    folder, _ = made
    table = (folder / "table.md").read_text()
    table = table.split("### The task under an instruction")[1].split("###")[0]
    assert f"| {KINDS[0]}<br>best 150.0 |" in table and f"| {KINDS[1]} " not in table
    first = (
        "share 48.5 % (48.3)<br>task 72.8 (72.5)<br>solved 50.0 % (50.0)<br>obeyed 25.0 % (25.0)"
    )
    assert f"{first}<br>twin 12.5 % (6.2)" in table


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
    assert paths.unfinished == (folder / "switch-default-protected-live-by-kind.jsonl",)
    assert (
        "Unfinished records, left out: `switch-default-protected-live-by-kind.jsonl`"
        in paths.markdown.read_text()
    )
    assert "switch" not in paths.json.read_text()


def test_errors_say_what_is_wrong(tmp_path):
    with pytest.raises(RecordError, match="no records"):
        report(tmp_path)
    with pytest.raises(RecordError, match="no records"):
        report(tmp_path / "nowhere")
    path = save(tmp_path, config_of(), [1.0], [1.0], [0.0], finished=False)
    with pytest.raises(RecordError, match=f"unfinished.*{path.name}"):
        report(tmp_path)
    assert not (tmp_path / "table.json").exists()


def test_unequal_presets_are_named_in_the_caption(tmp_path):
    save(tmp_path, config_of(), [1, 2], [1, 1], [0, 0])
    save(
        tmp_path,
        config_of(method="naive"),
        [1, 2],
        [1, 1],
        [0, 0],
        preset={"episodes": 5, "gamma": 0.995},
    )
    rows = table(map(read, sorted(tmp_path.glob("*.jsonl"))))
    (grids,) = group_tables(rows).values()
    caption = grids["main"].caption
    assert "Presets differ: episodes (MAVIC 96000; dual (naive, protected) 5)." in caption
    assert "gamma" not in caption


@pytest.mark.long
def test_a_report_made_twice_has_the_same_bytes(made, tmp_path):
    folder, paths = made
    again = report(folder, tmp_path / "again")
    for first, second in zip(paths.written(), again.written(), strict=True):
        assert first.name == second.name
        assert first.read_bytes() == second.read_bytes(), first.name
    assert {p.name for p in (tmp_path / "again").glob("*.jsonl")} == set()


def test_the_terminal_shows_the_numbers(made):
    folder, _ = made
    console = Console(width=80, file=io.StringIO())
    terminal.show(table(map(read, sorted(folder.glob("*.jsonl")))), console)
    text = console.file.getvalue()
    assert "291.00 ± 1.00" in text and "98.00 ± 1.00 %" in text
    assert "default/shared/live/by-kind" in text
    assert "worst 48.3 %" in text  # of the best obedient plan, in a table of its own
    assert "…" not in text  # nothing is cut off at the usual width


@pytest.mark.parametrize("missing", ["matplotlib", "pandas", "scipy"])
def test_a_missing_extra_says_what_to_type(tmp_path, monkeypatch, missing):
    save(tmp_path, config_of(), [1, 2], [0.5, 1], [0, 0])
    for name in [n for n in sys.modules if n.split(".")[0] == missing]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(_MissingExtraError, match=rf"{missing}.*pip install 'mavic\[report\]'"):
        report(tmp_path)


def test_the_committed_tables_are_remade_with_unchanged_figures():
    folder = Path(__file__).parents[2] / "results" / "warehouse"
    rows = table(read_folder(folder))
    assert text_of("json", rows) == (folder / "table.json").read_text(encoding="utf-8")
    committed = (folder / "table.md").read_text(encoding="utf-8").split("## Figures")[0]
    assert text_of("markdown", rows).rstrip() == committed.rstrip()


RESULTS = Path(__file__).parents[2] / "results"
FOLDERS = [  # those with many records take seconds
    pytest.param(folder, marks=[pytest.mark.long] * (len(paths_in(folder)) > 20))
    for folder in sorted({path.parent for path in paths_in(RESULTS, "**/")})
    if folder.name != "warehouse" and "studies" not in folder.parts
]


def without_intervals(value):
    """Intervals take most of the time, and they follow from the same numbers."""
    if isinstance(value, dict):
        kept = {name: one for name, one in value.items() if not name.endswith("_ci")}
        return {name: without_intervals(one) for name, one in kept.items()}
    return value


@pytest.fixture
def no_intervals(monkeypatch):
    monkeypatch.setattr(stats, "interval", lambda first, *_: (np.zeros(first.shape[1]),) * 2)


@pytest.mark.usefixtures("no_intervals")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(RESULTS)))
def test_the_committed_numbers_are_those_of_the_records(folder):
    made = json.loads(text_of("json", table(read_folder(folder))))
    committed = json.loads((folder / "table.json").read_text(encoding="utf-8"))
    assert without_intervals(made) == without_intervals(committed)


@pytest.mark.usefixtures("no_intervals")
def test_the_committed_table_of_backbones_is_that_of_the_records():
    made = backbones._table_of(RESULTS / "backbones")
    committed = json.loads((RESULTS / "backbones" / "table.json").read_text(encoding="utf-8"))
    assert without_intervals(made) == without_intervals(committed)


@pytest.mark.parametrize(("hear", "columns"), [("vectors", 6), ("kinds", 5)])
def test_unseen_phrases_are_told_as_the_team_heard_them(tmp_path, hear, columns):
    record = record_of(tmp_path, config_of(hear=hear), [1, 2], [0.5, 1], [0, 0])
    shares = {key: [0.5, 0.75] for key in ("per_instruction", "own_vector", "own_vector_anyway")}
    words = {"novel": {"phrases": 9, "understood": 6, **shares}}
    (row,) = table([dataclasses.replace(record, score={**record.score, "words": words})])
    grid = tables._unseen([row])
    assert len(grid.header) == columns == len(grid.rows[0])
    assert ("Own vector" in grid.caption) is (hear == "vectors")
    assert ("the reader's probability" in grid.caption) is (hear == "kinds")


def test_tables_and_figures_tell_backbones_apart(tmp_path):
    for backbone in ("mac-iac", "mac-cac", "acac"):
        save(tmp_path, config_of(backbone=backbone), [1, 2], [0.5, 1], [0, 0])
    rows = table(read_folder(tmp_path))
    lines = csv.DictReader(text_of("csv", rows).splitlines())
    assert [line["backbone"] for line in lines] == ["mac-iac", "mac-cac", "acac"]
    captions = [group["main"].caption for group in group_tables(rows).values()]
    assert "backbone" not in captions[0] and "acac backbone" in captions[2]
    assert len(set(figures._markers(rows).values())) == 3
    labels = [handle.get_label() for handle in figures._point_handles(rows)]
    assert "acac protected network" in labels


@pytest.mark.usefixtures("tables_alone")
def test_a_world_of_ones_own_is_not_compared_with_the_paper(tmp_path, monkeypatch):
    monkeypatch.setattr(api, "REGISTERED", dict(api.REGISTERED))
    api.register("yard", api.world("box_pushing").make)
    for method in ("naive", "mavic"):
        config = ExperimentConfig(world="yard", method=method, network="protected")
        save(tmp_path, config, [1.0, 2.0], [0.5, 0.6], [0.0, 0.0])
    report(tmp_path)
    text = (tmp_path / "table.md").read_text()
    assert "naive" in text and "dual" not in text.lower() and "paper" not in text.lower()


@pytest.mark.usefixtures("tables_alone")
def test_a_brief_report_is_one_small_table_and_a_sentence(made, tmp_path):
    folder, _ = made
    said = io.StringIO()
    report(folder, tmp_path, console=Console(file=said, width=100), brief=True)
    lines = [line.strip() for line in said.getvalue().splitlines() if line.strip()]
    assert len(lines) <= 9 and "task under an instruction" in lines[1]
    assert "obeyed while held" in lines[1] and all(line.endswith("25.0 %") for line in lines[3:6])
    sentence = " ".join(lines[6:])
    assert sentence.startswith(
        "MAVIC earns 99.8 % of what a team without instructions earns and follows 98.0 %"
    )
    assert "naive" in sentence and "vanilla" not in sentence


@pytest.mark.usefixtures("tables_alone")
def test_seeds_that_diverged_are_left_out_and_counted(tmp_path):
    lines = lines_of(config_of(), [1.0, 50.0, 3.0], [0.5] * 3, [0.1] * 3)
    whole, lost = tmp_path / "whole", tmp_path / "lost"
    finished = [line for line in lines if line["type"] == "score"]
    finished[0] |= divergence.marked(finished[0], [None, 2, None])
    for line in lines:
        if line["type"] == "curve":
            line["base"][1] = None
    write(lost / "mavic.jsonl", lines)
    report(lost)
    entry = next(iter(json.loads((lost / "table.json").read_text()).values()))["mavic"]
    assert (entry["base_mean"], entry["base_min"]) == (2.0, 1.0)
    assert (entry["seeds"], entry["diverged"]) == (2, 1)
    assert "2 seeds (0, 2), 1 more diverged and left out (1)" in (lost / "table.md").read_text()
    finished[0]["diverged"] = [1, 1, 1]
    write(whole / "mavic.jsonl", lines)
    with pytest.raises(RecordError, match="every record is unfinished"):
        report(whole)
