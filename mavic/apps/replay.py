"""Films as files: one HTML page that needs no server and no network, or a GIF.

The page is drawn by `web/paint.js` from the same frames and the same palette as every other
painter; what is data stays data: no text of a film is ever markup.
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
from typing import Any

import numpy as np

from mavic.apps.stage import Film, Frame
from mavic.envs import painting
from mavic.types import Scene, Sprite

TICKS_A_SECOND = 3
MARKS = {None: "", True: " ✓", False: " ✗"}
BUBBLES = {None: "#FFFFFF", True: "#D8F0E6", False: "#FBE3DA"}


def look() -> dict[str, Any]:
    """What `paint.js` must know to draw as the other painters do."""
    return {
        "palette": painting.PALETTE,
        "ink": {name: painting.ink(fill) for name, fill in painting.PALETTE.items()},
        "paper": painting.PAPER,
        "grid": painting.GRID,
        "shapes": list(painting.SHAPES),
    }


def pack(film: Film) -> dict[str, Any]:
    """A film as JSON in which parts that come again and again (sprites, notes, what an agent is
    doing) stand once, in a pool; `MavicPaint.unpack` undoes it."""
    pool: dict[str, int] = {}

    def pooled(parts: Sequence[Any]) -> list[int]:
        return [pool.setdefault(json.dumps(_rounded(part, 3)), len(pool)) for part in parts]

    frames: list[dict[str, Any]] = []
    for frame in film.frames:
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
                "values": values and [_rounded(values.get(kind), 2) for kind in film.kinds],
            }
        )
    facts = {name.name: getattr(film, name.name) for name in dataclasses.fields(film)}
    return {**facts, "frames": frames, "pool": [json.loads(part) for part in pool]}


def _rounded(part: Any, digits: int) -> Any:
    if isinstance(part, float):
        return round(part, digits)
    if isinstance(part, dict):
        return {name: _rounded(value, digits) for name, value in part.items()}
    return part


def page(films: Film | Sequence[Film], title: str) -> str:
    """The whole page; two films stand side by side."""
    films = [films] if isinstance(films, Film) else list(films)
    if not 1 <= len(films) <= 2:
        raise ValueError(f"a page shows one film or two, not {len(films)}")
    if len({film.world for film in films}) > 1:
        raise ValueError(f"the films show different worlds: {', '.join(f.world for f in films)}")
    web = resources.files("mavic.apps") / "web"
    template = (web / "replay.html").read_text(encoding="utf-8")
    data = {"look": look(), "films": [pack(film) for film in films]}
    written = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    parts = {
        "title": markup.escape(title),
        # JSON may write any character as \u....; so nothing in it can end the script element
        "data": written.replace("<", "\\u003c"),
        "style": (web / "show.css").read_text(encoding="utf-8"),
        "paint": (web / "paint.js").read_text(encoding="utf-8"),
        "show": (web / "show.js").read_text(encoding="utf-8"),
    }
    policy = "; ".join(
        [
            "default-src 'none'",
            "img-src data:",
            f"script-src {_hashes('script', template, parts)}",
            f"style-src {_hashes('style', template, parts)}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return _fill(template, {**parts, "policy": policy})


def _fill(template: str, parts: dict[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def _hashes(tag: str, template: str, parts: dict[str, str]) -> str:
    """The content security policy's names of the inline scripts or styles, which alone may run."""
    bodies = re.findall(rf"<{tag}>(.*?)</{tag}>", template, re.DOTALL)
    digests = (hashlib.sha256(_fill(body, parts).encode()).digest() for body in bodies)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def html(films: Film | Sequence[Film], path: str | Path, title: str) -> Path:
    """Write the page of a film, or of two side by side, for any browser."""
    path = Path(path).with_suffix(".html")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(films, title), encoding="utf-8")
    return path


def scene_of(frame: Frame) -> Scene:
    """The frame's picture as the painters of `mavic.envs.painting` take it, without notes."""
    scene = frame["scene"]
    sprites = tuple(Sprite(**sprite) for sprite in scene["sprites"])
    return Scene(width=scene["width"], height=scene["height"], sprites=sprites)


def gif(
    films: Film | Sequence[Film],
    path: str | Path,
    *,
    ticks_a_second: float = TICKS_A_SECOND,
    longest: int | None = None,
) -> Path:
    """Write a film, or two side by side, as a looping picture, its last `longest` ticks if given;
    needs matplotlib (`mavic[report]`)."""
    path = Path(path).with_suffix(".gif")
    path.parent.mkdir(parents=True, exist_ok=True)
    films = [films] if isinstance(films, Film) else list(films)
    length = max(len(film.frames) for film in films)
    first = 0 if longest is None else max(0, length - longest)
    pictures = [_beside([_still_at(film, i) for film in films]) for i in range(first, length)]
    # one table of colours for all frames: nothing flickers
    colours = max(pictures, key=lambda picture: len(picture.getcolors(1 << 24))).quantize(128)
    pictures = [picture.quantize(palette=colours, dither=0) for picture in pictures]
    tick = round(1000 / ticks_a_second)
    pictures[0].save(
        path,
        save_all=True,
        append_images=pictures[1:],
        duration=[tick] * (len(pictures) - 1) + [max(4 * tick, 1500)],
        loop=0,
        optimize=True,
    )
    return path


def _still_at(film: Film, index: int) -> Any:
    """A shorter film waits at its end."""
    return still(film, min(index, len(film.frames) - 1))


def _beside(pictures: Sequence[Any]) -> Any:
    """Pictures of one height in a row."""
    if len(pictures) == 1:
        return pictures[0]
    from PIL import Image

    wide = sum(picture.width for picture in pictures)
    row = Image.new("RGB", (wide, max(picture.height for picture in pictures)), painting.PAPER)
    left = 0
    for picture in pictures:
        row.paste(picture, (left, 0))
        left += picture.width
    return row


def still(film: Film, index: int) -> Any:
    """One frame as a Pillow image: the picture, what is said, what everybody does."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    frame = film.frames[index]
    scene = scene_of(frame)
    lines = len(film.agents)
    tall = 4.4 * min(scene.height / scene.width, 1.2)
    height = 1.0 + tall + 0.24 * lines + 0.35
    figure = Figure(figsize=(4.8, height), dpi=100, facecolor=painting.PAPER)
    canvas = FigureCanvasAgg(figure)
    bottom = (0.24 * lines + 0.35) / height
    axes = figure.add_axes((0.04, bottom, 0.92, tall / height))
    painting.draw(scene, axes)
    words, verdict = _caption(film, index)
    figure.text(
        0.5, 1 - 0.45 / height, "\n".join(textwrap.wrap(words, 44)[:2]), ha="center", va="center",
        fontsize=11, fontweight="bold" if frame["instruction"] else "normal",
        bbox={"boxstyle": "round,pad=0.4", "facecolor": BUBBLES[verdict], "edgecolor": "#1A1A1A"},
    )  # fmt: skip
    for row, agent in enumerate(frame["agents"]):
        doing = "–" if frame["over"] else agent["macro"].lower().replace("_", " ")
        text = f"{agent['name'].replace('_', ' ')}: {doing}{MARKS[agent['complies']]}"
        figure.text(0.05, bottom - 0.24 * (row + 0.7) / height, text, fontsize=9.5, va="center")
    done = f"tick {frame['time']}   return {frame['earned']:.1f}"
    counted = f"   followed {frame['followed']} of {frame['judged']}" if frame["judged"] else ""
    figure.text(0.05, 0.18 / height, f"{film.name}   {done}{counted}", fontsize=9.5, va="center")
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def _caption(film: Film, index: int) -> tuple[str, bool | None]:
    """What stands in the bubble, and whether it is praise or blame."""
    frame = film.frames[index]
    if frame["instruction"]:
        return f"“{frame['instruction']['text']}”", None
    for earlier in reversed(film.frames[max(0, index - 3) : index + 1]):
        if earlier["verdicts"]:
            verdict = earlier["verdicts"][-1]
            word = "followed" if verdict["followed"] else "not followed"
            return f"{word}: {verdict['kind']}", verdict["followed"]
    return "no instruction", None
