"""A team in a behaviour tree: leaves start, report, cancel and give way."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from mavic.runtime.team import EventError, open_team

py_trees = pytest.importorskip("py_trees")
bridge = importlib.import_module("mavic.bridges.behaviour_tree")
TeamLeaf, boxes_of, deliver = bridge.TeamLeaf, bridge.boxes_of, bridge.deliver

TEAM = Path(__file__).parents[1] / "runtime" / "data" / "overcooked"


class Robot:
    """A robot whose macros take three ticks of the tree; the second one fails."""

    def __init__(self):
        self.started, self.cancelled, self.left = [], 0, 0

    def see(self):
        return np.zeros(63), None

    def start(self, macro, number):
        self.started.append(macro)
        self.left = 3

    def cancel(self):
        self.cancelled += 1
        self.left = 0

    def state(self):
        self.left -= 1
        if self.left > 0:
            return "running"
        return "failed" if len(self.started) == 2 else "ended"


@pytest.fixture
def kitchen():
    team = open_team(TEAM)
    boxes, robots = boxes_of(team), [Robot(), Robot()]
    leaves = [
        TeamLeaf(name, team, name, robot, boxes)
        for name, robot in zip(team.agents, robots, strict=True)
    ]
    alarm = py_trees.behaviours.StatusQueue("alarm", [py_trees.common.Status.FAILURE] * 9, None)
    work = py_trees.composites.Parallel(
        "work", py_trees.common.ParallelPolicy.SuccessOnAll(), children=leaves
    )
    root = py_trees.composites.Selector("root", memory=False, children=[alarm, work])
    return team, boxes, robots, leaves, py_trees.trees.BehaviourTree(root), alarm


def test_leaves_work_and_report(kitchen):
    _, _, robots, leaves, tree, _ = kitchen
    for _ in range(8):
        tree.tick()
    assert all(leaf.status == py_trees.common.Status.RUNNING for leaf in leaves)
    assert [len(robot.started) for robot in robots] == [3, 3]  # of three ticks each
    assert robots[0].started[2] != robots[0].started[1]  # the second failed and was not offered


def test_words_reach_all_leaves(kitchen):
    team, boxes, robots, _, tree, _ = kitchen
    tree.tick()
    deliver(boxes, team.say(kind="stay").commands)
    tree.tick()
    assert [robot.cancelled for robot in robots] == [1, 1]
    tree.tick()
    assert [robot.started[-1] for robot in robots] == ["STAY", "STAY"]


def test_another_branch_takes_over_and_gives_back(kitchen):
    team, _, robots, _, tree, alarm = kitchen
    tree.tick()
    alarm.queue = [py_trees.common.Status.SUCCESS]
    alarm.current_queue = [py_trees.common.Status.SUCCESS]
    tree.tick()
    assert [robot.cancelled for robot in robots] == [1, 1]
    assert [team.status(name) for name in team.agents] == ["idle", "idle"]
    alarm.current_queue = [py_trees.common.Status.FAILURE] * 3
    tree.tick()
    assert [len(robot.started) for robot in robots] == [2, 2]


def test_the_job_is_done_when_it_is_said_to_be(kitchen):
    team, boxes, _, _, _, _ = kitchen
    robot, over = Robot(), [False]
    leaf = TeamLeaf("one", team, "cook_0", robot, boxes, done=lambda: over[0])
    leaf.tick_once()
    over[0] = True
    leaf.tick_once()
    assert leaf.status == py_trees.common.Status.SUCCESS and robot.cancelled == 1
    with pytest.raises(EventError, match="agent 'cook_7' is unknown"):
        TeamLeaf("two", team, "cook_7", robot, boxes)
