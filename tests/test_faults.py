"""The short form of `make test-faults`: every sort of fault a few times. None may end in a traceback or in silence."""

from __future__ import annotations

import fault_surfaces
import faults
import pytest
from fault_counts import Count
from fault_files import Sample, judge


def test_a_few_damaged_files_and_wrong_commands_are_survived_or_refused():
    counts = faults.summed([count for count, *_ in faults.all_counts({"files": 40})])
    assert not [example for count in counts for example in count.examples]
    assert sum(count.injected for count in counts) >= 30
    assert sum(count.refused for count in counts) >= 10


@pytest.mark.parametrize(
    ("inject", "times", "refused"),
    [
        (fault_surfaces.calls, 150, 100),
        (fault_surfaces.configurations, 4, 2),
        (fault_surfaces.requests, 15, 5),
    ],
)
def test_what_is_handed_in_is_used_or_refused(tmp_path, inject, times, refused):
    count = Count(inject.__name__)
    inject(count, times, 0, tmp_path)
    assert not count.examples and count.injected == times and count.refused >= refused


@pytest.mark.long
def test_every_sort_of_fault_is_survived_or_refused():
    asked = {"kills": 1, "files": 160, "disk": 2, "races": 24, "surfaces": 200}
    counts = faults.summed([count for count, *_ in faults.all_counts(asked)])
    print(faults.HEADER, *counts, sep="\n")
    wrong = [example for count in counts for example in count.examples]
    assert not wrong and all(count.tracebacks == count.silent == 0 for count in counts)
    assert sum(count.injected for count in counts) >= 187
    assert all(count.injected for count in counts)
    refused = {count.name: count.refused for count in counts}
    assert all(
        refused[name] for name in ("command lines", "instruction files", "races for a folder")
    )


def test_a_fault_that_nobody_notices_is_counted(tmp_path):
    """The counters can tell: a reader that checks nothing is silent, one that stumbles makes a traceback."""
    path = tmp_path / "file"
    path.write_text("1")
    silent = Count("careless")
    judge(silent, Sample(path, lambda: 2, (ValueError,)), lambda _: "silent", "")
    judge(silent, Sample(path, lambda: {}["x"], (ValueError,)), lambda _: "silent", "")
    assert (silent.silent, silent.tracebacks, silent.refused) == (1, 1, 0)
