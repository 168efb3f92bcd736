"""The trial of random teams: what it counts of an episode, and which macros did the work of a forbidden one."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from corridor import HURRY, RING, RULES, WALK, Corridor, Left, Position, instructed

from mavic.instruct.schedule import DRAWS, no_instruction
from mavic.rollout import trial
from mavic.types import Array, Instruction, Tick, record, replace


class Row(NamedTuple):
    """What a trial reads of a tick."""

    kind: Array
    fresh: Array
    complied: Array
    available: Array
    forbidden: Array
    ended: Array
    unfinished: Array
    events: Array
    reward: Array
    closed: Array
    followed: Array
    terminal: Array
    truncated: Array
    switched: Array
    macro: Array


class State(NamedTuple):
    state: Position
    available: Array
    instruction: Instruction


ALL, NONE = [True] * 3, [False] * 3
TWO = [True, True, False]
# Four ticks. Nobody is told anything in tick 0. Right disobeys in tick 1, and left in the last tick, 2. In tick 3 the
# episode is over, so nothing of it counts.
SCRIPT = Row(
    kind=jnp.array([[0, 0], [HURRY, HURRY], [HURRY, HURRY], [HURRY, HURRY]]),
    fresh=jnp.array([[1, 1], [1, 1], [1, 1], [1, 1]], bool),
    complied=jnp.array([[0, 0], [1, 0], [0, 1], [0, 0]], bool),
    available=jnp.array([[ALL, ALL], [TWO, TWO], [TWO, ALL], [ALL, ALL]]),
    forbidden=jnp.array([[ALL, ALL], [TWO, NONE], [TWO, TWO], [ALL, ALL]]),
    ended=jnp.ones((4, 2), bool),
    unfinished=jnp.array([[0, 0], [0, 0], [1, 0], [0, 0]], bool),
    events=jnp.array([[0, 1, 0]] * 4, jnp.float32),
    reward=jnp.array([[1, 2], [10, 20], [100, 200], [jnp.nan, jnp.nan]], jnp.float32),
    closed=jnp.array([0, HURRY, HURRY, HURRY]),
    followed=jnp.array([0, 0, 1, 1], bool),
    terminal=jnp.array([0, 0, 1, 1], bool),
    truncated=jnp.zeros(4, bool),
    switched=jnp.zeros(4, bool),
    macro=jnp.zeros((4, 2), jnp.int32),  # the choices stand here
)
GIVEN = jnp.array([0, 1, 1, 9])
OFFERED = jnp.array([[False, True, True], [True, True, False]])


PLACE = instructed(Corridor(horizon=4))


@jax.jit
def play(script, kind, first):
    """The trial's counts of the script, and its snapshot."""

    def state(tick, given, told=0):
        here = replace(PLACE.env.reset(None), clock=jnp.int32(tick))
        instruction = replace(no_instruction(2), given=given, kind=jnp.array([told, 0]))
        return State(here, OFFERED, instruction)

    def step(instructed, before, choice, draws):
        tick = before.state.clock
        row = jax.tree.map(lambda leaf: leaf[tick], script)
        return state(tick + 1, GIVEN[tick]), row._replace(macro=choice)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial, "reset", lambda place, key: state(0, jnp.int32(0), first))
        patch.setattr(trial, "step", step)
        patch.setattr(trial, "draws_for", lambda state: jnp.zeros(2 + DRAWS).at[1].set(0.9))
        return trial._play(PLACE, kind, jax.random.key(0), jnp.float32(0.5))


def played(of=HURRY, first=0, **changes):
    changed = {name: jnp.asarray(row, getattr(SCRIPT, name).dtype) for name, row in changes.items()}
    counts, snapshot = play(SCRIPT._replace(**changed), jnp.int32(of), jnp.int32(first))
    return {name: value.item() for name, value in counts.items()}, snapshot


def test_only_what_happens_under_the_kind_and_before_the_end_counts():
    counts, snapshot = played()
    assert counts == {
        "possible": 3,
        "given": 1,
        "from_start": False,
        "closed": 2,
        "followed": 1,
        "decisions": 4,
        "without_choice": 2,  # left's
        "tempted": 3,  # all but right's in tick 1
        "obeyed": False,
        "paid": (3 + 30 / 2 + 300 / 4) / 2,
        "broken": (1 / 2 + 1 / 4) / 2,
    }
    assert (bool(snapshot.found), int(snapshot.agent), int(snapshot.state.clock)) == (True, 1, 1)
    assert snapshot.macro.tolist() == [1, 1]  # by the draws 0 and 0.9


def test_who_goes_on_decides_nothing():
    counts, snapshot = played(fresh=[[1, 1], [1, 0], [0, 0], [1, 1]])
    asked = ("decisions", "without_choice", "tempted", "obeyed", "broken")
    assert [counts[name] for name in asked] == [1, 1, 1, True, 0.0]
    assert bool(snapshot.found)  # what right began before ended with an event


def test_a_kind_is_possible_where_its_condition_holds_and_pays_those_it_is_meant_for():
    """The corridor is open from tick 2 on. Ring is meant for left."""
    counts, _ = played(of=RING, first=RING, complied=np.ones((4, 2), bool))
    assert (counts["possible"], counts["from_start"], counts["paid"]) == (1, True, 31.0)
    assert (counts["obeyed"], counts["broken"]) == (True, 0.0)


@pytest.mark.parametrize(
    "changes",
    [
        dict(switched=np.ones(4)),
        dict(unfinished=np.ones((4, 2))),
        dict(ended=np.zeros((4, 2))),
        dict(events=np.zeros((4, 3))),
        dict(complied=np.ones((4, 2))),
        dict(kind=np.zeros((4, 2))),
    ],
)
def test_tried_again_is_only_a_forbidden_macro_that_ended_by_itself_with_an_event(changes):
    assert not bool(played(**changes)[1].found)


def test_random_choices_are_available_ones():
    available = jnp.array([[False, True, True], [True, True, False]])
    for draws, found in (([0.0, 0.0], [1, 0]), ([0.4, 0.4], [1, 0]), ([0.6, 0.9], [2, 1])):
        assert trial._at_random(available, jnp.array(draws)).tolist() == found


def test_macros_that_do_nothing_are_found_by_their_names():
    found = trial._resting(Corridor(), ("WAIT", "RING"))
    assert np.argwhere(found).tolist() == [[0, Left.WAIT], [0, Left.RING], [1, 0]]


@record
class Bench(Corridor):
    """What each of left's macros brings about stands in a table."""

    rings: Array  # how often the bell rings
    pays: Array
    leaves: Array  # what is seen afterwards
    ends: Array
    offers: Array

    def tick(self, key, state, macro, fresh, effect):
        own = macro[0]
        return Tick(
            state=replace(state, left=jnp.array([self.leaves[own], 0])),
            reward=jnp.array([self.pays[own], 0.0]),
            ended=jnp.array([self.ends[own], True]),
            terminal=jnp.asarray(False),
            events=jnp.array([0.0, self.rings[own], 0.0]),
            effective_macro=macro,
        )

    def available(self, state):
        return super().available(state).at[0].set(self.offers)


def tried(found=True, rests=True, **changes):
    """What left's walk did, and which macros did the same, for each kind: WALK is forbidden under RING alone."""
    table = dict(rings=[0, 1, 1, 1, 0], pays=[0, 5, 5, 4, 0], leaves=[3, 7, 7, 7, 0]) | changes
    table = {"ends": [1] * 5, "offers": [1] * 5} | table
    types = dict(rings=float, pays=float, leaves=jnp.int32, ends=bool, offers=bool)
    env = Bench(**{name: jnp.array(row, types[name]) for name, row in table.items()})
    snap = trial._Snapshot(
        state=env.reset(None),
        macro=jnp.array([Left.WALK, 0], jnp.int32),
        fresh=jnp.array([True, False]),
        agent=jnp.int32(0),
        found=jnp.asarray(found),
    )
    snaps = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (4, 1, *leaf.shape)), snap)
    resting = jnp.zeros((2, 5), bool).at[0, Left.WAIT].set(rests)
    finished, ways = trial._try_again(env, RULES, snaps, resting, jax.random.key(0))
    finished, ways = np.asarray(finished)[:, 0], np.asarray(ways)[:, 0]
    assert not ways[:, np.arange(5) != Left.WALK].any() and (finished == finished[RING]).all()
    did = {kind: np.flatnonzero(ways[kind, Left.WALK]).tolist() for kind in (0, WALK, HURRY, RING)}
    return np.flatnonzero(finished[RING]).tolist(), did


def test_a_macro_that_did_the_same_is_a_way_round_where_it_is_allowed():
    """The bell rings with CRASH too, but it pays other than WALK and RING. The kind WALK allows walking alone."""
    ring = [Left.RING]
    assert tried() == ([Left.WALK], {0: ring, WALK: [], HURRY: ring, RING: ring})


@pytest.mark.parametrize(
    "changes",
    [
        dict(ends=[1, 1, 0, 1, 1]),
        dict(offers=[1, 1, 0, 1, 1]),
        dict(leaves=[3, 7, 6, 7, 0]),
        dict(rings=[0, 1, 2, 1, 0]),
        dict(pays=[0, 5, 4, 4, 0]),
    ],
)
def test_what_did_not_quite_the_same_in_one_tick_is_no_way_round(changes):
    finished, did = tried(**changes)
    assert finished == [Left.WALK] and not any(did.values())


@pytest.mark.parametrize(
    ("changes", "told_apart"),
    [
        (dict(found=False), False),
        # Resting brings the event too.
        (dict(rings=[1, 1, 1, 0, 0], pays=[5, 5, 5, 0, 0]), False),
        (dict(rings=[0, 1, 1, 1, 1], pays=[0, 5, 5, 5, 5]), True),  # resting does not
        # Most others ring too and are paid less, or are paid the same without the event.
        (dict(rests=False, rings=[0, 1, 1, 1, 1], pays=[0, 5, 4, 4, 4]), True),
        (dict(rests=False, rings=[0, 1, 0, 0, 0], pays=[0, 5, 5, 5, 5]), True),
        # Nobody can rest: most other choices bring the event, or half of them, or most of those that are offered.
        (dict(rests=False, rings=[0, 1, 1, 1, 1], pays=[0, 5, 5, 5, 5]), False),
        (dict(rests=False, rings=[0, 1, 1, 1, 0], pays=[0, 5, 5, 5, 0]), True),
        (
            dict(rests=False, rings=[0, 1, 1, 1, 0], pays=[0, 5, 5, 5, 0], offers=[0, 1, 1, 1, 0]),
            False,
        ),
    ],
)
def test_what_happens_whatever_the_agent_does_is_not_its_work(changes, told_apart):
    assert tried(**changes)[0] == [Left.WALK] * told_apart
