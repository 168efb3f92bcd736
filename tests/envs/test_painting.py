"""Everything in a scene is in the picture, with enough contrast to read it."""

from __future__ import annotations

import itertools

import pytest

from mavic.envs import painting
from mavic.types import Scene, Sprite


def test_text_shows_areas_things_headings_held_things_and_notes():
    scene = Scene(
        width=3,
        height=2,
        sprites=(
            Sprite(shape="goal", x=0, y=0, width=3),
            Sprite(shape="wall", x=0, y=1),
            Sprite(shape="box", x=1, y=0, width=2, label="BIG"),
            Sprite(shape="robot", x=2, y=1, label="0", heading="N", holds="tomato"),
            Sprite(shape="robot", x=2, y=1, label="1", heading="W"),
        ),
        notes=("hello",),
    )
    assert painting.text(scene).splitlines() == [
        "┌──────────────────┐",
        "│░░░░░░[   BIG    ]│",
        "│██████      ▲0*◀1 │",
        "└──────────────────┘",
        "robot 0 holds tomato",
        "hello",
    ]


def test_text_places_things_between_cells():
    scene = Scene(width=2, height=1, sprites=(Sprite(shape="human", x=0.5, y=0, label="a"),))
    assert painting.text(scene).splitlines()[1] == "│   ☺a       │"


@pytest.mark.parametrize("colour", painting.PALETTE)
def test_text_has_aa_contrast_on_every_colour(colour):
    fill = painting.PALETTE[colour]
    assert painting._contrast(painting.ink(fill), fill) >= 4.5


def test_contrast_agrees_with_known_values():
    assert painting._contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert painting._contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)


def test_no_two_colours_look_alike():
    for one, two in itertools.combinations(painting.PALETTE.values(), 2):
        apart = sum((int(one[i : i + 2], 16) - int(two[i : i + 2], 16)) ** 2 for i in (1, 3, 5))
        assert apart > 40**2


def test_draw_puts_every_sprite_on_the_axes():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.subplots()
    sprites = tuple(
        Sprite(shape=shape, x=i, y=0, label=shape, heading="E" if shape == "robot" else "")
        for i, shape in enumerate(painting.SHAPES)
    )
    shared = tuple(
        Sprite(shape="robot", x=0, y=1, label=name, heading="N", holds="cup") for name in "ab"
    )
    painting.draw(Scene(width=len(sprites), height=2, sprites=sprites + shared, notes=("n",)), axes)
    texts = {text.get_text() for text in axes.texts}
    assert texts == {*painting.SHAPES, "a", "b", "cup"}
    assert len(axes.patches) == len(sprites) + 1 + 2 * 2  # a robot has a nose
    assert axes.get_xlabel() == "n"
    figure.canvas.draw()
