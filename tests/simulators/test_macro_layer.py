"""The macro layer: Box Pushing's macros rebuilt from primitive actions, and the same words for Python and for JAX."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mavic.envs import api
from mavic.envs.api import effective_macros
from mavic.envs.box_pushing import BoxPushing, Macro
from mavic.envs.box_pushing.env import NORTH
from mavic.envs.box_pushing.state import CELL
from mavic.instruct.reward import allowed_macros, predicates_in, rules_of
from mavic.instruct.schedule import no_instruction
from mavic.instruct.spec import InstructionFile
from mavic.simulators import compiled, controllers, grids
from mavic.simulators.compiled import Controller, Step, macro_env
from mavic.simulators.controllers import Status
from mavic.simulators.worlds import python_world
from mavic.types import Array, record, replace, static


class Move(IntEnum):
    FORWARD = 0
    LEFT = 1
    RIGHT = 2
    STAY = 3
    FACE_NORTH = 4
    PUSH = 5  # begin to push
    PUSH_ON = 6


@record
class Boxes:
    """A state of Box Pushing, and whether a push of each robot is over."""

    world: object
    pushed: Array


@record
class PrimitiveBoxPushing:
    """Box Pushing with primitive actions. Pushes of both robots that begin together below the big box move it."""

    rules: BoxPushing = static(default=BoxPushing())
    name: ClassVar[str] = "box_pushing"
    agents: ClassVar[tuple[str, ...]] = BoxPushing.agents
    horizon: ClassVar[int] = 100
    events: ClassVar[tuple[str, ...]] = BoxPushing.events

    def reset(self, key):
        return Boxes(world=self.rules.reset(key), pushed=jnp.zeros(2, bool))

    def step(self, key, state, action):
        del key
        rules, world = self.rules, state.world
        one, two = world.robots
        _, _, left, right = rules.columns
        begin, on = (action == Move.PUSH).all(), (action == Move.PUSH_ON).all()
        below = (one.y == world.big - 1) & (two.y == world.big - 1)
        each = ((one.x == left) & (two.x == right)) | ((one.x == right) & (two.x == left))
        north = (one.heading == NORTH) & (two.heading == NORTH)
        pushing = (world.pushing & on) | (begin & north & below & each)
        small, robots, over, refused = world.small, [], [], []
        for i, robot in enumerate(world.robots):
            alone, raised, done, bad = self.move(robot, action[i], small, world.big)
            up = replace(robot, y=robot.y + CELL(1))
            robots.append(jax.tree.map(lambda a, b: jnp.where(pushing, a, b), up, alone))
            small = tuple(
                jnp.where(pushing, old, new) for old, new in zip(small, raised, strict=True)
            )
            over.append(done)
            refused.append(bad & ~pushing)
        big = world.big + pushing
        home = [row == rules.goal for row in (*small, big)]
        reward = rules.step + rules.penalty * (refused[0] + 1 * refused[1])
        reward += rules.small * (home[0] + 1 * home[1]) + rules.big * home[2]
        counts = (home[2], home[0] + 1 * home[1], refused[0] + 1 * refused[1], pushing)
        after = replace(world, robots=tuple(robots), small=small, big=big, pushing=pushing)
        return Step(
            state=Boxes(world=after, pushed=jnp.where(pushing, home[2], jnp.stack(over))),
            reward=jnp.stack([reward, reward]),
            terminal=home[0] | home[1] | home[2],
            events=jnp.stack([jnp.asarray(count, jnp.float32) for count in counts]),
        )

    def move(self, robot, action, small, big):
        """Move one robot: return it, the small boxes, whether its push is over, and whether it was refused."""
        rules = self.rules
        first, last, left, right = rules.columns
        x, y, heading = robot.x, robot.y, robot.heading
        east, north = (heading == 1) * 1 - (heading == 3), (heading == 0) * 1 - (heading == 2)
        ahead_x, ahead_y = (x + east).astype(CELL), (y + north).astype(CELL)
        push = (action == Move.PUSH) | (action == Move.PUSH_ON)
        boxes = [
            (ahead_x == c) & (ahead_y == row) for c, row in zip((first, last), small, strict=True)
        ]
        big_ahead = ((ahead_x == left) | (ahead_x == right)) & (ahead_y == big)
        side = (boxes[0] | boxes[1]) & (heading != NORTH)
        refused = push & (rules._walled(x, y, heading) | big_ahead | side)
        lifts = [push & ~refused & box for box in boxes]
        raised = tuple((row + lift).astype(CELL) for row, lift in zip(small, lifts, strict=True))
        goes = (action == Move.FORWARD) | (push & ~refused)
        turn = (action == Move.RIGHT) * 1 - (action == Move.LEFT)
        heading = jnp.where(action == Move.FACE_NORTH, NORTH, (heading + turn) & 3).astype(CELL)
        x, y = jnp.where(goes, ahead_x, x), jnp.where(goes, ahead_y, y)
        delivered = (lifts[0] & (raised[0] == rules.goal)) | (lifts[1] & (raised[1] == rules.goal))
        stopped = ~(lifts[0] | lifts[1]) & rules._walled(x, y, heading)
        after = replace(robot, x=x, y=y, heading=heading)
        return after, raised, push & (refused | delivered | stopped), refused

    def observe(self, state):
        return self.rules.observe(state.world)

    def scene(self, state, macro):
        return self.rules.scene(state.world, macro)


class Go(Controller):
    """Go to a waypoint by the reference's steering, and face north there."""

    def __init__(self, rules, place):
        self.rules, self.target = rules, (rules.columns[place], rules.box_row - 1)

    def act(self, state, agent, memory):
        robot, small = state.world.robots[agent], state.world.small
        way, turning = self.rules._steer(robot, *self.target, small)
        left = ((way - robot.heading) & 3) == 3
        turn = jnp.where((turning == 1) & left, Move.LEFT, Move.RIGHT)
        there = (robot.x == self.target[0]) & (robot.y == self.target[1])
        going = jnp.where(turning == 0, Move.FORWARD, turn)
        return jnp.where(there, Move.FACE_NORTH, going), memory

    def status(self, state, agent, memory):
        robot = state.world.robots[agent]
        there = (robot.x == self.target[0]) & (robot.y == self.target[1])
        return jnp.where(there & (robot.heading == NORTH), Status.ENDED, Status.RUNNING)


class Push(Controller):
    """Push until the push is over. The memory says whether it has begun."""

    def act(self, state, agent, memory):
        return jnp.where(memory[0] > 0, Move.PUSH_ON, Move.PUSH), memory.at[0].set(1)

    def status(self, state, agent, memory):
        return jnp.where(state.pushed[agent], Status.ENDED, Status.RUNNING)


def rebuilt():
    rules = BoxPushing()
    macros = {name: Go(rules, place) for place, name in enumerate(m.name for m in list(Macro)[:4])}
    macros |= {"PUSH": Push()}
    macros |= {"TURN_LEFT": compiled.Action(Move.LEFT), "TURN_RIGHT": compiled.Action(Move.RIGHT)}
    macros |= {"STAY": compiled.Action(Move.STAY)}
    return macro_env(PrimitiveBoxPushing(), macros)


@pytest.mark.long
def test_box_pushing_rebuilt_from_primitive_actions_is_the_same_world():
    """Random macros with interruptions: positions, boxes, rewards, ends and events agree in every tick.

    In the world itself robot 1 steers after robot 0 has moved the boxes; controllers see the state before the tick. So
    an episode ends here in a tick in which robot 0 moves a box while robot 1 walks.
    """
    old, new = BoxPushing(), rebuilt()

    def step(carry, key):
        state, again, macro, idle = carry
        keys = jax.random.split(key, 3)
        fresh = idle | jax.random.bernoulli(keys[0], 0.1, (2,))
        likely = jnp.array([1.0, 1, 2, 2, 4, 1, 1, 1])
        drawn = jax.random.categorical(keys[1], jnp.log(likely), shape=(2,))
        macro = jnp.where(fresh, drawn, macro).astype(jnp.int32)
        inputs = (macro, fresh, jnp.zeros(2, jnp.int32))
        one = old.tick(key, state, *inputs)
        two = new.tick(key, again, *inputs)
        lifted = one.state.small[0] != state.small[0]
        apart = lifted & (macro[1] < Macro.PUSH)
        pairs = (
            (one.state, two.state.world.world),
            (one.reward, two.reward),
            (one.ended, two.ended),
            (one.terminal, two.terminal),
            (one.events, two.events[:-1]),
            (old.observe(one.state), new.observe(two.state)),
        )
        agree = [
            jnp.allclose(a, b)
            for a, b in zip(*map(jax.tree.leaves, zip(*pairs, strict=True)), strict=True)
        ]
        over = one.terminal | apart | jax.random.bernoulli(keys[2], 0.01)
        fresh_state, fresh_again = old.reset(key), new.reset(key)
        select = lambda a, b: jax.tree.map(lambda x, y: jnp.where(over, x, y), a, b)  # noqa: E731
        carry = (
            select(fresh_state, one.state),
            select(fresh_again, two.state),
            macro,
            one.ended | over,
        )
        return carry, (jnp.stack(agree).all() | apart, one.state.pushing, one.events[1])

    start = old.reset(None), new.reset(None), jnp.zeros(2, jnp.int32), jnp.ones(2, bool)
    play = jax.jit(jax.vmap(lambda key: jax.lax.scan(step, start, jax.random.split(key, 400))[1]))
    agree, pushing, homes = play(jax.random.split(jax.random.key(0), 64))
    assert agree.all()
    assert pushing.sum() > 20 and homes.sum() > 20  # what matters happened


# The same words in Python and in JAX, on one small grid.

WALLS = np.array([list(".....#"), list(".###.."), list("......")]) == "."


class Floor(NamedTuple):
    places: tuple  # of both agents


@record
class JaxFloor:
    places: Array  # [2, 2]


MOVES = {"stay": 0, "moves": (1, 2, 3, 4)}
PYTHON_GRID = controllers.Grid(
    position=lambda world, i: world.places[i],
    free=lambda world, i: WALLS,
    others=lambda world, i: [world.places[1 - i]],
    **MOVES,
)


def _taken(state, i):
    place = state.places[1 - i]
    rows, columns = jnp.arange(3)[:, None], jnp.arange(6)[None]
    return (rows == place[0]) & (columns == place[1])


JAX_GRID = compiled.Grid(
    position=lambda state, i: state.places[i],
    free=lambda state, i: jnp.asarray(WALLS),
    taken=_taken,
    **MOVES,
)


def both(words, grid):
    """The same controllers of either module."""
    target = (2, 5) if words is controllers else jnp.array([2, 5])
    go = words.GoTo(grid, lambda world, i: target)
    return [
        go,
        words.Wait(0, 3),
        words.Timeout(go, 4),
        words.Sequence(words.Action(2), words.Wait(0, 2), words.Timeout(go, 3)),
    ]


def traced(controller, floor, make, ticks=14):
    """Agent 0's actions and status while agent 1 walks through the lower corridor."""
    found, memory = [], controller.begin(floor, 0)
    places = [tuple(int(x) for x in place) for place in floor.places]
    for tick in range(ticks):
        action, memory = controller.act(make(places), 0, memory)
        for agent, move in ((0, int(action)), (1, 4 if tick < 4 else 0)):
            down, right = ((0, 0), *grids.MOVES)[move]
            to = (places[agent][0] + down, places[agent][1] + right)
            inside = 0 <= to[0] < 3 and 0 <= to[1] < 6
            if inside and WALLS[to] and to not in places:
                places[agent] = to
        found.append((int(action), int(controller.status(make(places), 0, memory)), tuple(places)))
        if found[-1][1]:
            break
    return found


@pytest.mark.parametrize(
    "number", [0, 1, *(pytest.param(number, marks=pytest.mark.long) for number in (2, 3))]
)
@pytest.mark.parametrize(
    "start",
    [
        ((2, 0), (2, 4)),
        *(pytest.param(p, marks=pytest.mark.long) for p in (((0, 0), (2, 5)), ((2, 5), (0, 0)))),
    ],
)
def test_python_and_jax_controllers_do_the_same(number, start):
    python = traced(both(controllers, PYTHON_GRID)[number], Floor(start), lambda p: Floor(tuple(p)))
    jaxed = traced(
        both(compiled, JAX_GRID)[number],
        JaxFloor(places=jnp.array(start)),
        lambda p: JaxFloor(places=jnp.array(p)),
    )
    assert python == jaxed
    assert python[-1][1] != Status.RUNNING or number == 0


def test_paths_go_around_others_and_wait_where_there_is_no_way_around():
    free = np.array([list("..."), list("#.#"), list("...")]) == "."
    nobody, door = [], [(1, 1)]
    assert grids.distances(free, (2, 0))[0, 0] == 4
    assert grids.next_direction(free, nobody, (0, 1), (2, 1), None) == 2
    assert grids.next_direction(free, door, (0, 1), (2, 1), None) == grids.WAIT
    open_floor = np.ones((3, 3), bool)
    assert grids.next_direction(open_floor, door, (0, 1), (2, 1), None) in (1, 3)
    assert grids.next_direction(open_floor, nobody, (0, 0), (2, 2), 1) == 1  # no turn is needed
    wall = open_floor.copy()
    wall[1] = False
    assert grids.distances(wall, (2, 1))[0, 1] == grids.FAR


def test_counters_are_reached_and_faced_by_a_table():
    floor = np.array([list("#..#"), list("..#.")]) == "."
    way, there = grids.ways_beside(floor, [(1, 2)])
    assert way.tolist() == [[grids.WAIT, 1, 2, grids.WAIT], [1, 1, grids.WAIT, 3]]
    assert there.tolist() == [[False, False, True, False], [False, True, False, True]]


def test_a_place_that_no_path_leads_to_fails():
    cut = np.ones((3, 6), bool)
    cut[:, 3] = False
    grid = controllers.Grid(
        position=lambda world, i: world.places[i],
        free=lambda world, i: cut,
        others=lambda world, i: [],
        **MOVES,
    )
    go, floor = controllers.GoTo(grid, lambda world, i: (2, 5)), Floor(((0, 0), (0, 1)))
    action, memory = go.act(floor, 0, go.begin(floor, 0))
    assert action == MOVES["stay"] and go.status(floor, 0, memory) == Status.FAILED
    lost = grids.compiled_next_direction(
        jnp.asarray(cut),
        jnp.zeros((3, 6), bool),
        jnp.array([0, 0]),
        jnp.array([2, 5]),
        jnp.int32(-1),
    )
    assert lost == grids.LOST
    assert not controllers.GoTo(grid, lambda world, i: None).can_start(floor, 0)


def test_a_sequence_in_a_sequence_is_refused_where_memory_is_fixed():
    with pytest.raises(ValueError, match="name all parts in one"):
        compiled.Sequence(compiled.Sequence(compiled.Action(0)), compiled.Action(1))


@record
class Line:
    """Two agents on a line; an action is a step."""

    name: ClassVar[str] = "line"
    agents: ClassVar[tuple[str, ...]] = ("left", "right")
    horizon: ClassVar[int] = 9
    events: ClassVar[tuple[str, ...]] = ("solved",)

    def reset(self, key):
        del key
        return jnp.array([0, 10])

    def step(self, key, state, action):
        del key
        nothing = jnp.zeros(2), jnp.bool_(False), jnp.zeros(1)
        return Step(state=state + action, reward=nothing[0], terminal=nothing[1], events=nothing[2])


class Until(Controller):
    """Step on until a place is reached; past it is a failure."""

    def __init__(self, place):
        self.place = place

    def act(self, state, agent, memory):
        return jnp.int32(2), memory.at[0].add(1)

    def status(self, state, agent, memory):
        there = jnp.where(state[agent] == self.place, Status.ENDED, Status.RUNNING)
        return jnp.where(state[agent] > self.place, Status.FAILED, there)


def test_a_macro_keeps_its_memory_and_is_judged_where_it_came_to():
    env = macro_env(
        Line(), {"WAIT": compiled.Wait(0, ticks=2), "GO": Until(2), "BEYOND": Until(11)}
    )
    state, no = env.reset(jax.random.key(0)), jnp.zeros(2, jnp.int32)
    first = env.tick(jax.random.key(0), state, jnp.array([0, 2]), jnp.array([True, True]), no)
    assert first.ended.tolist() == [False, True] and first.events.tolist() == [
        0,
        1,
    ]  # 12 is past 11
    again = env.tick(
        jax.random.key(0), first.state, jnp.array([0, 0]), jnp.array([False, True]), no
    )
    assert again.ended.tolist() == [
        True,
        False,
    ]  # the left one's second tick, the right one's first
    assert again.state.memory[:, 0].tolist() == [0, 1]
    there = env.tick(
        jax.random.key(0), again.state, jnp.array([1, 0]), jnp.array([True, False]), no
    )
    assert there.ended.tolist() == [True, True] and there.state.world.tolist() == [2, 12]
    assert there.events.tolist() == [0, 0]


class PythonLine:
    """The same line as a simulator in plain Python."""

    agents = Line.agents

    def reset(self, seed):
        self.places = [0, 10]
        return self.places

    def step(self, actions):
        self.places = [place + action for place, action in zip(self.places, actions, strict=True)]
        return self.places, 0.0, False, False


def far_off(places, agent, macro):
    return places[agent] > 5


def goes(places, agent, macro):
    return macro != "WAIT"


def of_simulator(function):
    return lambda world, agent, macro: function(world.places, agent, macro)


FACTS = {"far-off": far_off, "goes": goes}
OF_SIMULATOR = {name: of_simulator(function) for name, function in FACTS.items()}
BY_FACTS = InstructionFile.parse(
    {
        "world": "line",
        "kinds": {
            "rest-there": {"rule": "add", "forbid": ["GO"], "when": "far-off", "train": ["rest"]},
            "stand": {"rule": "add", "forbid": ["*"], "when": "goes", "train": ["stand"]},
            "stay-here": {"rule": "add", "forbid": ["*"], "unless": "far-off", "train": ["stay"]},
        },
    },
    "line.toml",
)


def line_of(words, make):
    """A line whose right agent can also run, with the same macros in both sorts of world."""
    own = {"WAIT": words.Action(0), "GO": words.Action(1)}
    return make({"left": own, "right": own | {"RUN": words.Wait(2, 2)}})


LINES = [
    line_of(compiled, lambda macros: macro_env(Line(), macros, predicates=FACTS)),
    line_of(
        controllers,
        lambda macros: python_world(
            "line",
            PythonLine,
            horizon=9,
            actions=("STAY", "STEP", "LEAP"),
            macros=macros,
            predicates=OF_SIMULATOR,
            workers=0,
        )(),
    ),
]


@pytest.mark.parametrize("env", LINES, ids=["jax", "python"])
def test_a_kind_may_depend_on_what_holds_of_a_choice(env):
    assert api.predicates_of(env) == ("far-off", "goes")
    rules, state = rules_of(env, BY_FACTS), env.reset(jax.random.key(0))
    holds = predicates_in(env, state, rules)
    assert holds.dtype == bool and holds.shape == (2, 3, 2)
    allowed = {}
    for number, name in enumerate(rules.names):
        asked = replace(no_instruction(2), kind=jnp.full(2, number))
        allowed[name] = allowed_macros(asked, effective_macros(env, state), rules, holds).tolist()
    # Of WAIT, GO and RUN. The left agent cannot run.
    assert allowed["rest-there"] == [[True, True, True], [True, False, True]]
    assert [row[:2] for row in allowed["stand"]] == [[True, False]] * 2
    assert [row[:2] for row in allowed["stay-here"]] == [[False, False], [True, True]]
