"""The rollout: complete episodes, the same ones whatever the num_envs, and runs that do not touch each other."""

from __future__ import annotations

import dataclasses
from functools import cache
from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from corridor import LIVE, RAMBLING, Corridor, instructed

from mavic.instruct.schedule import DRAWS, make_schedule
from mavic.rollout import rollout as rollouts
from mavic.rollout.rollout import Policy, _first_finished, numbers_used, rollout
from mavic.run_axis import RUNS
from mavic.types import Array, InstructedState, Timestep, record, replace

EPISODES = 7
KEY = jax.random.key(5)
PLACE = replace(instructed(Corridor(horizon=12)), schedule=LIVE)


LENGTHS = jnp.array([4, 1, 2, 1, 2, 3, 1, 1, 1, 1])  # ticks of stand-in episodes, by number


class _Drawn(NamedTuple):
    state: Array  # the number of the episode


@record
class Simulated(Corridor):
    """A world with simulators. Episode 2 fails at its end. -1: the simulator was not started anew."""

    def restart(self, number, before, wanted):
        return jnp.where(wanted, number, -1)


def record_of(cls, **fields):
    return cls(**dict.fromkeys((field.name for field in dataclasses.fields(cls)), None) | fields)


def begin(instructed, drawn, state=None):
    state = drawn.state if state is None else state
    return record_of(InstructedState, state=state, macro=jnp.zeros(1, jnp.int32), time=jnp.int32(0))


def step(instructed, state, choice, draws):
    """Odd episodes are cut. A tick is told the number of its episode, and its choice."""
    number, over = state.state, state.time + 1 >= LENGTHS[state.state]
    fails = over & (number == 2) & hasattr(instructed.env, "restart")
    row = record_of(
        Timestep,
        phrase=number,
        time=state.time,
        macro=choice,
        events=draws,
        alive=jnp.asarray(True),
        terminal=over & (number % 2 == 0),
        truncated=over & (number % 2 == 1),
        task_reward=jnp.where(fails, jnp.nan, 1.0 + number),
        reward=jnp.full(2, jnp.where(fails, jnp.nan, 1.0 + number)),
    )
    return replace(state, time=state.time + 1), row


def draws_for(state):
    return jnp.concatenate([state.time[None] * 1.0, jnp.full(DRAWS, state.state * 1.0)])


COUNTS = Policy(
    start=lambda num_envs: jnp.zeros(num_envs),
    act=lambda memory, state, draws: ((draws + memory[:, None]).astype(jnp.int32), memory + 10),
)


@pytest.fixture
def queue(monkeypatch):
    """Play stand-in episodes. Returns the ticks in use, and the number of the episode of each; -1: not alive."""
    loop = jax.lax.while_loop

    def bounded(going, tick, carry):  # a queue that never ends fails, and does not hang
        return loop(lambda carry: going(carry) & (carry[0] < 30), tick, carry)

    def play(env=None, **options):
        place = instructed(env or Corridor())
        found = jax.jit(lambda: rollout(place, COUNTS, KEY, **options))()
        rows = jax.tree.map(lambda leaf: np.asarray(leaf)[: int(found.ticks)], found.rows)
        return rows, np.where(rows.alive, rows.phrase, -1).tolist()

    for name, stand_in in (
        ("threefry", SimpleNamespace(fold_in=lambda key, number: number)),
        ("draw_episode", _Drawn),
        ("begin", begin),
        ("step", step),
        ("draws_for", draws_for),
    ):
        monkeypatch.setattr(rollouts, name, stand_in)
    monkeypatch.setattr(jax.lax, "while_loop", bounded)
    return play


def test_who_finishes_takes_the_next_of_the_queue(queue):
    """Episodes 0 and 3 end in the same tick. Of two environments the first takes the lower number."""
    rows, numbers = queue(episodes=6, num_envs=2)
    assert numbers == [[0, 1], [0, 2], [0, 2], [0, 3], [4, 5], [4, 5], [-1, 5]]
    assert rows.time.tolist() == [[0, 0], [1, 0], [2, 1], [3, 0], [0, 0], [1, 1], [0, 2]]
    # The team chose by its own number, the time, and by its memory. The rest are the clock's numbers.
    assert rows.macro[..., 0].tolist() == (rows.time + 10 * np.arange(7)[:, None]).tolist()
    assert (rows.events == rows.phrase[..., None]).all() and rows.events.shape == (7, 2, DRAWS)


def test_no_more_environments_than_episodes_or_simulators(queue):
    assert queue(episodes=2, num_envs=5)[1] == [[0, 1], [0, -1], [0, -1], [0, -1]]
    few = Corridor()
    object.__setattr__(few, "side_by_side", 1)
    assert queue(few, episodes=3, num_envs=2, first=1)[1] == [[1], [2], [2], [3]]


@pytest.mark.parametrize(
    ("episodes", "numbers"),
    [
        (2, [[-1, 1], [-1, 2], [-1, 2]]),  # episode 0 is too long
        (3, [[0, -1], [0, 2], [0, 2], [0, 3]]),  # four ended: 1 did first and is left out
        (5, [[0, 1], [0, 2], [0, 2], [0, 3], [4, -1], [4, -1]]),  # 5 still runs
    ],
)
def test_the_first_to_finish_are_kept(queue, episodes, numbers):
    assert queue(episodes=episodes, num_envs=2, first_to_finish=True)[1] == numbers


def test_a_failed_episode_does_not_count_and_no_simulator_starts_for_nothing(queue):
    rows, numbers = queue(Simulated(), episodes=6, num_envs=2)
    assert numbers == [[0, 1], [0, -1], [0, -1], [0, 3], [4, 5], [4, 5], [-1, 5]]
    assert rows.phrase[6, 0] == -1  # the queue was empty
    paid = 1.0 + rows.phrase
    paid[2, 1] = 0.0  # instead of nan
    np.testing.assert_array_equal(rows.task_reward, paid)
    np.testing.assert_array_equal(rows.reward, np.stack([paid, paid], -1))
    rows, _ = queue(Simulated(), episodes=4, num_envs=2, first_to_finish=True)
    assert rows.phrase.tolist()[3] == [0, 3]


def test_of_those_that_finished_the_last_are_kept():
    """Three episodes end up to the second tick. The fourth ends when enough have."""
    over = jnp.array([[0, 1], [1, 1], [0, 0], [1, 0]], bool)
    kept = jax.jit(_first_finished, static_argnums=1)(over, 2)
    assert kept.tolist() == [[True, False], [True, True], [False, False], [False, False]]


def test_there_are_numbers_for_all_that_may_start():
    """Of 5 episodes 4 have ended. Then 3 environments finish at once, and each starts another: 3 + 4 + 3 numbers."""
    assert numbers_used(5, 3) == 11


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
