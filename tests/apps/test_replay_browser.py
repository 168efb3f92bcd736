"""The replay page in a real browser: what a person sees, with the keyboard alone, at every width."""

from __future__ import annotations

import io
import re
import shutil

import numpy as np
import pytest
from test_replay import EVIL, frame, recording

from mavic.apps import replay
from mavic.apps.frames import _scene_as_json
from mavic.envs import painting
from mavic.types import Scene, Sprite

pytestmark = pytest.mark.browser
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as engine:
        chromium = engine.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--headless"]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser, tmp_path):
    """Open a page of recordings; complaints and requests of the page are failures at the end of the test."""
    contexts, troubles = [], []

    def opened(recordings, width=1024, height=768, motion="reduce", ratio=1, title="A team"):
        path = replay.html(recordings, tmp_path / "page", title)
        context = browser.new_context(
            viewport={"width": width, "height": height},
            reduced_motion=motion,
            device_scale_factor=ratio,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: troubles.append("dialog " + dialog.message))
        page.on("request", lambda r: troubles.append(r.url) if r.url != path.as_uri() else None)
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def instructed(name: str = "mavic", followed: bool = True, **changes):
    """Ticks 2 to 4 under "stay"; judged at tick 5; solved at tick 9."""
    frames = []
    for time in range(10):
        more = dict(judged=int(time >= 5), followed=int(time >= 5 and followed))
        if 2 <= time < 5:
            more["instruction"] = dict(
                number=1,
                text="stay where you are",
                kind="stay",
                agents=[0],
                left=5 - time,
                held=time - 2,
            )
            more["agents"] = [
                {**frame(time)["agents"][0], "complies": followed, "decided": time == 2}
            ]
        if time == 5:
            more["verdicts"] = [dict(number=1, kind="stay", followed=followed)]
        if time == 9:
            more |= dict(over="solved", events=["solved"])
        values = {"none": 10.0 - time, "stay": -3.0 + time}
        frames.append(frame(time, values=None if time == 9 else values, **more))
    return recording(name=name, frames=tuple(frames), **changes)


def clock(page) -> str:
    return page.locator("#clock").inner_text()


def wait_for(page, text: str) -> None:
    """Until the clock reads as the pattern says; one tick alone may pass unseen on a busy machine."""
    page.locator("#clock", has_text=re.compile(text)).wait_for(timeout=8000)


def test_the_painter_knows_every_shape(open_page):
    assert open_page(recording()).evaluate("MavicPaint.shapes.sort()") == sorted(painting.SHAPES)


def pixels(page, selector="canvas") -> np.ndarray:
    from PIL import Image

    return np.asarray(
        Image.open(io.BytesIO(page.locator(selector).first.screenshot())).convert("RGB")
    )


@pytest.mark.parametrize("shape", painting.SHAPES)
def test_both_painters_draw_the_same(open_page, shape):
    """A sprite on the canvas and on matplotlib's axes, compared point by point."""
    figures = pytest.importorskip("matplotlib.figure")
    agg = pytest.importorskip("matplotlib.backends.backend_agg")
    for heading in ("E", "N") if shape == "robot" else ("",):
        one = Sprite(shape=shape, x=1, y=1, width=2, height=2, colour="sky", heading=heading)
        scene = Scene(width=4, height=4, sprites=(one,))
        page = open_page(recording())
        page.evaluate(
            """(scene) => {
              const data = JSON.parse(document.getElementById("data").textContent);
              const canvas = document.createElement("canvas");
              canvas.id = "test";
              document.body.replaceChildren(canvas);
              const unit = MavicPaint.fit(canvas, scene, 400, 400);
              MavicPaint.painter(data.look).draw(canvas, scene, unit);
            }""",
            _scene_as_json(scene),
        )
        ours = pixels(page, "#test")[:400, :400].astype(int)
        figure = figures.Figure(figsize=(4, 4), dpi=100)
        canvas = agg.FigureCanvasAgg(figure)
        painting.draw(scene, figure.add_axes((0, 0, 1, 1)))
        canvas.draw()
        theirs = np.asarray(canvas.buffer_rgba())[..., :3].astype(int)
        assert theirs.shape == ours.shape
        inside = np.s_[90:310, 90:310]
        apart = np.abs(ours - theirs)[inside].max(-1) > 60
        drawn = np.abs(theirs - 255)[inside].max(-1) > 30
        assert apart.mean() < (0.15 if shape == "goal" else 0.025)  # hatches have other strides
        assert drawn.mean() > 3 * apart.mean()


def test_the_robot_is_where_the_frame_says(open_page):
    page = open_page(recording())
    blue = np.array([int(painting.PALETTE["blue"][i : i + 2], 16) for i in (1, 3, 5)])
    for time in range(4):
        shot = pixels(page)
        found = np.argwhere(np.abs(shot.astype(int) - blue).max(-1) < 8)
        cell = shot.shape[1] / 8
        assert found[:, 1].mean() / cell == pytest.approx(time + 0.5, abs=0.1)
        assert found[:, 0].mean() / cell == pytest.approx(1.5, abs=0.15)
        page.keyboard.press("ArrowRight")


def test_the_keyboard_alone_suffices(open_page):
    page = open_page(instructed())
    assert clock(page) == "move 0 of 9"
    for key, tick in [
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        ("End", 9),
        ("ArrowRight", 9),
        ("Home", 0),
    ]:
        page.keyboard.press(key)
        assert clock(page) == f"move {tick} of 9", key
    page.keyboard.press("Space")
    assert page.locator("#play").get_attribute("aria-label") == "Pause"
    wait_for(page, "move [2-8] of 9")
    page.keyboard.press("Space")
    assert page.locator("#play").get_attribute("aria-label") == "Play"
    held = clock(page)
    page.wait_for_timeout(600)
    assert clock(page) == held
    page.keyboard.press("+")
    assert page.locator("#speed").input_value() == "2"
    page.keyboard.press("-")
    page.keyboard.press("-")
    assert page.locator("#speed").input_value() == "0.5"


def test_every_control_is_reached_by_tab_and_works(open_page):
    page = open_page(instructed())
    seen = []
    for _ in range(9):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                "document.activeElement.id || document.activeElement.tagName.toLowerCase()"
            )
        )
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
        assert seen[-1] == "body" or outline == "3px"
    assert {"scrub", "first", "back", "play", "next", "last", "speed", "summary"} <= set(seen)
    page.locator("#scrub").focus()
    page.keyboard.press("ArrowRight")
    assert clock(page) == "move 1 of 9"  # once, not by the slider and by the page
    page.locator("#next").focus()
    page.keyboard.press("Enter")
    assert clock(page) == "move 2 of 9"
    page.locator("#play").focus()
    page.keyboard.press("Space")
    assert page.locator("#play").get_attribute("aria-label") == "Pause"


def test_the_replay_plays_by_itself_to_the_end_and_again(open_page):
    page = open_page(instructed(), motion="no-preference")
    page.locator("#speed").select_option("8")
    wait_for(page, "move 9 of 9")
    assert page.locator("#play").get_attribute("aria-label") == "Play"
    page.locator("#speed").select_option("0.5")
    page.locator("#play").click()
    wait_for(page, "move [1-8] of 9")


def test_with_reduced_motion_the_replay_starts_paused(open_page):
    page = open_page(instructed(), motion="reduce")
    page.wait_for_timeout(700)
    assert clock(page) == "move 0 of 9"
    assert page.locator("#play").get_attribute("aria-label") == "Play"


def test_dragging_the_slider_seeks(open_page):
    page = open_page(instructed())
    box = page.locator("#scrub").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.55, box["y"] + box["height"] / 2)
    assert clock(page) == "move 5 of 9"


@pytest.mark.parametrize("recordings", [1, 2])
def test_the_time_line_stands_right_above_the_slider(open_page, recordings):
    page = open_page([instructed(), instructed("other")][:recordings])
    box = page.locator("#scrub").bounding_box()
    for tick in range(10):
        thumb = box["x"] + 10 + (box["width"] - 20) * tick / 9  # its middle; it is 20 wide
        for now in page.locator(".now").all():
            place = now.bounding_box()
            assert place["x"] + place["width"] / 2 == pytest.approx(thumb, abs=1)
        page.keyboard.press("ArrowRight")


@pytest.mark.parametrize(
    "followed, chip, verdict",
    [(True, "✓ complies", "✓ followed: stay"), (False, "✗ disobeys", "✗ not followed: stay")],
)
def test_an_instruction_is_seen_from_word_to_verdict(open_page, followed, chip, verdict):
    page = open_page(instructed(followed=followed))
    said = page.locator(".said")
    assert "No instruction" in said.inner_text()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert "“stay where you are”" in said.inner_text()
    assert "to everybody · 3 moves left · stay" in said.inner_text()
    assert page.locator("#spoken").inner_text() == "“stay where you are”"
    assert page.locator(".agents .chip").inner_text() == chip
    assert "go right" in page.locator("canvas").first.get_attribute("aria-label")
    assert page.locator(".facts dd").last.text_content() == "–"
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert verdict in said.inner_text()
    assert f"{int(followed)} of 1" in page.locator(".facts").text_content()
    page.keyboard.press("End")
    assert "The task is solved" in said.inner_text()
    assert "Last event: solved (move 9)" in page.locator(".event").inner_text()
    span = page.locator(".span")
    assert span.inner_text() == verdict[:2] + "stay"
    track, box = page.locator(".track").bounding_box(), span.bounding_box()
    assert (box["x"] - track["x"]) / track["width"] == pytest.approx(2 / 9, abs=0.01)
    assert box["width"] / track["width"] == pytest.approx(3 / 9, abs=0.01)


def test_texts_of_a_recording_are_never_markup(open_page):
    asked = dict(number=1, text=EVIL, kind=EVIL, agents=[0], left=1, held=0)
    frames = (frame(0, instruction=asked, events=[EVIL]), frame(1, refused=[EVIL]), frame(2))
    page = open_page(recording(frames=frames, name=EVIL), title=EVIL)
    assert page.title() == EVIL
    assert EVIL in page.locator(".said").inner_text()
    page.keyboard.press("ArrowRight")
    assert "cannot be done now" in page.locator(".said").inner_text()
    assert page.locator("img").count() == 0


def test_two_recordings_stand_side_by_side(open_page):
    short = recording(ticks=4, name="naive")
    page = open_page([instructed("mavic"), short], width=1920, height=1080)
    assert page.locator("h2").all_inner_texts()[0] == "mavic"
    one, two = (page.locator(".picture canvas").nth(i).bounding_box() for i in (0, 1))
    assert one["y"] == pytest.approx(two["y"], abs=1) and two["x"] > one["x"] + one["width"]
    assert page.locator(".track").count() == 2
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    titles = page.locator(".title").all_inner_texts()
    assert "followed 1 of 1" in titles[0] and "followed" not in titles[1]
    ticks = [facts.locator("dd").first.text_content() for facts in page.locator(".facts").all()]
    assert ticks == ["6", "4"]  # the shorter one waits at its end


WIDTHS = [
    *((390, 844, 2), (768, 1024, 1), (1024, 768, 1), (1920, 1080, 1)),
    *((844, 390, 2), (640, 400, 2)),  # a phone held sideways, and 1280 by 800 at 200 %
]


@pytest.mark.parametrize("width, height, ratio", WIDTHS)
@pytest.mark.parametrize("recordings", [1, 2])
def test_the_replay_fits_every_screen_and_is_crisp(open_page, width, height, ratio, recordings):
    page = open_page(
        [instructed("mavic"), instructed("naive", False)][:recordings], width, height, ratio=ratio
    )
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    bar = page.locator(".bar").bounding_box()
    assert bar["y"] + bar["height"] <= height + 1  # always at hand
    for canvas in page.locator(".picture canvas").all():
        box = canvas.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= bar["y"] + 1  # the whole picture in sight
        wide, high = canvas.evaluate("c => [c.width, c.height]")
        assert wide == pytest.approx(box["width"] * ratio, abs=1)
        assert (wide - 1) % 8 == 0 and (high - 1) % 2 == 0  # cells of whole pixels
    for button in page.locator("button:visible, select").all():
        box = button.bounding_box()
        assert min(box["width"], box["height"]) >= 44


FACES = """() => {
  const { look } = JSON.parse(document.getElementById("data").textContent);
  const none = { label: "", heading: "", holds: "", carries: "", name: "" };
  const cook = { shape: "robot", picture: "cook", colour: "blue", width: 1, height: 1, ...none };
  const scene = { width: 3, height: 4, sprites: [{ ...cook, x: 1, y: 1 }, { ...cook, x: 1, y: 2 }] };
  const agent = { macro: "WALK", decided: true, complies: true };
  const [unit, radius] = [40, 0.36 * 40];
  const drawn = (agents) => {
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: 3 * unit, height: 4 * unit });
    MavicPaint.painter(look).draw(canvas, scene, unit, agents);
    const lower = [1.5 * unit - radius / 2, 2.5 * unit - 0.7 * radius, radius, radius];
    return canvas.getContext("2d", { willReadFrequently: true }).getImageData(...lower).data.join();
  };
  return drawn([]) === drawn([agent, agent]);
}"""


def test_no_label_covers_a_face(open_page):
    assert open_page([recording()]).evaluate(FACES)


CONTRASTS = """() => {
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = (c) => {
    const [r, g, b] = c
      .slice(0, 3)
      .map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const e = walker.currentNode.parentElement;
    if (!text || !e.getClientRects().length || ["SCRIPT", "NOSCRIPT"].includes(e.tagName)) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))];
    found.push([text, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]);
  }
  return found;
}"""


@pytest.mark.parametrize("followed", [True, False])
def test_every_text_has_aa_contrast(open_page, followed):
    page = open_page([instructed(), instructed("other", followed)])
    for tick in (0, 3, 6):
        for _ in range(3 if tick else 0):
            page.keyboard.press("ArrowRight")
        found = page.evaluate(CONTRASTS)
        assert len(found) > 15
        assert [pair for pair in found if pair[1] < 4.5] == []


def test_values_are_drawn_when_there_are_any(open_page):
    page = open_page(instructed())
    assert page.locator(".chart").count() == 1
    page.locator(".how summary").click()
    assert page.locator(".keys li").all_inner_texts() == ["no instruction", "stay"]
    shot = pixels(page, ".chart")
    blue = np.array([int(painting.PALETTE["blue"][i : i + 2], 16) for i in (1, 3, 5)])
    assert (np.abs(shot.astype(int) - blue).max(-1) < 40).sum() > 50
    assert open_page(recording()).locator(".chart").count() == 0
