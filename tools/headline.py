"""The headline tables of pages: which rows `results/headline.json` names, as Markdown made from `table.json`.

    python -m tools.headline README.md docs/record/results.md

rewrites every block between `<!-- headline: WORLD -->` and `<!-- end -->` on these pages. A world may have several
entries, such as `<!-- headline: overcooked extras -->`. Other blocks are `<!-- study: NAME -->` (the page of a study,
`results/NAME.md`), `<!-- bias: WORLD -->` (the critics' errors under all conditions), `<!-- speed -->`,
`<!-- speed: backbones -->`, `<!-- speed: parts -->`, `<!-- backbones -->`, `<!-- definitions -->` (the table of
metrics), `<!-- mutants -->`, `<!-- apart -->`, and those of `tools.guide`: `<!-- table1: BLOCK -->`,
`<!-- figure: NAME -->`, `<!-- studies -->` and `<!-- times -->`. BLOCKS has a row for each.

An entry of `headline.json` looks like this:

    "box_pushing": {
        "group": "tuned/protected/live/by-kind",            the group of `table.json` whose rows are shown
        "also": {"tuned/shared/live/by-kind": ["mavic"]},    optional: rows of other groups, after those of their method
        "without": ["mavic-shift"],                          optional: methods that are left out of the group
        "columns": ["method", "base return"],                optional: only these columns
        "folder": "repeat/box_pushing"                       optional: the folder of the table (default: the world's)
    }

Bold is the best mean of its column.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mavic.envs import api
from mavic.experiment.config import ExperimentConfig
from mavic.experiment.methods import JUDGED, METHODS
from mavic.reporting import styles
from mavic.reporting.formats import hundredths, number, percent
from tools import apart, backbones, definitions, guide, mutants, speed

HEADLINE = "headline.json"
SHIELD = "+shield"
LEFT_OUT = ("random",)
PAPERS = "shared/paper/add"  # network and condition of the paper
PICTURE = re.compile(r"!\[(.*?)\]\((?!\.\.)(.*?)\)")
SUBTITLE = re.compile(r"^##( .*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A row of a headline table: an entry of `table.json`, its method and group."""

    world: str
    group: str
    name: str
    numbers: Mapping[str, Any]
    has_paper: bool
    """Whether the paper's numbers for this method stand in this row."""

    @property
    def network(self) -> str:
        """The network that the group names, and what agents hear if the group says it."""
        return self.group.split("/")[1]

    @property
    def method(self) -> str:
        """The method without the shield."""
        return self.name.removesuffix(SHIELD)

    def get(self, key: str) -> float:
        """Return a number; nan if it is unknown."""
        found = self.numbers.get(key)
        return math.nan if found is None else found


def _is_dual(name: str, group: str) -> bool:
    network = group.split("/")[1].partition("+")[0]
    return styles.is_dual(ExperimentConfig(method=name.removesuffix(SHIELD), network=network))


def _method(line: _Row) -> str:
    label = "dual (naive)" if _is_dual(line.name, line.group) else styles.look(line.method).label
    if line.name != line.method:
        return f"{label} + shield"
    if METHODS[line.method].judged:
        return f"{label.removeprefix(JUDGED)} (not trained)"
    return label if METHODS[line.method].hears else f"{label} {styles.HEARS_NOTHING}"


def _spread(key: str, write: Callable[[float], str], line: _Row) -> str:
    low, high = line.numbers[f"{key}_ci"]
    mean = write(line.get(f"{key}_mean"))
    in_percent = mean.endswith("%")
    bounds = ", ".join(hundredths(x, 2) if in_percent else number(x) for x in (low, high))
    return f"{mean} [{bounds}]"


def _paper(line: _Row) -> str:
    figures = api.known(line.world).paper.get(line.method) if line.has_paper else None
    if figures is None:
        return ""
    base = number(figures.base)
    return base if figures.compliance is None else f"{base} · {100 * figures.compliance:.0f} %"


def _exact(value: float) -> str:
    return percent(value, 2)


COLUMNS: dict[str, Callable[[_Row], str]] = {
    "method": _method,
    "network": lambda line: "—" if METHODS[line.method].judged else line.network,
    "base return": lambda line: _spread("base", number, line),
    "worst seed's base": lambda line: number(line.get("base_min")),
    "of optimum": lambda line: percent(line.get("share_of_optimum")),
    "instructions followed": lambda line: _spread("compliance", _exact, line),
    "worst seed": lambda line: _exact(line.get("compliance_min")),
    "task under an instruction": lambda line: percent(line.get("under_share_mean")),
    "worst kind, worst seed": lambda line: percent(line.get("under_share_min")),
    "solved, worst": lambda line: percent(line.get("under_solved_min")),
    "obeyed, worst": lambda line: percent(line.get("under_obeyed_min")),
    "two at once: solved": lambda line: percent(line.get("pairs_solved_mean")),
    "two at once: both obeyed": lambda line: percent(line.get("pairs_obeyed_mean")),
    "live, of base": lambda line: percent(line.get("live_share")),
    "live solved": lambda line: percent(line.get("live_solved")),
    "paper": _paper,
}
BOLD = {"base return": "base_mean", "instructions followed": "compliance_mean"}
"""The columns whose best mean is bold, with its key in `table.json`."""


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def markdown(results: Path, entry: str) -> str:
    """Return a headline table in Markdown. Columns without any number are left out.

    Args:
        results: The folder of results.
        entry: The key in `headline.json`: a world, or a world and a second word.
    """
    named, world = _json(results / HEADLINE)[entry], entry.split()[0]
    table = _json(results / named.get("folder", world) / "table.json")
    group = named["group"]
    out = {*LEFT_OUT, *named.get("without", ())}
    chosen = {group: [name for name in table[group] if name not in out]}
    chosen |= named.get("also", {})
    rank = {name: i for i, name in enumerate(styles.LOOKS)}
    found = [(key, name) for key, names in chosen.items() for name in names]
    found.sort(key=lambda pair: rank.get(pair[1].removesuffix(SHIELD), len(rank)))
    lines = [
        _Row(
            world=world,
            group=key,
            name=name,
            numbers=table[key][name],
            has_paper=key.partition("/")[2] == PAPERS and not name.endswith(SHIELD),
        )
        for key, name in found
    ]
    columns = named.get("columns", COLUMNS)
    cells = {title: [COLUMNS[title](line) for line in lines] for title in columns}
    for title, key in BOLD.items():
        if title in cells:
            cells[title] = _bold_best(cells[title], [line.get(key) for line in lines])
    shown = {title: texts for title, texts in cells.items() if set(texts) - {styles.MISSING, ""}}
    rows = zip(*shown.values(), strict=True)
    return "\n".join(
        [
            "| " + " | ".join(shown) + " |",
            "|" + "---|" * len(shown),
            *("| " + " | ".join(row) + " |" for row in rows),
            "",
        ]
    )


def _bold_best(cells: list[str], means: list[float]) -> list[str]:
    """Return the cells of a column. The means that are written like the largest one are bold."""
    written = [cell.partition(" [")[0] for cell in cells]
    best = written[max(range(len(means)), key=lambda i: means[i])]
    return [
        cell.replace(best, f"**{best}**", 1) if mean == best else cell
        for mean, cell in zip(written, cells, strict=True)
    ]


def updated(text: str, results: Path) -> str:
    """Return the text of a page with new blocks.

    Args:
        text: The text of the page.
        results: The folder of results.
    """

    def block(match: re.Match[str]) -> str:
        name, _, of = match[2].partition(": ")
        return f"{match[1]}{BLOCKS[name](results, of)}{match[3]}"

    return BLOCK.sub(block, text)


def _bias(results: Path, world: str) -> str:
    """Return the critics' errors on uninstructed histories in every group of a world, in Markdown."""
    table = _json(results / world / "table.json")
    methods = [name for name in styles.LOOKS if name not in LEFT_OUT]
    lines = ["| setting | " + " | ".join(methods) + " |", "|" + "---|" * (1 + len(methods))]
    for group, rows in table.items():
        found = [rows.get(method, {}).get("leak") for method in methods]
        cells = [styles.MISSING if leak is None else percent(leak, 1, True) for leak in found]
        lines.append(f"| `{group}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _study(results: Path, name: str) -> str:
    """Return the text of a study's page below its title, or that it has not been run. Pictures stay where they are."""
    page = results / f"{name}.md"
    if not page.is_file():
        return "Not run yet.\n"
    text = page.read_text(encoding="utf-8").partition("\n")[2].lstrip("\n")
    return PICTURE.sub(r"![\1](../../results/\2)", SUBTITLE.sub(r"###\1", text))


BLOCKS: dict[str, Callable[[Path, str], str]] = {
    "apart": apart.markdown,
    "backbones": backbones.markdown,
    "bias": _bias,
    "definitions": definitions.markdown,
    "figure": guide.figure,
    "headline": markdown,
    "mutants": mutants.markdown,
    "speed": speed.markdown,
    "studies": guide.studies,
    "study": _study,
    "table1": guide.table1,
    "times": guide.times,
}
"""What makes each block. The second argument is what follows the block's name."""
BLOCK = re.compile(
    rf"(<!-- ((?:{'|'.join(BLOCKS)})(?:: [\w -]+?)?) -->\n).*?(<!-- end -->)", re.DOTALL
)


def main() -> None:
    """Rewrite the blocks of the pages that the command line names, from the folder `results` beside them."""
    for name in sys.argv[1:]:
        page = Path(name)
        folder = next(p / "results" for p in page.resolve().parents if (p / "results").is_dir())
        page.write_text(updated(page.read_text(encoding="utf-8"), folder), encoding="utf-8")


if __name__ == "__main__":
    main()
