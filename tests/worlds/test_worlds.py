"""Worlds for which nothing was tuned: they keep the protocol, and what is stored of their best plans is true."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from worlds import ferry, harvest, lift, relay, search

from mavic.envs.api import make, world
from mavic.envs.conformance import check_env
from mavic.instruct.reward import rules_of
from mavic.instruct.spec import InstructionFile

WORLDS = {"lift": lift, "relay": relay, "harvest": harvest, "ferry": ferry}
STRIDE = {"harvest": 4}
SMALL = ("lift", "relay")
LARGE = [pytest.param(name, marks=pytest.mark.long) for name in WORLDS if name not in SMALL]
RANDOM_EPISODES = 256
each_world = pytest.mark.parametrize("name", WORLDS)


def rules(name):
    return rules_of(make(name), world(name).instructions)


def prohibitions(name):
    """The kinds that leave the task on, and what they allow each agent [N, M]."""
    found = rules(name)
    return {
        kind: np.asarray(found.allowed[n])
        for n, kind in enumerate(found.names)
        if n and not found.replaces[n]
    }


def as_array(plans):
    """[E, D, N] the plans' macros; an agent waits after its last one."""
    longest = max(len(macros) for plan in plans for macros in plan)
    padded = [[[*map(int, macros.ljust(longest, "0"))] for macros in plan] for plan in plans]
    return np.swapaxes(np.array(padded, np.int32), 1, 2)


@each_world
def test_keeps_the_protocol(name):
    check_env(make(name))


@each_world
def test_instructions_are_commands_and_prohibitions_that_matter(name):
    file, best = InstructionFile.read(world(name).instructions), WORLDS[name].BEST
    assert 4 <= len(file.kinds) <= 8
    assert {kind.rule for kind in file.kinds} == {"add", "replace"}
    assert all(6 <= len(kind.train) <= 12 and len(kind.held_out) >= 2 for kind in file.kinds)
    assert set(best.returns) == {None, *prohibitions(name)}
    base = best.returns[None]
    for kind in prohibitions(name):
        assert 0.7 * base < best.returns[kind] < 0.999 * base


@each_world
def test_the_record_gives_the_best_return_at_its_own_discount(name):
    env, module = make(name), WORLDS[name]
    optimum = world(name).optimum
    assert optimum(env, module.GAMMA, None) == module.BEST.returns[None]
    assert optimum(env, module.GAMMA - 0.001, None) is None
    assert optimum(env, module.GAMMA, "wait") is None


@pytest.mark.parametrize("name", WORLDS)
def test_the_plans_earn_what_is_stored_and_a_random_team_does_not(name):
    env, module = make(name), WORLDS[name]
    plans = as_array(module.BEST.plans.values())
    drawn = np.full((RANDOM_EPISODES, *plans.shape[1:]), -1, np.int32)
    both = jnp.asarray(np.concatenate([plans, drawn]))
    played = search.play(env, jax.random.key(0), both, module.GAMMA)
    stored = list(module.BEST.returns.values())
    np.testing.assert_allclose(played["value"][: len(plans)], stored, rtol=1e-4)
    assert played["solved"][: len(plans)].all()
    assert played["value"][len(plans) :].mean() < 0.7 * stored[0]


@each_world
def test_the_obedient_plans_obey(name):
    found = prohibitions(name)
    for kind, plan in WORLDS[name].BEST.plans.items():
        for agent, macros in enumerate(plan):
            assert all(kind is None or found[kind][agent, int(macro)] for macro in macros)


@pytest.mark.parametrize("name", [*SMALL, *LARGE])
def test_no_plan_earns_more_and_obeying_is_best(name):
    env, module = make(name), WORLDS[name]
    graph = search.explore(env, module.GAMMA, STRIDE.get(name, 1))
    found, best = rules(name), module.BEST.returns
    assert search.best_return(graph) == pytest.approx(best[None], rel=1e-4)
    bound = prohibitions(name)
    gains = search.largest_gains(graph, bound.values())
    for (kind, allowed), gain in zip(bound.items(), gains, strict=True):
        assert search.best_return(graph, allowed) == pytest.approx(best[kind], rel=1e-4)
        fine = -float(found.penalty[found.names.index(kind)])
        assert fine > gain
