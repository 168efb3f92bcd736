"""Find the numbers of a page that have no record.

    python -m tools.cited README.md docs/record/results.md

prints every number with a decimal point that no file of the folder `results` beside the page holds. Known numbers are
those of JSON files, and the mean and the least over seeds of each entry of a record's score. Blocks that commands make
are not searched. Records of studies do not count, for their pages have JSON files. A section whose heading names a
world may cite only that world's files and the pages of studies. A number with another source stands in a comment of
its section:

    <!-- not from a record: 16.0 7.4 (docs/record/lab.md 77) -->

Together the files hold nearly every number with one decimal. A paragraph, which ends with an empty line, can name the
files that it cites; then only they count:

    <!-- from: heatmap.json overcooked/table.json -->
"""

from __future__ import annotations

import functools
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mavic.envs import api
from mavic.experiment import records
from mavic.reporting.studies import COPIED
from tools.headline import BLOCKS

NUMBER = re.compile(r"(?<![\w.§/–-])[−-]?(?:\d{1,3}(?:,\d{3})+|\d*)\.\d+(?!\w|\.\d)")
FROM = re.compile(r"<!-- from:(.*?)-->", re.DOTALL)
PARAGRAPHS = re.compile(r"\n\s*\n")
MILLIONS = re.compile(r".{0,40}\bmillion\b")
SOURCED = re.compile(r"<!-- not from a record:(.*?)-->", re.DOTALL)
MADE = re.compile(rf"<!-- (?:{'|'.join(BLOCKS)})\b.*?<!-- end -->", re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
HEADING = re.compile(r"^(#+ .*)$", re.MULTILINE)


def uncited(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the heading and the text of each number that has no record."""
    results = next(p / "results" for p in page.resolve().parents if (p / "results").is_dir())
    known: dict[str, NDArray] = {}
    for heading, text in _sections(page.read_text(encoding="utf-8")):
        world = next((name for name in api.BUILT_IN if api.world(name).title in heading), "")
        if world not in known:
            known[world] = _known(results, world)
        excused = {_plain(one) for said in SOURCED.findall(text) for one in NUMBER.findall(said)}
        for paragraph in PARAGRAPHS.split(SOURCED.sub("", text)):
            named = tuple(name for said in FROM.findall(paragraph) for name in said.split())
            pool = _sizes(_of_file(results / name) for name in named) if named else known[world]
            for found in NUMBER.finditer(FROM.sub("", paragraph)):
                if _plain(found[0]) not in excused and not _stands_for(found, pool):
                    yield heading.strip("# "), found[0]


def _sections(text: str) -> list[tuple[str, str]]:
    """Return the headings of a page and the text below each, without code and without blocks that commands make."""
    parts = HEADING.split(CODE.sub("", MADE.sub("", text)))
    return [("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]


def _plain(number: str) -> str:
    """Return a written number without its sign and thousands, and without zeros before the point."""
    return number.lstrip("−-").replace(",", "").lstrip("0")


def _known(results: Path, world: str) -> NDArray:
    """Return the sizes of all numbers of the files that a section may cite, the smallest first."""
    paths = [p for p in sorted(results.rglob("*.json")) if _may_cite(p.relative_to(results), world)]
    paths += [
        p for p in records.paths_in(results, "**/") if _may_cite(p.relative_to(results), world)
    ]
    found: list[Iterable[float]] = [_of_file(path) for path in paths]
    for record in (api.world(name) for name in api.BUILT_IN if world in ("", name)):
        found.append({v for figures in record.paper.values() for v in figures if v is not None})
        found.append({v for pair in record.paper_phrases.values() for v in pair})
    return _sizes(found)


def _sizes(found: Iterable[Iterable[float]]) -> NDArray:
    """Return the sizes of all numbers, the smallest first."""
    return np.sort(np.abs(np.array(list({value for one in found for value in one}), float)))


@functools.cache
def _of_file(path: Path) -> frozenset[float]:
    """Return the numbers of a JSON file, or those over seeds of a record's last line, its score."""
    text = records.content(path)
    if path.suffix == ".json":
        return frozenset(_numbers(json.loads(text)))
    return frozenset(_over_seeds(json.loads(text.rstrip(b"\n").rpartition(b"\n")[2])))


def _may_cite(path: Path, world: str) -> bool:
    if path.parts[0] == COPIED:
        return False
    return not world or world in path.parts or not set(path.parts) & set(api.BUILT_IN)


def _numbers(found: Any) -> Iterator[float]:
    """Yield every finite number of plain JSON data."""
    if isinstance(found, dict):
        for value in found.values():
            yield from _numbers(value)
    elif isinstance(found, list):
        for value in found:
            yield from _numbers(value)
    elif isinstance(found, int | float) and not isinstance(found, bool) and math.isfinite(found):
        yield float(found)


def _over_seeds(found: Any) -> Iterator[float]:
    """Yield the mean and the least over seeds of every entry of a score."""
    if isinstance(found, dict):
        for value in found.values():
            yield from _over_seeds(value)
    elif isinstance(found, list) and found and None not in found:
        yield from (sum(found) / len(found), min(found))


def _stands_for(written: re.Match[str], known: NDArray) -> bool:
    """Return whether one of the known sizes is written like this: as it is, in percent, or before the word million."""
    plain = _plain(written[0])
    digits = len(plain.rpartition(".")[2])
    in_millions = MILLIONS.match(written.string, written.end())
    for scale in (1.0, 100.0, 1e-6) if in_millions else (1.0, 100.0):
        # A little more than half of the last digit on both sides; the written form decides.
        ends = (np.array([-0.51, 0.51]) * 10.0**-digits + float(plain)) / scale
        first, last = np.searchsorted(known, ends)
        if any(_plain(f"{size * scale:.{digits}f}") == plain for size in known[first:last]):
            return True
    return False


def main() -> None:
    """Print the numbers without a record of the pages that the command line names. Exit with 1 if there are any."""
    found = [(name, *one) for name in sys.argv[1:] for one in uncited(Path(name))]
    for name, heading, number in found:
        print(f"{name}, {heading or 'top'}: {number}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
