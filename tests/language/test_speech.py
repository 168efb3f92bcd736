"""What a typed line is made of: addressed agents, one instruction after another, an end."""

from __future__ import annotations

import pytest

from mavic.language.conversation.speech import Clause, ends, parse

ROBOTS = ("robot 0", "robot 1")
COOKS = ("cook 1", "cook 2")
FLEET = ("turtlebot 0", "turtlebot 1", "fetch")


@pytest.mark.parametrize(
    "line, names, parts",
    [
        ("robot 1, go left", ROBOTS, [("go left", (1,))]),
        ("Robot one: go left", ROBOTS, [("go left", (1,))]),
        ("go left, robot 1", ROBOTS, [("go left", (1,))]),
        ("hey cook1 chop", COOKS, [("chop", (0,))]),
        ("cook 1 and cook 2, stay", COOKS, [("stay", (0, 1))]),
        ("fetch, look for tool 1", FLEET, [("look for tool 1", (2,))]),
        # names that do not address
        ("fetch tool 0 first", FLEET, [("fetch tool 0 first", None)]),
        ("don't give it to robot 1", ROBOTS, [("don't give it to robot 1", None)]),
        ("use plate 1, plate 2 is dirty", COOKS, [("use plate 1, plate 2 is dirty", None)]),
        ("push, then", ROBOTS, [("push, then", None)]),
        ("", ROBOTS, [("", None)]),
        ("?!", ROBOTS, [("?!", None)]),
    ],
)
def test_a_name_addresses_where_one_addresses(line, names, parts):
    said = parse(line, names)
    assert said.parts == tuple(Clause(*part) for part in parts)
    assert not said.together and not said.ends and not said.stranger


def test_one_after_another():
    for line in (
        "stay and then push",
        "stay, then push",
        "first stay, then push",
        "stay then push",
    ):
        said = parse(line, ROBOTS)
        assert [part.text for part in said.parts] == ["stay", "push"] and not said.together
    said = parse("cook 1: chop and then cook 2, deliver", COOKS)
    assert said.parts == (Clause("chop", (0,)), Clause("deliver", (1,))) and not said.together


def test_two_at_the_same_time():
    for line in ("cook 1 chop, cook 2 deliver", "cook 1 chop while cook 2 deliver"):
        said = parse(line, COOKS)
        assert said.parts == (Clause("chop", (0,)), Clause("deliver", (1,))) and said.together


def test_an_unknown_name_is_told():
    assert parse("cook 7, stay", COOKS).stranger == "cook 7"


@pytest.mark.parametrize(
    "line",
    [
        "never mind",
        "Nevermind!",
        "carry on",
        "back to work",
        "ok, carry on please",
        "forget it, thanks",
    ],
)
def test_words_that_end(line):
    assert ends(line) and parse(line, ROBOTS).ends and parse(f"robot 1, {line}", ROBOTS).ends


@pytest.mark.parametrize(
    "line", ["don't carry on", "never mind the box, push", "stop", "work faster", ""]
)
def test_words_that_do_not_end(line):
    assert not ends(line)
