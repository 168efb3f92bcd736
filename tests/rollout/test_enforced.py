"""Enforced instructions: what they leave to choose, in drills and under the shield."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from corridor import ARRIVES, HURRY, RULES, WALK, Left, Right, draws, instructed
from tasks import make_task

from mavic.envs import api
from mavic.envs.overcooked import Overcooked, PattyMacro
from mavic.envs.overcooked.grid import cell_of
from mavic.envs.overcooked.macros import Thing
from mavic.envs.overcooked.state import Place
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import preset_of
from mavic.instruct import reward
from mavic.instruct.schedule import no_instruction
from mavic.rollout import step as steps
from mavic.rollout.rollout import Policy, rollout
from mavic.rollout.step import choices_of, shielded
from mavic.training.runs import make_run
from mavic.types import replace

KEY = jax.random.key(0)
step, reset, interrupt = (jax.jit(f) for f in (steps.step, steps.reset, steps.interrupt))
LASTING = dict(rate=1.0, hold_min=3, hold_max=3, hold_to_end_prob=1.0)


def instruction_of(kind, enforced=True, agents=2):
    return replace(
        no_instruction(agents),
        kind=jnp.full(agents, kind, jnp.int32),
        enforced=jnp.asarray(enforced),
    )


def test_a_drill_takes_away_what_is_forbidden_until_it_ends():
    place = instructed(**LASTING, drill_prob=1.0)
    state, row = step(
        place, reset(place, KEY), jnp.array([Left.WALK, Right.WALK]),
        draws(**ARRIVES, kind=0.99, drill=0.0),
    )  # fmt: skip
    assert row.available.tolist() == place.env.available(None).tolist()  # before it came
    assert state.instruction.kind.tolist() == [HURRY, HURRY] and bool(state.idle.all())
    assert not state.available[:, Left.WAIT].any()
    assert (state.available | state.forbidden).tolist() == place.env.available(None).tolist()
    freed, _ = interrupt(place, state, jnp.int32(0), jnp.int32(0), jnp.ones(2, bool), jnp.int32(1))
    assert freed.available.tolist() == place.env.available(None).tolist()
    assert not freed.forbidden.any()


@pytest.mark.parametrize("shield", [False, True])
def test_what_holds_from_the_start_binds_the_first_decision(shield):
    place = shielded(instructed(from_start=1.0), shield)
    hurry = replace(place, rules=replace(RULES, given=jnp.arange(4) == HURRY))
    offered = np.asarray(place.env.available(None))
    first = reset(hurry, KEY)
    assert np.argwhere(first.forbidden).tolist() == [[0, Left.WAIT], [1, Right.WAIT]]
    assert (offered & ~np.asarray(first.available)).tolist() == (first.forbidden & shield).tolist()
    assert not reset(shielded(instructed(), shield), KEY).forbidden.any()


def test_what_is_not_enforced_is_forbidden_and_available():
    place = instructed(**LASTING, drill_prob=0.0)
    state, _ = step(
        place, reset(place, KEY), jnp.array([Left.WALK, Right.WALK]), draws(**ARRIVES, kind=0.99)
    )
    assert state.available[:, Left.WAIT].all() and state.forbidden[:, Left.WAIT].all()
    assert int(state.forbidden.sum()) == 2


def test_where_nobody_judges_choices_nothing_is_forbidden_and_all_is_played_alike():
    judged = instructed(**LASTING, drill_prob=0.0)
    unjudged = replace(judged, judges_work=False)
    states = [reset(place, KEY) for place in (judged, unjudged)]
    for number in range(6):
        macro = jnp.array([Left.WALK, Right.WALK]) if number % 2 else jnp.array([Left.WAIT, 0])
        drawn = draws(**(ARRIVES if number == 1 else {}), kind=0.99)
        (first, row), (second, same) = (
            step(place, state, macro, drawn)
            for place, state in zip((judged, unjudged), states, strict=True)
        )
        states = [first, second]
        assert not second.forbidden.any()
        assert first.available.tolist() == second.available.tolist()
        assert (
            row.reward.tolist() == same.reward.tolist() and row.kind.tolist() == same.kind.tolist()
        )
    assert first.forbidden.any()  # the instruction still holds


def test_only_those_addressed_are_bound_and_something_is_always_left():
    place = instructed()
    own = instruction_of(HURRY)
    one = replace(own, kind=own.kind.at[0].set(0))
    found = choices_of(place, place.env.reset(KEY), one)
    assert found.available[:, Left.WAIT].tolist() == [True, False]
    everything = replace(place, rules=replace(RULES, allowed=jnp.zeros_like(RULES.allowed)))
    found = choices_of(everything, place.env.reset(KEY), instruction_of(WALK))
    assert found.available.tolist() == found.forbidden.tolist()
    assert found.available.tolist() == place.env.available(None).tolist()


def test_what_is_enforced_leaves_what_is_both_offered_and_allowed():
    offered = jnp.array([[1, 1, 0], [1, 0, 0]], bool)
    allowed = jnp.array([[0, 1, 1], [0, 1, 1]], bool)
    assert reward.enforce(offered, allowed).tolist() == [[False, True, False], [True, False, False]]


def test_a_persons_instruction_is_enforced_under_the_shield_alone():
    place, agents, hold = instructed(), jnp.ones(2, bool), jnp.int32(4)
    for shield in (False, True):
        under = shielded(place, shield)
        state, _ = interrupt(under, reset(under, KEY), jnp.int32(WALK), jnp.int32(1), agents, hold)
        wanted = np.array([Left.WALK, Right.WALK]) if shield else None
        if shield:
            assert state.available.argmax(1).tolist() == wanted.tolist()
            assert state.available.sum(1).tolist() == [1, 1]
        else:
            assert state.available.tolist() == place.env.available(None).tolist()


def holding(cook, thing, at):
    """The first state of map D, with one thing in the hand of a cook who stands somewhere."""
    state = Overcooked().reset(KEY)
    return replace(
        state,
        cook=state.cook.at[cook].set(cell_of(*at)),
        place=state.place.at[thing].set(Place.HAND + cook),
    )


def test_a_one_tick_move_against_a_forbidden_board_is_taken_away_too():
    task = make_task("overcooked")
    config = ExperimentConfig(world="overcooked")
    place = make_run(config, preset_of("tuned", "overcooked"), task, 0).train_env
    state = holding(0, Thing.TOMATO, (1, 1))  # left of it is the board of GO_BOARD_1
    counted = np.asarray(api.effective_macros(place.env, state))
    m = PattyMacro
    assert counted[0, m.LEFT] == m.GO_BOARD_1 and counted[1, m.LEFT] == m.LEFT
    others = [i for i in range(len(m)) if i != m.LEFT]
    assert counted[0, others].tolist() == others
    kind = place.rules.names.index("avoid-right-board")
    found = choices_of(place, state, instruction_of(kind))
    taken = [[m(i).name for i in np.flatnonzero(~row)] for row in np.asarray(found.available)]
    assert [sorted(names) for names in taken] == [["GO_BOARD_1", "LEFT"], ["GO_BOARD_1"]]


def random_policy(agents):
    """Chooses uniformly among what is available."""

    def act(memory, state, draws):
        share = jnp.cumsum(state.available, -1) / state.available.sum(-1, keepdims=True)
        choice = (share <= draws[..., None]).sum(-1).astype(jnp.int32)
        return jnp.where(state.idle, choice, state.macro), memory

    return Policy(start=lambda num_envs: jnp.zeros(num_envs), act=act)


@pytest.mark.parametrize(
    ("world", "episodes"),
    [("box_pushing", 64), ("overcooked", 8)],
)
@pytest.mark.long
def test_under_the_shield_a_random_team_follows_every_instruction(world, episodes):
    """Not in evaluation without it, though the preset has drills: there a random team disobeys."""
    task = make_task(world)
    config = ExperimentConfig(world=world, schedule="live", extras=True)
    preset = preset_of("tuned", world)
    assert preset.drill_prob > 0
    env = make_run(config, preset, task, 0).test_env

    @jax.jit
    def play(env):
        rows = rollout(env, random_policy(2), KEY, episodes=episodes, num_envs=8).rows
        closed = (rows.closed > 0) & rows.alive
        masked = rows.alive & ~rows.available.all((-1, -2))
        return closed.sum(), (closed & rows.followed).sum(), masked.any()

    given, followed, masked = play(shielded(env))
    assert int(given) > 20 and int(followed) == int(given) and bool(masked)
    given, followed, masked = play(env)
    assert int(followed) < int(given) and not bool(masked)
