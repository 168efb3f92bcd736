"""Box Pushing: two robots, two small boxes, and a big box that moves only if both robots push it.

Positions are whole cells: x grows to the right, y grows upwards, and the goal row is `size - 1`. Boxes move north
only, so the state holds only the row of each box. A tick is elementwise integer arithmetic on scalars, without
tables or branches, so thousands of environments become one vectorised loop.

There are two dynamics. `reference` replays the public environment bit for bit. There the shared push starts if the
robots' last waypoints were the two spots of the big box, even if the robots stand elsewhere now. An interruption does
not stop a shared push, and a Go-To may walk outside the grid. `paper` follows the paper's appendix. There both robots
must stand below the two halves of the big box, an interruption stops the push, and robots stay inside the grid.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

import jax
import jax.numpy as jnp

from mavic.envs.box_pushing.macros import Macro
from mavic.envs.box_pushing.render import picture
from mavic.envs.box_pushing.state import CELL, NOWHERE, Robot, State
from mavic.hints import suggest
from mavic.types import Array, ArrayLike, Scene, Tick, record, replace, static

DYNAMICS = ("paper", "reference")
LARGEST = 100  # cells; an episode has 100 ticks
NORTH, EAST, SOUTH, WEST = range(4)


@record
class BoxPushing:
    """The environment. `size` is 4, 6, 8, 10 … Rewards are leaves, so a grid of rewards is one `vmap`."""

    size: int = static(default=6)
    dynamics: str = static(default="paper")
    big: Array | float = 300.0  # the big box reaches the goal row
    small: Array | float = 10.0  # a small box reaches the goal row
    penalty: Array | float = -5.0  # a robot pushes against a wall or a box that does not move
    step: Array | float = -0.1  # every tick

    def __post_init__(self) -> None:
        """Refuse impossible sizes and unknown dynamics."""
        if not isinstance(self.size, int) or not 4 <= self.size <= LARGEST or self.size % 2:
            raise ValueError(
                f"box_pushing: size {self.size!r} is impossible; it must be even and 4 or more, at most {LARGEST}"
            )
        if self.dynamics not in DYNAMICS:
            raise ValueError(
                f"box_pushing: dynamics {self.dynamics!r}; {suggest(str(self.dynamics), DYNAMICS)}"
            )

    name: ClassVar[str] = "box_pushing"
    agents: ClassVar[tuple[str, ...]] = ("robot_0", "robot_1")
    macros: ClassVar[tuple[type[IntEnum], ...]] = (Macro, Macro)
    horizon: ClassVar[int] = 100
    horizon_ends: ClassVar[bool] = False
    events: ClassVar[tuple[str, ...]] = ("solved", "small-box-home", "penalty", "shared-push")
    preconditions: ClassVar[tuple[str, ...]] = ()
    effects: ClassVar[tuple[str, ...]] = ()

    @property
    def goal(self) -> int:
        """The goal row."""
        return self.size - 1

    @property
    def box_row(self) -> int:
        """The row where all boxes start. The waypoints lie one row below."""
        return self.size // 2

    @property
    def columns(self) -> tuple[int, int, int, int]:
        """The columns of small box 0, small box 1 and the two halves of the big box; also those of the waypoints."""
        side = 1 if self.size >= 8 else 0
        return side, self.size - 1 - side, self.size // 2 - 1, self.size // 2

    def reset(self, key: Array) -> State:
        """Return the only first state, without randomness. Each robot faces an empty cell."""
        del key
        first, last, _, _ = self.columns
        row = 1 if self.size >= 6 else 0
        return State(
            robots=(_robot(first, row, EAST), _robot(last, row, WEST)),
            small=(CELL(self.box_row), CELL(self.box_row)),
            big=CELL(self.box_row),
            pushing=jnp.bool_(False),
        )

    def tick(self, key: Array, state: State, macro: Array, fresh: Array, effect: Array) -> Tick:
        """Run one primitive step. Robot 1 acts after robot 0, on the boxes as robot 0 left them."""
        del key, effect
        chosen = (macro[0].astype(CELL), macro[1].astype(CELL))
        pushing = self._shared_push(state, chosen, (fresh[0], fresh[1]))
        small, robots, ended, refused = state.small, [], [], []
        for robot, wish in zip(state.robots, chosen, strict=True):
            alone, moved, done, bad = self._act(robot, wish, small, state.big)
            robots.append(_choose(pushing, replace(robot, y=robot.y + CELL(1)), alone))
            small = (
                jnp.where(pushing, small[0], moved[0]),
                jnp.where(pushing, small[1], moved[1]),
            )
            ended.append(done)
            refused.append(bad & ~pushing)
        big = state.big + pushing
        home = [row == self.goal for row in (*small, big)]
        paid = [jnp.where(bad, self.penalty, 0.0) for bad in refused]
        prizes = [
            jnp.where(h, p, 0.0)
            for h, p in zip(home, (self.small, self.small, self.big), strict=True)
        ]
        # The sum has the order of the reference, so that doubles agree to the last bit.
        reward = self.step + paid[0] + paid[1] + (prizes[0] + prizes[1] + prizes[2])
        counts = (home[2], home[0] + 1 * home[1], refused[0] + 1 * refused[1], pushing)
        return Tick(
            state=State(robots=(robots[0], robots[1]), small=small, big=big, pushing=pushing),
            reward=jnp.stack([reward, reward]),
            ended=jnp.stack([jnp.where(pushing, home[2], done) for done in ended]),
            terminal=home[0] | home[1] | home[2],
            events=jnp.stack([count.astype(jnp.float32) for count in counts]),
            effective_macro=jnp.where(pushing, Macro.PUSH, macro),
        )

    def check(self, state: State) -> Array:
        """Return an empty array: there are no preconditions."""
        del state
        return jnp.zeros(0, bool)

    def observe(self, state: State) -> Array:
        """Return [2, 5]: whether a small box, the big box, an empty cell, a wall or the teammate is in front."""
        one, two = state.robots
        seen = jnp.stack([self._look(one, two, state), self._look(two, one, state)])
        return ((seen[:, None] >> jnp.arange(5, dtype=CELL)[None]) & 1).astype(jnp.float32)

    def available(self, state: State) -> Array:
        """Return all true [2, M]: every macro is always available."""
        del state
        return jnp.ones((len(self.agents), len(Macro)), bool)

    def scene(self, state: State, macro: ArrayLike) -> Scene:
        """Return a picture of the state. This runs on the host."""
        return picture(state, macro, size=self.size, box_row=self.box_row, columns=self.columns)

    def _shared_push(
        self, state: State, chosen: tuple[Array, Array], fresh: tuple[Array, Array]
    ) -> Array:
        """Return whether both robots and the big box move up together in this tick."""
        one, two = state.robots
        agreed = (chosen[0] == Macro.PUSH) & (chosen[1] == Macro.PUSH) & fresh[0] & fresh[1]
        ready = agreed & (one.heading == NORTH) & (two.heading == NORTH)
        if self.dynamics == "reference":
            spots = (Macro.GO_BIG_SPOT_0, Macro.GO_BIG_SPOT_1)
            return state.pushing | (ready & _one_each(one.waypoint, two.waypoint, *spots))
        _, _, left, right = self.columns
        below = (one.y == state.big - 1) & (two.y == state.big - 1)
        starts = ready & below & _one_each(one.x, two.x, left, right)
        return (state.pushing & ~(fresh[0] | fresh[1])) | starts

    def _act(
        self, robot: Robot, macro: Array, small: tuple[Array, Array], big: Array
    ) -> tuple[Robot, tuple[Array, Array], Array, Array]:
        """Move one robot without the shared push.

        Return the robot, the rows of the small boxes, whether its macro ended, and whether its push was refused, which
        costs the penalty.
        """
        x, y, heading = robot.x, robot.y, robot.heading
        first, last, left, right = self.columns
        go, push = macro < Macro.PUSH, macro == Macro.PUSH
        target_x = jnp.where(macro < 2, jnp.where(macro == 0, first, last), left + (macro & 1))
        target_y = self.box_row - 1

        arrived = (x == target_x) & (y == target_y)
        way, turning = self._steer(robot, target_x, target_y, small)
        ahead_x, ahead_y = _ahead(robot)
        against = self._walled(x, y, heading)
        north = heading == NORTH
        boxes = tuple(
            (ahead_x == column) & (ahead_y == row)
            for column, row in zip((first, last), small, strict=True)
        )
        before_big = ((ahead_x == left) | (ahead_x == right)) & (ahead_y == big)
        refused = push & (against | before_big | ((boxes[0] | boxes[1]) & ~north))
        lifts = tuple(push & ~refused & box for box in boxes)
        raised = tuple(row + lift for row, lift in zip(small, lifts, strict=True))

        forward = (push & ~refused) | (go & ~arrived & (turning == 0))
        new_x = jnp.where(forward, ahead_x, x)
        new_y = jnp.where(forward, ahead_y, y)
        steered = jnp.where(turning == 0, heading, jnp.where(turning == 1, way, (heading + 1) & 3))
        turned = (heading + jnp.where(macro == Macro.TURN_RIGHT, 1, -1)) & 3
        spins = (macro == Macro.TURN_LEFT) | (macro == Macro.TURN_RIGHT)
        facing = jnp.where(
            go, jnp.where(arrived, NORTH, steered), jnp.where(spins, turned, heading)
        )

        reached = go & (new_x == target_x) & (new_y == target_y) & (facing == NORTH)
        delivered = (lifts[0] & (raised[0] == self.goal)) | (lifts[1] & (raised[1] == self.goal))
        stopped = ~(lifts[0] | lifts[1]) & self._walled(new_x, new_y, heading)
        ended = reached | (push & (refused | delivered | stopped)) | (macro > Macro.PUSH)
        waypoint = (
            jnp.where(reached, macro, robot.waypoint)
            if self.dynamics == "reference"
            else robot.waypoint
        )
        after = Robot(x=new_x, y=new_y, heading=facing.astype(CELL), waypoint=waypoint)
        return after, (raised[0].astype(CELL), raised[1].astype(CELL)), ended, refused

    def _steer(
        self, robot: Robot, target_x: Array, target_y: int, small: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        """Return a Go-To's next direction, and how to take it: 0 go ahead, 1 turn there, 2 turn right once.

        The reference takes the neighbour cell with the lowest sum of distance and turning cost; of equal ones it
        takes the first in the order north, east, south, west. One move changes the distance by one, so one number
        compares all three: 16 if the cell is farther, 4 for each quarter turn, 1 for each place in the order.
        """
        x, y = robot.x, robot.y
        nearer = (y < target_y, x < target_x, y > target_y, x > target_x)
        best = CELL(127)  # more than any cost below
        for way, (cell_x, cell_y) in enumerate(((x, y + 1), (x + 1, y), (x, y - 1), (x - 1, y))):
            turns = (way - robot.heading) & 3
            cost = jnp.where(nearer[way], 0, 16) + 4 * jnp.where(turns == 3, 1, turns) + way
            best = jnp.minimum(
                best, jnp.where(self._avoids(cell_x, cell_y, small), 64, cost).astype(CELL)
            )
        return best & 3, (best >> 2) & 3

    def _avoids(self, x: Array, y: Array, small: tuple[Array, Array]) -> Array:
        """Return whether a Go-To avoids the cell. As in the reference, all boxes count as in the row of small box 0."""
        first, last, left, right = self.columns
        boxed = (y == small[0]) & ((x == first) | (x == last) | (x == left) | (x == right))
        if self.dynamics == "reference":
            return boxed
        return boxed | (x < 0) | (x > self.goal) | (y < 0) | (y > self.goal)

    def _walled(self, x: Array, y: Array, heading: Array) -> Array:
        """Return whether the next cell in that direction lies outside the grid."""
        return (
            ((heading == NORTH) & (y == self.goal))
            | ((heading == EAST) & (x == self.goal))
            | ((heading == SOUTH) & (y == 0))
            | ((heading == WEST) & (x == 0))
        )

    def _look(self, robot: Robot, mate: Robot, state: State) -> Array:
        """Return what is ahead as the bits of one number. Stacking five single bits would double the cost of a tick."""
        first, last, left, right = self.columns
        x, y = _ahead(robot)
        small = ((x == first) & (y == state.small[0])) | ((x == last) & (y == state.small[1]))
        big = ((x == left) | (x == right)) & (y == state.big)
        wall = (x < 0) | (y < 0) | (x > self.goal) | (y > self.goal)
        met = (x == mate.x) & (y == mate.y)
        empty = ~(small | big | wall | met)
        bits = (small, big, empty, wall, met)
        return sum((bit.astype(CELL) << place for place, bit in enumerate(bits)), start=CELL(0))


def _robot(x: int, y: int, heading: int) -> Robot:
    return Robot(x=CELL(x), y=CELL(y), heading=CELL(heading), waypoint=CELL(NOWHERE))


def _one_each(one: Array, two: Array, left: int, right: int) -> Array:
    """Return whether one of the two values is `left` and the other is `right`."""
    return ((one == left) & (two == right)) | ((one == right) & (two == left))


def _ahead(robot: Robot) -> tuple[Array, Array]:
    """Return the cell in front of a robot."""
    east = (robot.heading == EAST).astype(CELL) - (robot.heading == WEST)
    north = (robot.heading == NORTH).astype(CELL) - (robot.heading == SOUTH)
    return robot.x + east, robot.y + north


def _choose(test: Array, yes: Robot, no: Robot) -> Robot:
    """Return robot `yes` where the test holds, else robot `no`."""
    return jax.tree.map(lambda a, b: jnp.where(test, a, b), yes, no)
