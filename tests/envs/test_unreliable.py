"""Unreliable macros and costly interruptions: the same wrapper serves compiled worlds and Python worlds."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mavic.envs import api
from mavic.envs.box_pushing import BoxPushing, Macro
from mavic.envs.unreliable import unreliable
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import preset_of
from mavic.experiment.task import task_of
from mavic.training.runs import make_run

KEY = jax.random.key(5)
SILENCE = jnp.zeros(2, jnp.int32)
GO = jnp.array([Macro.GO_SMALL_BOX_0, Macro.GO_SMALL_BOX_1])
OTHER = jnp.array([Macro.GO_BIG_SPOT_0, Macro.GO_BIG_SPOT_1])


@jax.jit
def walk(env, choices, interrupted):
    """Ticks of Box Pushing in which agents choose from `choices` [T, 2] when they are idle or interrupted [T]."""

    def tick(carry, given):
        state, macro, idle, number = carry
        choice, cut = given
        fresh = idle | cut
        macro = jnp.where(fresh, choice, macro)
        after = env.tick(jax.random.fold_in(KEY, number), state, macro, fresh, SILENCE)
        robots = getattr(after.state, "world", after.state).robots
        places = jnp.array([[robot.x, robot.y, robot.heading] for robot in robots])
        seen = after.ended, after.effective_macro, places, after.reward
        return (after.state, macro, after.ended, number + 1), seen

    start = env.reset(KEY), choices[0], jnp.ones(2, bool), 0
    return jax.lax.scan(tick, start, (choices, interrupted))[1]


def walked(*args):
    return [np.asarray(part) for part in walk(*args)]


def made(**options):
    return unreliable(BoxPushing(size=10), ("STAY",), **options)


def always(macro, ticks=12):
    return jnp.broadcast_to(macro, (ticks, 2)), jnp.zeros(ticks, bool)


def test_without_failures_nothing_changes():
    choices = jax.random.randint(KEY, (60, 2), 0, len(Macro))
    cuts = jax.random.uniform(KEY, (60,)) < 0.1
    for one, two in zip(
        walked(BoxPushing(size=10), choices, cuts), walked(made(), choices, cuts), strict=True
    ):
        assert np.array_equal(one, two)


def test_a_macro_that_fails_ends_at_once_and_moves_nothing():
    ended, work, seen, _ = walked(made(fails=1.0), *always(GO))
    assert ended.all() and (work == np.asarray(GO)).all() and (seen == seen[0]).all()


def test_an_agent_that_slips_arrives_later_by_the_ticks_in_which_it_stood():
    reliable = walked(made(), *always(GO, 100))[0].argmax(0) + 1
    slower = walked(made(slips=0.5), *always(GO, 100))
    stood = (slower[2][1:] == slower[2][:-1]).all((-1, -2))  # nobody moved
    arrived = slower[0].argmax(0) + 1
    assert (arrived > reliable).all() and stood[: arrived.max()].any()
    later = walked(made(slips=0.9), *always(GO, 100))[0]
    assert (later.argmax(0) + 1 > arrived).all()


def test_an_interrupted_macro_needs_ticks_to_stop():
    choices = jnp.stack([GO, GO, *[OTHER] * 10])
    cut = jnp.arange(12) == 2
    at_once, late = (walked(made(stopping=n), choices, cut) for n in (0, 3))
    assert np.array_equal(late[2][4], late[2][1]) and not np.array_equal(at_once[2][4], late[2][4])
    assert np.array_equal(late[2][5:], at_once[2][2:-3])  # the same way, three ticks later
    assert (late[1][2] == np.asarray(OTHER)).all() and not late[0][
        2:5
    ].any()  # the new macro holds already
    again = walked(made(stopping=3), *[always(GO)[0], cut])
    assert np.array_equal(
        again[2], walked(made(), *always(GO))[2]
    )  # nothing stops if it is chosen again


def test_options_make_any_world_unreliable_and_its_best_plan_unknown():
    env = api.make("box_pushing", size=8, fails=0.1, stopping=2)
    assert api.options_of(env)["size"] == 8 and api.options_of(env)["stopping"] == 2
    assert env.inner.size == 8 and env.name == "box_pushing" and not api.runs_on_host(env)
    assert api.best_return(env, 0.99) is None and api.best_return(env.inner, 0.99) > 200
    with pytest.raises(
        ValueError, match=r"box_pushing: the option fails must be .* from 0 to 1, not 2"
    ):
        api.make("box_pushing", fails=2.0)
    with pytest.raises(ValueError, match=r"warehouse: .* has no macro with which it stands still"):
        api.make("warehouse", slips=0.1)


@pytest.mark.parametrize("practised", [True, False])
def test_a_team_may_be_tested_where_it_was_not_trained(practised):
    options = {"fails": 0.1, "slips": 0.2, "stopping": 2, "practised": practised}
    config = ExperimentConfig(world="box_pushing", options=options)
    run = make_run(config, preset_of("default", "box_pushing"), task_of(config), 0)
    numbers = [(e.env.fails, e.env.slips, e.env.stopping) for e in (run.train_env, run.test_env)]
    assert numbers == [(0.1, 0.2, 2) if practised else (0, 0, 0), (0.1, 0.2, 2)]
