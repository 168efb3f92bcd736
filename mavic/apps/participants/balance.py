"""Who meets which world and which team when: Latin squares, and the steps of one person."""

from __future__ import annotations

from typing import Literal, NamedTuple

from mavic.apps.participants.plan import AFTER, Plan

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Step(NamedTuple):
    """A part of the study."""

    sort: Literal["task", "questions"]
    after: AFTER = "end"  # of questions: what they follow
    task: int = -1  # its number in the plan; -1 for questions at the end
    team: str = ""
    called: str = ""  # what the person is told that the team is called


def square(size: int) -> list[list[int]]:
    """Return the rows of Williams's Latin square.

    Each thing stands once in each place and follows every other equally often. An odd size needs twice as many rows.

    Args:
        size: how many things are ordered.
    """
    first = [0]
    for number in range(1, size):
        first.append((number + 1) // 2 if number % 2 else size - number // 2)
    rows = [[(one + shift) % size for one in first] for shift in range(size)]
    return rows if size % 2 == 0 or size == 1 else rows + sorted(row[::-1] for row in rows)


def orders(plan: Plan) -> int:
    """Return how many orders there are. The study is balanced if each is used equally often."""
    return len(square(len(plan.worlds))) * len(square(len(plan.teams)))


def steps(plan: Plan, row: int) -> tuple[Step, ...]:
    """Return the steps of a person.

    Worlds come in blocks. In each block, every team does all tasks of the world in the order of the plan; the order of
    the teams changes from block to block.

    Args:
        plan: the plan.
        row: which order; numbers beyond `orders` begin again.
    """
    of_worlds, of_teams = square(len(plan.worlds)), square(len(plan.teams))
    asked = {one.after for one in plan.question}
    found: list[Step] = []
    met = 0
    for place, world in enumerate(of_worlds[row % len(of_worlds)]):
        turn = (row // len(of_worlds) + place) % len(of_teams)
        for team in of_teams[turn]:
            name, called = plan.teams[team], f"Team {LETTERS[met % len(LETTERS)]}"
            met += 1
            for number, task in enumerate(plan.task):
                if task.world != plan.worlds[world]:
                    continue
                found.append(Step("task", "task", number, name, called))
                if "task" in asked:
                    found.append(Step("questions", "task", number, name, called))
            if "team" in asked:
                found.append(Step("questions", "team", found[-1].task, name, called))
    if "end" in asked:
        found.append(Step("questions"))
    return tuple(found)


def least_used(used: list[int], plan: Plan) -> int:
    """Return the order for the next kitchen: the first of those that were used least.

    Args:
        used: the orders of the kitchens so far, without those that people left.
        plan: the plan.
    """
    return min(range(orders(plan)), key=used.count)


def sentence(plan: Plan) -> str:
    """Return how often each order will be used, for the person who runs the study."""
    kitchens, there = plan.participants // plan.people, orders(plan)
    each, left = divmod(kitchens, there)
    unit = "kitchen" if plan.people > 1 else "participant"
    if not left:
        return f"{there} orders of worlds and teams, each for {each} {unit}{'s' * (each > 1)}: balanced"
    full = (each + 1) * there * plan.people
    return (
        f"{there} orders of worlds and teams; {kitchens} {unit}s cannot use each equally often. "
        f"participants = {full} would be balanced"
    )
