"""A wrong rank is refused by the argument's name, with the type checks of the tests and without them."""

import copy
import pickle

import corridor
import jax
import jax.numpy as jnp
import jaxtyping
import pytest

from mavic.instruct import reward, schedule
from mavic.learn import act, bptt, gru, losses, views
from mavic.learn.networks import Shape
from mavic.learn.returns import CORRECTIONS, targets
from mavic.learn.transitions import as_played, macro_transitions, packed
from mavic.rollout import threefry
from mavic.rollout.step import reset, step
from mavic.types import Scene, Sprite, Timestep, assert_rank, replace

ROWS, FLAGS = jnp.ones((4, 3)), jnp.ones((4, 3), bool)
AGENTS, MACROS = jnp.ones(2, bool), jnp.zeros(2, jnp.int32)
ENV = corridor.instructed()
NOBODY, KEY, SCALAR = schedule.no_instruction(2), jax.random.key(0), jnp.float32(0)


def targets_with(**changes):
    names = ("reward", "discount", "v_same_instruction", "v_next_instruction")
    columns = {**dict.fromkeys(names, ROWS), "switched": FLAGS, "last": FLAGS, **changes}
    return targets(**columns, correction=CORRECTIONS["cut"], n_steps=1)


def decide_with(draws):
    """Four environments, two agents."""
    network = gru.network(Shape(observation=5, macros=3, agents=2, embedding=4))
    mask = jnp.ones((4, 2), bool)
    numbers = jnp.zeros((4, 2), jnp.int32)
    observed = act.Observed(observation=jnp.ones((4, 2, 5)), last_macro=numbers, phrase=numbers)
    memory, available = act.empty_memory(network, 4), jnp.ones((4, 2, 3), bool)
    return act.decide(network, None, memory, observed, mask, available, jnp.ones((4, 1)), draws)


def advance_with(over):
    clock = (ENV.rules, ENV.schedule, ENV.phrases)
    draws, possible = corridor.draws(), jnp.ones(3, bool)
    return schedule.advance(draws, NOBODY, AGENTS, AGENTS, jnp.ones(1), possible, over, *clock)


WRONG = [
    ("discount", lambda: targets_with(discount=ROWS[:, 0])),
    ("last", lambda: targets_with(last=FLAGS[0])),
    ("available", lambda: losses.mixture(ROWS, FLAGS[0], ROWS[:, 0])),
    ("epsilon", lambda: losses.mixture(ROWS, FLAGS, SCALAR)),
    ("draws", lambda: act._choose(ROWS, FLAGS, ROWS[:, 0], SCALAR, jnp.asarray(True))),
    ("draws", lambda: decide_with(draws=jnp.ones(2))),
    ("phrase", lambda: views._own_first(MACROS)),
    ("wanted", lambda: bptt.map_where(AGENTS, lambda k, w: k, jnp.int32(1))),
    ("wanted", lambda: bptt._chunks_for(AGENTS)),
    ("key", lambda: threefry.split(jax.random.split(KEY), 3)),
    ("key", lambda: threefry.uniform(jax.random.split(KEY), 3)),
    ("number", lambda: threefry.fold_in(KEY, MACROS)),
    ("effective_macro", lambda: reward.comply(NOBODY, MACROS, jnp.int32(0), ENV.rules)),
    ("events", lambda: reward.verdict(MACROS, ROWS, ENV.rules)),
    ("task", lambda: reward.pay((NOBODY,), SCALAR, (AGENTS,), AGENTS, jnp.ones(1), ENV.rules)),
    ("preconditions", lambda: schedule.possible_kinds(jnp.asarray(True), ENV.rules)),
    ("over", lambda: advance_with(over=AGENTS)),
    ("choice", lambda: step(ENV, reset(ENV, KEY), jnp.int32(0), corridor.draws())),
]


@pytest.fixture
def unchecked():
    """As on a machine without jaxtyping."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.parametrize(("name", "call"), WRONG)
def test_the_type_checks_refuse_a_wrong_rank_by_name(name, call):
    with pytest.raises(jaxtyping.TypeCheckError, match=rf"parameter '?{name}'?"):
        call()


@pytest.mark.parametrize(("name", "call"), WRONG)
def test_functions_themselves_refuse_a_wrong_rank_by_name(name, call, unchecked):
    with pytest.raises(ValueError, match=rf"^{name} must have rank \d, \["):
        call()


@pytest.mark.parametrize(
    "call",
    [as_played, lambda rows: packed(rows, episodes=2), lambda rows: macro_transitions(rows, 0.9)],
    ids=["as_played", "packed", "macro_transitions"],
)
def test_ticks_of_a_wrong_rank_are_refused_by_field(call):
    by_agent = dict.fromkeys(Timestep.__dataclass_fields__, jnp.ones((4, 3, 2)))
    by_tick = dict.fromkeys(("alive", "switched"), FLAGS)
    rows = Timestep(**{**by_agent, **by_tick, "observation": jnp.ones((4, 3, 2, 5))})
    with pytest.raises(ValueError, match=r"^reward must have rank 3, \[T, W, N\]; .* \(4, 3\)"):
        call(replace(rows, reward=ROWS))


def test_the_right_rank_passes():
    assert_rank("K W", rows=ROWS, flags=FLAGS)
    assert_rank("", one=1.0)


def test_a_smaller_rank_is_not_broadcast_in_silence():
    with pytest.raises(ValueError, match="rank_promotion"):
        ROWS + ROWS[0]


@pytest.mark.parametrize("cls", [Sprite, Scene, Timestep, corridor.Position])
def test_a_record_without_names_says_that_it_wants_them(cls):
    with pytest.raises(TypeError, match=f"{cls.__name__} takes its fields by name, such as"):
        cls(1, 2, 3)


def test_records_are_still_copied_pickled_and_rebuilt():
    place = corridor.Corridor().reset(KEY)
    for again in (copy.deepcopy(place), pickle.loads(pickle.dumps(place)), replace(place)):
        assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), place, again))
