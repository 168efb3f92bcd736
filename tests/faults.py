"""Faults on purpose: kills, damaged and malformed files, command lines, a full disk, races, an hour of pages.

    python tests/faults.py --kills 0 --files 10000 --jobs 2 --out results/faults-files.json
    python tests/faults.py --page docs/record/reliability.md   writes the counts of all results/faults-*.json into it

Each sort of fault is injected many times, and each outcome is counted. `survived`: the result is as if nothing had
happened. `refused`: an error that names the file or the value, on one line. `tracebacks`: any other error. `silent`:
something was damaged or out of range, and nobody said so. The last two must be 0. `tests/test_faults.py` is the short
form.

Injections come in blocks. A block has its own seed and its own folder, so its faults are the same in any process.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from fault_commands import command_lines
from fault_counts import HEADER, NUMBERS, Count, total
from fault_files import damaged, malformed_instructions, reshaped
from fault_processes import NUMPY, WHOLE, full_disk, kills, races

from mavic.experiment import records
from mavic.storage import files

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "results"
PAGE = re.compile(r"(<!-- faults -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Sort:
    """One sort of fault: who injects it, which option says how often, its share of that, and the size of a block."""

    inject: Callable[[Count, int, int, Path], None]
    option: str
    share: float = 1.0
    block: int = 100


SORTS = {
    "damaged weights of policies": Sort(partial(damaged, "policy", "weights"), "files", 0.08),
    "damaged descriptions of policies": Sort(
        partial(damaged, "policy", "description"), "files", 0.08
    ),
    "damaged weights of checkpoints": Sort(
        partial(damaged, "checkpoint", "weights"), "files", 0.08
    ),
    "damaged notes of checkpoints": Sort(
        partial(damaged, "checkpoint", "description"), "files", 0.08
    ),
    "damaged records": Sort(partial(damaged, "record", ""), "files", 0.08),
    "policies of other shapes": Sort(partial(reshaped, "policy", "description"), "files", 0.1),
    "checkpoints of other shapes": Sort(
        partial(reshaped, "checkpoint", "description"), "files", 0.1
    ),
    "records of other shapes": Sort(partial(reshaped, "record", ""), "files", 0.1),
    "instruction files": Sort(malformed_instructions, "files", 0.1),
    "command lines": Sort(command_lines, "files", 0.2),
    "full disk and file limits": Sort(full_disk, "disk", block=10),
    "races for a folder": Sort(races, "races", block=400),
    "kills, programs in numpy": Sort(partial(kills, NUMPY), "kills", block=4),
    "kills of mavic train": Sort(partial(kills, WHOLE), "trainings", block=4),
}
OPTIONS = {  # how often each is asked for, unless it is said otherwise
    "kills": (100, "kills of a training whose programs are numpy; only the host is real"),
    "trainings": (0, "kills of `mavic train`"),
    "files": (10_000, "damaged and malformed files, and command lines"),
    "disk": (40, "disks that are full"),
    "races": (400, "threads that want the same folder"),
}


@dataclass(frozen=True)
class Block:
    """So many injections of one sort with one seed."""

    name: str
    times: int
    seed: int


def blocks_of(asked: dict[str, int]) -> list[Block]:
    """All blocks; those that take longest come first."""
    found = []
    for name, sort in reversed(SORTS.items()):
        left, seed = round(asked.get(sort.option, 0) * sort.share), 0
        while left > 0:
            found.append(Block(name, min(left, sort.block), seed))
            left, seed = left - sort.block, seed + 1
    return found


def inject(block: Block, root: Path) -> Count:
    """Inject the faults of a block in its own folder. A mistake of the injector itself counts as a traceback."""
    count = Count(block.name)
    place = root / re.sub(r"\W+", "-", block.name) / str(block.seed)
    place.mkdir(parents=True)
    try:
        SORTS[block.name].inject(count, block.times, block.seed, place)
    except Exception as error:
        count.add("tracebacks", f"{block}: {type(error).__name__}: {error}")
    return count


def all_counts(asked: dict[str, int], jobs: int = 1) -> Iterator[tuple[Count, int, int]]:
    """Inject every block; yield its count, and how many blocks are done and how many there are."""
    blocks = blocks_of(asked)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        if jobs == 1:
            for done, block in enumerate(blocks, 1):
                yield inject(block, Path(name)), done, len(blocks)
            return
        context = multiprocessing.get_context("spawn")  # a forked process must not use JAX
        with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=context) as pool:
            started = [pool.submit(inject, block, Path(name)) for block in blocks]
            for done, ended in enumerate(concurrent.futures.as_completed(started), 1):
                yield ended.result(), done, len(blocks)


def summed(counts: list[Count]) -> list[Count]:
    """One count for each sort that was injected, in the order of the table."""
    by_name = {name: [count for count in counts if count.name == name] for name in SORTS}
    return [total(found, name) for name, found in by_name.items() if found]


def recorded() -> list[dict]:
    """The counts of all runs that are kept."""
    runs = [json.loads(path.read_text()) for path in sorted(RECORDS.glob("faults-*.json"))]
    return [count for run in runs for count in run["counts"]]


def markdown(counts: list[dict]) -> str:
    """Counts as a table."""
    lines = [f"| faults | {' | '.join(NUMBERS)} |", "|---" * (1 + len(NUMBERS)) + "|"]
    for count in counts:
        lines.append(f"| {count['name']} | " + " | ".join(f"{count[n]:,}" for n in NUMBERS) + " |")
    return "\n".join(lines) + "\n"


def pages(number: int, minutes: int) -> None:
    """Let many pages watch and speak for a while; how it went is printed."""
    environment = {**os.environ, "MAVIC_CROWD": f"{number} {60 * minutes}"}
    test = "tests/apps/test_playground_load.py::test_an_hour_of_pages"
    command = [sys.executable, "-m", "pytest", "-m", "slow", "-s", test]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, (default, meaning) in OPTIONS.items():
        parser.add_argument(
            f"--{name}", type=int, default=default, help=f"{meaning} (default {default})"
        )
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side (default 1)")
    parser.add_argument("--out", type=Path, help="a JSON file for the counts, kept up to date")
    parser.add_argument("--pages", type=int, default=0, help="pages of the playground (default 0)")
    parser.add_argument("--minutes", type=int, default=60, help="how long they watch (default 60)")
    parser.add_argument("--page", type=Path, help="only write the counts that are kept into a page")
    asked = parser.parse_args()
    if asked.page:
        table = markdown(recorded())
        asked.page.write_text(PAGE.sub(rf"\1{table}\2", asked.page.read_text()))
        return
    with tempfile.TemporaryDirectory() as cache:  # trainings that are killed compile once
        os.environ["XDG_CACHE_HOME"] = cache
        found = injected(asked)
    if asked.pages:
        pages(asked.pages, asked.minutes)
    sys.exit(bool(found.tracebacks or found.silent))


def injected(asked: argparse.Namespace) -> Count:
    """Inject all that is asked for, print and record the counts, and return their sum."""
    numbers, began, counts = {name: getattr(asked, name) for name in OPTIONS}, time.time(), []
    for count, done, of in all_counts(numbers, asked.jobs):
        counts.append(count)
        print(f"{done}/{of} {time.time() - began:.0f} s  {count.name}", flush=True)
        if asked.out:
            record = {
                "asked": numbers,
                "blocks": {"done": done, "of": of},
                "jobs": asked.jobs,
                "seconds": round(time.time() - began),
                "versions": records.versions(),
                "counts": [asdict(count) for count in summed(counts)],
            }
            files.write_text(asked.out, json.dumps(record, indent=1) + "\n")
    whole = total(counts)
    print(HEADER, *summed(counts), whole, *whole.examples, sep="\n", flush=True)
    return whole


if __name__ == "__main__":
    main()
