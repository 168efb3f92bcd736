"""Box Pushing: two robots, two small boxes, and a big one that moves only if both push it.

Everything is whole cells: x to the right, y up, the goal row is `size - 1`. Boxes move north alone,
so of a box only its row is state. A tick is elementwise integer arithmetic on scalars, without
tables or branches: thousands of lanes become one vectorised loop.

Two rule sets. `reference` is the public environment to the bit: a remembered waypoint, not where a
robot stands, decides whether the shared push starts; once started nothing stops it; a Go-To may
walk outside the grid. `paper` (appendix, Box Pushing) asks both robots to stand below the halves of
the big box, lets an interruption stop the push, and keeps everybody inside.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

import jax
import jax.numpy as jnp

from mavic.envs.box_pushing.macros import Macro
from mavic.envs.box_pushing.render import picture
from mavic.types import Array, Scene, Tick, record, replace, static

RULES = ("paper", "reference")
CELL = jnp.int16  # positions; the reference lets a robot push on for ever outside the grid
NORTH, EAST, SOUTH, WEST = range(4)
NOWHERE = -1  # no Go-To has ended yet


@record
class Robot:
    """One robot: its cell, its heading (0 N, 1 E, 2 S, 3 W), the last waypoint it was sent to."""

    x: Array
    y: Array
    heading: Array
    waypoint: Array  # the Go-To that last ended, or NOWHERE; only `reference` keeps it


@record
class State:
    """The whole world; every leaf is a scalar."""

    robots: tuple[Robot, Robot]
    small: tuple[Array, Array]  # rows of the small boxes
    big: Array  # row of the big box
    pushing: Array  # the shared push is under way


@record
class BoxPushing:
    """The world; `size` 4, 6, 8, 10 … Rewards are leaves, so a grid of them is one `vmap`."""

    size: int = static(default=6)
    rules: str = static(default="paper")
    big: Array | float = 300.0
    small: Array | float = 10.0
    penalty: Array | float = -5.0
    step: Array | float = -0.1

    def __post_init__(self) -> None:
        """Refuse what cannot be laid out."""
        if not isinstance(self.size, int) or self.size < 4 or self.size % 2:
            raise ValueError(
                f"box_pushing: size {self.size!r} is impossible; it must be even and 4 or more"
            )
        if self.rules not in RULES:
            raise ValueError(
                f"box_pushing: rules {self.rules!r} are unknown; allowed: {', '.join(RULES)}"
            )

    name: ClassVar[str] = "box_pushing"
    agents: ClassVar[tuple[str, ...]] = ("robot_0", "robot_1")
    macros: ClassVar[tuple[type[IntEnum], ...]] = (Macro, Macro)
    horizon: ClassVar[int] = 100
    horizon_ends: ClassVar[bool] = False
    events: ClassVar[tuple[str, ...]] = ("solved", "small-box-home", "penalty", "shared-push")
    conditions: ClassVar[tuple[str, ...]] = ()
    effects: ClassVar[tuple[str, ...]] = ()

    @property
    def goal(self) -> int:
        """The row where boxes are home."""
        return self.size - 1

    @property
    def box_row(self) -> int:
        """The row where all boxes start; the waypoints lie one below."""
        return self.size // 2

    @property
    def columns(self) -> tuple[int, int, int, int]:
        """Columns of small box 0 and 1 and of the big box's halves: also of the four waypoints."""
        side = 1 if self.size >= 8 else 0
        return side, self.size - 1 - side, self.size // 2 - 1, self.size // 2

    def reset(self, key: Array) -> State:
        """The only first state: nothing is random, and every robot faces an empty cell."""
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
        """One primitive step; robot 1 acts after robot 0, on the boxes as that one left them."""
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
        # The order of the sum is the reference's, so that doubles agree with it to the last bit.
        reward = self.step + paid[0] + paid[1] + (prizes[0] + prizes[1] + prizes[2])
        counts = (home[2], home[0] + 1 * home[1], refused[0] + 1 * refused[1], pushing)
        return Tick(
            state=State(robots=(robots[0], robots[1]), small=small, big=big, pushing=pushing),
            reward=jnp.stack([reward, reward]),
            ended=jnp.stack([jnp.where(pushing, home[2], done) for done in ended]),
            terminal=home[0] | home[1] | home[2],
            events=jnp.stack([count.astype(jnp.float32) for count in counts]),
            judged=jnp.where(pushing, Macro.PUSH, macro),
        )

    def check(self, state: State) -> Array:
        """No conditions: every instruction can be followed in every state."""
        del state
        return jnp.zeros(0, bool)

    def observe(self, state: State) -> Array:
        """Small box, big box, empty, wall, teammate: five bits about the cell in front."""
        one, two = state.robots
        seen = jnp.stack([self._look(one, two, state), self._look(two, one, state)])
        return ((seen[:, None] >> jnp.arange(5, dtype=CELL)) & 1).astype(jnp.float32)

    def available(self, state: State) -> Array:
        """Everything, always."""
        del state
        return jnp.ones((len(self.agents), len(Macro)), bool)

    def scene(self, state: State, macro: Array) -> Scene:
        """A picture of the state (on the host)."""
        return picture(self, state, macro)

    def _shared_push(
        self, state: State, chosen: tuple[Array, Array], fresh: tuple[Array, Array]
    ) -> Array:
        """Whether both robots and the big box move up together in this tick."""
        one, two = state.robots
        agreed = (chosen[0] == Macro.PUSH) & (chosen[1] == Macro.PUSH) & fresh[0] & fresh[1]
        ready = agreed & (one.heading == NORTH) & (two.heading == NORTH)
        if self.rules == "reference":
            spots = (Macro.GO_BIG_SPOT_0, Macro.GO_BIG_SPOT_1)
            return state.pushing | (ready & _share(one.waypoint, two.waypoint, *spots))
        _, _, left, right = self.columns
        below = (one.y == state.big - 1) & (two.y == state.big - 1)
        starts = ready & below & _share(one.x, two.x, left, right)
        return (state.pushing & ~(fresh[0] | fresh[1])) | starts

    def _act(
        self, robot: Robot, macro: Array, small: tuple[Array, Array], big: Array
    ) -> tuple[Robot, tuple[Array, Array], Array, Array]:
        """A robot on its own: itself and the small boxes after it, whether it ended, was fined."""
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
            if self.rules == "reference"
            else robot.waypoint
        )
        after = Robot(x=new_x, y=new_y, heading=facing.astype(CELL), waypoint=waypoint)
        return after, (raised[0].astype(CELL), raised[1].astype(CELL)), ended, refused

    def _steer(
        self, robot: Robot, target_x: Array, target_y: int, small: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        """A Go-To's next direction and what to do about it: 0 go, 1 turn there, 2 turn right once.

        The reference takes the neighbour with the least distance + turn cost, the first of equals,
        north first. One move changes the distance by one, so farther (16), turn (4) and order (1)
        make one number to compare.
        """
        x, y = robot.x, robot.y
        nearer = (y < target_y, x < target_x, y > target_y, x > target_x)
        best = CELL(127)
        for way, (cell_x, cell_y) in enumerate(((x, y + 1), (x + 1, y), (x, y - 1), (x - 1, y))):
            turns = (way - robot.heading) & 3
            cost = jnp.where(nearer[way], 0, 16) + 4 * jnp.where(turns == 3, 1, turns) + way
            best = jnp.minimum(
                best, jnp.where(self._shut(cell_x, cell_y, small), 64, cost).astype(CELL)
            )
        return best & 3, (best >> 2) & 3

    def _shut(self, x: Array, y: Array, small: tuple[Array, Array]) -> Array:
        """Whether a Go-To avoids the cell: all boxes are looked for in the row of small box 0."""
        first, last, left, right = self.columns
        boxed = (y == small[0]) & ((x == first) | (x == last) | (x == left) | (x == right))
        if self.rules == "reference":
            return boxed
        return boxed | (x < 0) | (x > self.goal) | (y < 0) | (y > self.goal)

    def _walled(self, x: Array, y: Array, heading: Array) -> Array:
        """Whether the cell is the last one inside the grid in that direction."""
        return (
            ((heading == NORTH) & (y == self.goal))
            | ((heading == EAST) & (x == self.goal))
            | ((heading == SOUTH) & (y == 0))
            | ((heading == WEST) & (x == 0))
        )

    def _look(self, robot: Robot, mate: Robot, state: State) -> Array:
        """What is ahead as one number: stacks of single bits cost as much as all the rest."""
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


def _share(one: Array, two: Array, left: int, right: int) -> Array:
    """Whether one is at `left` and the other at `right`, either way round."""
    return ((one == left) & (two == right)) | ((one == right) & (two == left))


def _ahead(robot: Robot) -> tuple[Array, Array]:
    """The cell in front."""
    east = (robot.heading == EAST).astype(CELL) - (robot.heading == WEST)
    north = (robot.heading == NORTH).astype(CELL) - (robot.heading == SOUTH)
    return robot.x + east, robot.y + north


def _choose(test: Array, yes: Robot, no: Robot) -> Robot:
    """Robot `yes` where the test holds, else `no`."""
    return jax.tree.map(lambda a, b: jnp.where(test, a, b), yes, no)
