"""Figures are drawn for every condition, also where numbers are missing."""

import numpy as np
import pytest
from sample_records import config_of, lines_of

from mavic.experiment.records import write
from mavic.reporting.figures import _zoom_from
from mavic.reporting.report import report


@pytest.mark.parametrize(
    ("shares", "from_"),
    [((0.2, 0.96, 0.98, 1.0), 0.97), ((0.2, 0.91, 0.95, 0.98), 0.9), ((0.1, 0.2, 0.98), 0.97)],
)
def test_the_zoomed_panel_holds_at_least_half_of_the_points(shares, from_):
    assert _zoom_from(np.array(shares)) == from_


def test_figures_are_pictures(made):
    _, paths = made
    names = {path.stem for path in paths.figures}
    assert names == {
        f"{figure}-default-live-by-kind" for figure in ("curves", "kinds", "both", "under")
    }
    for path in paths.figures:
        data = path.read_bytes()
        assert len(data) > 5_000
        if path.suffix == ".png":
            assert data.startswith(b"\x89PNG\r\n\x1a\n")
            assert int.from_bytes(data[16:20]) == 1350  # 9 inches: twice README width or so
        else:
            assert b"<svg" in data


def test_figures_of_a_single_seed_without_curves_or_optimum(tmp_path):
    lines = lines_of(config_of(world="warehouse"), [470.0], [0.9], [0.0], optimum=None)
    write(tmp_path / "a.jsonl", [lines[0], lines[-1]])
    names = {path.stem.split("-")[0] for path in report(tmp_path).figures}
    assert names == {"curves", "kinds", "both"}  # no share without a best plan
