"""A replay's page as a GIF: each tick as a browser draws it, with what is forbidden crossed out.

    mavic replay overcooked/mavic --seed 1 --say 6 "don't use the left cutting board" 70 --out /tmp/board.html
    python -m tools.moving_picture /tmp/board.html docs/figures/left-board.gif
    python -m tools.moving_picture /tmp/board.html docs/figures/overcooked.png 30     one tick

needs playwright, pillow and Debian's chromium.
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from typing import Any

WIDTH, HEIGHT = 480, 900  # of the window; the picture is the part that shows the team
TICK, LAST = 330, 2_500  # milliseconds


def pictures(page: Path) -> list[Any]:
    """Return one picture of the team for each tick of a replay's page."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as engine:
        browser = engine.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        # The page lets no other style in, so that is switched off here.
        tab = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce", bypass_csp=True
        )
        tab.goto(page.resolve().as_uri())
        tab.add_style_tag(content="#bar, header { display: none !important }")
        tab.evaluate("window.dispatchEvent(new Event('resize'))")
        ticks = int(tab.locator("#scrub").get_attribute("max") or 0)
        found = []
        for _ in range(ticks + 1):
            card = tab.locator("#stage > :not(noscript)").first.bounding_box()
            scene = tab.locator("#stage canvas").first.bounding_box()
            assert card is not None and scene is not None
            # The team's name, the instruction, the job and the scene; not the numbers below it.
            height = scene["y"] + scene["height"] + 8 - card["y"]
            shot = tab.screenshot(
                clip={"x": card["x"], "y": card["y"], "width": card["width"], "height": height}
            )
            found.append(Image.open(io.BytesIO(shot)).convert("RGB"))
            tab.keyboard.press("ArrowRight")
        browser.close()
    return found


def main() -> None:
    """Write the GIF that the command line names, or one tick of it as a PNG."""
    page, out, *tick = sys.argv[1:]
    shots = pictures(Path(page))
    if tick:
        shots[int(tick[0])].quantize(96).save(out, optimize=True)
        return
    low = min(shot.height for shot in shots)
    shots = [shot.crop((0, 0, shot.width, low)) for shot in shots]
    colours = shots[len(shots) // 2].quantize(96)  # one table for all, so that nothing flickers
    first, *others = (shot.quantize(palette=colours, dither=0) for shot in shots)
    first.save(
        out, save_all=True, append_images=others, duration=[TICK] * len(others) + [LAST], loop=0,
        optimize=True,
    )  # fmt: skip
    print(f"{out}: {len(shots)} ticks of {first.size}, {Path(out).stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()
