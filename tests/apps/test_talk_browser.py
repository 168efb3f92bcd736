"""Talking on the page: instructions as chips, menus on things and agents, questions back, and the microphone."""

from __future__ import annotations

import pytest
from test_playground import catalog, folder  # noqa: F401
from test_playground_browser import BOTH, PUSHING, open_page, say, server, shows  # noqa: F401
from test_replay_browser import browser  # noqa: F401

pytestmark = pytest.mark.browser
KITCHEN = "#world=overcooked&teams=mavic"
sizes = pytest.mark.parametrize("width, height", [(390, 844), (1280, 800), (1920, 1080)])
SHORT = [(844, 390), (640, 400)]  # a phone held sideways, and 1280 by 800 at 200 %


def holds(page) -> list[str]:
    return page.locator("#holds .hold > span").all_inner_texts()


TEXTS = """(chips) => {
  const shown = [...document.querySelectorAll("#holds .hold > span")].map((chip) => chip.textContent);
  return shown.join() === chips;
}"""


def until(page, *chips: str) -> None:
    """Wait until these instructions hold."""
    page.wait_for_function(TEXTS, arg=",".join(chips))


@sizes
def test_each_instruction_is_a_chip_that_can_be_removed(open_page, width, height):  # noqa: F811
    page = open_page(width, height, address=PUSHING)
    before = page.locator(".picture canvas").bounding_box()
    say(page, "keep away from the left small box")
    until(page, "keep away from the left small box")
    say(page, "also don't push")
    until(page, "keep away from the left small box", "also don't push")
    shows(page, "#answer", "beside “Keep away from the left small box”")
    shows(page, "#end", "End all")
    assert page.locator(".picture canvas").bounding_box() == before  # nothing jumps
    page.locator("#holds button").first.click()
    until(page, "also don't push")
    assert page.locator("#answer").inner_text() == ""  # it told of what held before
    say(page, "push")
    until(page, "push")
    shows(page, "#answer", "instead of “Do not push anything”")
    say(page, "after that, stay")
    until(page, "push", "stay")
    page.locator("#holds .waits button").click()
    until(page, "push")
    say(page, "never mind")
    page.locator("#holds").wait_for(state="hidden")


COVERED = """() => {
  const bar = document.querySelector("#bar").getBoundingClientRect();
  const hints = document.querySelector(".hints").getBoundingClientRect();
  return [...document.querySelectorAll(".picture canvas")].some((canvas) => {
    const box = canvas.getBoundingClientRect();
    const meets = (other) => box.bottom > other.top + 1 && box.right > other.left + 1 && box.left < other.right;
    return box.bottom > bar.top + 1 || meets(hints);
  });
}"""
CLIPPED = "e => e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1"


@pytest.mark.parametrize("width, height", [(390, 844), (1280, 800), (1920, 1080), *SHORT])
@pytest.mark.parametrize(
    "address, first, second",
    [
        (KITCHEN, "stay away from the left board, please", "and don't use the right oven either"),
        (BOTH, "please keep away from the left small box", "and also don't push any big box"),
    ],
)
def test_what_is_said_back_is_read_and_covers_no_picture(
    open_page,  # noqa: F811
    width,
    height,
    address,
    first,
    second,
):
    page = open_page(width, height, address=address)
    page.locator(".picture canvas").nth(address.count(",")).wait_for()
    say(page, first)
    shows(page, "#answer", "Understood: ")
    assert not page.locator("#answer").evaluate(CLIPPED)
    say(page, second)
    page.locator("#holds .hold").nth(1).wait_for()
    for chip in page.locator("#holds button").all():
        assert chip.bounding_box()["x"] + 44 <= page.locator("#holds").bounding_box()["x"] + width
    assert page.locator("#text").bounding_box()["width"] >= 190
    rows = page.locator(".agents li").all()
    assert all(row.bounding_box()["height"] < 70 for row in rows)  # no letters one under another
    say(page, "make me a coffee")
    shows(page, "#answer", "Nothing to do.")
    page.locator("#answer .closest button").first.wait_for()
    page.wait_for_function(f"() => !({COVERED})()")


@sizes
def test_conflicts_are_asked_back(open_page, width, height):  # noqa: F811
    page = open_page(width, height, address=PUSHING)
    say(page, "keep away from the left small box")
    say(page, "also don't push")
    until(page, "keep away from the left small box", "also don't push")
    say(page, "and not the right small box either")
    shows(page, "#answer", "Two instructions can hold at once")
    assert len(holds(page)) == 2
    page.locator("#answer .closest button").nth(1).click()
    until(page, "keep away from the left small box", "stay away from the right small box")
    shows(page, "#answer", "instead of “Do not push anything”")
    say(page, "push and also don't push")
    shows(page, "#answer", "do not go together")


@sizes
def test_nothing_to_do_comes_with_what_can_be_done(open_page, width, height):  # noqa: F811
    page = open_page(width, height, address=PUSHING)
    say(page, "thanks for pushing")
    shows(page, "#answer", "Nothing to do.")
    assert page.locator("#answer .closest button").count() >= 3
    page.locator("#answer .closest button").first.click()
    page.locator("#holds .hold").wait_for()


@sizes
def test_a_click_on_a_thing_or_an_agent_offers_what_can_be_said(open_page, width, height):  # noqa: F811
    page = open_page(width, height, address=PUSHING)
    page.locator("#play").click()
    canvas = page.locator(".picture canvas")
    cell = canvas.bounding_box()["width"] / 6
    canvas.click(position={"x": 0.5 * cell, "y": 2.5 * cell})  # the left small box
    menu = page.locator("#menu")
    menu.wait_for()
    shows(page, "#menu p", "left small box")
    labels = menu.locator("button").all_inner_texts()
    assert "go to the left small box" in labels and "stay away from the left small box" in labels
    menu.locator("button", has_text="stay away from the left small box").click()
    until(page, "stay away from the left small box")
    canvas.click(position={"x": 0.5 * cell, "y": 2.5 * cell})
    menu.locator("button", has_text="End “stay away").click()
    page.locator("#holds").wait_for(state="hidden")


def test_the_menu_works_by_keyboard(open_page):  # noqa: F811
    page = open_page(address=PUSHING)
    page.locator("#stage").focus()
    page.keyboard.press("a")
    menu = page.locator("#menu")
    menu.wait_for()
    assert menu.locator("button").all_inner_texts()[-2:] == ["blue robot", "orange robot"]
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    shows(page, "#menu p", "orange robot")
    page.keyboard.press("Escape")
    assert menu.is_hidden()
    page.locator("#about").press("Enter")
    box, bar = menu.bounding_box(), page.locator("#bar").bounding_box()
    assert box["y"] >= 0 and box["y"] + box["height"] <= bar["y"]
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    menu.locator("button", has_text="orange robot, stay").press("Enter")
    shows(page, "#holds .hold small", "orange robot")
    shows(page, "#answer", "to orange robot")


MICROPHONE = """
window.SpeechRecognition = class extends EventTarget {
  start() { window.listening = this; }
  stop() { this.dispatchEvent(new Event("end")); }
  hear(transcript, isFinal) {
    const result = Object.assign([{ transcript }], { isFinal });
    this.dispatchEvent(Object.assign(new Event("result"), { results: [result] }));
    if (isFinal) this.stop();
  }
};
"""


@sizes
def test_what_is_spoken_goes_the_way_of_what_is_typed(open_page, width, height):  # noqa: F811
    page = open_page(width, height, address=PUSHING, init=MICROPHONE)
    mic = page.locator("#mic")
    mic.click()
    assert mic.get_attribute("aria-pressed") == "true"
    page.evaluate("listening.hear('do not', false)")
    assert page.locator("#text").input_value() == "do not" and not holds(page)
    page.evaluate("listening.hear('do not push', true)")
    until(page, "do not push")
    assert mic.get_attribute("aria-pressed") == "false"
    mic.click()
    page.evaluate(
        "listening.dispatchEvent(Object.assign(new Event('error'), {error: 'not-allowed'}))"
    )
    shows(page, "#answer", "does not allow this page to listen")


@sizes
def test_without_recognition_there_is_no_microphone(open_page, width, height):  # noqa: F811
    gone = "delete window.SpeechRecognition; delete window.webkitSpeechRecognition;"
    page = open_page(width, height, address=PUSHING, init=gone)
    assert page.locator("#mic").is_hidden() and page.locator("#send").is_visible()


def test_the_kitchens_things_and_cooks_have_one_name(open_page):  # noqa: F811
    page = open_page(address=KITCHEN)
    page.locator("#about").click()
    named = page.locator("#menu button").all_inner_texts()
    assert {"left oven", "right board", "plate 1", "blue cook", "orange cook"} <= {*named}
    page.keyboard.press("Escape")
    say(page, "the orange one should stay")
    shows(page, "#answer", "to orange cook")
    assert "orange cook" in page.locator(".picture canvas").get_attribute("aria-label")
    assert page.locator("button.who").all_inner_texts() == ["blue cook", "orange cook"]


def test_two_cooks_orders_are_told_apart(open_page):  # noqa: F811
    page = open_page(address=KITCHEN)
    say(page, "the blue cook should stay and the orange cook should not use the left board")
    shows(page, "#answer", "Understood: Stay where you are")
    told = page.locator("#answer").inner_text().split()
    assert " ".join(told).endswith(
        "Stay where you are to blue cook and: Do not use the left board to orange cook"
    )


def test_what_a_reload_or_a_wrong_address_loses_is_said(open_page):  # noqa: F811
    page = open_page(address=PUSHING)
    say(page, "stay")
    until(page, "stay")
    page.wait_for_url("**say=*")
    page.reload()
    shows(page, "#answer", "The page was loaded again. The episode begins anew, and what was said")
    until(page, "stay")
    shows(open_page(address="#world=moon"), "#answer", "no team here for the world “moon”")
    stranger = open_page(address="#world=box_pushing&teams=clever")
    shows(stranger, "#answer", "No team is called “clever” here")
