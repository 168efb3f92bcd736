"""The first minute in a browser: a visitor watches, guesses, and sees what became of it, at every width."""

from __future__ import annotations

import re

import pytest
from test_playground import Server
from test_replay_browser import CONTRASTS, browser  # noqa: F401

from mavic.apps.playground import story
from mavic.apps.playground.catalog import open_catalog

pytestmark = pytest.mark.browser
SIZES = [(390, 844), (1280, 800), (1920, 1080)]


@pytest.fixture(scope="module")
def server():
    catalog = open_catalog()
    catalog.teams = {"overcooked": catalog.teams["overcooked"]}  # nothing else is compiled
    for name in ("naive", story.CONTROL):
        catalog.teams["overcooked"].pop(name, None)
    made = Server(catalog)
    yield made
    made.close()


@pytest.fixture(scope="module")
def written(server, browser, tmp_path_factory):  # noqa: F811
    """The page as the server sends it, as a file: it needs no server. A first visit at the server leads to it."""
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{server.port}/")
    page.locator("#line").wait_for(timeout=300_000)
    assert page.url.endswith("/story")
    assert page.locator("#skip").get_attribute("href").startswith("/#world=overcooked&teams=mavic")
    text = page.request.get(page.url).text()
    page.close()
    path = tmp_path_factory.mktemp("story") / "index.html"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def open_story(browser, written):  # noqa: F811
    contexts, troubles = [], []

    def opened(width, height, motion="no-preference", **options):
        context = browser.new_context(
            viewport={"width": width, "height": height},
            reduced_motion=motion,
            offline=True,
            **options,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto(written.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def seek(page, index) -> None:
    page.locator("#scrub").evaluate(
        "(e, i) => { e.value = i ?? e.max; e.dispatchEvent(new Event('input')); }", index
    )


def in_sight(page, *selectors: str) -> None:
    bar = page.locator("#bar").bounding_box()
    for selector in selectors:
        for one in page.locator(selector).all():
            box = one.bounding_box()
            assert box["y"] >= 0 and box["y"] + box["height"] <= bar["y"] + 1, selector


@pytest.mark.parametrize("width, height", SIZES)
def test_the_first_minute(open_story, width, height):
    page = open_story(width, height)
    assert "Two cooks make one dish" in page.locator("#line").inner_text()
    guesses = page.locator("#choices button")
    guesses.first.wait_for()
    asked = page.locator("#line").inner_text()
    who = re.match(r"The (blue|orange) cook is carrying a \w+ to the left board", asked)
    assert who is not None
    assert page.locator("#speech").inner_text() == "“don't use the left board”"
    assert guesses.count() == 3
    # the answer is not given away, and the clock waits for it
    assert (
        "to the left board"
        in page.locator(".doing").all_inner_texts()[["blue", "orange"].index(who[1])]
    )
    assert page.locator(".chip").count() == 0
    in_sight(page, ".picture canvas", "#line", "#speech", "#choices button")
    assert (
        page.locator("#track .followed, #track .mark").count() == 0
    )  # the time line gives nothing away
    assert page.evaluate("[scrollY, document.documentElement.scrollWidth <= innerWidth]") == [
        0,
        True,
    ]
    held = page.locator("#scrub").input_value()
    page.wait_for_timeout(400)
    assert page.locator("#scrub").input_value() == held
    guesses.last.click()
    page.locator("#line", has_text="turns to the right board").wait_for()
    assert page.locator("#play").get_attribute("aria-label") == "Pause"
    seek(page, None)
    page.locator("#line", has_text="nobody used the left board. The detour cost").wait_for()
    assert "Something else happened" in page.locator("#guess").inner_text()
    finish = page.locator(".race .time").all_inner_texts()
    assert len(finish) == 2 and all(re.match(r"✓ \d+ moves", one) for one in finish)
    in_sight(page, ".picture canvas", "#line", ".race li", "#onward .main")
    for jargon in ("V(h", "return", "seed", "mavic-", "naive"):
        assert jargon not in page.locator("#stage").inner_text().lower()
    page.locator(".how summary").click()
    assert page.locator(".leak").inner_text().startswith("No leak")


def test_every_chapter_leads_on_and_the_last_one_to_the_playground(open_story):
    page = open_story(1280, 800)
    for number in range(2):
        page.locator("#line").wait_for()
        seek(page, None)
        following = page.locator("#onward .main")
        following.wait_for()
        if following.evaluate("e => e.tagName") == "A":
            break
        following.click()
        shown = page.locator("#chapter", has_text="The team without the correction")
        shown.wait_for()
        assert number == 0
    assert following.get_attribute("href").startswith("/#world=overcooked&teams=mavic&seed=")


@pytest.mark.parametrize("width, height", [(844, 390), (640, 400)])
def test_short_screens_show_the_whole_kitchen(open_story, width, height):
    page = open_story(width, height)
    page.locator("#choices button").first.wait_for()
    in_sight(page, ".picture canvas", "#line", "#choices button")
    assert page.locator(".picture canvas").bounding_box()["height"] > 0.6 * height


def test_nothing_moves_by_itself_under_reduced_motion(open_story):
    page = open_story(1280, 800, motion="reduce")
    page.wait_for_timeout(700)
    assert page.locator("#scrub").input_value() == "0"
    page.locator("#onward .main", has_text="Play").click()
    page.locator("#choices button").first.wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_aa_contrast(open_story, scheme):
    page = open_story(1280, 800, color_scheme=scheme)
    page.locator("#choices button").first.wait_for()
    assert [pair for pair in page.evaluate(CONTRASTS) if pair[1] < 4.5] == []
    seek(page, None)
    page.locator("#onward .main").wait_for()
    assert [pair for pair in page.evaluate(CONTRASTS) if pair[1] < 4.5] == []
