"""A behaviour tree's leaf that runs one agent of a team (py_trees). It needs no JAX.

    boxes = boxes_of(team)
    tree = py_trees.composites.Parallel("cooks", policy=…, children=[
        TeamLeaf("cook 0", team, "cook_0", robot_0, boxes), …
    ])

The tree's other branches stay in command: a leaf that is interrupted cancels its robot's macro, and goes on with a new
decision when it is ticked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import py_trees

from mavic.runtime.team import Cancel, Command, RobotTeam, Start

Boxes = dict[str, list[Command]]
"""The commands that wait for each agent. All leaves of a team share them."""


class Robot(Protocol):
    """What a leaf needs of a robot. No method may block."""

    def see(self) -> tuple[Any, ...]:
        """Return the observation, which macros can be started (None: all), and, if the team has kinds by predicate, of
        which macros each predicate holds: the arguments of `RobotTeam.observed`."""

    def start(self, macro: str, number: int) -> None:
        """Start a macro."""

    def cancel(self) -> None:
        """Stop what runs. `state` says "ended" when it has stopped."""

    def state(self) -> str:
        """Return "running", "ended" or "failed", of the macro that was started last."""


def boxes_of(team: RobotTeam) -> Boxes:
    """Return empty boxes for a team's agents."""
    return {name: [] for name in team.agents}


def deliver(boxes: Boxes, commands: Iterable[Command]) -> None:
    """Put commands into the boxes of the agents that they are for, such as those that `team.say` returned.

    Args:
        boxes: the boxes.
        commands: the commands.
    """
    for command in commands:
        boxes[command.agent].append(command)


class TeamLeaf(py_trees.behaviour.Behaviour):
    """Runs one agent: RUNNING while the team works, SUCCESS as soon as `done` says so."""

    def __init__(
        self,
        name: str,
        team: RobotTeam,
        agent: str,
        robot: Robot,
        boxes: Boxes,
        done: Callable[[], bool] = lambda: False,
    ) -> None:
        """Make the leaf of an agent.

        Args:
            name: of the leaf.
            team: the team, which all leaves share.
            agent: the agent's name.
            robot: the robot that it drives.
            boxes: from `boxes_of`, shared by all leaves.
            done: whether the job is done.
        """
        super().__init__(name)
        self.team, self.agent, self.robot, self.boxes, self.done = team, agent, robot, boxes, done
        team.status(agent)  # an unknown agent is an error here and not in the first tick

    def update(self) -> py_trees.common.Status:
        """Report what the robot does, obey the team's commands, and return the status."""
        self._obey()
        team, agent, robot = self.team, self.agent, self.robot
        busy = team.status(agent) in ("running", "cancelling")
        state = robot.state() if busy else "idle"
        if state == "ended":
            found = team.ended(agent, *robot.see())
        elif state == "failed":
            found = team.failed(agent, "", *robot.see())
        else:  # idle: it decides; running: a sign of life
            found = team.observed(agent, *robot.see())
        deliver(self.boxes, found)
        self._obey()
        self.feedback_message = team.status(agent)
        status = py_trees.common.Status
        return status.SUCCESS if self.done() else status.RUNNING

    def terminate(self, new_status: py_trees.common.Status) -> None:
        """Cancel the robot's macro if another branch of the tree takes over, or if the job is done."""
        del new_status
        self._obey()
        if self.team.status(self.agent) in ("running", "cancelling"):
            self.robot.cancel()
            deliver(self.boxes, self.team.ended(self.agent))

    def _obey(self) -> None:
        box = self.boxes[self.agent]
        while box:
            command = box.pop(0)
            if isinstance(command, Start):
                self.robot.start(command.macro, command.number)
            elif isinstance(command, Cancel):
                self.robot.cancel()
