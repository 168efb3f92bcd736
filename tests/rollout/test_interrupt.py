"""A person's word between two ticks has the effect of the clock's, and nothing else."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mavic.envs import api
from mavic.envs.api import make
from mavic.instruct import reward, schedule
from mavic.language.lexicon import Lexicon
from mavic.rollout.step import InstructedEnv, draws_for, interrupt, reset, step
from mavic.types import InstructedState, Phrases, replace

FREE = jnp.array([1, 0])  # each to the other's small box: several ticks long for both
BOTH = jnp.array([True, True])


@pytest.fixture(scope="module")
def instructed() -> InstructedEnv:
    env = make("box_pushing")
    lexicon = Lexicon.load(api.world("box_pushing").instructions)
    return InstructedEnv(
        env=env,
        rules=reward.rules_of(env, api.world("box_pushing").instructions),
        schedule=schedule.make_schedule(),
        phrases=Phrases(table=lexicon.table, count=lexicon.count),
    )


run = jax.jit(step)
cut_in = jax.jit(interrupt)


def equal(one: InstructedState, other: InstructedState) -> None:
    for path, leaf in jax.tree_util.tree_flatten_with_path(replace(one, key=None))[0]:
        twin = dict(jax.tree_util.tree_flatten_with_path(replace(other, key=None))[0])[path]
        np.testing.assert_array_equal(leaf, twin, err_msg=jax.tree_util.keystr(path))


def kind_of(instructed: InstructedEnv, name: str) -> jnp.ndarray:
    return jnp.int32(instructed.rules.names.index(name))


def ticks(
    instructed: InstructedEnv, world: InstructedState, choice: jnp.ndarray, count: int
) -> InstructedState:
    for _ in range(count):
        world, _ = run(instructed, world, choice, draws_for(world)[2:])
    return world


@pytest.mark.parametrize("seed", range(3))
def test_a_word_does_what_the_clock_does(instructed, seed):
    """The clock strikes after the second tick; the same instruction given by hand leaves the same world."""
    clock = replace(instructed, schedule=schedule.make_schedule(rate=1.0, hold_min=3, hold_max=9))
    first = ticks(instructed, reset(instructed, jax.random.key(seed)), FREE, 1)
    struck, row = run(clock, first, FREE, draws_for(first)[2:])
    assert bool(row.switched)
    quiet, row = run(instructed, first, FREE, draws_for(first)[2:])
    assert not bool(row.switched) and not bool(row.ended.any())
    given = struck.instruction
    said, outcome = cut_in(
        instructed, quiet, given.kind.max(), given.phrase.max(), given.kind > 0, given.ticks_left
    )
    equal(said, struck)
    assert bool(outcome.changed) and int(outcome.closed) == 0


def test_it_holds_as_long_as_said_and_is_judged(instructed):
    world = reset(instructed, jax.random.key(0))
    stay = kind_of(instructed, "stay")
    world, _ = cut_in(instructed, world, stay, jnp.int32(1), BOTH, jnp.int32(2))
    world, row = run(instructed, world, jnp.array([7, 7]), draws_for(world)[2:])
    assert row.kind.tolist() == [int(stay)] * 2 and int(row.closed) == 0
    world, row = run(instructed, world, jnp.array([7, 7]), draws_for(world)[2:])
    assert int(row.closed) == int(stay) and bool(row.followed)
    assert world.instruction.kind.tolist() == [0, 0]


def test_a_word_brings_fresh_observations(instructed):
    world = ticks(instructed, reset(instructed, jax.random.key(0)), jnp.array([2, 3]), 2)
    world = replace(world, observation=jnp.full_like(world.observation, -1.0))
    stay = kind_of(instructed, "stay")
    after, _ = cut_in(instructed, world, stay, jnp.int32(1), BOTH, jnp.int32(9))
    np.testing.assert_array_equal(after.observation, instructed.env.observe(world.state))
    np.testing.assert_array_equal(after.available, instructed.env.available(world.state))


@pytest.mark.parametrize("choice, followed", [(7, True), (0, False)])
def test_a_word_over_another_judges_that_one(instructed, choice, followed):
    world = reset(instructed, jax.random.key(0))
    world, _ = cut_in(
        instructed, world, kind_of(instructed, "stay"), jnp.int32(1), BOTH, jnp.int32(9)
    )
    world = ticks(instructed, world, jnp.array([choice, 7]), 1)
    push = kind_of(instructed, "push")
    world, outcome = cut_in(instructed, world, push, jnp.int32(2), BOTH, jnp.int32(9))
    assert int(outcome.closed) == int(kind_of(instructed, "stay"))
    assert bool(outcome.followed) is followed
    assert world.instruction.kind.tolist() == [int(push)] * 2
    assert (int(world.instruction.given), int(world.instruction.ticks_held)) == (2, 0)


def test_nobody_decided_nothing_to_judge(instructed):
    world = reset(instructed, jax.random.key(0))
    for name in ("stay", "push"):
        world, outcome = cut_in(
            instructed, world, kind_of(instructed, name), jnp.int32(1), BOTH, jnp.int32(9)
        )
    assert int(outcome.closed) == 0 and not bool(outcome.followed)


def test_silence_ends_what_is_active_and_wakes_everybody(instructed):
    world = reset(instructed, jax.random.key(0))
    dont = kind_of(instructed, "dont-push")
    world, _ = cut_in(instructed, world, dont, jnp.int32(1), BOTH, jnp.int32(50))
    world = ticks(instructed, world, FREE, 2)
    assert not bool(world.idle.any())
    world, outcome = cut_in(instructed, world, jnp.int32(0), jnp.int32(0), BOTH, jnp.int32(50))
    assert world.instruction.kind.tolist() == [0, 0] and int(world.instruction.ticks_left) == 0
    assert bool(world.idle.all()) and bool(outcome.followed)
    assert int(world.instruction.given) == 1


def test_silence_over_silence_changes_nothing(instructed):
    world = ticks(instructed, reset(instructed, jax.random.key(0)), FREE, 2)
    after, outcome = cut_in(instructed, world, jnp.int32(0), jnp.int32(0), BOTH, jnp.int32(50))
    equal(after, world)
    assert not bool(outcome.changed)


def test_a_word_to_one_agent_wakes_its_teammate_too(instructed):
    world = ticks(instructed, reset(instructed, jax.random.key(0)), FREE, 2)
    stay = kind_of(instructed, "stay")
    world, _ = cut_in(instructed, world, stay, jnp.int32(1), jnp.array([False, True]), jnp.int32(9))
    assert world.instruction.kind.tolist() == [0, int(stay)]
    assert world.instruction.phrase.tolist() == [0, 1]
    assert bool(world.idle.all())


def test_only_those_a_kind_is_meant_for_are_addressed():
    env = make("warehouse")
    lexicon = Lexicon.load(api.world("warehouse").instructions)
    warehouse = InstructedEnv(
        env=env,
        rules=reward.rules_of(env, api.world("warehouse").instructions),
        schedule=schedule.make_schedule(),
        phrases=Phrases(table=lexicon.table, count=lexicon.count),
    )
    world = reset(warehouse, jax.random.key(0))
    everybody = jnp.ones(3, bool)
    after, _ = interrupt(warehouse, world, jnp.int32(1), jnp.int32(1), everybody, jnp.int32(9))
    assert after.instruction.kind.tolist() == [0, 0, 1]
    bots = jnp.array([True, True, False])
    after, outcome = interrupt(warehouse, world, jnp.int32(1), jnp.int32(1), bots, jnp.int32(9))
    assert not bool(outcome.changed)
    equal(after, world)
