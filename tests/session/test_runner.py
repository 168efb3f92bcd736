"""Training on the host: a stopped training ends as one that was not, scores add up, files give back the team."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console
from tasks import make_task

import mavic
from mavic.envs import api
from mavic.envs.api import make
from mavic.envs.box_pushing import BoxPushing
from mavic.evaluation import evaluate, metrics
from mavic.evaluation.quantities import EPISODES, Tally
from mavic.experiment import records
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import preset_of
from mavic.instruct import schedule
from mavic.learn import act
from mavic.learn.popart import Scale
from mavic.rollout.rollout import rollout
from mavic.rollout.step import draws_for, reset, step
from mavic.session.runner import _note, train_group
from mavic.teams.facts import PolicyError
from mavic.teams.file import _write_facts
from mavic.training import checkpoint, train
from mavic.training.groups import Group, groups_of
from mavic.training.runs import Run, make_run, rollout_policy
from mavic.types import replace

ROOT = Path(__file__).parents[2]
SMALL = dict(
    world="box_pushing", options={"size": 4}, network="protected", hear="vectors", population=1
)
MAVIC, VANILLA, LATER = (
    ExperimentConfig(method="mavic", **SMALL),
    ExperimentConfig(method="vanilla", **SMALL),
    ExperimentConfig(method="vanilla", schedule="paper", **SMALL),
)
RANDOM = ExperimentConfig(method="random", **SMALL)
(GROUP,) = groups_of([MAVIC, LATER, RANDOM], [6], episodes=64, batch=32)
LEAVE_THE_TASK_ON = {"avoid-small-box-0", "avoid-small-box-1", "avoid-small-boxes"}
# One update a point. With as many environments as episodes nothing is packed, which compiles in half the time.
HOW = dict(num_envs=32, points=2, console=Console(quiet=True))


@pytest.fixture(scope="module")
def trained():
    return train_group(GROUP, **HOW)


@pytest.fixture(scope="module")
def scores(trained):
    return evaluate.evaluate(trained, num_envs=32, scale=0.01)


@pytest.fixture(scope="module")
def saved(trained, tmp_path_factory):
    return trained.save_team(tmp_path_factory.mktemp("team") / "mavic", MAVIC, 6)


@pytest.fixture(scope="module")
def team(saved):
    return mavic.load_policy(saved)


def assert_same(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.mark.long
def test_configs_that_differ_only_in_evaluation_share_a_training(trained):
    three = dataclasses.replace(trained, group=groups_of([MAVIC, LATER, VANILLA], [6, 7])[0])
    assert three.group.trained() == (MAVIC.as_trained(), VANILLA.as_trained())
    assert [three.places(config) for config in three.group.configs] == [[0, 1], [2, 3], [2, 3]]
    assert trained.state.episodes.tolist() == [64, 64]


@pytest.mark.parametrize(
    ("method", "met"),
    [("vanilla", set()), ("switch", {"rule"}), ("naive", {"rule", "schedule", "overlap"})],
)
def test_what_a_method_meets_in_training_makes_it_another_training(method, met):
    config = ExperimentConfig(method=method)
    changes = dict(rule="add", schedule="paper", overlap=True)
    differ = {
        name
        for name, value in changes.items()
        if dataclasses.replace(config, **{name: value}).as_trained() != config.as_trained()
    }
    assert differ == met


def test_configs_of_other_shapes_are_other_groups():
    with pytest.raises(ValueError, match="must share their options and world, network"):
        Group(
            configs=(MAVIC, dataclasses.replace(MAVIC, network="shared")),
            seeds=(0,),
            preset=GROUP.preset,
        )
    found = groups_of([MAVIC, dataclasses.replace(MAVIC, network="shared"), VANILLA], [0])
    assert [len(group.configs) for group in found] == [2, 1]


@pytest.mark.long
def test_methods_share_a_seeds_start_and_then_part(trained):
    fresh = train.init_states(
        trained.static,
        Run.stack([make_run(c, GROUP.preset, trained.task, 6) for c in GROUP.configs]),
    )
    assert_same(*(jax.tree.map(lambda leaf, i=i: leaf[i], fresh) for i in (0, 1)))
    assert any((leaf[0] != leaf[1]).any() for leaf in jax.tree.leaves(trained.state.critic))


@pytest.mark.long
@pytest.mark.parametrize("how", ["stop_after", "ctrl_c"])
def test_stopped_and_resumed_it_ends_in_the_same_numbers(trained, tmp_path, monkeypatch, how):
    if how == "stop_after":
        with pytest.raises(KeyboardInterrupt):
            train_group(GROUP, tmp_path, **HOW, stop_after=1)
    else:
        calls = []

        def chunk(*args):
            calls.append(args)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return straight(*args)

        straight = train.train_updates
        chunk.lower = straight.lower
        with monkeypatch.context() as patch:
            patch.setattr(train, "train_updates", chunk)
            with pytest.raises(KeyboardInterrupt):
                train_group(GROUP, tmp_path, **HOW)
    assert {path.name for path in tmp_path.iterdir()} == {"state-1.json", "state-1.safetensors"}
    resumed = train_group(GROUP, tmp_path, **HOW)
    assert_same(resumed.state, trained.state)
    assert [point["episodes"] for point in resumed.curve] == [32, 64]
    for before, after in zip(trained.curve, resumed.curve, strict=True):
        for name in ("base", "compliance", "value"):
            np.testing.assert_allclose(after[name], before[name], rtol=1e-5)
    again = train_group(GROUP, tmp_path, **HOW)  # nothing is left to do
    assert_same(again.state, trained.state)


def test_groups_that_differ_have_different_names():
    groups = [
        GROUP,
        dataclasses.replace(GROUP, seeds=(4,)),
        dataclasses.replace(GROUP, configs=(MAVIC,)),
        dataclasses.replace(GROUP, preset=dataclasses.replace(GROUP.preset, gamma=0.9)),
    ]
    assert len({checkpoint._name_of(group) for group in groups}) == 4
    assert checkpoint._name_of(dataclasses.replace(GROUP)) == checkpoint._name_of(GROUP)


def test_a_group_is_of_its_instructions(monkeypatch, tmp_path):
    before = checkpoint._name_of(GROUP)
    text = api.world("box_pushing").instructions.read_text()
    own = tmp_path / "own.toml"
    world = dataclasses.replace(api.world("box_pushing"), instructions=own)
    monkeypatch.setattr(api, "REGISTERED", {"box_pushing": world})
    for same, written in ((True, text), (False, text.replace("rule =", "penalty = -3\nrule =", 1))):
        own.write_text(written)
        assert (checkpoint._name_of(GROUP) == before) == same


@pytest.mark.long
def test_every_config_is_evaluated_under_its_own_condition(scores):
    assert set(scores) == {MAVIC, LATER, RANDOM}
    live, once = (scores[config]["compliance"] for config in (MAVIC, LATER))
    given = [sum(part["given"].values())[0] / part["episodes"] for part in (live, once)]
    assert 0 < given[1] <= 1 and given[0] > 1.2 * given[1]  # at most once; again and again


@pytest.mark.long
def test_every_config_is_evaluated_with_its_own_team(trained, scores):
    """With the states in their places by hand. The program is the one that `evaluate` compiled."""
    runs = Run.stack([make_run(config, GROUP.preset, trained.task, 6) for config in GROUP.configs])
    state = jax.tree.map(lambda leaf: leaf[np.array([0, 1, 1])], trained.state)
    played = evaluate._play(
        trained.static, 32, 128, metrics.measured(evaluate.PLAYED), trained.task.vectors, runs, state,
        jax.random.key(evaluate.EVALUATION_KEY), jnp.int32(0),
        evaluate.episodes_of(jnp.zeros(runs.test_env.rules.allowed.shape[1:], bool)),
    )  # fmt: skip
    base = played.ratios["base"].value()
    assert base[0] != base[1]
    for place, config in enumerate((MAVIC, LATER)):
        np.testing.assert_allclose(scores[config]["base"]["discounted"], base[place], rtol=1e-6)


@pytest.mark.long
def test_counts_add_up(scores):
    for score in scores.values():
        compliance = score["compliance"]
        given, followed = (sum(compliance[name].values()) for name in ("given", "followed"))
        assert all(
            (compliance["followed"][kind] <= compliance["given"][kind]).all()
            for kind in compliance["given"]
        )
        np.testing.assert_allclose(compliance["per_instruction"], followed / given)
        assert (compliance["per_instruction"] <= compliance["per_decision"] + 1e-9).all()
        assert set(score["leak"]) == {"none", *compliance["given"]}
        assert set(score["under"]) == set(score["shield"]["under"]) == LEAVE_THE_TASK_ON
        assert score["episodes"] == 64 and score["optimum"] > 290
        base = score["base"]
        assert base["episodes"] >= 10 and (base["length"] <= 100).all()
        assert (base["discounted"] <= score["optimum"] + 1e-6).all()


@pytest.mark.long
def test_the_task_under_a_held_instruction_is_judged_without_exploration(scores):
    """Who is deaf plays the very same episodes with and without an instruction. Exploration would tell them apart."""
    score = scores[LATER]
    for kind, part in score["under"].items():
        assert score["optima"][kind] == score["optimum"]  # the best plan touches no small box
        for name in ("task", "solved"):
            base = score["base"]["discounted" if name == "task" else name]
            np.testing.assert_allclose(part[name], base, rtol=1e-6)
    no_twin = score["under"]["avoid-small-boxes"]
    assert np.isnan(no_twin["twin"]).all() and np.isnan(no_twin["twin_uninstructed"]).all()
    mirrored = score["under"]["avoid-small-box-0"]
    np.testing.assert_allclose(mirrored["twin"], mirrored["twin_uninstructed"], rtol=1e-6)
    assert (scores[RANDOM]["under"]["avoid-small-box-0"]["twin_uninstructed"] > 0.05).all()


@pytest.mark.long
def test_two_prohibitions_at_once_are_judged_in_the_same_way(scores):
    pairs = {
        "avoid-small-box-0+avoid-small-box-1",
        "avoid-small-box-0+avoid-small-boxes",
        "avoid-small-box-1+avoid-small-boxes",
    }
    for score in scores.values():
        assert set(score["pairs"]) == set(score["shield"]["pairs"]) == pairs
        assert all((part["obeyed"] == 1).all() for part in score["shield"]["pairs"].values())
        assert {score["optima"][pair] for pair in pairs} == {score["optimum"]}
    for part in scores[LATER]["pairs"].values():  # who is deaf plays as if nothing were said
        base = scores[LATER]["base"]
        np.testing.assert_allclose(part["task"], base["discounted"], rtol=1e-6)
        np.testing.assert_allclose(part["solved"], base["solved"], rtol=1e-6)
    first, both = "avoid-small-box-0", "avoid-small-box-0+avoid-small-box-1"
    random = scores[RANDOM]
    assert (random["pairs"][both]["obeyed"] < random["under"][first]["obeyed"]).all()


@pytest.mark.long
def test_a_brief_evaluation_leaves_out_the_shield_and_pairs(trained, scores):
    brief = evaluate.evaluate(trained, num_envs=32, scale=0.01, shield=False, pairs=False)
    for config, score in brief.items():
        whole = dict(scores[config])
        assert "shield" not in score and not score["pairs"]
        assert whole.pop("shield") and whole["pairs"]
        np.testing.assert_equal(score["under"], whole["under"])
        np.testing.assert_equal(score["compliance"], whole["compliance"])


@pytest.mark.long
def test_with_the_shield_nobody_disobeys(scores):
    for config, score in scores.items():
        compliance, under = (score["shield"][name] for name in ("compliance", "under"))
        assert (compliance["per_instruction"] == 1).all() and sum(compliance["given"].values())[
            0
        ] > 0
        assert all((part["obeyed"] == 1).all() for part in under.values()), config
    assert (scores[RANDOM]["compliance"]["per_instruction"] < 0.5).all()
    assert (scores[RANDOM]["under"]["avoid-small-boxes"]["obeyed"] < 0.5).all()


@pytest.mark.long
def test_vanilla_is_evaluated_without_hearing_a_word(trained):
    task = trained.task
    deaf, hearing = (make_run(config, GROUP.preset, task, 6) for config in (VANILLA, MAVIC))
    assert not deaf.test_env.phrases.table.any() and hearing.test_env.phrases.table.any()
    assert_same(deaf.test_env.schedule, hearing.test_env.schedule)
    assert (
        float(deaf.train_env.schedule.rate) == 0
        and float(deaf.train_env.schedule.spurious_interrupt_prob) == 0
    )
    assert float(hearing.train_env.schedule.spurious_interrupt_prob) == pytest.approx(
        GROUP.preset.spurious_interrupt_prob
    )
    assert (
        float(hearing.test_env.schedule.spurious_interrupt_prob) == 0
    )  # evaluation has no spurious interrupts


@pytest.mark.long
def test_the_random_policy_is_a_yardstick_that_costs_no_training(trained, scores):
    assert RANDOM.as_trained() == VANILLA.as_trained() and len(trained.state.episodes) == 2
    task = trained.task
    assert float(make_run(RANDOM, GROUP.preset, task, 3).eval_epsilon) == 1
    assert float(make_run(VANILLA, GROUP.preset, task, 3).eval_epsilon) == 0
    score = scores[RANDOM]
    assert set(score["leak"]) == set(scores[MAVIC]["leak"]) and score["leak"]["none"] == [None]
    kinds_of_line = [line["type"] for line in trained.record_lines(RANDOM, score)]
    assert kinds_of_line == ["run", "score"]  # no curve: it learns nothing
    # six macros, all allowed with the same chance: a decision obeys as often as its kind allows macros
    assert 0.3 < score["compliance"]["per_decision"][0] < 0.7
    greedy, sampled = score["compliance_greedy"], score["compliance"]
    assert abs(greedy["per_decision"][0] - sampled["per_decision"][0]) < 0.15


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["uninstructed_episode_prob", "hold_to_end_prob", "spurious_interrupt_prob"]
)
def test_uninstructed_episodes_and_the_like_are_for_training_with_interruptions_alone(
    trained, name
):
    preset = dataclasses.replace(GROUP.preset, **{name: 0.25})
    switch = ExperimentConfig(method="switch", **SMALL)
    runs = {c.method: make_run(c, preset, trained.task, 3) for c in (MAVIC, VANILLA, switch)}
    share = {method: float(getattr(run.train_env.schedule, name)) for method, run in runs.items()}
    assert share == {"mavic": 0.25, "vanilla": 0, "switch": 0}
    assert float(getattr(runs["mavic"].test_env.schedule, name)) == 0


@pytest.mark.long
def test_a_record_comes_back_as_it_was_written(trained, scores, tmp_path):
    path = tmp_path / f"{LATER.name()}.jsonl"
    records.write(path, trained.record_lines(LATER, scores[LATER]))
    found = records.read(path)
    assert found.config() == LATER and found.run["seeds"] == [6]
    assert found.run["preset"]["batch"] == 32
    assert [point["episodes"] for point in found.curve] == [32, 64]
    for point, line in zip(trained.curve, found.curve, strict=True):
        np.testing.assert_allclose(line["base"], [point["base"][1]], rtol=1e-5)  # vanilla's place
    np.testing.assert_allclose(
        found.score["base"]["discounted"], scores[LATER]["base"]["discounted"], rtol=1e-5
    )
    assert found.score["compliance"]["given"] == records.plain(scores[LATER]["compliance"]["given"])
    assert [path.name for path in tmp_path.iterdir()] == [path.name]


def test_the_team_that_is_kept_is_the_median_seeds(trained):
    def kept(seeds, score):
        seeded = dataclasses.replace(trained.group, seeds=tuple(seeds))
        return dataclasses.replace(trained, group=seeded).median_seed(score)

    score = {"base": {"discounted": np.array([3.0, 1.0, np.nan, 2.0, 2.0])}}
    assert kept(range(10, 15), score) == 13  # of four: one diverged
    assert kept((10, 11), {"base": {"discounted": [5.0, 4.0]}}) == 11


def test_a_broken_record_is_named_with_its_line(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"type": "run"}\n{"type": \n')
    with pytest.raises(records.RecordError, match=r"bad\.jsonl:2: not JSON"):
        records.read(path)
    path.write_text('{"type": "curve"}\n')
    with pytest.raises(records.RecordError, match=r"bad\.jsonl:1: the first line"):
        records.read(path)
    with pytest.raises(records.RecordError, match="no records"):
        records.read_folder(tmp_path / "none")


ENVS, SEED = 12, jax.random.key(11)
STEP = jax.jit(step)


@pytest.fixture(scope="module")
def busy_env(trained):
    """The environment of evaluation with more instructions: every episode meets several."""
    place = make_run(MAVIC, GROUP.preset, trained.task, 6).test_env
    often = schedule.make_schedule(rate=0.6, hold_min=1, hold_max=4, overlap=True, one_agent=1.0)
    return replace(place, schedule=often)


@pytest.fixture(scope="module")
def greedy_rows(trained, busy_env):
    """Greedy episodes, one per environment, by the rollout of evaluation."""
    actor = jax.tree.map(lambda leaf: leaf[0], trained.state.actor)
    policy = rollout_policy(trained.static, actor, trained.task.vectors, jnp.zeros(3), True)
    play = jax.jit(lambda key: rollout(busy_env, policy, key, episodes=ENVS, num_envs=ENVS).rows)
    return jax.tree.map(np.asarray, play(SEED))


@pytest.mark.long
def test_a_loaded_team_decides_as_the_learner_does(trained, busy_env, greedy_rows, team):
    lexicon = trained.task.lexicon
    world = reset(busy_env, jax.random.fold_in(SEED, 0))
    carry = team.start()
    heard = set()
    for tick in range(40):
        if not greedy_rows.alive[tick, 0]:
            break
        texts = [lexicon.texts[phrase] or None for phrase in world.instruction.phrase.tolist()]
        heard.update(texts)
        macro, carry = team.act(
            SEED,
            carry,
            world.observation,
            texts,
            world.idle,
            available=world.available,
            greedy=True,
        )
        world, row = STEP(busy_env, world, macro, draws_for(world)[2:])
        np.testing.assert_array_equal(row.macro, greedy_rows.macro[tick, 0], err_msg=f"tick {tick}")
        np.testing.assert_array_equal(row.kind, greedy_rows.kind[tick, 0], err_msg=f"tick {tick}")
    assert tick > 3 and None in heard and len(heard) > 2


def test_only_those_a_kind_addresses_hear_it():
    team = mavic.load_policy(ROOT / "policies" / "warehouse" / "mavic")
    assert team.addressed.tolist() == [[False] * 3] + [[False, False, True]] * 3
    text = team.facts["examples"][0]
    observation = np.zeros((3, team.shape.observation))
    one, each = (team.values(team.start(), observation, t) for t in (text, [None, None, text]))
    np.testing.assert_array_equal(one["text"], each["text"])
    np.testing.assert_array_equal(one["text"], one[team.kinds[0]])
    loud = team.values(team.start(), observation, [text] * 3)
    assert (loud["text"] != one["text"]).any()


@pytest.mark.long
def test_its_values_are_the_critics(trained, team):
    lexicon = trained.task.lexicon
    place = reset(make_run(MAVIC, GROUP.preset, trained.task, 6).test_env, SEED)
    _, carry = team.act(SEED, team.start(), place.observation, "push", greedy=True)
    text = team.facts["examples"][2]
    found = team.values(carry, place.observation, text)
    assert list(found) == ["none", *team.kinds, "text"]
    np.testing.assert_array_equal(found["text"], found[team.kinds[2]])
    critic, scale = (
        jax.tree.map(lambda leaf: leaf[0], tree)
        for tree in (trained.state.critic, trained.state.scale)
    )
    network = trained.static.network
    critics = act.project(network, critic, trained.task.vectors)
    spread, centre = jax.vmap(Scale.spread)(scale), jax.vmap(Scale.centre)(scale)
    for kind, row in (("none", 0), (team.kinds[2], lexicon.texts.index(text))):
        observed = act.Observed(
            observation=place.observation[None],
            last_macro=carry.macro[None],
            phrase=jnp.full((1, 2), row),
        )
        heads, _ = act._step(network, critics, carry.critic, observed, jnp.ones((1, 2), bool))
        context = int(row > 0)  # each context has its own part and its own head
        expected = heads[:, context, 0, context] * spread[:, context] + centre[:, context]
        np.testing.assert_allclose(found[kind], expected, rtol=1e-4)


@pytest.mark.long
def test_compliance_is_what_the_rows_show(busy_env, greedy_rows):
    """Counted by hand: an instruction is a stretch of one kind; followed if no decision in it was forbidden."""
    allowed = np.asarray(busy_env.rules.allowed)
    kinds = allowed.shape[0]
    given, followed = np.zeros(kinds), np.zeros(kinds)
    decisions, steps = [], []  # whether each was allowed
    for lane in range(ENVS):
        alive = greedy_rows.alive[:, lane]
        joint = greedy_rows.kind[:, lane].max(-1)
        whom = greedy_rows.kind[:, lane] > 0
        start = 0
        for tick in range(alive.sum()):
            over = greedy_rows.terminal[tick, lane] | greedy_rows.truncated[tick, lane]
            if not (greedy_rows.switched[tick, lane] or over):
                continue
            kind, stretch = joint[tick], slice(start, tick + 1)
            start = tick + 1
            assert (joint[stretch] == kind).all()
            decides = whom[stretch] & greedy_rows.fresh[stretch, lane]
            fine = allowed[kind][np.arange(2), greedy_rows.macro[stretch, lane]]
            decisions.extend(fine[decides])
            steps.extend(fine[whom[stretch]])
            if not kind or not decides.any():
                continue
            given[kind] += 1
            followed[kind] += (fine | ~decides).all()
    assert given.sum() > 8 and given.sum() > followed.sum()
    played = Tally(rows=jax.tree.map(jnp.asarray, greedy_rows), gamma=jnp.float32(1), kinds=kinds)
    sums = metrics.measure(metrics.measured(["compliance"]), played)
    np.testing.assert_array_equal(sums["compliance"].denominator, given)
    np.testing.assert_array_equal(sums["compliance"].numerator, followed)
    for name, found in (("per_decision", decisions), ("per_step", steps)):
        assert tuple(sums[name]) == (sum(found), len(found))
        assert 0 < sum(found) < len(found)
    assert float(EPISODES.total(played)) == ENVS


@pytest.mark.long
def test_base_return_is_what_the_rows_show(greedy_rows):
    played = Tally(rows=jax.tree.map(jnp.asarray, greedy_rows), gamma=jnp.float32(0.5), kinds=2)
    sums = metrics.measure(metrics.measured(["base"]), played)
    by_hand = 0.0
    for env in range(ENVS):
        length = greedy_rows.alive[:, env].sum()
        by_hand += sum(0.5**t * greedy_rows.task_reward[t, env] for t in range(length))
    np.testing.assert_allclose(sums["base"].numerator, by_hand, rtol=1e-4)
    assert float(sums["base"].denominator) == ENVS
    assert float(sums["length"].numerator) == greedy_rows.alive.sum()


def with_facts(saved, tmp_path, **changes):
    path = tmp_path / "other.safetensors"
    path.write_bytes(saved.read_bytes())
    facts = json.loads(saved.with_suffix(".json").read_text()) | changes
    _write_facts(path, {name: fact for name, fact in facts.items() if fact is not None})
    return path


@pytest.mark.long
def test_a_team_is_loaded_with_or_without_the_ending(saved, team):
    assert_same(mavic.load_policy(saved.with_suffix("")).weights, team.weights)


@pytest.mark.long
@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (dict(format=99), r"other\.json: format 99, this version of mavic reads format 2"),
        (dict(encoder=None, kinds=None), r"other\.json: .*without kinds, encoder"),
        (dict(encoder_hash="0" * 64), r"of hash 000000000000, here it has hash"),
    ],
)
def test_a_policy_of_another_make_is_refused(saved, tmp_path, changes, complaint):
    with pytest.raises(PolicyError, match=complaint):
        mavic.load_policy(with_facts(saved, tmp_path, **changes))


@pytest.mark.long
def test_weights_of_another_network_are_refused(saved, tmp_path):
    shape = json.loads(saved.with_suffix(".json").read_text())["shape"] | {"hidden": 16}
    with pytest.raises(PolicyError, match="does not hold this network's weights"):
        mavic.load_policy(with_facts(saved, tmp_path, shape=shape))


@pytest.mark.long
def test_a_policy_that_is_not_there_or_broken_is_named(saved, tmp_path):
    with pytest.raises(PolicyError, match=r"none\.safetensors: no such file"):
        mavic.load_policy(tmp_path / "none")
    path = with_facts(saved, tmp_path)
    path.with_suffix(".json").write_text("{")
    with pytest.raises(PolicyError, match=r"other\.json: not a policy's description"):
        mavic.load_policy(path)
    path.with_suffix(".json").unlink()
    with pytest.raises(PolicyError, match=r"other\.json: no such file"):
        mavic.load_policy(path)


@pytest.mark.long
def test_a_cut_off_file_is_refused(saved, tmp_path):
    path = with_facts(saved, tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(PolicyError, match=r"other\.safetensors"):
        mavic.load_policy(path)


@pytest.mark.long
def test_a_team_refuses_another_world(team):
    team.fits(make("box_pushing", size=4))
    with pytest.raises(
        PolicyError, match=r"has world warehouse where the team has box_pushing; choose"
    ):
        team.fits(make("warehouse"))
    with pytest.raises(PolicyError, match=r"observation has shape \(2, 3\); .* wants \(2, "):
        team.act(SEED, team.start(), jnp.zeros((2, 3)))
    with pytest.raises(PolicyError, match="3 texts for 2 agents"):
        team.act(SEED, team.start(), jnp.zeros((2, team.shape.observation)), ["push"] * 3)


def test_a_world_of_ones_own_is_trained_by_name(monkeypatch):
    monkeypatch.setattr(api, "REGISTERED", dict(api.REGISTERED))
    with pytest.raises(ValueError, match="registered as 'other' calls itself 'box_pushing'"):
        api.register("other", "mavic.envs.box_pushing:BoxPushing")
        make_task("other")

    class Mine(BoxPushing):
        name = "mine"

    api.register("mine", Mine)
    with pytest.raises(ValueError, match="'mine' has no instruction file; register it with one"):
        make_task("mine")
    own = api.world("box_pushing").instructions
    api.register("mine", Mine, instructions=own)
    assert make_task("mine", size=4).file.source == str(own)
    (group,) = groups_of([ExperimentConfig(world="mine", population=1)], [0], episodes=64)
    assert group.preset.episodes == 64 and api.world("mine").optimum is None


@pytest.mark.parametrize(("world", "best"), [("warehouse", 533.0), ("overcooked", 156.6119)])
def test_the_optimum_is_known_for_the_discount_it_was_found_with(world, best):
    env, gamma = api.make(world), preset_of("tuned", world).gamma
    assert api.best_return(env, gamma) == best
    assert api.best_return(env, 0.9) is None


def test_shares_of_nothing_are_no_number():
    shares = metrics.Ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0])).value()
    assert records.plain(shares) == [0.5, None]


def test_progress_tells_every_method_by_itself():
    point = {"base": [1.0, 3.0, 10.0, np.nan], "compliance": [0.2, 0.4, 1.0, np.nan]}
    point |= {"steps_per_second": 1000.0}
    assert _note(point, ["vanilla", "vanilla", "mavic", "mavic"]) == (
        "vanilla base 2.0, compliance 30% · mavic base 10.0, compliance 100% · 1,000 steps/s"
    )
    alone = {**point, "base": [2.0] * 2, "compliance": [0.5] * 2}
    assert _note(alone, ["mavic"] * 2) == "base 2.0, compliance 50% · 1,000 steps/s"
    silent = {**alone, "compliance": [np.nan] * 2}
    assert _note(silent, ["mavic"] * 2) == "base 2.0, nothing was asked · 1,000 steps/s"
    lost = {**point, "base": [np.nan] * 2, "compliance": [np.nan] * 2}
    assert _note(lost, ["mavic"] * 2).startswith("diverged")
