"""The page that says why the paper's compliance does not come out is what records and planner give."""

from __future__ import annotations

import json

import pytest

from mavic.envs import api
from tools import paper_compliance as page

STORED = json.loads((page.RESULTS / f"{page.NAME}.json").read_text(encoding="utf-8"))


def test_the_shares_are_those_of_the_records():
    assert STORED["counted"] == {w: page.counted(page.RESULTS, w) for w in api.BUILT_IN}


def test_the_page_is_made_of_the_stored_figures():
    text = (page.RESULTS / f"{page.NAME}.md").read_text(encoding="utf-8")
    assert text == page.markdown(STORED)


@pytest.mark.long
def test_what_obeying_earns_is_what_the_planner_finds():
    assert STORED["obeying"]["box_pushing"] == page.obeying_in_box_pushing()
