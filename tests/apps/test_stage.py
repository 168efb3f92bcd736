"""An episode on a stage is the rollout's episode, a script is followed to the tick, and frames show what happened."""

from __future__ import annotations

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tasks import make_task
from teams import untrained

import mavic
from mavic.apps import replay
from mavic.apps.frames import frame_of
from mavic.apps.recording import Recording
from mavic.envs.box_pushing.optimum import BEST_PLAN as BEST
from mavic.experiment.methods import preset_of
from mavic.experiment.task import Task
from mavic.instruct import reward, schedule
from mavic.language.conversation import hearing
from mavic.learn import update
from mavic.learn.popart import Scale
from mavic.rollout.rollout import rollout
from mavic.rollout.step import InstructedEnv
from mavic.teams import stage
from mavic.teams.episode import Cue
from mavic.teams.stage import StageError
from mavic.teams.team import TeamPolicy, Weights
from mavic.training.runs import rollout_policy
from mavic.types import Phrases

GO_0, GO_1 = BEST[0]
PUSH, STAY = 4, 7


class Planner:
    """A stand-in for a team. Each agent runs a list of macros and repeats the last; an instruction starts it anew."""

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


class PairPlanner(Planner):
    """A planner that may be told two things at once."""

    def __init__(self, plan):
        super().__init__(plan)
        self.also = []

    def act(self, *args, also=None, **more):
        self.also.append(also and tuple(also))
        return super().act(*args, **more)


@pytest.fixture(scope="module")
def task() -> Task:
    return make_task("box_pushing")


@pytest.fixture(scope="module")
def env(task) -> InstructedEnv:
    return InstructedEnv(
        env=task.env,
        rules=reward.rules_of(task.env, task.file),
        schedule=schedule.make_schedule(**schedule.SCHEDULES["live"]),
        phrases=Phrases(table=task.lexicon.table, count=task.lexicon.count),
    )


KEY = jax.random.key(3)


def record(team, env, lexicon, key, script=None, ticks=None, **fields):
    """The recording of an episode in which the lines of a script are said. `fields` are of the stage."""
    played = stage.Stage(team=team, instructed_env=env, lexicon=lexicon, **fields)
    cues = None if script is None else [Cue(*line) for line in script]
    return Recording.of_episode(played, key, cues, ticks)


def test_the_best_plan_without_instructions_solves_the_task(task, env):
    recording = record(Planner(BEST), env, task.lexicon, KEY, script=[], name="best")
    assert (recording.name, recording.world, recording.agents) == (
        "best",
        "box_pushing",
        ("robot_0", "robot_1"),
    )
    assert [frame["time"] for frame in recording.frames] == list(range(7))
    first, *_, last = recording.frames
    assert [a["macro"] for a in first["agents"]] == ["GO_BIG_SPOT_0", "GO_BIG_SPOT_1"]
    assert all(a["decided"] and a["complies"] is None for a in first["agents"])
    assert not any(a["decided"] for a in recording.frames[1]["agents"])
    assert last["over"] == "solved" and "solved" in last["events"]
    assert last["earned"] == pytest.approx(300 - 6 * 0.1, abs=1e-3)
    assert last["reward"] == pytest.approx(299.9, abs=1e-3)
    assert last["earned"] == pytest.approx(sum(f["reward"] for f in recording.frames), abs=1e-3)
    assert all(frame["values"] is None for frame in recording.frames)


def test_frames_are_plain_json(task, env):
    recording = record(Planner(BEST), env, task.lexicon, KEY, script=[(1, "stay", None, 2)])
    assert json.loads(json.dumps(dataclasses.asdict(recording)))["frames"] == list(recording.frames)


def test_a_scripted_instruction_governs_exactly_its_ticks(task, env):
    kind = task.lexicon.names.index("stay")
    text = task.lexicon.texts[int(task.lexicon.table[kind, 0])]
    team = Planner(BEST, {text: STAY})
    script = [(1, "stay", None, 3)]
    recording = record(team, env, task.lexicon, KEY, script)
    asked = [frame["instruction"] for frame in recording.frames]
    assert [a is not None for a in asked[:6]] == [False, True, True, True, False, False]
    assert [a["left"] for a in asked[1:4]] == [3, 2, 1]
    assert [a["held"] for a in asked[1:4]] == [0, 1, 2]
    assert (asked[1]["text"], asked[1]["kind"]) == (text, "stay")
    assert (asked[1]["number"], asked[1]["agents"]) == (1, [0, 1])
    assert team.heard[:5] == [(None, None), *[(text, text)] * 3, (None, None)]
    complies = [[a["complies"] for a in f["agents"]] for f in recording.frames]
    assert complies[1:5] == [*[[True, True]] * 3, [None, None]]
    decided = [[a["decided"] for a in f["agents"]] for f in recording.frames]
    assert decided[1] == [True, True] == decided[4]  # both boundaries end every macro
    assert recording.frames[4]["verdicts"] == [{"number": 1, "kind": "stay", "followed": True}]
    assert (recording.frames[4]["judged"], recording.frames[4]["followed"]) == (1, 1)
    assert recording.frames[3]["judged"] == 0
    assert recording.frames[-1]["over"] == "solved"


def test_disobedience_is_shown_and_counted(task, env):
    recording = record(Planner(BEST), env, task.lexicon, KEY, [(1, "stay", None, 2)])
    assert [a["complies"] for a in recording.frames[1]["agents"]] == [False, False]
    assert recording.frames[3]["verdicts"][0]["followed"] is False
    assert (recording.frames[-1]["judged"], recording.frames[-1]["followed"]) == (1, 0)


def test_a_phrase_to_one_agent_holds_to_the_end(task, env):
    team = Planner(BEST, {"Stand by": STAY, "stand by": STAY})
    recording = record(team, env, task.lexicon, KEY, [(0, "Stand by", ["robot_1"], None)], ticks=12)
    asked = recording.frames[5]["instruction"]
    assert asked["agents"] == [1] and asked["left"] is None
    assert [a["complies"] for a in recording.frames[5]["agents"]] == [None, True]
    assert {heard[0] for heard in team.heard} == {None}
    assert len(recording.frames) == 13 and recording.frames[-1]["over"] == ""


def test_a_new_instruction_replaces_the_old_one_and_none_ends_it(task, env):
    stay = Planner([[STAY, STAY]])
    script = [(0, "stay", None, None), (2, "push", None, None), (4, "none")]
    recording = record(stay, env, task.lexicon, KEY, script, ticks=6)
    kinds = [f["instruction"] and f["instruction"]["kind"] for f in recording.frames]
    assert kinds == ["stay", "stay", "push", "push", None, None, None]
    assert recording.frames[2]["verdicts"] == [{"number": 1, "kind": "stay", "followed": True}]
    assert recording.frames[4]["verdicts"] == [{"number": 2, "kind": "push", "followed": False}]


def test_words_end_what_holds_and_a_remark_is_no_instruction(task, env):
    stay = Planner([[STAY, STAY]])
    script = [(0, "stay", None, None), (2, "never mind")]
    recording = record(stay, env, task.lexicon, KEY, script, ticks=3)
    kinds = [f["instruction"] and f["instruction"]["kind"] for f in recording.frames]
    assert kinds == ["stay", "stay", None, None]
    with pytest.raises(StageError, match="'thanks for pushing' asks for nothing"):
        record(stay, env, task.lexicon, KEY, [(0, "thanks for pushing")], ticks=1)


def test_also_holds_beside_the_active_one_and_each_is_judged(task, env):
    team = PairPlanner([[PUSH, STAY]])
    script = [(0, "avoid-small-box-0", None, 4), (1, "dont-push", [0], 2, True)]
    recording = record(team, env, task.lexicon, KEY, script, ticks=5)
    first = [f["instruction"] and f["instruction"]["kind"] for f in recording.frames]
    second = [f["also"]["kind"] if "also" in f else None for f in recording.frames]
    assert first == ["avoid-small-box-0"] * 4 + [None] * 2
    assert second == [None, "dont-push", "dont-push", None, None, None]
    assert (recording.frames[1]["also"]["number"], recording.frames[1]["also"]["agents"]) == (
        2,
        [0],
    )
    assert [a["complies"] for a in recording.frames[1]["agents"]] == [False, True]
    assert recording.frames[3]["verdicts"] == [
        {"number": 2, "kind": "dont-push", "followed": False}
    ]
    assert recording.frames[4]["verdicts"] == [
        {"number": 1, "kind": "avoid-small-box-0", "followed": True}
    ]
    assert [also and also[1] for also in team.also[:4]] == [None] * 4 and all(team.also[1][:1])
    assert replay._caption(recording, 1)[0].count("“") == 2


def test_a_third_instruction_is_refused_and_a_new_one_replaces_both(task, env):
    team = PairPlanner([[STAY, STAY]])
    silent = dataclasses.replace(env, schedule=schedule.make_schedule())
    played = stage.Stage(team=team, instructed_env=silent, lexicon=task.lexicon)
    episode = played.start(KEY)
    episode = played.say(episode, "avoid-small-box-0", also=True)  # nothing to be beside
    assert episode.also is None and episode.given == 1
    with pytest.raises(StageError, match="“Keep away from the left small box” holds already"):
        played.say(episode, "avoid-small-box-0", also=True)
    episode = played.say(episode, "avoid-small-box-1", also=True)
    with pytest.raises(StageError, match="two instructions hold already"):
        played.say(episode, "dont-push", also=True)
    _, episode = played.advance(episode)
    episode = played.say(episode, "stay")
    assert [v.kind for v in episode.verdicts] == ["avoid-small-box-1", "avoid-small-box-0"]
    assert (episode.given, episode.numbers[0], episode.judged) == (3, 3, 2)
    assert not episode.also.kind.any()
    with pytest.raises(
        StageError, match="“Stay where you are” and “Push” together leave robot_0 nothing to do"
    ):
        played.say(episode, "push", also=True)


def test_a_free_sentence_is_heard_as_a_training_phrase_of_its_kind(task, env):
    text = "Please don't push any of the boxes!"
    assert text not in task.lexicon.texts
    team = Planner([[STAY, STAY]])
    recording = record(team, env, task.lexicon, KEY, [(0, text, None, 2)], ticks=2)
    asked = recording.frames[0]["instruction"]
    assert (asked["kind"], asked["text"]) == ("dont-push", text)
    # shown as it was said, heard as the nearest trained phrase of that kind
    lexicon = task.lexicon
    (heard,) = set(team.heard[0])
    row = lexicon.texts.index(heard)
    assert lexicon.names[int(lexicon.kind[row])] == "dont-push" and not bool(lexicon.held_out[row])
    assert hearing.hear(lexicon, text).row == row
    assert hearing.hear(lexicon, text).own_row == lexicon.spare_row


def test_a_team_that_hears_kinds_hears_a_free_sentence_itself(task, env):
    text = "Please don't push any of the boxes!"
    team = Planner([[STAY, STAY]])
    recording = record(team, env, task.lexicon, KEY, [(0, text, None, 2)], ticks=2, own_words=True)
    assert recording.frames[0]["instruction"]["kind"] == "dont-push"
    assert set(team.heard[0]) == {text}


@pytest.mark.long
def test_under_the_shield_a_persons_instruction_is_followed(task, env):
    """A team from a policy file; the planner above would choose what is not available."""
    opened = stage.open_stage("box_pushing/mavic", shield=True)
    script = [(1, "stay", None, None)]
    args = (opened.team, opened.instructed_env, opened.lexicon, KEY, script, 4)
    recording = record(*args, name="deaf", hears=False)
    assert [a["macro"] for f in recording.frames[1:4] for a in f["agents"]] == ["STAY"] * 6


@pytest.mark.parametrize(
    "line, message",
    [
        ((0, "what is the weather like in Boston"), "asks for nothing"),
        ((0, " "), "not clear what"),
        ((0, "stay", ["robot_2"]), "did you mean 'robot_"),
        ((0, "stay", [2]), "not one of 0 to 1"),
    ],
)
def test_a_wrong_script_is_refused_before_the_episode(task, env, line, message):
    team = Planner(BEST)
    with pytest.raises(StageError, match=message):
        record(team, env, task.lexicon, KEY, [line])
    assert team.heard == []


def test_a_team_that_hears_nothing_is_evaluated_all_the_same(task, env):
    team = Planner([[STAY, STAY]])
    recording = record(team, env, task.lexicon, KEY, [(0, "stay", None, 1)], ticks=2, hears=False)
    assert set(team.heard) == {(None, None)}
    assert (
        recording.frames[0]["instruction"]["kind"] == "stay"
        and recording.frames[1]["followed"] == 1
    )


def test_an_instruction_that_the_state_forbids_is_refused_and_shown():
    store = make_task("warehouse")
    rules = reward.rules_of(store.env, store.file)
    assert int(rules.precondition[1]) > 0
    phrases = Phrases(table=store.lexicon.table, count=store.lexicon.count)
    env = InstructedEnv(
        env=store.env, rules=rules, schedule=schedule.make_schedule(), phrases=phrases
    )
    played = stage.Stage(team=Planner([[0, 0, 0]]), instructed_env=env, lexicon=store.lexicon)
    episode = played.start(KEY)
    state = episode.state.state
    gone = dataclasses.replace(state, received=jnp.ones_like(state.received))
    episode = dataclasses.replace(episode, state=dataclasses.replace(episode.state, state=gone))
    if bool(store.env.check(gone)[int(rules.precondition[1]) - 1]):
        pytest.fail("everybody has every tool, yet tool 0 can be asked for")
    episode = played.say(episode, "fetch-tool-0-first")
    frame = frame_of(played, episode, episode.still())
    assert frame["instruction"] is None
    assert frame["refused"] == [store.lexicon.texts[int(store.lexicon.table[1, 0])]]


@pytest.fixture(scope="module")
def drawn(task, tmp_path_factory):
    """A team with random weights, as a policy."""
    static = task.static_config(preset_of("tuned", "box_pushing"), "protected")
    blank = jax.eval_shape(lambda key: update.init(key, static), jax.random.key(0))
    random = np.random.default_rng(5)

    def some(leaf):
        return jnp.asarray(random.normal(0, 0.1, leaf.shape), jnp.float32)

    one = jax.tree.map(lambda leaf: jnp.stack([leaf] * 2), Scale.of(1.0))
    actor, critic = jax.tree.map(some, (blank.actor, blank.critic))
    folder = tmp_path_factory.mktemp("teams")
    path = untrained(folder, "box_pushing", network="protected", hear="vectors")
    facts = mavic.load_policy(path).facts
    return static, TeamPolicy(Weights(actor=actor, critic=critic, scale=one), facts)


@pytest.mark.long
def test_an_episode_on_a_stage_is_the_rollouts_episode(task, env, drawn):
    """The recording of a key shows the very episode that the rollout plays with it, tick for tick."""
    static, team = drawn
    often = schedule.make_schedule(rate=0.3, hold_min=1, hold_max=9)
    env = dataclasses.replace(env, schedule=often)
    policy = rollout_policy(static, team.weights.actor, task.vectors, jnp.zeros(3))
    run = jax.jit(lambda key: rollout(env, policy, key, episodes=4, num_envs=1))
    played = jax.device_get(run(KEY))
    rows = jax.tree.map(lambda leaf: leaf[:, 0][played.rows.alive[:, 0]], played.rows)
    recordings = [
        record(team, env, task.lexicon, jax.random.fold_in(KEY, episode)) for episode in range(4)
    ]
    frames = [frame for recording in recordings for frame in recording.frames[:-1]]
    assert [frame["time"] for frame in frames] == rows.time.tolist()
    for agent, enum in enumerate(task.env.macros):
        shown = [frame["agents"][agent]["macro"] for frame in frames]
        assert shown == [enum(m).name for m in rows.macro[:, agent]]
    asked = [frame["instruction"] for frame in frames]
    names, texts = env.rules.names, task.lexicon.texts
    assert [a["kind"] if a else "none" for a in asked] == [names[k] for k in rows.kind.max(1)]
    assert [a["text"] if a else "" for a in asked] == [texts[p] for p in rows.phrase.max(1)]
    rewards = [frame["reward"] for recording in recordings for frame in recording.frames[1:]]
    np.testing.assert_allclose(rewards, rows.task_reward, atol=1e-5)
    assert (
        sum(recording.frames[-1]["judged"] for recording in recordings)
        == (rows.closed > 0).sum()
        > 0
    )
    assert sum(recording.frames[-1]["followed"] for recording in recordings) == rows.followed.sum()


@pytest.mark.long
def test_frames_hold_the_values_of_every_kind(task, env, drawn):
    recording = record(drawn[1], env, task.lexicon, KEY, script=[(1, "stay", None, 2)], ticks=3)
    values = recording.frames[1]["values"]
    assert values is not None and tuple(values) == task.lexicon.names
    assert len({round(v, 6) for v in values.values()}) == len(values)
    assert recording.frames[-1]["values"] is None
