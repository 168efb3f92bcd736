"""Worlds for which nothing was tuned: they keep the protocol, and what is stored of their best plans is true."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from worlds import doors, ferry, harvest, lift, relay, search

from mavic.envs.api import make, world
from mavic.envs.conformance import check_env
from mavic.instruct.pairs import JOINED, prohibited_pairs
from mavic.instruct.reward import rules_of
from mavic.instruct.spec import InstructionFile

WORLDS = {"lift": lift, "relay": relay, "harvest": harvest, "ferry": ferry, "doors": doors}
STRIDE = {"harvest": 4}  # every macro there takes a multiple of 4 ticks
PLANNED = [name for name in WORLDS if WORLDS[name].BEST.plans]
RANDOM_EPISODES = 256
each_world = pytest.mark.parametrize("name", WORLDS)
each_planned = pytest.mark.parametrize("name", PLANNED)


def later(names, long):
    """The names, some of which only the long tests take."""
    return [pytest.param(name, marks=pytest.mark.long if name in long else ()) for name in names]


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


def bound(name):
    """What is allowed [N, M] under each prohibition and under two of them at once."""
    found = rules(name)
    pairs = {
        pair: np.asarray(found.allowed[one] & found.allowed[two])
        for pair, (one, two) in prohibited_pairs(make(name), found).items()
    }
    return prohibitions(name) | pairs


def as_array(plans):
    """[E, D, N] the plans' macros; an agent waits after its last one."""
    longest = max(len(macros) for plan in plans for macros in plan)
    padded = [[[*map(int, macros.ljust(longest, "0"))] for macros in plan] for plan in plans]
    return np.swapaxes(np.array(padded, np.int32), 1, 2)


@pytest.mark.parametrize("name", later(WORLDS, ("relay", "harvest", "ferry", "lift")))
def test_keeps_the_protocol(name):
    check_env(make(name))


@each_world
def test_instructions_are_commands_and_prohibitions_that_matter(name):
    file, best = InstructionFile.read(world(name).instructions), WORLDS[name].BEST
    assert 4 <= len(file.kinds) <= 8
    assert {kind.rule for kind in file.kinds} == {"add", "replace"}
    assert all(6 <= len(kind.train) <= 12 and len(kind.held_out) >= 2 for kind in file.kinds)
    assert set(best.returns) == {None, *bound(name)}
    base = best.returns[None]
    for kind in bound(name):
        assert 0.7 * base < best.returns[kind] < 0.999 * base


@each_world
def test_the_record_gives_the_best_return_at_its_own_discount(name):
    env, module = make(name), WORLDS[name]
    optimum = world(name).optimum
    assert optimum(env, module.GAMMA, None) == module.BEST.returns[None]
    assert optimum(env, module.GAMMA - 0.001, None) is None
    assert optimum(env, module.GAMMA, "wait") is None


@each_planned
def test_the_plans_earn_what_is_stored_and_a_random_team_does_not(name):
    env, module = make(name), WORLDS[name]
    plans = as_array(module.BEST.plans.values())
    stored = [module.BEST.returns[kind] for kind in module.BEST.plans]
    drawn = np.full((RANDOM_EPISODES, env.horizon, plans.shape[2]), -1, np.int32)
    plans = np.pad(plans, ((0, 0), (0, env.horizon - plans.shape[1]), (0, 0)))
    both = jnp.asarray(np.concatenate([plans, drawn]))
    played = search.play(env, jax.random.key(0), both, module.GAMMA)
    np.testing.assert_allclose(played["value"][: len(plans)], stored, rtol=1e-4)
    assert played["solved"][: len(plans)].all()
    assert played["value"][len(plans) :].mean() < 0.6 * stored[0]


@each_planned
def test_the_obedient_plans_obey(name):
    found = prohibitions(name)
    assert set(WORLDS[name].BEST.plans) == {None, *found}
    for kind, plan in WORLDS[name].BEST.plans.items():
        for agent, macros in enumerate(plan):
            assert all(kind is None or found[kind][agent, int(macro)] for macro in macros)


@pytest.mark.parametrize("name", later(PLANNED, ("relay", "harvest", "ferry")))
def test_no_plan_earns_more_and_obeying_is_best(name):
    graph = search.explore(make(name), WORLDS[name].GAMMA, STRIDE.get(name, 1))
    best, unbound = WORLDS[name].BEST.returns, search.values(graph)
    assert search.best_return(graph, unbound) == pytest.approx(best[None], rel=1e-4)
    for kind, allowed in bound(name).items():
        obedient = search.values(graph, search.obeying(graph, allowed))
        assert search.best_return(graph, obedient) == pytest.approx(best[kind], rel=1e-4)
        assert fine(name, kind) > search.largest_gain(unbound, obedient)
    assert can_be_obeyed(name, graph)


def can_be_obeyed(name, graph):
    """In every state every agent that a kind addresses may choose what the kind allows."""
    found, offered = rules(name), np.asarray(jax.vmap(make(name).available)(graph.states))
    some = (offered[:, None] & np.asarray(found.allowed)).any(-1)  # [nodes, C, N]
    return (some | ~np.asarray(found.addressed)).all()


def fine(name, kind):
    """What a forbidden choice costs at least under a kind, or under two."""
    found = rules(name)
    return min(-float(found.penalty[found.names.index(one)]) for one in kind.split(JOINED))


# Doors has chance, so that its best plan is a policy, and its lanes are solved one by one.


def lanes():
    return [doors.Doors(lanes=1, first=lane) for lane in range(doors.Doors().lanes)]


def test_the_doors_of_a_lane_are_a_world_of_their_own():
    whole, parts = doors.Doors(), lanes()
    states = [part.reset(jax.random.key(0)) for part in parts]
    state, draw = whole.reset(jax.random.key(0)), np.random.default_rng(0)
    macro = np.zeros(6, np.int32)
    moves = [jax.jit(env.move) for env in (whole, *parts)]
    done = np.zeros(3, bool)
    for _ in range(80):
        luck, fresh = draw.random(6) < doors.GRIP, draw.random(6) < 0.3
        opens = np.where(draw.random(3) < 0.5, 3, 4)[np.arange(6) // 2]
        fresh |= np.asarray(state.left == 0)
        macro = np.where(fresh, np.where(draw.random(6) < 0.5, opens, 1), macro)
        tick = moves[0](luck, state, macro, fresh)
        paid = 0.0
        for n in range(3):
            own = slice(2 * n, 2 * n + 2)
            out = moves[n + 1](luck[own], states[n], macro[own], fresh[own])
            states[n], paid, done[n] = out.state, paid + float(out.reward[0]), out.terminal
            np.testing.assert_array_equal(out.ended, tick.ended[own])
        state = tick.state
        joined = jax.tree.map(lambda *leaves: np.concatenate(leaves), *states)
        jax.tree.map(np.testing.assert_array_equal, joined, state)
        assert float(tick.reward[0]) == pytest.approx(paid, abs=1e-5)
        assert bool(tick.terminal) == done.all()
    assert done.any()  # whole lanes were played


@pytest.mark.long
def test_the_best_policy_of_the_doors_earns_what_is_stored_and_a_random_team_does_not():
    env, episodes = make("doors"), 400
    everything = jnp.ones((6, 5), bool)

    def choose(key, observation, available):
        return doors.best_choices(observation, everything)

    free = jnp.full((episodes, env.horizon, 6), -1, jnp.int32)
    best = search.play(env, jax.random.key(0), free, doors.GAMMA, choose)
    drawn = search.play(env, jax.random.key(0), free, doors.GAMMA)
    stored, value = doors.BEST.returns[None], np.asarray(best["value"])
    assert value.mean() == pytest.approx(stored, abs=float(4 * value.std() / episodes**0.5))
    assert best["solved"].all() and drawn["value"].mean() < 0.6 * stored


@pytest.mark.long
def test_no_policy_of_the_doors_earns_more_and_obeying_is_best():
    graphs = [search.explore(env, doors.GAMMA) for env in lanes()]
    kinds = {None: np.ones((6, 5), bool), **bound("doors")}
    unbound = [search.values(graph) for graph in graphs]
    for kind, allowed in kinds.items():
        best = own = gain = 0.0  # the gain of one agent's choice is that of its lane
        for n, (env, graph) in enumerate(zip(lanes(), graphs, strict=True)):
            mask = allowed[2 * n : 2 * n + 2]
            obedient = search.values(graph, search.obeying(graph, mask))
            seen = jax.vmap(env.observe)(graph.states)
            choices = jax.vmap(doors.best_choices, (0, None))(seen, jnp.asarray(mask))
            chosen = search.choosing(graph, np.asarray(choices))
            assert (chosen <= search.obeying(graph, mask)).all()
            best += search.best_return(graph, obedient)
            own += search.best_return(graph, search.values(graph, chosen))
            gain = max(gain, search.largest_gain(unbound[n], obedient))
        assert best == pytest.approx(doors.BEST.returns[kind], rel=1e-5)
        assert own == pytest.approx(best, rel=1e-6)  # by what the agents see
        assert kind is None or fine("doors", kind) > gain
