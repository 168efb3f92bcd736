"""The playground explains itself: what a new visitor sees and can do, at the widths of a phone, a laptop and a desk."""

from __future__ import annotations

import re

import pytest
from test_playground import Server, catalog, folder  # noqa: F401
from test_playground_browser import BOTH, PUSHING, choose, open_page, say, server, shows  # noqa: F401
from test_replay_browser import browser  # noqa: F401

from mavic.apps.playground import export
from mavic.apps.playground.catalog import open_catalog

pytestmark = pytest.mark.browser
SIZES = [(390, 844), (1280, 800), (1920, 1080)]
KITCHEN = "#world=overcooked&teams=mavic"
sizes = pytest.mark.parametrize("width, height", SIZES)


def paused(page) -> None:
    page.locator("#play").click()
    page.locator("#play[aria-label=Play]").wait_for()


def wide(page, selector: str) -> bool:
    return page.locator(selector).first.evaluate("e => e.scrollWidth <= e.clientWidth + 1")


@sizes
def test_the_first_screen_says_what_it_is_about(open_page, width, height):  # noqa: F811
    """A first visit is one team in Overcooked, with its job and its steps; all else is folded away."""
    page = open_page(width, height, address="")
    page.wait_for_url("**/#world=overcooked&teams=*")
    assert "Two cooks make one dish" in page.locator("#job").text_content()
    steps = page.locator(".strip").first.locator("li")
    labels = steps.evaluate_all("all => all.map(li => li.getAttribute('aria-label'))")
    assert labels[0] == "chop tomato: 0 of 3" and labels[-1] == "deliver: 0 of 1"
    assert page.locator("#chips button").count() >= 3
    assert page.locator(".title h2").all_inner_texts() == ["with the correction"]
    for folded in (".facts", ".chart", ".sort"):
        assert page.locator(folded).first.is_hidden()
    page.locator(".how summary").click()
    assert "its values are corrected at each change" in page.locator(".sort").inner_text()
    assert page.locator(".facts").is_visible()
    picture = page.locator(".picture canvas").bounding_box()
    assert picture["width"] * picture["height"] > 0.25 * width * height or width == 1920
    assert picture["y"] < 0.2 * height  # little stands above the picture


def test_a_title_is_never_covered(open_page):  # noqa: F811
    page = open_page(address=KITCHEN)
    for selector in (".title h2", "#setup-label", "#job"):
        box = page.locator(selector).first.bounding_box()
        x, y = box["x"] + 5, box["y"] + box["height"] / 2
        hit = "([x, y, s]) => document.elementFromPoint(x, y).closest(s) !== null"
        assert page.evaluate(hit, [x, y, selector])


def test_world_teams_and_words_stand_in_the_address(open_page):  # noqa: F811
    """Loading the page again and going back keep them."""
    page = open_page(address=PUSHING)
    say(page, "stay")
    page.wait_for_url("**&say=*stay")
    page.reload()
    shows(page, ".said", "“stay”")
    assert "say=" in page.url
    choose(page, "against", "naive")
    page.locator(".recording").nth(1).wait_for()
    page.wait_for_url("**teams=mavic%2Cnaive*")
    page.go_back()
    page.locator(".recording").nth(1).wait_for(state="detached")
    assert "teams=mavic&" in page.url and page.locator("#against").input_value() == ""
    page.go_forward()
    page.locator(".recording").nth(1).wait_for()


def test_a_restarted_server_says_what_was_lost(browser, catalog):  # noqa: F811
    before = Server(catalog)
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{before.port}/{PUSHING}")
    page.locator(".picture canvas").wait_for()
    say(page, "stay")
    shows(page, ".said", "“stay”")
    before.close()
    shows(page, "#status", "The connection is lost")
    after = Server(catalog, port=before.port)
    try:
        shows(page, "#answer", "The server was restarted. The episode begins anew")
        assert "Lost: the recording of" in page.locator("#answer").inner_text()
        shows(page, ".said", "“stay”")
        page.close()
    finally:
        after.close()


def test_a_touch_beside_a_menu_only_closes_it(open_page):  # noqa: F811
    page = open_page(390, 844, has_touch=True, is_mobile=True, device_scale_factor=2)
    page.locator("#more summary").tap()
    page.locator("#more[open]").wait_for()
    box = page.locator(".picture canvas").bounding_box()
    for place in range(12):  # some of them are on a robot
        x, y = (place % 6 + 0.5) * box["width"] / 6, (place // 6 + 2.5) * box["height"] / 6
        page.locator("#more").evaluate("menu => (menu.open = true)")
        page.touchscreen.tap(box["x"] + x, box["y"] + y)
        page.locator("#more:not([open])").wait_for()
    assert page.locator("button.who[aria-pressed=true]").count() == 0


def test_teams_that_do_alike_are_said_to(open_page):  # noqa: F811
    page = open_page(address=BOTH)
    page.locator("#speed").select_option("10")
    page.locator("#contrast", has_text="The last episode: with the correction is").wait_for()
    said = page.locator("#contrast").inner_text()
    moves = [int(n) for n in re.findall(r"after (\d+) moves?", said)]
    assert len(moves) == 2
    if abs(moves[0] - moves[1]) <= 0.1 * max(moves) and said.count("is done") == 2:
        assert said.endswith("The two teams do alike.")


def test_an_address_of_an_unknown_world_is_answered(open_page):  # noqa: F811
    page = open_page(address=KITCHEN)
    page.evaluate("location.hash = '#world=nowhere'")
    shows(page, "#answer", "There is no team here for the world “nowhere”")
    assert page.locator("#world").input_value() == "overcooked"


def test_nothing_moves_by_itself_under_reduced_motion(open_page):  # noqa: F811
    page = open_page(motion="reduce", address="")
    page.locator("#play[aria-label=Play]").wait_for()
    page.wait_for_timeout(1200)
    assert page.locator(".facts dd").first.text_content() == "0"
    page.locator("#play").click()
    page.locator("#clock", has_text=re.compile("move [1-9]")).wait_for(state="attached")


MARKED = """(canvas) => {
  const all = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let red = 0;
  for (let i = 0; i < all.length; i += 4) red += all[i] === 176 && all[i + 1] === 42 && all[i + 2] === 0;
  return red;
}"""


@sizes
def test_things_have_names_and_what_is_asked_is_marked(open_page, width, height):  # noqa: F811
    page = open_page(width, height, address=KITCHEN)
    paused(page)
    canvas = page.locator(".picture canvas")
    page.locator("#chips button").first.click()
    shows(page, ".said", "“don't use the left board”")
    page.wait_for_timeout(300)
    assert canvas.evaluate(MARKED) > 50
    seen = page.locator("body").inner_text()
    for raw in ("avoid-left-board", "GO_BOARD", "GET_", "tom✓", "pl1", "cook_0", "LOOK_FOR"):
        assert raw not in seen
    assert "left and right" in page.locator(".legend").text_content().lower()
    assert "board, to chop on" in page.locator(".legend").text_content()


@sizes
def test_what_obeying_does_to_the_work_is_said(open_page, width, height):  # noqa: F811
    page = open_page(width, height, address=BOTH)
    say(page, "stay")
    shows(page, ".work", "complies; the work waits, as asked")
    assert page.locator(".work").count() == 2
    page.locator("#end").click()
    page.locator(
        ".work", has_text=re.compile("^(works|begins|The task is solved)$")
    ).first.wait_for()


def test_both_teams_charts_have_one_scale(open_page):  # noqa: F811
    page = open_page(address=BOTH)
    paused(page)
    for summary in page.locator(".how summary").all():
        summary.click()
    drawn = page.evaluate(
        """() => new Promise((done) => {
          const seen = [];
          const draw = CanvasRenderingContext2D.prototype.fillText;
          CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
            if (this.canvas.className === "chart") seen.push([this.canvas, text]);
            return draw.call(this, text, ...rest);
          };
          dispatchEvent(new Event("resize"));
          setTimeout(() => {
            CanvasRenderingContext2D.prototype.fillText = draw;
            const all = [...document.querySelectorAll("canvas.chart:not(.low)")];
            done(all.map((chart) => seen.filter(([canvas]) => canvas === chart).map(([, text]) => text)));
          }, 300);
        })"""
    )
    assert len(drawn) == 2 and drawn[0] == drawn[1] and len(drawn[0]) >= 3
    for i, leak in enumerate(page.locator(".leak").all_inner_texts()):
        assert re.match("(A leak|No leak): told nothing, this team expects", leak), i


@sizes
def test_an_unclear_sentence_is_asked_back_and_nothing_jumps(open_page, width, height):  # noqa: F811
    page = open_page(width, height, address=PUSHING)
    paused(page)
    canvas = page.locator(".picture canvas")
    before = canvas.bounding_box()
    words = page.locator("#text").bounding_box()  # the bar may grow upwards
    say(page, "hurry up with it")
    shows(page, "#answer", "Did you mean")
    assert page.locator(".said[data-state=active]").count() == 0
    assert canvas.bounding_box() == before and page.locator("#text").bounding_box() == words
    page.locator("#answer .closest button").first.click()
    page.locator(".said[data-state=active]").wait_for()
    say(page, "Please do not push any of the boxes whatever happens and whoever tells you to do so")
    page.locator("#answer", has_text=re.compile("Understood|not sure")).wait_for()
    assert canvas.bounding_box() == before and page.locator("#text").bounding_box() == words


@sizes
def test_names_ends_and_queues(open_page, width, height):  # noqa: F811
    page = open_page(width, height, address=PUSHING)
    say(page, "robot 1, stay")
    shows(page, "#answer", "to orange robot")
    page.locator(".agents .chip").wait_for()
    assert page.locator(".agents .chip").count() == 1
    say(page, "never mind")
    shows(page, "#answer", "Ended.")
    page.locator(".said:not([data-state=active])").wait_for()
    say(page, "stay and then don't push")
    shows(page, "#answer", "then: “don't push”")
    shows(page, ".said", "“stay”")
    page.locator("#end", has_text="Next").click()
    shows(page, ".said", "“don't push”")
    say(page, "robot 0 stay, robot 1 push")
    shows(page, ".said", "“stay” and “push”")
    say(page, "robot 0 stay, robot 1 push, robot 0 don't push")
    shows(page, "#answer", "Which one?")
    page.locator("#answer .closest button", has_text="orange robot: push").click()
    shows(page, "#answer", "to orange robot")
    say(page, "robot 9, stay")
    shows(page, "#answer", "no agent is called")


def test_a_permission_ends_what_holds_and_a_remark_does_nothing(open_page):  # noqa: F811
    page = open_page(address=PUSHING)
    say(page, "don't push")
    page.locator(".said[data-state=active]").wait_for()
    say(page, "thanks for pushing")
    shows(page, "#answer", "Nothing to do.")
    say(page, "you can push again")
    shows(page, "#answer", "Ended.")
    page.locator(".said:not([data-state=active])").wait_for()
    say(page, "you can push again")
    shows(page, "#answer", "Nothing holds.")


def test_who_stands_in_the_way_is_told(open_page):  # noqa: F811
    """The person drives agent 1 and stands still. Agent 0 beside it decides anew in every tick and stays."""
    page = open_page(address=PUSHING)
    waiting = """({x, decided, macro}) => MavicPad.waiting(Array.from({length: 6}, () => ({
        over: "", agents: [{decided, macro}, {decided: true, macro: "STAY"}],
        scene: {sprites: [{shape: "robot", x, y: 2}, {shape: "robot", x: 4, y: 2}]},
    })), 1)"""
    blocked = {"x": 3, "decided": True, "macro": "GO_OVEN_1"}
    assert page.evaluate(waiting, blocked) == 0
    for other in ({"x": 2}, {"decided": False}, {"macro": "STAY"}):
        assert page.evaluate(waiting, blocked | other) == -1


def test_a_click_on_a_name_addresses_an_agent(open_page):  # noqa: F811
    page = open_page(address=PUSHING)
    paused(page)
    where = page.evaluate("document.querySelector('.picture canvas').getAttribute('aria-label')")
    assert "blue robot" in where
    page.locator("button.who", has_text="orange robot").click()
    assert page.locator("#scope-words").inner_text().startswith("to orange robot")
    page.locator("button.who", has_text="orange robot").press("Enter")  # everybody again
    assert page.locator("#scope-words").inner_text().startswith("to everybody")


def test_touch_suffices(open_page):  # noqa: F811
    page = open_page(390, 844, has_touch=True, is_mobile=True, device_scale_factor=2, address=BOTH)
    page.locator("#chips button").nth(1).tap()
    shows(page, ".said", "“don't push”", 1)
    page.locator("#end").tap()
    page.locator(".said:not([data-state=active])").first.wait_for()
    page.locator("button.who").first.tap()
    assert page.locator("button.who").first.get_attribute("aria-pressed") == "true"
    assert "teams=mavic%2Cnaive" in page.url


@sizes
def test_one_can_look_back(open_page, width, height):  # noqa: F811
    page = open_page(width, height, address=KITCHEN)
    page.locator(".facts dd", has_text=re.compile("^[4-9]$")).first.wait_for(state="attached")
    page.keyboard.press("ArrowLeft")
    page.locator("#play[aria-label=Play]").wait_for()
    page.wait_for_timeout(400)
    now = int(page.locator(".facts dd").first.text_content())
    page.keyboard.press("ArrowLeft")
    assert int(page.locator(".facts dd").first.text_content()) == now - 1
    page.locator("#back").evaluate("e => { e.value = 0; e.dispatchEvent(new Event('input')); }")
    assert page.locator(".facts dd").first.text_content() == "0"
    page.locator("#live").click()
    assert int(page.locator(".facts dd").first.text_content()) >= now
    page.locator("#play").click()
    page.locator("#play[aria-label=Pause]").wait_for()


@sizes
def test_an_address_holds_what_was_said_when(open_page, width, height):  # noqa: F811
    page = open_page(width, height, address=BOTH + "&seed=3")
    paused(page)
    page.locator("#seed").evaluate("e => (e.value = 3)")
    page.locator("body").press("r")
    page.locator("#clock", has_text="move 0").wait_for(state="attached")
    for tick in (0, 1):  # the first tick is run from the picture that is already there
        page.locator("#step").click()
        page.locator("#clock", has_text=f"move {tick}").wait_for(state="attached")
    say(page, "stay")
    shows(page, ".said", "“stay”", 1)
    page.locator("#files summary").click()
    page.locator("#share").click()
    shows(page, "#answer", "address")
    address = page.url.split("/")[-1]
    again = open_page(width, height, address=address)
    assert again.locator("#seed").input_value() == "3"
    shows(again, ".said", "“stay”", 1)
    assert again.locator("#against").input_value() == "naive"


@pytest.mark.parametrize(
    "width, height", [(844, 390), (640, 400)]
)  # a phone on its side; 200 % of 1280 × 800
def test_the_world_is_in_sight_on_short_screens(open_page, width, height):  # noqa: F811
    page = open_page(width, height, address=KITCHEN)
    box = page.locator(".picture canvas").bounding_box()
    bar = page.locator("#bar").bounding_box()
    assert box["y"] >= 0 and box["y"] + box["height"] <= bar["y"] + 1
    assert box["height"] >= 140 and bar["height"] < 0.35 * height
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_announcements_are_few(open_page):  # noqa: F811
    """Episodes of Box Pushing end every two seconds; a screen reader hears nothing of that."""
    page = open_page(address=PUSHING)
    page.evaluate(
        """() => {
          globalThis.told = 0;
          const spoken = document.getElementById("spoken");
          new MutationObserver(() => (globalThis.told += 1)).observe(spoken, { childList: true });
        }"""
    )
    page.wait_for_timeout(5000)
    assert page.evaluate("globalThis.told") == 0
    say(page, "stay")
    shows(page, ".said", "“stay”")
    page.wait_for_timeout(500)
    assert page.evaluate("globalThis.told") == 1


@sizes
def test_dark_mode_and_forced_colours(open_page, width, height):  # noqa: F811
    page = open_page(width, height, color_scheme="dark", address=KITCHEN)
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(19, 21, 24)"
    page.emulate_media(color_scheme="light")
    assert page.evaluate(ground) == "rgb(244, 244, 241)"
    page.emulate_media(forced_colors="active")
    say(page, "stay")
    shows(page, ".work", "compl")
    border = "getComputedStyle(document.querySelector('.chip')).borderTopWidth"
    page.locator(".chip").first.wait_for()
    assert page.evaluate(border) == "1px"


def test_the_static_build_needs_no_server(browser, folder, tmp_path):  # noqa: F811
    only = open_catalog(folder)
    only.teams = {"box_pushing": only.teams["box_pushing"]}
    first = export.export(only, tmp_path / "site", lambda line: None)
    context = browser.new_context(offline=True, reduced_motion="reduce")
    page = context.new_page()
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(first.as_uri())
    page.locator("a").first.click()
    page.locator(".recording").nth(1).wait_for()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    assert page.locator(".strip li").count() >= 6
    assert troubles == []
    context.close()
