"""The short form of `make test-faults`: every sort of fault a few times. None may end in a traceback or in silence."""

from __future__ import annotations

import faults
import pytest

pytestmark = pytest.mark.long


def test_every_sort_of_fault_is_survived_or_refused():
    counts = list(faults.all_counts(kill=1, file=160, disk=2, race=24))
    print(faults.HEADER, *counts, sep="\n")
    wrong = [example for count in counts for example in count.examples]
    assert not wrong and all(count.tracebacks == count.silent == 0 for count in counts)
    assert sum(count.injected for count in counts) > 160
    assert all(count.injected for count in counts)
    refused = {count.name: count.refused for count in counts}
    assert all(
        refused[name] for name in ("command lines", "instruction files", "races for a folder")
    )


def test_a_fault_that_nobody_notices_is_counted(tmp_path):
    """The counters can tell: a reader that checks nothing is silent, one that stumbles makes a traceback."""
    path = tmp_path / "file"
    path.write_text("1")
    silent = faults.Count("careless")
    faults.judge(silent, faults.Sample(path, lambda: 2, (ValueError,)), lambda _: "silent", "")
    faults.judge(
        silent, faults.Sample(path, lambda: {}["x"], (ValueError,)), lambda _: "silent", ""
    )
    assert (silent.silent, silent.tracebacks, silent.refused) == (1, 1, 0)
