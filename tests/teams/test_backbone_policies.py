"""A team of any backbone is saved, loaded and played, and the learner reads its rows as the team decided."""

from __future__ import annotations

import dataclasses
from functools import cache
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import teams

import mavic
from mavic.apps.recording import Recording
from mavic.experiment.methods import preset_of
from mavic.instruct import schedule
from mavic.learn import batches, networks
from mavic.learn.backbones import BACKBONES
from mavic.learn.transitions import as_played
from mavic.learn.views import split_macro
from mavic.rollout.rollout import rollout
from mavic.teams.facts import PolicyError
from mavic.teams.stage import Stage
from mavic.training.runs import make_run, rollout_policy

KEY, EPISODES = jax.random.key(4), 3
SPECIAL = ("mac-cac", "acac")  # whose actors see something else than Mac-IAC's
FURTHER = [
    pytest.param(name, marks=pytest.mark.slow)
    for name in BACKBONES
    if name not in ("mac-iac", *SPECIAL)
]


@cache
def played(folder, backbone):
    """A saved and loaded team, its greedy episodes under frequent instructions, and the learner's batch of them."""
    fields = dict(backbone=backbone, hear="vectors", network="residual", options={"size": 4})
    team = mavic.load_policy(teams.untrained(folder, "box_pushing", **fields))
    config, task, preset = team.origin()
    static = task.static_config(preset, config.network, config.backbone)
    run = make_run(config, preset, task, 0)
    often = schedule.make_schedule(rate=0.2, hold_min=2, hold_max=6)
    env = dataclasses.replace(run.train_env, schedule=often)

    @jax.jit
    def play(actor):
        policy = rollout_policy(static, actor, task.vectors, jnp.zeros(3), greedy=True)
        rows = rollout(env, policy, KEY, episodes=EPISODES, num_envs=1).rows
        views = batches.views_of(static.network.shape, static.critic.shape, rows)
        batch = batches.batch_of(views, [as_played(view) for view in views], preset.gamma)
        network, own = static.network, batch.rows
        by_column = jax.tree.map(lambda x: jnp.moveaxis(x, 2, 0), own)

        def logits(actor, rows):
            seen = networks.Seen(
                observation=rows.observation, last_macro=rows.last_macro, phrases=rows.phrases
            )
            net = network.project(actor, task.vectors)
            heads = network.unroll(network.shape, net, network.empty(1), seen, rows.first)[2]
            return network.shape.logits(heads, rows.kind > 0)

        return rows, batch, jax.vmap(logits)(actor, by_column)

    rows, batch, logits = jax.device_get(play(team.weights.actor))
    return SimpleNamespace(
        team=team, task=task, env=env, rows=rows, batch=batch, logits=logits, static=static
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("policies")


@pytest.mark.long
@pytest.mark.parametrize("backbone", [*SPECIAL, *FURTHER])
def test_an_episode_on_a_stage_is_the_rollouts_episode(folder, backbone):
    this = played(folder, backbone)
    alive = this.rows.alive[:, 0]
    stage = Stage(team=this.team, instructed_env=this.env, lexicon=this.task.lexicon, greedy=True)
    frames = [
        frame
        for number in range(EPISODES)
        for frame in Recording.of_episode(stage, jax.random.fold_in(KEY, number)).frames[:-1]
    ]
    assert [frame["time"] for frame in frames] == this.rows.time[:, 0][alive].tolist()
    for agent, enum in enumerate(this.task.env.macros):
        shown = [frame["agents"][agent]["macro"] for frame in frames]
        assert shown == [enum(m).name for m in this.rows.macro[:, 0, agent][alive]]
    assert (this.rows.kind[:, 0][alive] > 0).any()


@pytest.mark.long
@pytest.mark.parametrize("backbone", [*SPECIAL, *FURTHER])
def test_the_learner_replays_the_decisions(folder, backbone):
    """The rows that the learner reads lead the networks to the macros that were chosen in the rollout."""
    this = played(folder, backbone)
    own, shape = this.batch.rows, this.static.network.shape
    regret = []
    for column, logits in enumerate(this.logits):
        for k in np.flatnonzero(own.valid[:, 0, column]):
            found, taken = logits[k, 0], own.macro[k, 0, column]
            if shape.joint:  # among the combinations in which busy agents keep their macros
                macros = np.asarray(split_macro(shape.macro_counts, jnp.arange(len(found))))
                busy = ~_fresh(this)[k]
                fits = (~busy | (macros == macros[taken])).all(-1)
                found = np.where(fits, found, -np.inf)
            regret.append(found.max() - found[taken])
    assert len(regret) > 20
    np.testing.assert_allclose(regret, 0.0, atol=1e-3)


def _fresh(this):
    """Who decided at each of the team's rows, [K, N]: those with a new macro at its first tick."""
    rows = this.rows
    alive = np.flatnonzero(rows.alive[:, 0])
    ends = [t for t in alive if rows.ended[t, 0].any()]
    starts = [alive[0], *(t + 1 for t in ends[:-1])]
    return [rows.fresh[t, 0] for t in starts]


@pytest.mark.long
def test_one_actor_for_the_team_says_what_it_sees_and_remembers_what_busy_agents_saw(folder):
    this = played(folder, "mac-cac")
    team = this.team
    assert "every agent" in team.needs and team.facts["needs"] == team.needs
    random = np.random.default_rng(0)
    first, second = random.normal(size=(2, 2, team.observation)).astype(np.float32)
    macro, carry = team.act(KEY, team.start(), first, greedy=True)
    busy = np.array([True, False])
    wrong = second.copy()
    wrong[1] = 99.0  # what the busy agent would see now
    choices = [team.act(KEY, carry, seen, idle=busy, greedy=True) for seen in (second, wrong)]
    for a, b in zip(*map(jax.tree.leaves, choices), strict=True):
        np.testing.assert_array_equal(a, b)
    assert choices[0][0][1] == macro[1]
    values = team.values(carry, second)
    assert all(v.shape == (2,) and v[0] == v[1] for v in values.values())
    with pytest.raises(PolicyError, match="every agent's last macro-observation"):
        team.act(KEY, carry, first[:1])


def test_numbers_of_a_backbone_replace_those_of_a_preset_but_not_a_users():
    assert preset_of("tuned", "warehouse", "acac").td_lambda == 0.95
    assert preset_of("tuned", "warehouse", "acac", td_lambda=0.5).td_lambda == 0.5
    assert preset_of("tuned", "warehouse", "mac-cac") == preset_of("tuned", "warehouse")
    published = preset_of("reference", "overcooked", "acac")
    assert (published.passes, published.ppo_clip, published.baseline) == (5, 0.01, "target")
    assert preset_of("reference", "box_pushing", "mac-cac").n_steps == 3
