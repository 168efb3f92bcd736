"""Drawing of a `Scene`: `text` for terminals, `draw` for matplotlib axes.

A sprite's `x`, `y` is its upper left corner. Colours are names of `PALETTE`. Its hues are those of Okabe and Ito,
which people with any colour vision can tell apart. Texts are black or white, whichever has more contrast with the
fill. Solid things have a black outline, so no information depends on hue alone.
"""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any

from mavic.types import Scene, Sprite

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALETTE = {
    "white": "#FFFFFF",
    "grey": "#B8B8B8",
    "slate": "#5A5F66",
    "black": "#1A1A1A",
    "blue": "#0072B2",
    "sky": "#56B4E9",
    "green": "#009E73",
    "yellow": "#F0E442",
    "orange": "#E69F00",
    "red": "#D55E00",
    "pink": "#CC79A7",
    "purple": "#6A3D9A",
    "sand": "#E3C9A0",
    "brown": "#8C5A2B",
}
PAPER = "#FFFFFF"
GRID = "#DDDDDD"

# The characters with which `text` fills areas. Shapes that are not listed here stand on such areas.
GROUND = {"goal": "░", "wall": "█", "counter": "▒", "zone": " ", "spot": " "}
THINGS = ("robot", "box", "tool", "human", "station", "food", "plate")
SHAPES: tuple[str, ...] = (*GROUND, *THINGS)
ARROWS = {"N": "▲", "E": "▶", "S": "▼", "W": "◀", "": "●"}
CELL = 6  # width of a cell in characters, so that two robots fit side by side


def _luminance(colour: str) -> float:
    """Return the relative luminance of a hex colour (WCAG 2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, two: str) -> float:
    """Return the contrast ratio of two hex colours (WCAG 2). Text needs 4.5 for level AA."""
    high, low = sorted((_luminance(one), _luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def ink(fill: str) -> str:
    """Return black or white, whichever has more contrast with the fill."""
    return max(("#000000", "#FFFFFF"), key=lambda colour: _contrast(colour, fill))


def text(scene: Scene) -> str:
    """Return the picture in characters, then a line for each thing that is held, then the scene's notes."""
    wide, high = round(scene.width * CELL), max(round(scene.height), 1)
    chars = [[" "] * wide for _ in range(high)]
    taken = [[False] * wide for _ in range(high)]
    for sprite in scene.sprites:
        left = min(max(round(sprite.x * CELL), 0), wide - 1)
        right = min(max(round((sprite.x + sprite.width) * CELL), left + 1), wide)
        top = min(max(round(sprite.y), 0), high - 1)
        bottom = min(max(round(sprite.y + sprite.height), top + 1), high)
        if sprite.shape in GROUND:
            for row in range(top, bottom):
                chars[row][left:right] = GROUND[sprite.shape] * (right - left)
        middle = (top + bottom - 1) // 2
        word = _word(sprite, right - left)
        start = _free(taken[middle], left, right, len(word))
        for column, char in enumerate(word[: wide - start], start):
            chars[middle][column] = char
            taken[middle][column] = sprite.shape not in GROUND
    rows = ["".join(row) for row in chars]
    frame = ["┌" + "─" * wide + "┐", *(f"│{row}│" for row in rows), "└" + "─" * wide + "┘"]
    held = [f"{s.shape} {s.label} holds {s.holds}" for s in scene.sprites if s.holds]
    return "\n".join([*frame, *held, *scene.notes])


def _word(sprite: Sprite, room: int) -> str:
    """Return a sprite as a few characters, at most `room`."""
    if sprite.shape == "robot":
        return f"{ARROWS[sprite.heading]}{sprite.label}{'*' if sprite.holds else ''}"[:room]
    if sprite.shape == "human":
        return f"☺{sprite.label}"[:room]
    if sprite.shape == "spot":
        return sprite.label[:room] or "·".center(room)
    if sprite.shape in ("box", "station"):
        return f"[{sprite.label[: room - 2].center(room - 2)}]"
    return sprite.label[:room]


def _free(taken: list[bool], left: int, right: int, length: int) -> int:
    """Return the first column of a cell where a word covers no other, or the start of the cell."""
    for start in range(left, max(right - length, left) + 1):
        if not any(taken[start : start + length]):
            return start
    return left


def draw(scene: Scene, axes: Axes) -> None:
    """Draw the picture on matplotlib axes, with the notes below it."""
    axes.set_facecolor(PAPER)
    axes.set_xticks(range(int(scene.width) + 1), labels=[])
    axes.set_yticks(range(int(scene.height) + 1), labels=[])
    axes.grid(True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    draw_sprites(scene, axes)
    if scene.notes:
        axes.set_xlabel("\n".join(scene.notes), fontsize=9, loc="left")


def draw_sprites(scene: Scene, axes: Axes, first: int = 0) -> None:
    """Draw the sprites of a scene on matplotlib axes, from number `first` on."""
    axes.set_xlim(0, scene.width)
    axes.set_ylim(scene.height, 0)
    axes.set_aspect("equal")
    if scene.image:
        from matplotlib.image import imread

        pixels = imread(io.BytesIO(base64.b64decode(scene.image.partition(",")[2])), format="png")
        axes.imshow(pixels, extent=(0, scene.width, scene.height, 0), zorder=1)
    places = [(s.x, s.y) for s in scene.sprites if s.shape == "robot"]
    drawn: list[tuple[float, float]] = []
    for number, sprite in enumerate(scene.sprites):
        shift, place = 0.0, (sprite.x, sprite.y)
        if sprite.shape == "robot" and places.count(place) > 1:
            shift = 0.4 * drawn.count(place) - 0.2
            drawn.append(place)
        if number >= first:
            _draw_sprite(sprite, axes, number + 2, shift)


def _draw_sprite(sprite: Sprite, axes: Axes, layer: int, shift: float) -> None:
    """Draw one sprite. Robots that share a cell are smaller, and `shift` moves each aside."""
    from matplotlib import patches, patheffects

    fill = PALETTE[sprite.colour]
    x, y = sprite.x + shift, sprite.y + shift
    middle = (x + sprite.width / 2, y + sprite.height / 2)
    radius = (0.25 if shift else 0.36) * min(sprite.width, sprite.height)
    solid: dict[str, Any] = {"facecolor": fill, "edgecolor": "#000000", "linewidth": 1.4}
    shapes: list[Any]
    match sprite.shape:
        case "goal" | "zone":
            hatch = "//" if sprite.shape == "goal" else None
            shapes = [
                patches.Rectangle(
                    (x, y), sprite.width, sprite.height,
                    facecolor=(*_rgb(fill), 0.25), edgecolor=fill, linewidth=1.2, hatch=hatch,
                )
            ]  # fmt: skip
        case "spot":
            shapes = [
                patches.Circle(middle, radius / 2, fill=False, edgecolor="#5A5F66", linestyle="--")
            ]
        case "robot":
            shapes = [patches.Circle(middle, radius, **solid), *_nose(sprite, middle, radius)]
        case "human":
            shapes = [patches.Ellipse(middle, 1.3 * radius, 2 * radius, **solid)]
        case "food" | "plate":
            shapes = [patches.Circle(middle, 0.75 * radius, **solid)]
        case "tool":
            shapes = [patches.RegularPolygon(middle, 4, radius=0.8 * radius, **solid)]
        case "wall" | "counter":
            shapes = [patches.Rectangle((x, y), sprite.width, sprite.height, **solid)]
        case _:
            corner = (x + 0.12, y + 0.12)
            style = patches.BoxStyle("round", pad=0, rounding_size=0.08)
            shapes = [
                patches.FancyBboxPatch(
                    corner, sprite.width - 0.24, sprite.height - 0.24, boxstyle=style, **solid
                )
            ]
    for shape in shapes:
        shape.set_zorder(layer)
        axes.add_patch(shape)
    if sprite.label:
        ground = PAPER if sprite.shape in ("goal", "zone", "spot") else fill
        named = (
            sprite.name.replace(" ", "\n", 1) if sprite.picture and sprite.shape != "robot" else ""
        )
        axes.text(
            *middle, named or sprite.label, color=ink(ground), zorder=layer + 0.5, fontsize=7 if named else 9,
            ha="center", va="center", fontweight="bold", clip_on=True, linespacing=0.9,
            path_effects=[patheffects.withStroke(linewidth=2, foreground=ground)],
        )  # fmt: skip
    if sprite.holds:
        axes.text(
            middle[0] + radius, middle[1] - radius, sprite.holds, zorder=layer + 0.6, fontsize=7,
            ha="center", va="center", color="#000000", clip_on=False,
            bbox={"boxstyle": "round,pad=0.2", "facecolor": PAPER, "edgecolor": "#000000"},
        )  # fmt: skip


def _nose(sprite: Sprite, middle: tuple[float, float], radius: float) -> list[Any]:
    """Return the black wedge on a robot's rim that shows its heading."""
    from matplotlib import patches

    if not sprite.heading:
        return []
    east, south = {"N": (0, -1), "E": (1, 0), "S": (0, 1), "W": (-1, 0)}[sprite.heading]
    tip = (middle[0] + 1.38 * radius * east, middle[1] + 1.38 * radius * south)
    base = (middle[0] + 0.86 * radius * east, middle[1] + 0.86 * radius * south)
    side = 0.5 * radius
    corners = [
        tip,
        (base[0] - side * south, base[1] + side * east),
        (base[0] + side * south, base[1] - side * east),
    ]
    return [patches.Polygon(corners, closed=True, facecolor="#000000", edgecolor="#000000")]


def _rgb(colour: str) -> tuple[float, float, float]:
    """Return a hex colour as fractions of red, green and blue."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue
