"""`mavic bench`: enough updates before it times but no more than there is patience for, parts, and comparisons."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy_simulators as toys

from mavic.apps import cli
from mavic.experiment.config import ExperimentConfig
from mavic.simulators.worlds import python_world
from mavic.studies import benchmark
from mavic.training import train


@pytest.mark.parametrize("batch, horizon, updates", [(128, 100, 25), (256, 200, 6), (4096, 200, 1)])
def test_a_timed_piece_is_shorter_where_updates_are_long(batch, horizon, updates):
    assert benchmark._updates(batch * horizon) == updates


def test_the_warm_up_ends_after_its_updates_or_with_its_patience():
    lines: list[str] = []
    calls: list[int] = []
    made = benchmark._warm_up(lambda: calls.append(1), 25, 60.0, "quick", lines.append)
    assert made == benchmark.WARM_UP == 25 * len(calls) and len(lines) == len(calls)

    made = benchmark._warm_up(lambda: time.sleep(0.02), 6, 0.05, "slow", lines.append)
    assert 6 <= made <= 18


def test_random_macros_are_available_and_all_of_them_are_taken():
    available = jnp.array([[[True, False, True, True], [False, True, False, False]]])
    taken = [
        benchmark._chosen(available, jnp.full((1, 2), draw))[0].tolist()
        for draw in (0.0, 0.2, 0.4, 0.6, 0.8, 0.999)
    ]
    assert taken == [[0, 1], [0, 1], [2, 1], [2, 1], [3, 1], [3, 1]]


@pytest.mark.parametrize(
    "small, fullest, most, rows",
    [
        (10, 10, train.LARGE + 1, 10),
        (10, 11, train.LARGE + 1, train.LARGE + 1),
        (10, 3, 100, 100),  # as `one_update`, which has one program for so few
    ],
)
def test_parts_learn_from_as_many_rows_as_an_update(small, fullest, most, rows):
    sizes = (jnp.array([small, small]), jnp.array([1, fullest]), jnp.array([most, most]))
    assert benchmark._rows_in_use(sizes) == rows


def test_a_comparison_has_a_ratio_for_every_figure_that_both_files_have():
    now = {
        "world": "a",
        "seeds": 5,
        "x": {"compile_seconds": 6.0, "rates": [1]},
        "new": 1,
        "off": True,
    }
    before = {
        "world": "a",
        "seeds": 5,
        "x": {"compile_seconds": 4.0, "rates": [2]},
        "old": 2,
        "off": True,
    }
    assert benchmark.ratios(now, before) == {"x: compile_seconds": 1.5}
    assert benchmark.ratios({"x": 1}, {"x": 0}) == {}


def test_measurements_of_two_worlds_are_not_compared(tmp_path, capsys):
    (tmp_path / "b.json").write_text('{"world": "warehouse"}')
    with pytest.raises(SystemExit):
        cli.main(["bench", "box_pushing", "--against", str(tmp_path / "b.json")])
    assert "it is of warehouse, not of box_pushing" in " ".join(capsys.readouterr().err.split())


def test_a_python_world_is_measured_with_the_training_that_was_asked_for(monkeypatch):
    env = python_world("line", toys.line, horizon=9, actions=toys.ACTIONS, workers=0)()
    monkeypatch.setattr(benchmark.api, "make", lambda world: env)
    asked = []
    monkeypatch.setattr(benchmark, "job_of", lambda *args, **more: asked.append(args))
    monkeypatch.setattr(benchmark, "_measure_simulators", lambda *args: {})
    benchmark.measure("line", networks=["shared"], backbones=["mac-cac"], seeds=2, population=3)
    config = ExperimentConfig(world="line", backbone="mac-cac", network="shared")
    assert asked == [(config, 2, 3, {})]
    with pytest.raises(ValueError, match="line is a Python world: give one network"):
        benchmark.measure("line", networks=["shared", "residual"])


def test_compilation_is_measured_in_an_empty_cache_and_the_users_cache_comes_back(tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    try:
        with benchmark._empty_cache():
            inside = jax.config.jax_compilation_cache_dir
            assert inside != str(tmp_path)
        assert jax.config.jax_compilation_cache_dir == str(tmp_path)
    finally:
        jax.config.update("jax_compilation_cache_dir", None)


@pytest.mark.long
def test_a_world_is_measured_part_by_part_and_what_is_known_is_kept_at_once(monkeypatch):
    monkeypatch.setattr(benchmark, "WARM_UP", 1)
    kept, lines = [], []
    found = benchmark.measure(
        "box_pushing",
        seeds=1,
        population=2,
        repeats=1,
        say=lines.append,
        keep=lambda now: kept.append(set(now) | set(now.get("microseconds_a_tick", ()))),
        batch=8,
        episodes=160,
    )
    parts = [
        "environment",
        "clock and pay",
        "deciding",
        "transitions",
        "values",
        "critics",
        "actors",
    ]
    assert list(found["microseconds_a_tick"]) == [*parts, "evaluation", "whole update"]
    assert all(np.isfinite(cost) for cost in found["microseconds_a_tick"].values())
    assert kept[0] < kept[-1] and any("values" in now and "actors" not in now for now in kept)
    training = found["training, residual"]
    assert training["steps_per_second"] > 0 and found["environment alone"]["steps_per_second"] > 0
    assert training["cached_compile_seconds"] > 0 and training["compile_seconds"] > 0
    assert any("values" in line and "µs a tick" in line for line in lines)
