"""The Robotic Warehouse (`pip install rware`) as a world: 2 to 8 robots bring requested shelves to the goals.

Three aisles, numbered from west to east. Robots fetch a requested shelf from an aisle, deliver it, return it, or wait.
"""

from functools import partial

import numpy as np
from rware.warehouse import ObservationType, RewardType, Warehouse

from mavic.envs.api import register
from mavic.simulators.controllers import Action, GoTo, Grid, Sequence, Timeout, Wait
from mavic.simulators.worlds import python_world
from mavic.types import Scene, Sprite

NOOP, FORWARD, LEFT, RIGHT, TOGGLE_LOAD = range(5)
HEADINGS, AISLES = {"UP": 0, "RIGHT": 1, "DOWN": 2, "LEFT": 3}, (1, 2, 3)
PATIENCE = 40  # ticks, after which a robot that others block gives up


def warehouse(robots: int = 2) -> Warehouse:
    """The simulator. Its own time limit is off: it would count as an end of the task."""
    limits = dict(max_inactivity_steps=None, max_steps=None)
    size = dict(shelf_columns=3, column_height=5, shelf_rows=1)
    seen = dict(msg_bits=0, sensor_range=1, observation_type=ObservationType.FLATTENED)
    jobs = dict(request_queue_size=2 * robots, reward_type=RewardType.GLOBAL)
    return Warehouse(n_agents=robots, **size, **seen, **jobs, **limits)


def names(robots: int = 2) -> list[str]:
    return [f"robot_{number}" for number in range(1, robots + 1)]


def load(world, robot):
    return world.agents[robot].carrying_shelf


def position(world, robot):
    return int(world.agents[robot].y), int(world.agents[robot].x)


def free(world, robot):
    """Where a robot may go: with a load, only where no shelf stands."""
    return world.grid[1] == 0 if load(world, robot) else np.ones(world.grid_size, bool)


def others(world, robot):
    return [position(world, other) for other in range(world.n_agents) if other != robot]


def heading(world, robot):
    return HEADINGS[world.agents[robot].dir.name]


def nearest(world, robot, cells):
    row, column = position(world, robot)
    return min(cells, key=lambda cell: abs(cell[0] - row) + abs(cell[1] - column), default=None)


def waiting(world, aisle):
    """Where requested shelves stand in an aisle."""
    shelves = [shelf for shelf in world.request_queue if shelf.x // 3 + 1 == aisle]
    carried = [agent.carrying_shelf for agent in world.agents] if shelves else []
    return [(int(shelf.y), int(shelf.x)) for shelf in shelves if shelf not in carried]


def wanted(world, robot, aisle):
    return None if load(world, robot) else nearest(world, robot, waiting(world, aisle))


def goal(world, robot):
    if load(world, robot) in world.request_queue:
        return nearest(world, robot, [(y, x) for x, y in world.goals])


def empty_place(world, robot):
    if load(world, robot) and load(world, robot) not in world.request_queue:
        places = np.argwhere((world.highways == 0) & (world.grid[1] == 0))
        return nearest(world, robot, [(int(row), int(column)) for row, column in places])


GRID = Grid(
    position=position, free=free, others=others, heading=heading,
    stay=NOOP, forward=FORWARD, left=LEFT, right=RIGHT,
)  # fmt: skip


def go(target, *then):
    return Timeout(Sequence(GoTo(GRID, target), *then), PATIENCE)


MACROS = {f"FETCH_{a}": go(partial(wanted, aisle=a), Action(TOGGLE_LOAD)) for a in AISLES} | {
    "DELIVER": go(goal),
    "RETURN": go(empty_place, Action(TOGGLE_LOAD)),
    "WAIT": Wait(NOOP, 3),
}


def observe(world, robot):
    """Place, load, how many requested shelves stand in each aisle, and where the others are."""
    (row, column), (height, width) = position(world, robot), world.grid_size
    carried = load(world, robot)
    seen = [row / height, column / width, carried is not None, carried in world.request_queue]
    seen += [len(waiting(world, aisle)) / len(world.request_queue) for aisle in AISLES]
    for y, x in others(world, robot):
        seen += [(y - row) / height, (x - column) / width]
    return seen


def delivered(world, info):
    return world._cur_inactive_steps == 0


def scene(world):
    things = [Sprite(shape="goal", x=x, y=y, colour="green", name="goal") for x, y in world.goals]
    for shelf in world.shelfs:
        colour = "orange" if shelf in world.request_queue else "sand"
        place = dict(x=int(shelf.x), y=int(shelf.y), name=f"aisle {shelf.x // 3 + 1}")
        things.append(Sprite(shape="box", colour=colour, **place))
    for i in range(world.n_agents):
        y, x = position(world, i)
        look = dict(heading="NESW"[heading(world, i)], holds="shelf" if load(world, i) else "")
        label = dict(label=str(i + 1), name=f"robot {i + 1}")
        things.append(Sprite(shape="robot", x=x, y=y, colour="blue", **look, **label))
    height, width = world.grid_size
    return Scene(width=width, height=height, sprites=tuple(things))


RWARE = python_world(
    "rware", warehouse, horizon=150, agents=names, macros=MACROS, observe=observe, scene=scene,
    events={"delivered": delivered},
)  # fmt: skip
register("rware", RWARE, "rware_team.toml", title="Robotic Warehouse", episodes=16_000)
