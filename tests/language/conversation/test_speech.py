"""What a typed line is made of: addressed agents, one instruction after another, an end."""

from __future__ import annotations

from pathlib import Path

import pytest

from mavic.envs import api
from mavic.instruct.spec import InstructionFile
from mavic.language.conversation.cast import Cast
from mavic.language.conversation.speech import (
    Clause,
    addressed,
    ends,
    lasting,
    named_alone,
    steps,
    without_courtesy,
)

FILE = InstructionFile.read(Path(str(api.world("box_pushing").instructions)))


def cast(*agents, others=()):
    return Cast.of(FILE, agents, also_called=others)


ROBOTS = cast("robot 0", "robot 1")
COOKS = cast("blue cook", "orange cook", others=[("cook 1",), ("cook 2",)])
FLEET = cast("turtlebot 0", "turtlebot 1", "fetch", others=[(), (), ("purple robot", "arm")])


@pytest.mark.parametrize(
    "line, who, parts",
    [
        ("robot 1, go left", ROBOTS, [("go left", (1,))]),
        ("robot one: go left", ROBOTS, [("go left", (1,))]),
        ("go left, robot 1", ROBOTS, [("go left", (1,))]),
        ("hey cook1 chop", COOKS, [("chop", (0,))]),
        ("cook 1 and cook 2, stay", COOKS, [("stay", (0, 1))]),
        ("fetch, look for tool 1", FLEET, [("look for tool 1", (2,))]),
        ("the arm should wait", FLEET, [("wait", (2,))]),
        ("the orange one chops", COOKS, [("chop", (1,))]),
        ("tell the blue cook to carry it", COOKS, [("carry it", (0,))]),
        ("orange must not push", COOKS, [("don't push", (1,))]),
        ("orange can push again", COOKS, [("you can push again", (1,))]),
        ("the second cook should wait", COOKS, [("wait", (1,))]),
        ("cook 1 chop, cook 2 deliver", COOKS, [("chop", (0,)), ("deliver", (1,))]),
        ("blue chops while orange waits", COOKS, [("chop", (0,)), ("wait", (1,))]),
        ("i don't want orange to chop", COOKS, [("don't chop", (1,))]),
        (
            "somebody else cuts, don't do it cook 1",
            COOKS,
            [("somebody else cuts, don't do it", (0,))],
        ),
        ("the blue one is free to go", COOKS, [("you can go", (0,))]),
        # names that do not address
        ("fetch tool 0 first", FLEET, [("fetch tool 0 first", None)]),
        ("don't give it to robot 1", ROBOTS, [("don't give it to robot 1", None)]),
        ("use plate 1, plate 2 is dirty", COOKS, [("use plate 1, plate 2 is dirty", None)]),
        ("orange is too slow", COOKS, [("orange is too slow", None)]),
        ("blue got the tomato", COOKS, [("blue got the tomato", None)]),
        ("not the left one, the right one", COOKS, [("not the left one, the right one", None)]),
        ("", ROBOTS, [("", None)]),
        ("?!", ROBOTS, [("?!", None)]),
    ],
)
def test_a_name_addresses_where_one_addresses(line, who, parts):
    said = addressed(line, who)
    assert said.parts == tuple(Clause(*part) for part in parts) and not said.stranger


def test_places_and_the_other_one_are_found_in_the_scene():
    stand = COOKS.at([(4, 1), (0, 3)])
    assert addressed("the cook on the left, stay", stand).parts == (Clause("stay", (1,)),)
    assert addressed("the right cook should stay", stand).parts == (Clause("stay", (0,)),)
    assert addressed("the other one should stay", stand, (0,)).parts == (Clause("stay", (1,)),)
    beside = COOKS.at([(2, 1), (2, 3)])  # none stands on the left
    assert addressed("the cook on the left, stay", beside).stranger == "cook on the left"


@pytest.mark.parametrize(
    "line",
    [
        "stay and then push",
        "stay, then push",
        "first stay, then push",
        "stay then push",
        "stay. after that push",
        "stay, when you're done push",
        "first stay, then push, then the others",
    ],
)
def test_one_after_another(line):
    assert steps(line) == ["stay", "push"]


def test_what_comes_first_may_be_said_last():
    assert steps("after chopping it, deliver") == ["chopping it", "deliver"]


@pytest.mark.parametrize(
    "line, request_, ticks",
    [
        ("wait for 5 ticks", "wait", 5),
        ("wait ten seconds", "wait", 10),
        ("no pushing for the next 3 moves, please", "no pushing, please", 3),
        ("take one step to the left", "take one step to the left", None),
        ("no one move", "no one move", None),
        ("wait for 0 ticks", "wait for 0 ticks", None),
    ],
)
def test_a_time_is_told_apart_from_the_request(line, request_, ticks):
    assert lasting(line) == (request_, ticks)


def test_a_correction_may_name_only_another_agent():
    stand = COOKS.at([(4, 1), (0, 3)])
    assert named_alone("not orange, blue", stand) == (0,)
    assert named_alone("orange should do that", stand) == (1,)
    assert named_alone("the right one", stand) == ()  # it may be a thing
    assert named_alone("orange chops", stand) == ()


def test_an_unknown_name_is_told():
    assert addressed("cook 7, stay", COOKS).stranger == "cook 7"


@pytest.mark.parametrize(
    "line",
    [
        "never mind",
        "Nevermind!",
        "carry on",
        "back to work",
        "ok, carry on please",
        "forget it, thanks",
        "cary on",
    ],
)
def test_words_that_end(line):
    assert ends(line)


@pytest.mark.parametrize(
    "line", ["don't carry on", "never mind the box, push", "stop", "work faster", "", "push on"]
)
def test_words_that_do_not_end(line):
    assert not ends(line)


@pytest.mark.parametrize(
    "line, bare",
    [
        ("would you be so kind to push, please", "push"),
        ("i'd like you to stay for a moment", "stay"),
        ("i'd like to do the chopping", "i'd like to do the chopping"),  # the person does it
        ("both cooks, chop right now", "chop"),
        ("please", "please"),
    ],
)
def test_courtesy_is_left_out(line, bare):
    assert without_courtesy(line) == bare
