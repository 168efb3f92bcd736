"""Populations: when members are dropped, which ones stay, and what records and checkpoints keep of it."""

from __future__ import annotations

import json

import fake_training
import jax
import numpy as np
import pytest
from fake_training import train_group

from mavic.evaluation import merit
from mavic.experiment.config import ExperimentConfig
from mavic.training import devices, population

CELLS = len(fake_training.SEEDS)


@pytest.mark.parametrize(
    ("members", "points", "found"),
    [
        (1, 20, {}),
        (2, 20, {11: 1}),
        (3, 20, {8: 2, 15: 1}),
        (4, 20, {8: 2, 15: 1}),
        (8, 20, {8: 4, 11: 2, 15: 1}),
        (8, 4, {1: 4, 2: 2, 3: 1}),
        (8, 1, {1: 1}),  # all choices fall on the only point
    ],
)
def test_the_worse_half_is_dropped_at_shares_of_the_training(members, points, found):
    assert population.cuts(members, points) == found


def test_what_a_population_costs():
    # eight until .4, four until .55, two until .75, then one: 3.2 + .6 + .4 + .25
    assert population.cost(8, 20) == pytest.approx(4.45)
    assert population.cost(4, 20) == pytest.approx(4 * 0.4 + 2 * 0.35 + 0.25)
    assert population.cost(1, 20) == 1.0


def test_each_cell_keeps_its_own_best_members():
    present = np.array([[0, 2, 5], [1, 3, 4]])
    merits = np.array([3.0, 9.0, 5.0, np.nan, 1.0, 2.0])
    found = population.choose(8, present, {"merit": merits, "base": merits + 1}, 2)
    assert found.kept == [[2, 5], [3, 4]] and found.members == present.tolist()
    assert found.judged["base"][0] == [4.0, 10.0, 6.0]
    left = population.present(2, 6, [found])
    assert population.places(6, left).tolist() == [2, 5, 9, 10]
    assert population.places(6, population.present(2, 6, [])).tolist() == list(range(12))


def test_equal_members_are_kept_by_their_number():
    found = population.choose(1, np.array([[0, 1, 2]]), {"merit": np.ones(3)}, 1)
    assert found.kept == [[0]]


def test_merit_counts_the_task_with_and_without_prohibitions_and_what_is_followed():
    found = {
        "base": np.array([100.0, 90.0, 10.0, 10.0]),
        "under": np.array([50.0, 80.0, np.nan, np.nan]),
        "followed": np.array([1.0, 0.9, 0.5, np.nan]),
    }
    hears = np.array([True, True, True, True])
    # 75; 85 less a tenth of the cell's largest return; 10 less half of 10; nothing was given, so nothing was disobeyed
    assert merit.merit(found, hears, 2).tolist() == pytest.approx([75.0, 75.0, 5.0, 10.0])
    assert merit.merit(found, ~hears, 2).tolist() == found["base"].tolist()


def test_a_member_that_collapsed_does_not_set_the_unit_of_obedience():
    found = {
        "base": np.array([20.0, 19.0, -500.0]),
        "under": np.full(3, np.nan),
        "followed": np.array([0.9, 1.0, 1.0]),
    }
    merits = merit.merit(found, np.ones(3, bool), 1)
    assert merits.tolist() == pytest.approx([18.0, 19.0, -500.0])


def test_parts_are_called_one_after_another_and_the_last_is_filled():
    sizes = []

    def double(x, y):
        sizes.append(len(x))
        return {"sum": x + y, "host": np.asarray(x) * 2}

    x = jax.numpy.arange(5.0)
    found = devices.in_parts(2, double, x, x)
    assert sizes == [2, 2, 2]
    assert found["sum"].tolist() == found["host"].tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert isinstance(found["sum"], jax.Array) and isinstance(found["host"], np.ndarray)
    assert devices.in_parts(None, double, x, x)["sum"].tolist() == found["sum"].tolist()
    assert sizes[3:] == [5]


@pytest.fixture(scope="module")
def chosen():
    """A training in which four members of each of two seeds begin."""
    return train_group(points=8, population=4)


def test_one_member_of_each_seed_is_left_and_it_was_the_best_at_every_choice(chosen):
    assert [choice.point for choice in chosen.choices] == [3, 6]
    for choice, size in zip(chosen.choices, (2, 1), strict=True):
        for members, base, kept in zip(
            choice.members, choice.judged["base"], choice.kept, strict=True
        ):
            order = sorted(members, key=lambda m: -base[members.index(m)])
            assert sorted(order[:size]) == kept
    assert chosen.state.episodes.shape == (CELLS,)
    assert all(np.shape(point["base"]) == (CELLS,) for point in chosen.curve)
    last = chosen.choices[-1]
    before = chosen.curve[last.point - 1]["base"]  # the curve is that of the members who stayed
    kept = [
        row[m.index(k[0])]
        for row, m, k in zip(last.judged["base"], last.members, last.kept, strict=True)
    ]
    np.testing.assert_allclose(before, kept)


def test_a_record_tells_members_choices_and_cost(chosen):
    (config,) = chosen.group.configs
    run = chosen.record_lines(config, None)[0]
    found = json.loads(json.dumps(run["population"]))
    assert found["members"] == 4 and found["trainings"] == population.cost(4, 8)
    assert found["episodes"] == round(population.cost(4, 8) * 8 * fake_training.BATCH)
    assert [choice["kept"] for choice in found["choices"]] == [c.kept for c in chosen.choices]
    assert found["choices"][0]["episodes"] == 3 * fake_training.BATCH
    alone = train_group(points=2)
    assert "population" not in alone.record_lines(alone.group.configs[0], None)[0]


@pytest.mark.parametrize(
    "stop", [3, *(pytest.param(stop, marks=pytest.mark.long) for stop in (2, 5, 6, 7))]
)
def test_stopped_and_resumed_a_population_ends_in_the_same_numbers(chosen, tmp_path, stop):
    with pytest.raises(KeyboardInterrupt):
        train_group(tmp_path, points=8, population=4, stop_after=stop)
    resumed = train_group(tmp_path, points=8, population=4)
    jax.tree.map(np.testing.assert_array_equal, resumed.state, chosen.state)
    assert [c.kept for c in resumed.choices] == [c.kept for c in chosen.choices]
    for one, other in zip(resumed.curve, chosen.curve, strict=True):
        np.testing.assert_allclose(one["base"], other["base"], rtol=1e-5)


def test_a_member_that_diverges_is_dropped_first():
    def updates(static, num_envs, number, vectors, runs, state):
        state, metrics = fake_training.train_updates(static, num_envs, number, vectors, runs, state)
        if int(state.episodes[0]) == fake_training.BATCH:
            leaves, structure = jax.tree.flatten(state.critic)
            leaves[0] = leaves[0].at[0].set(np.nan)  # the first run of every part
            object.__setattr__(state, "critic", jax.tree.unflatten(structure, leaves))
        return state, metrics

    found = train_group(points=4, population=2, updates=updates)
    part = devices.runs_at_once(CELLS)
    lost = {(place // 2, place % 2) for place in range(0, CELLS * 2, part or CELLS * 2)}
    (choice,) = found.choices
    assert all((cell, number) not in lost for cell, (number,) in enumerate(choice.kept))
    assert found.diverged(found.group.configs[0]) == [None, None]


def test_the_default_is_eight_and_the_papers_presets_train_alone():
    assert ExperimentConfig().population == 8
    assert {ExperimentConfig(preset=p).population for p in ("tuned", "paper", "reference")} == {1}
    assert ExperimentConfig(population=8).name() == ExperimentConfig().name()
    assert (
        ExperimentConfig(population=2).name() == "mavic-default-residual+population2-live-by-kind"
    )
    with pytest.raises(ValueError, match="population"):
        ExperimentConfig(population=1000)
