"""The table of backbones on its page is the one of its file."""

from __future__ import annotations

from pathlib import Path

from mavic.reporting import backbones

ROOT = Path(__file__).parents[2]
ROW = {
    "world": "box_pushing",
    "backbone": "acac",
    "method": "mavic",
    "network": "residual",
    "seeds": [0, 1],
    "base": {"mean": 290.4, "low": 290.0, "high": 291.0, "min": 289.5},
    "followed": {"mean": 0.99, "low": 0.98, "high": 1.0, "min": 0.975},
    "steps_per_second": 12345.6,
}


def test_the_page_shows_the_table_of_its_file():
    page = (ROOT / "docs" / "backbones.md").read_text(encoding="utf-8")
    table = backbones.read_table(ROOT / "results" / "backbones")
    assert backbones.with_table(page, table) == page


def test_a_row_shows_mean_interval_worst_seed_and_speed():
    page = f"before\n{backbones.BEGIN}\nold\n{backbones.END}\nafter\n"
    made = backbones.with_table(page, [ROW])
    assert made.startswith("before\n") and made.endswith("after\n") and "old" not in made
    want = "| acac | mavic | residual | 2 | 290.40 [290.00, 291.00], worst 289.50 "
    assert want + "| 99.0% [98.0%, 100.0%], worst 97.5% | 12,346 |" in made
    assert backbones.NO_FIGURES in backbones.with_table(page, [])
