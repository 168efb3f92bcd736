"""A watched episode: it is the rollout's, a script is obeyed to the tick, and frames tell what happened."""

from __future__ import annotations

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mavic.apps import stage
from mavic.apps.stage import WatchError, play
from mavic.envs.box_pushing.optimum import BEST_PLAN as BEST
from mavic.experiments.config import Task, acting, make_task
from mavic.experiments.methods import preset_of
from mavic.experiments.policy_file import TeamPolicy, Weights
from mavic.instruct import reward, schedule
from mavic.language import lexicon as lexicons
from mavic.learn import networks
from mavic.learn import update as learning
from mavic.rollout.rollout import alone, rollout
from mavic.rollout.step import InstructedEnv
from mavic.types import Phrases

GO_0, GO_1 = BEST[0]
PUSH, STAY = 4, 7


class Planner:
    """A stand-in: each agent follows its list of macros, repeats the last, and starts anew when told otherwise."""

    def __init__(self, plan, heeds=None):
        self.plan, self.heeds = np.array(plan), heeds or {}
        self.heard = []

    def start(self):
        agents = self.plan.shape[1]
        return np.full(agents, -1), np.zeros(agents, int)

    def act(self, key, carry, observation, text, idle, *, available, greedy):
        self.heard.append(tuple(text))
        macro, step = carry[0].copy(), carry[1].copy()
        for agent in np.flatnonzero(idle):
            if text[agent] in self.heeds:
                macro[agent], step[agent] = self.heeds[text[agent]], 0
            else:
                macro[agent] = self.plan[min(step[agent], len(self.plan) - 1), agent]
                step[agent] += 1
        return jnp.asarray(macro), (macro, step)


@pytest.fixture(scope="module")
def bench() -> Task:
    return make_task("box_pushing")


@pytest.fixture(scope="module")
def setting(bench) -> InstructedEnv:
    return InstructedEnv(
        env=bench.env,
        rules=reward.rules_of(bench.env, bench.file),
        schedule=schedule.make_schedule(**schedule.SCHEDULES["live"]),
        phrases=Phrases(table=bench.lexicon.table, count=bench.lexicon.count),
    )


KEY = jax.random.key(3)


def test_the_best_plan_unscripted_and_undisturbed(bench, setting):
    film = play(Planner(BEST), setting, bench.lexicon, KEY, script=[], name="best")
    assert (film.name, film.world, film.agents) == ("best", "box_pushing", ("robot_0", "robot_1"))
    assert [frame["time"] for frame in film.frames] == list(range(7))
    first, *_, last = film.frames
    assert [a["macro"] for a in first["agents"]] == ["GO_BIG_SPOT_0", "GO_BIG_SPOT_1"]
    assert all(a["decided"] and a["complies"] is None for a in first["agents"])
    assert not any(a["decided"] for a in film.frames[1]["agents"])
    assert last["over"] == "solved" and "solved" in last["events"]
    assert last["earned"] == pytest.approx(300 - 6 * 0.1, abs=1e-3)
    assert last["reward"] == pytest.approx(299.9, abs=1e-3)
    assert last["earned"] == pytest.approx(sum(f["reward"] for f in film.frames), abs=1e-3)
    assert all(frame["values"] is None for frame in film.frames)


def test_frames_are_plain_json(bench, setting):
    film = play(Planner(BEST), setting, bench.lexicon, KEY, script=[(1, "stay", None, 2)])
    assert json.loads(json.dumps(dataclasses.asdict(film)))["frames"] == list(film.frames)


def test_a_scripted_instruction_governs_exactly_its_ticks(bench, setting):
    kind = bench.lexicon.names.index("stay")
    text = bench.lexicon.texts[int(bench.lexicon.table[kind, 0])]
    team = Planner(BEST, {text: STAY})
    script = [(1, "stay", None, 3)]
    film = play(team, setting, bench.lexicon, KEY, script)
    asked = [frame["instruction"] for frame in film.frames]
    assert [a is not None for a in asked[:6]] == [False, True, True, True, False, False]
    assert [a["left"] for a in asked[1:4]] == [3, 2, 1]
    assert [a["held"] for a in asked[1:4]] == [0, 1, 2]
    assert (asked[1]["text"], asked[1]["kind"]) == (text, "stay")
    assert (asked[1]["number"], asked[1]["agents"]) == (1, [0, 1])
    assert team.heard[:5] == [(None, None), *[(text, text)] * 3, (None, None)]
    complies = [[a["complies"] for a in f["agents"]] for f in film.frames]
    assert complies[1:5] == [*[[True, True]] * 3, [None, None]]
    decided = [[a["decided"] for a in f["agents"]] for f in film.frames]
    assert decided[1] == [True, True] == decided[4]  # both boundaries end every macro
    assert film.frames[4]["verdicts"] == [{"number": 1, "kind": "stay", "followed": True}]
    assert (film.frames[4]["judged"], film.frames[4]["followed"]) == (1, 1)
    assert film.frames[3]["judged"] == 0
    assert film.frames[-1]["over"] == "solved"


def test_who_disobeys_is_shown_and_counted(bench, setting):
    film = play(Planner(BEST), setting, bench.lexicon, KEY, [(1, "stay", None, 2)])
    assert [a["complies"] for a in film.frames[1]["agents"]] == [False, False]
    assert film.frames[3]["verdicts"][0]["followed"] is False
    assert (film.frames[-1]["judged"], film.frames[-1]["followed"]) == (1, 0)


def test_a_phrase_to_one_agent_until_the_end(bench, setting):
    team = Planner(BEST, {"Stand by": STAY, "stand by": STAY})
    film = play(team, setting, bench.lexicon, KEY, [(0, "Stand by", ["robot_1"], None)], ticks=12)
    asked = film.frames[5]["instruction"]
    assert asked["agents"] == [1] and asked["left"] is None
    assert [a["complies"] for a in film.frames[5]["agents"]] == [None, True]
    assert {heard[0] for heard in team.heard} == {None}
    assert len(film.frames) == 13 and film.frames[-1]["over"] == ""


def test_a_new_word_replaces_and_none_ends(bench, setting):
    stay = Planner([[STAY, STAY]])
    script = [(0, "stay", None, None), (2, "push", None, None), (4, "none")]
    film = play(stay, setting, bench.lexicon, KEY, script, ticks=6)
    kinds = [f["instruction"] and f["instruction"]["kind"] for f in film.frames]
    assert kinds == ["stay", "stay", "push", "push", None, None, None]
    assert film.frames[2]["verdicts"] == [{"number": 1, "kind": "stay", "followed": True}]
    assert film.frames[4]["verdicts"] == [{"number": 2, "kind": "push", "followed": False}]


def test_words_of_ones_own_are_understood_by_kind(bench, setting):
    text = "Please don't push any of the boxes!"
    assert text not in bench.lexicon.texts
    team = Planner([[STAY, STAY]])
    film = play(team, setting, bench.lexicon, KEY, [(0, text, None, 2)], ticks=2)
    asked = film.frames[0]["instruction"]
    assert (asked["kind"], asked["text"]) == ("dont-push", text)
    # shown as it was said, heard as the nearest trained phrase of that kind
    lexicon = bench.lexicon
    (heard,) = set(team.heard[0])
    row = lexicon.texts.index(heard)
    assert lexicon.names[int(lexicon.kind[row])] == "dont-push" and not bool(lexicon.held_out[row])
    assert stage.hear(lexicon, text).row == row
    assert stage.hear(lexicon, text, own_words=True).row == lexicons.spare_row(lexicon)


@pytest.mark.parametrize(
    "line, message",
    [
        ((0, "what is the weather like in Boston"), "not clear what"),
        ((0, " "), "not clear what"),
        ((0, "stay", ["robot_2"]), "did you mean 'robot_"),
        ((0, "stay", [2]), "not one of 0 to 1"),
    ],
)
def test_a_wrong_script_is_refused_before_the_episode(bench, setting, line, message):
    team = Planner(BEST)
    with pytest.raises(WatchError, match=message):
        play(team, setting, bench.lexicon, KEY, [line])
    assert team.heard == []


def test_who_does_not_hear_is_judged_all_the_same(bench, setting):
    team = Planner([[STAY, STAY]])
    film = play(team, setting, bench.lexicon, KEY, [(0, "stay", None, 1)], ticks=2, hears=False)
    assert set(team.heard) == {(None, None)}
    assert film.frames[0]["instruction"]["kind"] == "stay" and film.frames[1]["followed"] == 1


def test_what_the_state_forbids_is_refused_and_shown():
    store = make_task("warehouse")
    rules = reward.rules_of(store.env, store.file)
    assert int(rules.condition[1]) > 0
    phrases = Phrases(table=store.lexicon.table, count=store.lexicon.count)
    setting = InstructedEnv(
        env=store.env, rules=rules, schedule=schedule.make_schedule(), phrases=phrases
    )
    show = stage.Show(team=Planner([[0, 0, 0]]), setting=setting, lexicon=store.lexicon)
    moment = stage.start(show, KEY)
    state = moment.world.state
    gone = dataclasses.replace(state, received=jnp.ones_like(state.received))
    world = dataclasses.replace(moment.world, state=gone)
    moment = dataclasses.replace(moment, world=world)
    if bool(store.env.check(gone)[int(rules.condition[1]) - 1]):
        pytest.fail("everybody has every tool, yet tool 0 can be asked for")
    moment = stage.say(show, moment, "fetch-tool-0-first")
    frame = stage.ending(show, moment)
    assert frame["instruction"] is None
    assert frame["refused"] == [store.lexicon.texts[int(store.lexicon.table[1, 0])]]


@pytest.fixture(scope="module")
def drawn(bench):
    """A team with random weights, as a policy."""
    fixed = bench.fixed(preset_of("tuned", "box_pushing"), "protected")
    blank = jax.eval_shape(lambda key: learning.init(key, fixed), jax.random.key(0))
    random = np.random.default_rng(5)

    def some(leaf):
        return jnp.asarray(random.normal(0, 0.1, leaf.shape), jnp.float32)

    one = jax.tree.map(lambda leaf: jnp.stack([leaf] * 2), networks.scale_of(1.0))
    actor, critic = jax.tree.map(some, (blank.actor, blank.critic))
    facts = {
        "shape": dataclasses.asdict(fixed.shape),
        "world": "box_pushing",
        "kinds": list(bench.lexicon.names[1:]),
        "agents": list(bench.env.agents),
        "macro_counts": [len(enum) for enum in bench.env.macros],
        "encoder": bench.lexicon.encoder,
        "examples": [bench.lexicon.texts[int(row)] for row in bench.lexicon.table[1:, 0]],
    }
    return fixed, TeamPolicy(Weights(actor=actor, critic=critic, scale=one), facts)


def test_a_watched_episode_is_the_rollouts(bench, setting, drawn):
    """The film of a key shows the very episode that evaluation plays with it, tick for tick."""
    fixed, team = drawn
    often = schedule.make_schedule(rate=0.3, hold_min=1, hold_max=9)
    setting = dataclasses.replace(setting, schedule=often)
    policy = acting(fixed, team.weights.actor, bench.lexicon.vectors, jnp.zeros(2))
    run = alone(lambda key: rollout(setting, policy, key, episodes=4, lanes=1))
    played = jax.device_get(jax.jit(run)(KEY))
    rows = jax.tree.map(lambda leaf: leaf[:, 0][played.rows.alive[:, 0]], played.rows)
    films = [
        play(team, setting, bench.lexicon, jax.random.fold_in(KEY, episode)) for episode in range(4)
    ]
    frames = [frame for film in films for frame in film.frames[:-1]]
    assert [frame["time"] for frame in frames] == rows.time.tolist()
    for agent, enum in enumerate(bench.env.macros):
        shown = [frame["agents"][agent]["macro"] for frame in frames]
        assert shown == [enum(m).name for m in rows.macro[:, agent]]
    asked = [frame["instruction"] for frame in frames]
    names, texts = setting.rules.names, bench.lexicon.texts
    assert [a["kind"] if a else "none" for a in asked] == [names[k] for k in rows.kind.max(1)]
    assert [a["text"] if a else "" for a in asked] == [texts[p] for p in rows.phrase.max(1)]
    rewards = [frame["reward"] for film in films for frame in film.frames[1:]]
    np.testing.assert_allclose(rewards, rows.task, atol=1e-5)
    assert sum(film.frames[-1]["judged"] for film in films) == (rows.closed > 0).sum() > 0
    assert sum(film.frames[-1]["followed"] for film in films) == rows.followed.sum()


def test_values_of_every_kind_come_along(bench, setting, drawn):
    film = play(drawn[1], setting, bench.lexicon, KEY, script=[(1, "stay", None, 2)], ticks=3)
    values = film.frames[1]["values"]
    assert values is not None and tuple(values) == bench.lexicon.names
    assert len({round(v, 6) for v in values.values()}) == len(values)
    assert film.frames[-1]["values"] is None
