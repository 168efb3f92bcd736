"""Kinds that depend on what is the case: choices are judged, enforced, planned and marked by predicates."""

from __future__ import annotations

import crossing
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from crossing import Crossing, Macro

from mavic.apps import frames
from mavic.envs import api
from mavic.envs.conformance import EnvError, check_env
from mavic.experiment import check
from mavic.instruct import pairs, reward, schedule
from mavic.instruct.spec import InstructionFile, InstructionFileError
from mavic.rollout.plan import plan
from mavic.rollout.rollout import Policy, rollout
from mavic.rollout.step import InstructedEnv, choices_of, interrupt, reset, step
from mavic.types import Phrases, record, replace

ENV = Crossing()
FILE = InstructionFile.parse(crossing.kinds(), "crossing.toml")
RULES = reward.rules_of(ENV, FILE)
KIND = {name: number for number, name in enumerate(RULES.names)}
NO_DRAWS = jnp.full(schedule.DRAWS, 0.99)
ALLOWED = jax.jit(reward.allowed_macros)


def instructed(**clock) -> InstructedEnv:
    count = len(RULES.names)
    phrases = Phrases(table=jnp.zeros((count, 1), jnp.int32), count=jnp.ones(count, jnp.int32))
    return InstructedEnv(
        env=ENV, rules=RULES, schedule=schedule.make_schedule(**clock), phrases=phrases
    )


def told(kind, state=None, **clock):
    """A state under a kind."""
    place = instructed(**clock)
    first = reset(place, jax.random.key(0))
    first = first if state is None else replace(first, state=state)
    given, _ = interrupt(
        place, first, jnp.int32(KIND[kind]), jnp.int32(0), jnp.ones(2, bool), jnp.int32(99)
    )
    return place, given


NORTH = crossing.River(
    north=jnp.array([True, False]), left=jnp.zeros(2, jnp.int32), holder=jnp.int32(0)
)


@pytest.mark.long
def test_a_choice_is_forbidden_only_where_its_predicate_says_so():
    _, state = told("south-only", NORTH)
    assert state.forbidden[:, Macro.CROSS].tolist() == [False, True]
    assert int(state.forbidden.sum()) == 1 and state.available.all()
    _, state = told("dont-carry-over", NORTH)
    assert state.forbidden[:, Macro.CROSS].tolist() == [True, False]
    _, state = told("hands-free", NORTH)
    assert state.forbidden.all(-1).tolist() == [True, False]
    _, state = told("go-south", NORTH)
    assert (~state.forbidden).tolist() == [[False, True, False, False], [False] * 4]


@pytest.mark.parametrize(
    ("kind", "forbidden"),
    [
        ("south-only", [(1, Macro.CROSS)]),
        ("dont-carry-over", [(0, Macro.CROSS)]),
        ("hands-free", [(0, macro) for macro in Macro]),
        ("go-south", [(agent, macro) for agent in (0, 1) for macro in Macro if (agent, macro) != (0, 1)]),
        ("wait", [(agent, macro) for agent in (0, 1) for macro in Macro if macro != Macro.WAIT]),
    ],
)  # fmt: skip
def test_a_predicate_decides_about_what_its_kind_lists_and_about_nothing_else(kind, forbidden):
    """Robot a is in the north and has the load."""
    addressed = jnp.where(RULES.addressed[KIND[kind]], KIND[kind], 0)
    instruction = replace(schedule.no_instruction(2), kind=addressed)
    macros = jnp.broadcast_to(jnp.arange(len(Macro)), (2, len(Macro)))
    allowed = ALLOWED(instruction, macros, RULES, ENV.holds(NORTH))
    assert np.argwhere(~np.asarray(allowed)).tolist() == [list(choice) for choice in forbidden]


def test_the_shield_and_drills_take_away_what_the_predicate_forbids():
    _, state = told("south-only", NORTH, shield=True)
    assert state.available[:, Macro.CROSS].tolist() == [True, False]
    drilled = instructed(rate=1.0, hold_to_end_prob=1.0, drill_prob=1.0)
    only = replace(RULES, given=jnp.arange(len(RULES.names)) == KIND["south-only"])
    drilled = replace(drilled, rules=only)
    after, _ = step(
        drilled, reset(drilled, jax.random.key(0)), jnp.zeros(2, jnp.int32), jnp.zeros(7)
    )
    assert bool(after.instruction.enforced)
    assert after.available[:, Macro.CROSS].tolist() == [False, False]


def test_a_macro_is_judged_by_the_state_in_which_it_was_chosen():
    """Robot 0 crosses southwards. After the second tick it stands in the south, where crossing would be forbidden."""
    place, state = told("south-only", NORTH)
    choice = jnp.array([Macro.CROSS, Macro.WAIT])
    for _ in range(2):
        state, row = step(place, state, choice, NO_DRAWS)
        assert row.complied.all() and float(row.reward[0]) == pytest.approx(-0.1)
    assert not state.state.north.any()
    state, row = step(place, state, choice, NO_DRAWS)  # northwards now
    assert row.complied.tolist() == [False, True]
    assert float(row.reward[0]) == pytest.approx(-50.1)


@pytest.mark.long
def test_a_rollout_judges_alike():
    def act(memory, state, draws):
        return jnp.minimum((draws * 4).astype(jnp.int32), 3), memory

    place = instructed(from_start=1.0)
    only = replace(RULES, given=jnp.arange(len(RULES.names)) == KIND["south-only"])
    place = replace(place, rules=only)
    policy = Policy(start=lambda count: jnp.zeros(count), act=act)
    rows = rollout(place, policy, jax.random.key(1), episodes=24, num_envs=8).rows
    live = np.asarray(rows.alive)[..., None] & np.asarray(rows.kind > 0) & np.asarray(rows.fresh)
    north = np.asarray(rows.observation[..., 0]) > 0
    crosses = np.asarray(rows.macro) == Macro.CROSS
    np.testing.assert_array_equal(np.asarray(rows.complied)[live], (~crosses | north)[live])
    assert (crosses & north)[live].any() and (crosses & ~north)[live].any()


@pytest.mark.long
def test_a_plan_obeys_what_the_predicate_forbids():
    def best(kind=None):
        return plan(ENV, kind, gamma=1.0, most=10.0, rules=RULES)

    free = best()  # cross 2, take 1, cross 2, put 1
    assert free.exact and free.value == pytest.approx(10 - 0.6)
    stuck = best("south-only")  # the robots start in the south
    assert stuck.value == pytest.approx(-1.6)
    assert best("dont-carry-over").value == pytest.approx(free.value)  # the other robot does it
    assert best("go-south") is None
    alone = reward.rules_of(
        ENV, InstructionFile.parse(_with("dont-carry-over", agents=["a", "b"]), "alone")
    )
    assert plan(ENV, "dont-carry-over", gamma=1.0, most=10.0, rules=alone).value < 0


def _with(kind, **changes):
    raw = crossing.kinds()
    raw["kinds"][kind] |= changes
    return raw


def test_two_kinds_that_depend_on_a_predicate_can_hold_together():
    both = (np.full(2, KIND[name]) for name in ("hands-free", "south-only"))
    assert pairs.conflict(ENV, RULES, *both) == ""
    assert "nothing to do" in pairs.conflict(
        ENV, RULES, *(np.full(2, KIND[name]) for name in ("go-south", "wait"))
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"unless": "southward"}, r"unless: 'southward' is unknown; did you mean 'southwards'"),
        ({"when": "while-carrying"}, "has both when and unless"),
        ({"unless": 3}, "unless: has the wrong type int"),
    ],
)
def test_a_wrong_predicate_is_refused(changes, why):
    with pytest.raises(InstructionFileError, match=why):
        reward.rules_of(ENV, InstructionFile.parse(_with("south-only", **changes), "crossing.toml"))


def test_a_world_without_predicates_says_so():
    raw = {
        "world": "box_pushing",
        "kinds": {"x": {"rule": "add", "forbid": ["PUSH"], "when": "dark", "train": ["x"]}},
    }
    with pytest.raises(InstructionFileError, match=r"kinds.x.when: 'dark' is unknown; .* has none"):
        reward.rules_of(api.make("box_pushing"), InstructionFile.parse(raw, "x.toml"))


@pytest.mark.long
def test_files_without_predicates_compile_as_before():
    env = api.make("box_pushing")
    rules = reward.rules_of(env, api.world("box_pushing").instructions)
    assert rules.predicate is None and rules.negated is None
    place = replace(instructed(), env=env, rules=rules)
    assert reset(place, jax.random.key(0)).holds is None


@record
class Promises(Crossing):
    def holds(self, state):
        return Crossing.holds(self, state)[..., 0]


@pytest.mark.long
def test_conformance_looks_at_predicates():
    check_env(ENV, ticks=20)
    with pytest.raises(EnvError, match=r"holds must be bool\w*\[2, 4, 2\]"):
        check_env(Promises(), ticks=20)


@pytest.mark.long
def test_check_follows_predicates(monkeypatch):
    monkeypatch.setattr(api, "REGISTERED", {})
    api.register("crossing", Crossing)
    raw = crossing.kinds()
    raw["kinds"] = {k: v for k, v in raw["kinds"].items() if k in ("hands-free", "dont-carry-over")}
    raw["kinds"]["dont-carry-over"]["agents"] = ["a", "b"]  # then nobody may, and the task pays 10
    raw["kinds"]["dont-carry-over"]["penalty"] = -1
    found = check.check("crossing", file=InstructionFile.parse(raw, "crossing.toml"), episodes=32)
    said = [str(one) for one in found.findings]
    assert any("hands-free: no allowed macro is available" in line for line in said)
    assert any("dont-carry-over: of" in line and "disobeyed earned" in line for line in said)


def test_pages_mark_the_region_that_a_predicate_names(monkeypatch):
    monkeypatch.setattr(api, "REGISTERED", {})
    api.register("crossing", Crossing, macro_things={"while-carrying": "load", "CROSS": "river"})
    place = instructed()

    def marks(kind):
        return frames._things_of(place, KIND[kind], [0, 1])

    assert marks("hands-free")["forbids"] == ["load"]
    assert marks("south-only")["forbids"] == ["river"]  # unless: the macro's thing
    assert marks("go-south")["wants"] == ["river"]


def test_choices_of_a_program_that_does_not_judge_work_are_open():
    place, state = told("south-only", NORTH)
    open_to = choices_of(replace(place, judges_work=False), state.state, state.instruction)
    assert open_to.available.all() and not open_to.forbidden.any()
