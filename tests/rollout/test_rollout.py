"""The rollout: complete episodes, the same ones whatever the num_envs, and runs that do not touch each other."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from corridor import LIVE, RAMBLING, Corridor, instructed

from mavic.instruct.schedule import make_schedule
from mavic.rollout.rollout import rollout
from mavic.run_axis import RUNS
from mavic.types import replace

EPISODES = 7
KEY = jax.random.key(5)
PLACE = replace(instructed(Corridor(horizon=12)), schedule=LIVE)


def playing(num_envs):
    def play(place, key, first):
        return rollout(place, RAMBLING, key, episodes=EPISODES, num_envs=num_envs, first=first)

    return play


@cache
def compiled(num_envs):
    return jax.jit(playing(num_envs))


def played(num_envs, first=0, place=PLACE, key=KEY):
    return jax.tree.map(np.asarray, compiled(num_envs)(place, key, jnp.int32(first)))


@pytest.fixture(scope="module")
def by_num_envs():
    return {num_envs: played(num_envs) for num_envs in (1, 3)}


def pieces(found):
    """Each environment's episodes as (environment, first tick, last tick), cut after every end."""
    rows = found.rows
    over = rows.alive & (rows.terminal | rows.truncated)
    cut = []
    for lane in range(over.shape[1]):
        start = 0
        for end in np.flatnonzero(over[:, lane]):
            cut.append((lane, start, int(end)))
            start = int(end) + 1
    return cut


def episodes(found):
    """Rows of each episode by its number: num_envs take the next in the order in which they finish."""
    cut = pieces(found)
    num_envs = found.rows.alive.shape[1]
    number = {(lane, start): lane for lane, start, _ in cut if start == 0}
    queued = num_envs
    for lane, _, end in sorted(cut, key=lambda piece: (piece[2], piece[0])):
        number[lane, end + 1] = queued
        queued += 1
    return {
        number[lane, start]: jax.tree.map(
            lambda leaf, s=start, e=end, i=lane: leaf[s : e + 1, i], found.rows
        )
        for lane, start, end in cut
    }


def test_episodes_are_the_same_for_any_number_of_environments(by_num_envs):
    one, many = episodes(by_num_envs[1]), episodes(by_num_envs[3])
    assert set(one) == set(many) == set(range(EPISODES))
    for number in one:
        jax.tree.map(np.testing.assert_array_equal, one[number], many[number])


def test_these_episodes_would_show_a_mistake(by_num_envs):
    """They differ in length and content, some are instructed, some are cut."""
    found = episodes(by_num_envs[1]).values()
    assert len({len(rows.time) for rows in found}) > 2
    assert any(rows.switched.any() for rows in found) and any(rows.closed.any() for rows in found)
    assert {bool(rows.truncated[-1]) for rows in found} == {True, False}


@pytest.mark.parametrize("num_envs", [1, 3])
def test_exactly_the_episodes_asked_for_and_all_complete(by_num_envs, num_envs):
    found = by_num_envs[num_envs]
    cut = pieces(found)
    assert len(cut) == EPISODES
    assert sum(end - start + 1 for _, start, end in cut) == found.rows.alive.sum()
    for lane, start, end in cut:
        np.testing.assert_array_equal(
            found.rows.time[start : end + 1, lane], np.arange(end - start + 1)
        )
        assert (
            found.rows.fresh[start, lane].all() and (found.rows.last_macro[start, lane] == -1).all()
        )


@pytest.mark.parametrize("num_envs", [1, 3])
def test_a_lane_that_is_done_stays_done(by_num_envs, num_envs):
    found = by_num_envs[num_envs]
    alive = found.rows.alive
    assert (np.diff(alive.astype(int), axis=0) <= 0).all()
    assert int(found.ticks) == alive.any(1).sum()
    assert not found.rows.reward[int(found.ticks) :].any()


def test_episodes_are_numbered_from_first(by_num_envs):
    later, here = episodes(played(3, first=2)), episodes(by_num_envs[3])
    for number in range(EPISODES - 2):
        jax.tree.map(np.testing.assert_array_equal, later[number], here[number + 2])


@pytest.mark.long
def test_two_runs_together_are_each_alone(by_num_envs):
    busy = make_schedule(rate=0.9, hold_min=1, hold_max=2)
    places = [PLACE, replace(PLACE, schedule=busy)]
    keys = [KEY, jax.random.key(9)]
    both = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]), *places)
    together = jax.jit(jax.vmap(playing(3), axis_name=RUNS))(
        both, jnp.stack(keys), jnp.zeros(2, jnp.int32)
    )
    for run, single in enumerate((by_num_envs[3], played(3, place=places[1], key=keys[1]))):
        mine = jax.tree.map(lambda leaf, r=run: np.asarray(leaf[r]), together)
        alive = single.rows.alive
        np.testing.assert_array_equal(mine.rows.alive, alive)
        jax.tree.map(
            lambda a, b, m=alive: np.testing.assert_array_equal(a[m], b[m]), mine.rows, single.rows
        )
