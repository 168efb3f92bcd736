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
from mavic.types import MacroTransitions, replace

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
    return evaluate._Totals(episodes=8.0 + np.arange(RUNS), ratios=ratios)


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
        return totals(100.0 * which.get("kind", 0) + 0.5 * which.get("shield", False))

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
    scores = evaluate.evaluate(trained)
    for config, own in zip(configs, ([0, 1], [2, 3]), strict=True):
        score, run = scores[config], np.array(own)
        assert score["base"]["discounted"].tolist() == own
        assert score["base"]["episodes"] == 8 + own[0]  # the fewest of its seeds
        assert score["leak"]["hurry"].tolist() == (1000 * HURRY + run).tolist()
        assert score["compliance"]["followed"]["ring"].tolist() == (10 * RING + run).tolist()
        assert score[UNDER]["hurry"]["task"].tolist() == (100 * HURRY + run).tolist()
        assert score[UNDER]["ring"]["obeyed"].tolist() == ((10 * RING + run) / 100).tolist()
        assert score[UNDER]["ring"]["use_uninstructed"].tolist() == own  # of uninstructed episodes
        assert np.isnan(score[UNDER]["ring"]["twin"]).all()  # it has no twin
        assert score["optimum"] == 500.0
        assert score["optima"] == {"hurry": 50.0, "ring": 5.0, "hurry+ring": 1.0}
        shielded = score["shield"]
        assert set(shielded) == {"compliance", "compliance_greedy", UNDER, PAIRS}
        assert shielded["compliance"]["discounted"].tolist() == (0.5 + run).tolist()
        assert shielded[UNDER]["ring"]["task"].tolist() == (100 * RING + 0.5 + run).tolist()
        assert shielded[UNDER]["ring"]["use_uninstructed"].tolist() == own
    assert (PAIRS, dict(kind=HURRY, also=RING, shield=False)) in asked
    assert (PAIRS, dict(kind=HURRY, also=RING, shield=True)) in asked
    asked.clear()
    brief = evaluate.evaluate(trained, shield=False)
    assert not any(which.get("shield") for _, which in asked)
    assert all("shield" not in score for score in brief.values())


def test_a_value_bias_needs_a_critic_and_ears():
    for method, known in (("mavic", ["none", "ring"]), ("vanilla", ["none"]), ("random", [])):
        leak = {"none": np.arange(4.0), "ring": 10 + np.arange(4.0)}
        found = evaluate._of_config(ExperimentConfig(method=method), {"leak": leak}, slice(2, 4))
        wanted = {"none": [2, 3], "ring": [12, 13]}
        for kind, errors in found["leak"].items():
            assert list(errors) == (wanted[kind] if kind in known else [None, None])


def test_on_a_cpu_few_environments_play_if_few_episodes_are_enough(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert evaluate.usual_envs(0.01) == 256
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    assert [evaluate.usual_envs(scale) for scale in (1.0, 0.5, 0.25, 0.01)] == [64, 64, 32, 2]


def test_a_kind_that_replaces_the_task_in_some_runs_has_no_task_there():
    """In all runs ring does, and in the first alone hurry."""
    evaluation = SimpleNamespace(
        totals=lambda section, **which: totals(),
        kinds={"hurry": HURRY, "ring": RING},
        pairs={},
        runs=SimpleNamespace(test_env=SimpleNamespace(rules=rules(replaces=[RING]))),
        twins=np.zeros((KINDS, 2, 5), bool),
    )
    evaluation.runs.test_env.rules.replaces[0, HURRY] = True
    evaluation.twins[HURRY, 0, 0] = True  # one macro is enough for a twin
    found = evaluate._sections(evaluation, {}, totals())[UNDER]
    assert list(found) == ["hurry"]
    for name in ("task", "twin"):
        np.testing.assert_array_equal(found["hurry"][name], [np.nan, 1, 2, 3])


def test_a_pair_has_no_task_if_either_replaces_it():
    evaluation = SimpleNamespace(
        totals=lambda section, **which: totals(),
        kinds={},
        pairs={"walk+hurry": (WALK, HURRY), "ring+walk": (RING, WALK), "hurry+ring": (HURRY, RING)},
        runs=SimpleNamespace(test_env=SimpleNamespace(rules=rules(replaces=[WALK]))),
        twins=np.zeros((KINDS, 2, 5), bool),
    )
    found = evaluate._sections(evaluation, {}, totals())
    for name in ("walk+hurry", "ring+walk"):
        assert np.isnan(found[PAIRS][name]["task"]).all()
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


def test_a_twin_is_what_another_kind_forbids_and_the_kind_allows():
    kinds = [SimpleNamespace(twin="c"), *[SimpleNamespace(twin=None)] * 3]
    file = SimpleNamespace(kinds=kinds, names=lambda: ("a", "b", "c", "d"))
    allowed = ["111", "011", "101", "001", "110"]  # none and the four kinds; one agent
    rules = SimpleNamespace(allowed=np.array([[[m == "1" for m in row]] for row in allowed]))
    found = evaluate._twins_of(rules, file)[:, 0]
    assert found.tolist() == [[i == 1 and m == 1 for m in range(3)] for i in range(5)]


@pytest.mark.parametrize(
    ("random", "greedy", "also", "wanted"),
    [
        (False, False, None, (False, False)),
        (False, True, 0, (True, True)),
        (True, True, None, (False, False)),  # the random team has no likeliest macro
    ],
)
def test_a_team_is_scored_in_its_test_environment(monkeypatch, random, greedy, also, wanted):
    played = []

    def rollout(env, policy, key, **how):
        played.append((env, policy, key, how))
        return SimpleNamespace(rows="rows")

    monkeypatch.setattr(evaluate, "rollout", rollout)
    monkeypatch.setattr(evaluate, "rollout_policy", lambda *args: args)
    monkeypatch.setattr(evaluate, "env_of", lambda env, which: (env, which))
    run = SimpleNamespace(train_env="train", test_env="test", eval_epsilon=jnp.float32(random))
    state = SimpleNamespace(actor="actor", critic="critic")
    which = evaluate.episodes_of(jnp.zeros((1, 1, 1), bool), greedy=greedy, also=also)
    rows = evaluate.rows_of("static", 4, 8, "vectors", run, state, "key", 5, which, "epsilon")
    assert rows == "rows"
    ((env, (*policy, likeliest, second), key, how),) = played
    assert env == ("test", which) and policy == ["static", "actor", "vectors", "epsilon"]
    assert (bool(likeliest), second) == wanted
    assert key == "key" and how == dict(episodes=8, num_envs=4, first=5)


def rules_of_two_runs() -> object:
    """The first run is given hurry, the second ring."""
    two = jax.tree.map(lambda leaf: np.stack([leaf, leaf]), RULES)
    return replace(two, given=np.arange(KINDS) == np.array([[HURRY], [RING]]))


def test_all_kinds_that_some_run_is_given_are_evaluated(monkeypatch):
    monkeypatch.setattr(evaluate, "_pairs_of", lambda task, given: (task, given.tolist()))
    monkeypatch.setattr(evaluate, "_twins_of", lambda rules, file: (rules.given.tolist(), file))
    runs = SimpleNamespace(test_env=SimpleNamespace(rules=rules_of_two_runs()))
    asked = []

    def teams_of(configs):
        asked.append(configs)
        return runs, "state"

    task = SimpleNamespace(vectors="vectors", file="file")
    trained = SimpleNamespace(
        group=SimpleNamespace(configs=("a", "b")), task=task, static="static", teams_of=teams_of
    )
    found = evaluate._evaluation_of(trained, 4, 0.5)
    assert asked == [("a", "b")] and (found.runs, found.state) == (runs, "state")
    assert (found.static, found.vectors, found.num_envs, found.scale) == (
        "static",
        "vectors",
        4,
        0.5,
    )
    assert found.kinds == {"hurry": HURRY, "ring": RING}
    assert found.pairs == (task, [i in (HURRY, RING) for i in range(KINDS)])
    assert found.twins == (
        [i == HURRY for i in range(KINDS)],
        "file",
    )  # rules differ in `given` alone
    assert evaluate._evaluation_of(trained, 4, 0.5, pairs=False).pairs == {}


def evaluation_of_numbers(scale: float) -> evaluate._Evaluation:
    return evaluate._Evaluation(
        static="static", vectors="vectors", runs="runs", state="state", num_envs=4, scale=scale,
        twins=jnp.zeros((KINDS, 2, 5), bool), kinds={}, pairs={},
    )  # fmt: skip


@pytest.mark.parametrize(("scale", "episodes"), [(0.5, 128), (0.01, 32)])
def test_the_value_bias_has_a_scaled_number_of_episodes(monkeypatch, scale, episodes):
    asked = []

    def held(*args):
        asked.append(args)
        return {"leak": Ratio(np.array([1.0, 3.0]), np.array([2.0, 4.0]))}

    monkeypatch.setattr(evaluate, "_held_instruction", held)
    assert evaluation_of_numbers(scale).value_bias(RING).tolist() == [0.5, 0.75]
    ((static, num_envs, count, measured, vectors, runs, state, key, which),) = asked
    assert (static, vectors, runs, state) == ("static", "vectors", "runs", "state")
    assert (num_envs, count, [m.name for m in measured]) == (episodes // 4, episodes, ["leak"])
    assert same_keys(key, evaluate.EVALUATION_KEY)
    assert int(which.kind) == RING and which.also is None and not which.instructed


def test_a_section_is_played_by_its_own_rule(monkeypatch):
    asked = []
    monkeypatch.setattr(evaluate, "until_enough", lambda *args: asked.append(args))
    evaluation_of_numbers(0.5).totals("compliance_greedy", shield=True)
    evaluation_of_numbers(0.5).totals(UNDER, kind=RING)
    (*common, live, enough), (*_, held, enough_held) = asked
    assert common == ["static", 4, "vectors", "runs", "state"]
    assert (enough, enough_held) == (250, 256)
    assert live.instructed and live.greedy and live.shield and int(live.kind) == 0
    assert not (held.instructed or held.greedy or held.shield) and int(held.kind) == RING


def test_a_point_of_the_curve_is_of_episodes_of_its_own(monkeypatch):
    """Base is of uninstructed episodes, compliance of instructed ones. The second run ended none and was told none."""
    asked = []

    def play(static, num_envs, episodes, measured, vectors, runs, state, key, first, which):
        asked.append((episodes, int(first), bool(which.instructed), int(which.kind)))
        assert which.twins.shape == (KINDS, 2, 5) and not which.twins.any()
        assert same_keys(key, 20_260_001)  # so that points of all trainings can be compared
        tens = 10.0 if which.instructed else 0.0
        ratios = {
            name: Ratio(np.array([1.0, 0.0]) + tens, np.array([1.0, 0.0]))
            for name in ("base", "live")
        }
        given = np.array([[0.0, 4.0], [0.0, 0.0]])
        ratios["compliance"] = Ratio(given / 4, given)
        return SimpleNamespace(ratios=ratios)

    monkeypatch.setattr(evaluate, "_play", play)
    runs = SimpleNamespace(test_env=SimpleNamespace(rules=rules()))
    point = evaluate.progress(None, 4, None, runs, None)
    assert asked == [(128, 0, False, 0), (128, 0, True, 0)]
    assert point["base"].tolist() == [1, 0] and point["live"].tolist() == [11, 0]
    assert point["compliance"][0] == 0.25 and np.isnan(point["compliance"][1])


def same_keys(key: jax.Array, number: int) -> bool:
    return bool((jax.random.key_data(key) == jax.random.key_data(jax.random.key(number))).all())


@pytest.mark.parametrize(
    ("given", "batches"),
    [
        ([0.0, 0.0], 4),  # nothing is ever asked
        ([0.0, 3.0], 64),  # the first run never has enough
        ([1.0, 3.0], 9),
    ],
)
def test_playing_stops_early_if_nothing_is_asked(monkeypatch, given, batches):
    firsts = []

    def play(static, num_envs, episodes, measured, vectors, runs, state, key, first, which):
        firsts.append(int(first))
        counts = Ratio(np.zeros((2, 1)), np.array(given)[:, None])
        return evaluate._Totals(episodes=np.full(2, episodes), ratios={"compliance": counts})

    monkeypatch.setattr(evaluate, "_play", play)
    live = evaluate.episodes_of(jnp.zeros((2, 1, 1), bool), instructed=True)
    evaluate.until_enough(None, 4, None, None, None, live, 9)
    assert firsts == [16 * batch for batch in range(batches)]


def test_further_episodes_are_played_until_every_run_has_enough(monkeypatch):
    firsts = []

    def play(static, num_envs, episodes, measured, vectors, runs, state, key, first, which):
        firsts.append(int(first))
        assert (num_envs, episodes) == (4, 16)  # on a CPU four episodes of each environment
        assert same_keys(key, evaluate.EVALUATION_KEY)
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
    """One agent, rows of one tick: two under kind 2, one without an instruction, and one that is no decision."""
    column = {name: jnp.zeros((1, 4, 1)) for name in MacroTransitions.__dataclass_fields__}
    flags = dict(
        valid=jnp.array([[[True], [True], [True], [False]]]),
        switched=jnp.zeros((1, 4, 1), bool),
        last=jnp.array([[[False], [False], [True], [True]]]),
        kind=jnp.array([[[2], [2], [0], [2]]]),
        reward=jnp.array([[[1.0], [2.0], [4.0], [8.0]]]),
        discount=jnp.array([[[0.5], [0.5], [0.0], [0.0]]]),
    )
    rows = MacroTransitions(**{**column, **flags})
    value = jnp.array([[[10.0], [20.0], [30.0], [40.0]]])
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
        assert which.twins.shape == (4, 2, 5) and not which.twins.any()
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
    assert not any(same_keys(key, evaluate.EVALUATION_KEY) for key in asked)


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


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        # left decides at ticks 0 and 2 and right at 0, 1 and 2; the last tick belongs to no episode
        (0, [[1, 0, 1], [1, 2, 0]]),
        (HURRY, [[1, 0, 0], [0, 1, 0]]),  # left is told at tick 0 and right at tick 1
    ],
)
def test_a_choice_counts_while_the_request_holds(monkeypatch, kind, wanted):
    def column(*values):
        return jnp.array(values)[:, None]

    rows = SimpleNamespace(
        alive=column(True, True, True, False),
        fresh=column([True, True], [False, True], [True, True], [True, True]),
        kind=column([kind, 0], [kind, kind], [0, 0], [kind, kind]),
        macro=column([0, 1], [1, 1], [2, 0], [1, 0]),
    )
    asked = []

    def play(*args):
        asked.append(args)
        return rows

    monkeypatch.setattr(infeasible, "over_runs", lambda one: one)
    monkeypatch.setattr(infeasible.evaluation, "rows_of", play)
    allowed = np.ones((RUNS, KINDS, 2, 3), bool)
    run = SimpleNamespace(
        test_env=SimpleNamespace(rules=SimpleNamespace(allowed=allowed)),
        eval_epsilon=jnp.float32(0.25),
    )
    common = ("static", 4, 8, "vectors", run, "state", "key")
    found = infeasible._choices.__wrapped__(*common, jnp.int32(kind))
    assert found.tolist() == wanted
    ((*given, first, which, epsilon),) = asked
    assert (tuple(given), first, epsilon.tolist()) == (common, 0, [0.25] * 3)
    assert int(which.kind) == kind and not which.instructed and which.also is None
    assert which.twins.shape == (KINDS, 2, 3)


def test_each_method_that_hears_has_its_own_choices_under_each_request(monkeypatch):
    """Row r of what is heard makes run n choose WAIT 1 + r times and WALK n times. Training has other kinds."""
    configs = tuple(ExperimentConfig(method=method) for method in ("mavic", "vanilla", "naive"))
    test = jax.tree.map(lambda *leaves: np.stack(leaves), *[instructed()] * RUNS)
    given = np.array([[i in (HURRY, RING) for i in range(KINDS)]] * RUNS)
    runs = training_runs.Run(
        hyper=None, correction=None, key=None, eval_epsilon=jnp.zeros(RUNS), train_env=test,
        test_env=replace(test, rules=replace(test.rules, given=given)),
    )  # fmt: skip
    heard, teams = [], []

    def choices(static, num_envs, episodes, vectors, runs, state, key, kind):
        (row,) = np.unique(runs.test_env.phrases.table)
        assert runs.test_env.phrases.count.tolist() == [[1] * KINDS] * RUNS
        assert runs.test_env.rules.given.tolist() == given.tolist()
        assert (static, state, num_envs, episodes) == ("static", "state", 32, 128)
        assert vectors.tolist() == [[0.0]] * 7 + [[1.0], [2.0], [3.0], [4.0], [5.0]]
        assert same_keys(key, evaluate.EVALUATION_KEY)
        heard.append((int(row), int(kind)))
        found = np.zeros((RUNS, 2, 5))
        found[:, 0, 0], found[:, 0, 1] = 1 + row, np.arange(RUNS)
        return found

    def teams_of(asked):
        teams.append(asked)
        return runs, "state"

    own = np.arange(1.0, 6.0)[:, None]
    monkeypatch.setattr(infeasible, "_choices", choices)
    monkeypatch.setattr(infeasible.heard, "texts_heard", lambda *_: own)
    monkeypatch.setattr(infeasible, "kinds_asked", lambda task: [RING, 0, 0, WALK, 0])
    monkeypatch.setattr(infeasible, "_row_of", lambda task, text, kind: 2 * kind)
    task = SimpleNamespace(
        lexicon=SimpleNamespace(names=RULES.names),
        hear="vectors", vectors=jnp.zeros((7, 1)), env=test.env,
    )  # fmt: skip
    trained = SimpleNamespace(
        group=SimpleNamespace(configs=configs, seeds=(7, 8)),
        task=task, static="static", teams_of=teams_of,
    )  # fmt: skip
    found = infeasible.evaluate(trained, scale=0.5)
    assert teams == [[configs[0], configs[2]]] and list(found) == teams[0]
    rows = [(0, 0), (7, HURRY), (6, HURRY), (8, HURRY), (9, HURRY), (10, HURRY), (2, HURRY)]
    assert heard == [*rows, (11, HURRY)]  # a row of its own, and the reader's row where it is sure
    fly, unsure = infeasible.REQUESTS[0], infeasible.REQUESTS[1]
    for config, places in ((configs[0], [0, 1]), (configs[2], [2, 3])):
        entry, run = found[config], np.array(places)
        assert (entry[fly]["asked"], entry[unsure]["asked"]) == ("ring", "none")
        for way, row in (
            (entry[fly]["own"], 7),
            (entry[fly]["read"], 6),
            (entry[unsure]["own"], 8),
        ):
            np.testing.assert_allclose(way["WAIT"], (1 + row) / (1 + row + run))
            np.testing.assert_allclose(way["WALK"], run / (1 + row + run))
        for way in (entry["none"]["own"], entry[unsure]["read"]):
            np.testing.assert_allclose(way["WALK"], run / (1 + run))
    assert (
        infeasible.evaluate(
            SimpleNamespace(group=SimpleNamespace(configs=configs[1:2], seeds=(7,)), task=task)
        )
        == {}
    )


def test_a_request_that_is_understood_is_heard_as_its_closest_phrase(monkeypatch):
    monkeypatch.setattr(infeasible, "vectors", lambda texts, encoder: [(*texts, encoder)])
    lexicon = SimpleNamespace(encoder="words", closest=lambda vector, kind: (vector, kind))
    task = SimpleNamespace(lexicon=lexicon)
    assert infeasible._row_of(task, "fly", RING) == (("fly", "words"), RING)
