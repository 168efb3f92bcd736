"""Whose number stands where in scores: runs, methods, kinds and episodes that are told apart by hand.

Programs are replaced by plain numbers (`arange`), so nothing is compiled.
"""

from __future__ import annotations

from enum import IntEnum
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from corridor import HURRY, RING, RULES, WALK, instructed

from mavic.evaluation import evaluate, infeasible, merit, metrics
from mavic.evaluation.metrics import PAIRS, UNDER, Ratio
from mavic.experiment.config import ExperimentConfig
from mavic.learn import act
from mavic.learn.values import Values
from mavic.training import runs as training_runs
from mavic.training.groups import groups_of
from mavic.training.trained import Trained
from mavic.types import MacroTransitions

KINDS = len(RULES.names)
RUNS = 4  # two methods with two seeds each
METHODS = ("mavic", "naive")


@pytest.fixture(autouse=True)
def hollow(monkeypatch):
    """Programs, runs and states are stand-ins, which annotations would refuse."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def totals(base: float = 0.0) -> evaluate._Totals:
    """Sums of which every metric is `base` plus the number of the run; counts by kind are 10 kinds + run of 100."""
    ones, number = np.ones(RUNS), base + np.arange(RUNS)
    by_kind = 10.0 * np.arange(KINDS) + np.arange(RUNS)[:, None]
    hundred = np.full((RUNS, KINDS), 100.0)
    ratios = {
        m.name: Ratio(by_kind, hundred) if m.counts or m.key == "obeyed" else Ratio(number, ones)
        for m in metrics.measured(evaluate.PLAYED)
    }
    return evaluate._Totals(episodes=np.full(RUNS, 8.0), ratios=ratios)


def rules(replaces=()) -> object:
    """Rules with a leading axis of runs."""
    flags = np.zeros((RUNS, KINDS), bool)
    flags[:, list(replaces)] = True
    given = np.ones((RUNS, KINDS), bool)
    allowed = np.ones((RUNS, KINDS, 2, 5), bool)
    return SimpleNamespace(names=RULES.names, replaces=flags, given=given, allowed=allowed)


def test_each_method_has_its_own_seeds_and_each_kind_its_own_optimum(monkeypatch):
    asked = []

    def play(section, **which):
        asked.append((section, which))
        return totals(100.0 * which.get("kind", 0))

    evaluation = SimpleNamespace(
        totals=play,
        value_bias=lambda kind: 1000.0 * kind + np.arange(RUNS),
        kinds={"hurry": HURRY, "ring": RING},
        pairs={"hurry+ring": (HURRY, RING)},
        runs=SimpleNamespace(test_env=SimpleNamespace(rules=rules())),
        twins=np.zeros((KINDS, 2, 5), bool),
    )
    best = {None: 500.0, "hurry": 50.0, "ring": 5.0, "hurry+ring": 1.0}
    monkeypatch.setattr(evaluate, "_evaluation_of", lambda *_: evaluation)
    monkeypatch.setattr(evaluate.api, "best_return", lambda env, gamma, kind=None: best[kind])
    configs = tuple(ExperimentConfig(method=method) for method in METHODS)
    trained = SimpleNamespace(
        group=SimpleNamespace(configs=configs, seeds=(7, 8), preset=SimpleNamespace(gamma=0.5)),
        task=SimpleNamespace(env=None),
        state=SimpleNamespace(episodes=[64]),
        diverged=lambda config: [None, None],
    )
    scores = evaluate.evaluate(trained, shield=False)
    for config, own in zip(configs, ([0, 1], [2, 3]), strict=True):
        score, run = scores[config], np.array(own)
        assert score["base"]["discounted"].tolist() == own
        assert score["leak"]["hurry"].tolist() == (1000 * HURRY + run).tolist()
        assert score["compliance"]["followed"]["ring"].tolist() == (10 * RING + run).tolist()
        assert score[UNDER]["hurry"]["task"].tolist() == (100 * HURRY + run).tolist()
        assert score[UNDER]["ring"]["obeyed"].tolist() == ((10 * RING + run) / 100).tolist()
        assert score[UNDER]["ring"]["use_uninstructed"].tolist() == own  # of uninstructed episodes
        assert np.isnan(score[UNDER]["ring"]["twin"]).all()  # it has no twin
        assert score["optimum"] == 500.0
        assert score["optima"] == {"hurry": 50.0, "ring": 5.0, "hurry+ring": 1.0}
    assert (PAIRS, dict(kind=HURRY, also=RING, shield=False)) in asked
    assert not any(which.get("shield") for _, which in asked)


def test_a_pair_has_no_task_if_either_replaces_it():
    evaluation = SimpleNamespace(
        totals=lambda section, **which: totals(),
        kinds={},
        pairs={"walk+hurry": (WALK, HURRY), "hurry+ring": (HURRY, RING)},
        runs=SimpleNamespace(test_env=SimpleNamespace(rules=rules(replaces=[WALK]))),
        twins=np.zeros((KINDS, 2, 5), bool),
    )
    found = evaluate._sections(evaluation, {}, totals())
    assert np.isnan(found[PAIRS]["walk+hurry"]["task"]).all()
    assert found[PAIRS]["hurry+ring"]["task"].tolist() == [0, 1, 2, 3]


def test_scores_are_played_without_exploration_and_the_leak_at_that_of_training(monkeypatch):
    seen = []
    monkeypatch.setattr(evaluate, "over_runs", lambda one: one)
    monkeypatch.setattr(evaluate, "rows_of", lambda *args: seen.append(args))
    monkeypatch.setattr(evaluate, "_tally", lambda *_, **__: None)
    monkeypatch.setattr(evaluate, "_value_errors", lambda *_: (None, None))
    monkeypatch.setattr(evaluate, "EPISODES", SimpleNamespace(total=lambda tally: jnp.zeros(())))
    which = evaluate.episodes_of(jnp.zeros((1, 1, 1), bool))
    for share in (0.0, 1.0):  # a trained team, and the random one
        hyper = SimpleNamespace(epsilon_end=jnp.array([0.1, 0.2, 0.3]), gamma=0.9)
        run = SimpleNamespace(eval_epsilon=jnp.float32(share), hyper=hyper)
        common = (None, 4, 8, (), None, run, None, None)
        evaluate._play.__wrapped__(*common, jnp.int32(5), which)
        evaluate._held_instruction.__wrapped__(*common, which)
        *_, first, _, scored = seen[-2]
        assert first == 5 and scored.tolist() == [share] * 3
        *_, first, _, leak = seen[-1]
        wanted = [0.1, 0.2, 0.3] if share == 0 else [1.0] * 3
        assert first == 0 and leak.tolist() == pytest.approx(wanted)


def test_a_held_kinds_episodes_are_given_that_kind_alone():
    test = instructed(rate=0.3, hold_min=2, hold_max=4)
    no_twins = jnp.zeros((KINDS, 2, 5), bool)
    held = evaluate.env_of(test, evaluate.episodes_of(no_twins, kind=RING, shield=True, also=HURRY))
    assert held.rules.given.tolist() == [i == RING for i in range(KINDS)]
    assert (held.schedule.from_start, held.schedule.rate, held.also) == (1.0, 0.0, HURRY)
    assert held.schedule.shield
    live = evaluate.env_of(test, evaluate.episodes_of(no_twins, instructed=True))
    assert live.rules.given.tolist() == test.rules.given.tolist()
    assert (live.schedule.from_start, live.schedule.rate) == (0.0, test.schedule.rate)
    assert not live.schedule.shield
    silent = evaluate.env_of(test, evaluate.episodes_of(no_twins))
    assert (silent.schedule.from_start, silent.schedule.rate) == (0.0, 0.0)


def test_further_episodes_are_played_until_every_run_has_enough(monkeypatch):
    firsts = []

    def play(static, num_envs, episodes, measured, vectors, runs, state, key, first, which):
        firsts.append(int(first))
        assert (num_envs, episodes) == (4, 16)  # on a CPU four episodes of each environment
        assert jnp.array_equal(
            jax.random.key_data(key),
            jax.random.key_data(jax.random.key(evaluate.EVALUATION_KEY)),
        )
        given = Ratio(np.zeros((2, 2)), np.array([[5.0, 5.0], [1.0, 2.0]]))
        return evaluate._Totals(
            episodes=np.full(2, episodes), ratios={"compliance": given, "base": given}
        )

    monkeypatch.setattr(evaluate, "_play", play)
    no_twins = jnp.zeros((2, 1, 1), bool)
    instructed = evaluate.episodes_of(no_twins, instructed=True)
    found = evaluate.until_enough(None, 4, None, None, None, instructed, 9)
    assert firsts == [0, 16, 32]  # the second run is given three instructions a batch
    assert found.ratios["compliance"].denominator.tolist() == [[15, 15], [3, 6]]
    firsts.clear()
    found = evaluate.until_enough(None, 4, None, None, None, evaluate.episodes_of(no_twins), 30)
    assert firsts == [0, 16] and found.episodes.tolist() == [32, 32]


def test_the_value_bias_counts_decisions_under_the_kind(monkeypatch):
    """One agent, three rows of one tick: two under kind 2, then one without an instruction."""
    column = {name: jnp.zeros((1, 3, 1)) for name in MacroTransitions.__dataclass_fields__}
    flags = dict(
        valid=jnp.array([[[True], [True], [True]]]),
        switched=jnp.zeros((1, 3, 1), bool),
        last=jnp.array([[[False], [False], [True]]]),
        kind=jnp.array([[[2], [2], [0]]]),
        reward=jnp.array([[[1.0], [2.0], [4.0]]]),
        discount=jnp.array([[[0.5], [0.5], [0.0]]]),
    )
    rows = MacroTransitions(**{**column, **flags})
    value = jnp.array([[[10.0], [20.0], [30.0]]])
    found = Values(
        value=value, v_same_instruction=value, v_next_instruction=value, memory=jnp.zeros(1)
    )
    monkeypatch.setattr(evaluate.batches, "views_of", lambda *_: [])
    monkeypatch.setattr(evaluate.batches, "batch_of", lambda *_: None)
    monkeypatch.setattr(evaluate.backbones, "values", lambda *_: (rows, found))
    shapes = SimpleNamespace(shape=None)
    static = SimpleNamespace(network=shapes, critic=shapes)
    error, realised = evaluate._value_errors(static, None, None, None, 0.5, jnp.int32(2))
    # returns 3, 4, 4
    assert error.tolist() == [((10 - 3) + (20 - 4)) / 2] and realised.tolist() == [3.5]


def test_merit_takes_the_better_of_sampled_and_greedy_and_only_prohibitions(monkeypatch):
    asked = []

    def play(static, num_envs, episodes, measured, vectors, runs, state, key, first, which):
        asked.append(key)
        assert which.twins.shape == (4, 2, 5)
        kind, greedy = int(which.kind), bool(which.greedy)
        base = np.array([100.0, 200.0]) - 10 * kind + (5 if greedy == (kind % 2 == 0) else 0)
        followed = Ratio(np.array([[0, 6.0], [0, 8.0]]), np.array([[0, 8.0], [0, 8.0]]))
        live = bool(which.instructed)
        ratios = {"base": Ratio(base, np.ones(2)), "compliance": followed if live else None}
        return SimpleNamespace(ratios=ratios)

    monkeypatch.setattr(evaluate, "_play", play)
    given = np.array([[True, True, True, True], [True, True, False, True]])
    replaces = np.array([[False, True, False, False]] * 2)
    env = SimpleNamespace(
        rules=SimpleNamespace(given=given, replaces=replaces, allowed=np.ones((2, 4, 2, 5), bool))
    )
    task = SimpleNamespace(vectors=None)
    found = merit.parts(None, 4, task, SimpleNamespace(test_env=env), None)
    assert found["base"].tolist() == [105.0, 205.0]
    # the first run is given kinds 2 and 3, the second only 3: 80 + 5 greedy, 70 + 5 sampled
    assert found["under"].tolist() == [(85 + 75) / 2, 175.0]
    assert found["followed"].tolist() == [0.75, 1.0]
    scored = jax.random.key_data(jax.random.key(evaluate.EVALUATION_KEY))
    assert not any(jnp.array_equal(jax.random.key_data(key), scored) for key in asked)


def test_memory_is_empty_where_an_episode_begins(monkeypatch):
    monkeypatch.setattr(act, "project", lambda *_: None)
    monkeypatch.setattr(act, "decide", lambda network, actors, memory, *_: (None, memory))
    static = SimpleNamespace(network=SimpleNamespace(shape=SimpleNamespace(joint=False)))
    policy = training_runs.rollout_policy(static, None, None, jnp.zeros(3))
    zeros = jnp.zeros((2, 2), jnp.int32)
    said = SimpleNamespace(phrase=zeros, context=zeros)
    both = SimpleNamespace(
        **dict.fromkeys(("observation", "macro", "last_macro", "idle", "available"), zeros),
        **dict(instruction=said, also=None, time=jnp.array([3, 0])),
    )
    memory = jnp.arange(1.0, 9.0).reshape(2, 1, 2, 2)  # [G, R, W, H]
    _, after = policy.act(memory, both, jnp.zeros((2, 2)))
    assert after[:, :, 0].tolist() == memory[:, :, 0].tolist()
    assert not after[:, :, 1].any()


def trained_of_numbers() -> Trained:
    """Two methods with two seeds each: run r has the weight r, and the base returns r and 10 + r."""
    configs = [ExperimentConfig(method=m, population=1) for m in METHODS]
    (group,) = groups_of(configs, (7, 8), episodes=64)
    curve = [
        {"episodes": 32 * n, "seconds": 1.0, "steps_per_second": 2.0, "base": b + np.arange(4.0)}
        for n, b in ((1, 0), (2, 10))
    ]
    weights = {"weight": np.arange(4.0)}
    return Trained(
        group=group, task=None, static=None, state=weights, curve=curve, steps_per_second=1.0
    )


def test_a_record_and_a_team_are_of_their_own_method_and_seed():
    trained = trained_of_numbers()
    mavic, naive = trained.group.configs
    assert (trained.places(mavic), trained.places(naive)) == ([0, 1], [2, 3])
    _, first, last = trained.record_lines(naive, None)
    assert (first["base"].tolist(), last["base"].tolist()) == ([2.0, 3.0], [12.0, 13.0])
    assert (first["episodes"], last["episodes"]) == (32, 64)
    assert trained.state_of(mavic, 8) == {"weight": 1.0}
    assert trained.state_of(naive, 7) == {"weight": 2.0}
    trained.curve[1]["base"][2] = np.nan
    assert trained.diverged(naive) == [2, None] and trained.diverged(mavic) == [None, None]
    assert trained.finite_seeds(naive) == [8]


def test_the_median_is_the_lower_of_two():
    trained = trained_of_numbers()
    assert trained.median_seed({"base": {"discounted": [5.0, 3.0]}}) == 8
    assert trained.median_seed({"base": {"discounted": [np.nan, 9.0]}}) == 8


def test_requests_stand_in_for_a_kind_without_effect_and_precondition():
    given, effect = jnp.array([False, True, True, True]), jnp.array([0, 1, 0, 0])
    rules = SimpleNamespace(given=given, effect=effect, precondition=jnp.array([0, 0, 2, 0]))
    assert infeasible._any_kind(rules) == 3
    rules.precondition = jnp.array([0, 0, 2, 1])
    assert infeasible._any_kind(rules) == 1  # none is plain: the first that is given
    macros = IntEnum("One", {"A": 0, "B": 1}), IntEnum("Other", {"B": 0, "C": 1})
    task = SimpleNamespace(env=SimpleNamespace(macros=macros))
    found = infeasible._by_name(task, np.array([[[1.0, 2.0], [3.0, 4.0]]]))  # one run
    assert {name: share.tolist() for name, share in found.items()} == {
        "A": [0.1],
        "B": [0.5],
        "C": [0.4],
    }
