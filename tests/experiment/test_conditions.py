"""Conditions as text, and what their parts do to a run."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tasks import make_task

from mavic.experiment.config import ExperimentConfig
from mavic.experiment.environments import instructed_env
from mavic.experiment.methods import preset_of
from mavic.experiment.task import task_of
from mavic.instruct import schedule
from mavic.session import session
from mavic.training.runs import make_run

EVERY = "live/add/overlap/extras/one-agent/kinds=push+stay/penalty=100/bonus=2.5/rate=0.1/hold=5-20/weights=push@0.1"
TASK = make_task("box_pushing")


def run_of(condition: str, method: str = "mavic"):
    config = ExperimentConfig(method=method, network="shared").with_condition(condition)
    return make_run(config, preset_of("tuned", "box_pushing"), TASK, 0)


def test_text_and_fields_say_the_same():
    config = ExperimentConfig().with_condition(EVERY)
    assert config.condition() == EVERY and config.name().endswith(EVERY.replace("/", "-"))
    assert (config.penalty, config.bonus, config.rate, config.hold) == (100, 2.5, 0.1, (5, 20))
    assert config.kinds == ("push", "stay") and config.weights == {"push": 0.1}
    assert ExperimentConfig.of(dataclasses.asdict(config)) == config
    assert config.with_condition("live/by-kind") == ExperimentConfig()
    assert ExperimentConfig().condition() == "live/by-kind"


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("live", "schedule/rule"),
        ("live/add/penalti=3", "penalty"),
        ("live/add/penalty=much", "'much' is no value of penalty"),
        ("live/add/penalty=-3", "penalty must be"),
        ("live/add/rate=2", "rate must be"),
        ("live/add/hold=20-5", "from less to more"),
        ("live/add/weights=push@-1", "weight of push"),
    ],
)
def test_what_is_wrong_is_said(condition, said):
    with pytest.raises(ValueError, match=said):
        ExperimentConfig().with_condition(condition)


def test_methods_that_do_not_meet_a_part_share_their_training():
    def trained(method, condition):
        return ExperimentConfig(method=method).with_condition(condition).as_trained()

    assert trained("vanilla", EVERY) == trained("vanilla", "live/by-kind")
    assert trained("switch", "live/add/rate=0.1") == trained("switch", "live/add")
    assert trained("switch", "live/add/penalty=1") != trained("switch", "live/add")
    assert trained("mavic", "live/add/rate=0.1") != trained("mavic", "live/add")


def test_numbers_reach_training_and_evaluation():
    run = run_of("live/add/penalty=120/bonus=3/rate=0.25/hold=4-9")
    for env in (run.train_env, run.test_env):
        assert float(env.schedule.rate) == 0.25
        assert (int(env.schedule.hold_min), int(env.schedule.hold_max)) == (4, 9)
        np.testing.assert_array_equal(env.rules.penalty[1:], -120)
        np.testing.assert_array_equal(env.rules.bonus[1:], 3)
    usual = run_of("live/add")
    assert float(usual.train_env.schedule.rate) == np.float32(0.05)
    np.testing.assert_array_equal(usual.train_env.rules.penalty[1:], -50)


def test_a_schedule_is_one_row(monkeypatch):
    """Conditions, training and evaluation accept a schedule that no other code names."""
    row = dict(rate=0.5, hold_min=1, hold_max=2)
    monkeypatch.setitem(schedule.SCHEDULES, "burst", row)

    def numbers(condition):
        (config,) = session.configs_of("box_pushing", condition=condition)
        clock = instructed_env(config, task_of(config)).schedule
        return float(clock.rate), int(clock.hold_min), int(clock.hold_max)

    assert numbers("burst/by-kind") == tuple(row.values())
    assert numbers("burst/by-kind/rate=0.25/hold=2-3") == (0.25, 2, 3)


def test_weights_are_those_of_training_alone():
    run = run_of("live/by-kind/weights=push@0.5+stay@0")
    assert float(run.train_env.rules.weight[1 + TASK.file.names().index("push")]) == 0.5
    np.testing.assert_array_equal(run.test_env.rules.weight, 1)
    with pytest.raises(ValueError, match="kind 'pusch' is unknown"):
        run_of("live/by-kind/weights=pusch@0.5")


def test_kinds_are_drawn_by_their_weights():
    rules, phrases = (
        run_of("live/by-kind").train_env.rules,
        run_of("live/by-kind").train_env.phrases,
    )
    clock = schedule.make_schedule(from_start=1.0)
    preconditions = jnp.zeros(0, bool)
    possible = schedule.possible_kinds(preconditions, rules)

    def kinds(weight):
        uneven = dataclasses.replace(rules, weight=jnp.ones_like(rules.weight).at[2].set(weight))

        def one(draws):
            return schedule.begin(draws, possible, uneven, clock, phrases).kind.max()

        draws = jax.random.uniform(jax.random.key(0), (4000, schedule.DRAWS)).at[:, 5].set(1.0)
        return np.bincount(jax.vmap(one)(draws), minlength=len(possible)) / 4000

    even, uneven, never = kinds(1.0), kinds(3.0), kinds(0.0)
    np.testing.assert_allclose(even[1:], 1 / 11, atol=0.02)
    np.testing.assert_allclose(uneven[2], 3 / 13, atol=0.03)
    assert never[2] == 0 and never[0] == 0


def test_a_grid_is_every_combination():
    found = list(
        session.configs_of(
            "box_pushing",
            method=("naive", "mavic"),
            condition="paper/add",
            kinds=["push"],
            penalty=(50.0, 100.0),
            rate=0.1,
            hold=(),
        )
    )
    assert [(c.method, c.penalty, c.rate, c.hold) for c in found] == [
        (method, penalty, 0.1, None) for penalty in (50, 100) for method in ("naive", "mavic")
    ]
    assert {c.kinds for c in found} == {("push",)}


def test_a_hold_is_one_value_as_text_or_as_numbers():
    for hold in ("5-20", (5, 20), ["5-20"], [(5, 20)]):
        (config,) = session.configs_of("box_pushing", hold=hold)
        assert config.hold == (5, 20)
    assert len(list(session.configs_of("box_pushing", hold=["2-5", "5-20"]))) == 2
    with pytest.raises(ValueError, match="hold must be"):
        list(session.configs_of("box_pushing", hold=5))


@pytest.mark.parametrize("name", ["schedule", "rule", "world"])
def test_what_a_condition_tells_is_not_taken_beside_it(name):
    with pytest.raises((ValueError, TypeError), match=name):
        list(session.configs_of("box_pushing", **{name: "paper"}))
