"""The playground in a real browser: what a visitor does and sees, by keyboard and by touch, at every width."""

from __future__ import annotations

import json
import re

import pytest
from test_playground import Server, catalog, folder  # noqa: F401
from test_replay_browser import CONTRASTS, browser  # noqa: F401

pytestmark = pytest.mark.browser
EVIL = "<img src=x onerror=alert(1)> push"
PUSHING = "#world=box_pushing&teams=mavic"
BOTH = "#world=box_pushing&teams=mavic,naive"


@pytest.fixture(scope="module")
def server(catalog):  # noqa: F811
    for world in catalog.teams:
        catalog.warm(world, "mavic")
    catalog.warm("overcooked", "mavic", True)
    made = Server(catalog)
    yield made
    made.close()


@pytest.fixture
def open_page(browser, server):  # noqa: F811
    """Open the playground; complaints of the page are failures at the end of the test."""
    contexts, troubles = [], []

    def opened(width=1280, height=900, motion="no-preference", address=PUSHING, init="", **options):
        context = browser.new_context(
            viewport={"width": width, "height": height}, reduced_motion=motion, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.add_init_script(init)
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append("dialog " + dialog.message))
        page.goto(f"http://127.0.0.1:{server.port}/{address}")
        page.locator(".picture canvas").first.wait_for()
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def say(page, words: str) -> None:
    page.locator("#text").fill(words)
    page.keyboard.press("Enter")


def unfold(page) -> None:
    """Whom, and for how long. A page that is still being laid out may miss a click; a person would click again."""
    for _ in range(3):
        page.locator("#more summary").click()
        if page.locator("#more[open]").count():
            return
        page.wait_for_timeout(500)


def doing(page, agent: int = 0, recording: int = 0) -> str:
    return page.locator(".recording").nth(recording).locator(".doing").nth(agent).inner_text()


def shows(page, selector: str, text: str, recording: int = 0) -> None:
    page.locator(selector, has_text=text).nth(recording).wait_for()


def choose(page, name: str, value: str) -> None:
    page.locator("#setup").evaluate("menu => (menu.open = true)")
    page.locator(f"#{name}").select_option(value)
    page.locator("#setup").evaluate("menu => (menu.open = false)")
    page.locator("#stage .recording").first.wait_for()


def test_what_is_typed_is_understood_and_obeyed(open_page):
    page = open_page()
    say(page, "please both go over to the little boxes")
    shows(page, "#answer", "Understood: Each robot goes to its own small box")
    answer = page.locator("#answer").inner_text()
    assert re.search(r"\d+ %", answer) and "nearest phrase: “" in answer
    shows(page, ".said", "“please both go over to the little boxes”")
    shows(page, ".doing", "to the left small box")
    shows(page, ".doing", "to the right small box")
    assert page.locator(".agents .chip").all_inner_texts() == ["✓ complies"] * 2
    assert "until you end it" in page.locator(".said").inner_text()
    page.locator("#end").click()
    shows(page, "#past li", "✓ followed")
    shows(page, ".title", "followed 1 of 1")


def test_an_unsure_sentence_gets_suggestions_that_can_be_taken(open_page):
    page = open_page()
    say(page, "hurry up with it")
    shows(page, "#answer", "I'm not sure what you mean")
    buttons = page.locator("#answer .closest button")
    assert buttons.count() >= 3
    assert page.locator(".said", has_text="hurry").count() == 0
    wanted = buttons.first.inner_text()
    buttons.first.click()
    shows(page, ".said", f"“{wanted}”")
    page.locator("#past li").nth(1).wait_for()


def test_an_instruction_has_its_time_and_its_scope(open_page):
    page = open_page()
    unfold(page)
    page.get_by_role("checkbox", name="blue robot").uncheck()
    page.locator("#hold").select_option("40")
    assert page.locator("#scope-words").inner_text() == "to orange robot, for 40 moves"
    say(page, "stay")
    shows(page, ".said", "moves left")
    assert "to orange robot" in page.locator(".said").inner_text()
    shows(page, ".doing", "stay")
    assert page.locator(".agents .chip").count() == 1


def test_side_by_side_both_hear_the_same(open_page):
    page = open_page(1920, 1080, address=BOTH)
    page.locator(".recording").nth(1).wait_for()
    assert page.locator(".title h2").all_inner_texts() == [
        "with the correction",
        "without the correction",
    ]
    say(page, "don't push")
    shows(page, ".said", "“don't push”", 1)
    one, two = (page.locator(".picture canvas").nth(i).bounding_box() for i in (0, 1))
    assert one["y"] == pytest.approx(two["y"], abs=1) and two["x"] > one["x"] + one["width"]
    times = page.locator(".facts").evaluate_all(
        "all => all.map(f => f.querySelector('dd').textContent)"
    )
    assert times[0] == times[1]
    assert page.locator(".chart:visible").count() == 0  # folded away
    for summary in page.locator(".how summary").all():
        summary.click()
    assert page.locator(".chart:visible").count() == 4


def test_the_clock_can_be_stopped_stepped_and_sped(open_page):
    page = open_page()
    page.locator("body").press("Space")
    page.locator("#play[aria-label=Play]").wait_for()
    say(page, "stay")
    shows(page, ".said", "“stay”")
    page.keyboard.press("Escape")

    def tick() -> int:
        return int(page.locator(".facts dd").first.text_content())

    held = tick()
    page.wait_for_timeout(900)
    assert tick() == held
    page.keyboard.press(".")
    page.locator("#clock", has_text=f"move {held + 1}").wait_for()
    page.keyboard.press("+")
    assert page.locator("#speed").input_value() == "6"
    page.locator("#setup-label").click()
    page.locator("#seed").fill("77")
    page.keyboard.press("Enter")
    page.wait_for_url("**seed=77*")
    page.locator("#clock", has_text="move 0").wait_for()
    page.keyboard.press("Escape")
    page.locator("#play").click()
    page.locator("#clock", has_text=re.compile("move [3-9]")).wait_for()


def test_the_keyboard_alone_suffices(open_page):
    page = open_page()
    page.keyboard.press("/")
    page.keyboard.type("big box sp")
    page.locator("#list li").first.wait_for()
    page.keyboard.press("ArrowDown")
    picked = page.locator("#list li[aria-selected=true] span").inner_text()
    page.keyboard.press("Enter")
    shows(page, ".said", f"“{picked}”")
    assert page.locator("#list").is_hidden()
    page.keyboard.press("ArrowUp")
    assert page.locator("#text").input_value() == picked
    page.locator("#text").fill("")
    page.keyboard.press("Escape")
    page.keyboard.press("e")
    shows(page, "#past li", "followed")
    say(page, "stay")
    page.locator("#end:enabled").wait_for()
    page.locator("#setup").evaluate("menu => (menu.open = true)")
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        name = "document.activeElement.id || document.activeElement.tagName"
        seen.add(page.evaluate(name))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none" or page.evaluate("document.activeElement === document.body")
    assert {"world", "team", "against", "seat", "seed", "reset", "text", "send", "end"} <= seen
    assert {"play", "step", "speed", "again", "back", "scope-label"} <= seen
    page.locator("#files summary").focus()
    page.keyboard.press("Enter")
    for name in ("tour", "share", "save-html", "save-gif"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == name


def test_a_cook_is_played_with_arrows_and_macro_keys(open_page):
    page = open_page()
    choose(page, "world", "overcooked")
    page.locator(".who", has_text="blue cook").wait_for()
    choose(page, "seat", "guest")
    page.locator(".who", has_text="purple cook (you)").wait_for()
    page.locator("#clock", has_text=re.compile("move [1-9]")).wait_for()
    # the arrows drive at once: they no longer change the select
    for key, macro in [
        ("ArrowUp", "step up"),
        ("ArrowRight", "step right"),
        ("ArrowLeft", "step left"),
    ]:
        page.keyboard.press(key)
        page.locator(".recording li", has_text="purple cook (you)").get_by_text(
            macro, exact=True
        ).wait_for()
    button = page.locator("#macros button", has_text="get plate 2")
    page.keyboard.press(button.locator("kbd").inner_text())
    shows(page, ".recording li", "get plate 2")
    page.locator(".recording li", has_text="purple cook (you)").get_by_text(
        "holds plate 2"
    ).wait_for()
    assert page.locator("#seat").input_value() == "guest"
    page.locator("#macros button", has_text="stay").click()
    page.locator("#macros button.running", has_text="stay").wait_for()


def test_an_agent_is_driven_by_touch(open_page):
    page = open_page(390, 844, has_touch=True, is_mobile=True, device_scale_factor=2)
    choose(page, "world", "overcooked")
    page.locator(".who", has_text="blue cook").wait_for()
    choose(page, "seat", "0")
    page.locator(".who", has_text="blue cook (you)").wait_for()
    page.locator("[data-macro=DOWN]").tap()
    page.locator("[data-macro=DOWN].running").wait_for()
    page.locator("[data-macro=GET_TOMATO]").tap()
    page.locator("[data-macro=GET_TOMATO].running").wait_for()


@pytest.mark.parametrize("world, agents", [("box_pushing", 2), ("warehouse", 3), ("overcooked", 2)])
def test_every_world_is_drawn_and_explained(open_page, world, agents):
    page = open_page()
    choose(page, "world", world)
    page.locator("#status", has_text=re.compile("^$")).wait_for(state="attached")
    page.locator(".agents li").nth(agents - 1).wait_for()
    page.locator("#clock", has_text=re.compile("move [2-9]")).wait_for()
    assert page.locator(".legend li").count() > 7
    page.locator("#able summary").click()
    assert page.locator("#asks li").count() >= 3
    colours = page.locator(".picture canvas").evaluate(
        """(c) => {
          const all = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
          const seen = new Set();
          for (let i = 0; i < all.length; i += 4) seen.add(all.slice(i, i + 3).join());
          return seen.size;
        }"""
    )
    assert colours > 10
    page.locator("#asks button").first.click()
    shows(page, "#answer", "Understood:")


def test_a_session_is_saved_and_replayed_without_a_server(open_page, browser, tmp_path):  # noqa: F811
    page = open_page(address=BOTH)
    page.locator(".recording").nth(1).wait_for()
    say(page, EVIL)
    shows(page, "#past li", EVIL)
    say(page, "go to the small boxes")
    shows(page, ".said", "“go to the small boxes”", 1)
    page.locator("#end").click()
    shows(page, "#past li", "followed")
    page.locator("#files summary").click()
    with page.expect_download() as download:
        page.locator("#save-html").click()
    saved = tmp_path / download.value.suggested_filename
    download.value.save_as(saved)
    assert saved.name == "mavic-box_pushing.html"
    with page.expect_download(timeout=120_000) as download:
        page.locator("#save-gif").click()
        shows(page, "#status", "Making the GIF…")
    assert download.value.suggested_filename == "mavic-box_pushing.gif"
    context = browser.new_context(reduced_motion="reduce", offline=True)
    troubles: list[str] = []
    recording = context.new_page()
    recording.on("console", lambda message: troubles.append(message.text))
    recording.on("pageerror", lambda error: troubles.append(str(error)))
    recording.goto(saved.as_uri())
    assert recording.locator("h2").first.inner_text() == "with the correction"
    for _ in range(200):
        if "“go to the small boxes”" in recording.locator(".said").first.inner_text():
            break
        recording.keyboard.press("ArrowRight")
    else:
        pytest.fail("what was said is not in the recording")
    assert recording.locator(".doing").first.inner_text().startswith("to the left small box")
    context.close()
    assert troubles == []


def test_text_is_never_markup(open_page):
    page = open_page()
    say(page, EVIL)
    shows(page, "#past li", EVIL)
    assert page.locator("img").count() == 0
    page.locator("#text").fill("x" * 1000)
    assert len(page.locator("#text").input_value()) <= 400


def test_a_lost_connection_is_restored(open_page, server):
    page = open_page()
    choose(page, "against", "naive")
    page.locator(".recording").nth(1).wait_for()
    say(page, "stay")
    shows(page, ".said", "“stay”")
    server.hang_up()
    shows(page, "#status", "The connection is lost")
    page.locator("#status", has_text=re.compile("^$")).wait_for(state="attached")
    page.locator(".recording").nth(1).wait_for()
    assert page.locator("#against").input_value() == "naive"
    shows(page, "#answer", "The connection was lost for a while. The episode begins anew")
    assert "Lost: the recording of" in page.locator("#answer").inner_text()
    shows(page, ".said", "“stay”")  # what was said is said again


LATENCY = """() => new Promise((done) => {
  const input = document.getElementById("text");
  let began = 0;
  new MutationObserver(() => {
    const chips = [...document.querySelectorAll(".agents .chip")];
    const said = document.querySelector(".said .words");
    if (began && chips.length === 2 && said.textContent.includes("go to the small boxes")) {
      requestAnimationFrame(() => done(performance.now() - began));
    }
  }).observe(document.getElementById("stage"), { childList: true, subtree: true, attributes: true });
  input.value = "go to the small boxes";
  began = performance.now();
  document.getElementById("speak").requestSubmit();
})"""


def test_from_enter_to_the_first_obeying_frame_is_quick(open_page):
    page = open_page(motion="no-preference")
    lags = []
    for _ in range(5):
        lags.append(page.evaluate(LATENCY))
        page.locator("#end:enabled").click()
        page.locator(".said:not([data-state=active])").wait_for()
        page.wait_for_timeout(300)
    print(f"from Enter to the first obeying frame: {sorted(lags)} ms")
    assert sorted(lags)[2] < 300


WIDTHS = [(390, 844, 2), (768, 1024, 1), (1280, 800, 1), (1920, 1080, 1)]


@pytest.mark.parametrize("width, height, ratio", WIDTHS)
@pytest.mark.parametrize("recordings", [1, 2])
def test_the_page_fits_every_screen(open_page, width, height, ratio, recordings):
    address = PUSHING if recordings == 1 else BOTH
    page = open_page(width, height, device_scale_factor=ratio, address=address)
    page.locator(".picture canvas").nth(recordings - 1).wait_for()
    say(page, "stay")
    shows(page, ".said", "“stay”")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    bar = page.locator("#bar").bounding_box()
    assert bar["y"] + bar["height"] <= height + 1
    assert page.evaluate("scrollY") == 0
    for canvas in page.locator(".picture canvas").all():
        box = canvas.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        wide = canvas.evaluate("c => c.width")
        assert wide == pytest.approx(box["width"] * ratio, abs=1) and (wide - 1) % 6 == 0
        if recordings == 1:
            assert box["y"] + box["height"] <= bar["y"] + 1  # the whole picture in sight
    for control in page.locator("#bar button:visible, #bar select:visible, #bar a:visible").all():
        box = control.bounding_box()
        assert min(box["width"], box["height"]) >= 43.5
        assert box["x"] >= 0 and box["x"] + box["width"] <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_aa_contrast(open_page, scheme):
    page = open_page(color_scheme=scheme)
    for words in (None, "stay", "make me a coffee"):
        if words:
            say(page, words)
            page.locator(
                "#answer", has_text=re.compile("Understood|not sure|Nothing to do")
            ).wait_for()
            page.wait_for_timeout(700)
        page.locator("#able").evaluate("d => d.open = true")
        found = page.evaluate(CONTRASTS)
        assert len(found) > 40
        assert [pair for pair in found if pair[1] < 4.5] == []


def test_reduced_motion_means_no_gliding(open_page):
    """Between two ticks nothing on the canvas changes."""
    page = open_page(motion="reduce")
    page.locator("#play").click()
    say(page, "go to the small boxes")
    shows(page, ".said", "“go to the small boxes”")
    drawn = """() => new Promise((done) => {
      const canvas = document.querySelector(".picture canvas");
      const pen = canvas.getContext("2d");
      const paint = pen.fillRect.bind(pen);
      let count = 0;
      pen.fillRect = (...all) => { if (all[2] === canvas.width) count += 1; paint(...all); };
      setTimeout(() => { delete pen.fillRect; done(count); }, 2000);
    })"""
    assert page.evaluate(drawn) <= 9  # three ticks a second, each drawn once
    moving = open_page(motion="no-preference")
    say(moving, "go to the small boxes")
    shows(moving, ".said", "“go to the small boxes”")
    assert moving.evaluate(drawn) > 12


def test_the_servers_messages_are_json_that_a_page_can_trust(server):
    with server.page() as page:
        page.open()
        message = page.read("frame")
        assert set(message) == {
            *("type", "frames", "number", "seed", "over", "still", "totals"),
            *("standing", "holding", "queued", "log"),
        }
        assert json.dumps(message)
