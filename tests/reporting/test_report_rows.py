"""From records to rows: every metric over seeds, comparisons with the baseline, and records that are refused."""

import dataclasses
import math

import numpy as np
import pytest
from sample_records import config_of, lines_of, only_row, record_of

from mavic.envs import api
from mavic.experiment.methods import METHODS
from mavic.experiment.records import RecordError, compressed, read, read_folder, write
from mavic.reporting.report import report
from mavic.reporting.rows import table


def test_mean_std_and_min_by_hand(tmp_path):
    row = only_row(tmp_path, [290.0, 292.0, 288.0, 290.0], [0.9, 1.0, 0.8, 0.9])
    assert row.estimate("base").mean == pytest.approx(290)
    assert row.estimate("base").std == pytest.approx(
        math.sqrt(8 / 3)
    )  # squares 0 + 4 + 4 + 0, n − 1 = 3
    assert row.estimate("base").min == 288
    assert row.estimate("share").mean == pytest.approx(290 / 300)
    assert row.estimate("share").min == pytest.approx(0.96)
    assert row.estimate("compliance").mean == pytest.approx(0.9)
    assert row.estimate("compliance").std == pytest.approx(math.sqrt(0.02 / 3))
    assert row.estimate("per_decision").mean == pytest.approx(0.99)
    assert row.estimate("per_step").mean == pytest.approx(0.975)
    assert row.estimate("compliance", "stay").mean == pytest.approx(0.9)
    assert row.estimate("compliance", "stay").min == pytest.approx(0.8)
    assert row.given_by_seed == (3000,) * 4
    assert row.estimate("undiscounted").mean == pytest.approx(295)
    assert row.estimate("length").mean == pytest.approx(7.5)
    assert row.estimate("base_greedy").mean == pytest.approx(291)


def test_leak_is_compared_with_vanilla(tmp_path):
    def gap(mavic, vanilla):
        records = [
            record_of(
                tmp_path,
                config_of(method="mavic"),
                [1] * len(mavic),
                [1] * len(mavic),
                mavic,
            ),
            record_of(
                tmp_path,
                config_of(method="vanilla"),
                [1] * len(vanilla),
                [1] * len(vanilla),
                vanilla,
            ),
        ]
        first, second = table(records)
        assert second.leak_over_baseline is None
        return first.leak_over_baseline

    found = gap([0.5, 0.5], [0.0, 1.0])  # the difference of means is 1/2, 0 or −1/2
    assert (found.mean, found.low, found.high) == (0.0, -0.5, 0.5)
    assert found.contains_zero
    assert gap([0.5], [0.0, 0.25]) is None  # the spread of one seed is unknown
    assert gap([0.5, 0.25], [0.0]) is None
    assert not gap([0.3, 0.3], [0.2, 0.2]).contains_zero


def test_leak_without_vanilla_or_with_vanilla_under_another_condition_is_not_compared(tmp_path):
    records = [
        record_of(tmp_path, config_of(method="mavic"), [1, 2], [1, 1], [0.1, 0.2]),
        record_of(
            tmp_path,
            config_of(method="vanilla", network="shared"),
            [1, 2],
            [1, 1],
            [0.1, 0.2],
        ),
        record_of(tmp_path, config_of(method="vanilla", rule="add"), [1, 2], [1, 1], [0.1, 0.2]),
    ]
    assert [r.leak_over_baseline for r in table(records)] == [None, None, None]


def test_the_value_bias_under_instructions_is_undefined_for_methods_that_hear_none(tmp_path):
    mavic, vanilla, random = table(
        record_of(tmp_path, config_of(method=method), [1, 2], [1, 1], [0.1, 0.2])
        for method in ("mavic", "vanilla", "random")
    )
    assert mavic.kinds("leak") and not vanilla.kinds("leak") and not random.kinds("leak")
    assert vanilla.estimate("leak").mean == pytest.approx(0.15)


def test_methods_trained_without_instructions_are_marked_in_tables(tmp_path):
    rows = table(
        record_of(tmp_path, config_of(method=method), [1, 2], [1, 1], [0.1, 0.2])
        for method in METHODS
    )
    marked = {row.config.method for row in rows if "hears nothing" in row.full_label}
    assert marked == {"vanilla", "random"} == {n for n, m in METHODS.items() if not m.hears}


def test_the_curve_of_compliance_is_shown_only_for_the_condition_of_training(tmp_path):
    """One training of switch or vanilla serves several conditions, and is measured under one of them."""
    for method, schedule, shown in (
        ("switch", "live", True),
        ("switch", "paper", False),
        ("vanilla", "paper", False),
        ("mavic", "paper", True),
    ):
        config = config_of(method=method, schedule=schedule)
        (row,) = table([record_of(tmp_path, config, [1, 2], [1, 1], [0.1, 0.2])])
        assert np.isfinite(row.curve.points["compliance"]).all() == shown, config
        assert np.isfinite(row.curve.points["base"]).all()


def test_a_random_policy_is_one_sample_however_many_seeds(tmp_path):
    config = config_of(method="random")
    (row,) = table([record_of(tmp_path, config, [7, 7, 7], [0.5] * 3, [0.1] * 3)])
    assert (
        row.estimate("base").values == (7.0,)
        and math.isnan(row.estimate("base").std)
        and len(row.given_by_seed) == 1
    )


def test_vanilla_without_overlap_is_also_the_baseline_with_overlap(tmp_path):
    records = [
        record_of(tmp_path, config_of(overlap=True), [1, 2], [1, 1], [0.1, 0.1]),
        record_of(tmp_path, config_of(method="vanilla"), [1, 2], [1, 1], [0.3, 0.3]),
    ]
    overlap = next(r for r in table(records) if r.config.overlap)
    assert overlap.leak_over_baseline.mean == pytest.approx(-0.2)


def test_every_world_has_the_papers_figures_for_four_methods():
    for name in api.BUILT_IN:
        world = api.world(name).paper
        assert set(world) == {"mavic", "naive", "switch", "vanilla"}
        assert {m for m, figure in world.items() if figure.compliance is None} == {"vanilla"}
        assert all(
            0 <= (f.compliance or 0) <= 1 and 0 <= (f.compliance_std or 0) < 1
            for f in world.values()
        )


def test_records_that_cannot_be_compared_are_refused(tmp_path):
    def compared(*configs):
        records = []
        for i, config in enumerate(configs):
            write(tmp_path / f"{i}.jsonl", lines_of(config, [1, 2], [1, 1], [0, 0]))
            records.append(read(tmp_path / f"{i}.jsonl"))
        return table(records)

    with pytest.raises(RecordError, match="several worlds"):
        compared(config_of(), config_of(world="warehouse"))
    with pytest.raises(RecordError, match=r"0\.jsonl and 1\.jsonl are both mavic"):
        compared(config_of(), config_of())
    with pytest.raises(RecordError, match="differ in options"):
        compared(config_of(), config_of(method="naive", options={"size": 8}))
    assert len(compared(config_of(), config_of(method="naive"))) == 2
    kinds = compared(config_of(), config_of(kinds=("push",)))  # two tables
    assert [row.group.rpartition("/")[2] for row in kinds] == ["by-kind", "kinds=push"]


def test_a_broken_score_names_its_file_and_field(tmp_path):
    lines = lines_of(config_of(), [1, 2], [1, 1], [0, 0])
    del lines[-1]["base"]["solved"]
    write(tmp_path / "a.jsonl", lines)
    with pytest.raises(RecordError, match=r"a\.jsonl.*base\.solved"):
        report(tmp_path)
    lines = lines_of(config_of(), [1, 2], [1, 1], [0, 0])
    lines[-1]["leak"]["none"] = [0.0]
    write(tmp_path / "a.jsonl", lines)
    with pytest.raises(RecordError, match=r"leak\.none.*one entry per seed \(2\)"):
        report(tmp_path)


def test_a_compressed_record_is_the_same_record_and_a_damaged_one_is_refused(tmp_path):
    plain = tmp_path / "plain" / "0.jsonl"
    plain.parent.mkdir()
    write(plain, lines_of(config_of(), [1, 2], [1, 1], [0, 0]))
    packed = tmp_path / "0.jsonl.gz"
    packed.write_bytes(compressed(plain.read_bytes()))
    assert packed.stat().st_size < plain.stat().st_size / 2
    one, same = read(plain), read(packed)
    assert (one.run, one.curve, one.score) == (same.run, same.curve, same.score)
    assert [record.path for record in read_folder(tmp_path)] == [packed]
    whole = packed.read_bytes()
    for damaged in (whole[:-9], whole[:40] + b"?" + whole[41:], b"no gzip at all"):
        packed.write_bytes(damaged)
        with pytest.raises(RecordError, match=packed.name):
            read(packed)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda lines: lines.append(lines[-1]), "2 lines of type score"),
        (lambda lines: lines.insert(1, lines[0]), "2 lines of type run"),
        (lambda lines: lines[0].update(seeds=[4, 4]), "seeds holds a seed twice"),
        (
            lambda lines: lines[-1]["compliance"].update(per_instruction=[1.0, -1e9]),
            r"compliance\.per_instruction must be a share from 0 to 1, not -1000000000",
        ),
        (
            lambda lines: lines[-1]["base"].update(solved=[0.5, 1.5]),
            r"base\.solved must be a share",
        ),
        (lambda lines: lines[1].update(compliance=[2.0, 0.5]), "compliance must be a share"),
    ],
)
def test_a_record_that_cannot_be_is_refused_even_with_a_right_hash(tmp_path, edit, said):
    lines = lines_of(config_of(), [1, 2], [1, 1], [0, 0])
    edit(lines)
    write(tmp_path / "a.jsonl", lines)
    with pytest.raises(RecordError, match=said):
        read(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"discounted": [1, 2]', '"discounted": [1, 3]'),
        ('"base": [0.25, 0.5]', '"base": [0.25, 0.75]'),  # the first point of the curve
        ('"seeds": [0, 1]', '"seeds": [0, 2]'),
    ],
)
def test_an_edited_number_is_refused(tmp_path, before, after):
    path = tmp_path / "a.jsonl"
    write(path, lines_of(config_of(), [1, 2], [1, 1], [0, 0]))
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    with pytest.raises(RecordError, match=r"damaged or edited \(its hash differs\)"):
        read(path)


def test_a_seed_that_diverged_is_left_out_and_no_other(tmp_path):
    """Seeds are no places: here seed 1 stands first."""
    write(tmp_path / "a.jsonl", lines_of(config_of(), [5, 6, 7], [0.5, 0.6, 0.7], [0, 0, 0]))
    record = read(tmp_path / "a.jsonl")
    score = {**record.score, "diverged": [3, None, None]}
    whole = dataclasses.replace(record, run={**record.run, "seeds": [1, 0, 9]}, score=score)
    assert whole.diverged() == [1]
    left = whole.finite()
    assert left.run["seeds"] == [0, 9] and left.score["base"]["discounted"] == [6, 7]
    assert left.curve[-1]["base"] == [6, 7] and left.curve[-1]["episodes"] == 96_000
    lost = dataclasses.replace(whole, score={**score, "diverged": [1, 2, 3]}).finite()
    assert lost.run["seeds"] == [] and lost.score is None
