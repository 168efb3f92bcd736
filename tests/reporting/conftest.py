"""A small study and its report, made once."""

import pytest
from sample_records import study

from mavic.reporting import report as reports
from mavic.reporting.report import report


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "box_pushing"
    study(folder)
    return folder, report(folder)


@pytest.fixture
def tables_alone(monkeypatch):
    """Reports draw no figures, which takes longest. For tests of tables."""
    monkeypatch.setattr(reports, "write_figures", lambda rows, folder: ())
