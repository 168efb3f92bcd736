"""A study in real browsers: every screen by mouse and keyboard, a reload in mid-task, two people in one kitchen."""

from __future__ import annotations

import asyncio
import re

import pytest
from studies_with_people import StudyServer, write_plan
from test_playground import catalog, folder  # noqa: F401
from test_replay_browser import browser  # noqa: F401
from test_talk_browser import MICROPHONE

from mavic.apps.participants import plan

pytestmark = pytest.mark.browser
TWO = (
    ("participants = 4", "participants = 4\npeople = 2"),
    ("seed = 3", 'seats = ["robot 0", "robot 1"]'),
)
BEST = 'name = "best"\ntext = "Which?"\nchoices = ["A", "B"]\n\n[[question]]\n'
EVIL = "<img src=x onerror=alert(1)> don't push"


@pytest.fixture
def study(tmp_path, catalog):  # noqa: F811
    servers = []

    def start(*changes):
        read = plan.read(write_plan(tmp_path, *changes), catalog)
        for name in read.teams:
            catalog.warm("box_pushing", name)
        servers.append(StudyServer(read, catalog, tmp_path / "records"))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def open_page(browser):  # noqa: F811
    """Open a person's link in a browser of its own; complaints of the page are failures at the end of the test."""
    contexts, troubles = [], []

    def opened(server, number=0, width=1280, height=900, scheme="light", init=""):
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.add_init_script(init)
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append("dialog " + dialog.message))
        page.goto(f"http://127.0.0.1:{server.port}/s/{server.tokens[number]}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def agree(page) -> None:
    page.locator("#agree").check()
    page.get_by_role("button", name="Begin").click()


def press(page, name: str) -> None:
    page.get_by_role("button", name=name).click()


def say(page, words: str) -> None:
    page.locator("#text").fill(words)
    page.keyboard.press("Enter")


def fits(page) -> None:
    """Nothing is wider than the window."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(("width", "height", "scheme"), [(390, 844, "dark"), (1280, 800, "light")])
def test_a_person_walks_through_a_study(study, open_page, width, height, scheme):
    server = study(('name = "remarks"', BEST + 'name = "remarks"'))
    page = open_page(server, 0, width, height, scheme)
    page.locator(".text", has_text="You may leave.").wait_for()
    assert page.get_by_role("button", name="Begin").is_disabled()
    fits(page)
    agree(page)
    for team in ("Team A", "Team B"):
        page.locator(".note", has_text=f"{team} works for you").wait_for()
        press(page, "Start")
        page.locator("#prompt[data-asks]", has_text="Tell them not to push.").wait_for()
        assert page.locator(".title h2").inner_text() == team
        say(page, "hurry up with it")
        page.locator("#answer", has_text="The team is not sure what you mean").wait_for()
        picture, bar = (page.locator(one).bounding_box() for one in (".picture canvas", "#bar"))
        assert picture["width"] > 150 and picture["y"] + picture["height"] <= bar["y"] + 1
        fits(page)
        say(page, "don't push")
        page.locator(".said", has_text="“don't push”").wait_for()
        page.locator(".veil button").click()
        page.locator("legend", has_text="It obeyed.").wait_for()
        press(page, "Go on")
        page.locator(".wrong", has_text="Please answer: It obeyed.").wait_for()
        page.get_by_role("radio", name="4").check()
        press(page, "Go on")
    page.get_by_role("radio", name="B", exact=True).check()
    page.locator("textarea").fill(EVIL)
    press(page, "Go on")
    code = page.locator("#code").inner_text()
    assert re.fullmatch("[0-9A-F]{8}", code)
    page.reload()
    assert page.locator("#code").inner_text() == code
    answers = [line["answers"] for line in server.record(0).lines if line["what"] == "answers"]
    assert answers == [{"obeyed": 4}, {"obeyed": 4}, {"best": "B", "remarks": EVIL}]


def test_what_a_person_speaks_is_said_to_the_team(study, open_page):
    page = open_page(study(), init=MICROPHONE)
    agree(page)
    press(page, "Start")
    page.locator("#prompt[data-asks]").wait_for()
    page.locator("#mic").click()
    page.evaluate("listening.hear('do not push', true)")
    page.locator(".said", has_text="“do not push”").wait_for()


def test_a_reload_and_a_lost_connection_keep_the_place(study, open_page):
    server = study()
    page = open_page(server)
    agree(page)
    page.get_by_role("button", name="Start").wait_for()
    page.reload()
    press(page, "Start")
    page.locator("#prompt[data-asks]").wait_for()
    page.reload()
    page.locator("#prompt[data-asks]").wait_for()
    assert page.locator("#agree").count() == 0
    (person, *_) = server.study.people.values()
    asyncio.run_coroutine_threadsafe(person.socket.close(1012), server.loop).result(10)
    page.locator("#status", has_text="What you did is kept").wait_for()
    say(page, EVIL)
    page.locator("#status", has_text="nothing was sent").wait_for()
    assert page.locator("#text").input_value() == EVIL
    page.locator("#status:empty").wait_for(state="attached")
    page.locator("#text").press("Enter")
    page.locator("#answer, .said", has_text=EVIL).first.wait_for()
    say(page, "don't push")
    page.locator(".veil button").wait_for()


def test_two_people_in_one_kitchen(study, open_page):
    server = study(*TWO, ("ticks = 12", "ticks = 40"), ("speed = 10", "speed = 5"))
    one, two = open_page(server, 0), open_page(server, 1, 390, 844)
    agree(one)
    one.locator(".note", has_text="You are blue robot").wait_for()
    press(one, "Start")
    one.locator("#waits").wait_for()
    agree(two)
    press(two, "Start")
    for page in (one, two):
        page.locator("#prompt[data-asks]").wait_for()
        assert page.locator("#pad button").count() > 3
        fits(page)
    say(two, "robot 0, stay")
    one.locator("#answer", has_text="The other person says: “robot 0, stay”").wait_for()
    two.locator("#prompt:not([data-asks])").wait_for()
    one.locator("#pad button[data-macro=TURN_LEFT]").click()
    one.locator("#pad button[data-macro=TURN_LEFT].running").wait_for()
    two.close()
    one.locator(".veil", has_text="The other person is away").wait_for()
    frozen = len(server.record(0).lines)
    again = open_page(server, 1, 390, 844)
    again.locator(".said").wait_for()
    one.locator(".veil").wait_for(state="detached")
    again.locator("#leave").click()
    press(again, "Leave and delete what I did")
    again.locator(".text", has_text="What you said and did was deleted.").wait_for()
    one.locator("legend", has_text="Anything else?").wait_for()
    assert len(server.record(0).lines) > frozen and len(server.record(1).lines) == 1
    press(one, "Go on")
    one.locator("#code").wait_for()


def test_a_link_works_in_one_place_and_an_unknown_one_nowhere(study, open_page):
    server = study()
    older = open_page(server)
    older.locator("#agree").wait_for()
    newer = open_page(server)
    newer.locator("#agree").wait_for()
    older.locator("h2", has_text="This link was opened elsewhere").wait_for()
    press(newer, "I do not take part")
    newer.locator(".text", has_text="You do not take part.").wait_for()
    status, _, body = server.get("/s/unknown")
    assert status == 404 and b"leads to no study" in body


def test_the_dialog_of_leaving_can_be_left_by_keyboard(study, open_page):
    server = study()
    page = open_page(server)
    agree(page)
    page.get_by_role("button", name="Start").wait_for()
    page.locator("#leave").focus()
    page.keyboard.press("Enter")
    page.locator("#leaving[open]").wait_for()
    page.keyboard.press("Escape")
    page.locator("#leaving[open]").wait_for(state="detached")
    assert server.record(0).gone == ""
