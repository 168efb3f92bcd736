"""Recordings as files: one HTML page that needs no server and no network, or a GIF.

The page is drawn by `web/paint.js` from the same frames and the same palette as all other painters. Texts of a
recording are data on the page and never markup.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html as markup
import json
import re
import textwrap
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mavic.apps.frames import Frame
from mavic.apps.recording import Recording
from mavic.envs import painting
from mavic.envs.api import plain
from mavic.experiment.talk import kind_words, names_of
from mavic.storage import files
from mavic.types import Scene, Sprite

TICKS_PER_SECOND = 3
MARKS = {None: "", True: " ✓", False: " ✗"}
BUBBLES = {None: "#FFFFFF", True: "#D8F0E6", False: "#FBE3DA"}  # background by verdict
SCRIPTS = (
    "theme",
    "icons",
    "labels",
    "paint",
    "chart",
    "stage",
    "timeline",
)  # what the page's own script needs
VERDICT_TICKS = 3  # how long a caption shows a verdict after the tick in which it came


def look() -> dict[str, Any]:
    """Return the colours and shapes that `paint.js` needs to draw as the other painters do."""
    return {
        "palette": painting.PALETTE,
        "ink": {name: painting.ink(fill) for name, fill in painting.PALETTE.items()},
        "paper": painting.PAPER,
        "grid": painting.GRID,
        "shapes": list(painting.SHAPES),
    }


def pack(recording: Recording) -> dict[str, Any]:
    """Return a recording as JSON in which each repeated part (a sprite, a note, an agent's row) stands once, in a pool.

    `MavicPaint.unpack` in `paint.js` undoes it.
    """
    pool: dict[str, int] = {}

    def pooled(parts: Sequence[Any]) -> list[int]:
        return [pool.setdefault(json.dumps(_rounded(part, 3)), len(pool)) for part in parts]

    frames: list[dict[str, Any]] = []
    for frame in recording.frames:
        scene, values = frame["scene"], frame["values"]
        frames.append(
            {
                **frame,
                "scene": {
                    **scene,
                    "sprites": pooled(scene["sprites"]),
                    "notes": pooled(scene["notes"]),
                },
                "agents": pooled(frame["agents"]),
                "reward": round(frame["reward"], 4),
                "earned": round(frame["earned"], 4),
                "values": values and [_rounded(values.get(kind), 2) for kind in recording.kinds],
            }
        )
    facts = {name.name: getattr(recording, name.name) for name in dataclasses.fields(recording)}
    facts["agent_words"] = names_of(recording.world, recording.agents)
    facts["kind_words"] = kind_words(recording.world, recording.kinds)
    return {**facts, "frames": frames, "pool": [json.loads(part) for part in pool]}


def _rounded(part: Any, digits: int) -> Any:
    if isinstance(part, float):
        return round(part, digits)
    if isinstance(part, dict):
        return {name: _rounded(value, digits) for name, value in part.items()}
    return part


def page(recordings: Recording | Sequence[Recording], title: str, note: str = "") -> str:
    """Return an HTML page.

    Args:
        recordings: one recording, or two to show side by side.
        title: the title of the page.
        note: what it shows, in a sentence or two.
    """
    recordings = _listed(recordings)
    if not 1 <= len(recordings) <= 2:
        raise ValueError(f"a page shows one recording or two, not {len(recordings)}")
    if len({one.world for one in recordings}) > 1:
        worlds = ", ".join(one.world for one in recordings)
        raise ValueError(f"the recordings show different worlds: {worlds}")
    data = {"look": look(), "recordings": [pack(one) for one in recordings]}
    return document(
        "replay.html", data, {"title": markup.escape(title), "note": markup.escape(note)}
    )


def document(
    name: str, data: Any, parts: dict[str, str], scripts: Sequence[str] = (), styles: str = ""
) -> str:
    """Return a page that needs no server: a template of `web` with scripts, styles and data inside.

    Args:
        name: the template.
        data: what its script reads, as JSON.
        parts: further parts by their names, as markup.
        scripts: names of scripts beside those of replays.
        styles: the name of a style sheet beside that of replays.
    """
    web = resources.files("mavic.apps") / "web"
    template = (web / name).read_text(encoding="utf-8")
    written = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    sheets = [web / "stage.css", *([web / styles] if styles else [])]
    parts = {
        **parts,
        # JSON may write any character as \u....; a text can then not end the script element
        "data": written.replace("<", "\\u003c"),
        "style": "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets),
        **{one: (web / f"{one}.js").read_text(encoding="utf-8") for one in (*SCRIPTS, *scripts)},
    }
    scripts_, styles_ = (_hashes(tag, template, parts) for tag in ("script", "style"))
    policy = (
        f"default-src 'none'; img-src data:; script-src {scripts_}; style-src {styles_}; "
        "base-uri 'none'; form-action 'none'"
    )
    return fill(template, {**parts, "policy": policy})


def _listed(recordings: Recording | Sequence[Recording]) -> list[Recording]:
    return [recordings] if isinstance(recordings, Recording) else list(recordings)


def fill(template: str, parts: dict[str, str]) -> str:
    """Return a filled template.

    Args:
        template: a text with `{{name}}` wherever a part belongs.
        parts: the parts by their names.
    """
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def _hashes(tag: str, template: str, parts: dict[str, str]) -> str:
    """Return the hashes of the inline scripts or styles. The content security policy lets only these run."""
    bodies = re.findall(rf"<{tag}>(.*?)</{tag}>", template, re.DOTALL)
    digests = (hashlib.sha256(fill(body, parts).encode()).digest() for body in bodies)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def html(
    recordings: Recording | Sequence[Recording], path: str | Path, title: str, note: str = ""
) -> Path:
    """Write the page that `page` returns.

    Args:
        recordings: one recording, or two to show side by side.
        path: the file to write; the ending `.html` is added if it is missing.
        title: the title of the page.
        note: what it shows, in a sentence or two.

    Returns:
        The path of the file.
    """
    path = files.with_ending(path, ".html")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(recordings, title, note), encoding="utf-8")
    return path


def _scene_of(frame: Frame) -> Scene:
    """Return the frame's scene without notes, for the painters of `mavic.envs.painting`."""
    scene = frame["scene"]
    sprites = tuple(Sprite(**sprite) for sprite in scene["sprites"])
    size = {"width": scene["width"], "height": scene["height"]}
    return Scene(**size, sprites=sprites, image=scene.get("image", ""))


def gif(
    recordings: Recording | Sequence[Recording],
    path: str | Path,
    *,
    ticks_per_second: float = TICKS_PER_SECOND,
    longest: int | None = None,
) -> Path:
    """Write a looping GIF. This needs matplotlib and pillow (`mavic[report]`).

    Args:
        recordings: one recording, or two to show side by side.
        path: the file to write; the ending `.gif` is added if it is missing.
        ticks_per_second: the speed.
        longest: keep at most so many ticks, the last ones. None: all.

    Returns:
        The path of the file.
    """
    path = files.with_ending(path, ".gif")
    path.parent.mkdir(parents=True, exist_ok=True)
    recordings = _listed(recordings)
    length = max(len(one.frames) for one in recordings)
    first = 0 if longest is None else max(0, length - longest)
    grounds = [_ground_of(one) for one in recordings]
    pictures = [
        _beside([_still(*pair, i) for pair in zip(recordings, grounds, strict=True)])
        for i in range(first, length)
    ]
    # all frames share one table of colours; otherwise they flicker
    colours = max(pictures, key=_count_colours).quantize(128)
    pictures = [picture.quantize(palette=colours, dither=0) for picture in pictures]
    tick = round(1000 / ticks_per_second)
    pictures[0].save(
        path,
        save_all=True,
        append_images=pictures[1:],
        duration=[tick] * (len(pictures) - 1) + [max(4 * tick, 1500)],
        loop=0,
        optimize=True,
    )
    return path


def _count_colours(picture: Any) -> int:
    """Return how many colours a picture has. Pillow's `getcolors` takes longer for this than drawing does."""
    packed = np.asarray(picture).astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    return int(np.unique(packed).size)


def _beside(pictures: Sequence[Any]) -> Any:
    """Return pictures in a row."""
    from PIL import Image

    wide = sum(picture.width for picture in pictures)
    row = Image.new("RGB", (wide, max(picture.height for picture in pictures)), painting.PAPER)
    left = 0
    for picture in pictures:
        row.paste(picture, (left, 0))
        left += picture.width
    return row


class _Ground(NamedTuple):
    """What all frames of a recording have in common, drawn once: most of a kitchen stands still."""

    sprites: int  # that are drawn on it
    picture: np.ndarray  # [height, width, 4]


def _ground_of(recording: Recording) -> _Ground:
    """Return the picture of the first sprites that are the same in all frames. Later ones lie on top of them."""
    scenes = [_scene_of(frame) for frame in recording.frames]
    same = 0
    for sprites in zip(*(scene.sprites for scene in scenes), strict=False):
        if any(sprite != sprites[0] for sprite in sprites) or sprites[0].shape == "robot":
            break
        same += 1
    figure, axes, _ = _sheet(scenes[0], len(recording.agents))
    painting.draw(dataclasses.replace(scenes[0], sprites=scenes[0].sprites[:same], image=""), axes)
    figure.canvas.draw()
    return _Ground(same, np.asarray(figure.canvas.buffer_rgba()).copy())


def _sheet(scene: Scene, lines: int) -> tuple[Any, Any, float]:
    """Return a figure, the axes for the scene in it, and where they start from below in a figure of height 1."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    tall = 4.4 * min(scene.height / scene.width, 1.2)
    height = 1.0 + tall + 0.24 * lines + 0.35
    figure = Figure(figsize=(4.8, height), dpi=100, facecolor=painting.PAPER)
    FigureCanvasAgg(figure)
    bottom = (0.24 * lines + 0.35) / height
    return figure, figure.add_axes((0.04, bottom, 0.92, tall / height)), bottom


def _still(recording: Recording, ground: _Ground, index: int) -> Any:
    """Return one frame as a Pillow image: the scene, the instruction, and what each agent does.

    A recording that is shorter stays at its end.
    """
    from PIL import Image

    index = min(index, len(recording.frames) - 1)
    frame = recording.frames[index]
    scene = _scene_of(frame)
    figure, axes, bottom = _sheet(scene, len(recording.agents))
    height = figure.get_figheight()
    figure.figimage(ground.picture, zorder=-1)  # otherwise matplotlib draws the axes first
    axes.set_axis_off()
    painting.draw_sprites(scene, axes, ground.sprites)
    words, verdict = _caption(recording, index)
    figure.text(
        0.5, 1 - 0.45 / height, "\n".join(textwrap.wrap(words, 44)[:2]), ha="center", va="center",
        fontsize=11, fontweight="bold" if frame["instruction"] else "normal",
        bbox={"boxstyle": "round,pad=0.4", "facecolor": BUBBLES[verdict], "edgecolor": "#1A1A1A"},
    )  # fmt: skip
    called = names_of(recording.world, recording.agents)
    for row, agent in enumerate(frame["agents"]):
        doing = "–" if frame["over"] else agent.get("doing") or plain(agent["macro"])
        text = f"{called[row]}: {doing}{MARKS[agent['complies']]}"
        figure.text(0.05, bottom - 0.24 * (row + 0.7) / height, text, fontsize=9.5, va="center")
    done = f"{recording.name}   move {frame['time']}   return {frame['earned']:.1f}"
    counted = f"   followed {frame['followed']} of {frame['judged']}" if frame["judged"] else ""
    figure.text(0.05, 0.18 / height, done + counted, fontsize=9.5, va="center")
    figure.canvas.draw()
    return Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")


def _caption(recording: Recording, index: int) -> tuple[str, bool | None]:
    """Return the text of the bubble, and whether it tells of a followed instruction (None: of none that ended)."""
    frame = recording.frames[index]
    if frame["instruction"]:
        besides = f" and “{frame['also']['text']}”" if "also" in frame else ""
        return f"“{frame['instruction']['text']}”{besides}", None
    for earlier in reversed(recording.frames[max(0, index - VERDICT_TICKS) : index + 1]):
        if earlier["verdicts"]:
            verdict = earlier["verdicts"][-1]
            word = "followed" if verdict["followed"] else "not followed"
            (kind,) = kind_words(recording.world, [verdict["kind"]])
            return f"{word}: {kind}", verdict["followed"]
    return "no instruction", None
