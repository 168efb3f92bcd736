"""Talking on the page: instructions as chips, menus on things and agents, questions back, and the microphone."""

from __future__ import annotations

import pytest
from test_playground import catalog, folder  # noqa: F401
from test_playground_browser import PUSHING, open_page, say, server, shows  # noqa: F401
from test_replay_browser import browser  # noqa: F401

pytestmark = pytest.mark.browser
KITCHEN = "#world=overcooked&teams=mavic"
sizes = pytest.mark.parametrize("width, height", [(390, 844), (1280, 800)])


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
    say(page, "push")
    until(page, "push")
    shows(page, "#answer", "instead of “Do not push anything”")
    say(page, "after that, stay")
    until(page, "push", "stay")
    page.locator("#holds .waits button").click()
    until(page, "push")
    say(page, "never mind")
    page.locator("#holds").wait_for(state="hidden")


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
