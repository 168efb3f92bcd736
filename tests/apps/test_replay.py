"""Recordings as files: complete, self-contained, small, and harmless whatever their texts are."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from mavic.apps import replay
from mavic.apps.frames import _scene_as_json
from mavic.apps.recording import Recording
from mavic.envs import painting
from mavic.types import Scene, Sprite

EVIL = "</script><img src=x onerror=alert(1)><!--<script>"


def frame(time: int, **changes) -> dict:
    """A robot that walks to the right, one cell a tick, past a wall that never moves."""
    scene = Scene(
        width=8,
        height=2,
        sprites=(
            Sprite(shape="wall", x=0, y=0, colour="slate"),
            Sprite(shape="box", x=3, y=1, width=2, label="BIG", colour="brown"),
            Sprite(shape="robot", x=time % 8, y=1, label="0", colour="blue", heading="E"),
        ),
        notes=("all is well",),
    )
    doing = dict(name="robot_0", macro="GO_RIGHT", decided=time == 0, complies=None, holds="")
    made = dict(
        time=time, scene=_scene_as_json(scene), agents=[doing], instruction=None, reward=-0.1,
        earned=-0.1 * time, events=[], verdicts=[], refused=[], judged=0, followed=0,
        values=None, over="",
    )  # fmt: skip
    return {**made, **changes}


def recording(ticks: int = 5, name: str = "mavic", **changes) -> Recording:
    frames = tuple(frame(time) for time in range(ticks + 1))
    facts = dict(name=name, world="toy", agents=("robot_0",), kinds=("none", "stay"), frames=frames)
    return Recording(**{**facts, **changes})


class Page(HTMLParser):
    """The elements of a page and the texts of its scripts."""

    def __init__(self, text: str):
        super().__init__()
        self.tags, self.scripts, self.title, self._inside = [], [], "", ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        if self._inside == "title":
            self.title += data

    @property
    def data(self) -> dict:
        return json.loads(self.scripts[0])


def unpacked(packed: dict) -> list[dict]:
    pool = packed["pool"]
    frames = []
    for one in packed["frames"]:
        scene = one["scene"]
        sprites = [pool[i] for i in scene["sprites"]]
        notes = [pool[i] for i in scene["notes"]]
        scene = {**scene, "sprites": sprites, "notes": notes}
        frames.append({**one, "scene": scene, "agents": [pool[i] for i in one["agents"]]})
    return frames


def test_the_page_holds_the_film():
    page = Page(replay.page(recording(), "A title"))
    (shown,) = page.data["recordings"]
    assert page.title == "A title"
    assert (shown["name"], shown["agents"]) == ("mavic", ["robot_0"])
    frames = unpacked(shown)
    assert [f["scene"] for f in frames] == [frame(t)["scene"] for t in range(6)]
    assert [f["agents"] for f in frames] == [frame(t)["agents"] for t in range(6)]
    assert [f["time"] for f in frames] == list(range(6))
    assert frames[3]["earned"] == pytest.approx(-0.3)


def test_what_comes_again_stands_once():
    packed = replay.pack(recording(ticks=50))
    assert len(packed["pool"]) == len({json.dumps(part) for part in packed["pool"]})
    sprites = [part for part in packed["pool"] if isinstance(part, dict) and "shape" in part]
    assert len(sprites) == 1 + 1 + 8  # the wall, the box, and the robot in eight places


def test_values_stand_in_the_order_of_the_kinds():
    one = frame(0, values={"stay": 2.004, "none": 1.0, "text": 9.0})
    packed = replay.pack(recording(frames=(one,)))
    assert packed["frames"][0]["values"] == [1.0, 2.0]


def test_the_painter_gets_the_palette_from_python():
    look = Page(replay.page(recording(), "t")).data["look"]
    assert look["palette"] == painting.PALETTE
    assert look["shapes"] == list(painting.SHAPES)
    for name, ink in look["ink"].items():
        assert painting._contrast(ink, painting.PALETTE[name]) >= 4.5
    script = Page(replay.page(recording(), "t")).scripts[1 + replay.SCRIPTS.index("paint")]
    assert not [colour for colour in painting.PALETTE.values() if colour.lower() in script.lower()]


def test_nothing_is_fetched_and_only_our_scripts_run():
    text = replay.page(recording(), "t")
    page = Page(text)
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert [(tag, a["src"]) for tag, a in page.tags if "src" in a] == []
    links = [attributes["href"] for _, attributes in page.tags if "href" in attributes]
    assert links == ["data:,"]
    (policy,) = [a["content"] for _, a in page.tags if "http-equiv" in a]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert len(rules["script-src"].split()) == len(replay.SCRIPTS) + 1 and "unsafe" not in policy
    assert not [
        name for _, a in page.tags for name in a if name.startswith("on") or name == "style"
    ]


def test_no_text_is_put_in_as_markup():
    text = replay.page(recording(), "t")
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert way not in text


def test_evil_texts_stay_texts():
    asked = dict(number=1, text=EVIL, kind=EVIL, agents=[0], left=1, held=0)
    evil = frame(0, instruction=asked, events=[EVIL], refused=[EVIL])
    text = replay.page(recording(name=EVIL, frames=(evil, frame(1))), EVIL)
    page, calm = Page(text), Page(replay.page(recording(ticks=1), "t"))
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in calm.tags]
    assert page.title == EVIL
    assert page.data["recordings"][0]["frames"][0]["instruction"]["text"] == EVIL
    assert text.count("</script>") == len(replay.SCRIPTS) + 2


def test_braces_in_a_title_are_not_filled_in():
    assert Page(replay.page(recording(), "{{data}} {{nothing}}")).title == "{{data}} {{nothing}}"


def test_a_page_shows_one_film_or_two_of_one_world(tmp_path):
    assert (
        len(Page(replay.page([recording(), recording(name="naive")], "t")).data["recordings"]) == 2
    )
    with pytest.raises(ValueError, match="one recording or two, not 3"):
        replay.page([recording()] * 3, "t")
    with pytest.raises(ValueError, match="one recording or two, not 0"):
        replay.page([], "t")
    with pytest.raises(ValueError, match="different worlds: toy, other"):
        replay.page([recording(), recording(world="other")], "t")


def test_html_writes_one_file(tmp_path):
    path = replay.html(recording(), tmp_path / "deep" / "replay", "Ünï ✓")
    assert path == tmp_path / "deep" / "replay.html"
    assert "Ünï ✓" in path.read_text(encoding="utf-8")


def test_a_hundred_ticks_of_the_fullest_world_stay_small():
    """A kitchen of 49 cells with values of 16 kinds: the largest there is."""
    kinds = tuple(f"a-kind-of-instruction-{i}" for i in range(16))
    counters = [
        dict(
            shape="counter",
            x=i % 7,
            y=i // 7,
            width=1,
            height=1,
            label="tom",
            colour="sand",
            heading="",
            holds="",
        )
        for i in range(45)
    ]
    frames = []
    for time in range(101):
        scene = frame(time)["scene"]
        macro = f"GET_PLATE_{time % 17}"
        frames.append(
            frame(
                time,
                scene={**scene, "sprites": scene["sprites"] + counters},
                instruction=dict(
                    number=1, text="stay " * 10, kind=kinds[1], agents=[0, 1], left=9, held=time
                ),
                agents=[
                    dict(name=name, macro=macro, decided=True, complies=True, holds="plate 1")
                    for name in ("cook_0", "cook_1", "cook_2")
                ],
                values={kind: 100.123456 + time + i for i, kind in enumerate(kinds)},
            )
        )
    text = replay.page(recording(kinds=kinds, frames=tuple(frames), agents=("a", "b", "c")), "t")
    assert len(text.encode()) < 200_000


def test_gif_has_a_picture_for_every_frame(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("matplotlib")
    asked = dict(number=1, text="stay " * 30, kind="stay", agents=[0], left=1, held=0)
    verdict = dict(number=1, kind="stay", followed=False)
    frames = (
        frame(0),
        frame(1, instruction=asked, agents=[{**frame(1)["agents"][0], "complies": False}]),
        frame(2, verdicts=[verdict], judged=1, over="solved"),
    )
    path = replay.gif(recording(frames=frames), tmp_path / "recording")
    assert path.suffix == ".gif" and path.stat().st_size < 100_000
    with image.open(path) as made:
        assert made.n_frames == 3 and made.info["loop"] == 0
        seen, waits = [], []
        for index in range(3):
            made.seek(index)
            waits.append(made.info["duration"])
            seen.append(made.convert("RGB").tobytes())
    assert len(set(seen)) == 3
    assert waits[-1] >= 1500 > waits[0]
    blue = bytes.fromhex(painting.PALETTE["blue"][1:])
    pixels = {seen[0][i : i + 3] for i in range(0, len(seen[0]), 3)}
    assert min(sum(abs(a - b) for a, b in zip(pixel, blue, strict=True)) for pixel in pixels) < 12


@pytest.mark.parametrize(
    "followed, word", [(True, "followed: stay"), (False, "not followed: stay")]
)
def test_the_caption_tells_how_it_went(followed, word):
    judged = frame(1, verdicts=[dict(number=1, kind="stay", followed=followed)])
    shown = recording(frames=(frame(0), judged, *(frame(t) for t in range(2, 8))))
    captions = [replay._caption(shown, index)[0] for index in range(8)]
    assert captions == ["no instruction", *[word] * 4, *["no instruction"] * 3]
